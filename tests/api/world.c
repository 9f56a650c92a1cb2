/* Slots, random numbers, and what a call may answer. */
#include "fuzz.h"

#include <sys/mman.h>

uint64_t fuzz_seed;
atomic_bool is_over;
uint8_t *arena;
_Atomic uint32_t seen_qpns[64], seen_rkeys[64];

static struct slot slots[KINDS][SLOTS];

void world_open(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (unsigned i = 0; i < SLOTS; i++) {
			REQUIRE_EQUAL(pthread_rwlock_init(&slots[kind][i].lock, NULL), 0);
			slots[kind][i].kind = (enum kind)kind;
		}
	}
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(arena != MAP_FAILED);
}

/* What lives in others goes first. */
void world_close(void)
{
	static const enum kind order[] = { RSOCKET, CM_ID, CM_CHANNEL, QP, MW, MR, AH, SRQ, CQ, CHANNEL, XRCD, PD,
		CONTEXT };
	for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
		for (unsigned i = 0; i < SLOTS; i++) {
			struct slot *slot = &slots[order[k]][i];
			if (!slot->object)
				continue;
			int error = order[k] < CM_CHANNEL ? object_destroy(slot) : connection_destroy(slot);
			if (error)
				fail(__FILE__, __LINE__, "at the end, an object of kind %d is not destroyed: %s",
					order[k], strerror(error));
			REQUIRE_EQUAL(atomic_load(&slot->children), 0);
			vacate(slot);
		}
	}
	munmap(arena, ARENA);
}

/* ---- Random numbers ---------------------------------------------------------------------------------------------- */

uint64_t draw(struct worker *worker)
{
	uint64_t z = worker->random += 0x9E3779B97F4A7C15u; /* splitmix64 */
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

unsigned below(struct worker *worker, unsigned n)
{
	return (unsigned)(draw(worker) % n);
}

bool one_in(struct worker *worker, unsigned n)
{
	return below(worker, n) == 0;
}

uint64_t boundary(struct worker *worker)
{
	uint64_t power = (uint64_t)1 << below(worker, 64);
	switch (below(worker, 8)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return UINT32_MAX;
	case 3:
		return power - 1;
	case 4:
		return power;
	case 5:
		return power + 1;
	case 6:
		return draw(worker);
	default:
		return below(worker, 64);
	}
}

/* ---- Slots ------------------------------------------------------------------------------------------------------- */

static struct slot *hold(struct worker *worker, struct slot *slot, bool is_wanted)
{
	if (is_wanted && worker->held_count < MOST_HELD) {
		worker->held[worker->held_count++] = slot;
		return slot;
	}
	pthread_rwlock_unlock(&slot->lock);
	return NULL;
}

struct slot *use(struct worker *worker, enum kind kind)
{
	unsigned first = below(worker, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[kind][(first + i) % SLOTS];
		if (pthread_rwlock_tryrdlock(&slot->lock) == 0 && hold(worker, slot, slot->object))
			return slot;
	}
	return NULL;
}

static struct slot *lock_one(struct worker *worker, enum kind kind, bool is_taken)
{
	unsigned first = below(worker, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[kind][(first + i) % SLOTS];
		bool is_locked = pthread_rwlock_trywrlock(&slot->lock) == 0;
		if (is_locked && hold(worker, slot, (slot->object != NULL) == is_taken))
			return slot;
	}
	return NULL;
}

/* With what it lives in, so that nobody counts it while it goes. */
struct slot *own(struct worker *worker, enum kind kind)
{
	struct slot *slot = lock_one(worker, kind, true);
	for (unsigned i = 0; slot && i < slot->parent_count; i++)
		if (pthread_rwlock_tryrdlock(&slot->parents[i]->lock) || !hold(worker, slot->parents[i], true))
			return NULL;
	return slot;
}

struct slot *vacant(struct worker *worker, enum kind kind)
{
	return lock_one(worker, kind, false);
}

void adopt(struct worker *worker, struct slot *slot, void *object, struct slot *const *parents, unsigned count)
{
	slot->object = object;
	for (unsigned i = 0; i < count; i++) {
		if (!parents[i])
			continue;
		atomic_fetch_add(&parents[i]->children, 1);
		slot->parents[slot->parent_count++] = parents[i];
	}
	atomic_fetch_add(&worker->successes, 1);
}

void vacate(struct slot *slot)
{
	for (unsigned i = 0; i < slot->parent_count; i++)
		atomic_fetch_sub(&slot->parents[i]->children, 1);
	slot->parent_count = 0;
	slot->object = NULL;
	slot->has_wr_api = slot->is_ex = false;
}

void give_back_all(struct worker *worker)
{
	while (worker->held_count > 0)
		pthread_rwlock_unlock(&worker->held[--worker->held_count]->lock);
}

/* ---- What a call may answer -------------------------------------------------------------------------------------- */

static bool is_among(int error, const int *allowed)
{
	while (*allowed && *allowed != error)
		allowed++;
	return *allowed == error;
}

void expect_errors(struct worker *worker, int error, const int *allowed)
{
	if (error == 0)
		atomic_fetch_add(&worker->successes, 1);
	else if (!is_among(error, allowed))
		fail(__FILE__, __LINE__, "%s returns %d (%s), which its manual page does not allow",
			atomic_load(&worker->doing)->name, error, strerror(error));
}

bool expect_rc(struct worker *worker, long rc, const int *allowed)
{
	int error = rc < 0 ? errno : 0;
	if (rc < -1)
		fail(__FILE__, __LINE__, "%s returns %ld", atomic_load(&worker->doing)->name, rc);
	if (rc < 0 && error == 0)
		fail(__FILE__, __LINE__, "%s fails without an errno", atomic_load(&worker->doing)->name);
	expect_errors(worker, error, allowed);
	return rc >= 0;
}

bool expect_object(struct worker *worker, const void *object, const int *allowed)
{
	return expect_rc(worker, object ? 0 : -1, allowed);
}

/* Of those that nobody has in hand just now. */
static void list_children(const struct slot *parent)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (unsigned i = 0; i < SLOTS; i++) {
			struct slot *slot = &slots[kind][i];
			if (pthread_rwlock_tryrdlock(&slot->lock))
				continue;
			for (unsigned k = 0; k < slot->parent_count; k++)
				if (slot->parents[k] == parent)
					fprintf(stderr, "in it: kind %u, type %d\n", kind,
						kind == QP ? (int)((struct ibv_qp *)slot->object)->qp_type : -1);
			pthread_rwlock_unlock(&slot->lock);
		}
	}
}

void expect_gone(struct worker *worker, struct slot *slot, int error)
{
	unsigned children = atomic_load(&slot->children);
	if (slot->kind == MR && error == EBUSY)
		return; /* windows are bound to it, which nobody counts */
	if (error == (children ? EBUSY : 0)) {
		if (!error)
			vacate(slot);
		return;
	}
	list_children(slot);
	fail(__FILE__, __LINE__, "%s of an object with %u in it returns %d (%s)", atomic_load(&worker->doing)->name,
		children, error, strerror(error));
}
