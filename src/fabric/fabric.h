/* A run: the real engine (or, for comparison, a substitute or TCP) in each endpoint of a network (net/network.h), with
 * flows between them (net/flows.h), in virtual time of integer picoseconds.
 *
 * The seed decides everything: the same run gives the same result on every machine and with any number of threads.
 * Holds: a run ends, and says why. */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include "cc/cc.h"
#include "engine/nic.h"
#include "net/flows.h"
#include "net/hosts.h"
#include "net/job.h"
#include "net/network.h"
#include "wire/packet.h"

struct fabric_progress {
	vb_time now;
	uint64_t packet_hops, events, data_packets;
	uint64_t operations_done, operations;
	double wall_s;
};

struct fabric_capture {
	uint32_t link;
	bool is_cut;                    /* its payload was cut off, though the headers still tell of it */
	vb_time at;                     /* when its last bit has left */
	struct vb_path path;            /* addresses: fabric_gid */
	const struct vb_packet *packet; /* NULL: a frame that pauses classes, or resumes them */
	uint8_t paused_classes, resumed_classes;
	uint32_t wire_bytes;
};

/* The contents of endpoints. An ideal one is not RoCE, and shows the most that a network can do: it sends each flow's
 * packets as soon as the wire is free, takes them in any order, and answers by the ack policy. It has no congestion
 * control, and resends lost packets, with all that follow them, only after the timeout. */
/* A run ends by then: later times and what lies between them would not fit in vb_time. */
#define FABRIC_HORIZON ((vb_time)50 * 86400 * VB_S)

enum fabric_endpoint {
	FABRIC_ENGINE,
	FABRIC_IDEAL,
	FABRIC_TCP, /* not RoCE either, but its usual alternative: each flow is a connection */
};

enum fabric_tcp_control {
	FABRIC_NEWRENO,
	FABRIC_CUBIC,
	FABRIC_DCTCP,
};

/* For TCP only. */
struct fabric_tcp {
	enum fabric_tcp_control control;
	vb_time rto_min;   /* 0: 200 ms */
	vb_time ack_delay; /* the longest time that an ack is delayed; 0: 40 ms */
	/* The time that its host's CPU needs for packets that leave and, separately, for those that arrive. Packets are
	 * handled one by one, with a cost per packet and per byte of payload; up to cpu_batch waiting packets of one
	 * flow cost as one packet. cpu_batch 0: 1. */
	vb_time cpu_packet, cpu_byte;
	uint32_t cpu_batch;
};

/* Of a packet beside its payload, on Ethernet: of RoCE FRAMING_ROCE_OVERHEAD (net/unloaded.h). */
#define FABRIC_TCP_OVERHEAD     90u /* preamble 8, Ethernet 14, IPv4 20, TCP 20 and time stamps 12, FCS 4, gap 12 */
#define FABRIC_TCP_MAX_MTU      9000u
#define FABRIC_TCP_BLOCKS       3u
#define FABRIC_TCP_SACK(blocks) (4u + 8u * (blocks)) /* the additional bytes of an ack with SACK blocks */

