/* A trace of a job that came from a file, in Chrome's format (chrome://tracing, ui.perfetto.dev): a process a host, a
 * track for each rank and stream, and of the busiest links, if the run sampled them, their queue and utilisation over
 * time. */
#ifndef SIM_GRAPH_TRACE_H
#define SIM_GRAPH_TRACE_H

#include <stdio.h>
#include "sim/summary.h"

/* Operations that ended. Errors are the file's. */
void graph_trace_put(FILE *out, const struct simulation *simulation, const struct summary *summary);

#endif
