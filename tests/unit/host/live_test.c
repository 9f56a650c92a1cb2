/* A live lane over loopback with its broker: who drives, what happens while nobody calls, threads, fork, idleness. In a
 * network namespace of the test's own; skipped where none may be made. The argument is the directory of
 * verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "host/host.h"

#define LINKS       4
#define BYTES       8192
#define QUEUE       64
#define PATIENCE_MS 5000

/* Two QPs of this process that are connected to each other, over the wire. */
struct link {
	struct vb_qp *qp[2];
	struct vb_cq *cq;
	uint8_t source[BYTES], target[BYTES];
	struct vb_mr *source_mr, *target_mr;
};

static struct vb_device *device;
static struct vb_pd *pd;
static struct link links[LINKS];
static struct vb_av av;
static int event_fd;
static bool is_able;

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void on_event(const struct vb_event *event)
{
	if (event->kind == VB_EVENT_COMPLETION)
		eventfd_write(event_fd, 1);
}

static void on_port(void *user, bool is_active) {}

static void on_gid_change(void *user) {}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

static struct vb_mr *registered(uint8_t *memory)
{
	struct vb_mr_config config = { .memory = memory,
		.iova = (uintptr_t)memory,
		.length = BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ };
	struct vb_mr *mr;

	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	return mr;
}

static void modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	int rc = vb_qp_modify(qp, attr, mask, vb_host_now());
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(rc, 0);
}

static void connect_to(struct vb_qp *qp, uint32_t dest_qpn)
{
	struct vb_qp_attr attr = { .state = VB_QPS_INIT,
		.port = 1,
		.access = VB_ACCESS_REMOTE_WRITE,
		.av = av,
		.path_mtu = 4096,
		.dest_qpn = dest_qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7 };

	modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	attr.state = VB_QPS_RTR;
	modify(qp, &attr,
		VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER);
	attr.state = VB_QPS_RTS;
	modify(qp, &attr,
		VB_QP_STATE | VB_QP_SQ_PSN | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY |
			VB_QP_MAX_QP_RD_ATOMIC);
}

static void link_open(struct link *link)
{
	struct vb_cq_config cq_config = { .capacity = QUEUE };

	assert_int_equal(vb_cq_create(vb_device_nic(device), &cq_config, &link->cq), 0);
	link->source_mr = registered(link->source);
	link->target_mr = registered(link->target);
	for (int i = 0; i < 2; i++) {
		struct vb_qp_config config = { .type = VB_QP_RC,
			.pd = pd,
			.send_cq = link->cq,
			.recv_cq = link->cq,
			.max_send_wr = QUEUE,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.signal_all = true };
		assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
		assert_int_equal(
			vb_qp_create(vb_host_lane_lane(vb_device_host_lane(device)), &config, &link->qp[i]), 0);
		vb_host_lane_unlock(vb_device_host_lane(device));
	}
	for (int i = 0; i < 2; i++)
		connect_to(link->qp[i], vb_qp_number(link->qp[!i]));
}

static void link_close(struct link *link)
{
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(vb_qp_destroy(link->qp[i]), 0);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(vb_cq_destroy(link->cq), 0);
	assert_int_equal(vb_mr_invalidate(link->source_mr), 0);
	assert_int_equal(vb_mr_invalidate(link->target_mr), 0);
	vb_device_grace(device);
	vb_mr_free(link->source_mr);
	vb_mr_free(link->target_mr);
}

static int open_all(void **state)
{
	struct vb_device_info info;

	if (!is_able)
		return 0;
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	vb_device_query(device, &info);
	av = (struct vb_av){ .sgid = info.gids[0].gid, .dgid = info.gids[0].gid, .hop_limit = 64 };
	assert_int_equal(vb_pd_create(vb_device_nic(device), &pd), 0);
	for (int i = 0; i < LINKS; i++)
		link_open(&links[i]);
	return 0;
}

static int close_all(void **state)
{
	if (!is_able)
		return 0;
	for (int i = 0; i < LINKS; i++)
		link_close(&links[i]);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_device_close(device);
	close(event_fd);
	return 0;
}

