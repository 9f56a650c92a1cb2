/* Two processes of one host, connected: what becomes of requests when one of them is stopped, killed at any instant,
 * leaves in order or at once, belongs to another user or pid namespace, or does not want to share memory. In a network
 * namespace of the test's own; skipped where none may be made. The arguments are the directory of verbena-broker and,
 * if it is to be another number, how often to kill. */
#include "../namespace.h"
#include "connected.h"
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include "host/peers/host_peer.h"

#define QPS         5 /* one a kind of request */
#define DEPTH       8
#define LONG        1048576u
#define NOBODY      65534
#define PATIENCE_MS 20000 /* for what happens soon, but on a machine with too much to do */
#define TOLD_WITHIN                                                                                                    \
	1500 /* ms, once of many times: half a second passes first, in case he has said all that he had to */

enum kind { SENDS, WRITES, READS, ATOMICS, LENDS };

/* One of the two, in its own process. */
static struct vb_device *device;
static struct vb_host_lane *host_lane;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_mr *mr;
static uint8_t *memory; /* QPS long pieces */
static struct vb_qp *qps[QPS];
static bool is_able;
static int kills = 30;

/* What each tells the other. */
struct card {
	uint32_t qpns[QPS];
	uint32_t rkey;
	uint64_t address;
};
static struct card own, other;
static int talk; /* to the other */
static uint32_t seed = 1;

/* ---- Being one of them ------------------------------------------------------------------------------------------- */

static void on_event(const struct vb_event *event) {}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

static void open_device(void)
{
	struct vb_cq_config cq_config = { .capacity = 1024 };

	memory = mmap(NULL, QPS * LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vb_mr_config config = { .memory = memory,
		.iova = (uintptr_t)memory,
		.length = QPS * LONG,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ |
			  VB_ACCESS_REMOTE_ATOMIC };
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	host_lane = vb_device_host_lane(device);
	assert_int_equal(vb_pd_create(vb_device_nic(device), &pd), 0);
	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	assert_int_equal(vb_cq_create(vb_device_nic(device), &cq_config, &cq), 0);
}

static void make_qps(void)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = pd,
		.send_cq = cq,
		.recv_cq = cq,
		.max_send_wr = DEPTH,
		.max_recv_wr = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.signal_all = true };

	own = (struct card){ .rkey = vb_mr_key(mr), .address = (uintptr_t)memory };
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(vb_host_lane_lock(host_lane), 0);
		assert_int_equal(vb_qp_create(vb_host_lane_lane(host_lane), &config, &qps[i]), 0);
		vb_host_lane_unlock(host_lane);
		own.qpns[i] = vb_qp_number(qps[i]);
	}
}

static void destroy_qps(void)
{
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
	vb_host_lane_unlock(host_lane);
}

static void close_device(void)
{
	assert_int_equal(vb_cq_destroy(cq), 0);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_device_grace(device);
	vb_mr_free(mr);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_device_close(device);
	munmap(memory, QPS * LONG);
}

static bool hears(void *what, size_t length)
{
	return recv(talk, what, length, MSG_WAITALL) == (ssize_t)length;
}

static void tells(const void *what, size_t length)
{
	assert_int_equal(send(talk, what, length, MSG_NOSIGNAL), length);
}

static void wait_for_other(void)
{
	char byte = 0;

	tells(&byte, 1);
	assert_true(hears(&byte, 1));
}

static void post_receive(unsigned i)
{
	const struct vb_sge sge = { (uintptr_t)memory + i * LONG, LONG, vb_mr_key(mr) };
	const struct vb_recv_wr wr = { .wr_id = 1000 + i, .sges = &sge, .sge_count = 1 };

	assert_int_equal(vb_rq_post(qps[i], &wr), 0);
}

