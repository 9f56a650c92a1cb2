/* Max-min fair rates, against what is known of small networks, and against what the definition says of random ones. */
#include <stdlib.h>
#include "net/chance.h"
#include "net/max_min.h"
#include "../unit.h"

enum { MOST_LINKS = 12, MOST_FLOWS = 40, MOST_HOPS = 4, WHOLE = MAX_MIN_WHOLE };

static uint64_t capacities[MOST_LINKS];
static struct max_min_hop hops[MOST_FLOWS][MOST_HOPS];
static struct max_min_flow flows[MOST_FLOWS], *pointers[MOST_FLOWS];

static void add_hop(uint32_t flow, uint32_t link, uint32_t weight)
{
	hops[flow][flows[flow].hop_count++] = (struct max_min_hop){ link, weight };
}

static void begin(void)
{
	for (uint32_t i = 0; i < MOST_FLOWS; i++) {
		flows[i] = (struct max_min_flow){ .hops = hops[i] };
		pointers[i] = &flows[i];
	}
}

static void find(uint32_t links, uint32_t count)
{
	struct max_min *solver = max_min_open(capacities, links);
	assert_non_null(solver);
	for (unsigned again = 0; again < 2; again++)
		assert_int_equal(max_min_find(solver, pointers, count), 0);
	max_min_close(solver);
}

/* A parking lot: one flow over both links, one on each. The wide link's own flow gets what is left. */
static void share__of_the_tightest_link_first(void **state)
{
	begin();
	capacities[0] = 1000;
	capacities[1] = 3000;
	add_hop(0, 0, WHOLE);
	add_hop(0, 1, WHOLE);
	add_hop(1, 0, WHOLE);
	add_hop(2, 1, WHOLE);
	find(2, 3);
	assert_int_equal(flows[0].rate, 500);
	assert_int_equal(flows[1].rate, 500);
	assert_int_equal(flows[2].rate, 2500);
}

/* One that is spread over four links loads each with a quarter; one that stands for three counts as three. */
static void weight__is_what_a_flow_loads_a_link_with(void **state)
{
	begin();
	for (uint32_t i = 0; i < 4; i++) {
		capacities[i] = 1000;
		add_hop(0, i, WHOLE / 4);
	}
	find(4, 1);
	assert_int_equal(flows[0].rate, 4000);
	add_hop(1, 0, 3 * WHOLE);
	find(4, 2);
	assert_int_equal(flows[1].rate, 1000 * 4 / 13);
	assert_int_equal(flows[0].rate, flows[1].rate);
}

static void rate__is_never_0(void **state)
{
	begin();
	capacities[0] = 3;
	for (uint32_t i = 0; i < MOST_FLOWS; i++)
		add_hop(i, 0, WHOLE);
	find(1, MOST_FLOWS);
	for (uint32_t i = 0; i < MOST_FLOWS; i++)
		assert_int_equal(flows[i].rate, 1);
}

/* ---- The definition ---------------------------------------------------------------------------------------------- */

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)chance_below(drawn, below);
}

static double load_on(uint32_t link, uint32_t count, uint64_t *largest)
{
	double load = 0;
	*largest = 0;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < flows[i].hop_count; k++)
			if (hops[i][k].link == link) {
				load += (double)flows[i].rate * hops[i][k].weight / WHOLE;
				*largest = flows[i].rate > *largest ? flows[i].rate : *largest;
			}
	return load;
}

/* Bertsekas and Gallager: each flow has a link that is full, on which no other flow has more. */
static bool has_bottleneck(uint32_t flow, uint32_t count)
{
	for (uint32_t k = 0; k < flows[flow].hop_count; k++) {
		uint64_t largest;
		const uint32_t link = hops[flow][k].link;
		const double load = load_on(link, count, &largest);
		if (load >= (double)capacities[link] - 2 * MOST_FLOWS * MOST_HOPS && largest <= flows[flow].rate + 1)
			return true;
	}
	return false;
}

static void every_flow__has_a_bottleneck(void **state)
{
	for (unsigned seed = 1; seed <= 500; seed++) {
		drawn = seed;
		begin();
		const uint32_t links = 1 + draw(MOST_LINKS), count = 1 + draw(MOST_FLOWS);
		for (uint32_t i = 0; i < links; i++)
			capacities[i] = 1000000000 + (uint64_t)draw(9) * 1000000000;
		for (uint32_t i = 0; i < count; i++) {
			const uint32_t first = draw(links), length = 1 + draw(links < MOST_HOPS ? links : MOST_HOPS);
			for (uint32_t k = 0; k < length; k++)
				add_hop(i, (first + k) % links, draw(2) ? WHOLE : 1 + draw(3 * WHOLE));
		}
		find(links, count);
		for (uint32_t i = 0; i < links; i++) {
			uint64_t largest;
			assert_true(load_on(i, count, &largest) <= (double)capacities[i] + MOST_FLOWS);
		}
		for (uint32_t i = 0; i < count; i++)
			if (!has_bottleneck(i, count))
				fail_msg("seed %u: flow %u has no bottleneck", seed, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_the_tightest_link_first),
		cmocka_unit_test(weight__is_what_a_flow_loads_a_link_with),
		cmocka_unit_test(rate__is_never_0),
		cmocka_unit_test(every_flow__has_a_bottleneck),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
