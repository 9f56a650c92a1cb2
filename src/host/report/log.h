/* The level below which vb_log (settings.h) is silent. */
#ifndef VB_HOST_LOG_H
#define VB_HOST_LOG_H

#include "host/settings.h"

void vb_log_set_level(enum vb_log_level level);

#endif
