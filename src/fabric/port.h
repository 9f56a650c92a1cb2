/* Ports that distinguish traffic classes and may be stopped: those of switches that are not plain, and of endpoints
 * that such a switch may stop. Each class has a queue. Strict classes go first, the highest before the others, then
 * deficit round robin by weight. Frames (pauses and credits) go before all.
 * Holds: a port with something that may leave is sending, or is in the calendar for when its wire is free. */
#ifndef FABRIC_PORT_H
#define FABRIC_PORT_H

#include "fabric/state.h"

enum frame_kind {
	FRAME_PAUSE, /* value: for how long; 0: until a resume */
	FRAME_RESUME,
	FRAME_CREDIT, /* value: blocks that the lane may send in total, since the beginning */
};

struct frame {
	enum frame_kind kind;
	uint8_t classes; /* a mask */
	uint64_t value;  /* below 2^48 */
};

struct port_queue {
	/* The fields that each packet uses: half a cache line. */
	uint32_t head, tail; /* packets, linked by `next`; valid if the class is in the port's `occupied` */
	uint32_t bytes;
	uint32_t deficit, quantum; /* what it may still send in its turn, and what each turn adds; quantum 0: strict, or
				      the only class */
	uint32_t alpha;            /* see buffer.c */
	uint32_t mark_min, mark_max;
	vb_time paused_at, paused_until;      /* until 0: until a resume */
	vb_time watch_at;                     /* when the watchdog looks at it; 0: not */
	uint64_t blocks_sent, blocks_granted; /* credits.c */
};

struct port {
	const struct switch_profile *profile; /* of its switch; an endpoint's has that of the switch at the other end */
	uint64_t ever_queued;                 /* packets */
	uint64_t bytes, most_bytes;
	double area; /* bytes times picoseconds, up to `seen_at`; if asked for */
	vb_time seen_at;
	/* Masks of classes. */
	uint8_t occupied;
	uint8_t paused;                               /* by the receiver */
	uint8_t dropped;                              /* those whose packets the watchdog drops */
	uint8_t pauses_due, resumes_due, credits_due; /* frames that are to leave */
	uint8_t turn;
	uint8_t with_deficit;            /* all others have a deficit of 0 */
	bool has_begun_turn, is_awaited; /* is_awaited: an event is due when the wire is free */
	bool has_credits;                /* it needs credits to send */
	struct port_queue queues[];      /* class_count of the profile */
};

static inline uint8_t port_class_of(const struct port *port, uint8_t traffic_class)
{
	return traffic_class < port->profile->class_count ? traffic_class : 0;
}
static inline uint8_t port_class(const struct port *port, const struct packet *packet)
{
	return port_class_of(port, packet->traffic_class);
}

/* A marking threshold, scaled to the rate of the link. */
uint32_t port_mark_bytes(const struct switch_profile *profile, uint64_t bits_per_second, uint32_t given);
int ports_open(struct fabric *fabric); /* where links need them, with the buffers before them; -ENOMEM */
void ports_close(struct fabric *fabric);
void port_say(struct fabric *fabric, uint32_t link, vb_time now); /* into the link's counts */

void port_receive(struct shard *shard, uint32_t link, uint32_t packet); /* at a switch: queued if there is room */
void port_queue(struct shard *shard, uint32_t link, uint32_t packet);
/* The wire is free: sends the next packet or frame that may leave. False: there is none. */
bool port_send_next(struct shard *shard, uint32_t link);
void port_run(struct shard *shard, uint32_t link);
void port_on_event(struct shard *shard, uint32_t link);
void port_drop(struct shard *shard, uint32_t link, uint32_t packet); /* counted */
void port_drop_queue(struct shard *shard, uint32_t link, uint8_t of_class);

/* Something may leave that could not before, or a frame is due; for ports of switches and of endpoints. */
void port_wake(struct shard *shard, uint32_t link);
void port_on_frame(struct shard *shard, uint32_t link, const struct packet *packet); /* the frame came by this link */
bool port_is_stopped(const struct shard *shard, const struct port *port, uint8_t of_class);

#endif
