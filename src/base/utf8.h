/* Text that is shown in part. */
#ifndef VB_BASE_UTF8_H
#define VB_BASE_UTF8_H

/* How many bytes of text fit into room for `most` without cutting a character (RFC 3629, 3). */
int vb_utf8_fitting(const char *text, unsigned most);

#endif
