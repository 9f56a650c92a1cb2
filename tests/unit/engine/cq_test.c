#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include "core/queues.h"
#include "../unit.h"

static struct vb_cq *created(uint32_t capacity)
{
	struct vb_cq *cq;
	assert_int_equal(vb_cq_create(NULL, &(struct vb_cq_config){ .capacity = capacity }, &cq), 0);
	return cq;
}

static enum vb_cq_outcome push_status(struct vb_cq *cq, uint64_t wr_id, uint32_t status, bool solicited)
{
	return vb_cq_push(cq, &(struct vb_wc){ .wr_id = wr_id, .status = status }, solicited);
}

static enum vb_cq_outcome push(struct vb_cq *cq, uint64_t wr_id)
{
	return push_status(cq, wr_id, VB_WC_SUCCESS, false);
}

static void expect_ids(struct vb_cq *cq, uint64_t first, int count)
{
	struct vb_wc wc;
	for (int i = 0; i < count; i++) {
		assert_int_equal(vb_cq_poll(cq, &wc, 1), 1);
		assert_int_equal(wc.wr_id, first + i);
	}
}

static void cq__refuses_impossible_capacities(void **state)
{
	struct vb_cq *cq = NULL;
	assert_int_equal(vb_cq_create(NULL, &(struct vb_cq_config){ .capacity = 0 }, &cq), -EINVAL);
	assert_int_equal(vb_cq_create(NULL, &(struct vb_cq_config){ .capacity = VB_MAX_CQE + 1 }, &cq), -EINVAL);
	assert_null(cq);
}

static long faults_of_making(struct vb_cq **queues, unsigned count)
{
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	for (unsigned i = 0; i < count; i++)
		queues[i] = created(1024);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt;
}

/* Some programs make thousands, of the size that they happen to ask for. */
static void cq__takes_no_memory_before_it_is_used(void **state)
{
	enum { MANY = 500, PAGES_EACH = 8 }; /* of the 22 that the ring has */
	static struct vb_cq *queues[MANY];
	mallopt(M_PERTURB, 0); /* which would use it */
	assert_in_range(faults_of_making(queues, MANY), 0, MANY * PAGES_EACH);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(vb_cq_destroy(queues[i]), 0);
}

static void cq__keeps_order_over_many_wraps(void **state)
{
	for (uint32_t capacity = 1; capacity <= 9; capacity++) {
		struct vb_cq *cq = created(capacity);
		struct vb_wc wc[16];
		uint64_t pushed = 0, taken = 0;
		for (int round = 0; round < 100; round++) {
			for (uint32_t i = 0; i < capacity; i++)
				assert_int_equal(push(cq, pushed++), VB_CQ_STORED);
			while (taken < pushed) {
				int n = vb_cq_poll(cq, wc, 1 + round % 5);
				assert_in_range(n, 1, 1 + round % 5);
				for (int i = 0; i < n; i++)
					assert_int_equal(wc[i].wr_id, taken++);
			}
		}
		assert_int_equal(vb_cq_destroy(cq), 0);
	}
}