static void bring_up_qps(void)
{
	struct vb_qp_attr attr = { .port = 1,
		.path_mtu = 4096,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC };
	struct vb_device_info info;

	vb_device_query(device, &info);
	attr.av = (struct vb_av){ .sgid = info.gids[0].gid, .dgid = info.gids[0].gid, .hop_limit = 64 };
	for (unsigned i = 0; i < QPS; i++) {
		attr.dest_qpn = other.qpns[i];
		attr.state = VB_QPS_INIT;
		modify_on(device, qps[i], &attr, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
		for (unsigned k = 0; k < 32; k++)
			post_receive(i);
		attr.state = VB_QPS_RTR;
		modify_on(device, qps[i], &attr,
			VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
				VB_QP_MIN_RNR_TIMER);
		attr.state = VB_QPS_RTS;
		modify_on(device, qps[i], &attr,
			VB_QP_SQ_PSN | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC);
	}
}

static void connect_qps(void)
{
	tells(&own, sizeof(own));
	assert_true(hears(&other, sizeof(other)));
	bring_up_qps();
	wait_for_other();
}

/* False: the queue is full, or the QP in error. */
static bool post(enum kind kind)
{
	static const enum vb_wr_opcode opcodes[] = { VB_WR_SEND, VB_WR_RDMA_WRITE, VB_WR_RDMA_READ,
		VB_WR_ATOMIC_FETCH_AND_ADD, VB_WR_RDMA_WRITE };
	struct vb_sge sge = { (uintptr_t)memory + kind * LONG,
		kind == LENDS   ? LONG
		: kind == READS ? 20000
				: 8,
		vb_mr_key(mr) };
	struct vb_send_wr wr = { .wr_id = kind,
		.opcode = opcodes[kind],
		.sges = &sge,
		.sge_count = 1,
		.rkey = other.rkey,
		.remote_addr = other.address + kind * LONG };

	vb_sq_begin(qps[kind]);
	int rc = vb_sq_put(qps[kind], &wr);
	vb_sq_end(qps[kind], rc == 0);
	vb_host_lane_kick(host_lane);
	return rc == 0;
}

static void sleep_ms(int ms)
{
	struct timespec span = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&span, &span) < 0 && errno == EINTR)
		;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Traffic ----------------------------------------------------------------------------------------------------- */

struct tally {
	unsigned under_way[QPS], done, failed, received;
	enum vb_wc_status last;
};

static void count(struct tally *tally, const struct vb_wc *wc)
{
	if (wc->wr_id >= 1000) {
		tally->received += wc->status == VB_WC_SUCCESS;
		if (wc->status == VB_WC_SUCCESS)
			post_receive((unsigned)wc->wr_id - 1000);
		return;
	}
	tally->under_way[wc->wr_id]--;
	tally->done += wc->status == VB_WC_SUCCESS;
	tally->failed += wc->status != VB_WC_SUCCESS;
	if (wc->status != VB_WC_SUCCESS && wc->status != VB_WC_WR_FLUSH_ERR)
		tally->last = wc->status;
}

static bool poll_some(struct tally *tally)
{
	struct vb_wc wc[32];
	int n = vb_cq_poll(cq, wc, 32);

	for (int i = 0; i < n; i++)
		count(tally, &wc[i]);
	if (n == 0)
		vb_device_drive(device, VB_ALL_LANES);
	return n > 0;
}

static void send_more(struct tally *tally)
{
	for (unsigned kind = 0; kind < QPS; kind++)
		while (tally->under_way[kind] < DEPTH && post((enum kind)kind))
			tally->under_way[kind]++;
}

static unsigned left(const struct tally *tally)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < QPS; i++)
		sum += tally->under_way[i];
	return sum;
}

static bool finish(struct tally *tally, int ms)
{
	for (int64_t until = now_ms() + ms; left(tally) && now_ms() < until;)
		poll_some(tally);
	return left(tally) == 0;
}

/* ---- The other process ------------------------------------------------------------------------------------------- */

static pid_t start_other(void (*lives)(void))
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("CMOCKA_TEST_ABORT", "1", 1); /* it has no tests to go on with */
		close(ends[0]);
		talk = ends[1];
		lives();
		_exit(0);
	}
	close(ends[1]);
	talk = ends[0];
	return child;
}

static void connect_to_other(void)
{
	make_qps();
	connect_qps();
}

