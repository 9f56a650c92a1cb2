/* A run: the real engine, or for comparison none or TCP, in each endpoint of a network, flows between them, virtual
 * time in integer picoseconds.
 *
 *   network.h    what the network is            topologies.h  that of a k-ary fat-tree, ...
 *   flows.h      what is sent                   workloads.h   who sends what to whom
 *
 * One seed decides everything, and the same run gives the same result on every machine, with however many threads.
 * Holds: a run ends, and says why. */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include "cc/cc.h"
#include "engine/nic.h"
#include "net/flows.h"
#include "net/network.h"
#include "wire/packet.h"

struct fabric_progress {
	vb_time now;
	uint64_t packet_hops, events, data_packets;
	uint32_t flows_done, flows;
	double wall_s;
};

struct fabric_capture {
	uint32_t link;
	vb_time at;                     /* when its last bit has left */
	struct vb_path path;            /* addresses: fabric_gid */
	const struct vb_packet *packet; /* NULL: a frame that stops classes, or lets them go on */
	uint8_t paused_classes, resumed_classes;
	uint32_t wire_bytes;
};

/* What is in the endpoints. An ideal one is no RoCE, and says what a network can do at most: it sends each flow's
 * packets as soon as the wire is free, takes them in any order, and answers as the ack policy says. It has no
 * congestion control; what is dropped is sent again, with all behind it, after the timeout alone. */
enum fabric_endpoint {
	FABRIC_ENGINE,
	FABRIC_IDEAL,
	FABRIC_TCP, /* no RoCE either: what would be used otherwise. A flow is a connection */
};

enum fabric_tcp_control {
	FABRIC_NEWRENO,
	FABRIC_CUBIC,
	FABRIC_DCTCP,
};

/* Of TCP alone. */
struct fabric_tcp {
	enum fabric_tcp_control control;
	vb_time rto_min;   /* 0: 200 ms */
	vb_time ack_delay; /* the longest that an ack is held back; 0: 40 ms */
	/* What its host's CPU takes for packets that leave, and, apart from that, for those that come: one after the
	 * other, so much for a packet and for a byte of its payload; up to cpu_batch of a flow that wait for it one
	 * behind the other cost one packet, 0: 1. */
	vb_time cpu_packet, cpu_byte;
	uint32_t cpu_batch;
};

#define FABRIC_TCP_OVERHEAD     90u /* preamble 8, Ethernet 14, IPv4 20, TCP 20 and time stamps 12, FCS 4, gap 12 */
#define FABRIC_TCP_MAX_MTU      9000u
#define FABRIC_TCP_BLOCKS       3u
#define FABRIC_TCP_SACK(blocks) (4u + 8u * (blocks)) /* more, of an ack that has some */

struct fabric_config {
	const struct network *network; /* borrowed for the run, as all that is pointed to */
	const struct flow_list *flows;
	uint64_t seed;
	uint32_t threads; /* 0: 1 */
	/* The transport. */
	enum fabric_endpoint endpoint;
	struct fabric_tcp tcp;
	struct vb_cc_config cc;               /* of TCP first and largest window alone; 0: 10 segments, no bound */
	uint32_t mtu;                         /* payload of a packet, bytes */
	uint32_t data_overhead, ack_overhead; /* wire bytes of a packet beside its payload, and of an ack; 0: what
						 RoCEv2, or TCP, over Ethernet has: headers, ICRC, FCS, preamble, gap */
	uint32_t ack_every; /* packets, of a message: each of those asks, and its last; 0: 1, of TCP 2 */
	struct vb_cnp_policy cnps;
	bool acks_tell_marks;   /* by BECN, and no CNPs are sent */
	bool restarts_messages; /* go-back-0: a message of which a packet is lost begins again. Of engines alone */
	vb_time ack_timeout;    /* 0: 67 ms */
	uint8_t retry_count;    /* 0: 7 */
	vb_time probe_after; /* silence until the last packet is sent again, of TCP two round trips at least; 0: never
				before the timeout */
	uint8_t ack_class;   /* traffic class of acknowledgements; that of data is the flow's */
	/* Engines as live processes have them, behind sockets that hold so many bytes, and know so of each other: then
	 * acks are asked for, lost tails sought and rates kept as they do (vb_lane_behind_sockets); of 0 by ack_every
	 * and probe_after theirs holds. 0: as in NICs. */
	uint32_t receive_buffer;
	/* The end. */
	vb_time limit;     /* of virtual time; 0: none */
	vb_time stall;     /* nothing arrived for so long, though a flow that has begun is open, nor for as long as the
			      slowest     needs by its rate and timeout: livelock; 0: 1 s, or as long as     all retries
			      take */
	bool tells_queues; /* how long they were on average: fabric_link_counts.queued_area */
	bool tells_pauses; /* where pauses came from: fabric_result.pauses_told. Costs a walk through a switch's queues
			      each */
	/* Told about every second of real time; false: end the run. NULL: nobody is. */
	bool (*on_progress)(void *user, const struct fabric_progress *progress);
	void *user;
	/* Packets that leave on these links go to on_packet, in order of time, single-threaded: captures. */
	const uint32_t *captured_links;
	uint32_t captured_count;
	void (*on_packet)(void *user, const struct fabric_capture *capture);
};

