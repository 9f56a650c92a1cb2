#include <errno.h>
#include <pthread.h>
#include "core/memory.h"
#include "core/queues.h"
#include "../unit.h"

static struct vb_pd pd;

static struct vb_srq *created(uint32_t max_wr, uint32_t limit)
{
	struct vb_srq *srq;
	struct vb_srq_config config = { .max_wr = max_wr, .max_sge = 2, .limit = limit };
	assert_int_equal(vb_srq_create(&pd, &config, &srq), 0);
	return srq;
}

static int post(struct vb_srq *srq, uint64_t wr_id)
{
	struct vb_sge sges[2] = { { .addr = wr_id, .length = 1 }, { .addr = wr_id + 1, .length = 2 } };
	return vb_srq_post(srq, &(struct vb_recv_wr){ .wr_id = wr_id, .sges = sges, .sge_count = wr_id % 3 });
}

static void post_ids(struct vb_srq *srq, uint64_t first, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(post(srq, first + i), 0);
}

union wqe {
	struct vb_recv_wqe wqe;
	uint8_t room[sizeof(struct vb_recv_wqe) + 2 * sizeof(struct vb_sge)];
};

/* Takes one; returns whether the limit was reached. */
static bool take(struct vb_srq *srq, uint64_t wr_id)
{
	union wqe copy;
	bool limit_reached;
	assert_true(vb_srq_take(srq, &copy.wqe, &limit_reached));
	assert_int_equal(copy.wqe.wr_id, wr_id);
	assert_int_equal(copy.wqe.sge_count, wr_id % 3);
	for (uint32_t i = 0; i < copy.wqe.sge_count; i++)
		assert_int_equal(copy.wqe.sges[i].addr, wr_id + i);
	return limit_reached;
}

static uint32_t limit_of(struct vb_srq *srq)
{
	struct vb_srq_config config;
	vb_srq_query(srq, &config);
	return config.limit;
}

static void srq__refuses_impossible_configurations(void **state)
{
	struct vb_srq *srq = NULL;
	static const struct vb_srq_config bad[] = {
		{ .max_wr = 0, .max_sge = 1 },
		{ .max_wr = VB_MAX_SRQ_WR + 1, .max_sge = 1 },
		{ .max_wr = 1, .max_sge = VB_MAX_SGE + 1 },
		{ .max_wr = 4, .max_sge = 1, .limit = 5 },
	};
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(vb_srq_create(&pd, &bad[i], &srq), -EINVAL);
	assert_null(srq);
	assert_int_equal(pd.users, 0);
}

static void srq__gives_requests_in_the_order_of_posting(void **state)
{
	struct vb_srq *srq = created(5, 0);
	union wqe copy;
	bool limit_reached = true;
	for (int round = 0; round < 10; round++) {
		post_ids(srq, round * 10, 5);
		assert_int_equal(post(srq, 99), -ENOMEM);
		for (int i = 0; i < 5; i++)
			assert_false(take(srq, round * 10 + i));
	}
	assert_false(vb_srq_take(srq, &copy.wqe, &limit_reached));
	assert_false(limit_reached);
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__limit_is_reported_once_when_fewer_are_left(void **state)
{
	struct vb_srq *srq = created(8, 3);
	post_ids(srq, 0, 5);
	assert_false(take(srq, 0));
	assert_false(take(srq, 1)); /* 3 are left, which is not below 3 */
	assert_int_equal(limit_of(srq), 3);
	assert_true(take(srq, 2));
	assert_int_equal(limit_of(srq), 0);
	assert_false(take(srq, 3));
	post_ids(srq, 5, 4);
	assert_int_equal(vb_srq_set_limit(srq, 5), 0);
	assert_true(take(srq, 4));
	assert_false(take(srq, 5));
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__limit_beyond_its_size_is_refused(void **state)
{
	struct vb_srq *srq = created(8, 3);
	assert_int_equal(vb_srq_set_limit(srq, 9), -EINVAL);
	assert_int_equal(limit_of(srq), 3);
	assert_int_equal(vb_srq_resize(srq, 2), -EINVAL);
	assert_int_equal(vb_srq_set_limit(srq, 0), 0);
	post_ids(srq, 0, 1);
	assert_false(take(srq, 0));
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__resize_keeps_what_waits_and_its_order(void **state)
{
	struct vb_srq *srq = created(5, 0);
	struct vb_srq_config config;
	post_ids(srq, 0, 5);
	for (int i = 0; i < 3; i++)
		take(srq, i);
	post_ids(srq, 5, 3);
	assert_int_equal(vb_srq_resize(srq, 50), 0);
	post_ids(srq, 8, 45);
	assert_int_equal(post(srq, 99), -ENOMEM);
	assert_int_equal(vb_srq_resize(srq, 49), -EINVAL);
	assert_int_equal(vb_srq_resize(srq, 0), -EINVAL);
	assert_int_equal(vb_srq_resize(srq, VB_MAX_SRQ_WR + 1), -EINVAL);
	for (int i = 3; i < 51; i++)
		take(srq, i);
	assert_int_equal(vb_srq_resize(srq, 2), 0);
	vb_srq_query(srq, &config);
	assert_int_equal(config.max_wr, 2);
	assert_int_equal(config.max_sge, 2);
	assert_int_equal(post(srq, 99), -ENOMEM);
	take(srq, 51);
	take(srq, 52);
	assert_int_equal(vb_srq_destroy(srq), 0);
}

static void srq__is_busy_while_used_and_uses_its_domain(void **state)
{
	struct vb_srq *srq = created(5, 0);
	assert_int_equal(pd.users, 1);
	atomic_fetch_add(&srq->users, 1);
	assert_int_equal(vb_srq_destroy(srq), -EBUSY);
	atomic_fetch_sub(&srq->users, 1);
	assert_int_equal(vb_srq_destroy(srq), 0);
	assert_int_equal(pd.users, 0);
}

enum { THREADS = 2, POSTED = 20000 };

struct shared {
	struct vb_srq *srq;
	atomic_uint taken;
	atomic_uchar seen[POSTED];
};

static void *take_many(void *arg)
{
	struct shared *shared = arg;
	union wqe copy;
	bool limit_reached;
	while (atomic_load(&shared->taken) < POSTED) {
		if (!vb_srq_take(shared->srq, &copy.wqe, &limit_reached)) {
			sched_yield();
			continue;
		}
		atomic_fetch_add(&shared->seen[copy.wqe.wr_id], 1);
		atomic_fetch_add(&shared->taken, 1);
	}
	return NULL;
}

static void srq__shared_by_lanes_gives_each_request_once(void **state)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	pthread_t threads[THREADS];
	shared->srq = created(64, 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, shared), 0);
	for (int i = 0; i < POSTED; i++) {
		while (post(shared->srq, i) == -ENOMEM)
			sched_yield();
		if (i % 100 == 0)
			vb_srq_resize(shared->srq, 64 + i % 200); /* or refused: more are waiting */
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < POSTED; i++)
		assert_int_equal(shared->seen[i], 1);
	assert_int_equal(vb_srq_destroy(shared->srq), 0);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(srq__refuses_impossible_configurations),
		cmocka_unit_test(srq__gives_requests_in_the_order_of_posting),
		cmocka_unit_test(srq__limit_is_reported_once_when_fewer_are_left),
		cmocka_unit_test(srq__limit_beyond_its_size_is_refused),
		cmocka_unit_test(srq__resize_keeps_what_waits_and_its_order),
		cmocka_unit_test(srq__is_busy_while_used_and_uses_its_domain),
		cmocka_unit_test(srq__shared_by_lanes_gives_each_request_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
