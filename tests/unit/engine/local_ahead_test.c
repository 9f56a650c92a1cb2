/* What is pulled together: WRITEs that wait behind the one being pulled, and READs that were lent. */
#include "local.h"

enum { SHORT = 10000, APART = 20000, FEW = 5 };

static void post_writes(struct pair *p, unsigned n)
{
	for (uint32_t i = 0; i < n; i++)
		pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE + i * APART, SHORT, PLACE + i * APART);
}

static bool has_arrived(const struct pair *p, uint32_t from, uint32_t to, uint32_t length)
{
	return memcmp(p->side[0].memory + from, p->side[1].memory + to, length) == 0;
}

static void assert_written(struct pair *p, unsigned n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_done(p, VB_WC_RDMA_WRITE);
		assert_true(has_arrived(p, SOURCE + i * APART, PLACE + i * APART, SHORT));
	}
	assert_nothing_more(p);
}

static void writes__that_wait_are_pulled_together(void **state)
{
	struct pair *p = open_filled(LENDS);
	post_writes(p, FEW);
	pair_settle(p);
	assert_written(p, FEW);
	assert_int_equal(p->pulls, 1);
	pair_close(p);
}

static void writes__are_pulled_so_many_at_once(void **state)
{
	struct pair *p = open_filled(LENDS);
	post_writes(p, VB_LOCAL_PULL_ITEMS + 1);
	pair_settle(p);
	assert_written(p, VB_LOCAL_PULL_ITEMS + 1);
	assert_int_equal(p->pulls, 2);
	pair_close(p);
}

static void writes__end_in_their_turn(void **state)
{
	struct pair *p = open_filled(LENDS);
	struct vb_local_pull pull;
	post_writes(p, 2);
	pair_send(p, 0);
	assert_true(pair_take_descriptors(p, 1, PAIR_RING));
	assert_true(vb_local_pull(&p->side[1].other, &pull, p->now));
	assert_int_equal(pull.lent_count, 2);
	pair_copy(&pull);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(has_arrived(p, SOURCE + i * APART, PLACE + i * APART, SHORT - 8));
		assert_int_equal(word_at(p, 1, PLACE + i * APART + SHORT - 8), 0);
	}
	assert_int_equal(vb_local_pulled(&p->side[1].other, VB_PULLED, p->now), 1);
	p->side[0].out.descriptor_head++;
	pair_settle(p);
	assert_written(p, 2);
	pair_close(p);
}

static void write__that_is_refused_has_touched_nothing(void **state)
{
	struct pair *p = open_filled(LENDS);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, SHORT);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE + 2 * APART);
	wr.rkey ^= 0x100;
	post_writes(p, 2);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, SHORT, PLACE + 3 * APART);
	pair_settle(p);
	for (int i = 0; i < 2; i++)
		assert_done(p, VB_WC_RDMA_WRITE);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_REM_ACCESS_ERR);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_WR_FLUSH_ERR);
	for (uint32_t i = 2; i < 4; i++)
		for (uint32_t at = 0; at < SHORT; at++)
			assert_int_equal(p->side[1].memory[PLACE + i * APART + at], 0);
	assert_int_equal(p->pulls, 1);
	pair_close(p);
}

/* The last bytes of the one would come after what was pulled of the other. */
static void write__over_anothers_end_waits_for_it(void **state)
{
	struct pair *p = open_filled(LENDS);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, SHORT, PLACE);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE + APART, SHORT, PLACE + SHORT / 2);
	pair_settle(p);
	assert_true(has_arrived(p, SOURCE, PLACE, SHORT / 2));
	assert_true(has_arrived(p, SOURCE + APART, PLACE + SHORT / 2, SHORT));
	assert_int_equal(p->pulls, 2);
	pair_close(p);
}

static void write__over_all_of_another_comes_last(void **state)
{
	struct pair *p = open_filled(LENDS);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, SHORT, PLACE);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE + APART, SHORT, PLACE);
	pair_settle(p);
	assert_true(has_arrived(p, SOURCE + APART, PLACE, SHORT));
	assert_int_equal(p->pulls, 1);
	pair_close(p);
}

/* Completions would be behind what is behind them. */
static void writes__with_immediate_data_are_pulled_alone(void **state)
{
	struct pair *p = open_filled(LENDS);
	for (int i = 0; i < 3; i++)
		pair_post_receive(p, 1, 5, 0, 8);
	for (uint32_t i = 0; i < 3; i++) {
		struct vb_sge sge = pair_sge(p, 0, SOURCE + i * APART, SHORT);
		struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE_WITH_IMM, &sge, PLACE + i * APART);
		assert_int_equal(pair_try_post(p, 0, &wr), 0);
	}
	pair_settle(p);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pair_completion(p, 1).status, VB_WC_SUCCESS);
	assert_written(p, 3);
	assert_int_equal(p->pulls, 3);
	pair_close(p);
}

