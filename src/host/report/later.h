/* Lines for stderr that are made under a lock and written after it: to write may block for as long as the reader
 * likes. */
#ifndef VB_HOST_LATER_H
#define VB_HOST_LATER_H

#include "host/settings.h"

struct vb_later;

/* Keeps a line in *unsaid, made with the first. More than a few, or without memory: they are lost. errno stays. */
__attribute__((format(printf, 3, 4))) void vb_log_later(
	struct vb_later **unsaid, enum vb_log_level level, const char *format, ...);
/* Puts the unsaid lines behind those that were taken before; under the lock that guards them. */
void vb_later_append(struct vb_later **unsaid, struct vb_later **taken);
static inline void vb_later_take(struct vb_later **unsaid, struct vb_later **taken)
{
	if (*unsaid)
		vb_later_append(unsaid, taken);
}
/* Writes the lines, after the lock, and frees them; NULL: there are none. */
void vb_later_say(struct vb_later *taken);

#endif
