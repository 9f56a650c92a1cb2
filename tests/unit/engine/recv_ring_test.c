#include <errno.h>
#include <pthread.h>
#include "core/queues.h"
#include "../unit.h"

static int post(struct vb_recv_ring *ring, uint64_t wr_id, uint32_t sge_count)
{
	struct vb_sge sges[VB_MAX_SGE];
	for (uint32_t i = 0; i < sge_count; i++)
		sges[i] = (struct vb_sge){ .addr = wr_id * 100 + i, .length = i + 1, .lkey = (uint32_t)wr_id };
	return vb_recv_ring_post(ring, &(struct vb_recv_wr){ .wr_id = wr_id, .sges = sges, .sge_count = sge_count });
}

static void expect(struct vb_recv_ring *ring, uint64_t wr_id, uint32_t sge_count)
{
	const struct vb_recv_wqe *wqe = vb_recv_ring_peek(ring);
	assert_non_null(wqe);
	assert_int_equal(wqe->wr_id, wr_id);
	assert_int_equal(wqe->sge_count, sge_count);
	assert_int_equal(wqe->length, sge_count * (sge_count + 1) / 2);
	for (uint32_t i = 0; i < sge_count; i++) {
		assert_int_equal(wqe->sges[i].addr, wr_id * 100 + i);
		assert_int_equal(wqe->sges[i].length, i + 1);
		assert_int_equal(wqe->sges[i].lkey, wr_id);
	}
	assert_ptr_equal(vb_recv_ring_peek(ring), wqe);
	vb_recv_ring_pop(ring);
}

static void recv_ring__gives_back_what_was_posted_in_order(void **state)
{
	for (uint32_t max_wr = 1; max_wr <= 9; max_wr++) {
		struct vb_recv_ring ring;
		assert_int_equal(vb_recv_ring_init(&ring, max_wr, 5), 0);
		atomic_store(&ring.head, UINT32_MAX - 20);
		atomic_store(&ring.tail, UINT32_MAX - 20);
		uint64_t posted = 0, taken = 0;
		for (int round = 0; round < 20; round++) {
			for (uint32_t i = 0; i < max_wr; i++, posted++)
				assert_int_equal(post(&ring, posted, posted % 6), 0);
			assert_int_equal(vb_recv_ring_count(&ring), max_wr);
			assert_int_equal(post(&ring, posted, 1), -ENOMEM);
			for (; taken < posted; taken++)
				expect(&ring, taken, taken % 6);
			assert_null(vb_recv_ring_peek(&ring));
		}
		vb_recv_ring_deinit(&ring);
	}
}

static void recv_ring__refuses_what_does_not_fit(void **state)
{
	struct vb_recv_ring ring;
	assert_int_equal(vb_recv_ring_init(&ring, 4, 3), 0);
	assert_int_equal(post(&ring, 1, 4), -EINVAL);
	struct vb_sge sges[3] = { { .length = 0x40000000 }, { .length = 0x40000000 }, { .length = 1 } };
	struct vb_recv_wr wr = { .sges = sges, .sge_count = 3 };
	assert_int_equal(vb_recv_ring_post(&ring, &wr), -EINVAL);
	sges[0].length = sges[1].length = sges[2].length = UINT32_MAX;
	assert_int_equal(vb_recv_ring_post(&ring, &wr), -EINVAL);
	assert_int_equal(vb_recv_ring_count(&ring), 0);
	sges[0].length = sges[1].length = 0x40000000;
	sges[2].length = 0;
	assert_int_equal(vb_recv_ring_post(&ring, &wr), 0);
	assert_true(vb_recv_ring_peek(&ring)->length == VB_MAX_MESSAGE_BYTES);
	vb_recv_ring_deinit(&ring);
}

static void recv_ring__without_room_is_always_full_and_empty(void **state)
{
	struct vb_recv_ring ring;
	assert_int_equal(vb_recv_ring_init(&ring, 0, 4), 0);
	assert_int_equal(post(&ring, 1, 1), -ENOMEM);
	assert_null(vb_recv_ring_peek(&ring));
	assert_int_equal(vb_recv_ring_count(&ring), 0);
	vb_recv_ring_deinit(&ring);
}

enum { POSTERS = 2, PER_POSTER = 20000 };

static void *post_many(void *arg)
{
	struct vb_recv_ring *ring = arg;
	for (uint64_t i = 0; i < PER_POSTER; i++)
		while (post(ring, i, i % 4) == -ENOMEM)
			sched_yield();
	return NULL;
}

static void recv_ring__takes_posts_of_several_threads_while_one_takes(void **state)
{
	struct vb_recv_ring ring;
	pthread_t threads[POSTERS];
	static unsigned char seen[PER_POSTER];
	assert_int_equal(vb_recv_ring_init(&ring, 33, 3), 0);
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, &ring), 0);
	for (int taken = 0; taken < POSTERS * PER_POSTER;) {
		const struct vb_recv_wqe *wqe = vb_recv_ring_peek(&ring);
		if (!wqe) {
			sched_yield();
			continue;
		}
		seen[wqe->wr_id]++;
		expect(&ring, wqe->wr_id, wqe->wr_id % 4);
		taken++;
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PER_POSTER; i++)
		assert_int_equal(seen[i], POSTERS);
	vb_recv_ring_deinit(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recv_ring__gives_back_what_was_posted_in_order),
		cmocka_unit_test(recv_ring__refuses_what_does_not_fit),
		cmocka_unit_test(recv_ring__without_room_is_always_full_and_empty),
		cmocka_unit_test(recv_ring__takes_posts_of_several_threads_while_one_takes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
