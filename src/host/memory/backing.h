/* The inside of host/, registered memory as segments (VERBENA_MAP=registered). Ordinary memory becomes a file's, at
 * its place and with its bytes, so that local peers can map it. Only when asked for: a forked child then shares it,
 * MADV_DONTNEED gives no zeros, bytes that are written while it is being registered may be lost, and a host lane that
 * has its pages pinned keeps the old ones. */
#ifndef VB_HOST_BACKING_H
#define VB_HOST_BACKING_H

#include "host/peers/segments.h"

#define VB_BACKING_MIN 1048576u

struct vb_backing {
	pthread_mutex_t mutex; /* before any host lane's */
	uint64_t bytes;        /* ever */
	struct {
		uint32_t segment; /* 0: the place is free */
		unsigned regions;
		uintptr_t first;
		size_t length;
	} places[VB_SEGMENTS];
};

/* All of it is private anonymous memory that may be written, of which nothing else is asked: no huge pages, no
 * locking, no file, nothing of the heap or a stack. Or it was a segment before, and is a file of ours. */
bool vb_backing_is_possible(const void *first, size_t length);

#endif
