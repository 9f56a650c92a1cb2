/* Text that is shown in part. */
#ifndef VB_BASE_UTF8_H
#define VB_BASE_UTF8_H

/* So many bytes of a text can be shown where there is room for most: none of its characters is cut (RFC 3629, 3). */
int vb_utf8_fitting(const char *text, unsigned most);

#endif
