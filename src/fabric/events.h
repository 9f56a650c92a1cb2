/* The events to come: a calendar of short days, and a heap for those beyond its year. It belongs to one thread.
 *
 * Events are ordered by (at, key). Events that may be in the calendar together and are equal in both are the same
 * event. So the order depends only on the calendar's contents: neither on when an event was added, nor on the number of
 * threads.
 * Holds: no event is added before the one that was taken last. */
#ifndef FABRIC_EVENTS_H
#define FABRIC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct event {
	vb_time at;
	uint64_t key; /* event_key */
};

/* At the same moment, in this order: links and ports come before what endpoints do by themselves. */
enum event_kind {
	EVENT_ARRIVAL,  /* the first packet or frame on a link arrives */
	EVENT_PORT,     /* a port's wire is free, or one of its pauses may be over */
	EVENT_WIRE,     /* an endpoint's wire is free */
	EVENT_TIMER,    /* an endpoint's timer */
	EVENT_FLOW,     /* a rank's next operation begins, or is over */
	EVENT_RENEWAL,  /* pauses of a switch's incoming link are sent again */
	EVENT_WATCH,    /* a port's watchdog */
	EVENT_CALL,     /* the holder of the endpoints asked for it */
	EVENT_WAKE,     /* an endpoint's process runs */
	EVENT_SCALE_UP, /* a transfer of a host's scale-up domain is over */
	EVENT_STAGE,    /* a message that is no packets gets on; its turn is the stage: flow_ends.h */
	EVENT_FLUIDS,   /* rates of such messages change */
	EVENT_OUTAGE,   /* of such messages: a link goes down or is up again, or it becomes known */
};

/* Orders events of one kind at one moment: first by `turn`, a hash that changes every time, so that of two that always
 * tie neither always wins; then by number. */
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

static inline uint32_t event_turn(const struct event *event)
{
	return event->key >> 32 & 0xFFFFFFF;
}

struct event_node {
	struct event event;
	uint32_t next;
};

struct events {
	uint32_t *days;      /* the first node of each day that has not begun */
	uint64_t *is_used;   /* a bit for each day */
	uint64_t day;        /* the day that has begun, counted from time 0 */
	int day_shift;       /* a day is 2^day_shift ps */
	struct event *today; /* sorted, latest first: the next event is the last */
	uint32_t today_count, today_room;
	struct event_node *nodes;
	uint32_t free_node, node_count, node_room;
	uint32_t ahead; /* a node of the next day: with each event that is taken, one more of its nodes is prefetched */
	struct event *beyond; /* a heap: events beyond the year */
	uint32_t beyond_count, beyond_room;
	uint32_t count;
	bool is_out_of_memory; /* an event was lost: the run must end */
};

int events_init(struct events *events, int day_shift); /* -ENOMEM */
void events_deinit(struct events *events);
void events_add(struct events *events, vb_time at, uint64_t key);
/* Takes the next event before `until`; false: there is none. */
bool events_next(struct events *events, vb_time until, struct event *event);
/* The time of the next event; false: there is none. */
bool events_peek(struct events *events, vb_time *at);

#endif
