/* A line of JSON in memory that does not grow: exit() may have been called in the middle of malloc(). */
#ifndef VB_HOST_JSON_LINE_H
#define VB_HOST_JSON_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include "host/report/summary_page.h"

struct vb_json_line {
	struct vb_summary_text *text; /* the caller's */
	bool is_cut;                  /* there was no room: the line is dropped whole */
};

/* {"program":NAME,"pid":PID,"opened":BOOLEAN: the members that each line has, without its end. */
void vb_json_line_begin(struct vb_json_line *line, struct vb_summary_text *text, bool has_opened);
/* Of the format's strings none may need escaping. */
__attribute__((format(printf, 2, 3))) void vb_json_line_add(struct vb_json_line *line, const char *format, ...);
/* ,"NAME":{...}, every counter with its value, 0 included. */
void vb_json_line_counters(
	struct vb_json_line *line, const char *name, const char *const *names, const uint64_t *values, unsigned count);
void vb_json_line_end(struct vb_json_line *line);

#endif
