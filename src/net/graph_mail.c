/* See graph_mail.h. */
#include "net/graph_mail.h"
#include <errno.h>
#include <stdlib.h>
#include "base/number_map.h"

/* What waits at a rank, linked in rings: receives that were begun, or sends that have arrived. Only one of the two
 * waits for one peer and tag. */
struct graph_mailbox {
	struct number_map waiting; /* by peer and tag: the ring's newest, plus 1 */
	/* Where a receive takes any, all wait here, in order. */
	bool takes_any;
	uint32_t receives, sends; /* the ring's newest, or GRAPH_NONE */
};

int graph_mail_open(struct graph_mail *mail, const struct graph *graph, uint32_t *link)
{
	*mail = (struct graph_mail){
		.graph = graph, .link = link, .boxes = calloc((size_t)graph->ranks + 1, sizeof(*mail->boxes))
	};
	if (!mail->boxes)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->ranks; i++)
		mail->boxes[i].receives = mail->boxes[i].sends = GRAPH_NONE;
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		if (its->kind == GRAPH_RECEIVE && (its->peer == GRAPH_ANY || its->tag == GRAPH_ANY))
			mail->boxes[its->rank].takes_any = true;
	}
	return 0;
}

void graph_mail_close(struct graph_mail *mail)
{
	for (uint32_t i = 0; mail->boxes && i < mail->graph->ranks; i++)
		number_map_free(&mail->boxes[i].waiting);
	free(mail->boxes);
	*mail = (struct graph_mail){ 0 };
}

/* A ring's newest is known, and is linked to its oldest. */
static void join(const struct graph_mail *mail, uint32_t *newest, uint32_t number)
{
	mail->link[number] = *newest == GRAPH_NONE ? number : mail->link[*newest];
	if (*newest != GRAPH_NONE)
		mail->link[*newest] = number;
	*newest = number;
}

/* Takes out the one behind `before`. */
static uint32_t leave(const struct graph_mail *mail, uint32_t *newest, uint32_t before)
{
	const uint32_t number = mail->link[before];
	mail->link[before] = mail->link[number];
	if (*newest == number)
		*newest = before == number ? GRAPH_NONE : before;
	return number;
}

static bool pairs_up(const struct graph_operation *sent, const struct graph_operation *receive)
{
	return (receive->peer == GRAPH_ANY || receive->peer == sent->rank) &&
	       (receive->tag == GRAPH_ANY || receive->tag == sent->tag);
}

/* The oldest of the ring that pairs up with `number`; GRAPH_NONE. */
static uint32_t take_from(const struct graph_mail *mail, uint32_t *newest, uint32_t number)
{
	const struct graph_operation *its = &mail->graph->operations[number];
	if (*newest == GRAPH_NONE)
		return GRAPH_NONE;
	uint32_t before = *newest;
	do {
		const struct graph_operation *other = &mail->graph->operations[mail->link[before]];
		if (its->kind == GRAPH_SEND ? pairs_up(its, other) : pairs_up(other, its))
			return leave(mail, newest, before);
		before = mail->link[before];
	} while (before != *newest);
	return GRAPH_NONE;
}

static uint32_t find_of_any(const struct graph_mail *mail, struct graph_mailbox *box, uint32_t number)
{
	const bool is_send = mail->graph->operations[number].kind == GRAPH_SEND;
	const uint32_t other = take_from(mail, is_send ? &box->receives : &box->sends, number);
	if (other == GRAPH_NONE)
		join(mail, is_send ? &box->sends : &box->receives, number);
	return other;
}

int graph_mail_find(struct graph_mail *mail, uint32_t rank, uint32_t number, uint32_t *other)
{
	struct graph_mailbox *box = &mail->boxes[rank];
	const struct graph_operation *operations = mail->graph->operations, *its = &operations[number];
	if (box->takes_any) {
		*other = find_of_any(mail, box, number);
		return 0;
	}
	const uint64_t key = (uint64_t)(its->kind == GRAPH_SEND ? its->rank : its->peer) << 32 | its->tag;
	uint32_t *value = number_map_make(&box->waiting, key);
	*other = GRAPH_NONE;
	if (!value)
		return -ENOMEM;
	uint32_t newest = *value - 1; /* of 0, which is new, GRAPH_NONE */
	if (newest != GRAPH_NONE && operations[newest].kind != its->kind)
		*other = leave(mail, &newest, newest);
	else
		join(mail, &newest, number);
	*value = newest + 1; /* GRAPH_NONE + 1 is 0 */
	if (newest == GRAPH_NONE)
		number_map_remove(&box->waiting, key);
	return 0;
}
