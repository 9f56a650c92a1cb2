/* See graph_mail.h. */
#include "net/graph_mail.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "base/number_map.h"

/* What a receive leaves open, as bits. */
enum {
	ANY_TAG = 1,
	ANY_PEER = 2,
};

/* What waits at a rank: a receive in the ring of its pattern, peer and tag, and a send in one of each pattern that
 * receives of this rank have. So a ring has receives or sends, not both. The oldest of a ring waits indeed; others may
 * have left by another ring. */
struct graph_mailbox {
	struct number_map rings[GRAPH_PATTERNS]; /* by peer and tag, 0 what is open: the newest, plus 1. It is linked to
					      the oldest */
	uint32_t patterns;                       /* a bit for each that receives have */
	uint32_t turn;
};

static unsigned pattern_of(const struct graph_operation *receive)
{
	return (receive->tag == GRAPH_ANY ? ANY_TAG : 0) | (receive->peer == GRAPH_ANY ? ANY_PEER : 0);
}

static uint64_t key_of(const struct graph_operation *its, unsigned pattern)
{
	const uint32_t peer = its->kind == GRAPH_SEND ? its->rank : its->peer;
	return (uint64_t)(pattern & ANY_PEER ? 0 : peer) << 32 | (pattern & ANY_TAG ? 0 : its->tag);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* The patterns of all ranks together. */
static uint32_t find_patterns(const struct graph_mail *mail)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < mail->graph->count; i++) {
		const struct graph_operation *its = &mail->graph->operations[i];
		if (its->kind == GRAPH_RECEIVE)
			all |= mail->boxes[its->rank].patterns |= 1u << pattern_of(its);
	}
	return all;
}

int graph_mail_open(struct graph_mail *mail, const struct graph *graph, uint32_t *link)
{
	*mail = (struct graph_mail){ .graph = graph,
		.links = { link },
		.boxes = calloc((size_t)graph->ranks + 1, sizeof(*mail->boxes)),
		.turns = calloc((size_t)graph->count + 1, sizeof(*mail->turns)) };
	bool has_all = mail->boxes && mail->turns;
	const uint32_t patterns = has_all ? find_patterns(mail) : 0;
	for (unsigned i = 1; i < GRAPH_PATTERNS; i++)
		if (patterns & 1u << i) {
			mail->links[i] = malloc((size_t)graph->count * sizeof(*mail->links[i]));
			has_all &= mail->links[i] != NULL;
		}
	if (!has_all)
		graph_mail_close(mail);
	return has_all ? 0 : -ENOMEM;
}

void graph_mail_close(struct graph_mail *mail)
{
	for (uint32_t i = 0; mail->boxes && i < mail->graph->ranks; i++)
		for (unsigned k = 0; k < GRAPH_PATTERNS; k++)
			number_map_free(&mail->boxes[i].rings[k]);
	for (unsigned i = 1; i < GRAPH_PATTERNS; i++)
		free(mail->links[i]);
	free(mail->turns);
	free(mail->boxes);
	*mail = (struct graph_mail){ 0 };
}

/* ---- Rings ------------------------------------------------------------------------------------------------------- */

/* The oldest that waits there and is of this kind; GRAPH_NONE. */
static uint32_t oldest_of(const struct graph_mail *mail, const struct graph_mailbox *box, unsigned pattern,
	const struct graph_operation *its, enum graph_kind kind)
{
	const uint32_t *newest = number_map_find(&box->rings[pattern], key_of(its, pattern));
	const uint32_t oldest = newest ? mail->links[pattern][*newest - 1] : GRAPH_NONE;
	return newest && mail->graph->operations[oldest].kind == kind ? oldest : GRAPH_NONE;
}

static bool join(const struct graph_mail *mail, struct graph_mailbox *box, unsigned pattern, uint32_t number)
{
	uint32_t *link = mail->links[pattern];
	uint32_t *newest = number_map_make(&box->rings[pattern], key_of(&mail->graph->operations[number], pattern));
	if (!newest)
		return false;
	link[number] = *newest ? link[*newest - 1] : number;
	if (*newest)
		link[*newest - 1] = number;
	*newest = number + 1;
	return true;
}

/* The oldest that wait no more leave the ring. */
static void tidy(const struct graph_mail *mail, struct graph_mailbox *box, unsigned pattern, uint64_t key)
{
	uint32_t *link = mail->links[pattern], *newest = number_map_find(&box->rings[pattern], key);
	assert(newest);
	for (uint32_t oldest; !mail->turns[oldest = link[*newest - 1]]; link[*newest - 1] = link[oldest])
		if (oldest == *newest - 1) {
			number_map_remove(&box->rings[pattern], key);
			return;
		}
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

/* A bit for each pattern in one of whose rings it waits. */
static uint32_t patterns_of(const struct graph_mailbox *box, const struct graph_operation *its)
{
	return its->kind == GRAPH_SEND ? box->patterns : 1u << pattern_of(its);
}

static bool wait_there(const struct graph_mail *mail, struct graph_mailbox *box, uint32_t number)
{
	const uint32_t patterns = patterns_of(box, &mail->graph->operations[number]);
	mail->turns[number] = ++box->turn;
	for (unsigned i = 0; i < GRAPH_PATTERNS; i++)
		if (patterns & 1u << i && !join(mail, box, i, number))
			return false;
	return true;
}

static void leave(const struct graph_mail *mail, struct graph_mailbox *box, uint32_t number)
{
	const struct graph_operation *its = &mail->graph->operations[number];
	const uint32_t patterns = patterns_of(box, its);
	mail->turns[number] = 0;
	for (unsigned i = 0; i < GRAPH_PATTERNS; i++)
		if (patterns & 1u << i)
			tidy(mail, box, i, key_of(its, i));
}

/* The other that has waited longest. */
static uint32_t find(const struct graph_mail *mail, const struct graph_mailbox *box, const struct graph_operation *its)
{
	const enum graph_kind kind = its->kind == GRAPH_SEND ? GRAPH_RECEIVE : GRAPH_SEND;
	const uint32_t patterns = patterns_of(box, its);
	uint32_t found = GRAPH_NONE;
	for (unsigned i = 0; i < GRAPH_PATTERNS; i++) {
		const uint32_t other = patterns & 1u << i ? oldest_of(mail, box, i, its, kind) : GRAPH_NONE;
		if (other != GRAPH_NONE && (found == GRAPH_NONE || mail->turns[other] < mail->turns[found]))
			found = other;
	}
	return found;
}

int graph_mail_find(struct graph_mail *mail, uint32_t rank, uint32_t number, uint32_t *other)
{
	struct graph_mailbox *box = &mail->boxes[rank];
	*other = find(mail, box, &mail->graph->operations[number]);
	if (*other == GRAPH_NONE)
		return wait_there(mail, box, number) ? 0 : -ENOMEM;
	leave(mail, box, *other);
	return 0;
}
