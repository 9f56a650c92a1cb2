/* The state of a run, for this room only.
 *
 * The network is divided into shards. Each has its own calendar and packets, and is run by one thread. The sending half
 * of a link belongs to the shard of its first node, the receiving half to that of the other; packets between shards go
 * through a mailbox. Shards share nothing else while they run. Mailboxes are read when all shards have finished a
 * window, which is shorter than the shortest way between two shards. */
#ifndef FABRIC_STATE_H
#define FABRIC_STATE_H

#include "fabric/detours.h"
#include "fabric/events.h"
#include "fabric/fabric.h"
#include "base/number_map.h"
#include "fabric/pool.h"
#include "fabric/qp_numbers.h"
#include "net/flow_job.h"
#include "net/route.h"
#include "fabric/turns.h"

#define NO_PACKET UINT32_MAX
#define NO_LINK   UINT32_MAX

#define LINK_HEADER_BYTES 64u /* of a packet, that a cut-through switch needs before it forwards it */

/* A packet on its way: the fields that each hop needs. Its headers, which endpoints need, are elsewhere. Where nothing
 * holds senders back, many packets wait before wires: they are most of a run's memory. */
struct packet {
	/* On a link: when the next packet on the link arrives, so that this one need not be read; of the last, its own
	 * arrival. In a port: when its end arrives. */
	vb_time at;
	union {
		struct {
			uint64_t src : 24, dst : 24; /* endpoints */
			uint64_t flow : 16;          /* which flow between the two: the source port */
		};
		uint64_t says; /* of a frame */
	};
	uint32_t next;    /* on its link, or in its port's queue */
	uint32_t in_link; /* the link by which it came to the switch where it is; is_routed: the link by which it leaves
			     there */
	uint32_t word;    /* of its headers: packets.c */
	uint16_t wire_bytes;
	uint8_t traffic_class : 3, is_marked : 1, takes_marks : 1, is_routed : 1, is_frame : 1,
		has_cargo : 1; /* is_frame: a pause or credit; has_cargo: cargo is in the place of its headers (cargo.c)
				*/
	uint8_t hops : 6, is_answer : 1, generation : 1; /* generation: closing.h */
};
_Static_assert(sizeof(struct packet) == 32, "half a cache line");

/* The headers of most packets, together with `word`, which is their AETH or payload length. Other packets are is_long:
 * all of their headers are in a third array, at this index. */
struct short_headers {
	uint64_t opcode : 8, dest_qpn : 24, psn : 24;
	uint64_t solicited : 1, migreq : 1, ackreq : 1, fecn : 1, becn : 1;
	uint64_t is_long : 1;
};
_Static_assert(sizeof(struct short_headers) == 8, "there are as many as packets");

enum link_kind {
	LINK_PLAIN, /* from a switch: one queue, in order, never stopped; a packet's departure is known when it arrives
		     */
	LINK_ENDPOINT,  /* from an endpoint, which is asked for a packet when the wire is free */
	LINK_PORT,      /* from a switch, by classes: port.h */
	LINK_STOPPABLE, /* from an endpoint, with classes; a packet that may not leave waits in a port */
};

/* One direction. */
struct link {
	/* The sender's. */
	vb_time free_at;
	uint64_t bytes; /* that have left */
	uint32_t packets;
	uint32_t most_queued;
	/* The receiver's: packets on the link, in order. */
	uint32_t first, last; /* first: or NO_PACKET */
	vb_time first_at;     /* when the first arrives */
	/* Constant. */
	vb_time delay;        /* with the delays at both ends */
	uint32_t ps_per_byte; /* 0: not an integer */
	uint32_t to;          /* index of the endpoint or switch */
	uint16_t to_shard;
	uint8_t kind; /* enum link_kind */
	bool leads_to_switch : 1, is_faulty : 1, is_captured : 1;
	bool is_unordered : 1;   /* packets may overtake each other: all are in the calendar */
	bool is_cut_through : 1; /* the other end does not wait for the whole packet */
	bool is_whole_ns : 1;    /* as in struct network */
	bool is_telling : 1;     /* records telemetry: telemetry.h */
	bool is_measured : 1;    /* its queue is measured */
	/* The receiver's, too. */
	uint32_t passed; /* is_unordered: no packet that is sent from now on arrives before this one; or NO_PACKET */
};
_Static_assert(sizeof(struct link) == 64, "a cache line");

struct record;