static int end_other(pid_t child)
{
	int status;

	close(talk);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void answers(void)
{
	open_device();
	connect_to_other();
	for (;;)
		pause(); /* its thread works */
}

static void works(void)
{
	struct tally tally = { .done = 0 };

	open_device();
	connect_to_other();
	for (;;) {
		send_more(&tally);
		poll_some(&tally);
	}
}

/* But for sockets of the network, which the port opens and closes as it likes. */
static unsigned count_fds(void)
{
	unsigned n = 0;
	DIR *directory = opendir("/proc/self/fd");

	for (struct dirent *entry; (entry = readdir(directory));) {
		int domain = 0;
		socklen_t length = sizeof(domain);
		getsockopt(atoi(entry->d_name), SOL_SOCKET, SO_DOMAIN, &domain, &length);
		n += domain != AF_INET && domain != AF_INET6;
	}
	closedir(directory);
	return n;
}

static unsigned count_maps(const char *name)
{
	unsigned n = 0;
	char line[512];
	FILE *file = fopen("/proc/self/maps", "re");

	while (fgets(line, sizeof(line), file))
		n += strstr(line, name) != NULL;
	fclose(file);
	return n;
}

static struct vb_host_peer *the_other(void)
{
	return host_lane->peers->by_slot[other.qpns[0] >> 16];
}

/* The thread may be about to learn of another. */
static enum vb_local_reason reason_of_other(void)
{
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	enum vb_local_reason reason = the_other()->reason;
	vb_host_lane_unlock(host_lane);
	return reason;
}

#define NEEDS_NAMESPACE                                                                                                \
	if (!is_able)                                                                                                  \
	skip()

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void all_kinds_succeed(void)
{
	struct tally tally = { .done = 0 };

	send_more(&tally);
	assert_true(finish(&tally, PATIENCE_MS));
	assert_int_equal(tally.failed, 0);
	assert_int_equal(tally.done, QPS * DEPTH);
}

static void two__talk_by_memory(void **state)
{
	NEEDS_NAMESPACE;
	pid_t child = start_other(answers);
	open_device();
	connect_to_other();
	all_kinds_succeed();
	assert_int_equal(reason_of_other(), VB_LOCAL_IS_USED);
	kill(child, SIGKILL);
	end_other(child);
	destroy_qps();
	close_device();
}

/* Returns when none of its threads runs any more. */
static void stop(pid_t child)
{
	int status;

	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
}

static void stop__is_no_error_however_long(void **state)
{
	struct tally tally = { .done = 0 };

	NEEDS_NAMESPACE;
	pid_t child = start_other(answers);
	open_device();
	connect_to_other();
	all_kinds_succeed();
	stop(child);
	send_more(&tally);
	assert_false(finish(&tally, 3000)); /* the wire would have given up */
	assert_int_equal(tally.failed, 0);
	kill(child, SIGCONT);
	assert_true(finish(&tally, PATIENCE_MS));
	assert_int_equal(tally.failed, 0);
	all_kinds_succeed();
	kill(child, SIGKILL);
	end_other(child);
	destroy_qps();
	close_device();
}

/* His QPs are ready, and he was stopped before he could greet, for longer than a broker's silence is borne. */
static void stop__before_the_greeting_is_none_either(void **state)
{
	struct tally tally = { .done = 0 };
	char ready;

	NEEDS_NAMESPACE;
	pid_t child = start_other(answers);
	open_device();
	make_qps();
	tells(&own, sizeof(own));
	assert_true(hears(&other, sizeof(other)));
	assert_true(hears(&ready, 1));
	stop(child);
	bring_up_qps();
	send_more(&tally);
	for (int seconds = 11; seconds < 60; seconds += 11) {
		assert_false(finish(&tally, 400));
		assert_int_equal(vb_host_lane_lock(host_lane), 0);
		vb_host_peers_be_patient(host_lane, vb_time_add(vb_host_now(), seconds * VB_S));
		vb_host_lane_unlock(host_lane);
	}
	assert_int_equal(tally.failed, 0);
	assert_int_equal(reason_of_other(), VB_LOCAL_NO_ANSWER);
	kill(child, SIGCONT);
	tells(&ready, 1);
	assert_true(finish(&tally, 5000));
	assert_int_equal(tally.failed, 0);
	assert_int_equal(reason_of_other(), VB_LOCAL_IS_USED);
	all_kinds_succeed();
	kill(child, SIGKILL);
	end_other(child);
	destroy_qps();
	close_device();
}

/* How long it took, in ms, until all that was under way had ended. */
static int64_t kill_once(void)
{
	struct tally tally = { .done = 0 };

	pid_t child = start_other(works);
	connect_to_other();
	seed = seed * 1103515245 + 12345;
	int64_t until = now_ms() + (seed >> 16) % 30;
	while (now_ms() < until) {
		send_more(&tally);
		poll_some(&tally);
	}
	send_more(&tally);
	kill(child, SIGKILL);
	const int64_t killed_at = now_ms();
	assert_true(finish(&tally, PATIENCE_MS));
	const int64_t told_after = now_ms() - killed_at;
	assert_true(tally.failed == 0 || tally.last == VB_WC_RETRY_EXC_ERR);
	end_other(child);
	destroy_qps();
	struct vb_wc wc;
	while (vb_cq_poll(cq, &wc, 1) > 0)
		;
	return told_after;
}

static void kill__at_any_instant_ends_all_that_is_under_way(void **state)
{
	NEEDS_NAMESPACE;
	open_device();
	kill_once();
	sleep_ms(700);
	unsigned fds = count_fds(), maps = count_maps("verbena-shared");
	int64_t quickest = PATIENCE_MS;
	for (int i = 0; i < kills; i++) {
		const int64_t told_after = kill_once();
		quickest = told_after < quickest ? told_after : quickest;
	}
	assert_true(quickest < TOLD_WITHIN);
	for (int64_t until = now_ms() + PATIENCE_MS; count_fds() > fds || count_maps("verbena-shared") > maps;) {
		assert_true(now_ms() < until);
		vb_device_drive(device, VB_ALL_LANES);
	}
	close_device();
	assert_int_equal(count_maps("verbena-shared"), 0);
}

#define MESSAGES 3

/* Has all that was sent to it, and calls exit() at once. */
static void takes_and_exits(void)
{
	struct tally tally = { .done = 0 };

	open_device();
	connect_to_other();
	while (tally.received < MESSAGES)
		poll_some(&tally);
	exit(0);
}

static void takes_and_closes(void)
{
	struct tally tally = { .done = 0 };

	open_device();
	connect_to_other();
	while (tally.received < MESSAGES)
		poll_some(&tally);
	destroy_qps();
	close_device();
}

/* What the other has taken for received was sent. */
static void leaves(void (*lives)(void))
{
	struct tally tally = { .done = 0 };

	pid_t child = start_other(lives);
	open_device();
	connect_to_other();
	for (int i = 0; i < MESSAGES; i++)
		tally.under_way[SENDS] += post(SENDS);
	assert_true(finish(&tally, PATIENCE_MS));
	assert_int_equal(tally.done, MESSAGES);
	assert_int_equal(end_other(child), 0);
	destroy_qps();
	close_device();
}

static void exit__says_what_was_received_before(void **state)
{
	NEEDS_NAMESPACE;
	for (int i = 0; i < 20; i++)
		leaves(takes_and_exits);
}

static void close__says_what_was_received_before(void **state)
{
	NEEDS_NAMESPACE;
	for (int i = 0; i < 20; i++)
		leaves(takes_and_closes);
}

/* Another program takes its place, with its number, while requests go both ways. */
static void works_and_becomes_another(void)
{
	struct tally tally = { .done = 0 };
	char byte;

	open_device();
	connect_to_other();
	while (recv(talk, &byte, 1, MSG_DONTWAIT) != 1) {
		send_more(&tally);
		poll_some(&tally);
	}
	execlp("sleep", "sleep", "60", NULL);
	_exit(1);
}

static void exec__ends_what_is_under_way(void **state)
{
	struct tally tally = { .done = 0 };

	NEEDS_NAMESPACE;
	open_device();
	pid_t child = start_other(works_and_becomes_another);
	connect_to_other();
	/* On a busy machine the first message may take longer than that. */
	for (int64_t began = now_ms(); now_ms() < began + (tally.done ? 20 : 5000); poll_some(&tally))
		send_more(&tally);
	tells("!", 1);
	for (int64_t until = now_ms() + 5000; tally.failed == 0 && now_ms() < until; poll_some(&tally))
		send_more(&tally);
	assert_true(finish(&tally, TOLD_WITHIN));
	assert_int_equal(tally.last, VB_WC_RETRY_EXC_ERR);
	assert_int_equal(kill(child, 0), 0); /* whose number is the same */
	assert_int_equal(reason_of_other(), VB_LOCAL_ENDED);
	kill(child, SIGKILL);
	end_other(child);
	destroy_qps();
	close_device();
}

static void answers_as_nobody(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	answers();
}

static void users__copy_through_the_rings(void **state)
{
	NEEDS_NAMESPACE;
	if (geteuid() != 0)
		skip();
	open_device();
	pid_t child = start_other(answers_as_nobody);
	connect_to_other();
	all_kinds_succeed();
	assert_int_equal(reason_of_other(), VB_LOCAL_IS_USED);
	assert_int_equal(the_other()->pull_reason, VB_LOCAL_OTHER_USER);
	kill(child, SIGKILL);
	end_other(child);
	destroy_qps();
	close_device();
}

/* As the first process of another pid namespace. */
static void answers_elsewhere(void)
{
	int status;

	if (unshare(CLONE_NEWPID))
		_exit(1);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answers();
	}
	waitpid(child, &status, 0);
	_exit(0);
}

