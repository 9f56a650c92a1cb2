/* Many flows: what they take grows with how many there are, in whatever order they are listed. */
#include <stdlib.h>
#include <time.h>
#include "base/random.h"
#include "nets.h"

enum { ENDPOINTS = 4, FLOWS = 120000 };

static struct network network;
static struct flow_list flows;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	return 0;
}

static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void shuffle(struct flow_list *list)
{
	struct vb_random random;
	vb_random_seed(&random, 3);
	for (uint32_t i = list->count; i > 1; i--) {
		const uint32_t other = vb_random_below(&random, i);
		const struct flow flow = list->flows[i - 1];
		list->flows[i - 1] = list->flows[other];
		list->flows[other] = flow;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct flow_result *one = a, *other = b;
	return (one->start > other->start) - (one->start < other->start);
}

/* The results by when the flows began; which takes so much of the CPU's time. */
static double run_sorted(const struct fabric_config *config, struct fabric_result *result)
{
	const double before = cpu_s();
	run(config, result);
	const double taken = cpu_s() - before;
	assert_int_equal(result->end, FABRIC_DONE);
	qsort(result->flows, FLOWS, sizeof(result->flows[0]), by_start);
	return taken;
}

/* Each begins at a time of its own, so that nothing depends on numbers. */
static void many_flows__in_any_order_are_as_many_sorted_ones(void **state)
{
	struct fabric_result sorted, shuffled;
	make_star(&network, ENDPOINTS, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < FLOWS; i++)
		add_flow(&flows, i % 2, 2 + i / 2 % 2, 1000 + i % 7, i * (VB_US / 2));
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = FABRIC_IDEAL;
	const double of_sorted = run_sorted(&config, &sorted);
	shuffle(&flows);
	const double of_shuffled = run_sorted(&config, &shuffled);
	assert_memory_equal(sorted.flows, shuffled.flows, FLOWS * sizeof(sorted.flows[0]));
	if (of_shuffled > 3 * of_sorted)
		fail_msg("shuffled they take %.2f s of the CPU, sorted %.2f", of_shuffled, of_sorted);
	fabric_result_free(&sorted);
	fabric_result_free(&shuffled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(many_flows__in_any_order_are_as_many_sorted_ones, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
