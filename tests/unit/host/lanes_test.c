/* Which lane is whose, in a process with its broker and over loopback. In a network namespace of the test's own;
 * skipped where none may be made. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/process.h"

static struct vb_device *device;
static bool is_able;

/* ---- How many may be made ---------------------------------------------------------------------------------------- */

static unsigned most_with(const char *setting)
{
	char *environment[] = { (char *)(uintptr_t)setting, NULL };
	struct vb_settings settings;
	struct vb_lanes lanes;
	char why[200];

	assert_int_equal(vb_settings_parse(&settings, environment, why, sizeof(why)), 0);
	vb_lanes_init(&lanes, &settings);
	return lanes.most;
}

static void lanes__are_as_many_as_is_said(void **state)
{
	assert_int_equal(most_with("VERBENA_LANES=1"), 1);
	assert_int_equal(most_with("VERBENA_LANES=3"), 3);
	assert_int_equal(most_with("VERBENA_LANES=8"), 8);
}

static void lanes__are_as_many_as_cores_that_may_be_used(void **state)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(most_with(""), CPU_COUNT(&all) < VB_LANES_MAX ? CPU_COUNT(&all) : VB_LANES_MAX);
	CPU_ZERO(&one);
	for (size_t core = 0; CPU_COUNT(&one) == 0; core++)
		if (CPU_ISSET(core, &all))
			CPU_SET(core, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(most_with(""), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* A capture is in order, a bottleneck is one, and who drives himself drives all there is. */
static void lane__is_one_for_what_goes_through_all_of_a_process(void **state)
{
	assert_int_equal(most_with("VERBENA_PCAP=/tmp/none"), 1);
	assert_int_equal(most_with("VERBENA_FAULTS=drop=1%"), 1);
	assert_int_equal(most_with("VERBENA_PROGRESS=off"), 1);
}

/* Its channel is the home's; and the indices of lanes are shared out among as many as there may be when the home is
 * made. */
static void lane__is_one_where_slots_are_carried(void **state)
{
	struct vb_lanes all = { .most = 4 }, begun = { .most = 4 };

	assert_int_equal(vb_lanes_carry(&all, 0), 0);
	assert_int_equal(all.most, 1);
	assert_int_equal(vb_lanes_carry(&begun, 1), -EUSERS);
	assert_int_equal(begun.most, 4);
}

static void indices__are_each_lanes_own(void **state)
{
	for (unsigned most = 1; most <= VB_LANES_MAX; most++) {
		struct vb_lanes lanes = { .most = most };
		uint32_t end = 0;
		for (unsigned i = 0; i < most; i++) {
			uint32_t first, count;
			vb_lanes_indices(&lanes, i, &first, &count);
			assert_int_equal(first, end);
			end = first + count;
			assert_true(count >= 8192);
		}
		assert_in_range(end, 65536 - VB_LANES_MAX, 65536);
	}
}

/* ---- Whose they are ---------------------------------------------------------------------------------------------- */

static void on_event(const struct vb_event *event) {}

static void on_port(void *user, bool is_active) {}

static void on_gid_change(void *user) {}

static int open_device(void **state)
{
	const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

	if (is_able)
		assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	return 0;
}

static int close_device(void **state)
{
	if (is_able)
		vb_device_close(device);
	return 0;
}

static void *ask(void *unused)
{
	struct vb_host_lane *mine = vb_device_host_lane_of_caller(device);

	assert_ptr_equal(vb_device_host_lane_of_caller(device), mine);
	return mine;
}

static struct vb_host_lane *ask_as_another(void)
{
	pthread_t thread;
	void *host_lane;

	assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
	pthread_join(thread, &host_lane);
	return host_lane;
}

/* As without the setting, on a machine of so many cores. */
static void have(unsigned most)
{
	device->process->lanes.are_in_turn = false;
	device->process->lanes.most = most;
}

static void threads__have_a_lane_each_and_then_share(void **state)
{
	if (!is_able)
		skip();
	have(3);
	assert_int_equal(vb_process_host_lane_count(device->process), 1);
	struct vb_host_lane *home = ask(NULL);
	assert_ptr_equal(home, vb_device_host_lane(device));
	assert_int_equal(vb_process_host_lane_count(device->process), 1);
	struct vb_host_lane *second = ask_as_another(), *third = ask_as_another();
	assert_ptr_not_equal(second, home);
	assert_ptr_not_equal(third, home);
	assert_ptr_not_equal(third, second);
	assert_ptr_equal(ask_as_another(), home);
	assert_ptr_equal(ask_as_another(), second);
	assert_ptr_equal(ask(NULL), home);
	assert_int_equal(vb_process_host_lane_count(device->process), 3);
	assert_int_equal(vb_host_lane_bit(third), 4);
}

static void domains__have_lanes_whoever_makes_them(void **state)
{
	if (!is_able)
		skip();
	have(2);
	assert_ptr_equal(vb_device_host_lane_of_domain(device), vb_device_host_lane(device));
	struct vb_host_lane *second = vb_device_host_lane_of_domain(device);
	assert_ptr_not_equal(second, vb_device_host_lane(device));
	assert_ptr_equal(vb_device_host_lane_of_domain(device), vb_device_host_lane(device));
	assert_ptr_equal(vb_device_host_lane_after(device, vb_device_host_lane(device)), second);
	assert_ptr_equal(vb_device_host_lane_after(device, second), vb_device_host_lane(device));
}

static void queues__have_them_in_turn_where_that_is_said(void **state)
{
	if (!is_able)
		skip();
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(vb_host_lane_bit(vb_device_host_lane_of_caller(device)), 1 << i % 4);
}

static void *take_all(void *unused)
{
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(vb_device_lock(device, VB_ALL_LANES), 0);
		vb_device_unlock(device, VB_ALL_LANES);
	}
	return NULL;
}

static void lane__is_made_while_all_of_them_are_taken(void **state)
{
	pthread_t threads[3];

	if (!is_able)
		skip();
	have(8);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_all, NULL), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_non_null(ask_as_another());
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(vb_process_host_lane_count(device->process), 8);
}

