/* The formats that job_file_read distinguishes. */
#ifndef NET_JOB_FORMATS_H
#define NET_JOB_FORMATS_H

#include "net/job_file.h"

extern const struct job_format job_format_goal; /* job_read_goal.c */

#endif