struct fabric_config {
	const struct network *network; /* like all pointers here, borrowed for the run */
	const struct flow_list *flows;
	struct hosts hosts; /* whose GPUs are the jobs' ranks; a list is of endpoints, and not for hosts with GPUs */
	struct job *const *jobs; /* that run beside the list */
	uint32_t job_count;
	uint64_t seed;
	uint32_t threads; /* 0: 1 */
	/* The transport. */
	enum fabric_endpoint endpoint;
	/* Messages are no packets, but flow over their paths and share links max-min fairly (fluids.h): without queues,
	 * drops, marks, pauses, classes, windows and congestion control. Not for TCP, faults of packets and
	 * captures. One thread. */
	bool by_flows;
	struct fabric_tcp tcp;
	struct vb_cc_config cc;               /* TCP uses only its first and largest window; 0: 10 segments, no bound */
	uint32_t mtu;                         /* payload of a packet, bytes */
	uint32_t data_overhead, ack_overhead; /* wire bytes of a packet beside its payload, and of an ack; 0: those of
						 RoCEv2, or TCP, over Ethernet: headers, ICRC, FCS, preamble, gap */
	uint32_t ack_every; /* every so-many-th packet of a message asks for an ack, and its last does; 0: 1, for TCP 2
			     */
	struct vb_cnp_policy cnps;
	bool acks_tell_marks;           /* by BECN; no CNPs are sent */
	enum vb_recovery_kind recovery; /* other than go-back-N: engines only */
	uint16_t paths;                 /* of a connection that recovers selectively: source ports; 0: one */
	vb_time ack_timeout;            /* 0: 67 ms */
	uint8_t retry_count;            /* 0: 7 */
	vb_time probe_after; /* after such silence the last packet is sent again, for TCP after at least two round
				trips; 0: not before the timeout */
	uint8_t ack_class;   /* traffic class of acknowledgements; data uses the flow's */
	/* Not 0: engines as in live processes, which know each other and receive through sockets that hold so many
	 * bytes. Acks, probes and rates then follow vb_lane_behind_sockets, whose values hold where ack_every or
	 * probe_after is 0. 0: engines as in NICs. */
	uint32_t receive_buffer;
	/* The end. */
	vb_time limit; /* of virtual time; 0: FABRIC_HORIZON */
	vb_time stall; /* no arrival for so long, while a flow is open, and for as long as the slowest flow needs by its
			  rate and timeout: livelock; 0: 1 s, or as long as all retries take */
	bool tells_messages; /* all messages of jobs: fabric_result.messages */
	bool tells_queues;   /* average queue lengths: fabric_link_counts.queued_area */
	bool tells_series; /* what links did over time: fabric_result.samples. About 10 KB for each link that is used */
	bool tells_pauses; /* the causes of pauses: fabric_result.pauses_told. Costs a walk through a switch's queues
			      for each pause */
	/* Called about once per second of real time; false ends the run. NULL: not called. */
	bool (*on_progress)(void *user, const struct fabric_progress *progress);
	void *user;
	/* Captures: packets that leave on these links are passed to on_packet, in order of time, by one thread. */
	const uint32_t *captured_links;
	uint32_t captured_count;
	void (*on_packet)(void *user, const struct fabric_capture *capture);
};

enum fabric_end {
	FABRIC_DONE,     /* every flow ended, successfully or not, and every operation of jobs */
	FABRIC_LIMIT,    /* the limit of virtual time */
	FABRIC_DEADLOCK, /* a cycle of ports that wait for each other: fabric_result.cycle */
	FABRIC_LIVELOCK, /* events happen, but flows make no progress */
	FABRIC_IDLE,     /* no events are left, and flows are open */
	FABRIC_STOPPED,  /* on_progress returned false */
	FABRIC_MEMORY,
	FABRIC_NUMBERS, /* an endpoint has more connections at a time than there are numbers for their QPs */
};

/* Counts of a link, for the whole run. */
struct fabric_link_counts {
	uint64_t packets, bytes; /* that left */
	uint64_t drops;          /* before it, for lack of room */
	uint64_t lossless_drops; /* of these, in lossless classes */
	uint64_t trims;          /* instead: cut to their headers */
	uint64_t lost;           /* on it, by faults */
	uint64_t marks;
	uint64_t pauses, resumes; /* frames that left on it */
	vb_time paused;           /* summed over all classes */
	uint64_t most_queued;     /* bytes in its queue */
	double queued_area; /* if asked for: bytes in its queue, and those of the packet on the wire that have not left,
			       times picoseconds */
	uint32_t watchdog_fired;
};

#define FABRIC_SAMPLES 256

/* Counts of a link in a part of the run's time. */
struct fabric_sample {
	uint64_t bytes;     /* that began to leave */
	double queued_area; /* bytes that waited for it, times picoseconds */
	vb_time paused;     /* summed over all classes */
	uint64_t missing;   /* packets that were dropped before it, or lost on it */
};

#define FABRIC_PAUSE_MOST 4

/* At one moment: the bytes from one link that are queued, and the threshold at which its sender is paused; the shared
 * buffer's used bytes, and its size. */
struct fabric_pause_moment {
	vb_time at;
	uint64_t bytes, threshold, used, shared; /* UINT64_MAX: no bound */
};

struct fabric_pause_queue {
	uint32_t link; /* the queue's output link */
	uint64_t bytes;
	bool is_stopped; /* it is itself paused */
};

struct fabric_pause_flow {
	uint32_t src, dst;
	uint64_t bytes;
};

/* A queue that held most of the bytes in `count` of the pauses. */
struct fabric_pause_cause {
	uint32_t link;
	uint32_t count;
	bool is_stopped;
};

