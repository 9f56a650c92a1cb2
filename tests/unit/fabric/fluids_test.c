/* Fluids that begin and leave by chance have at any time the rates that max_min_find has for all of them at once, all
 * but, and leave when what they have to send is gone. Acks take their part first. */
#include <stdlib.h>
#include "fabric/fluids.h"
#include "net/chance.h"
#include "../unit.h"

enum { LINKS = 24, MOST = 60, HOPS = 3, WHOLE = MAX_MIN_WHOLE };

static uint64_t capacities[LINKS];
static struct fluids *fluids;
static uint64_t drawn;

static int teardown(void **state)
{
	fluids_close(fluids);
	fluids = NULL;
	return 0;
}

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)chance_below(drawn, below);
}

/* ---- By hand ----------------------------------------------------------------------------------------------------- */

static const struct max_min_hop first_link[] = { { 0, WHOLE } }, second_link[] = { { 1, WHOLE } };

static void open_two(void)
{
	capacities[0] = capacities[1] = 1000000;
	fluids = fluids_open(capacities, 2);
	assert_non_null(fluids);
}

/* 1,000 bytes at 1 MB/s. When another comes after 0.4 ms each has half. */
static void fluid__leaves_when_its_bytes_are_gone(void **state)
{
	struct fluid one = { .share = { first_link, 1, 0 } }, other = one;
	open_two();
	fluids_add(fluids, &one, 1000, 0);
	assert_true(fluids_have_changed(fluids));
	fluids_find_rates(fluids, 0);
	assert_int_equal(fluids_next(fluids), VB_MS);
	assert_null(fluids_take(fluids, VB_MS - 1));
	fluids_add(fluids, &other, 1000, 400 * VB_US);
	fluids_find_rates(fluids, 400 * VB_US);
	assert_int_equal(fluids_next(fluids), 1600 * VB_US);
	assert_ptr_equal(fluids_take(fluids, 1600 * VB_US), &one);
	fluids_find_rates(fluids, 1600 * VB_US);
	assert_int_equal(fluids_next(fluids), 2 * VB_MS);
	assert_ptr_equal(fluids_take(fluids, 2 * VB_MS), &other);
	assert_int_equal(fluids_next(fluids), -1);
	assert_false(fluids_have_changed(fluids));
}

/* Acks of a tenth: of what flows over the second link the first has a tenth less. */
static void acks__take_their_part_first(void **state)
{
	struct fluid one = { .share = { first_link, 1, 0 } };
	struct fluid other = {
		.share = { second_link, 1, 0 }, .back = first_link, .back_count = 1, .ack_share = WHOLE / 10
	};
	open_two();
	fluids_add(fluids, &one, 1000, 0);
	fluids_add(fluids, &other, 1000, 0);
	fluids_find_rates(fluids, 0);
	fluids_set_acks(fluids, &other, true);
	fluids_find_rates(fluids, 0);
	assert_in_range(one.share.rate, 900000, 900100);
	assert_int_equal(other.share.rate, 1000000);
	assert_ptr_equal(fluids_take(fluids, VB_MS), &other);
	assert_false(fluids_have_changed(fluids)); /* its acks go on */
	fluids_set_acks(fluids, &other, false);
	fluids_find_rates(fluids, VB_MS);
	assert_int_equal(one.share.rate, 1000000);
}

/* More acks than links can carry leave a quarter to what flows. */
static void acks__never_take_all(void **state)
{
	struct fluid one = { .share = { first_link, 1, 0 } };
	struct fluid other = {
		.share = { second_link, 1, 0 }, .back = first_link, .back_count = 1, .ack_share = 9 * WHOLE
	};
	open_two();
	fluids_add(fluids, &one, 1000, 0);
	fluids_add(fluids, &other, 1000, 0);
	fluids_find_rates(fluids, 0);
	fluids_set_acks(fluids, &other, true);
	fluids_find_rates(fluids, 0);
	assert_int_equal(one.share.rate, 250000);
}

