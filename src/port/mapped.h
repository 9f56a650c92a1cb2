/* Segments of another process's memory, mapped here: what a peer on this host lends out of one is copied without
 * asking the kernel (pull.h is for all else). The peer says what it shares by a number, and never names anything else
 * by that. */
#ifndef VB_PORT_MAPPED_H
#define VB_PORT_MAPPED_H

#include "engine/local.h"

#define VB_SEGMENTS 64 /* of a process at a time: the number's remainder is the place in all tables */

struct vb_segment {
	uint32_t id;              /* 0: none */
	uint64_t address, length; /* where it is in its process; whole pages */
};

struct vb_mapped;

/* Maps what file has of it; the file stays the caller's. -EINVAL: not memory alone, or it might shrink, which would
 * kill whoever reads it; or its place is taken. */
int vb_mapped_take(struct vb_mapped **mapped, const struct vb_segment *segment, int file);
void vb_mapped_drop(struct vb_mapped *mapped, uint32_t id); /* any, or NULL */
void vb_mapped_close(struct vb_mapped *mapped);             /* or NULL */

/* False: it lies in none, or what proves it lies in none. lives: where the peer says that its own are; nonce: of
 * them. */
bool vb_mapped_pull(const struct vb_mapped *mapped, uint64_t lives, uint64_t nonce, const struct vb_local_pull *pull,
	enum vb_local_outcome *outcome);

#endif
