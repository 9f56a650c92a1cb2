/* A program on one core whose thread that polls shares it with one that works: the progress thread leaves packets to
 * the poller, who comes late. In a network namespace of the test's own; skipped where none may be made. The argument is
 * the directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "connected.h"

#define ROUNDS   300
#define ATTEMPTS 10
#define WORK     (300 * VB_US) /* longer than pollers stay away who have a core to themselves */

static struct vb_device *device;
static struct vb_cq *cq;
static int work_fd;
static atomic_bool is_over, is_working;
static bool is_able;

static void on_event(const struct vb_event *event) {}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

/* Calls what for each thread of this process. */
static void for_each_thread(void (*what)(int thread, void *user), void *user)
{
	DIR *threads = opendir("/proc/self/task");

	assert_non_null(threads);
	for (struct dirent *entry; (entry = readdir(threads));)
		if (entry->d_name[0] != '.')
			what(atoi(entry->d_name), user);
	closedir(threads);
}

static void pin(int thread, void *cores)
{
	assert_int_equal(sched_setaffinity(thread, sizeof(cpu_set_t), cores), 0);
}

/* How often the library's own threads have slept. */
static void count_sleeps(int thread, void *user)
{
	char path[64], line[128], name[32] = "";
	long *total = user, sleeps;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	FILE *status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		sscanf(line, "Name: %31s", name);
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps) == 1 && strncmp(name, "verbena", 7) == 0)
			*total += sleeps;
	}
	fclose(status);
}

static void *work(void *unused)
{
	eventfd_t ignored;

	while (eventfd_read(work_fd, &ignored) == 0 && !is_over) {
		vb_time until = vb_time_add(vb_host_now(), WORK);
		while (vb_time_before(vb_host_now(), until))
			continue;
		is_working = false;
	}
	return NULL;
}

static void write_nothing(struct vb_qp *qp)
{
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE }), 0);
	vb_sq_end(qp, true);
	vb_host_lane_kick(vb_device_host_lane(device));
}

/* As a reactor does that hands requests to workers. */
static long sleeps_of_rounds(struct vb_qp *qp)
{
	long before = 0, after = 0;

	for_each_thread(count_sleeps, &before);
	for (int i = 0; i < ROUNDS; i++) {
		struct vb_wc wc = { .status = VB_WC_GENERAL_ERR };
		bool is_done = false;
		is_working = true;
		eventfd_write(work_fd, 1);
		write_nothing(qp);
		while (!is_done || is_working) {
			is_done |= vb_cq_poll(cq, &wc, 1) == 1;
			vb_device_drive(device, VB_ALL_LANES);
			sched_yield();
		}
		assert_int_equal(wc.status, VB_WC_SUCCESS);
	}
	for_each_thread(count_sleeps, &after);
	return after - before;
}

/* Whoever else runs on the machine makes pollers later than anybody waits for. So only attempts count that had the
 * core, and one that shows it will do. */
static void progress__leaves_packets_to_pollers_that_share_their_core(void **state)
{
	struct vb_cq_config config = { .capacity = 4 };
	cpu_set_t one, before;
	struct vb_pd *pd;
	pthread_t worker;
	long sleeps = ROUNDS;
	bool had_core = false;

	if (!is_able)
		skip();
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	assert_int_equal(vb_pd_create(vb_device_nic(device), &pd), 0);
	assert_int_equal(vb_cq_create(vb_device_nic(device), &config, &cq), 0);
	struct vb_qp *qp = connected_on(
		device, pd, cq, (struct vb_qp_attr){ .timeout = 14, .retry_cnt = 7, .access = VB_ACCESS_REMOTE_WRITE });
	work_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&worker, NULL, work, NULL), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	for_each_thread(pin, &one);

	for (int i = 0; i < ATTEMPTS && sleeps > ROUNDS / 2; i++) {
		vb_time began = vb_host_now();
		sleeps = sleeps_of_rounds(qp);
		had_core |= vb_time_since(began, vb_host_now()) < 2 * ROUNDS * WORK;
	}
	if (had_core)
		assert_in_range(sleeps, 0, ROUNDS / 2);

	for_each_thread(pin, &before);
	is_over = true;
	eventfd_write(work_fd, 1);
	pthread_join(worker, NULL);
	close(work_fd);
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(vb_cq_destroy(cq), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_device_close(device);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress__leaves_packets_to_pollers_that_share_their_core),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
