/* What is told of a job that came from a file: text, JSON, and a line an operation. */
#ifndef SIM_GRAPH_REPORT_H
#define SIM_GRAPH_REPORT_H

#include <stdio.h>
#include "sim/simulation.h"

/* all: every step of the critical path; otherwise those that took longest. */
int graph_report_text(FILE *out, const struct simulation *simulation, bool all);           /* -ENOMEM */
int graph_report_json(FILE *out, const struct simulation *simulation, const char *indent); /* -ENOMEM */
void graph_report_csv(FILE *out, const struct simulation *simulation);

#endif
