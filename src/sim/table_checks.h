/* The checks by packets of the rows of a table (flow_check.h, step_check.h), and how much all of them take together: of
 * a long table each row's piece is smaller, so that the table takes no longer for checks than a few single runs do. */
#ifndef SIM_TABLE_CHECKS_H
#define SIM_TABLE_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "sim/simulation.h"

struct table_checks {
	uint64_t rows; /* that are still to come */
	double left;   /* packet-hops that these have together */
	/* Of those that were made. */
	uint64_t made, packet_hops;
	double least_part, most_part; /* of each message's bytes */
};

void table_checks_begin(struct table_checks *checks, uint64_t rows);
/* The most packet-hops of the next row's check: what rows before it left, in equal parts. */
double table_checks_next(struct table_checks *checks);
/* A check of that row is made. */
void table_checks_add(struct table_checks *checks, double bytes_part, uint64_t packet_hops);
/* A line on what was checked; nothing, if nothing was. */
void table_checks_tell(const struct table_checks *checks, FILE *out, const char *before);

/* The column `error`: "+0.12%", "0" of packets, "-" where it is not known. Returns text. */
const char *table_error_text(bool is_known, double error, char *text, size_t size);

#endif
