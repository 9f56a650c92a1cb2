/* Of the counters that watchers read in sysfs: from which of ours each is made, and in which unit. */
#include "../unit.h"
#include "core/counters.h"
#include "host/process.h"
#include <string.h>

#define LANES 2

static struct {
	struct vb_port port;
	struct vb_host_lane host_lane;
	uint64_t lane[VB_COUNTER_COUNT], of_port[VB_PORT_COUNTER_COUNT];
} lanes[LANES];
static struct vb_process process;

void vb_lane_counters(const struct vb_lane *lane, uint64_t *values)
{
	for (unsigned i = 0; i < LANES; i++)
		if ((const void *)lane == &lanes[i])
			memcpy(values, lanes[i].lane, sizeof(lanes[i].lane));
}

static void port_counters(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	for (unsigned i = 0; i < LANES; i++)
		if (port == &lanes[i].port)
			memcpy(values, lanes[i].of_port, sizeof(lanes[i].of_port));
}

static int setup(void **state)
{
	static const struct vb_port_ops ops = { .counters = port_counters };

	memset(lanes, 0, sizeof(lanes));
	for (unsigned i = 0; i < LANES; i++) {
		lanes[i].port.ops = &ops;
		lanes[i].host_lane.port = &lanes[i].port;
		lanes[i].host_lane.lane = (struct vb_lane *)&lanes[i];
		process.host_lanes[i] = &lanes[i].host_lane;
	}
	atomic_store(&process.host_lane_count, LANES);
	return 0;
}

static uint64_t read_counter(const char *wanted)
{
	uint64_t value;
	const char *name;

	for (unsigned n = 0; (name = vb_process_counter(&process, n, &value)); n++)
		if (strcmp(name, wanted) == 0)
			return value;
	fail_msg("no counter %s", wanted);
	return 0;
}

static void data__is_in_units_of_four_bytes(void **state)
{
	lanes[0].lane[VB_TX_BYTES] = 1 << 20;
	lanes[0].lane[VB_RX_BYTES] = 4000000000000;
	assert_int_equal(read_counter("counters/port_xmit_data"), 1 << 18);
	assert_int_equal(read_counter("counters/port_rcv_data"), 1000000000000);
	assert_int_equal(read_counter("counters/port_xmit_packets"), 0);
}

static void data__of_several_lanes_is_added_before_it_is_rounded(void **state)
{
	lanes[0].lane[VB_TX_BYTES] = 4099;
	lanes[1].lane[VB_TX_BYTES] = 4097;
	assert_int_equal(read_counter("counters/port_xmit_data"), 2049);
}

/* What shared memory carries is in the lane's counters alone. */
static void packets__are_those_whose_data_is_counted(void **state)
{
	lanes[0].lane[VB_TX_PACKETS] = 3;
	lanes[1].lane[VB_TX_PACKETS] = 4;
	lanes[1].lane[VB_RX_PACKETS] = 5;
	assert_int_equal(read_counter("counters/port_xmit_packets"), 7);
	assert_int_equal(read_counter("counters/port_rcv_packets"), 5);
	assert_int_equal(read_counter("hw_counters/sent_pkts"), 0);
	lanes[0].of_port[VB_PORT_TX_SEGMENTS] = 6;
	lanes[1].of_port[VB_PORT_RX_SEGMENTS] = 8;
	assert_int_equal(read_counter("hw_counters/sent_pkts"), 6);
	assert_int_equal(read_counter("hw_counters/rcvd_pkts"), 8);
	assert_int_equal(read_counter("counters/port_xmit_packets"), 7);
}

static void counter__of_two_sources_is_their_sum(void **state)
{
	lanes[0].of_port[VB_PORT_RX_DROP_DECODE] = 1;
	lanes[1].of_port[VB_PORT_RX_DROP_ICRC] = 2;
	lanes[0].lane[VB_RNR_SENT] = 4;
	lanes[1].lane[VB_DROP_NO_RECV] = 8;
	assert_int_equal(read_counter("counters/port_rcv_errors"), 3);
	assert_int_equal(read_counter("hw_counters/out_of_buffer"), 12);
}

static void names__are_each_given_once_and_in_a_known_folder(void **state)
{
	uint64_t value;
	const char *name, *other;

	for (unsigned n = 0; (name = vb_process_counter(&process, n, &value)); n++) {
		assert_true(strncmp(name, "counters/", 9) == 0 || strncmp(name, "hw_counters/", 12) == 0);
		for (unsigned i = 0; i < n && (other = vb_process_counter(&process, i, &value)); i++)
			assert_string_not_equal(name, other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(data__is_in_units_of_four_bytes, setup),
		cmocka_unit_test_setup(data__of_several_lanes_is_added_before_it_is_rounded, setup),
		cmocka_unit_test_setup(packets__are_those_whose_data_is_counted, setup),
		cmocka_unit_test_setup(counter__of_two_sources_is_their_sum, setup),
		cmocka_unit_test_setup(names__are_each_given_once_and_in_a_known_folder, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