static bool pid_namespaces_may_be_made(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(unshare(CLONE_NEWPID) ? 1 : 0);
	return waitpid(child, &status, 0) == child && status == 0;
}

/* Neither has a number for the other by which to read his memory. What is under way still ends with him. */
static void pid_namespaces__copy_through_the_rings(void **state)
{
	struct tally tally = { .done = 0 };

	NEEDS_NAMESPACE;
	if (!pid_namespaces_may_be_made())
		skip();
	open_device();
	pid_t child = start_other(answers_elsewhere);
	connect_to_other();
	all_kinds_succeed();
	assert_int_equal(reason_of_other(), VB_LOCAL_IS_USED);
	assert_int_equal(the_other()->pull_reason, VB_LOCAL_UNSEEN);
	assert_int_equal(the_other()->engine.lend_from, 0);
	kill(child, SIGKILL);
	end_other(child);
	send_more(&tally);
	assert_true(finish(&tally, PATIENCE_MS));
	assert_true(tally.failed > 0);
	destroy_qps();
	close_device();
}

/* It has one left, which is too few for what two share. */
static void answers_without_descriptors(void)
{
	struct rlimit files;

	open_device();
	int first = dup(talk);
	close(first);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = (rlim_t)first + 1;
	setrlimit(RLIMIT_NOFILE, &files);
	connect_to_other();
	while (hears(&first, 1))
		;
	for (int ms = 0; ms < PATIENCE_MS && reason_of_other() != VB_LOCAL_NO_DESCRIPTORS; ms++)
		sleep_ms(1); /* the other knows before it does that no memory is shared */
	_exit(reason_of_other() == VB_LOCAL_NO_DESCRIPTORS ? 0 : 1);
}

