/* Same host: requests that are descriptors, for a peer whose lane belongs to a local peer: another process (or this
 * one) that shares memory with us. Nothing on the way is lost or comes twice, so nothing is acknowledged packet by
 * packet, probed, sent again in doubt or held to a window; what the send queue, keys, receives, tags, completions and
 * states of QPs are is the same, and requests are executed as those of packets are (execute.h).
 *
 * The engine knows no rings. Its holder has, for each local peer, two FIFOs each way (descriptors, answers) and heaps
 * of bytes, gives room in them, and takes what comes:
 *
 *   vb_local_answered(n, answers, count, heap, now); first what the other side answered, all that was there when
 *   taken = vb_local_receive(n, descriptors, count, heap, &room, now); these descriptors were seen
 *   while (vb_local_pull(n, &pull, now)) { bytes that the other side only lends
 *           ... copy them into pull.iov;
 *           taken += vb_local_pulled(n, outcome, now);
 *   }
 *   if (vb_local_wants_transmit(n))
 *           vb_local_transmit(n, &room, now); our answers, and then our descriptors
 *
 * Answers are kept in front: those to all that was executed go before our next descriptor, and are taken note of before
 * a descriptor behind them is executed, so that no program sees the answer to a message before that message's own
 * completion. Their FIFO is always read on, so that two who wait for room of each other do not wait for ever.
 *
 * Each descriptor has a PSN, one of its own, however long it is: the responder expects the next and takes no other.
 * That is what epochs are for elsewhere: of what was on its way when one was refused (no receive, no such QP yet) none
 * is the expected one, until the requester, which has gone back, asks for that again. It also lets a QP turn between
 * descriptors and packets whenever nothing is under way, each direction by itself.
 *
 * Payload is in the descriptor itself, in the heap (in parts, the First, Middles and Last of a message), or lent: the
 * request is checked first, and then pulled straight into its place, a piece at a time; it completes with the last.
 * WRITEs behind one that is pulled are pulled with it (ahead.c), and READs that were lent together. What is lent may be
 * the program's again before it was pulled, when the QP has failed or was reset: its epoch is over then, which the
 * holder sees in the lender's struct vb_epochs after copying, and says. What a READ asks for is lent likewise, as long
 * as no key like its own is closed, and pulled by the requester (read.c). Memory may lie in a segment, which the
 * holder shares and has told the other of by a number that never names anything else: who knows it has no need to ask
 * the kernel.
 *
 * The other end may be another user's: descriptors and answers are to be copied out of shared memory before they are
 * given to the engine, which believes nothing that they say. Functions here are all [lane], and allocate nothing but at
 * a QP's first request. */
#ifndef VB_LOCAL_LOCAL_H
#define VB_LOCAL_LOCAL_H

#include <stdatomic.h>
#include "base/list.h"
#include "core/handed_out.h"
#include "core/epochs.h"
#include "core/objects.h"
#include "core/peers.h"

#define VB_LOCAL_INLINE 24u
/* bytes of a message in one descriptor, unless they are lent; of a READ in one answer */
#define VB_LOCAL_PART       65536u
#define VB_LOCAL_LEND_MIN   4097u /* tags look at messages of one packet as a whole */
#define VB_LOCAL_PULL_MAX   1048576u
#define VB_LOCAL_PULL_ITEMS 8u         /* messages, or READs, that are pulled at once, */
#define VB_LOCAL_PULL_MANY  524288u    /* if they are no more than this */
#define VB_LOCAL_NO_BYTES   UINT32_MAX /* in place of an offset: there are none, only their number */

/* Where a descriptor's payload is. */
enum vb_local_place { VB_LOCAL_NOWHERE, VB_LOCAL_INLINED, VB_LOCAL_HEAPED, VB_LOCAL_LENT };

enum vb_local_flags {
	VB_LOCAL_SOLICITED = 1,
	VB_LOCAL_ACKED = 2,
	VB_LOCAL_PULLS = 4, /* of a READ: whoever asks can pull what is lent, and so all of it is asked for at once */
	VB_LOCAL_AGAIN = 8, /* of a READ: it was lent, and is asked for by the heap; with PULLS: nothing was there */
	VB_LOCAL_LONG_ADDRESSES =
		4, /* of a datagram: IPv6's, source and destination, at heap.at, in front of the payload */
	VB_LOCAL_UNAWAITED =
		16, /* its sender does not wait to hear that it is executed: see vb_local_room.is_awaited */
};

