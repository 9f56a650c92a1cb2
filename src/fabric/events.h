/* What happens next: a calendar of short days, and a heap of what lies beyond its year. One thread's.
 *
 * Order is that of (at, key), and events that may be in the calendar at once and have the same are the same: so it
 * depends on nothing but what is in it, not on when it was put there or by how many threads the run is shared.
 * Holds: nothing is put in before what was taken out last. */
#ifndef FABRIC_EVENTS_H
#define FABRIC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct event {
	vb_time at;
	uint64_t key; /* event_key */
};

/* At one moment: what happens to links and ports before what endpoints do by themselves. */
enum event_kind {
	EVENT_ARRIVAL, /* the first packet or frame under way on a link is there */
	EVENT_PORT,    /* a port's wire is free, or a pause of it may be over */
	EVENT_WIRE,    /* an endpoint's wire is free */
	EVENT_TIMER,   /* of an endpoint */
	EVENT_FLOW,    /* an endpoint's next flow begins */
	EVENT_RENEWAL, /* pauses are said again: of a switch's incoming link */
	EVENT_WATCH,   /* the watchdog looks after a port */
	EVENT_CALL,    /* the endpoints' holder asked for it */
	EVENT_WAKE,    /* an endpoint's process runs */
};

/* Among those of one kind at one moment `turn` decides, a hash that is another each time, so that of two who tie for
 * ever neither always wins; then the number. */
static inline uint64_t event_key(enum event_kind kind, uint32_t turn, uint32_t number)
{
	return (uint64_t)kind << 60 | (uint64_t)(turn & 0xFFFFFFF) << 32 | number;
}
static inline enum event_kind event_kind(const struct event *event)
{
	return (enum event_kind)(event->key >> 60);
}
static inline uint32_t event_number(const struct event *event)
{
	return (uint32_t)event->key;
}

struct event_node {
	struct event event;
	uint32_t next;
};

struct events {
	uint32_t *days;      /* first node of each day that has not begun */
	uint64_t *is_used;   /* a bit a day */
	uint64_t day;        /* that has begun, counted from time 0 */
	int day_shift;       /* a day is 2^day_shift ps */
	struct event *today; /* sorted, latest first: the next is the last */
	uint32_t today_count, today_room;
	struct event_node *nodes;
	uint32_t free_node, node_count, node_room;
	uint32_t ahead; /* of the next day: each event that is taken brings one more of its nodes into the cache */
	struct event *beyond; /* a heap: later than the year */
	uint32_t beyond_count, beyond_room;
	uint32_t count;
	bool is_out_of_memory; /* an event was lost: the run must end */
};

int events_init(struct events *events, int day_shift); /* -ENOMEM */
void events_deinit(struct events *events);
void events_add(struct events *events, vb_time at, uint64_t key);
/* The next before `until`, taken out; false: there is none. */
bool events_next(struct events *events, vb_time until, struct event *event);
/* When the next is; false: there is none. */
bool events_peek(struct events *events, vb_time *at);

#endif
