/* Completion queues. A ring under a short lock, since several lanes add and several threads take.
 * Holds: completions leave in the order in which they were added, each once; after an overrun what is stored can still
 * be taken, nothing is added any more, and polling the empty queue is an error. IBA vol. 1, 10.2.4, 11.4.2.
 * Not here: telling the holder (events.c). */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "core/memory.h"
#include "core/qp.h"
#include "core/queues.h"

static uint32_t slots_for(uint32_t capacity)
{
	return capacity < 2 ? 1 : 1u << (32 - __builtin_clz(capacity - 1));
}

/* Not zeroed, so that it takes memory as it is used: each completion is written whole before it is read. */
static struct vb_wc *ring_alloc(uint32_t size)
{
	return malloc((size_t)size * sizeof(struct vb_wc));
}

int vb_cq_create(struct vb_nic *nic, const struct vb_cq_config *config, struct vb_cq **cq)
{
	if (config->capacity == 0 || config->capacity > VB_MAX_CQE)
		return -EINVAL;
	struct vb_cq *new = calloc(1, sizeof(*new));
	uint32_t size = slots_for(config->capacity);
	struct vb_wc *ring = ring_alloc(size);
	if (!new || !ring) {
		free(ring);
		free(new);
		return -ENOMEM;
	}
	*new = (struct vb_cq){
		.nic = nic,
		.ring = ring,
		.size = size,
		.capacity = config->capacity,
		.ignore_overrun = config->ignore_overrun,
		.user = config->user,
		.last_waking = UINT32_MAX,
		.notice = { .of = VB_NOTICE_OF_CQ },
	};
	vb_list_init(&new->notice.link);
	*cq = new;
	return 0;
}

int vb_cq_destroy(struct vb_cq *cq)
{
	if (atomic_load_explicit(&cq->users, memory_order_acquire) > 0)
		return -EBUSY;
	assert(!vb_list_linked(&cq->notice.link));
	free(cq->ring);
	free(cq);
	return 0;
}

/* Completions keep their free-running index, so a glance without the lock sees nothing of a resize. */
int vb_cq_resize(struct vb_cq *cq, uint32_t capacity)
{
	if (capacity == 0 || capacity > VB_MAX_CQE)
		return -EINVAL;
	uint32_t size = slots_for(capacity);
	struct vb_wc *spare = ring_alloc(size);
	if (!spare)
		return -ENOMEM;
	vb_lock_take(&cq->lock);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	bool fits = tail - head <= capacity;
	if (fits) {
		for (uint32_t i = head; i != tail; i++)
			spare[i & (size - 1)] = cq->ring[i & (cq->size - 1)];
		struct vb_wc *old = cq->ring;
		cq->ring = spare;
		cq->size = size;
		cq->capacity = capacity;
		spare = old;
	}
	vb_lock_release(&cq->lock);
	free(spare);
	return fits ? 0 : -EINVAL;
}

uint32_t vb_cq_capacity(const struct vb_cq *cq)
{
	struct vb_lock *lock = (struct vb_lock *)&cq->lock;
	vb_lock_take(lock);
	uint32_t capacity = cq->capacity;
	vb_lock_release(lock);
	assert(capacity > 0);
	return capacity;
}

void *vb_cq_user(const struct vb_cq *cq)
{
	return cq->user;
}

/* A queue that has overrun is never empty: polling it has something to say. */
bool vb_cq_is_empty(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
		       atomic_load_explicit(&cq->tail, memory_order_acquire) &&
	       !atomic_load_explicit(&cq->is_overrun, memory_order_acquire);
}

/* Written once a notification, not at every poll: other threads read the line. */
static inline void note_poll(struct vb_cq *cq)
{
	if (!atomic_load_explicit(&cq->is_polled, memory_order_relaxed))
		atomic_store_explicit(&cq->is_polled, true, memory_order_relaxed);
}

/* Inline: whoever says what to do with them has it done without a call for each. */
__attribute__((always_inline)) static inline int take_all(struct vb_cq *cq, int n, vb_cq_taker *taker, void *to)
{
	if (n <= 0)
		return 0;
	note_poll(cq);
	if (vb_cq_is_empty(cq))
		return 0;
	vb_lock_take(&cq->lock);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t stored = atomic_load_explicit(&cq->tail, memory_order_relaxed) - head;
	uint32_t taken = stored < (uint32_t)n ? stored : (uint32_t)n;
	for (uint32_t i = 0; i < taken; i++) {
		const struct vb_wc *wc = &cq->ring[(head + i) & (cq->size - 1)];
		taker(to, i, wc);
		if (wc->qp) /* lives as long as a completion names it: vb_cq_forget_qp */
			atomic_store_explicit(&wc->qp->sq.released, wc->sq_index, memory_order_release);
	}
	atomic_store_explicit(&cq->head, head + taken, memory_order_release);
	bool is_broken = taken == 0 && atomic_load_explicit(&cq->is_overrun, memory_order_relaxed);
	vb_lock_release(&cq->lock);
	return is_broken ? -EIO : (int)taken;
}