#define NEEDS_NAMESPACE                                                                                                \
	if (!is_able)                                                                                                  \
	skip()

/* ---- Doing things ------------------------------------------------------------------------------------------------ */

static void post_write(struct link *link, uint32_t length, uint64_t wr_id)
{
	struct vb_sge sge = { (uintptr_t)link->source, length, vb_mr_key(link->source_mr) };
	struct vb_send_wr wr = { .wr_id = wr_id,
		.opcode = VB_WR_RDMA_WRITE,
		.sges = &sge,
		.sge_count = 1,
		.remote_addr = (uintptr_t)link->target,
		.rkey = vb_mr_key(link->target_mr) };

	vb_sq_begin(link->qp[0]);
	int rc = vb_sq_put(link->qp[0], &wr);
	vb_sq_end(link->qp[0], rc == 0);
	if (rc)
		abort(); /* threads call this, and cmocka's assertions are for its own */
	vb_host_lane_kick(vb_device_host_lane(device));
}

static void sleep_ms(int ms)
{
	struct timespec span = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&span, &span) < 0 && errno == EINTR)
		continue;
}

/* Polls as a program does: drives when the queue is empty. */
static struct vb_wc poll_one(struct link *link)
{
	struct vb_wc wc = { .status = VB_WC_GENERAL_ERR };
	vb_time until = vb_time_add(vb_host_now(), PATIENCE_MS * VB_MS);

	while (vb_cq_poll(link->cq, &wc, 1) == 0 && vb_time_before(vb_host_now(), until))
		vb_device_drive(device, VB_ALL_LANES);
	return wc;
}

/* Waits without a call that could drive the lane. */
static bool completes_by_itself(struct link *link)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (!vb_cq_is_empty(link->cq))
			return true;
		sleep_ms(1);
	}
	return false;
}

