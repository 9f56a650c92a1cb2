/* Groups of ranks: the order in which a ring passes them. */
#include "net/rank_groups.h"
#include "../unit.h"

static struct rank_groups groups;

static int teardown(void **state)
{
	rank_groups_close(&groups);
	return 0;
}

static void expect_order(const struct hosts *hosts, const uint32_t *lists, uint32_t count, uint32_t size,
	const uint32_t *order, uint32_t gpus)
{
	rank_groups_close(&groups);
	assert_int_equal(rank_groups_open_lists(&groups, hosts, lists, count, size), 0);
	assert_memory_equal(groups.rank_at, order, count * size * sizeof(*order));
	assert_int_equal(groups.gpus, gpus);
	for (uint32_t i = 0; i < count * size; i++)
		assert_int_equal(groups.index_of[order[i]], i);
}

static void consecutive_ranks__stay_in_order(void **state)
{
	const struct hosts hosts = { .gpus = 4, .nics = 4 };
	assert_int_equal(rank_groups_open(&groups, &hosts, 4, 8), 0);
	assert_int_equal(groups.count, 1);
	assert_int_equal(groups.gpus, 4);
	assert_int_equal(groups.ranks, 12);
	for (uint32_t rank = 0; rank < 12; rank++)
		assert_int_equal(groups.index_of[rank], rank < 4 ? RANK_GROUPS_NONE : rank - 4);
}

/* Hosts come in the order of their first rank, which need not be theirs, and so do the ranks of each. */
static void ranks_of_a_host__come_one_after_the_other(void **state)
{
	const struct hosts hosts = { .gpus = 2, .nics = 2 };
	const uint32_t mixed[] = { 4, 0, 2, 1, 5, 3 }, gathered[] = { 4, 5, 0, 1, 2, 3 };
	expect_order(&hosts, mixed, 1, 6, gathered, 2);
	const uint32_t placed[] = { 0, 2, 4, 1, 3, 5 }; /* ranks 0 and 3 share a host */
	const struct hosts spread = { .gpus = 2, .nics = 2, .gpu_of = placed };
	const uint32_t in_order[] = { 0, 1, 2, 3, 4, 5 }, by_host[] = { 0, 3, 1, 4, 2, 5 };
	expect_order(&spread, in_order, 1, 6, by_host, 2);
}

static void hosts__with_unequal_ranks_are_told(void **state)
{
	const struct hosts hosts = { .gpus = 2, .nics = 2 };
	const uint32_t three[] = { 0, 1, 2 }, two_groups[] = { 0, 1, 2, 4 };
	expect_order(&hosts, three, 1, 3, three, 0);
	expect_order(&hosts, two_groups, 2, 2, two_groups, 0); /* one in a host, one over two */
	expect_order(&(struct hosts){ 0 }, three, 1, 3, three, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(consecutive_ranks__stay_in_order, teardown),
		cmocka_unit_test_teardown(ranks_of_a_host__come_one_after_the_other, teardown),
		cmocka_unit_test_teardown(hosts__with_unequal_ranks_are_told, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
