/* A process without a progress thread: what a thread posts while the only host lane sleeps is looked after in its time;
 * and devices look at the interfaces whenever they are asked, while others use them. In a network namespace of the
 * test's own; skipped where none may be made. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "connected.h"

#define NOBODYS_QPN 0xFA0002 /* of a slot that no process has: the packets come back to nobody here */
#define PATIENCE_MS 5000

static struct vb_device *device;
static int event_fd;
static bool is_able;

static void on_event(const struct vb_event *event)
{
	if (event->kind == VB_EVENT_COMPLETION)
		eventfd_write(event_fd, 1);
}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

static void *wait_for_event(void *unused)
{
	return (void *)(uintptr_t)vb_device_wait(device, VB_ALL_LANES, event_fd, NULL);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void post_empty_write(struct vb_qp *qp)
{
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE }), 0);
	vb_sq_end(qp, true);
	vb_host_lane_kick(vb_device_host_lane(device));
}

/* Nothing was due when the waiter fell asleep, and nothing ever comes that would wake it. */
static void sleeper__wakes_for_what_others_posted(void **state)
{
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_wc wc = { .status = VB_WC_GENERAL_ERR };
	pthread_t waiter;
	if (!is_able)
		skip();
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	assert_int_equal(vb_pd_create(vb_device_nic(device), &pd), 0);
	assert_int_equal(vb_cq_create(vb_device_nic(device), &(struct vb_cq_config){ .capacity = 4 }, &cq), 0);
	struct vb_qp *qp = connected_on(
		device, pd, cq, (struct vb_qp_attr){ .dest_qpn = NOBODYS_QPN, .timeout = 10, .retry_cnt = 1 });
	vb_cq_request_notify(cq, false);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_event, NULL), 0);
	sleep_ms(300);

	post_empty_write(qp);
	for (int ms = 0; ms < PATIENCE_MS && vb_cq_is_empty(cq); ms++)
		sleep_ms(1);
	bool was_in_time = vb_cq_poll(cq, &wc, 1) == 1;
	eventfd_write(event_fd, 1);
	pthread_join(waiter, NULL);
	assert_true(was_in_time);
	assert_int_equal(wc.status, VB_WC_RETRY_EXC_ERR);

	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(vb_cq_destroy(cq), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_device_close(device);
	close(event_fd);
}

static void *query_device(void *unused)
{
	struct vb_device_info info;
	for (int i = 0; i < 100; i++)
		vb_device_query(device, &info);
	return NULL;
}

/* TSan says whether what the one writes the other reads in its turn. */
static void join__while_the_device_is_looked_at(void **state)
{
	struct vb_gid group = { { 0xff, 0x0e, [15] = 7 } };
	pthread_t asker;
	if (!is_able)
		skip();
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	assert_int_equal(pthread_create(&asker, NULL, query_device, NULL), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(vb_device_join(device, vb_device_host_lane(device), &group), 0);
		assert_int_equal(vb_device_leave(device, vb_device_host_lane(device), &group), 0);
	}
	pthread_join(asker, NULL);
	vb_device_close(device);
}

static long sleeps(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static long sleeps_in_a_poll(void)
{
	const long before = sleeps();
	vb_device_drive(device, VB_ALL_LANES);
	return sleeps() - before;
}

static void poll_until_it_sleeps(void)
{
	vb_time until = vb_time_add(vb_host_now(), PATIENCE_MS * VB_MS);
	while (sleeps_in_a_poll() == 0)
		assert_true(vb_time_before(vb_host_now(), until));
}

/* Its polls found nothing for long, so each was followed by a moment of sleep; but now it is told. A poll may stand
 * still for another reason, a lock or a page say, but hardly each of several. */
static void poller__that_is_told_of_an_event_does_not_sleep_at_its_next_poll(void **state)
{
	enum { TRIES = 8 };
	unsigned awake = 0;
	if (!is_able)
		skip();
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	for (unsigned i = 0; i < TRIES; i++) {
		poll_until_it_sleeps();
		vb_host_lane_notified();
		awake += sleeps_in_a_poll() == 0;
	}
	assert_true(awake > TRIES / 2);
	vb_device_close(device);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeper__wakes_for_what_others_posted),
		cmocka_unit_test(poller__that_is_told_of_an_event_does_not_sleep_at_its_next_poll),
		cmocka_unit_test(join__while_the_device_is_looked_at),
	};

	setenv("VERBENA_PROGRESS", "off", 1);
	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
