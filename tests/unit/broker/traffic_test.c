/* MADs that wait. */
#include "../unit.h"
#include "broker/traffic.h"

static uint8_t bytes[VB_MAD_LENGTH];

static int setup(void **state)
{
	*state = traffic_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	traffic_destroy(*state);
	return 0;
}

static struct qp1_mad mad_from(uint8_t host, uint8_t mark)
{
	memset(bytes, mark, sizeof(bytes));
	return (struct qp1_mad){ .from = vb_gid_from_ipv4(10, 0, 0, host), .bytes = bytes, .length = VB_MAD_LENGTH };
}

static void waiting__keep_their_order_and_their_bytes(void **state)
{
	struct qp1_mad mad;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < TRAFFIC_WAITING + 10; i++) {
			mad = mad_from(1, (uint8_t)i);
			traffic_put(*state, TRAFFIC_OF_KNOWN, &mad);
		}
		assert_false(traffic_take(*state, TRAFFIC_OF_OTHERS, &mad));
		for (unsigned i = 0; i < TRAFFIC_WAITING; i++) {
			assert_true(traffic_is_waiting(*state));
			assert_true(traffic_take(*state, TRAFFIC_OF_KNOWN, &mad));
			assert_int_equal(mad.bytes[0], (uint8_t)i);
			assert_int_equal(mad.bytes[VB_MAD_LENGTH - 1], (uint8_t)i);
		}
		assert_false(traffic_take(*state, TRAFFIC_OF_KNOWN, &mad));
		assert_false(traffic_is_waiting(*state));
	}
}

static void held__go_on_when_their_sender_is_known(void **state)
{
	struct qp1_mad mad;
	const struct vb_gid first = vb_gid_from_ipv4(10, 0, 0, 1);
	for (uint8_t mark = 1; mark <= TRAFFIC_HELD_WAYS + 1; mark++) {
		mad = mad_from(1, mark);
		traffic_hold(*state, &mad, 1000);
	}
	mad = mad_from(2, 99);
	traffic_hold(*state, &mad, 1000);
	traffic_release(*state, &first, 1001);
	unsigned count = 0;
	for (uint8_t last = 0; traffic_take(*state, TRAFFIC_OF_KNOWN, &mad); count++) {
		assert_true(vb_gid_equal(&mad.from, &first));
		assert_true(mad.bytes[0] > last);
		last = mad.bytes[0];
	}
	assert_in_range(count, TRAFFIC_HELD_WAYS - 1, TRAFFIC_HELD_WAYS); /* the other may have pushed out one */
	traffic_release(*state, &first, 1001);
	assert_false(traffic_is_waiting(*state));
}

static void held__are_too_old_after_a_moment(void **state)
{
	struct qp1_mad mad = mad_from(1, 1);
	traffic_hold(*state, &mad, 1000);
	traffic_release(*state, &mad.from, 1000 + TRAFFIC_HELD_MS);
	assert_false(traffic_is_waiting(*state));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(waiting__keep_their_order_and_their_bytes),
		TEST(held__go_on_when_their_sender_is_known),
		TEST(held__are_too_old_after_a_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
