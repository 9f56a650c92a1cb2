/* Ports that tell traffic classes apart and may be stopped: of a switch that is not plain, and of an endpoint that
 * such a switch may stop. One queue a class; strict classes first, the highest before the others, then deficit round
 * robin by weight; frames, which are pauses and credits, before all.
 * Holds: a port with something that may leave sends, or is in the calendar for when its wire is free. */
#ifndef FABRIC_PORT_H
#define FABRIC_PORT_H

#include "fabric/state.h"

enum frame_kind {
	FRAME_PAUSE, /* value: for how long; 0: until it is taken back */
	FRAME_RESUME,
	FRAME_CREDIT, /* value: blocks that the lane may have sent in all, ever */
};

struct frame {
	enum frame_kind kind;
	uint8_t classes; /* a mask */
	uint64_t value;  /* below 2^48 */
};

struct port_queue {
	/* What each packet looks at: half a cache line. */
	uint32_t head, tail; /* packets, by `next`, where the port's `occupied` says so */
	uint32_t bytes;
	uint32_t deficit,
		quantum; /* what it may still send in its turn, and is given in each; quantum 0: strict, or alone */
	uint32_t alpha;  /* see buffer.c */
	uint32_t mark_min, mark_max;
	vb_time paused_at, paused_until;      /* until 0: it is taken back */
	vb_time watch_at;                     /* when the watchdog looks; 0: it need not */
	uint64_t blocks_sent, blocks_granted; /* credits.c */
};

struct port {
	const struct switch_profile *profile; /* its switch's; an endpoint's: of that at the other end */
	uint64_t ever_queued;                 /* packets */
	uint64_t bytes, most_bytes;
	double area; /* bytes times picoseconds, until `seen_at`; if asked for */
	vb_time seen_at;
	/* Masks of classes. */
	uint8_t occupied;
	uint8_t paused;                               /* by who receives */
	uint8_t dropped;                              /* the watchdog drops what is in them */
	uint8_t pauses_due, resumes_due, credits_due; /* frames that are to leave */
	uint8_t turn;
	uint8_t with_deficit;            /* the others' is 0 */
	bool has_begun_turn, is_awaited; /* awaited: an event comes when the wire is free */
	bool has_credits;                /* it obeys them */
	struct port_queue queues[];      /* the profile's class_count */
};

static inline uint8_t port_class_of(const struct port *port, uint8_t traffic_class)
{
	return traffic_class < port->profile->class_count ? traffic_class : 0;
}
static inline uint8_t port_class(const struct port *port, const struct packet *packet)
{
	return port_class_of(port, packet->traffic_class);
}

/* A threshold of marks of the queue before a link of this rate. */
uint32_t port_mark_bytes(const struct switch_profile *profile, uint64_t bits_per_second, uint32_t given);
int ports_open(struct fabric *fabric); /* where links need them, with the buffers behind; -ENOMEM */
void ports_close(struct fabric *fabric);
void port_say(struct fabric *fabric, uint32_t link, vb_time now); /* to the link's counts */

void port_receive(struct shard *shard, uint32_t link, uint32_t packet); /* a switch's: if there is room */
void port_queue(struct shard *shard, uint32_t link, uint32_t packet);
/* The wire is free: the next that may leave does. False: there is none. */
bool port_send_next(struct shard *shard, uint32_t link);
void port_run(struct shard *shard, uint32_t link);
void port_on_event(struct shard *shard, uint32_t link);
void port_drop(struct shard *shard, uint32_t link, uint32_t packet); /* counted */
void port_drop_queue(struct shard *shard, uint32_t link, uint8_t of_class);

/* Something may leave that could not, or a frame is due: of a switch's port, or an endpoint's. */
void port_wake(struct shard *shard, uint32_t link);
void port_on_frame(struct shard *shard, uint32_t link, const struct packet *packet); /* that came by this link */
bool port_is_stopped(const struct shard *shard, const struct port *port, uint8_t of_class);

#endif
