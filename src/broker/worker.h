/* The broker's worker: serves processes, keeps the group, runs discovery. It can die at any moment: all that must
 * survive is in the registry, of which the parent has a copy, and in the kernel's group. */
#ifndef VB_BROKER_WORKER_H
#define VB_BROKER_WORKER_H

#include <stdbool.h>
#include "broker/registry.h"

enum worker_end {
	WORKER_LEAVES,   /* no client needs the broker any more */
	WORKER_ORPHANED, /* the parent died: the caller takes its place, with this registry */
	WORKER_FAILED,   /* could not start; the reason is on the report descriptor */
};

/* Users that may have sockets of the group, beside root and the broker's own. */
struct trusted {
	unsigned count;
	uid_t uids[32];
};

struct worker_options {
	struct trusted trusted;
	bool stays;        /* keeps running without clients */
	bool says_clients; /* reports on stderr when clients connect and leave */
	bool is_shared;    /* serves every user, even if it is not root's */
	bool is_managed;   /* a service manager has our listening sockets, and starts the next broker */
	bool is_first;     /* not a replacement */
	int report;        /* descriptor for VB_BROKER_READY or the reason, then closed; -1: none */
};

enum worker_end worker_run(struct registry *registry, int link, const struct worker_options *options);

#endif
