/* Placement: which GPU each rank runs on. */
#include "net/hosts.h"
#include "net/placement.h"
#include "../unit.h"

enum { MOST = 64 };

static uint32_t placed[MOST];
static char why[300];

/* A permutation of the first so many GPUs. */
static void expect_each_once(uint32_t ranks)
{
	bool seen[MOST] = { false };
	for (uint32_t rank = 0; rank < ranks; rank++) {
		assert_true(placed[rank] < ranks && !seen[placed[rank]]);
		seen[placed[rank]] = true;
	}
}

/* Six hosts of two GPUs at three switches: hosts 0, 2 and 4 of the network have consecutive hosts of ranks. */
static void spread__deals_out_whole_hosts(void **state)
{
	assert_int_equal(placement_spread(placed, 12, 2, 3, why, sizeof(why)), 0);
	expect_each_once(12);
	const struct hosts hosts = { .gpus = 2, .nics = 2, .gpu_of = placed };
	for (uint32_t rank = 0; rank < 12; rank++) {
		assert_int_equal(hosts_host_of(&hosts, rank), rank / 2 % 3 * 2 + rank / 2 / 3);
		assert_int_equal(hosts_gpu_in_host(&hosts, rank), rank % 2);
	}
	assert_int_equal(hosts_endpoint_of(&hosts, 3, 0), 5);
	assert_int_equal(placement_spread(placed, 6, 0, 3, why, sizeof(why)), 0);
	expect_each_once(6);
	assert_int_equal(placed[1], 2);
}

static void spread__of_hosts_that_do_not_divide_is_refused(void **state)
{
	assert_int_not_equal(placement_spread(placed, 12, 2, 4, why, sizeof(why)), 0);
	assert_string_equal(why, "6 hosts cannot be dealt out to 4 switches evenly");
	assert_int_not_equal(placement_spread(placed, 12, 2, 0, why, sizeof(why)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spread__deals_out_whole_hosts),
		cmocka_unit_test(spread__of_hosts_that_do_not_divide_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
