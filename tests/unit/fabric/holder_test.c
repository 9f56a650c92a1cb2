/* Endpoints of the test's own, on one switch: 100 Gb/s, 1 us a link. */
#include <errno.h>
#include "fabric/holder.h"
#include "nets.h"

static struct network network;
static struct fabric *fabric;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static struct {
	char said[200]; /* what was told, a word each */
	int cargo[4];
} seen;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list arguments;
	size_t length = strlen(seen.said);
	va_start(arguments, format);
	vsnprintf(seen.said + length, sizeof(seen.said) - length, format, arguments);
	va_end(arguments);
}

static void on_arrival(void *user, uint32_t endpoint, void *cargo, bool is_marked)
{
	assert_ptr_equal(user, &seen);
	say("%d at %u%s ", *(int *)cargo, endpoint, is_marked ? " marked" : "");
}

static void on_loss(void *user, void *cargo)
{
	say("%d lost ", *(int *)cargo);
}

static void *on_copy(void *user, void *cargo)
{
	seen.cargo[3] = *(int *)cargo * 10;
	return *(int *)cargo == 3 ? NULL : &seen.cargo[3];
}

static void on_call(void *user, uint32_t number)
{
	say("call %u ", number);
}

static const struct fabric_holder holder = { .user = &seen,
	.on_arrival = on_arrival,
	.on_loss = on_loss,
	.on_copy = on_copy,
	.on_call = on_call,
	.day_shift = 20 };

static void begin(const struct network_fault *fault)
{
	char why[100];
	memset(&seen, 0, sizeof(seen));
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	if (fault)
		network_set_fault(&network, 0, fault);
	network.links[1].fault = NETWORK_NONE;
	assert_int_equal(fabric_open(&network, 1, &holder, &fabric, why, sizeof(why)), 0);
	for (int i = 0; i < 3; i++)
		seen.cargo[i] = i + 1;
}

static int teardown(void **state)
{
	if (fabric)
		fabric_close(fabric);
	fabric = NULL;
	network_free(&network);
	return 0;
}

static void send(uint32_t from, uint32_t to, int *cargo)
{
	fabric_send(fabric, &(struct fabric_post){
				    .from = from, .to = to, .wire_bytes = 1000, .takes_marks = true, .cargo = cargo });
}

static void run_out(void)
{
	int rc;
	while ((rc = fabric_step(fabric)) > 0)
		;
	assert_int_equal(rc, 0);
}

/* A packet is 80 ns on each link. */
static void cargo__is_there_when_its_last_bit_is(void **state)
{
	begin(NULL);
	send(0, 2, &seen.cargo[0]);
	send(0, 1, &seen.cargo[1]);
	assert_int_equal(fabric_free_at(fabric, 0), 160 * VB_NS);
	fabric_call(fabric, 2 * VB_US + 160 * VB_NS, 8); /* after what arrives at that moment */
	fabric_call(fabric, 2 * VB_US + 160 * VB_NS, 7);
	fabric_call(fabric, 2 * VB_US + 160 * VB_NS - 1, 9);
	run_out();
	assert_string_equal(seen.said, "call 9 1 at 2 call 8 call 7 2 at 1 ");
	assert_int_equal(fabric_now(fabric), 2 * VB_US + 240 * VB_NS);
}

static void cargo__is_handed_back_when_it_is_lost(void **state)
{
	begin(&(struct network_fault){ .down_at = 80 * VB_NS, .up_at = VB_S });
	send(0, 2, &seen.cargo[0]);
	send(0, 2, &seen.cargo[1]);
	assert_string_equal(seen.said, "2 lost ");
	run_out();
	assert_string_equal(seen.said, "2 lost 1 at 2 ");
	assert_int_equal(fabric_lost(fabric), 1);
}

static void cargo__is_copied_when_it_is_doubled(void **state)
{
	begin(&(struct network_fault){ .duplicate_ppm = 1000000, .mark_ppm = 1000000 });
	send(0, 1, &seen.cargo[1]);
	run_out();
	send(0, 1, &seen.cargo[2]); /* of which none can be made */
	run_out();
	send(0, 1, &seen.cargo[0]);
	fabric_close(fabric);
	fabric = NULL;
	assert_string_equal(seen.said, "2 at 1 marked 20 at 1 marked 3 at 1 marked 10 lost 1 lost ");
}

static void cargo__that_is_under_way_at_the_end_is_handed_back(void **state)
{
	begin(NULL);
	send(0, 1, &seen.cargo[0]);
	send(1, 2, &seen.cargo[1]);
	assert_int_equal(fabric_step(fabric), 1);
	fabric_close(fabric);
	fabric = NULL;
	assert_string_equal(seen.said, "1 lost 2 lost ");
}

/* Its endpoints would have to wait by classes. */
static void network__that_stops_endpoints_is_refused(void **state)
{
	struct switch_profile lossless = { .name = "lossless",
		.class_count = 1,
		.buffer_bytes = 32 << 20,
		.flow_control = FLOW_PFC,
		.classes = { { .is_lossless = true, .alpha = 0.125 } } };
	char why[100];
	make_star(&network, 2, 100 * GBPS, VB_US, &lossless);
	assert_int_equal(fabric_open(&network, 1, &holder, &fabric, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "a switch may stop endpoints by classes, and they have none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(cargo__is_there_when_its_last_bit_is, teardown),
		cmocka_unit_test_teardown(cargo__is_handed_back_when_it_is_lost, teardown),
		cmocka_unit_test_teardown(cargo__is_copied_when_it_is_doubled, teardown),
		cmocka_unit_test_teardown(cargo__that_is_under_way_at_the_end_is_handed_back, teardown),
		cmocka_unit_test_teardown(network__that_stops_endpoints_is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
