/* Numbers and addresses as a person reads them. Each function writes to a buffer and returns it. */
#ifndef VB_HOST_TEXT_H
#define VB_HOST_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"
#include "base/time.h"

#define VB_TEXT_GID 46

const char *vb_text_gid(const struct vb_gid *gid, char text[VB_TEXT_GID]); /* "10.0.0.2", "fe80::1" */
const char *vb_text_bytes(uint64_t bytes, char *text, size_t size);        /* "12.3 GB" */
const char *vb_text_rate(double bits, char *text, size_t size);            /* "98 Mb/s", of bits a second */
const char *vb_text_span(vb_time span, char *text, size_t size);           /* "4.1 s", "20 us" */

/* A line that is put together; the part for which it has no room is cut off. */
struct vb_line {
	char *text;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) void vb_line_add(struct vb_line *line, const char *format, ...);

#endif
