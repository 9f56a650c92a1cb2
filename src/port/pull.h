/* Bytes out of another process's memory, by one copy: what a peer on this host lends (engine/local.h, vb_local_pull);
 * by the kernel, or from what of it is mapped here. Only from a process of our own user that the kernel lets us read,
 * which is found out by trying. */
#ifndef VB_PORT_PULL_H
#define VB_PORT_PULL_H

#include <sys/types.h>
#include "engine/local.h"
#include "port/mapped.h"

/* Reads a number out of a process's memory: 0, or why not: -EPERM (Yama, a process that forbids it, a sandbox), -ESRCH
 * (it has ended), -EFAULT (nothing is there). */
int vb_pull_number(pid_t pid, uint64_t address, uint64_t *number);

/* Where a peer's memory is, by its own word. */
struct vb_puller {
	pid_t pid;                /* as it is called here */
	uint64_t nonce;           /* what its lives begin with: another process with that number has another */
	uint64_t lives;           /* address of its struct vb_lives */
	bool stages;              /* what is near in its page: the processor copies that badly (base/copy.h) */
	uint8_t *stage;           /* made when needed */
	struct vb_mapped *mapped; /* what it shares; or NULL */
	bool has_mapped;          /* something was pulled from that */
};

/* Can it be pulled from? 0, or why not, as above; -ESRCH also where its lives are another process's. */
int vb_puller_try(const struct vb_puller *puller);
void vb_puller_close(struct vb_puller *puller);
enum vb_local_outcome vb_pull(struct vb_puller *puller, const struct vb_local_pull *pull);

#endif
