#include <errno.h>
#include <math.h>
#include "net/sizes.h"
#include "net/workloads.h"
#include "../unit.h"

static struct flow_list list;
static char why[200];

static int teardown(void **state)
{
	flow_list_free(&list);
	return 0;
}

static void make(const struct workload *workload, uint32_t endpoints, uint64_t seed)
{
	teardown(NULL);
	why[0] = 0;
	int error = workload_add(&list, workload, endpoints, seed, why, sizeof(why));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
}

static void refused(const struct workload *workload, uint32_t endpoints, const char *because)
{
	assert_int_equal(workload_add(&list, workload, endpoints, 1, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, because);
	assert_int_equal(list.count, 0);
}

static void incast__has_senders_from_0_on_but_the_target(void **state)
{
	struct workload workload = {
		.kind = "incast", .bytes = 500, .senders = 4, .target = 2, .start = 7, .traffic_class = 3
	};
	make(&workload, 8, 1);
	const uint32_t senders[] = { 0, 1, 3, 4 };
	assert_int_equal(list.count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct flow *flow = &list.flows[i];
		assert_int_equal(flow->src, senders[i]);
		assert_int_equal(flow->dst, 2);
		assert_int_equal(flow->bytes, 500);
		assert_int_equal(flow->start, 7);
		assert_int_equal(flow->waits, 0);
		assert_int_equal(flow->traffic_class, 3);
	}
	workload.senders = 0;
	make(&workload, 8, 1);
	assert_int_equal(list.count, 7);
	teardown(NULL);
	workload.senders = 8;
	refused(&workload, 8, "incast of 8 senders to endpoint 2, of endpoints 0 to 7");
	workload.senders = 1;
	workload.target = 8;
	refused(&workload, 8, "incast of 1 senders to endpoint 8, of endpoints 0 to 7");
}

static void permutation__leaves_nobody_out_and_nobody_to_himself(void **state)
{
	const struct workload workload = { .kind = "permutation", .bytes = 500 };
	for (uint64_t seed = 0; seed < 50; seed++) {
		make(&workload, 100, seed);
		assert_int_equal(list.count, 100);
		bool has[100] = { false };
		for (uint32_t i = 0; i < 100; i++) {
			assert_int_equal(list.flows[i].src, i);
			assert_int_not_equal(list.flows[i].dst, i);
			assert_false(has[list.flows[i].dst]);
			has[list.flows[i].dst] = true;
		}
	}
}

/* Of three there are two, of four nine: each as often as any. */
static void permutation__is_any_derangement_as_likely(void **state)
{
	const struct workload workload = { .kind = "permutation", .bytes = 500 };
	enum { DRAWS = 9000 };
	uint32_t seen[256] = { 0 }, kinds = 0;
	for (uint64_t seed = 0; seed < DRAWS; seed++) {
		make(&workload, 4, seed);
		uint32_t which = 0;
		for (uint32_t i = 0; i < 4; i++)
			which = which * 4 + list.flows[i].dst;
		seen[which]++;
	}
	for (uint32_t i = 0; i < 256; i++)
		if (seen[i]) {
			kinds++;
			assert_true(abs((int)seen[i] - DRAWS / 9) < 150);
		}
	assert_int_equal(kinds, 9);
}

static bool are_equal(const struct flow *a, const struct flow *b)
{
	return a->src == b->src && a->dst == b->dst && a->bytes == b->bytes && a->start == b->start &&
	       a->waits == b->waits && a->traffic_class == b->traffic_class;
}

static uint32_t differences(const struct flow *a, const struct flow *b, uint32_t count)
{
	uint32_t different = 0;
	for (uint32_t i = 0; i < count; i++)
		different += !are_equal(&a[i], &b[i]);
	return different;
}

static void seed__decides_everything(void **state)
{
	const struct workload workload = { .kind = "permutation", .bytes = 500, .spread = VB_MS };
	make(&workload, 100, 5);
	struct flow_list first = list;
	list = (struct flow_list){ 0 };
	make(&workload, 100, 5);
	assert_int_equal(differences(first.flows, list.flows, 100), 0);
	make(&workload, 100, 6);
	assert_true(differences(first.flows, list.flows, 100) > 90);
	flow_list_free(&first);
}

static void starts__are_spread(void **state)
{
	const struct workload workload = { .kind = "permutation", .bytes = 500, .start = VB_US, .spread = 10 * VB_US };
	make(&workload, 1000, 5);
	vb_time least = INT64_MAX, most = 0;
	for (uint32_t i = 0; i < list.count; i++) {
		least = list.flows[i].start < least ? list.flows[i].start : least;
		most = list.flows[i].start > most ? list.flows[i].start : most;
	}
	assert_true(least >= VB_US && least < VB_US + 200 * VB_NS);
	assert_true(most < 11 * VB_US && most > 11 * VB_US - 200 * VB_NS);
}

static void all_to_all__is_shifted(void **state)
{
	const struct workload workload = { .kind = "all-to-all", .bytes = 500 };
	make(&workload, 5, 1);
	assert_int_equal(list.count, 20);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(list.flows[i].src, i % 5);
		assert_int_equal(list.flows[i].dst, (i % 5 + i / 5 + 1) % 5);
		assert_int_equal(list.flows[i].waits, 0);
	}
}

