/* The times of a model's operations from a Chakra execution trace (net/chakra_wire.h), as PyTorch's converter writes it
 * of a linked trace, or other tools: the rows that a table of times has for the plan whose run was traced.
 *
 * What counts is the computations of the GPU: nodes of type COMP that are no CPU op. Which operation one belongs to
 * says the first name that has one of the words of compute_trace.c: its own, or that of the CPU op that launched it, or
 * of whatever called that (control dependencies on CPU ops). Likewise its pass, which without a word is forward.
 *
 * A trace has many layers and micro-batches, a row has one. Of nodes of one name, whose numbers that stand alone do not
 * count ("layers.3.mlp"), a row has the mean time of one; different names of an operation add up ("q_proj", "k_proj").
 */
#ifndef STEPS_COMPUTE_TRACE_H
#define STEPS_COMPUTE_TRACE_H

#include <stdbool.h>
#include "steps/compute_times.h"

struct compute_trace {
	struct compute_times times;
	uint64_t computations, unmatched; /* of the GPU, and those of no operation */
	double us, unmatched_us;          /* their time */
	char such_as[60];                 /* the longest of those */
};

/* Whether compute-times names a trace: PREFIX.RANK.et, perhaps packed and called .et.gz, or a PREFIX, for all ranks. */
bool compute_trace_is(const char *path);
/* Bytes of the files are not trusted. -EINVAL and why: the file, the byte or node, and what to do; -ENOMEM. */
int compute_trace_read(const char *path, struct compute_trace *trace, char *why, unsigned why_size);

#endif