/* Whichever of them it is: one by one. */
static void writes__that_cannot_be_had_together_are_pulled_singly(void **state)
{
	struct pair *p = open_filled(LENDS);
	post_writes(p, 2);
	pair_send(p, 0);
	assert_true(pair_take_descriptors(p, 1, PAIR_RING));
	p->outcome = VB_PULL_FAULT;
	assert_true(pair_pull(p, 1));
	p->outcome = VB_PULLED;
	pair_settle(p);
	assert_written(p, 2);
	assert_int_equal(p->pulls, 3);
	pair_close(p);
}

/* The lane was given away before it had the bytes: then they are pulled anew, if they still may be. */
static void write__whose_key_is_closed_meanwhile_is_not_pulled(void **state)
{
	struct pair *p = open_filled(LENDS);
	struct vb_local_pull pull;
	struct vb_mr_config config = { .memory = p->side[1].memory + PLACE,
		.length = SHORT,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE };
	struct vb_sge sge = pair_sge(p, 0, SOURCE, SHORT);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, 0);
	struct vb_mr *mr;
	assert_int_equal(vb_mr_register(p->side[1].pd, &config, &mr), 0);
	wr.remote_addr = 0;
	wr.rkey = vb_mr_key(mr);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, SHORT, PLACE + APART);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_send(p, 0);
	assert_true(pair_take_descriptors(p, 1, PAIR_RING));
	assert_true(vb_local_pull(&p->side[1].other, &pull, p->now));
	assert_int_equal(pull.lent_count, 2);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_REM_ACCESS_ERR);
	assert_int_equal(word_at(p, 1, PLACE), 0);
	pair_close(p);
}

/* ---- READs ------------------------------------------------------------------------------------------------------- */

static void post_reads(struct pair *p, unsigned n)
{
	for (uint32_t i = 0; i < n; i++)
		pair_post(p, 0, VB_WR_RDMA_READ, PLACE + i * APART, SHORT, SOURCE + i * APART);
}

static void assert_have_read(struct pair *p, unsigned n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_done(p, VB_WC_RDMA_READ);
		assert_true(has_arrived(p, PLACE + i * APART, SOURCE + i * APART, SHORT));
	}
	assert_nothing_more(p);
}

static struct pair *open_with_lent_reads(unsigned n)
{
	struct pair *p = open_filled(LENDS);
	fill(p, 1, SOURCE, LONG);
	post_reads(p, n);
	pair_send(p, 0);
	while (pair_take_descriptors(p, 1, PAIR_RING))
		pair_send(p, 1);
	pair_take_answers(p, 0);
	return p;
}

static void reads__that_were_lent_are_pulled_together(void **state)
{
	struct pair *p = open_with_lent_reads(4);
	assert_true(pair_pull(p, 0));
	assert_have_read(p, 4);
	assert_int_equal(p->pulls, 1);
	pair_close(p);
}

static void reads__that_cannot_be_had_together_are_pulled_singly(void **state)
{
	struct pair *p = open_with_lent_reads(3);
	p->outcome = VB_PULL_STALE;
	assert_true(pair_pull(p, 0));
	p->outcome = VB_PULLED;
	assert_true(pair_pull(p, 0));
	assert_done(p, VB_WC_RDMA_READ);
	assert_true(vb_cq_is_empty(p->side[0].cq));
	pair_settle(p);
	for (int i = 1; i < 3; i++)
		assert_done(p, VB_WC_RDMA_READ);
	assert_int_equal(p->pulls, 3);
	assert_int_equal(p->descriptors, 3); /* none was asked for again */
	pair_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes__that_wait_are_pulled_together),
		cmocka_unit_test(writes__are_pulled_so_many_at_once),
		cmocka_unit_test(writes__end_in_their_turn),
		cmocka_unit_test(write__that_is_refused_has_touched_nothing),
		cmocka_unit_test(write__over_anothers_end_waits_for_it),
		cmocka_unit_test(write__over_all_of_another_comes_last),
		cmocka_unit_test(writes__with_immediate_data_are_pulled_alone),
		cmocka_unit_test(writes__that_cannot_be_had_together_are_pulled_singly),
		cmocka_unit_test(write__whose_key_is_closed_meanwhile_is_not_pulled),
		cmocka_unit_test(reads__that_were_lent_are_pulled_together),
		cmocka_unit_test(reads__that_cannot_be_had_together_are_pulled_singly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
