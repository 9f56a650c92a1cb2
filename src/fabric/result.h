/* Makes the result of a run from the state in which it ended. */
#ifndef FABRIC_RESULT_H
#define FABRIC_RESULT_H

#include "fabric/state.h"

int result_say(struct fabric *fabric, struct fabric_result *result); /* -ENOMEM */

#endif