/* The slots that are left are for processes that have none. */
static void lanes__do_with_those_there_are_where_no_more_are_to_be_had(void **state)
{
	enum { HALF = 127 };
	static struct vb_slot slots[HALF];
	char why[200];
	unsigned taken = 0;

	if (!is_able)
		skip();
	have(8);
	struct vb_host_lane *second = NULL;
	ask(NULL);
	second = ask_as_another();
	while (vb_broker_get_slot(device->process->broker, 65536, true, &slots[taken], why, sizeof(why)) == 0)
		taken++;
	assert_ptr_equal(ask_as_another(), vb_device_host_lane(device));
	assert_ptr_equal(ask_as_another(), second);
	assert_int_equal(vb_process_host_lane_count(device->process), 2);
	while (taken--) {
		vb_broker_release_slot(device->process->broker, &slots[taken]);
		close(slots[taken].fd);
	}
}

/* Its lanes are the parent's, and nothing is to be had of them. */
static void lanes__are_not_a_forked_childs(void **state)
{
	int status;

	if (!is_able)
		skip();
	have(4);
	ask_as_another();
	pid_t pid = fork();
	if (pid == 0) {
		bool is_good = vb_device_lock(device, VB_ALL_LANES) < 0 && vb_device_lock_quiet(device) < 0;
		vb_device_drive(device, VB_ALL_LANES);
		_exit(is_good && vb_device_host_lane_of_caller(device) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes__are_as_many_as_is_said),
		cmocka_unit_test(lanes__are_as_many_as_cores_that_may_be_used),
		cmocka_unit_test(lane__is_one_for_what_goes_through_all_of_a_process),
		cmocka_unit_test(lane__is_one_where_slots_are_carried),
		cmocka_unit_test(indices__are_each_lanes_own),
		cmocka_unit_test_setup_teardown(threads__have_a_lane_each_and_then_share, open_device, close_device),
		cmocka_unit_test_setup_teardown(domains__have_lanes_whoever_makes_them, open_device, close_device),
		cmocka_unit_test_setup_teardown(
			queues__have_them_in_turn_where_that_is_said, open_device, close_device),
		cmocka_unit_test_setup_teardown(lane__is_made_while_all_of_them_are_taken, open_device, close_device),
		cmocka_unit_test_setup_teardown(
			lanes__do_with_those_there_are_where_no_more_are_to_be_had, open_device, close_device),
		cmocka_unit_test_setup_teardown(lanes__are_not_a_forked_childs, open_device, close_device),
	};

	is_able = argc > 1 && own_namespace();
	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	setenv("VERBENA_LANES", "4", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
