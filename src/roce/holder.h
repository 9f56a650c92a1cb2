/* The wire transport as the holder of a lane sees it: packets that leave, what is known of peers, and what QPs came
 * to. Functions here are those of engine/nic.h. */
#ifndef VB_ROCE_HOLDER_H
#define VB_ROCE_HOLDER_H

#include "core/objects.h"
#include "wire/packet.h"

/* Why a packet leaves that has left before: for captures. */
enum vb_sent_again {
	VB_SENT_FIRST, /* it has not, or is of a kind that nobody keeps account of */
	VB_SENT_LOST,
	VB_SENT_PROBE,
	VB_SENT_BACK,  /* all from the oldest on leaves again */
	VB_SENT_ASKED, /* a response */
};

struct vb_outgoing {
	struct vb_packet packet;       /* payload is NULL: the bytes are iov[iov_first .. + iov_count) of the batch */
	const struct vb_av *av;        /* where it goes */
	uint16_t iov_first, iov_count; /* no iov at all for phantom memory */
	uint16_t flow;                 /* entropy for the UDP source port, constant per QP: 0xC000 .. 0xFFFF */
	bool to_trains : 1;            /* the peer is known to take GSO trains */
	bool ends_train : 1;           /* what follows travels in another one */
	uint8_t again;                 /* enum vb_sent_again */
	struct vb_qp *qp;              /* the engine's */
};

/* Goes back to the engine when the port is done with a packet's bytes. */
struct vb_tx_completion {
	uint64_t cookie; /* the engine's name for the packet */
	int error;       /* the holder's: 0, or the positive errno of the send */
};

#define VB_BATCH_PACKETS 64
#define VB_BATCH_IOV     512

/* Big (tens of KiB): the holder allocates one a lane. */
struct vb_batch {
	unsigned count, iov_count;
	struct vb_outgoing out[VB_BATCH_PACKETS];
	struct vb_tx_completion completions[VB_BATCH_PACKETS]; /* of out, without error */
	struct vb_iov iov[VB_BATCH_IOV];
};

void vb_lane_set_peer(struct vb_lane *lane, const struct vb_gid *gid, const struct vb_peer_facts *facts);

#define VB_ADDRESSES      4 /* of an end that a connection uses, its own included */
#define VB_LANE_ADDRESSES 8 /* of which they are taken */

struct vb_address {
	struct vb_gid gid;
	uint32_t mtu; /* of its interface, bytes of RoCE */
};

/* Addresses of the host, one an interface and IP version, which QPs that fail over tell their peers. Each begins with
 * those that there are when it agrees. Beyond VB_LANE_ADDRESSES they are left out. [lane] */
void vb_lane_set_addresses(struct vb_lane *lane, const struct vb_address *addresses, unsigned count);

/* n packets of one path, ICRC verified, in arrival order. payload == NULL with a length is phantom payload. [lane] */
void vb_lane_receive(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packets, size_t n, vb_time now);

/* Packets that the holder's receive buffer had no room for, before those that are received next; a count that wraps.
 * Where packets are missing that is told as their cause, which is congestion. [lane] */
void vb_lane_note_overflow(struct vb_lane *lane, uint32_t overflow);

/* A packet of RC whose payload a switch has cut off for want of room was lost. A request: where its PSN is expected, or
 * beyond, the peer is told at once. A READ response: it is asked for at once, if the QP recovers selectively. [lane] */
void vb_lane_receive_trimmed(
	struct vb_lane *lane, const struct vb_path *path, const struct vb_packet *packet, vb_time now);

/* True for a moment after the peer has acknowledged an answer of ours, with which it most likely sends its own: a
 * program that polls would leave before it, and look at its memory where nobody receives for it. Not where the peer's
 * newest request took a receive: that program polls for the next one. [lane] */
bool vb_lane_awaits_answer(const struct vb_lane *lane, vb_time now);
/* The moment has passed, and the answer has not come, or not all of it. [lane] */
bool vb_lane_misses_answer(const struct vb_lane *lane, vb_time now);

/* Of a QP that fails over. */
struct vb_moves {
	uint32_t moved;                       /* nothing was acknowledged, and another pair of addresses answered */
	uint32_t followed;                    /* the peer did so */
	uint32_t returned;                    /* its own pair answered again */
	uint64_t acked[2];                    /* bytes of messages, in packets, on its own pair and on others, up to: */
	bool is_away, is_with_peer;           /* now: it is on another pair; it has followed there */
	uint64_t counted;                     /* so many of all */
	struct vb_gid from, to;               /* in use */
	struct vb_gid second_from, second_to; /* of the second rail, or the last there was */
	bool has_second, is_of_second;        /* the newest change is of the second rail */
	uint32_t seconds_lost;                /* how often what was sent there was lost */
	uint64_t sent, by_second;             /* packets of data while there was one, and those that it carried */
};

/* How a QP that acknowledges recovers, and if not selectively, why not. */
enum vb_recovers {
	VB_RECOVERS_SELECTIVELY,
	VB_RECOVERS_BY_SETTING,    /* it goes back, as its lane is set */
	VB_RECOVERS_BY_TYPE,       /* as XRC does */
	VB_RECOVERS_BY_PEER,       /* whose host does not take hellos, or has not said so yet */
	VB_RECOVERS_BEFORE_ANSWER, /* the peer's QP has not agreed */
};

/* The source ports that a QP's packets take turns on (multipath.h). */
struct vb_paths_account {
	uint16_t count; /* 0: its own flow alone; VB_PATHS_ALL: each packet has its own, and no more is known */
	uint32_t left;  /* ports that were exchanged since a packet was lost there or marked */
	vb_time least_rtt, most_rtt; /* of the paths, the newest of each; 0: none was measured */
};

/* The limits of a QP, and its account since its RTS. */
struct vb_qp_account {
	uint32_t qpn, dest_qpn;
	enum vb_qp_type type;
	struct vb_gid peer;
	bool is_local;                     /* its requests go by memory, and nothing holds them back */
	const char *algorithm;             /* of congestion control */
	uint64_t rate;                     /* bytes a second, as rates count them; 0: not paced */
	uint32_t window_bytes;             /* 0: nobody acknowledges */
	uint64_t acked;                    /* bytes of messages, in packets */
	vb_time acked_in;                  /* from its first packet to the newest acknowledgement */
	uint32_t cnps_sent, cnps_received; /* packets, as these: */
	uint32_t sent_again, probes;       /* after a loss; after silence, to hear what was lost */
	vb_time least_rtt, rtt;            /* round trips: the shortest, and the mean; 0: none was measured */
	enum vb_recovers recovers;         /* of an unreliable QP: nothing */
	uint32_t large_mtu;                /* of its messages' packets; 0: they go by the path MTU */
	struct vb_paths_account paths;
	struct vb_moves moves; /* of one that does not fail over: all 0 but its addresses */
};

/* Now, or as it was when it failed. False: it has no peer, or was in RTS never. [lane] */
bool vb_qp_account(struct vb_qp *qp, struct vb_qp_account *account);

int vb_qp_attach_mcast(struct vb_qp *qp, const struct vb_gid *gid); /* [lane] UD; twice is harmless; -ENOMEM */
int vb_qp_detach_mcast(struct vb_qp *qp, const struct vb_gid *gid); /* [lane] -EINVAL when not attached */

#endif
