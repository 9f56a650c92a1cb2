/* Segments of another process's memory, mapped here: bytes that a peer on this host lends out of one are copied without
 * asking the kernel (pull.h is for all others). The peer names a segment by a number, and never names another one by
 * that. */
#ifndef VB_PORT_MAPPED_H
#define VB_PORT_MAPPED_H

#include "local/local.h"

#define VB_SEGMENTS 64 /* of a process at a time: a number modulo this is the place in all tables */

struct vb_segment {
	uint32_t id;              /* 0: none */
	uint64_t address, length; /* where it is in its process; whole pages */
};

struct vb_mapped;

/* Maps the file's part of it; the file stays the caller's. -EINVAL: the file is not memory alone, or it might shrink,
 * which would kill a reader; or the segment's place is taken. */
int vb_mapped_take(struct vb_mapped **mapped, const struct vb_segment *segment, int file);
void vb_mapped_drop(struct vb_mapped *mapped, uint32_t id); /* any, or NULL */
void vb_mapped_close(struct vb_mapped *mapped);             /* or NULL */

/* False: the bytes, or their proof, lie in no segment. epochs: the address of the peer's epochs, by its own word;
 * nonce: their first number. */
bool vb_mapped_pull(const struct vb_mapped *mapped, uint64_t epochs, uint64_t nonce, const struct vb_local_pull *pull,
	enum vb_local_outcome *outcome);

#endif
