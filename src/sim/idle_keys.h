/* Keys that a scenario gives but that have no effect, as what they configure is absent. */
#ifndef SIM_IDLE_KEYS_H
#define SIM_IDLE_KEYS_H

#include "sim/scenario.h"

/* The next of scenario_keys, from that place on; NULL: no more. *of is the missing condition, as in the table:
 * PATH=WORD|... A key whose condition some variant changes does not count: a file may give it once for all variants. */
const struct scenario_key *idle_keys_next(const struct scenario *scenario, size_t *place, const char **of);
/* The present value at that path, for people. */
const char *idle_keys_instead(const struct scenario *scenario, const char *of, char *text, size_t size);

#endif
