/* What a run consists of. The room's own.
 *
 * The network is cut into shards, each with its own calendar and packets, and run by one thread. A link's sending half
 * is its first node's shard's, the receiving half the other's; what crosses shards goes through a mailbox. Nothing
 * else is shared while shards run, and nobody looks into a mailbox before all have come to the end of a window that
 * is shorter than the shortest way between two shards. */
#ifndef FABRIC_STATE_H
#define FABRIC_STATE_H

#include "fabric/events.h"
#include "fabric/fabric.h"
#include "net/route.h"
#include "fabric/turns.h"

#define NO_PACKET UINT32_MAX
#define NO_LINK   UINT32_MAX

#define LINK_HEADER_BYTES 64u /* that a switch wants to see of a packet before it sends it on */

/* A packet on its way: what each hop looks at. Its headers lie apart, and are looked at by endpoints. As many wait
 * before wires as nobody holds back, so this is what the memory of a run is. */
struct packet {
	/* Under way: when the next on its link is there, so that it need not be looked at; of the last, when it is
	 * there itself. In a port: when its end is there. */
	vb_time at;
	union {
		struct {
			uint64_t src : 24, dst : 24; /* endpoints */
			uint64_t flow : 16;          /* which of those between the two: the source port */
		};
		uint64_t says; /* a frame */
	};
	uint32_t next;    /* on its link, or in the queue of its port */
	uint32_t in_link; /* the one by which it came to the switch that it is in; is_routed: by which it goes on there
			   */
	uint32_t word;    /* packets.c: of its headers */
	uint16_t wire_bytes;
	uint8_t traffic_class : 3, is_marked : 1, takes_marks : 1, is_routed : 1, is_frame : 1,
		has_cargo : 1;                           /* is_frame:
a pause or credit; has_cargo: that lies where its headers would (holder.c) */
	uint8_t hops : 6, is_answer : 1, generation : 1; /* generation: closing.h */
};
_Static_assert(sizeof(struct packet) == 32, "half a cache line");

/* What most packets say to endpoints, with `word`, which is their AETH or the length of their payload. A packet that
 * has more to say is_long: all of it lies in a third place, of that number. */
struct short_headers {
	uint64_t opcode : 8, dest_qpn : 24, psn : 24;
	uint64_t solicited : 1, migreq : 1, ackreq : 1, fecn : 1, becn : 1;
	uint64_t is_long : 1;
};
_Static_assert(sizeof(struct short_headers) == 8, "there are as many as packets");

enum link_kind {
	LINK_PLAIN, /* from a switch: one queue, in order, nobody stops it: when a packet leaves is known when it comes
		     */
	LINK_ENDPOINT,  /* from an endpoint: what it sends next is asked when the wire is free */
	LINK_PORT,      /* from a switch, by classes: port.h */
	LINK_STOPPABLE, /* from an endpoint, and so: what may not leave waits in a port */
};

/* One direction. */
struct link {
	/* The sender's. */
	vb_time free_at;
	uint64_t bytes; /* that left */
	uint32_t packets;
	uint32_t most_queued;
	/* The receiver's: what is under way, in order. */
	uint32_t first, last; /* packets; first: or NO_PACKET */
	vb_time first_at;     /* when it is there */
	/* Nobody's: they stay. */
	vb_time delay;        /* and what is spent before, or after, at either end */
	uint32_t ps_per_byte; /* 0: not a whole number */
	uint32_t to;          /* index of the endpoint or switch */
	uint16_t to_shard;
	uint8_t kind; /* enum link_kind */
	bool leads_to_switch : 1, is_faulty : 1, is_captured : 1;
	bool is_unordered : 1;   /* packets may overtake each other: each is in the calendar */
	bool is_cut_through : 1; /* the other end does not wait for a packet's end */
	bool is_whole_ns : 1;    /* struct network */
	bool is_telling : 1;     /* telemetry.h */
	bool is_measured : 1;    /* its queue is */
	/* The receiver's again. */
	uint32_t passed; /* is_unordered: nothing that is sent from now on comes before this packet; or NO_PACKET */
};
_Static_assert(sizeof(struct link) == 64, "a cache line");

struct record;

struct mailbox_entry {
	vb_time at, soonest; /* no later one of its link is there before `soonest` */
	uint32_t link;
	struct packet packet;
	struct vb_packet headers;
};

struct mailbox {
	struct mailbox_entry *entries;
	struct record *records; /* of each, where packets have some */
	uint32_t count, room, record_room;
};

struct flow_state {
	/* Of an engine: a QP at either end while it is open, and their numbers always. */
	struct vb_qp *requester, *responder;
	struct record *heard; /* the destination's, where ports tell: telemetry.h */
	uint16_t requester_index, responder_index;
	struct vb_timer timer; /* its requester's, when that is closed */
	bool is_closed;
	uint8_t quiet_turns; /* since it ended: engine_ends.c */
	uint32_t src, dst;
	uint32_t pieces_left; /* work requests of an engine */
	uint32_t waits_left;  /* flows that it waits for and that have not been heard of: operations.h */
	uint32_t next,
		first_child; /* starts.h, once it is known when it begins; `next` is closing.h's when it has ended */
	struct flow_result result;
};

