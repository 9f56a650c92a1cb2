/* Keys that a scenario gives, and that change nothing of it: what they are of is not there. */
#ifndef SIM_IDLE_KEYS_H
#define SIM_IDLE_KEYS_H

#include "sim/scenario.h"

/* The next one of scenario_keys, from that place on; NULL: no more. *of is what it lacks, as the table has it:
 * PATH=WORD|... One whose place is otherwise in another variant is none, for a file says it once for all of them. */
const struct scenario_key *idle_keys_next(const struct scenario *scenario, size_t *place, const char **of);
/* What that path is instead, for people. */
const char *idle_keys_instead(const struct scenario *scenario, const char *of, char *text, size_t size);

#endif
