/* Lanes that share memory: what a live holder of local/local.h does, in parts so small that whatever may come between
 * two of them does.
 *
 *   rings.c      two FIFOs and a heap, as each end of them sees them      pairings.c  who meets, and who is lost
 *   turns.c      a lane's turn towards another, one part after the other  check_answers.c  answers after completions */
#ifndef VB_TESTS_SIM_LOCAL_H
#define VB_TESTS_SIM_LOCAL_H

#include "local/local.h"
#include "sim.h"

#define RING_MAX 256

/* Counts that only go up. Who puts knows `put` and tells `told`; who takes knows `taken` and tells `freed`. */
struct ring {
	unsigned room, put, told, taken, freed;
};

/* Bytes that are used until so many of the records beside them are free. */
struct loan {
	uint32_t from, to;
	unsigned records;
};

/* The bytes of descriptors, or of answers: apart, or two whose descriptors wait for room for answers might each fill
 * its own with descriptors. */
struct area {
	uint32_t from, to, next; /* in the heap */
	struct loan loans[RING_MAX];
	unsigned loan_head, loan_tail;
};

/* What one side says to the other. */
struct way {
	struct ring descriptors, answers;
	struct vb_descriptor descriptor[RING_MAX];
	struct vb_answer answer[RING_MAX];
	uint8_t *heap;
	uint32_t heap_bytes;
	struct area requested, answered;
	bool has_more;   /* room than was given the last time */
	bool is_awaited; /* an answer that is to be told */
};

void way_open(struct way *way);
void way_close(struct way *way);
/* Records are put at once, and told later. */
struct vb_local_room way_room(
	struct way *way, struct area *area, struct vb_descriptor *descriptors, struct vb_answer *answers);
bool way_put(struct way *way, struct area *area, const struct vb_local_room *room);
bool way_tell_answers(struct way *way);
bool way_tell_descriptors(struct way *way);
bool way_free_taken(struct way *way);

enum part { LOOK, TAKE_ANSWERS, RECEIVE, PULL, TRANSMIT, TELL_ANSWERS, TELL_DESCRIPTORS, FREE, PARTS };
enum fate { STAY, MEET, LOSE, FORGET };

/* One piece that is being copied. */
struct copy {
	struct vb_local_pull pull;
	enum vb_local_outcome outcome;
	uint32_t copied;
	bool is_on, has_proof;
	bool is_mapped; /* from memory that this end has, too: nobody can refuse it, and it outlives its owner */
};

struct side {
	struct pairing *pairing;
	struct side *other;
	struct lane *lane;
	struct vb_local_peer *local_peer; /* NULL: has not met, or has forgotten */
	struct way *in, *out;
	enum fate fate;
	vb_time fate_at;
	bool is_met; /* and not lost */
	enum part part;
	unsigned seen;   /* descriptors that were told when the turn began */
	bool was_useful; /* the turn */
	bool is_rung;    /* since the turn began */
	bool is_scheduled, is_held;
	vb_time wake_at, held_until;
	unsigned idle_transmits;
	struct copy copy;
};

struct pairing {
	struct side sides[2]; /* of a lane with itself: one */
	unsigned side_count, generation;
	struct way ways[2];
	uint32_t lend_from, pull_from, fault_ppm, refusal_ppm;
	bool maps;
	vb_time hold;
	vb_time late;          /* a bell for answers that nobody waits for; a second is as good as never */
	vb_time excused_until; /* it was lost */
};

extern struct local {
	struct pairing *pairings;
	unsigned count;
	uint64_t pulls, stale, together, mapped, losses, kills, descriptors, answers;
} local;

struct pairing *pairing_of(const struct lane *a, const struct lane *b); /* NULL: they never meet */
void side_wake(struct side *side, vb_time at);
void side_let_go(struct side *side); /* what it copies */

#endif
