/* A thread that waits for events, gets one, and comes again: nobody else is woken meanwhile. And one that does not come
 * again: the progress thread does the work. Its local peer is played by the test. In a network namespace of the test's
 * own; skipped where none may be made. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "connected.h"
#include "played_peer.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include "host/process.h"
#include "wire/opcode.h"

#define SLOT     255 /* which the broker gives nobody */
#define BYTES    4096
#define PATIENCE (5 * VB_S)

static struct vb_device *device;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_qp *qp, *datagrams;
static struct vb_mr *mr;
static struct played_peer who;
static _Alignas(64) uint8_t memory[BYTES];
static int event_fd, leave_fd;
static bool is_able;
static _Atomic unsigned events;

static void on_event(const struct vb_event *event)
{
	if (event->kind == VB_EVENT_COMPLETION)
		eventfd_write(event_fd, 1);
}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

static int open_device(void **state)
{
	struct vb_cq_config cq_config = { .capacity = 16 };
	struct vb_mr_config config = { .memory = memory,
		.iova = (uintptr_t)memory,
		.length = BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE };
	struct vb_qp_attr attr = { .access = VB_ACCESS_REMOTE_WRITE,
		.dest_qpn = SLOT << 16 | 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7 };

	if (!is_able)
		return 0;
	events = 0;
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	leave_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	assert_int_equal(vb_pd_create(vb_device_nic(device), &pd), 0);
	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	assert_int_equal(vb_cq_create(vb_device_nic(device), &cq_config, &cq), 0);
	datagrams = receiving_datagrams_on(device, pd, cq);
	meet(device, &who, SLOT);
	qp = connected_on(device, pd, cq, attr);
	return 0;
}

static int close_device(void **state)
{
	if (!is_able)
		return 0;
	part(&who);
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	assert_int_equal(vb_qp_destroy(datagrams), 0);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(vb_cq_destroy(cq), 0);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_device_close(device);
	close(event_fd);
	close(leave_fd);
	return 0;
}

/* ---- Who waits --------------------------------------------------------------------------------------------------- */

/* One event after the other, until count have come; then it does something else. */
static void *wait_for_events(void *argument)
{
	const unsigned *count = argument;
	struct vb_wc wc;
	eventfd_t value;

	while (events < *count) {
		vb_cq_request_notify(cq, false);
		while (vb_cq_poll(cq, &wc, 1) > 0)
			events++;
		if (events < *count && !vb_device_wait(device, VB_ALL_LANES, event_fd, NULL))
			break;
		eventfd_read(event_fd, &value);
	}
	eventfd_read(leave_fd, &value);
	return NULL;
}

static bool has_come(unsigned count)
{
	vb_time until = vb_time_add(vb_host_now(), PATIENCE);

	while (events < count && vb_time_before(vb_host_now(), until))
		sched_yield();
	return events >= count;
}

static struct vb_descriptor request(uint8_t opcode, uint32_t psn)
{
	return (struct vb_descriptor){ .opcode = opcode,
		.dest_qpn = vb_qp_number(qp),
		.src_qpn = SLOT << 16 | 1,
		.psn = psn,
		.length = 8,
		.va = (uintptr_t)memory,
		.rkey = vb_mr_key(mr),
		.place = VB_LOCAL_INLINED };
}

static void send_to_us(uint32_t psn)
{
	const struct vb_sge sge = { (uintptr_t)memory, 8, vb_mr_key(mr) };
	const struct vb_recv_wr wr = { .sges = &sge, .sge_count = 1 };
	struct vb_descriptor send_only = request(VB_SEND_ONLY, psn);
	const unsigned wanted = events + 1;

	assert_int_equal(vb_rq_post(qp, &wr), 0);
	asks(&who, &send_only, 1);
	assert_true(has_come(wanted));
	takes_answers(&who, VB_ANSWER_DONE);
}

