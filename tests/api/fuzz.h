/* The API fuzzer: threads that call verbs, RDMA-CM and rsockets in random order, with random and boundary arguments, on
 * objects that they share. It knows nothing of ours but the public headers.
 *
 * What it does is what the API allows: a pointer is NULL only where the manual page says so, an object that one thread
 * destroys is used by no other, and what lives in an object goes before it or the call must refuse. So each object has
 * a slot with a lock: shared to use it, exclusive to destroy it, and a count of what lives in it. Everything else may
 * be wrong: sizes, states, keys, flags, the object's device, its domain, its order. */
#ifndef VB_TESTS_API_FUZZ_H
#define VB_TESTS_API_FUZZ_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "../threads/rig.h"

enum kind {
	CONTEXT,
	CHANNEL,
	PD,
	MR,
	MW,
	CQ,
	SRQ,
	QP,
	AH,
	XRCD,
	CM_CHANNEL,
	CM_ID,
	RSOCKET,
	KINDS,
};

enum { SLOTS = 16 /* of a kind */, MOST_PARENTS = 5, MOST_HELD = 16, ARENA = 4 << 20 };

struct slot {
	pthread_rwlock_t lock;
	enum kind kind;
	void *object; /* NULL: the slot is free */
	int fd;       /* an rsocket */
	struct slot *parents[MOST_PARENTS];
	unsigned parent_count;
	atomic_uint children;
	uint8_t *memory; /* of a region */
	size_t length;
	bool has_wr_api, is_ex;
};

struct worker;

struct call {
	const char *name;
	void (*run)(struct worker *);
	unsigned weight;
};

struct worker {
	unsigned number;
	uint64_t random;
	const struct call *_Atomic doing;
	_Atomic double since;
	atomic_ulong calls, successes;
	struct slot *held[MOST_HELD];
	unsigned held_count;
	double longest;
	const struct call *slowest;
	pthread_t thread;
};

extern uint64_t fuzz_seed;
extern atomic_bool is_over;
extern uint8_t *arena; /* all memory that is registered; nobody reads or writes it but the adapter */
extern _Atomic uint32_t seen_qpns[64], seen_rkeys[64];

/* ---- world.c ----------------------------------------------------------------------------------------------------- */

void world_open(void);
/* Destroys what is left, which must go: in the order in which it may. */
void world_close(void);
uint64_t draw(struct worker *);
unsigned below(struct worker *, unsigned n);
bool one_in(struct worker *, unsigned n);
/* Zero, one, powers of two and their neighbours, the largest of a width, or anything. */
uint64_t boundary(struct worker *);
#define PICK(worker, array) ((array)[below((worker), sizeof(array) / sizeof((array)[0]))])

/* A random object of this kind, shared or for this call alone; NULL: there is none, or others use it. All is given back
 * when the call is over. */
struct slot *use(struct worker *, enum kind);
struct slot *own(struct worker *, enum kind);
/* A free slot, and what becomes its object. parents may contain NULLs. */
struct slot *vacant(struct worker *, enum kind);
void adopt(struct worker *, struct slot *, void *object, struct slot *const *parents, unsigned count);
/* The object has been destroyed. */
void vacate(struct slot *);
void give_back_all(struct worker *);

/* What a call has come to is what its manual page allows: 0, or one of the errors that end with 0. */
void expect_errors(struct worker *, int error, const int *allowed);
#define EXPECT(worker, error, ...) expect_errors((worker), (error), (const int[]){ __VA_ARGS__, 0 })
/* Likewise of calls that return -1 and set errno: rc; and of calls that return NULL. Both say whether it succeeded. */
bool expect_rc(struct worker *, long rc, const int *allowed);
bool expect_object(struct worker *, const void *object, const int *allowed);
#define EXPECT_RC(worker, rc, ...)         expect_rc((worker), (rc), (const int[]){ __VA_ARGS__, 0 })
#define EXPECT_OBJECT(worker, object, ...) expect_object((worker), (object), (const int[]){ __VA_ARGS__, 0 })
/* A destruction: refused with EBUSY as long as something lives in it, and done otherwise. */
void expect_gone(struct worker *, struct slot *, int error);

/* ---- The calls --------------------------------------------------------------------------------------------------- */

struct calls {
	const struct call *calls;
	unsigned count;
};
extern const struct calls object_calls, queue_calls, connection_calls, socket_calls;

/* Of a kind, at the end. */
int object_destroy(struct slot *);
int connection_destroy(struct slot *);

/* ---- honest.c: what everybody must leave alone ------------------------------------------------------------------- */

void honest_start(void);
void honest_stop(void);

#endif