/* ---- Against all at once ----------------------------------------------------------------------------------------- */

struct crowd {
	struct fluid fluids[MOST];
	struct max_min_hop hops[MOST][HOPS];
	double left[MOST]; /* bytes; below 0: it does not flow */
	struct max_min *solver;
	vb_time now;
};

static void begin(struct crowd *crowd, uint32_t i)
{
	struct fluid *its = &crowd->fluids[i];
	const uint32_t first = draw(LINKS), bytes = 1 + draw(100000);
	*its = (struct fluid){ .share = { .hops = crowd->hops[i], .hop_count = 1 + draw(HOPS) } };
	for (uint32_t k = 0; k < its->share.hop_count; k++)
		crowd->hops[i][k] =
			(struct max_min_hop){ (first + 5 * k) % LINKS, draw(3) ? WHOLE : 1 + draw(2 * WHOLE) };
	crowd->left[i] = bytes;
	fluids_add(fluids, its, bytes, crowd->now);
}

/* Within what fluids.h allows, twice. */
static bool is_near(uint64_t rate, uint64_t of_all)
{
	return rate <= of_all + of_all / 512 + 4 && of_all <= rate + rate / 512 + 4;
}

static void expect_rates(struct crowd *crowd)
{
	struct max_min_flow all[MOST], *pointers[MOST];
	uint32_t count = 0;
	for (uint32_t i = 0; i < MOST; i++) {
		if (crowd->left[i] < 0)
			continue;
		all[i] = crowd->fluids[i].share;
		pointers[count++] = &all[i];
	}
	assert_int_equal(max_min_find(crowd->solver, pointers, count), 0);
	for (uint32_t i = 0; i < MOST; i++)
		if (crowd->left[i] >= 0)
			assert_true(is_near(crowd->fluids[i].share.rate, all[i].rate));
}

static void go_to(struct crowd *crowd, vb_time now)
{
	for (uint32_t i = 0; i < MOST; i++)
		if (crowd->left[i] >= 0)
			crowd->left[i] -= (double)crowd->fluids[i].share.rate * (double)(now - crowd->now) / VB_S;
	crowd->now = now;
}

/* All that leaves now has nothing left, by our own account. */
static void take_all(struct crowd *crowd)
{
	struct fluid *its;
	while ((its = fluids_take(fluids, crowd->now))) {
		const ptrdiff_t i = its - crowd->fluids;
		assert_true(crowd->left[i] > -2 && crowd->left[i] < 2);
		crowd->left[i] = -1000;
	}
}

static void rates__are_those_of_all_at_once(void **state)
{
	static struct crowd crowd;
	for (uint32_t i = 0; i < LINKS; i++)
		capacities[i] = 100000 * (1 + i % 7);
	fluids = fluids_open(capacities, LINKS);
	crowd = (struct crowd){ .solver = max_min_open(capacities, LINKS) };
	for (uint32_t i = 0; i < MOST; i++)
		crowd.left[i] = -1000;
	for (uint32_t step = 0; step < 20000; step++) {
		const uint32_t i = draw(step / 500 % 2 ? MOST : 8); /* few and many by turns */
		const vb_time later = crowd.now + draw(1000) * VB_US, next = fluids_next(fluids);
		go_to(&crowd, next >= 0 && next < later ? next : later);
		take_all(&crowd);
		if (crowd.left[i] < 0 && draw(2))
			begin(&crowd, i);
		fluids_find_rates(fluids, crowd.now);
		expect_rates(&crowd);
	}
	assert_false(fluids_lack_memory(fluids));
	max_min_close(crowd.solver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(fluid__leaves_when_its_bytes_are_gone, teardown),
		cmocka_unit_test_teardown(acks__take_their_part_first, teardown),
		cmocka_unit_test_teardown(acks__never_take_all, teardown),
		cmocka_unit_test_teardown(rates__are_those_of_all_at_once, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
