/* Sends and receives of a graph that wait for the other of their pair: the first that was sent goes to the first that
 * was begun.
 *
 * Holds: calls for one rank touch only what is of that rank, and `link` of what is in its mail. */
#ifndef NET_GRAPH_MAIL_H
#define NET_GRAPH_MAIL_H

#include "net/graph.h"

struct graph_mail {
	const struct graph *graph; /* borrowed, as link is */
	uint32_t *link;            /* by operation: the mail's while the operation waits */
	struct graph_mailbox *boxes;
};

int graph_mail_open(struct graph_mail *mail, const struct graph *graph, uint32_t *link); /* -ENOMEM: nothing is open */
void graph_mail_close(struct graph_mail *mail);

/* A receive of this rank was begun, or a send has arrived there. *other: the other of its pair, which waits no more;
 * GRAPH_NONE: it waits itself now, unless there is no memory (-ENOMEM). */
int graph_mail_find(struct graph_mail *mail, uint32_t rank, uint32_t number, uint32_t *other);

#endif