struct vb_local_nature {
	uint8_t place : 3, flags : 5;
};

struct vb_descriptor {
	uint8_t opcode; /* as of a packet: an Only or, of payload in the heap, a part */
	union {
		struct {
			uint8_t place : 3, flags : 5;
		};
		struct vb_local_nature nature; /* both, to be written without reading */
	};
	uint16_t holder; /* the holder's: the engine never writes it */
	uint32_t dest_qpn, src_qpn;
	uint32_t psn;
	union {
		/* with ACKED: all of the peer's requests up to this PSN are executed, as by an answer */
		uint32_t acked;
		uint32_t srqn; /* XRC */
		uint32_t qkey; /* UD */
	};
	uint32_t length; /* of the payload; of a READ or FLUSH, of the range */
	union {
		uint64_t va;
		struct {
			uint8_t source[4], destination[4];
		} ipv4; /* UD */
	};
	union {
		uint32_t rkey;
		struct {
			uint8_t traffic_class, hop_limit;
		} ip; /* UD */
	};
	uint32_t imm_or_inv; /* of a FLUSH its type and level */
	union {
		uint8_t bytes[VB_LOCAL_INLINE];
		struct {
			uint64_t swap_add, compare;
		} atomic;
		struct {
			uint32_t at;    /* in the sender's heap */
			uint32_t total; /* of the message, in its First */
		} heap;
		struct {
			uint64_t address; /* in the sender */
			uint32_t segment; /* that it lies in, or 0 */
			uint16_t epoch;   /* of the QP there */
		} lent;
	};
};

_Static_assert(sizeof(struct vb_descriptor) == 64, "one cache line");

enum vb_answer_kind {
	VB_ANSWER_DONE,       /* all up to psn are executed */
	VB_ANSWER_VALUE,      /* and before, and psn is an atomic that found value */
	VB_ANSWER_READ,       /* or a READ, whose bytes these are */
	VB_ANSWER_LENT,       /* or a READ, whose bytes are to be pulled */
	VB_ANSWER_IN_PARTS,   /* or a READ, whose bytes are to be asked for again */
	VB_ANSWER_NOT_READY,  /* all before psn are executed; psn has no receive: code is the timer's */
	VB_ANSWER_LATER,      /* all before psn are executed; psn would overtake something and is sent again later */
	VB_ANSWER_REFUSED,    /* code is the NAK's */
	VB_ANSWER_UNREADABLE, /* what psn lends is not there */
	VB_ANSWER_UNWANTED,   /* what psn lends cannot be pulled: by the heap */
	VB_ANSWER_ABSENT,     /* there is no QP that takes it, or not now */
	VB_ANSWER_MISPLACED,  /* said to oneself: what an answer brought has no place */
};

struct vb_answer {
	uint32_t dest_qpn, src_qpn;
	uint32_t psn;
	uint8_t kind; /* enum vb_answer_kind */
	uint8_t code;
	uint16_t holder; /* the holder's */
	union {
		uint32_t length;  /* of READ */
		uint32_t segment; /* of LENT, or 0: how much it is, who asked knows */
	};
	union {
		uint32_t at;       /* in the answerer's heap, when length is more than a value's; or NO_BYTES */
		uint32_t removals; /* of LENT: of keys like the one that opens it, before that was found open */
	};
	union {
		uint64_t value;
		uint64_t address; /* of LENT: in the answerer */
		uint8_t bytes[8];
	};
};

/* The room that the holder has. Counts and heap_used go up from what they are. Descriptors may lie where the other
 * side looks: they are written once, field by field, and not read again. The heap of vb_local_receive, for answers,
 * and that of vb_local_transmit are two: else both sides' could be full of descriptors' bytes while the descriptors
 * wait for room to be answered. */
struct vb_local_room {
	struct vb_descriptor *descriptors;
	uint32_t *heap_ends; /* if not NULL, for each descriptor: heap_used behind its bytes */
	struct vb_answer *answers;
	uint8_t *heap;    /* bytes that the other side sees too: free as soon as what was put beside them is taken */
	uint32_t heap_at; /* what both call the first of them */
	uint32_t heap_bytes, heap_used; /* as many as a part at times, or parts never leave */
	unsigned descriptor_max, descriptor_count;
	unsigned answer_max, answer_count;
	bool is_awaited; /* among the answers is one that the other side waits for; the others are worth no wake-up, but
			    are told before long, for it may wait without saying so */
};