/* What is in an endpoint: an engine... */
struct engine_end {
	struct vb_lane *lane;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_nic *nic;
	struct vb_pd *pd;
	uint32_t open_pieces; /* work requests of its flows */
	/* Of engine_ends.c: its flows, either way, in the order of their QPs' numbers. */
	uint32_t first_connection, connection_count;
};

/* ... or what has none: lists of flows, FLOW_NONE where they end... */
struct ideal_end {
	struct vb_deadline deadline; /* to look whether flows were heard of */
	struct turns turns;          /* with packets to send */
	bool replies_held;
	uint32_t first_answer, last_answer; /* of others, with an answer to send */
	uint32_t first_open;
};

/* ... or TCP. */
struct tcp_end;

struct endpoint {
	vb_time armed_for;   /* the timer's event that counts */
	vb_time spare_at;    /* another of it, later than that; 0: none that is known of */
	vb_time flow_at;     /* the flows' event that counts */
	uint32_t link;       /* outgoing */
	uint32_t first_flow; /* that has not begun: starts.h */
	uint16_t shard;
	bool is_wire_awaited, is_armed, is_flow_awaited;
	uint8_t stopped;        /* the port's classes for which is not asked */
	bool sleeps, is_waking; /* sleeps: until its process wakes up what has come waits, from first_waiting on, by
				   `next` */
	uint32_t first_waiting, last_waiting, wakes; /* first_waiting: or NO_PACKET */
	union {
		struct engine_end engine;
		struct ideal_end ideal;
		struct tcp_end *tcp;
	};
};

struct switch_state {
	uint64_t seed;
	uint16_t shard;
	uint8_t routing;
	bool hashes_as_ns3; /* ns3.h */
};

struct shard {
	struct fabric *fabric;
	uint16_t index;
	vb_time now;
	struct events events;
	uint64_t prefetched; /* the day for which that was done */
	struct packet *packets;
	struct short_headers *headers;  /* of each */
	struct vb_packet *long_headers; /* of some */
	struct record *records;         /* of each, where `told`: telemetry.h */
	struct vb_cc_telemetry *told;   /* of the packet that came last */
	uint32_t free_packet, packet_count, packet_room;
	uint32_t free_long, long_count, long_room;
	struct mailbox *out; /* one for each shard */
	uint64_t *dead_ends; /* by switch: the newest look for a way that found none from there */
	uint64_t looks;
	struct vb_batch *batch;
	uint32_t at_hand; /* packets of it that an endpoint has handed out, and that are not taken yet */
	bool is_out_of_memory;
	uint64_t event_count, packet_hops, data_packets, acks, responses, drops, lossless_drops, lost, payload_bytes;
	uint64_t arrived, resent, timeouts; /* of endpoints without engines; packets that arrived once each */
	uint32_t flows_begun, flows_done, flows_failed;
	uint32_t under_way[2]; /* packets, but for frames, by generation; of one shard alone it may be below 0 */
	uint32_t first_ended;  /* flows, since it was looked last: closing.h */
	vb_time last_flow;
	uint64_t cpu_ns, window_ns;
	vb_time next_at; /* of its next event, between windows */
};

struct fabric {
	const struct fabric_config *config;
	const struct network *network;
	struct routes *routes;
	struct link *links;
	struct fabric_link_counts *counts; /* what is rare; the sender's shard's */
	struct port **ports;               /* by link, the sender's shard's; NULL: all are plain */
	struct ingress **ingresses;        /* by link, the receiver's shard's */
	struct buffer *buffers;            /* by switch */
	uint32_t *cycle;                   /* deadlock.c: links, what was seen of them last, and when */
	uint32_t cycle_count;
	uint64_t cycle_hash;
	vb_time cycle_sought_at;
	bool has_outages; /* a link is down at times */
	int day_shift;    /* of its calendars */
	struct endpoint *endpoints;
	const struct endpoint_kind *kind; /* what is in them; NULL: they are a holder's */
	struct ideal *ideal;              /* of these kinds: their own */
	struct tcp *tcp;
	uint32_t *connections; /* of engines: flows, by endpoint */
	uint8_t generation;    /* of packets that leave now: closing.h */
	uint32_t first_closing;
	struct switch_state *switches;
	struct flow_state *flows;
	struct flow_followers followers;
	struct shard *shards;
	uint32_t shard_count;
	vb_time window; /* the shortest way between two shards; 0: there is one shard */
	uint32_t data_overhead, ack_overhead, largest_packet; /* bytes on the wire */
	struct windows *windows;                              /* NULL: one shard */
	struct taps *taps;                                    /* NULL: nothing is captured */
	bool is_telling;                                      /* telemetry.h: ports are */
	uint16_t *source_ports;                               /* by flow; NULL: no switch asks (ns3.h) */
	struct round_trips *round_trips;                      /* NULL: no flow's own is asked for */
	const struct fabric_holder *holder;                   /* holder.h; NULL: the endpoints are the run's own */
	uint64_t critical_ns;
};

