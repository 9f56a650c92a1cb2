/* What is sent, and in which order: flows, each a message from one endpoint to another, and which of them wait for
 * which.
 *
 * A flow that waits for none begins at its start. Another waits for any number of flows, and begins `start` after the
 * last of them is heard of at its source. There are two ways to hear of a flow:
 *
 *   FLOW_ENDED    its source has seen it done: its last byte is acknowledged, or it has failed
 *   FLOW_ARRIVED  its bytes are all there, and its destination knows; a flow that fails before never arrives
 *
 * The first is heard at that flow's source and the second at its destination, and nowhere else: so the flow that waits
 * must have this endpoint as its source. The other flow may be of any endpoint. Nothing else crosses the network for
 * free: where an endpoint must learn of what happened elsewhere, a flow has to be sent to it, and it waits for the
 * arrival. That is also why a run's shards need not tell each other of operations.
 *
 * A list without waits costs its flows alone. */
#ifndef NET_FLOWS_H
#define NET_FLOWS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define FLOW_NONE UINT32_MAX

enum flow_event {
	FLOW_ENDED,
	FLOW_ARRIVED,
};

struct flow {
	uint32_t src, dst; /* endpoints */
	uint64_t bytes;    /* not 0 */
	vb_time start;     /* of one that waits: how long after the last that it waits for */
	uint32_t waits;    /* how many of the list's waits are this flow's */
	uint8_t traffic_class;
};

struct flow_wait {
	uint32_t flow; /* does not begin before `event` of this one: */
	uint32_t before : 31;
	uint32_t event : 1; /* enum flow_event */
};
_Static_assert(sizeof(struct flow_wait) == 8, "a job has millions");

/* What became of it. */
struct flow_result {
	vb_time start;  /* when its program began it */
	vb_time fct;    /* from then until the program hears that the last byte was acknowledged; -1: never */
	uint32_t error; /* enum vb_wc_status */
	uint32_t cause; /* enum vb_cause_kind */
};

struct flow_list {
	struct flow *flows;
	uint32_t count, room;
	struct flow_wait *waits; /* in any order */
	uint32_t wait_count, wait_room;
};

int flow_list_add(struct flow_list *list, const struct flow *flow); /* waits for none yet; -ENOMEM */
/* Both are in the list, or will be: flow_list_check looks at `before`. -ENOMEM. */
int flow_list_add_wait(struct flow_list *list, uint32_t flow, uint32_t before, enum flow_event event);
void flow_list_cut(struct flow_list *list, uint32_t count); /* keeps `count` flows, and the waits among these */
void flow_list_free(struct flow_list *list);

/* Whether a network of so many endpoints can run the list: 0; -EINVAL and why, -ENOMEM. */
int flow_list_check(const struct flow_list *list, uint32_t endpoints, char *why, unsigned why_size);

/* The lowest flow that never begins, as it waits for itself or for flows that do; FLOW_NONE. -ENOMEM. */
int flow_list_find_stuck(const struct flow_list *list, uint32_t *flow);

struct flow_follower {
	uint32_t flow : 31;
	uint32_t event : 1; /* enum flow_event, for which it waits */
};

/* The waits by what they wait for: those for flow i are followers[first[i]] to followers[first[i + 1] - 1]. */
struct flow_followers {
	uint32_t *first; /* NULL: the list has no waits */
	struct flow_follower *followers;
};

int flow_followers_make(struct flow_followers *followers, const struct flow_list *list); /* -ENOMEM */
void flow_followers_free(struct flow_followers *followers);

#endif
