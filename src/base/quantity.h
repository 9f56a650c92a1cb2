/* Quantities as people write them: 400G, 1us, 32MB, 64 KiB, 1%. They are read as whole numbers of the unit. Others are
 * refused, never rounded. */
#ifndef VB_BASE_QUANTITY_H
#define VB_BASE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

enum vb_quantity {
	VB_QUANTITY_COUNT, /* a plain number */
	VB_QUANTITY_BYTES, /* a plain number too */
	VB_QUANTITY_TIME,  /* picoseconds */
	VB_QUANTITY_RATE,  /* bits a second */
	VB_QUANTITY_SHARE, /* parts in a million */
	VB_QUANTITY_GAIN,  /* parts in 2^32, the only kind that is rounded: 0.00390625, 1/256 */
};

#define VB_GAIN_ONE (UINT64_C(1) << 32)

/* False: text is no such quantity, or above INT64_MAX. */
bool vb_quantity_read(enum vb_quantity kind, const char *text, uint64_t *value);
/* How such a quantity is written, for error messages. */
const char *vb_quantity_form(enum vb_quantity kind);

#endif