static void fill(struct link *link, uint8_t with)
{
	memset(link->source, with, BYTES);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void poll__drives_the_lane(void **state)
{
	NEEDS_NAMESPACE;
	for (int i = 0; i < 200; i++) {
		fill(&links[0], (uint8_t)i);
		post_write(&links[0], BYTES, (uint64_t)i);
		struct vb_wc wc = poll_one(&links[0]);
		assert_int_equal(wc.status, VB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_memory_equal(links[0].target, links[0].source, BYTES);
	}
}

static void progress__goes_on_while_nobody_calls(void **state)
{
	struct vb_wc wc;

	NEEDS_NAMESPACE;
	for (int i = 0; i < 20; i++) {
		fill(&links[0], (uint8_t)(100 + i));
		post_write(&links[0], BYTES, 1);
		assert_true(completes_by_itself(&links[0]));
		assert_int_equal(vb_cq_poll(links[0].cq, &wc, 1), 1);
		assert_int_equal(wc.status, VB_WC_SUCCESS);
		assert_memory_equal(links[0].target, links[0].source, BYTES);
	}
}

static void progress__takes_over_from_pollers_that_left(void **state)
{
	struct vb_wc wc;

	NEEDS_NAMESPACE;
	for (int i = 0; i < 20; i++) {
		for (int polls = 0; polls < 100; polls++)
			vb_device_drive(device, VB_ALL_LANES);
		post_write(&links[0], BYTES, 1);
		assert_true(completes_by_itself(&links[0]));
		assert_int_equal(vb_cq_poll(links[0].cq, &wc, 1), 1);
		assert_int_equal(wc.status, VB_WC_SUCCESS);
	}
}

static void wait__returns_when_the_descriptor_is_readable(void **state)
{
	struct vb_wc wc;
	eventfd_t count;

	NEEDS_NAMESPACE;
	for (int i = 0; i < 50; i++) {
		vb_cq_request_notify(links[0].cq, false);
		post_write(&links[0], BYTES, 1);
		assert_true(vb_device_wait(device, VB_ALL_LANES, event_fd, NULL));
		assert_int_equal(eventfd_read(event_fd, &count), 0);
		assert_int_equal(vb_cq_poll(links[0].cq, &wc, 1), 1);
		assert_int_equal(wc.status, VB_WC_SUCCESS);
	}
}

static void on_alarm(int signal) {}

static void wait__is_interrupted_by_a_signal(void **state)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval once = { .it_value = { .tv_usec = 50000 } };

	NEEDS_NAMESPACE;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	assert_false(vb_device_wait(device, VB_ALL_LANES, event_fd, NULL));
	assert_int_equal(errno, EINTR);
	/* The lane is attended again. */
	struct vb_wc wc;
	post_write(&links[0], 8, 1);
	assert_true(completes_by_itself(&links[0]));
	assert_int_equal(vb_cq_poll(links[0].cq, &wc, 1), 1);
}

static void *wait_in_thread(void *argument)
{
	return (void *)(uintptr_t)vb_device_wait(device, VB_ALL_LANES, *(int *)argument, NULL);
}

static void wait__of_several_threads_ends_for_each(void **state)
{
	pthread_t threads[3];
	int fds[3];

	NEEDS_NAMESPACE;
	for (int i = 0; i < 3; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
		assert_int_equal(pthread_create(&threads[i], NULL, wait_in_thread, &fds[i]), 0);
	}
	sleep_ms(20);
	for (int i = 0; i < 3; i++) {
		void *result;
		eventfd_write(fds[i], 1);
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_non_null(result);
		close(fds[i]);
		struct vb_wc wc;
		post_write(&links[0], 8, 1); /* whoever waits on, the lane goes on */
		assert_true(completes_by_itself(&links[0]));
		assert_int_equal(vb_cq_poll(links[0].cq, &wc, 1), 1);
	}
}

static void *post_many(void *argument)
{
	struct link *link = argument;

	for (uintptr_t i = 0; i < 2000; i++) {
		post_write(link, i % 2 ? 8 : 4000, i);
		struct vb_wc wc = poll_one(link);
		if (wc.status != VB_WC_SUCCESS || wc.wr_id != i)
			return (void *)(i + 1);
	}
	return NULL;
}

static void post__from_many_threads_loses_no_doorbell(void **state)
{
	pthread_t threads[LINKS];

	NEEDS_NAMESPACE;
	for (int i = 0; i < LINKS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, &links[i]), 0);
	for (int i = 0; i < LINKS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void idle__uses_no_cpu(void **state)
{
	NEEDS_NAMESPACE;
	for (int polls = 0; polls < 100; polls++)
		vb_device_drive(device, VB_ALL_LANES);
	uint64_t used = UINT64_MAX;
	for (int tries = 0; tries < 10 && used > 1000000; tries++) { /* what was going on comes to its end */
		sleep_ms(200);
		uint64_t before = cpu_ns();
		sleep_ms(500);
		used = cpu_ns() - before;
	}
	assert_in_range(used, 0, 1000000);
}

/* Of datagrams that we send to ourselves nothing is said: no deadline is left for it. */
static void idle__after_datagrams_to_ourselves_uses_no_cpu(void **state)
{
	NEEDS_NAMESPACE;
	struct vb_host_lane *host_lane = vb_device_host_lane(device);
	struct link *link = &links[0];
	struct vb_qp_config config = { .type = VB_QP_UD,
		.pd = pd,
		.send_cq = link->cq,
		.recv_cq = link->cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.signal_all = true };
	struct vb_qp_attr attr = { .state = VB_QPS_INIT, .port = 1, .qkey = 5 };
	struct vb_qp *qp;
	struct vb_wc wc;

	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	assert_int_equal(vb_qp_create(vb_host_lane_lane(host_lane), &config, &qp), 0);
	vb_host_lane_unlock(host_lane);
	modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY);
	attr.state = VB_QPS_RTR;
	modify(qp, &attr, VB_QP_STATE);
	attr.state = VB_QPS_RTS;
	modify(qp, &attr, VB_QP_STATE | VB_QP_SQ_PSN);
	struct vb_sge sge = { (uintptr_t)link->source, 8, vb_mr_key(link->source_mr) };
	struct vb_send_wr wr = { .opcode = VB_WR_SEND,
		.sges = &sge,
		.sge_count = 1,
		.av = &av,
		.remote_qpn = vb_qp_number(qp),
		.remote_qkey = attr.qkey };
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, &wr), 0);
	vb_host_lane_end_post(host_lane, qp);
	while (vb_cq_poll(link->cq, &wc, 1) == 0)
		vb_device_drive(device, VB_ALL_LANES);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
	idle__uses_no_cpu(state);
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_host_lane_unlock(host_lane);
}