/* A hash of whatever is drawn by chance: of the seed, of who draws, and of how often he has. Never a stream. */
static inline uint64_t fabric_chance(uint64_t seed, uint64_t who, uint64_t count)
{
	uint64_t z = seed + who * 0x9E3779B97F4A7C15u + count * 0xD1B54A32D192ED03u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* At most 2^40 bytes, which at the slowest rate take less than a time can hold. */
static inline vb_time link_time(const struct fabric *fabric, const struct link *link, uint64_t bytes)
{
	vb_time time;
	if (link->ps_per_byte)
		time = (vb_time)(link->ps_per_byte * bytes);
	else
		time = (vb_time)((unsigned __int128)bytes * 8000000000000u /
				 network_rate(fabric->network, (uint32_t)(link - fabric->links)));
	return link->is_whole_ns ? time - time % VB_NS : time;
}

/* What tells flows apart where paths are chosen: of addresses and ports. */
static inline uint32_t packet_flow_hash(const struct packet *packet)
{
	return (uint32_t)fabric_chance(packet->src, packet->dst, packet->flow);
}

/* packets.c */
uint32_t packet_get(struct shard *shard);                   /* NO_PACKET: no memory, and the shard says so */
uint32_t packet_copy(struct shard *shard, uint32_t packet); /* the same */
void packet_put(struct shard *shard, uint32_t packet);
/* Of what packet_get gave; false: no memory, and it is put back. */
bool packet_fill(struct shard *shard, uint32_t packet, const struct packet *its, const struct vb_packet *headers);
struct vb_packet packet_headers(const struct shard *shard, uint32_t packet);

/* links.c */
vb_time link_delay(
	const struct network *network, uint32_t link); /* and what is spent before, or after, at either end */
/* The packet is on the wire from `at` on, which is not before the link is free. */
void link_send(struct shard *shard, uint32_t link, uint32_t packet, vb_time at);
void link_on_arrival(struct shard *shard, uint32_t link);
void link_take_mail(struct shard *shard); /* what other shards have sent here */
/* switches.c */
void switch_receive(struct shard *shard, uint32_t in_link, uint32_t packet);
/* The packet will come: where nothing that may change meanwhile decides which way it goes on, that is decided now. */
void switch_expect(struct shard *shard, uint32_t at_switch, uint32_t packet);

/* prefetch.c */
void shard_prefetch(struct shard *shard); /* today's events are about to happen */

/* cargo.c */
void cargo_put(struct shard *shard, uint32_t packet, void *cargo);
void cargo_arrive(struct shard *shard, uint32_t endpoint, uint32_t packet);
void cargo_lose(struct shard *shard, uint32_t packet);
bool cargo_copy(struct shard *shard, uint32_t copy, uint32_t packet); /* all of the packet; false: it cannot be */
void cargo_call(struct shard *shard, uint32_t number);

/* run.c */
/* What config and holder say is opened; -EINVAL and why, -ENOMEM: nothing is. */
int fabric_begin(struct fabric *fabric, char *why, unsigned why_size);
void fabric_end(struct fabric *fabric);

/* endpoints.c */
int endpoints_open(struct fabric *fabric);
int endpoint_open_flow(struct fabric *fabric, uint32_t flow);
void endpoints_close(struct fabric *fabric); /* and flows */
void endpoint_receive(struct shard *shard, uint32_t endpoint, uint32_t packet);
/* The packet will be there: what is looked at then is asked for, in three steps, each of which reads what the last
 * has. */
void endpoint_expect(const struct shard *shard, uint32_t endpoint, uint32_t packet);
void endpoint_ask(const struct shard *shard, uint32_t endpoint);
void endpoint_ask_for_flow(const struct shard *shard, uint32_t endpoint, uint32_t packet);
void endpoint_wake(struct shard *shard, uint32_t endpoint); /* something may leave that could not */
void endpoint_on_wire(struct shard *shard, uint32_t endpoint);
void endpoint_on_timer(struct shard *shard, uint32_t endpoint);
void endpoint_on_wake(struct shard *shard, uint32_t endpoint);
/* Requests that were executed: what goes on though nothing gets on does not raise it. */
uint64_t endpoints_executed(const struct fabric *fabric);
/* A flow may need so long for its next packet. */
vb_time endpoints_slowest(const struct fabric *fabric);
void endpoints_say(const struct fabric *fabric, struct fabric_result *result);

#endif
