/* The result of a run: for people, as JSON, as CSV. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdio.h>
#include "sim/explain.h"
#include "sim/simulation.h"
#include "sim/summary.h"

/* What is run. */
/* The name and the network: a line that has not ended. */
void report_network(FILE *out, const struct simulation *simulation);
void report_head(FILE *out, const struct simulation *simulation);
void report_text(FILE *out, const struct simulation *simulation, const struct summary *summary);
/* One object, without a newline; indent: the beginning of its lines; explanation: NULL if none was asked for. */
void report_json(FILE *out, const struct simulation *simulation, const struct summary *summary,
	const struct explanation *explanation, const char *indent, bool with_flows);
/* One line per flow: src,dst,bytes,start_ps,fct_ps,ideal_ps,slowdown,error. */
void report_csv(FILE *out, const struct simulation *simulation);

/* How the run ended: of a job from a file whose operations wait for ever, FABRIC_IDLE, though all that began has ended.
 * A name for scripts, such as "deadlock", and a sentence for people. */
enum fabric_end report_end(const struct simulation *simulation);
const char *report_end_name(enum fabric_end end);
const char *report_end_text(const struct simulation *simulation, enum fabric_end end);
/* Remarks to read before the figures. */
void report_notes(FILE *out, const struct simulation *simulation);
/* Of packets beside a fast mode, if there was any. */
void report_unseen(FILE *out, uint64_t drops, uint64_t resent, uint64_t pauses);
/* Whether the run was held against packets, or is one by packets, whose error is 0. */
bool report_has_error(const struct simulation *simulation);
/* Of one that should have been, and was not. */
const char *report_why_unchecked(const struct simulation *simulation);
/* ", "error": ..." and what was checked, as members of an object; nothing, if it has no error. */
void report_error_json(FILE *out, const struct simulation *simulation);
/* Packets that the switch cut. */
uint64_t report_trims(const struct simulation *simulation, uint32_t at_switch);
/* What the run counts: "flow", "message" or "operation". */
const char *report_unit(const struct simulation *simulation);
double report_hops_per_cpu_s(const struct fabric_result *result);
double report_payload_gb_per_cpu_s(const struct fabric_result *result);

#endif