/* A lossless class at the receiving end of a link: how often its sender was paused, and for how long. */
struct fabric_pauses {
	uint32_t link;
	uint8_t of_class;
	uint32_t count;
	vb_time lasted, longest, until;
	struct fabric_pause_moment nearest; /* the moment when it came nearest to its threshold, by their ratio */
	/* At the first pause. */
	struct fabric_pause_moment first;
	struct fabric_pause_queue queues[FABRIC_PAUSE_MOST]; /* most first */
	struct fabric_pause_flow flows[FABRIC_PAUSE_MOST];   /* most bytes first, too */
	uint32_t queue_count,
		flow_count; /* queues that are kept; all flows, of which up to FABRIC_PAUSE_MOST are kept */
	/* Over all pauses. */
	struct fabric_pause_cause *causes;
	uint32_t cause_count;
};

/* Of a job, beside the list. */
struct fabric_message {
	uint64_t tag, bytes;
	vb_time start, end;                   /* end: when the program heard of it; of one that failed too */
	uint32_t src, dst, job, error, cause; /* src, dst: ranks */
	uint32_t from, to;                    /* endpoints */
	uint16_t port;                        /* the source port of its packets */
};

#define FABRIC_FAILURES 8

struct fabric_failure {
	vb_time at;
	uint32_t src, dst;
	uint64_t bytes;
	uint32_t error, cause; /* as in struct flow_result */
};

struct fabric_result {
	enum fabric_end end;
	struct flow_result *flows;                       /* in the order of config->flows */
	struct fabric_failure failures[FABRIC_FAILURES]; /* the first of all messages that failed, by time */
	uint32_t failure_count;
	struct fabric_message
		*messages; /* if asked for: those that ended, by start, source, job, tag and destination */
	uint64_t message_count;
	struct fabric_link_counts *links;
	struct fabric_sample **samples; /* if asked for: by link, FABRIC_SAMPLES of them, one after the other from 0 on;
					   NULL: nothing passed */
	uint32_t sampled_links;         /* how many links samples are of: all, or 0 */
	vb_time sample_width;           /* the time of each */
	uint32_t *cycle;                /* links of a deadlock, each waiting for the next */
	uint32_t cycle_count;
	struct fabric_pauses *pauses_told; /* by link and class: those that any packet came by */
	uint32_t pauses_told_count;
	uint32_t out_of_numbers; /* FABRIC_NUMBERS: an endpoint that is; else NETWORK_NONE */
	vb_time ended_at;        /* in virtual time */
	vb_time last_flow; /* completion time, from 0: when the last of the flows and operations ended that did; or
			      arrived, of a job that ends by arrival */
	vb_time *job_ends; /* likewise of each of config->jobs */
	uint64_t operations, flows_done, flows_failed; /* flows, and operations of jobs; operations: in all */
	uint64_t packet_hops, data_packets, acks, events;
	uint64_t payload_bytes;                                                /* delivered; each byte counts once */
	uint64_t scale_up_bytes;                                               /* of these, in scale-up domains */
	uint64_t resent_packets, probes, timeouts, naks, cnps, marked_packets; /* probes: engines only */
	uint64_t drops, trims, lossless_drops, lost, pauses;
	uint64_t hash; /* of flows and links; the same for every number of threads */
	uint32_t threads;
	double setup_cpu_s;                   /* until the first event; the others count from there */
	double cpu_s, critical_cpu_s, wall_s; /* critical: the busiest thread's of each window, summed */
};

/* Runs to whatever end: 0 and a result; -EINVAL and why, -ENOMEM. */
int fabric_run(const struct fabric_config *config, struct fabric_result *result, char *why, unsigned why_size);
void fabric_result_free(struct fabric_result *result);
/* The links by which the packets of a message went, in order, and how many there are. 0: they went by several, or it is
 * not known: where switches spray, are adaptive or hash as ns-3 does, and where links go down. */
#define FABRIC_PATH 16
struct routes;
uint32_t fabric_path(const struct fabric_config *config, const struct routes *routes,
	const struct fabric_message *message, uint32_t links[FABRIC_PATH]);

/* The address of an endpoint: its number in 10.0.0.0/8, from 10.0.0.1. */
static inline struct vb_gid fabric_gid(uint32_t endpoint)
{
	const uint32_t n = endpoint + 1;
	return vb_gid_from_ipv4(10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n);
}

#endif
