/* The inside of host/, segments: memory of this process that its local peers may map. A name is given once, and never
 * again. Peers are told of all segments when they have proved themselves, and of each that comes or goes by the
 * function that adds or removes it. */
#ifndef VB_HOST_SEGMENTS_H
#define VB_HOST_SEGMENTS_H

#include <pthread.h>
#include "port/mapped.h"

struct vb_segments {
	pthread_mutex_t mutex; /* behind any host lane's */
	uint32_t count;        /* names that were given */
	struct {
		struct vb_segment said;
		int file;
	} places[VB_SEGMENTS];
};

struct vb_segments *vb_segments_create(void);           /* NULL: no memory */
void vb_segments_destroy(struct vb_segments *segments); /* or NULL */
void vb_segments_forked(struct vb_segments *segments);  /* in a forked child: closes descriptors */
void vb_segments_forget(struct vb_segments *segments);  /* the descriptors are not ours any more: closes none */
/* Its name; 0: there is no room, and it is no segment. Keeps a duplicate of file. */
uint32_t vb_segments_add(struct vb_segments *segments, const void *memory, size_t length, int file);
void vb_segments_remove(struct vb_segments *segments, uint32_t id);

/* May any process of our user read this process's memory anyway? Else nothing is shared: a file would be a right that
 * it did not have. */
bool vb_segments_may_be_shared(void);

#endif
