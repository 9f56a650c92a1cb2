/* Failover: a QP whose link or adapter dies goes on over another pair of addresses, one of each end's, and comes back
 * when its own carries packets again. Both ends recover selectively and say in their hellos that they fail over; an end
 * tells the other its further addresses and a secret over the connection's own path. Whoever hears nothing of what it
 * has sent asks all pairs, and moves to one that answers. What comes from a further address counts only once that has
 * answered a question with the secret that its end was told. A program does nothing for it and sees nothing of it.
 *
 *   addresses.c   what the ends tell each other, questions and answers: which pairs are proved
 *   failover.c    when a QP asks, moves and returns
 *
 * Not here: what is sent again (recovery.c), source ports (multipath.c). [lane] */
#ifndef VB_ROCE_FAILOVER_H
#define VB_ROCE_FAILOVER_H

#include "base/list.h"
#include "core/objects.h"
#include "roce/holder.h"
#include "wire/packet.h"

struct vb_batch;

#define VB_PAIRS (VB_ADDRESSES * VB_ADDRESSES)

/* An address of ours and one of the peer's. */
struct vb_pair {
	struct vb_av av;
	bool is_proved;           /* the peer has answered there with our secret: what comes from it is taken */
	bool is_ready, was_asked; /* the peer takes what comes from us; asked_at is set */
	uint32_t answered;        /* the newest number that came back from a peer that is ready */
	uint32_t asks;            /* the number that the peer's newest question has */
	vb_time asked_at;
};

struct vb_failover {
	uint64_t secret, peer_secret; /* what questions to us, and to the peer, must name */
	uint8_t our_count, their_count;
	uint8_t their_total; /* so many has the peer */
	uint8_t in_use;      /* of pairs; 0 is the connection's own */
	uint8_t second;      /* the second rail's; VB_PAIRS: there is none (rails.h) */
	bool knows_peer : 1, is_searching : 1;
	bool is_agreed : 1; /* the peer has answered where we have moved to, or it has moved us there */
	bool has_followed : 1;
	bool second_is_barred : 1; /* until second_at, since it did not hold */
	bool hears_beside : 1;     /* READ responses come by another pair, too */
	bool announces : 1, announcement_answers : 1;
	uint8_t announced; /* further addresses told, of those to be told now */
	uint8_t tries;     /* announcements that were not answered in full */
	vb_time announce_at;
	uint8_t relapses; /* returns after which it did not hold */
	uint8_t second_relapses;

	uint16_t asks_due, answers_due; /* of pairs, a bit each */
	uint32_t number;                /* of the newest questions */
	uint32_t first_number;          /* of the search, or of the move */
	uint32_t followed_number;       /* of the newest move of the peer's */
	vb_time heard_at;               /* the peer, on the pair in use, as requester's peer */
	vb_time round_at;               /* the next questions of a search, or announcement */
	vb_time round;
	vb_time answered_at;        /* the peer's announcement; 0: never */
	vb_time silent_at;          /* of the search: the peer was heard last */
	vb_time grace_end;          /* of the search: until then the pair in use may answer before it is left */
	vb_time home_at, home_wait; /* the next question about the connection's own pair, and the wait after it */
	struct vb_qp *qp;
	struct vb_list away_link; /* in the lane's, if it has moved by itself: such a question is asked */
	vb_time returned_at;
	vb_time second_since;
	vb_time second_at, second_wait; /* the next questions for a second rail, and the wait after them */
	struct vb_gid ours[VB_ADDRESSES], theirs[VB_ADDRESSES];
	struct vb_pair pairs[VB_PAIRS];
	struct vb_moves moves;
};

/* The peer has answered on the pair in use. */
static inline void vb_failover_hear(struct vb_failover *f, vb_time now)
{
	f->heard_at = now;
	f->is_searching = false;
}

/* ---- The QP's (failover.c) --------------------------------------------------------------------------------------- */

/* The peer fails over too. is_asker: it has answered our hello. */
void vb_failover_agree(struct vb_qp *qp, bool is_asker);
void vb_failover_end(struct vb_qp *qp);       /* its own address vector is back */
void vb_failover_stop(struct vb_qp *qp);      /* it has failed or is gone, and asks nothing more */
void vb_failover_readdress(struct vb_qp *qp); /* the program has given it an address vector */
/* Of the QP's timer, while something is unacknowledged. */
struct vb_deadline vb_failover_deadline(const struct vb_qp *qp);
void vb_failover_on_timer(struct vb_qp *qp, vb_time now);
/* Of the lane: QPs that have moved ask whether they may return. */
void vb_failover_advance(struct vb_lane *lane, vb_time now);
/* As the program has given it, wherever the QP has moved. */
struct vb_av vb_failover_own_av(const struct vb_qp *qp);
struct vb_moves vb_failover_moves(const struct vb_qp *qp); /* until now */
/* Packets of that path are taken, which is not the one in use. */
bool vb_failover_takes(const struct vb_qp *qp, const struct vb_path *path);
/* The peer's packets go by that pair from now on. */
void vb_failover_follow(struct vb_qp *qp, unsigned pair, uint32_t number, vb_time now);
/* The address vector of the second rail, which there is. */
const struct vb_av *vb_failover_second(const struct vb_qp *qp);
/* The second rail loses all that it is given: it is to answer again before it is used. */
void vb_failover_lose_second(struct vb_qp *qp, vb_time now);
/* A second rail may be had now: both ends know each other's addresses, or the peer has agreed to come back. */
void vb_failover_seek_second(struct vb_qp *qp, vb_time now);
/* The same, now and then. */
void vb_failover_seek_second_in_time(struct vb_qp *qp, vb_time now);
/* True if the pair may become the second rail. */
bool vb_failover_wants(const struct vb_qp *qp, unsigned pair);
/* The peer takes what comes from us there, and has answered. */
void vb_failover_note_answer(struct vb_qp *qp, unsigned pair, uint32_t number, vb_time now);
void vb_failover_check(const struct vb_qp *qp);

/* ---- Addresses, questions, answers (addresses.c) ----------------------------------------------------------------- */

struct vb_failover *vb_addresses_create(struct vb_qp *qp); /* NULL: no memory */
/* Ours are told. answers: to the peer's. */
void vb_addresses_announce(struct vb_qp *qp, bool answers);
/* A question about that pair. */
void vb_addresses_ask(struct vb_qp *qp, unsigned pair, vb_time now);
/* VB_PAIRS: none of the connection's. */
unsigned vb_addresses_pair(const struct vb_failover *f, const struct vb_path *path);
void vb_addresses_emit(struct vb_qp *qp, struct vb_batch *batch, unsigned budget);
/* is_its_path: packets of that path are taken. */
void vb_addresses_receive(
	struct vb_qp *qp, const struct vb_path *path, bool is_its_path, const struct vb_packet *packet, vb_time now);

#endif