struct mailbox_entry {
	vb_time at, soonest; /* no later packet of its link arrives before `soonest` */
	uint32_t link;
	struct packet packet;
	struct vb_packet headers;
};

/* A connection that was made by another shard: endpoint_kind.expect. */
struct mailbox_news {
	uint32_t endpoint, connection;
};

struct mailbox {
	struct mailbox_entry *entries;
	struct record *records; /* one for each entry, if packets have records */
	struct mailbox_news *news;
	uint32_t count, room, record_room, news_count, news_room;
};

/* The event that an operation in its rank's heap waits for. */
enum flow_doing {
	FLOW_IS_SENT,      /* to begin */
	FLOW_IS_COMPUTED,  /* to be over; it has a source only */
	FLOW_IS_DELIVERED, /* to arrive, by the scale-up domain; it is in the heap of the rank that it is for */
};

/* An operation: a message or a computation. The part of a message that belongs to the
 * kind of endpoint is behind it: flow_stride. */
struct flow_state {
	uint32_t next,
		first_child; /* starts.h; when it has ended, `next` is closing.h's; when it is not used, pool.h's */
	vb_time due;         /* starts.h */
	uint64_t bytes, tag;
	struct flow_result result;
	uint32_t from, to;            /* ranks */
	uint32_t src, dst;            /* endpoints */
	uint32_t channel, connection; /* connection: of an engine, from when it begins */
	uint32_t pieces_left;         /* of an engine: work requests */
	uint32_t next_turn;           /* of an endpoint without one: turns.h */
	uint16_t entropy, job;
	uint8_t traffic_class;
	uint8_t doing;                                 /* enum flow_doing */
	bool tells_arrival : 1, is_retired : 1;        /* is_retired: closing.h */
	bool is_piece : 1, is_copy : 1, is_of_sum : 1; /* as in struct message */
};

/* The content of an endpoint: an engine... */
struct engine_end {
	struct vb_lane *lane;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_nic *nic;
	struct vb_pd *pd;
	uint32_t open_pieces; /* work requests of its flows, and awaited arrivals */
	/* Of engine_connections.c. */
	struct number_map expected; /* connections to it, by their source and the responder's number on the wire */
	struct number_map kept;     /* connections from it that stay open, by peer and channel */
	struct number_map used;     /* by peer: a bit for each number of a responder that is taken */
	uint16_t next_number, next_here;
};

/* ... or no engine: lists of flows that end with FLOW_NONE... */
struct ideal_end {
	struct vb_deadline deadline; /* when to look for flows that have heard nothing */
	struct turns turns;          /* of flows with packets to send */
	bool replies_held;
	uint32_t first_answer, last_answer; /* flows of other endpoints, with an answer to send */
	uint32_t first_open;
};

/* ... or TCP. */
struct tcp_end;

struct endpoint {
	vb_time armed_for; /* the timer's event that counts */
	vb_time spare_at;  /* another event of the timer, later than that; 0: none is known */
	uint32_t link;     /* outgoing */
	uint16_t shard;
	bool is_wire_awaited, is_armed;
	uint8_t stopped;        /* classes of the port that are not asked for packets */
	bool sleeps, is_waking; /* sleeps: arrivals wait, from first_waiting on, until its process wakes up */
	uint32_t first_waiting, last_waiting, wakes; /* first_waiting: or NO_PACKET */
	union {
		struct engine_end engine;
		struct ideal_end ideal;
		struct tcp_end *tcp;
	};
};

/* A program, of an endpoint or a GPU (net/hosts.h). */
struct rank {
	vb_time flow_at;     /* the event that counts */
	uint32_t first_flow; /* that is to come: starts.h */
	uint16_t shard;
	bool is_flow_awaited;
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
	uint64_t prefetched; /* the day that was prefetched last */
	struct packet *packets;
	struct short_headers *headers;  /* of each packet */
	struct vb_packet *long_headers; /* of some packets */
	struct record *records;         /* of each packet, if `told`: telemetry.h */
	struct vb_cc_telemetry *told;   /* of the packet that came last */
	struct pool_list flows, connections, timers;
	struct round_trips *round_trips; /* NULL: no connection has its own */
	uint32_t free_packet, packet_count, packet_room;
	uint32_t free_long, long_count, long_room;
	struct mailbox *out; /* one mailbox for each shard */
	struct detours detours;
	struct vb_batch *batch;
	uint32_t at_hand; /* packets of the batch that an endpoint has handed out and that are not taken yet */
	bool is_out_of_memory, is_out_of_numbers;
	uint32_t out_of_numbers; /* the endpoint that is */
	uint64_t event_count, packet_hops, data_packets, acks, responses, drops, lossless_drops, lost;
	uint64_t payload_bytes, scale_up_bytes;
	uint64_t arrived, resent, timeouts; /* of endpoints without engines; a packet counts as arrived once */
	uint64_t flows_begun, flows_done, flows_failed; /* operations */
	uint64_t job_hash;                              /* of the messages of all jobs but the list */
	struct fabric_failure failures[FABRIC_FAILURES];
	uint32_t failure_count;
	struct fabric_message *messages;
	uint32_t message_count, message_room;
	uint32_t under_way[2]; /* packets without frames, by generation; may be negative in one shard */
	uint32_t first_ended;  /* flows that have ended since the last check: closing.h */
	vb_time last_flow;
	vb_time *job_ends; /* by job */
	uint64_t cpu_ns, window_ns;
	vb_time next_at; /* of its next event, between windows */
};

