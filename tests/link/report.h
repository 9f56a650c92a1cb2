/* What the link carried, for people and as JSON. */
#ifndef TESTS_LINK_REPORT_H
#define TESTS_LINK_REPORT_H

#include <stdio.h>
#include "relay.h"

/* Microseconds by which this share of the packets was written too late, at most; LINK_LATE_STEPS: more than that. */
unsigned link_report_late_us(const struct link_report *report, double share);
void link_report_print(const struct link_report *report, const struct link_options *options, FILE *out);
void link_report_print_json(const struct link_report *report, const struct link_options *options, FILE *out);

#endif