/* How often the thread of that name has gone to sleep. */
static unsigned long sleeps_of(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long sleeps = 0;

	assert_non_null(tasks);
	for (const struct dirent *task; (task = readdir(tasks));) {
		char path[300], line[128], found[32] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
		FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			sscanf(line, "Name: %31s", found);
			if (strcmp(found, name) == 0)
				sscanf(line, "voluntary_ctxt_switches: %lu", &sleeps);
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return sleeps;
}

/* Whoever comes again soon is looked for by the thread now and then, the longer it goes well the more seldom. */
static void returner__leaves_the_thread_asleep(void **state)
{
	enum { TIMES = 1000, LOOK = 400 * VB_US };
	unsigned count = TIMES;
	pthread_t waiter;

	if (!is_able)
		skip();
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_events, &count), 0);
	vb_time begin = vb_host_now();
	unsigned long before = sleeps_of("verbena");
	for (uint32_t i = 0; i < TIMES; i++)
		send_to_us(i);
	unsigned long sleeps = sleeps_of("verbena") - before;
	unsigned long looks = (unsigned long)(vb_time_since(begin, vb_host_now()) / LOOK);
	assert_in_range(sleeps, 0, TIMES / 8 + looks);
	eventfd_write(leave_fd, 1);
	pthread_join(waiter, NULL);
}

static bool is_rung(void)
{
	struct saying said;
	vb_time until = vb_time_add(vb_host_now(), PATIENCE);

	while (vb_time_before(vb_host_now(), until))
		if (hears(&who, &said) == 1)
			return true;
	return false;
}

/* What it asks after that is done, and it is told, though it sleeps. */
static void returner__that_stays_away_is_stood_in_for(void **state)
{
	unsigned count = 3;
	pthread_t waiter;

	if (!is_able)
		skip();
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_events, &count), 0);
	for (uint32_t i = 0; i < count; i++)
		send_to_us(i);
	struct vb_descriptor write = request(VB_WRITE_ONLY, count);
	memset(write.bytes, 7, 8);
	vb_shm_doze(who.shm, false);
	asks(&who, &write, 1);
	assert_true(is_rung());
	assert_int_equal(__atomic_load_n(&memory[0], __ATOMIC_ACQUIRE), 7);
	assert_true(takes_answers(&who, VB_ANSWER_DONE) > 0);
	eventfd_write(leave_fd, 1);
	pthread_join(waiter, NULL);
}

static bool is_answered(void)
{
	vb_time until = vb_time_add(vb_host_now(), PATIENCE);

	while (vb_time_before(vb_host_now(), until))
		if (takes_answers(&who, VB_ANSWER_DONE) > 0)
			return true;
	return false;
}

/* At whichever moment the timer came up that looks for it, amid its coming and going. */
static void returner__is_missed_every_time(void **state)
{
	enum { ROUNDS = 40, TIMES = 500 };
	unsigned count = 0;
	uint32_t psn = 0;

	if (!is_able)
		skip();
	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_t waiter;
		count += TIMES;
		assert_int_equal(pthread_create(&waiter, NULL, wait_for_events, &count), 0);
		for (unsigned i = 0; i < TIMES; i++)
			send_to_us(psn++);
		struct vb_descriptor write = request(VB_WRITE_ONLY, psn++);
		asks(&who, &write, 1);
		assert_true(is_answered());
		eventfd_write(leave_fd, 1);
		pthread_join(waiter, NULL);
	}
}

/* It has gone with something executed that was not said: to who sleeps that is said in time, too. */
static void returner__owes_nothing_for_long(void **state)
{
	unsigned count = 1;
	pthread_t waiter;

	if (!is_able)
		skip();
	const struct vb_sge sge = { (uintptr_t)memory, 8, vb_mr_key(mr) };
	const struct vb_recv_wr wr = { .sges = &sge, .sge_count = 1 };
	struct vb_descriptor send_only = request(VB_SEND_ONLY, 0);
	assert_int_equal(vb_rq_post(qp, &wr), 0);
	vb_shm_doze(who.shm, false);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_events, &count), 0);
	asks(&who, &send_only, 1);
	assert_true(is_rung());
	assert_int_equal(takes_answers(&who, VB_ANSWER_DONE), 1);
	eventfd_write(leave_fd, 1);
	pthread_join(waiter, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(returner__leaves_the_thread_asleep),
		TEST(returner__that_stays_away_is_stood_in_for),
		TEST(returner__is_missed_every_time),
		TEST(returner__owes_nothing_for_long),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	setenv("VERBENA_LOG", "error", 1);
	alarm(60);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