int vb_cq_take(struct vb_cq *cq, int n, vb_cq_taker *taker, void *to)
{
	return take_all(cq, n, taker, to);
}

static void copy(void *to, uint32_t index, const struct vb_wc *wc)
{
	((struct vb_wc *)to)[index] = *wc;
}

int vb_cq_poll(struct vb_cq *cq, struct vb_wc *wc, int n)
{
	return take_all(cq, n, copy, wc);
}

void vb_cq_forget_qp(struct vb_cq *cq, uint32_t qpn)
{
	vb_lock_take(&cq->lock);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed), kept = head;
	for (uint32_t i = head; i != tail; i++) {
		const struct vb_wc *wc = &cq->ring[i & (cq->size - 1)];
		if (wc->qpn != qpn)
			cq->ring[kept++ & (cq->size - 1)] = *wc;
	}
	atomic_store_explicit(&cq->tail, kept, memory_order_release);
	vb_lock_release(&cq->lock);
	assert(kept - head <= tail - head);
}

/* The holder polled, and then there came a completion that notified nobody: it may not look again before it sleeps. */
static bool is_news(const struct vb_cq *cq, bool solicited_only)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t stored = atomic_load_explicit(&cq->tail, memory_order_relaxed) - head;
	if (stored == 0 || !atomic_load_explicit(&cq->is_polled, memory_order_relaxed))
		return false;
	return !solicited_only || cq->last_waking - head < stored;
}

static void fire(struct vb_cq *cq)
{
	cq->armed = VB_CQ_QUIET;
	atomic_store_explicit(&cq->is_polled, false, memory_order_relaxed);
}

/* A program that polls, arms and sleeps would miss what came after it had polled. The specification lets it miss that,
 * adapters that compare the consumer's index do not, and programs rely on them (UCX arms and does not poll again). */
bool vb_cq_request_notify(struct vb_cq *cq, bool solicited_only)
{
	vb_lock_take(&cq->lock);
	bool is_due = is_news(cq, solicited_only);
	if (is_due)
		fire(cq);
	else if (!solicited_only)
		cq->armed = VB_CQ_NEXT;
	else if (cq->armed == VB_CQ_QUIET)
		cq->armed = VB_CQ_SOLICITED;
	vb_lock_release(&cq->lock);
	return is_due;
}

struct vb_wc *vb_cq_claim(struct vb_cq *cq, bool wakes, enum vb_cq_outcome *outcome)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	assert(tail - head <= cq->capacity);
	if (atomic_load_explicit(&cq->is_overrun, memory_order_relaxed)) {
		*outcome = VB_CQ_LOST;
		return NULL;
	}
	if (tail - head >= cq->capacity) {
		if (!cq->ignore_overrun) {
			atomic_store_explicit(&cq->is_overrun, true, memory_order_release);
			*outcome = VB_CQ_OVERRUN;
			return NULL;
		}
		atomic_store_explicit(&cq->head, head + 1, memory_order_release); /* the oldest gives way */
	}
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	bool fires = cq->armed == VB_CQ_NEXT || (cq->armed == VB_CQ_SOLICITED && wakes);
	if (wakes)
		cq->last_waking = tail;
	if (fires)
		fire(cq);
	*outcome = fires ? VB_CQ_NOTIFY : VB_CQ_STORED;
	return &cq->ring[tail & (cq->size - 1)];
}

enum vb_cq_outcome vb_cq_push(struct vb_cq *cq, const struct vb_wc *wc, bool solicited)
{
	enum vb_cq_outcome outcome;
	vb_lock_take(&cq->lock);
	struct vb_wc *place = vb_cq_claim(cq, solicited || wc->status != VB_WC_SUCCESS, &outcome);
	if (place)
		*place = *wc;
	vb_lock_release(&cq->lock);
	return outcome;
}

void vb_cq_check(const struct vb_cq *cq)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	assert(tail - head <= cq->capacity && cq->capacity <= cq->size && (cq->size & (cq->size - 1)) == 0);
	assert(!cq->ignore_overrun || !atomic_load_explicit(&cq->is_overrun, memory_order_relaxed));
}
