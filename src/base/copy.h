/* Copying payload: bytes that another part of the program, or another process, made a moment ago. */
#ifndef VB_BASE_COPY_H
#define VB_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where the C library would copy by `rep movsb`, and that is slow: copy.c. */
void vb_copy_by_vectors(uint8_t *to, const uint8_t *from, size_t length);

#define VB_COPY_PAGE   4096
#define VB_COPY_NEAR   64   /* bytes that places in a page may be apart and yet too near */
#define VB_COPY_STRING 1024 /* less is nowhere copied by a string instruction */

static inline bool vb_copy_is_near(const uint8_t *to, const uint8_t *from)
{
	return (((uintptr_t)to - (uintptr_t)from) & (VB_COPY_PAGE - 1)) - 1 < VB_COPY_NEAR - 1;
}

/* As memcpy, of ranges that do not overlap; any length, and at any two addresses about as fast. */
static inline void vb_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length >= VB_COPY_STRING && vb_copy_is_near(to, from))
		vb_copy_by_vectors(to, from, length);
	else if (length > 0)
		memcpy(to, from, length);
}

#endif
