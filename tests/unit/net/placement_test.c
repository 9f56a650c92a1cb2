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

static const struct dimensions *dimensions_of(const char *text)
{
	static struct dimensions dimensions;
	assert_int_equal(dimensions_parse(&dimensions, text, why, sizeof(why)), 0);
	return &dimensions;
}

/* Ranks are numbered tp-dp-pp, and placed with pipeline stages one beside the other. */
static void order__places_along_its_dimensions(void **state)
{
	const struct dimensions *dimensions = dimensions_of("tp=2, dp=3, pp=2");
	assert_int_equal(placement_by_order(placed, 16, dimensions, "tp-pp-dp", why, sizeof(why)), 0);
	expect_each_once(16);
	for (uint32_t rank = 0; rank < 12; rank++)
		assert_int_equal(placed[rank], rank % 2 + rank / 6 * 2 + rank / 2 % 3 * 4);
	for (uint32_t rank = 12; rank < 16; rank++)
		assert_int_equal(placed[rank], rank);
}

static void expect_refused(int error, const char *part)
{
	assert_int_not_equal(error, 0);
	if (!strstr(why, part))
		fail_msg("%s, without %s", why, part);
}

static void order__that_is_none_is_refused(void **state)
{
	const struct dimensions *dimensions = dimensions_of("tp=2, dp=3, pp=2");
	const struct dimensions none = { .count = 0 };
	expect_refused(placement_by_order(placed, 12, dimensions, "tp-dp", why, sizeof(why)), "pp is missing");
	expect_refused(placement_by_order(placed, 12, dimensions, "tp-dp-pp-cp", why, sizeof(why)), "'cp' is no");
	expect_refused(placement_by_order(placed, 12, &none, "tp-dp", why, sizeof(why)), "write ranks.dimensions");
	expect_refused(placement_by_order(placed, 12, &none, "pakced", why, sizeof(why)), "neither packed, spread");
}

/* Ranks beyond the list have what is left. */
static void list__names_gpus(void **state)
{
	static const uint32_t is[] = { 4, 5, 6, 1, 7, 0, 2, 3 };
	assert_int_equal(placement_by_list(placed, 8, "4-6 ,1, 7", why, sizeof(why)), 0);
	assert_memory_equal(placed, is, sizeof(is));
	assert_int_equal(placement_by_list(placed, 8, "0-7", why, sizeof(why)), 0);
	expect_each_once(8);
}

static void list__that_is_none_is_refused(void **state)
{
	expect_refused(placement_by_list(placed, 8, "1, 8", why, sizeof(why)), "no GPU 8: there are 8");
	expect_refused(placement_by_list(placed, 8, "0-99999999999999999999", why, sizeof(why)), "no GPU 8");
	expect_refused(placement_by_list(placed, 8, "1, 2, 1", why, sizeof(why)), "GPU 1 is there twice");
	expect_refused(placement_by_list(placed, 8, "0-3, 2-5", why, sizeof(why)), "GPU 2 is there twice");
	expect_refused(placement_by_list(placed, 8, "5-2", why, sizeof(why)), "5-2 goes back");
	expect_refused(placement_by_list(placed, 8, "1,", why, sizeof(why)), "'' is no GPU");
	expect_refused(placement_by_list(placed, 8, "1, x", why, sizeof(why)), "'x' is no GPU");
	expect_refused(placement_by_list(placed, 8, "1 2", why, sizeof(why)), "'2' stands behind");
	expect_refused(placement_by_list(placed, 8, "3-", why, sizeof(why)), "'-' stands behind");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spread__deals_out_whole_hosts),
		cmocka_unit_test(order__places_along_its_dimensions),
		cmocka_unit_test(order__that_is_none_is_refused),
		cmocka_unit_test(list__names_gpus),
		cmocka_unit_test(list__that_is_none_is_refused),
		cmocka_unit_test(spread__of_hosts_that_do_not_divide_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