static void descriptors__that_lack_leave_the_wire(void **state)
{
	NEEDS_NAMESPACE;
	open_device();
	pid_t child = start_other(answers_without_descriptors);
	connect_to_other();
	all_kinds_succeed();
	assert_int_equal(reason_of_other(), VB_LOCAL_UNABLE);
	assert_int_equal(end_other(child), 0);
	destroy_qps();
	close_device();
}

static void answers_by_the_wire(void)
{
	setenv("VERBENA_LOCAL", "off", 1);
	answers();
}

static void answers_and_captures(void)
{
	setenv("VERBENA_PCAP", "/dev/null", 1);
	answers();
}

static void answers_with_faults(void)
{
	setenv("VERBENA_FAULTS", "dup=1%", 1);
	answers();
}

/* They read their settings when they open the device, and would inherit what this process has read: the first test. */
static void refusal__of_the_other_leaves_the_wire(void **state)
{
	static void (*const lives[])(void) = { answers_by_the_wire, answers_and_captures, answers_with_faults };
	static const enum vb_local_reason reasons[] = { VB_LOCAL_IS_OFF, VB_LOCAL_CAPTURES, VB_LOCAL_IS_FAULTY };
	pid_t children[COUNT_OF(lives)];
	int talks[COUNT_OF(lives)];

	NEEDS_NAMESPACE;
	for (unsigned i = 0; i < COUNT_OF(lives); i++) {
		children[i] = start_other(lives[i]);
		talks[i] = talk;
	}
	open_device();
	for (unsigned i = 0; i < COUNT_OF(lives); i++) {
		talk = talks[i];
		connect_to_other();
		all_kinds_succeed();
		assert_int_equal(reason_of_other(), reasons[i]);
		kill(children[i], SIGKILL);
		end_other(children[i]);
		destroy_qps();
	}
	close_device();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusal__of_the_other_leaves_the_wire),
		cmocka_unit_test(two__talk_by_memory),
		cmocka_unit_test(stop__is_no_error_however_long),
		cmocka_unit_test(stop__before_the_greeting_is_none_either),
		cmocka_unit_test(descriptors__that_lack_leave_the_wire),
		cmocka_unit_test(kill__at_any_instant_ends_all_that_is_under_way),
		cmocka_unit_test(exit__says_what_was_received_before),
		cmocka_unit_test(close__says_what_was_received_before),
		cmocka_unit_test(exec__ends_what_is_under_way),
		cmocka_unit_test(users__copy_through_the_rings),
		cmocka_unit_test(pid_namespaces__copy_through_the_rings),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	if (argc > 2)
		kills = atoi(argv[2]);
	setenv("VERBENA_LOG", "error", 1);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
