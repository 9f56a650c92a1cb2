/* See closing.h. Two lists, linked by the flows' `next`: what ended since the generation began, in each part, and what
 * had ended before. */
#include "fabric/closing.h"
#include "fabric/endpoint.h"

void closing_add(struct part *part, uint32_t flow)
{
	part->fabric->flows[flow].next = part->first_ended;
	part->first_ended = flow;
}

static bool is_older_gone(const struct fabric *fabric)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < fabric->part_count; i++)
		count += fabric->parts[i].under_way[!fabric->generation];
	return count == 0;
}

static void push(struct fabric *fabric, uint32_t *list, uint32_t flow)
{
	fabric->flows[flow].next = *list;
	*list = flow;
}

/* Those that may not be closed yet are looked at again when this generation is gone. */
static uint32_t close_all(struct fabric *fabric)
{
	uint32_t stay = FLOW_NONE;
	for (uint32_t flow = fabric->first_closing, next; flow != FLOW_NONE; flow = next) {
		next = fabric->flows[flow].next;
		if (!fabric->kind->close_flow(fabric, flow))
			push(fabric, &stay, flow);
	}
	return stay;
}

void closing_advance(struct fabric *fabric)
{
	if (!fabric->kind->close_flow || !is_older_gone(fabric))
		return;
	fabric->first_closing = close_all(fabric);
	for (uint32_t i = 0; i < fabric->part_count; i++) {
		struct part *part = &fabric->parts[i];
		for (uint32_t flow = part->first_ended, next; flow != FLOW_NONE; flow = next) {
			next = fabric->flows[flow].next;
			push(fabric, &fabric->first_closing, flow);
		}
		part->first_ended = FLOW_NONE;
	}
	fabric->generation = !fabric->generation;
}
