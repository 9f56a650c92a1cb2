/* A program that closes descriptors of ours, all of them or one, and has files of its own under their numbers: its QPs
 * fail, no thread spins, its files stay as they are, and devices can be closed, and opened again. Each case has a
 * process of its own, in a network namespace of the test's; skipped where none may be made. The argument is the
 * directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "connected.h"
#include "host/lanes/host_lane_state.h"

#define NOBODYS_QPN 0xFA0002 /* of a slot that no process has */
#define PATIENCE_MS 5000
#define CASE_S      30
#define FILES       24
#define CPU_MS      60 /* of a second: a thread that spins takes all of it */
#define WORDS       "these words are the program's own"

static bool is_able;

#define REQUIRE(claim)                                                                                                 \
	do {                                                                                                           \
		if (!(claim)) {                                                                                        \
			dprintf(STDERR_FILENO, "line %d: not true: %s\n", __LINE__, #claim);                           \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

/* ---- A program --------------------------------------------------------------------------------------------------- */

struct program {
	struct vb_device *device;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_qp *qp;
};

static const struct vb_device_sink sink = { NULL, on_port, on_gid_change, NULL };

static atomic_uint completions;

static void on_event(const struct vb_event *event)
{
	if (event->kind == VB_EVENT_COMPLETION)
		completions++;
}

/* timeout: as of a QP, 4096 ns times a power of two; 14 and 7 retries take longer than any case waits. */
static struct program begin(uint8_t timeout, uint8_t retries)
{
	static struct vb_device_sink own;
	struct program p;

	own = sink;
	own.on_event = on_event;
	REQUIRE(vb_device_open("vb_lo", &own, &p.device) == 0);
	REQUIRE(vb_pd_create(vb_device_nic(p.device), &p.pd) == 0);
	REQUIRE(vb_cq_create(vb_device_nic(p.device), &(struct vb_cq_config){ .capacity = 4 }, &p.cq) == 0);
	p.qp = connected_on(p.device, p.pd, p.cq,
		(struct vb_qp_attr){ .dest_qpn = NOBODYS_QPN, .timeout = timeout, .retry_cnt = retries });
	return p;
}

static void post(const struct program *p)
{
	vb_sq_begin(p->qp);
	REQUIRE(vb_sq_put(p->qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE }) == 0);
	vb_sq_end(p->qp, true);
	vb_host_lane_kick(vb_device_host_lane(p->device));
}

static void end(struct program *p)
{
	vb_host_lane_lock(vb_device_host_lane(p->device));
	REQUIRE(vb_qp_destroy(p->qp) == 0);
	vb_host_lane_unlock(vb_device_host_lane(p->device));
	REQUIRE(vb_cq_destroy(p->cq) == 0);
	REQUIRE(vb_pd_destroy(p->pd) == 0);
	vb_device_close(p->device);
}

static void sleep_ms(int ms)
{
	poll(NULL, 0, ms);
}

static bool await_completion(const struct program *p, struct vb_wc *wc)
{
	for (int ms = 0; ms < PATIENCE_MS && vb_cq_is_empty(p->cq); ms++)
		sleep_ms(1);
	return vb_cq_poll(p->cq, wc, 1) == 1;
}

static long cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* ---- Its files --------------------------------------------------------------------------------------------------- */

static int make_file(void)
{
	int fd = memfd_create("own", MFD_CLOEXEC);

	REQUIRE(fd >= 0);
	REQUIRE(pwrite(fd, WORDS, sizeof(WORDS), 0) == sizeof(WORDS));
	return fd;
}

static void require_untouched(int fd)
{
	char words[2 * sizeof(WORDS)];

	REQUIRE(lseek(fd, 0, SEEK_CUR) == 0);
	REQUIRE(pread(fd, words, sizeof(words), 0) == sizeof(WORDS));
	REQUIRE(memcmp(words, WORDS, sizeof(WORDS)) == 0);
}

#define COUNTED 5

static int make_counter(void)
{
	int fd = eventfd(COUNTED, EFD_CLOEXEC | EFD_NONBLOCK);

	REQUIRE(fd >= 0);
	return fd;
}

static void require_uncounted(int fd)
{
	eventfd_t count;

	REQUIRE(eventfd_read(fd, &count) == 0 && count == COUNTED);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

static int said; /* memory that stderr goes to */

static bool has_said(const char *words)
{
	static char text[16384];
	ssize_t length = pread(said, text, sizeof(text) - 1, 0);

	REQUIRE(length >= 0);
	text[length] = '\0';
	return strstr(text, words);
}

/* A lane speaks when it has given its mutex away, after the completion that it speaks of: the words are awaited. */
static void require_said(const char *words)
{
	for (int ms = 0; ms < PATIENCE_MS && !has_said(words); ms++)
		sleep_ms(1);
	if (!has_said(words))
		dprintf(STDERR_FILENO, "missing: %s\n", words);
	REQUIRE(has_said(words));
}

static void close_all_but(int kept)
{
	REQUIRE(kept > 3);
	REQUIRE(syscall(SYS_close_range, 3, kept - 1, 0) == 0);
	REQUIRE(syscall(SYS_close_range, kept + 1, ~0u, 0) == 0);
}

/* As far as RTR, and it is in error. */
static void require_reconnection_fails(const struct program *p)
{
	struct vb_qp_attr attr;
	struct vb_qp_config config;

	vb_host_lane_lock(vb_device_host_lane(p->device));
	vb_qp_query(p->qp, &attr, &config);
	vb_host_lane_unlock(vb_device_host_lane(p->device));
	REQUIRE(attr.state == VB_QPS_ERR);
	attr.state = VB_QPS_RESET;
	modify_on(p->device, p->qp, &attr, 0);
	attr.state = VB_QPS_INIT;
	modify_on(p->device, p->qp, &attr, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	attr.state = VB_QPS_RTR;
	modify_on(p->device, p->qp, &attr,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER);
	vb_host_lane_lock(vb_device_host_lane(p->device));
	vb_qp_query(p->qp, &attr, &config);
	vb_host_lane_unlock(vb_device_host_lane(p->device));
	REQUIRE(attr.state == VB_QPS_ERR);
}

static void all_closed(void)
{
	struct program p = begin(18, 7), again;
	int files[FILES];
	struct vb_wc wc;

	int kept = fcntl(said, F_DUPFD_CLOEXEC, 500);
	post(&p);
	sleep_ms(50);
	close_all_but(kept);
	said = kept;
	for (unsigned i = 0; i < FILES; i++)
		files[i] = make_file();
	REQUIRE(await_completion(&p, &wc)); /* without a poll that drives: a thread of ours has done it */
	REQUIRE(wc.status == VB_WC_WR_FLUSH_ERR);
	require_said("this program has closed descriptors that are Verbena's");
	require_said("this program has closed the descriptors of Verbena's sockets; peer ");
	long before = cpu_ms();
	sleep_ms(1000);
	REQUIRE(cpu_ms() - before < CPU_MS);

	post(&p);
	vb_device_drive(p.device, VB_ALL_LANES);
	REQUIRE(await_completion(&p, &wc) && wc.status == VB_WC_WR_FLUSH_ERR);
	require_reconnection_fails(&p);
	REQUIRE(vb_device_has_lost_descriptors(p.device));
	end(&p);

	again = begin(1, 0);
	REQUIRE(!vb_device_has_lost_descriptors(again.device));
	post(&again);
	REQUIRE(await_completion(&again, &wc) && wc.status == VB_WC_RETRY_EXC_ERR);
	end(&again);
	for (unsigned i = 0; i < FILES; i++)
		require_untouched(files[i]);
}

/* The program's files are of the kinds that ours are: only the number could tell them apart. */
static void all_closed_and_counters_made(void)
{
	struct program p = begin(18, 7);
	int counters[FILES];
	struct vb_wc wc;

	int kept = fcntl(said, F_DUPFD_CLOEXEC, 500);
	post(&p);
	close_all_but(kept);
	said = kept;
	REQUIRE(await_completion(&p, &wc) && wc.status == VB_WC_WR_FLUSH_ERR);
	sleep_ms(100);
	for (unsigned i = 0; i < FILES; i++)
		counters[i] = make_counter();
	end(&p);
	for (unsigned i = 0; i < FILES; i++)
		require_uncounted(counters[i]);
}

static void *wait_for_event(void *device)
{
	static int channel;

	channel = eventfd(0, EFD_CLOEXEC);
	return (void *)(uintptr_t)vb_device_wait(device, VB_ALL_LANES, channel, &completions);
}

/* It holds what it sleeps on, and hears of nothing that is closed but a pipe's other end. */
static void all_closed_under_a_waiter(void)
{
	struct program p = begin(18, 7);
	pthread_t waiter;
	void *is_there;
	struct vb_wc wc;

	vb_cq_request_notify(p.cq, false);
	post(&p);
	REQUIRE(pthread_create(&waiter, NULL, wait_for_event, p.device) == 0);
	sleep_ms(100);
	int kept = fcntl(said, F_DUPFD_CLOEXEC, 500);
	close_all_but(kept);
	said = kept;
	REQUIRE(pthread_join(waiter, &is_there) == 0 && is_there);
	REQUIRE(vb_cq_poll(p.cq, &wc, 1) == 1 && wc.status == VB_WC_WR_FLUSH_ERR);
	end(&p);
}

/* What a close() too many hits, and what has the number next is a file of the program's. */
static void replace(int fd)
{
	REQUIRE(fd > 2);
	int file = make_file();
	REQUIRE(dup3(file, fd, O_CLOEXEC) == fd);
	close(file);
}

static void one_closed(int (*choose)(const struct program *p))
{
	struct program p = begin(14, 1);
	struct vb_wc wc;

	sleep_ms(50);
	int fd = choose(&p);
	replace(fd);
	post(&p);
	REQUIRE(await_completion(&p, &wc) && wc.status != VB_WC_SUCCESS);
	long before = cpu_ms();
	sleep_ms(1000);
	REQUIRE(cpu_ms() - before < CPU_MS);
	require_untouched(fd);
	end(&p);
	require_untouched(fd);
}

static int epoll_of(const struct program *p)
{
	return vb_state_of(vb_device_host_lane(p->device))->wakeups.epoll_fd;
}

static int timer_of(const struct program *p)
{
	return vb_state_of(vb_device_host_lane(p->device))->wakeups.timer_fd;
}

static int waker_of(const struct program *p)
{
	return vb_state_of(vb_device_host_lane(p->device))->wakeups.wake_fd;
}

static int stopper_of(const struct program *p)
{
	return vb_state_of(vb_device_host_lane(p->device))->wakeups.stop_fd;
}

static int socket_of(const struct program *p)
{
	return vb_device_host_lane(p->device)->slot.fd;
}

/* The end of the pipe by which the broker's thread hears of all this. */
static int pipe_of(const struct program *p)
{
	for (int fd = 3; fd < 100; fd++) {
		struct stat status;
		if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
			return fd;
	}
	return -1;
}

static int connections_of(const struct program *p)
{
	return vb_device_host_lane(p->device)->process->connections_fd;
}

static int (*chosen)(const struct program *p);

static void chosen_closed(void)
{
	one_closed(chosen);
}

static void run_case(void (*run)(void))
{
	int status;
	if (!is_able)
		skip();
	int memory = memfd_create("said", MFD_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0) {
		said = memory;
		alarm(CASE_S); /* one that hangs is killed */
		dup2(said, STDERR_FILENO);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	char text[4096];
	ssize_t length = pread(memory, text, sizeof(text) - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	close(memory);
	if (status != 0)
		print_message("%s", text);
	assert_int_equal(status, 0);
}

static void program__that_closes_all_descriptors_has_its_qps_fail(void **state)
{
	run_case(all_closed);
}

static void program__that_closes_all_descriptors_keeps_its_eventfds(void **state)
{
	run_case(all_closed_and_counters_made);
}

static void waiter__is_woken_when_all_descriptors_are_closed(void **state)
{
	run_case(all_closed_under_a_waiter);
}

static void program__that_closes_one_descriptor_keeps_its_files(void **state)
{
	static int (*const choices[])(const struct program *p) = { epoll_of, timer_of, waker_of, stopper_of, socket_of,
		pipe_of, connections_of };

	for (unsigned i = 0; i < COUNT_OF(choices); i++) {
		chosen = choices[i];
		print_message("descriptor %u\n", i);
		run_case(chosen_closed);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program__that_closes_all_descriptors_has_its_qps_fail),
		cmocka_unit_test(program__that_closes_all_descriptors_keeps_its_eventfds),
		cmocka_unit_test(waiter__is_woken_when_all_descriptors_are_closed),
		cmocka_unit_test(program__that_closes_one_descriptor_keeps_its_files),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
