/* The formats that job_file_read distinguishes. */
#ifndef NET_JOB_FORMATS_H
#define NET_JOB_FORMATS_H

#include "net/job_file.h"

extern const struct job_format job_format_goal;        /* job_read_goal.c */
extern const struct job_format job_format_chakra;      /* job_read_chakra.c */
extern const struct job_format job_format_chakra_json; /* job_read_chakra_json.c */
extern const struct job_format job_format_aicb;        /* job_read_aicb.c */

/* A Chakra trace is several files, which its reader opens by the text's name, whatever the text has. So its name tells:
 * it ends as those files' names do, or it is their prefix. */
bool job_chakra_is_file_name(const char *path);
bool job_chakra_is_prefix(const char *path);

#endif