struct fabric {
	const struct fabric_config *config;
	const struct network *network;
	struct routes *routes;
	struct link *links;
	struct fabric_link_counts *counts; /* rarely used; each is the sender's shard's */
	struct port **ports;               /* by link, the sender's shard's; NULL: all are plain */
	struct ingress **ingresses;        /* by link, the receiver's shard's */
	struct buffer *buffers;            /* by switch */
	uint32_t *cycle;                   /* deadlock.c: links, what was seen of them last, and when */
	uint32_t cycle_count;
	uint64_t cycle_hash;
	vb_time cycle_sought_at;
	int day_shift; /* of the shards' calendars */
	struct endpoint *endpoints;
	struct rank *ranks;
	uint32_t rank_count;
	bool sends_by_any_nic;                   /* a rank may, of its host: some job keeps rails */
	struct domain *domains;                  /* scale_up.h, by host; NULL: there are none */
	const struct endpoint_kind *kind;        /* of all endpoints; NULL: they are a holder's */
	struct tcp *tcp;                         /* for endpoints of this kind */
	struct flow_level *flow_level;           /* of messages that are no packets: flow_ends.c */
	struct pool connections;                 /* of engines */
	struct pool timers;                      /* of engines: of connections that were closed */
	uint16_t *listed_numbers;                /* of engines: by flow of the list, those of its two QPs */
	uint32_t *listed_connections;            /* of engines behind sockets: by flow of the list */
	struct qp_plane back_plane, front_plane; /* of engines */
	uint8_t generation;                      /* of packets that leave now: closing.h */
	uint32_t first_closing;
	struct switch_state *switches;
	struct pool flows;      /* struct flow_state */
	uint32_t carried_at;    /* in its record, the job's own bytes (struct message) */
	struct flow_job listed; /* config->flows */
	struct job **jobs;      /* if has_list, the list is the first */
	uint32_t job_count;
	bool has_list;
	uint64_t operations; /* of all jobs */
	struct shard *shards;
	uint32_t shard_count;
	vb_time window; /* the shortest way between two shards; 0: there is one shard */
	uint32_t data_overhead, ack_overhead, largest_packet; /* bytes on the wire */
	struct windows *windows;                              /* NULL: one shard */
	struct link_series *series;                           /* by link; NULL: they are not asked for (series.h) */
	struct taps *taps;                                    /* NULL: nothing is captured */
	bool is_telling;                                      /* ports record telemetry: telemetry.h */
	uint16_t *source_ports;                               /* by flow; NULL: no switch needs them (ns3.h) */
	const struct fabric_holder *holder;                   /* holder.h; NULL: the endpoints are the run's own */
	uint64_t critical_ns;
};

static inline uint32_t flow_stride(uint32_t more)
{
	return (uint32_t)(sizeof(struct flow_state) + (more + 7) / 8 * 8);
}

static inline struct flow_state *flow_at(const struct fabric *fabric, uint32_t number)
{
	return pool_at(&fabric->flows, number);
}

static inline void *flow_carried(const struct fabric *fabric, struct flow_state *flow)
{
	return (char *)flow + fabric->carried_at;
}

static inline struct turn_links flow_turns(const struct fabric *fabric)
{
	return (struct turn_links){ .flows = &fabric->flows,
		.next = offsetof(struct flow_state, next_turn),
		.traffic_class = offsetof(struct flow_state, traffic_class) };
}

