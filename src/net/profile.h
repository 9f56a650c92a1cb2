/* Properties of switches and NICs. profiles.c says for every number of a built-in profile where it comes from. */
#ifndef NET_PROFILE_H
#define NET_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define FABRIC_CLASSES 8 /* traffic classes, or virtual lanes */

enum flow_control {
	FLOW_DROPS,   /* packets without room are dropped */
	FLOW_PFC,     /* lossless classes pause their senders (802.1Qbb) */
	FLOW_CREDITS, /* nothing is sent without room for it (InfiniBand, 7.9) */
};

enum routing {
	ROUTING_ECMP,     /* by a hash of the packet's addresses and source port: a flow keeps one path */
	ROUTING_SPRAY,    /* each packet takes a random path */
	ROUTING_ADAPTIVE, /* the shortest queue among the shortest paths */
};

/* The hash of ECMP. */
enum hashing {
	HASH_OWN,
	HASH_NS3, /* as in the simulator of HPCC's authors: ns3.h */
};

/* How exact the telemetry of ports is. */
enum telling {
	TELLS_EXACTLY,
	TELLS_AS_NS3, /* in as few bits as in the simulator of HPCC's authors */
};

enum marking {
	MARKS_COMING,  /* by the queue that a packet joins */
	MARKS_LEAVING, /* by the queue that a packet leaves behind: its sender hears earlier, by the time that it waited
			*/
};

/* How much of its buffer a switch sets aside for each port, as reserve and headroom. */
enum keeping {
	KEEPS_CLASSES, /* for each class, so that all may need theirs at once */
	KEEPS_PORTS,   /* once, though each class may use that much: assumes that they do not all need it */
};

struct class_profile {
	bool is_lossless; /* where flow_control is FLOW_PFC */
	bool is_strict;   /* served before all classes that are not strict, and before strict ones of a lower number */
	uint8_t weight;   /* of classes that are not strict; 0: 1 */
	uint32_t mark_min,
		mark_max;  /* RED/ECN: bytes of the queue at a port of mark_bits_per_second; mark_max 0: no marks */
	uint32_t mark_ppm; /* probability at mark_max, in millionths; all packets beyond it are marked */
	double alpha; /* dynamic threshold: a multiple of the free part of the shared buffer; 0: only the buffer's size
			 is a bound */
	uint64_t
		limit_bytes; /* hard bound of one queue, or, if lossless, of the bytes from one ingress port; 0: none */
};

struct switch_profile {
	char name[32];
	uint64_t buffer_bytes; /* shared by all ports, headroom included; 0: unlimited */
	uint64_t port_bytes;   /* instead, each output queue has its own bytes, drop-tail; 0: the shared buffer */
	uint32_t trim_bytes; /* a packet of data without room is cut to so many on the wire, and goes on in the highest
				class; 0: it is dropped */
	bool is_cut_through;
	vb_time latency; /* from a packet's arrival (its header's, if cut-through) until it is queued */
	enum flow_control flow_control;
	enum routing routing;
	enum hashing hash;
	enum telling telemetry;
	enum marking marks;
	uint64_t mark_bits_per_second; /* the port rate that mark_min and mark_max are for; they scale with the rate; 0:
					  100 Gb/s */
	uint32_t class_count;          /* classes in use: 1 .. FABRIC_CLASSES */
	struct class_profile classes[FABRIC_CLASSES];
	/* PFC */
	enum keeping keeps;
	uint64_t reserved_bytes; /* of each ingress port and class, beside the shared room */
	/* The port rate that alpha is for; it scales with the rate. 0: the same at all rates. */
	uint64_t alpha_bits_per_second;
	uint64_t headroom_bytes; /* of each ingress port and lossless class; 0: computed from its link */
	uint64_t resume_offset;  /* a paused sender may continue when its bytes are this far below the threshold */
	vb_time pause_quanta;    /* how long a pause holds unless renewed; 0: until a resume */
	vb_time watchdog; /* a class that has been paused for so long drops for as long again, and ignores the pause; 0:
			     never */
	/* Credits */
	uint64_t credit_bytes; /* room of each input port and lane, in blocks of 64 bytes */
};

/* Delays of an endpoint; profiles.c says where they come from. */
struct nic_profile {
	char name[32];
	vb_time send_latency, receive_latency; /* the NIC's own delay for each packet */
	vb_time pcie_latency;                  /* each way between memory and NIC */
	/* All packets pass through it, out and in, so a faster link is no faster. Packets that a NIC cannot take in
	 * time wait in the switch, as if it paused at once. 0: no bound. */
	uint64_t pcie_bits_per_second;
	vb_time host_latency; /* from a program's decision until its NIC learns of it, and back */
	vb_time wake_latency; /* of a process that takes its NIC's packets: it sleeps until something arrives or is due,
				 and runs this much later on average (half of it fixed, the rest exponential); it then
				 takes all that has arrived */
};

/* By name; NULL: unknown. The list of names ends with NULL. */
const struct switch_profile *switch_profile_find(const char *name);
const struct nic_profile *nic_profile_find(const char *name);
const char *switch_profile_name(uint32_t index);
const char *nic_profile_name(uint32_t index);

/* Lines: a description, then for each number where it comes from: measured, published (where) or assumed. */
const char *switch_profile_sources(uint32_t index);
const char *nic_profile_sources(uint32_t index);

#endif
