/* What the files of src/cm/ say that holds, looked at from outside after every step. */
#ifndef VB_TESTS_SIM_CM_CHECK_H
#define VB_TESTS_SIM_CM_CHECK_H

#include "cm/id.h"

/* What does not hold, or NULL. */
const char *check_manager(struct vb_cm *cm);

#endif