/* All chance in a run: a hash of the seed, of what draws, and of how often it has drawn. It is never a stream. */
static inline uint64_t fabric_chance(uint64_t seed, uint64_t who, uint64_t count)
{
	uint64_t z = seed + who * 0x9E3779B97F4A7C15u + count * 0xD1B54A32D192ED03u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* For at most 2^40 bytes, which fit a time even at the slowest rate. */
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

static inline uint64_t fabric_switch_seed(uint64_t seed, uint32_t at_switch)
{
	return fabric_chance(seed, at_switch, 0x5EED);
}

/* Distinguishes flows where paths are chosen: a hash of addresses and port. */
static inline uint32_t flow_hash(uint32_t src, uint32_t dst, uint16_t port)
{
	return (uint32_t)fabric_chance(src, dst, port);
}
static inline uint32_t packet_flow_hash(const struct packet *packet)
{
	return flow_hash(packet->src, packet->dst, packet->flow);
}

/* Where a switch has several ways and goes by that hash: which one of them. */
static inline uint32_t ecmp_choice(uint64_t switch_seed, uint32_t src, uint32_t dst, uint16_t port, uint32_t count)
{
	const uint64_t drawn = fabric_chance(switch_seed, flow_hash(src, dst, port), 0);
	return (uint32_t)((drawn >> 32) * count >> 32);
}

/* packets.c */
uint32_t packet_get(struct shard *shard);                   /* NO_PACKET: no memory, and is_out_of_memory is set */
uint32_t packet_copy(struct shard *shard, uint32_t packet); /* likewise */
void packet_put(struct shard *shard, uint32_t packet);
/* Fills in a packet from packet_get; false: no memory, and the packet is put back. */
bool packet_fill(struct shard *shard, uint32_t packet, const struct packet *its, const struct vb_packet *headers);
struct vb_packet packet_headers(const struct shard *shard, uint32_t packet);

/* links.c */
vb_time link_delay(const struct network *network, uint32_t link); /* with the delays at both ends */
/* The packet is on the wire from `at` on, which is not before the link is free. */
void link_send(struct shard *shard, uint32_t link, uint32_t packet, vb_time at);
void link_on_arrival(struct shard *shard, uint32_t link);
void link_take_mail(struct shard *shard); /* takes in what other shards have sent here */
/* switches.c */
void switch_receive(struct shard *shard, uint32_t in_link, uint32_t packet);
/* The packet will arrive: its next link is chosen now if nothing can change the choice meanwhile. */
void switch_expect(struct shard *shard, uint32_t at_switch, uint32_t packet);

/* prefetch.c */
void shard_prefetch(struct shard *shard); /* today's events are about to happen */

/* cargo.c */
void cargo_put(struct shard *shard, uint32_t packet, void *cargo);
void cargo_arrive(struct shard *shard, uint32_t endpoint, uint32_t packet);
void cargo_lose(struct shard *shard, uint32_t packet);
bool cargo_copy(struct shard *shard, uint32_t copy, uint32_t packet); /* the whole packet; false: it cannot be copied */
void cargo_call(struct shard *shard, uint32_t number);

/* run.c */
/* Opens what config and holder ask for; results: of the list's flows; -EINVAL and why, -ENOMEM: nothing is open. */
int fabric_begin(struct fabric *fabric, struct flow_result *results, char *why, unsigned why_size);
void fabric_end(struct fabric *fabric);

/* endpoints.c */
int endpoints_open(struct fabric *fabric);
void endpoints_close(struct fabric *fabric); /* and flows */
void endpoint_receive(struct shard *shard, uint32_t endpoint, uint32_t packet);
/* The packet will arrive: prefetches what will be looked at, in three steps, each of which reads what the one before
 * has prefetched. */
void endpoint_expect(const struct shard *shard, uint32_t endpoint, uint32_t packet);
void endpoint_ask(const struct shard *shard, uint32_t endpoint);
void endpoint_ask_for_flow(const struct shard *shard, uint32_t endpoint, uint32_t packet);
void endpoint_wake(struct shard *shard, uint32_t endpoint); /* something may leave that could not before */
void endpoint_on_wire(struct shard *shard, uint32_t endpoint);
void endpoint_on_timer(struct shard *shard, uint32_t endpoint);
void endpoint_on_wake(struct shard *shard, uint32_t endpoint);
/* Requests that were executed. Activity without progress does not raise it. */
uint64_t endpoints_executed(const struct fabric *fabric);
/* The longest time that a flow may need for its next packet. */
vb_time endpoints_slowest(const struct fabric *fabric);
void endpoints_say(const struct fabric *fabric, struct fabric_result *result);

#endif
