/* Sends and receives of a graph that wait for the other of their pair: the first that was sent goes to the first that
 * was begun. Also with receives from anyone, or of any tag, a pair is found in a few steps, however many wait.
 *
 * Holds: calls for one rank touch only what is of that rank, and what is of an operation that was in its mail. */
#ifndef NET_GRAPH_MAIL_H
#define NET_GRAPH_MAIL_H

#include "net/graph.h"

#define GRAPH_PATTERNS 4 /* of receives: of a peer or any, of a tag or any */

struct graph_mail {
	const struct graph *graph;       /* borrowed */
	uint32_t *links[GRAPH_PATTERNS]; /* by operation; the first is borrowed; NULL: no receive has the pattern */
	uint32_t *turns; /* by operation: when it began to wait, counted at its rank; 0: it does not wait */
	struct graph_mailbox *boxes;
};

/* link: by operation, the mail's once the operation is there. -ENOMEM: nothing is open. */
int graph_mail_open(struct graph_mail *mail, const struct graph *graph, uint32_t *link);
void graph_mail_close(struct graph_mail *mail);

/* A receive of this rank was begun, or a send has arrived there. *other: the other of its pair, which waits no more;
 * GRAPH_NONE: it waits itself now, unless there is no memory (-ENOMEM). */
int graph_mail_find(struct graph_mail *mail, uint32_t rank, uint32_t number, uint32_t *other);

#endif