static void cq__order_survives_the_wrap_of_its_indices(void **state)
{
	struct vb_cq *cq = created(8);
	atomic_store(&cq->head, UINT32_MAX - 2);
	atomic_store(&cq->tail, UINT32_MAX - 2);
	for (int i = 0; i < 8; i++)
		assert_int_equal(push(cq, i), VB_CQ_STORED);
	assert_int_equal(push(cq, 8), VB_CQ_OVERRUN);
	expect_ids(cq, 0, 8);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__is_empty_follows_its_content(void **state)
{
	struct vb_cq *cq = created(4);
	struct vb_wc wc;
	assert_true(vb_cq_is_empty(cq));
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 0);
	push(cq, 1);
	assert_false(vb_cq_is_empty(cq));
	assert_int_equal(vb_cq_poll(cq, &wc, 0), 0);
	assert_false(vb_cq_is_empty(cq));
	expect_ids(cq, 1, 1);
	assert_true(vb_cq_is_empty(cq));
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__overrun_is_told_once_and_then_polling_fails(void **state)
{
	struct vb_cq *cq = created(3);
	struct vb_wc wc[8];
	for (int i = 0; i < 3; i++)
		assert_int_equal(push(cq, i), VB_CQ_STORED);
	assert_int_equal(push(cq, 3), VB_CQ_OVERRUN);
	assert_int_equal(push(cq, 4), VB_CQ_LOST);
	assert_int_equal(vb_cq_poll(cq, wc, 2), 2);
	assert_int_equal(push(cq, 5), VB_CQ_LOST);
	assert_int_equal(vb_cq_poll(cq, wc, 8), 1);
	assert_int_equal(wc[0].wr_id, 2);
	assert_false(vb_cq_is_empty(cq));
	assert_int_equal(vb_cq_poll(cq, wc, 8), -EIO);
	assert_int_equal(vb_cq_poll(cq, wc, 8), -EIO);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__that_ignores_overruns_keeps_the_newest(void **state)
{
	struct vb_cq *cq;
	assert_int_equal(vb_cq_create(NULL, &(struct vb_cq_config){ .capacity = 3, .ignore_overrun = true }, &cq), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(push(cq, i), VB_CQ_STORED);
	expect_ids(cq, 7, 3);
	assert_true(vb_cq_is_empty(cq));
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__resize_keeps_what_waits_and_its_order(void **state)
{
	struct vb_cq *cq = created(5);
	for (int i = 0; i < 5; i++)
		push(cq, i);
	expect_ids(cq, 0, 3);
	for (int i = 5; i < 8; i++)
		push(cq, i);
	assert_int_equal(vb_cq_resize(cq, 100), 0);
	assert_int_equal(vb_cq_capacity(cq), 100);
	for (int i = 8; i < 103; i++)
		assert_int_equal(push(cq, i), VB_CQ_STORED);
	assert_int_equal(vb_cq_resize(cq, 99), -EINVAL);
	assert_int_equal(vb_cq_capacity(cq), 100);
	expect_ids(cq, 3, 98);
	assert_int_equal(vb_cq_resize(cq, 2), 0);
	assert_int_equal(push(cq, 103), VB_CQ_OVERRUN);
	expect_ids(cq, 101, 2);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__resize_refuses_impossible_capacities(void **state)
{
	struct vb_cq *cq = created(5);
	assert_int_equal(vb_cq_resize(cq, 0), -EINVAL);
	assert_int_equal(vb_cq_resize(cq, VB_MAX_CQE + 1), -EINVAL);
	assert_int_equal(vb_cq_capacity(cq), 5);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__armed_for_the_next_fires_once(void **state)
{
	struct vb_cq *cq = created(8);
	assert_int_equal(push(cq, 0), VB_CQ_STORED);
	vb_cq_request_notify(cq, false);
	assert_int_equal(push(cq, 1), VB_CQ_NOTIFY);
	assert_int_equal(push(cq, 2), VB_CQ_STORED);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__armed_for_solicited_waits_for_one_or_for_a_failure(void **state)
{
	struct vb_cq *cq = created(16);
	vb_cq_request_notify(cq, true);
	assert_int_equal(push(cq, 0), VB_CQ_STORED);
	assert_int_equal(push_status(cq, 1, VB_WC_SUCCESS, true), VB_CQ_NOTIFY);
	assert_int_equal(push_status(cq, 2, VB_WC_SUCCESS, true), VB_CQ_STORED);
	vb_cq_request_notify(cq, true);
	assert_int_equal(push(cq, 3), VB_CQ_STORED);
	assert_int_equal(push_status(cq, 4, VB_WC_WR_FLUSH_ERR, false), VB_CQ_NOTIFY);
	assert_int_equal(push_status(cq, 5, VB_WC_WR_FLUSH_ERR, false), VB_CQ_STORED);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__a_solicited_request_does_not_weaken_the_next(void **state)
{
	struct vb_cq *cq = created(8);
	vb_cq_request_notify(cq, false);
	vb_cq_request_notify(cq, true);
	assert_int_equal(push(cq, 0), VB_CQ_NOTIFY);
	vb_cq_request_notify(cq, true);
	vb_cq_request_notify(cq, false);
	assert_int_equal(push(cq, 1), VB_CQ_NOTIFY);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

/* A program polls, finds nothing, arms and sleeps: it must hear of what came before it armed. */
static void cq__armed_after_a_poll_tells_of_what_came_between(void **state)
{
	struct vb_cq *cq = created(8);
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 0);
	assert_false(vb_cq_request_notify(cq, false)); /* there is nothing yet */
	assert_int_equal(push(cq, 0), VB_CQ_NOTIFY);
	assert_int_equal(push(cq, 1), VB_CQ_STORED);
	assert_false(vb_cq_request_notify(cq, false)); /* of these the holder knows by the notification */
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 1);
	assert_true(vb_cq_request_notify(cq, false)); /* and one is left */
	assert_int_equal(push(cq, 2), VB_CQ_STORED);  /* that was the notification */
	expect_ids(cq, 1, 2);
	assert_int_equal(push(cq, 3), VB_CQ_STORED);
	assert_true(vb_cq_request_notify(cq, false));
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__armed_for_solicited_after_a_poll_tells_of_such_alone(void **state)
{
	struct vb_cq *cq = created(8);
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 0);
	assert_int_equal(push(cq, 0), VB_CQ_STORED);
	assert_false(vb_cq_request_notify(cq, true));
	assert_int_equal(push_status(cq, 1, VB_WC_SUCCESS, true), VB_CQ_NOTIFY);
	assert_int_equal(push(cq, 2), VB_CQ_STORED);
	expect_ids(cq, 0, 2);
	assert_false(vb_cq_request_notify(cq, true)); /* the solicited one is taken */
	assert_int_equal(push_status(cq, 3, VB_WC_WR_FLUSH_ERR, false), VB_CQ_NOTIFY);
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 1);
	assert_true(vb_cq_request_notify(cq, true));
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void cq__is_busy_while_used(void **state)
{
	struct vb_cq *cq = created(8);
	atomic_fetch_add(&cq->users, 1);
	assert_int_equal(vb_cq_destroy(cq), -EBUSY);
	atomic_fetch_sub(&cq->users, 1);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

/* Two lanes add, two threads take, a third resizes: everything arrives once, and each lane's in its order. */
enum { LANES = 2, POLLERS = 2, PER_LANE = 20000, ROOM = 512 };

struct shared {
	struct vb_cq *cq;
	atomic_uint added, taken, next_lane;
	atomic_bool is_done;
	atomic_uchar seen[LANES][PER_LANE];
};

static void *add(void *arg)
{
	struct shared *shared = arg;
	uint64_t lane = atomic_fetch_add(&shared->next_lane, 1);
	for (uint64_t i = 0; i < PER_LANE; i++) {
		uint32_t place = atomic_fetch_add(&shared->added, 1);
		while (place >= atomic_load(&shared->taken) + ROOM)
			sched_yield();
		push(shared->cq, lane << 32 | i);
	}
	return NULL;
}

static void *take(void *arg)
{
	struct shared *shared = arg;
	uint64_t last[LANES] = { 0 };
	struct vb_wc wc[7];
	while (atomic_load(&shared->taken) < LANES * PER_LANE) {
		int n = vb_cq_poll(shared->cq, wc, 7);
		if (n <= 0)
			sched_yield();
		for (int i = 0; i < n; i++) {
			uint64_t lane = wc[i].wr_id >> 32, sequence = wc[i].wr_id & UINT32_MAX;
			if (sequence + 1 <= last[lane])
				atomic_fetch_add(&shared->seen[lane][sequence], 100);
			last[lane] = sequence + 1;
			atomic_fetch_add(&shared->seen[lane][sequence], 1);
			atomic_fetch_add(&shared->taken, 1);
		}
	}
	return NULL;
}

static void *resize(void *arg)
{
	struct shared *shared = arg;
	for (uint32_t size = ROOM; !atomic_load(&shared->is_done); size = size == ROOM ? 4 * ROOM : ROOM) {
		vb_cq_resize(shared->cq, size);
		vb_cq_request_notify(shared->cq, size == ROOM);
		sched_yield();
	}
	return NULL;
}

static void cq__shared_by_threads_gives_everything_once_and_in_order(void **state)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	pthread_t threads[LANES + POLLERS], resizer;
	shared->cq = created(ROOM);
	for (int i = 0; i < LANES + POLLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < LANES ? add : take, shared), 0);
	assert_int_equal(pthread_create(&resizer, NULL, resize, shared), 0);
	for (int i = 0; i < LANES + POLLERS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&shared->is_done, true);
	pthread_join(resizer, NULL);
	for (int lane = 0; lane < LANES; lane++)
		for (int i = 0; i < PER_LANE; i++)
			assert_int_equal(shared->seen[lane][i], 1);
	assert_true(vb_cq_is_empty(shared->cq));
	assert_int_equal(vb_cq_destroy(shared->cq), 0);
	free(shared);
}

static void note_id(void *to, uint32_t index, const struct vb_wc *wc)
{
	((uint64_t *)to)[index] = wc->wr_id;
}

static void cq__shows_completions_where_they_lie(void **state)
{
	struct vb_cq *cq = created(4);
	uint64_t ids[4] = { 0 };
	for (uint64_t id = 1; id <= 4; id++)
		push(cq, id);
	assert_int_equal(vb_cq_take(cq, 3, note_id, ids), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(ids[i], i + 1);
	push(cq, 5); /* around the ring's end */
	assert_int_equal(vb_cq_take(cq, 4, note_id, ids), 2);
	assert_int_equal(ids[0], 4);
	assert_int_equal(ids[1], 5);
	assert_int_equal(vb_cq_take(cq, 4, note_id, ids), 0);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cq__refuses_impossible_capacities),
		cmocka_unit_test(cq__takes_no_memory_before_it_is_used),
		cmocka_unit_test(cq__keeps_order_over_many_wraps),
		cmocka_unit_test(cq__shows_completions_where_they_lie),
		cmocka_unit_test(cq__order_survives_the_wrap_of_its_indices),
		cmocka_unit_test(cq__is_empty_follows_its_content),
		cmocka_unit_test(cq__overrun_is_told_once_and_then_polling_fails),
		cmocka_unit_test(cq__that_ignores_overruns_keeps_the_newest),
		cmocka_unit_test(cq__resize_keeps_what_waits_and_its_order),
		cmocka_unit_test(cq__resize_refuses_impossible_capacities),
		cmocka_unit_test(cq__armed_for_the_next_fires_once),
		cmocka_unit_test(cq__armed_for_solicited_waits_for_one_or_for_a_failure),
		cmocka_unit_test(cq__a_solicited_request_does_not_weaken_the_next),
		cmocka_unit_test(cq__armed_after_a_poll_tells_of_what_came_between),
		cmocka_unit_test(cq__armed_for_solicited_after_a_poll_tells_of_such_alone),
		cmocka_unit_test(cq__is_busy_while_used),
		cmocka_unit_test(cq__shared_by_threads_gives_everything_once_and_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
