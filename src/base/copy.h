/* Copying payload: bytes that another part of the program, or another process, made a moment ago. */
#ifndef VB_BASE_COPY_H
#define VB_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* For ranges that the C library would copy slowly by `rep movsb` (copy.c). */
void vb_copy_by_vectors(uint8_t *to, const uint8_t *from, size_t length);

#define VB_COPY_PAGE   4096
#define VB_COPY_NEAR   64   /* bytes: places in a page that are nearer than this are too near */
#define VB_COPY_STRING 1024 /* no C library copies less by a string instruction */

static inline bool vb_copy_is_near(const uint8_t *to, const uint8_t *from)
{
	return (((uintptr_t)to - (uintptr_t)from) & (VB_COPY_PAGE - 1)) - 1 < VB_COPY_NEAR - 1;
}

/* Like memcpy: any length, ranges do not overlap. About as fast at any two addresses. */
static inline void vb_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length >= VB_COPY_STRING && vb_copy_is_near(to, from))
		vb_copy_by_vectors(to, from, length);
	else if (length > 0)
		memcpy(to, from, length);
}

#endif