/* The other side's heap, as it lies here. */
struct vb_local_heap {
	const uint8_t *bytes;
	uint32_t length;
};

struct vb_lent {
	uint64_t address;
	uint32_t length;
	uint32_t segment; /* of the other side's memory, by its word; 0: none */
};

/* Bytes to be copied out of the other side's memory: all that is lent, in that order, into iov. After copying, compare
 * proof_bytes of the other side's struct vb_epochs, from proof_at on, with proof: only if they are equal are the copied
 * bytes valid. Once the lane has been given away, nothing here is valid until vb_local_pull is called again. */
struct vb_local_pull {
	unsigned lent_count;
	struct vb_lent lent[VB_LOCAL_PULL_ITEMS];
	uint32_t length; /* of all */
	uint32_t proof_at;
	uint8_t proof_bytes;
	uint64_t proof;
	unsigned iov_count;
	struct vb_iov iov[VB_MAX_SGE + 2 * VB_LOCAL_PULL_ITEMS];
};

enum vb_local_outcome {
	VB_PULLED,
	VB_PULL_STALE,   /* the proof was another afterwards: what was copied may be anything */
	VB_PULL_FAULT,   /* nothing is there */
	VB_PULL_REFUSED, /* we may not */
};

/* A WRITE behind the message that is being pulled, and the last bytes of it. */
struct vb_local_ahead {
	struct vb_descriptor request;
	const uint8_t *place; /* once pulled */
	uint8_t tail[8];
};

/* A lane of another process. The holder's memory; the fields are the engine's. */
struct vb_local_peer {
	struct vb_lane *lane; /* ours */
	uint8_t slot;         /* its own */
	uint32_t lend_from;   /* bytes from which a message is lent; 0: never, and no READ's bytes either */
	bool maps_segments;   /* what lies in a segment is lent as soon as anything may be */
	uint32_t pull_from;   /* bytes from which a READ is pulled; 0: never */
	bool is_lost;
	struct vb_list ready;        /* QPs with descriptors to send */
	struct vb_list users;        /* QPs whose requests go there */
	struct vb_list pending_acks; /* QPs whose peers are to hear what was executed */
	struct vb_list datagrams;    /* work requests of UD that wait for room */
	struct vb_list watch_link;   /* in the lane's, while some do */
	vb_time waits_since;         /* when the first did, or since some left last */
	bool is_blocked;      /* they waited too long: those that come do not wait any more, until there is room */
	struct vb_qp *puller; /* the QP whose message is being pulled; NULL: none is */
	struct vb_descriptor pulled;
	uint32_t pulled_bytes, piece; /* of the message: that are here; that were asked for */
	bool is_opened;               /* it is a message in progress; tags look at its header first */
	uint8_t tail[16];             /* the message's first bytes, for tags, or its last, which are to land last */
	struct vb_local_ahead ahead[VB_LOCAL_PULL_ITEMS - 1]; /* what waits behind it */
	unsigned ahead_count, pulled_ahead;                   /* of those: pulled with the message */
	const uint8_t *here;      /* the next message was pulled to there already, and tail is its; or NULL */
	struct vb_answer pending; /* not said yet: nothing more is executed before */
	bool has_pending;
	struct vb_list readers;          /* QPs whose oldest READ is to be pulled */
	uint64_t lent_bytes, read_bytes; /* ever, by READs: lent to theirs, pulled by ours */
	struct vb_qp *reader; /* what is being pulled now is of its READ; NULL: of the puller's message, or nothing */
	uint32_t read_piece;  /* of it, and in all of several */
	unsigned read_count;
	bool reads_singly; /* several at once could not be had */
	bool is_readers_turn;
	bool is_held; /* the oldest descriptor waits until its QP's READs before held_psn are complete */
	uint32_t held_psn;
};

/* A pending ack: requests that were executed, of which the peer has not been told. Outlives its QP. */
struct vb_pending_ack {
	struct vb_list link; /* in the local peer's pending acks */
	struct vb_local_peer *to;
	uint32_t dest_qpn, src_qpn, psn;
	bool is_orphan;  /* its QP is gone */
	bool is_awaited; /* by the peer */
	bool is_carried; /* it has left in a descriptor, and nothing was executed since */
	bool goes_alone; /* as an answer, not in a descriptor */
};

struct vb_send_wqe;
struct vb_transport;

