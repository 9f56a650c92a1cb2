/* The configuration of a lane (nic.h): whose numbers its QPs have, what it may have under way, and in what it is
 * like a NIC rather than a process behind sockets, which 0 stands for. Copied when the lane is made, but for the
 * parameters of cc. */
#ifndef VB_ROCE_LANE_CONFIG_H
#define VB_ROCE_LANE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"
#include "cc/cc.h"

#define VB_UNLIMITED UINT32_MAX
#define VB_NONE      UINT32_MAX /* where 0 stands for something else */

/* When requests ask to be acknowledged, and what acknowledgements are to data. Whatever is said here, the last packet
 * of the last message that is queued asks, and READs and atomics are answered by their responses. */
struct vb_ack_policy {
	/* Within a message a packet asks after so many bytes, as windows count them, or so many packets, itself
	 * included: 1 is each of them. 0 = 65536 bytes, and any number of packets; VB_UNLIMITED. */
	uint32_t every_bytes, every_packets;
	/* Nothing else asks, but what fills a window or allowance of which nothing under way has asked. False: so does
	 * the last packet of each turn, of which there may be one a transmit, and whatever fills a window. */
	bool by_count_alone;
	/* A sender that goes on asks after so many alone, whatever ends meanwhile, a message, a turn or a window: where
	 * windows are at least four times as large, its part of a shared one included, and no rate holds back what
	 * follows. 0: nobody. */
	uint32_t spared_bytes;
	/* An ack of packets of which one carried Congestion Experienced says so, by BECN. InfiniBand's annex A10 has
	 * it so. */
	bool tells_marks;
};

/* Congestion notification packets. */
enum vb_cnp_scope {
	VB_CNP_PER_QP = 0,
	VB_CNP_PER_DESTINATION, /* all QPs of an address together */
	VB_CNP_PER_PORT,        /* all QPs of the lane */
	VB_CNP_NEVER,
};

struct vb_cnp_policy {
	enum vb_cnp_scope scope; /* of what one is sent */
	vb_time interval;        /* an interval; 0 = 50 us */
};

/* How RC finds again what was lost. */
enum vb_recovery_kind {
	VB_RECOVERY_GO_BACK_N = 0,
	/* As NICs had it once: a message of which a packet is missing begins again, at both ends. To be held against
	 * go-back-N: there is no live adapter that does so. */
	VB_RECOVERY_GO_BACK_0,
	VB_RECOVERY_SELECTIVE, /* selective.h: peers do so too, and hold as much; nobody asks */
	VB_RECOVERY_AGREED,    /* selective, with each peer that says it does so too: hello.c; else go-back-N */
};

#define VB_PATHS_MAX 256
#define VB_PATHS_ALL UINT16_MAX /* each flowlet its own port, drawn from all there are */

#define VB_HOLD_BYTES      (48u << 20) /* three round trips of 100 ms at 1 Gb/s, in packets of 1 KiB */
#define VB_HOLD_LANE_BYTES (256u << 20)

struct vb_lane_config {
	/* Each packet looks at these, up to the interval of CNPs. */
	vb_time ack_delay;   /* how long an ack for a small message waits for data to leave before it */
	uint32_t turn_bytes; /* that a QP may send before the next one: what travels as one; 0 = 65536 */
	/* Where a NIC is not like a process behind sockets: more of that below. */
	struct vb_ack_policy acks;
	bool replies_first; /* acks, NAKs and CNPs leave before any QP's data; else an urgent one in its QP's turn */
	bool never_probes;  /* the ack timeout alone finds lost tails */
	struct vb_cnp_policy cnps;

	uint64_t seed; /* of QPNs' first index, nothing else */
	uint8_t slot;  /* top 8 bits of every QPN of this lane; 1 .. 255 */
	/* The low 16 bits are of these, which no other lane has that publishes the lives of its QPs at the same place
	 * (local.h). index_count 0 = all there are. */
	uint32_t first_index, index_count;
	uint32_t receive_buffer; /* bytes that the holder's receive socket holds; bounds outstanding READs; 0 =
				    unlimited */
	/* Bytes that all QPs together may have under way to one slot of a peer of whom nothing is known; 0 = 65536.
	 * VB_UNLIMITED: as many as they like, and nothing is kept of such a peer, nor do facts told of it later matter
	 * to those who are connected. */
	uint32_t unknown_peer_allowance;
	struct vb_cc_config cc; /* of QPs that have no other */
	/* Silence of a peer that has lost nothing before it is probed, about what a process waits for its core. Below
	 * 1 ms: no more than of any other. */
	vb_time patience;
	bool tells_silence;     /* the holder hears of VB_EVENT_QP_SILENT */
	bool meets_local_peers; /* the holder takes vb_lane_next_wanted_peer; something is kept of each then */

	/* Where a NIC is not like a process behind sockets, too. */
	uint32_t packet_overhead; /* bytes that a packet costs a window beside its payload; 0 = 256, VB_NONE, up to
				     65535 */
	uint32_t rate_overhead;   /* bytes that a rate counts of a packet beside its payload; 0 = as from BTH to ICRC */
	bool rate_is_strict;   /* what left late is not made up for; else up to 1 ms of it is, for a holder that comes
				* late itself
				*/
	bool rate_in_whole_ns; /* so long a packet waits for the one before it; what is beyond is cut off */
	vb_time ack_timeout;   /* of QPs that have one; 0 = what their code says, 4.096 us * 2^code */
	vb_time probe_after;   /* the least silence before a tail probe, and so of all that is probed for; 0 = 1 ms */
	enum vb_recovery_kind recovery;
	/* Packets that come before their turn are held, where both ends recover selectively: at most so many bytes of a
	 * QP, of which the peer is told, and of the lane; 0 = VB_HOLD_BYTES, VB_HOLD_LANE_BYTES. */
	uint32_t hold_bytes;
	uint64_t hold_lane_bytes;
	/* Of a QP that recovers selectively: source ports that its packets take turns on (multipath.h), 0 and 1: one;
	 * and packets that go by the same one before the next, a power of two, 0: each. */
	uint16_t paths;
	uint8_t flowlet_packets;
	bool drops_are_told; /* all switches cut packets that they have no room for: vb_lane_receive_trimmed */
	bool fails_over;     /* of such a QP, with a peer that says so too: failover.h */
	bool goes_by_large;  /* of such a QP, with a peer that does so too, where the link carries them: large.h */
	/* Can these bytes be read, now? Asked before any are sent again: a program may have unmapped them, for it knows
	 * from its peer that they have come. NULL: always. */
	bool (*is_present)(const void *at, uint64_t length, bool for_writing);
};

/* Linux cuts up in software a train that is 65,536 bytes long with its headers: IPv6, UDP, Ethernet and a VLAN tag. */
#define VB_TRAIN_BYTES (65536 - 40 - 8 - 14 - 4 - 1)

/* A lane behind sockets that hold so many bytes, as live processes have it. Who makes it adds a seed, a slot, and what
 * else is its own. */
struct vb_lane_config vb_lane_behind_sockets(uint32_t receive_buffer);

#endif
