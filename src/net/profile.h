/* What switches and NICs are like. Every number of a built-in profile says where it is from: profiles.c. */
#ifndef NET_PROFILE_H
#define NET_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define FABRIC_CLASSES 8 /* traffic classes, or virtual lanes */

enum flow_control {
	FLOW_DROPS,   /* what has no room is dropped */
	FLOW_PFC,     /* lossless classes pause who sends to them (802.1Qbb) */
	FLOW_CREDITS, /* nothing is sent for which there is no room (InfiniBand, 7.9) */
};

enum routing {
	ROUTING_ECMP,     /* by a hash of the packet's addresses and source port: a flow has one path */
	ROUTING_SPRAY,    /* each packet for itself, by chance */
	ROUTING_ADAPTIVE, /* the shortest queue of the shortest paths */
};

/* Of routing by hash. */
enum hashing {
	HASH_OWN,
	HASH_NS3, /* that of HPCC's authors' simulator: ns3.h */
};

/* Of what ports tell. */
enum telling {
	TELLS_EXACTLY,
	TELLS_AS_NS3, /* in as few bits as in HPCC's authors' simulator */
};

enum marking {
	MARKS_COMING,  /* by the queue that a packet comes to */
	MARKS_LEAVING, /* by the one that it leaves behind: who sends is told earlier by what it waited */
};

/* What a switch keeps of its buffer for itself, of each port: reserve and headroom... */
enum keeping {
	KEEPS_CLASSES, /* of each class, so that all may need theirs at once */
	KEEPS_PORTS,   /* once, though each class may use that much: they are trusted not to */
};

struct class_profile {
	bool is_lossless;            /* with FLOW_PFC */
	bool is_strict;              /* before all classes that are not, and before strict ones of a lower number */
	uint8_t weight;              /* of the others; 0: 1 */
	uint32_t mark_min, mark_max; /* RED/ECN: bytes of the queue, see mark_bits_per_second; mark_max 0: no marks */
	uint32_t mark_ppm;           /* chance at mark_max; all beyond it are marked */
	double alpha;         /* dynamic threshold: so many times what is free of the shared buffer; 0: no bound but the
				 buffer's */
	uint64_t limit_bytes; /* of one queue, or, lossless, of what came by one port, whatever is free; 0: none */
};

struct switch_profile {
	char name[32];
	uint64_t buffer_bytes; /* shared by all ports, headroom included; 0: unlimited */
	uint64_t port_bytes;   /* instead: each output queue its own, drop-tail; 0: the shared buffer */
	bool is_cut_through;
	vb_time latency; /* from a packet's being there (its header, if cut-through) until it is queued */
	enum flow_control flow_control;
	enum routing routing;
	enum hashing hash;
	enum telling telemetry;
	enum marking marks;
	uint64_t mark_bits_per_second; /* the rate of a port that mark_min and mark_max are for, of others in
					  proportion; 0: 100 Gb/s */
	uint32_t class_count;          /* that are used: 1 .. FABRIC_CLASSES */
	struct class_profile classes[FABRIC_CLASSES];
	/* PFC */
	enum keeping keeps;
	uint64_t reserved_bytes; /* of each ingress port and class, beside the shared part */
	/* the rate of a port that alpha is for, of others in proportion; 0: all alike */
	uint64_t alpha_bits_per_second;
	uint64_t headroom_bytes; /* of each ingress port and lossless class; 0: what its link needs, computed */
	uint64_t resume_offset;  /* below the threshold by so much, who was paused may go on */
	vb_time pause_quanta;    /* how long a pause holds unless renewed; 0: until it is taken back */
	vb_time watchdog; /* a class that was paused for so long is not, for as long again, and drops; 0: never */
	/* Credits */
	uint64_t credit_bytes; /* of each input port and lane: room, in blocks of 64 */
};

/* Delays of an endpoint; sources in profiles.c. */
struct nic_profile {
	char name[32];
	vb_time send_latency, receive_latency; /* the NIC's own, of each packet */
	vb_time pcie_latency;                  /* of each way between memory and NIC */
	/* Packets go through it as they leave and come: a faster link is as slow, both ways. What a NIC does not take
	 * in time waits in the switch, as if it paused that at once. 0: no bound. */
	uint64_t pcie_bits_per_second;
	vb_time host_latency; /* from a program's decision until its NIC hears of it, and back */
	vb_time wake_latency; /* of a process that takes what its NIC has received: it sleeps until something comes or
				 is due, runs so much later on average, half of it always and the rest by chance
				 (exponential), and takes all that has come by then */
};

/* By name; NULL: there is none. The list ends with NULL. */
const struct switch_profile *switch_profile_find(const char *name);
const struct nic_profile *nic_profile_find(const char *name);
const char *switch_profile_name(uint32_t index);
const char *nic_profile_name(uint32_t index);

/* Lines: what it is, then where each of its numbers is from: measured, published (where) or assumed. */
const char *switch_profile_sources(uint32_t index);
const char *nic_profile_sources(uint32_t index);

#endif