static void fork__child_is_told_and_parent_goes_on(void **state)
{
	int status;

	NEEDS_NAMESPACE;
	pid_t child = fork();
	if (child == 0) {
		bool good = vb_device_is_forked(device) && vb_host_lane_lock(vb_device_host_lane(device)) < 0;
		vb_device_drive(device, VB_ALL_LANES); /* harmless */
		vb_host_lane_kick(vb_device_host_lane(device));
		_exit(good && !vb_device_wait(device, VB_ALL_LANES, event_fd, NULL) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(vb_device_is_forked(device));
	poll__drives_the_lane(state);
}

static void open__again_shares_the_lane(void **state)
{
	struct vb_device *second;

	NEEDS_NAMESPACE;
	assert_int_equal(vb_device_open("vb_lo", &sink, &second), 0);
	assert_ptr_equal(
		vb_host_lane_lane(vb_device_host_lane(second)), vb_host_lane_lane(vb_device_host_lane(device)));
	assert_ptr_not_equal(vb_device_nic(second), vb_device_nic(device));
	vb_device_close(second);
	assert_int_equal(vb_device_open("vb_nothing", &sink, &second), -ENODEV);
	poll__drives_the_lane(state);
}

static bool is_listed(const char *name)
{
	struct vb_device_info *list;
	size_t count;
	bool is_found = false;

	assert_int_equal(vb_devices_list(&list, &count), 0);
	for (size_t i = 0; i < count; i++)
		is_found |= strcmp(list[i].name, name) == 0;
	free(list);
	return is_found;
}

/* It leaves the list when another comes, but not under who has it open. */
static void loopback__held_open_stays_when_another_comes(void **state)
{
	struct vb_device *second;

	NEEDS_NAMESPACE;
	if (system("ip link add vbt0 type veth peer name vbt1 2>/dev/null && ip addr add 10.79.0.1/24 dev vbt0 && "
		   "ip link set vbt1 up && ip link set vbt0 up"))
		skip();
	assert_true(is_listed("vb_vbt0"));
	assert_true(is_listed("vb_lo"));
	poll__drives_the_lane(state);
	assert_int_equal(vb_device_open("vb_lo", &sink, &second), 0);
	vb_device_close(second);
	assert_true(is_listed("vb_lo"));
	close_all(state);
	assert_false(is_listed("vb_lo"));
	open_all(state); /* a program that was shown it before may open it */
	assert_true(is_listed("vb_lo"));
	assert_int_equal(system("ip link delete vbt0"), 0);
	assert_false(is_listed("vb_vbt0"));
	poll__drives_the_lane(state);
}

static void open__after_close_starts_anew(void **state)
{
	NEEDS_NAMESPACE;
	for (int i = 0; i < 3; i++) {
		close_all(state);
		open_all(state);
		poll__drives_the_lane(state);
	}
}

static void clock__goes_forward_and_back_to_monotonic(void **state)
{
	struct timespec now;

	vb_time at = vb_host_now();
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	assert_in_range(ns - vb_host_monotonic_ns(at), 0, 1000000000);
	assert_in_range(vb_host_monotonic_ns(vb_time_add(at, VB_S)) - vb_host_monotonic_ns(at), 999999990, 1000000010);
	assert_false(vb_time_before(vb_host_now(), at));
}

static struct vb_qp *started_raw_qp(struct vb_cq *cq)
{
	struct vb_qp_config config = { .type = VB_QP_RAW,
		.pd = pd,
		.send_cq = cq,
		.recv_cq = cq,
		.max_send_wr = QUEUE,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.signal_all = true };
	struct vb_qp_attr attr = { .state = VB_QPS_INIT, .port = 1 };
	struct vb_qp *qp;

	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	int rc = vb_qp_create(vb_host_lane_lane(vb_device_host_lane(device)), &config, &qp);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(rc, 0);
	modify(qp, &attr, VB_QP_STATE | VB_QP_PORT);
	for (attr.state = VB_QPS_RTR; attr.state <= VB_QPS_RTS; attr.state++)
		modify(qp, &attr, VB_QP_STATE);
	return qp;
}

/* More frames of the local experimental Ethernet type than the socket holds. */
static void post_frames(struct vb_qp *qp)
{
	static const uint8_t header[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0xb5 };
	struct vb_sge sge = { (uintptr_t)links[0].source, 8000, vb_mr_key(links[0].source_mr) };
	struct vb_send_wr wr = { .opcode = VB_WR_SEND, .sges = &sge, .sge_count = 1 };

	memcpy(links[0].source, header, sizeof(header));
	vb_sq_begin(qp);
	for (int i = 0; i < QUEUE; i++)
		assert_int_equal(vb_sq_put(qp, &wr), 0);
	vb_sq_end(qp, true);
	vb_host_lane_kick(vb_device_host_lane(device));
}

static void frames__wait_for_a_slow_interface_without_cpu(void **state)
{
	struct vb_cq_config config = { .capacity = QUEUE };
	struct vb_wc wc[QUEUE];
	struct vb_cq *cq;

	NEEDS_NAMESPACE;
	if (vb_device_open_frames(device) < 0 ||
		system("tc qdisc add dev lo root tbf rate 800kbit burst 20000 limit 10000000") != 0)
		skip();
	assert_int_equal(vb_cq_create(vb_device_nic(device), &config, &cq), 0);
	struct vb_qp *qp = started_raw_qp(cq);
	post_frames(qp);
	sleep_ms(200);
	uint64_t before = cpu_ns();
	sleep_ms(500);
	assert_in_range(cpu_ns() - before, 0, 20000000);
	int sent = vb_cq_poll(cq, wc, QUEUE);
	assert_in_range(sent, 1, QUEUE - 1);
	assert_int_equal(system("tc qdisc del dev lo root"), 0);
	for (int ms = 0; ms < PATIENCE_MS && sent < QUEUE; ms++) {
		sleep_ms(1);
		sent += vb_cq_poll(cq, wc, QUEUE);
	}
	assert_int_equal(sent, QUEUE);
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(vb_cq_destroy(cq), 0);
	idle__uses_no_cpu(state);
}

/* Closing such a socket takes the kernel milliseconds: no second one is made to answer the same question. */
static void frames__are_asked_for_once(void **state)
{
	struct rlimit usual, none;

	if (!vb_host_may_use_frames())
		skip();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = usual;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool is_allowed = vb_host_may_use_frames();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_true(is_allowed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll__drives_the_lane),
		cmocka_unit_test(progress__goes_on_while_nobody_calls),
		cmocka_unit_test(progress__takes_over_from_pollers_that_left),
		cmocka_unit_test(wait__returns_when_the_descriptor_is_readable),
		cmocka_unit_test(wait__is_interrupted_by_a_signal),
		cmocka_unit_test(wait__of_several_threads_ends_for_each),
		cmocka_unit_test(post__from_many_threads_loses_no_doorbell),
		cmocka_unit_test(idle__uses_no_cpu),
		cmocka_unit_test(idle__after_datagrams_to_ourselves_uses_no_cpu),
		cmocka_unit_test(frames__are_asked_for_once),
		cmocka_unit_test(frames__wait_for_a_slow_interface_without_cpu),
		cmocka_unit_test(fork__child_is_told_and_parent_goes_on),
		cmocka_unit_test(open__again_shares_the_lane),
		cmocka_unit_test(loopback__held_open_stays_when_another_comes),
		cmocka_unit_test(open__after_close_starts_anew),
		cmocka_unit_test(clock__goes_forward_and_back_to_monotonic),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, open_all, close_all);
}