enum fabric_end {
	FABRIC_DONE,     /* every flow ended, well or not */
	FABRIC_LIMIT,    /* the limit of virtual time */
	FABRIC_DEADLOCK, /* a cycle of ports that wait for each other: fabric_result.cycle */
	FABRIC_LIVELOCK, /* events go on, and no flow gets on */
	FABRIC_IDLE,     /* nothing is left to happen, and flows are open */
	FABRIC_STOPPED,  /* by on_progress */
	FABRIC_MEMORY,
};

/* Of a link, for its whole run. */
struct fabric_link_counts {
	uint64_t packets, bytes; /* that left */
	uint64_t drops;          /* for want of room before it */
	uint64_t lossless_drops; /* of those, in classes that promise none */
	uint64_t lost;           /* on it: faults */
	uint64_t marks;
	uint64_t pauses, resumes; /* frames that left on it */
	vb_time paused;           /* that it stood still for, of all classes together */
	uint64_t most_queued;     /* bytes before it */
	double queued_area; /* bytes before it, and of what leaves what has not yet left, times picoseconds; if asked
			       for */
	uint32_t watchdog_fired;
};

#define FABRIC_PAUSE_MOST 4

/* What had come by a link and was queued, and how much may be before who sends is paused; what all links shared of the
 * buffer, and of how much. */
struct fabric_pause_moment {
	vb_time at;
	uint64_t bytes, threshold, used, shared; /* UINT64_MAX: no bound */
};

struct fabric_pause_queue {
	uint32_t link; /* that it waits for */
	uint64_t bytes;
	bool is_stopped; /* by a pause, too */
};

struct fabric_pause_flow {
	uint32_t src, dst;
	uint64_t bytes;
};

/* The queue in which most of it waited, in so many of the pauses. */
struct fabric_pause_cause {
	uint32_t link;
	uint32_t count;
	bool is_stopped;
};

/* Of a lossless class at the receiving end of a link: who sends on it was paused so often, for so long in all. */
struct fabric_pauses {
	uint32_t link;
	uint8_t of_class;
	uint32_t count;
	vb_time lasted, longest, until;
	struct fabric_pause_moment nearest; /* to its threshold, by their ratio */
	/* When it was first paused. */
	struct fabric_pause_moment first;
	struct fabric_pause_queue queues[FABRIC_PAUSE_MOST]; /* most first */
	struct fabric_pause_flow flows[FABRIC_PAUSE_MOST];   /* the same */
	uint32_t queue_count, flow_count; /* queues that are kept; all flows, of which as many are kept */
	/* Of all pauses. */
	struct fabric_pause_cause *causes;
	uint32_t cause_count;
};

struct fabric_result {
	enum fabric_end end;
	struct flow_result *flows; /* as config->flows */
	struct fabric_link_counts *links;
	uint32_t *cycle; /* links of a deadlock, each waiting for the next */
	uint32_t cycle_count;
	struct fabric_pauses *pauses_told; /* by link and class: of each that came by one */
	uint32_t pauses_told_count;
	vb_time ended_at;  /* virtual */
	vb_time last_flow; /* end of the last flow that ended: the job's completion time, from 0 */
	uint32_t flows_done, flows_failed;
	uint64_t packet_hops, data_packets, acks, events;
	uint64_t payload_bytes;                                                /* delivered, once */
	uint64_t resent_packets, probes, timeouts, naks, cnps, marked_packets; /* probes: of engines */
	uint64_t drops, lossless_drops, lost, pauses;
	uint64_t hash; /* of flows and links: equal for every thread count */
	uint32_t endpoints, threads;
	double setup_cpu_s;                   /* until the first event; the rest is from there on */
	double cpu_s, critical_cpu_s, wall_s; /* critical: of the busiest thread of each window, summed */
};

/* 0 and a result whatever the end; -EINVAL and why, -ENOMEM. */
int fabric_run(const struct fabric_config *config, struct fabric_result *result, char *why, unsigned why_size);
void fabric_result_free(struct fabric_result *result);
const char *fabric_end_text(enum fabric_end end);

/* The address of an endpoint: 10.0.0.0/8 by its number, from 10.0.0.1 on. */
static inline struct vb_gid fabric_gid(uint32_t endpoint)
{
	const uint32_t n = endpoint + 1;
	return vb_gid_from_ipv4(10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n);
}

#endif