static void all_to_all__has_so_many_at_once(void **state)
{
	const struct workload workload = { .kind = "all-to-all", .bytes = 500, .at_once = 2, .start = VB_US };
	make(&workload, 8, 1);
	for (uint32_t i = 0; i < list.count; i++) {
		const struct flow *flow = &list.flows[i];
		if (i < 16) {
			assert_int_equal(flow->waits, 0);
			assert_int_equal(flow->start, VB_US);
			continue;
		}
		assert_int_equal(flow->waits, 1);
		assert_int_equal(list.waits[i - 16].flow, i);
		assert_int_equal(list.waits[i - 16].before, i - 16);
		assert_int_equal(list.flows[i - 16].src, flow->src);
		assert_int_equal(flow->start, 0);
	}
	teardown(NULL);
	const struct workload large = { .kind = "all-to-all", .bytes = 500 };
	refused(&large, 1 << 20, "all-to-all of 1048576 endpoints has more than 67108864 flows");
}

static void poisson__has_the_load_that_is_asked_for(void **state)
{
	struct workload workload = { .kind = "poisson",
		.load = 0.3,
		.bits_per_second = 100000000000,
		.duration = 20 * VB_MS,
		.start = VB_MS,
		.sizes = "FB_Hadoop" };
	make(&workload, 64, 1);
	double bytes = 0;
	for (uint32_t i = 0; i < list.count; i++) {
		const struct flow *flow = &list.flows[i];
		assert_int_not_equal(flow->src, flow->dst);
		assert_true(flow->src < 64 && flow->dst < 64);
		assert_true(flow->start > VB_MS && flow->start < 21 * VB_MS);
		assert_true(i == 0 || flow->start > flow[-1].start ||
			    (flow->start == flow[-1].start && flow->src > flow[-1].src));
		bytes += (double)flow->bytes;
	}
	double wanted = 0.3 * 100e9 / 8 * 0.020 * 64;
	assert_true(fabs(bytes - wanted) < 0.05 * wanted);
}

static void poisson__has_exponential_gaps(void **state)
{
	const struct workload workload = {
		.kind = "poisson", .load = 0.5, .bits_per_second = 8000000000, .bytes = 1000, .duration = 100 * VB_MS
	};
	make(&workload, 2, 3); /* a flow of each every 2 us */
	vb_time last[2] = { 0 };
	double sum = 0, squares = 0;
	for (uint32_t i = 0; i < list.count; i++) {
		const struct flow *flow = &list.flows[i];
		assert_int_equal(flow->bytes, 1000);
		double gap = (double)(flow->start - last[flow->src]) / VB_US;
		last[flow->src] = flow->start;
		sum += gap;
		squares += gap * gap;
	}
	assert_true(fabs(sum / list.count - 2) < 0.02);
	assert_true(fabs(squares / list.count - 8) < 0.3);
}

static void poisson__that_cannot_be_is_refused(void **state)
{
	struct workload workload = {
		.kind = "poisson", .bits_per_second = 100000000000, .bytes = 5, .duration = VB_MS
	};
	const char *because = "poisson needs a load above 0 and at most 1, and a rate";
	refused(&workload, 4, because);
	workload.load = 1.1;
	refused(&workload, 4, because);
	workload.load = NAN;
	refused(&workload, 4, because);
	workload.load = 0.5;
	workload.bits_per_second = 0;
	refused(&workload, 4, because);
	workload.bits_per_second = 100000000000;
	workload.duration = VB_HORIZON;
	refused(&workload, 4, "poisson of more than 67108864 flows");
	snprintf(workload.sizes, sizeof(workload.sizes), "/nowhere");
	refused(&workload, 4, "/nowhere: No such file or directory");
}

static void workload__that_cannot_be_is_refused(void **state)
{
	struct workload workload = { .kind = "broadcast", .bytes = 5 };
	refused(&workload, 4,
		"no workload is called broadcast: incast, permutation, all-to-all, poisson, allreduce, all-gather, "
		"reduce-scatter or barrier");
	workload = (struct workload){ .kind = "permutation", .bytes = 5, .endpoints = 5 };
	refused(&workload, 4, "a workload of 5 endpoints in a network of 4");
	workload.endpoints = 1;
	refused(&workload, 4, "a workload of 1 endpoints in a network of 4");
	workload.endpoints = 0;
	workload.bytes = 0;
	refused(&workload, 4, "flows of 0 bytes");
	workload.bytes = 1;
	workload.start = -1;
	refused(&workload, 4, "a start, spread or duration below 0 or above a day");
}

static void workload__of_fewer_endpoints_takes_the_first(void **state)
{
	const struct workload workload = { .kind = "permutation", .bytes = 5, .endpoints = 4 };
	make(&workload, 100, 1);
	assert_int_equal(list.count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(list.flows[i].dst < 4);
}

static void workloads__may_be_added_to_each_other(void **state)
{
	const struct workload first = { .kind = "permutation", .bytes = 5 };
	const struct workload second = { .kind = "all-to-all", .bytes = 5, .at_once = 1 };
	make(&first, 4, 1);
	assert_int_equal(workload_add(&list, &second, 4, 1, why, sizeof(why)), 0);
	assert_int_equal(list.count, 4 + 12);
	assert_int_equal(list.waits[0].flow, 8);
	assert_int_equal(list.waits[0].before, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(incast__has_senders_from_0_on_but_the_target),
		TEST(permutation__leaves_nobody_out_and_nobody_to_himself),
		TEST(permutation__is_any_derangement_as_likely),
		TEST(seed__decides_everything),
		TEST(starts__are_spread),
		TEST(all_to_all__is_shifted),
		TEST(all_to_all__has_so_many_at_once),
		TEST(poisson__has_the_load_that_is_asked_for),
		TEST(poisson__has_exponential_gaps),
		TEST(poisson__that_cannot_be_is_refused),
		TEST(workload__that_cannot_be_is_refused),
		TEST(workload__of_fewer_endpoints_takes_the_first),
		TEST(workloads__may_be_added_to_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