/* A QP's part. */
struct vb_local {
	struct vb_qp *qp;    /* whose it is; its local peer is where its requests go */
	struct vb_list link; /* in its ready */
	struct vb_list user_link;
	struct vb_pending_ack *ack;  /* made at its first request */
	struct vb_local_peer *pulls; /* what it lends this QP; it is the puller there */
	struct vb_peer *far;         /* UD: the local peer's slot that its newest datagram for one went to */
	bool never_lends, never_pulls;
	/* READs whose bytes are not all here, though they are answered. The oldest request under way is the oldest of
	 * them; answers are awaited from heard_psn on, and what the last one asks for besides is done when all READs
	 * are. */
	uint32_t lent_count, oldest_lent, newest_lent; /* indices of work requests */
	uint32_t heard_psn, heard_index;
	bool has_kept;
	uint8_t kept_kind, kept_code;
	struct vb_list reader_link; /* in its local peer's readers */
};

void vb_local_peer_init(struct vb_local_peer *peer, struct vb_lane *lane, uint8_t slot, uint32_t lend_from);
void vb_local_peer_set_lending(struct vb_local_peer *peer, uint32_t lend_from);
/* It has been told of segments. */
void vb_local_peer_set_mapping(struct vb_local_peer *peer, bool maps_segments);
void vb_local_peer_set_pulling(struct vb_local_peer *peer, uint32_t pull_from); /* whenever no pull is in hand */
/* The slot of the address is the local peer's, or no longer anybody's (NULL): QPs that are connected to it send to it
 * by descriptors from their RTS on, or once nothing is under way; only its descriptors are for them. -ENOMEM */
int vb_lane_set_local_peer(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot, struct vb_local_peer *peer);
/* Its process died, or let go of what was shared: what is under way to it ends as after the last retry, what waits goes
 * over the wire. It may be freed when it has been taken from its addresses too (vb_lane_set_local_peer). */
void vb_local_lost(struct vb_local_peer *peer, vb_time now);

bool vb_local_wants_transmit(const struct vb_local_peer *peer); /* descriptors, or answers */
bool vb_local_is_urgent(
	const struct vb_local_peer *peer); /* else it may wait a little: what was executed is to be said */
void vb_local_transmit(struct vb_local_peer *peer, struct vb_local_room *room, vb_time now);
/* How many were taken. The rest are given again: when there is room for answers, and nothing to be pulled. */
unsigned vb_local_receive(struct vb_local_peer *peer, const struct vb_descriptor *descriptors, unsigned n,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now);
void vb_local_answered(struct vb_local_peer *peer, const struct vb_answer *answers, unsigned n,
	const struct vb_local_heap *heap, vb_time now);
/* Of messages of theirs, or READs of ours, in turn. False: nothing. */
bool vb_local_pull(struct vb_local_peer *peer, struct vb_local_pull *pull, vb_time now);
/* How many descriptors it took besides, of those behind what vb_local_receive took. */
unsigned vb_local_pulled(struct vb_local_peer *peer, enum vb_local_outcome outcome, vb_time now);
static inline bool vb_local_wants_pull(const struct vb_local_peer *peer)
{
	return peer->puller || !vb_list_empty(&peer->readers);
}

void vb_local_peer_check(const struct vb_local_peer *peer);

/* ---- The engine's ------------------------------------------------------------------------------------------------ */

extern const struct vb_transport vb_local_transport; /* of the requests of QPs that have a local peer */

void vb_local_init(struct vb_qp *qp, struct vb_local *local);
void vb_local_choose(struct vb_qp *qp); /* packets or descriptors, if nothing is under way */
/* The QP is about to stop. An ack that left in a descriptor goes once more as an answer: the peer reads answers first,
 * and would hear that nobody takes its requests before it hears that the earlier ones were executed. */
void vb_local_take_leave(struct vb_qp *qp);
void vb_local_stop(struct vb_qp *qp);  /* nothing more of it is sent or pulled */
void vb_local_leave(struct vb_qp *qp); /* and it has nothing to do with any local peer */
void vb_local_check(const struct vb_qp *qp);
/* UD's requests from the cursor to that tail that are for local peers go on to these. True: that was all there is. */
bool vb_local_route_datagrams(struct vb_qp *qp, uint32_t tail);
/* It is for a local peer, to whom packets of this QP are under way. */
bool vb_local_follows_packets(struct vb_qp *qp, const struct vb_send_wqe *wqe);
void vb_local_advance(struct vb_lane *lane, vb_time now);
struct vb_deadline vb_local_next_deadline(const struct vb_lane *lane);

#endif
