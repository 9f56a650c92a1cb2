/* Files that gzip packed. */
#ifndef NET_UNPACK_H
#define NET_UNPACK_H

#include "net/text.h"

/* Of a text that text_open has opened: if its file is gzip's, the text becomes what was packed, and *is_packed says so.
 * -EINVAL and why: damaged, cut off, larger than a text may be. -ENOMEM. */
int text_unpack(struct text *text, bool *is_packed);

#endif
