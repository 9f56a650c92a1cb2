/* Copies bytes that a peer on this host lends (local/local.h, vb_local_pull) out of its memory, by one copy: by the
 * kernel, or from memory of the peer that is mapped here. The peer must be a process of our own user that the kernel
 * lets us read, which is found out by trying. */
#ifndef VB_PORT_PULL_H
#define VB_PORT_PULL_H

#include <sys/types.h>
#include "local/local.h"
#include "port/mapped.h"

/* Reads a number out of a process's memory. 0, or -EPERM (Yama, a process that forbids it, a sandbox), -ESRCH (it has
 * ended), -EFAULT (nothing is there). */
int vb_pull_number(pid_t pid, uint64_t address, uint64_t *number);

/* A peer's memory, as the peer has described it. */
struct vb_puller {
	pid_t pid;       /* in our pid namespace */
	uint64_t nonce;  /* the first number of its epochs: another process with that pid has another */
	uint64_t epochs; /* address of its struct vb_epochs */
	bool stages; /* copies of near places in a page go by the stage: this processor does them slowly (base/copy.h)
		      */
	uint8_t *stage;           /* made when needed */
	struct vb_mapped *mapped; /* memory that it shares; or NULL */
	bool has_mapped;          /* something was pulled from that */
};

/* Whether it can be pulled from: 0, or -errno as above; -ESRCH also if its epochs are another process's. */
int vb_puller_try(const struct vb_puller *puller);
void vb_puller_close(struct vb_puller *puller);
enum vb_local_outcome vb_pull(struct vb_puller *puller, const struct vb_local_pull *pull);

#endif
