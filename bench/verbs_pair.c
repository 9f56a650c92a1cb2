/* What perftest has no option for, between two processes of this machine over one RC connection: a target that never
 * calls the library, memory that the device allocated, addresses some bytes apart within their pages. Only the public
 * verbs ABI. The child is the target, on the first core; the parent begins, on the second.
 *
 *   verbs_pair DEVICE GID-INDEX CORE,CORE TEST COUNT [heap|dm [APART]]
 *     thread   8-byte WRITEs, one now and then; the target spins on its memory.    one way: p50_us=N p99_us=N
 *     asleep   the same; the target sleeps in a system call.        until completion: p50_us=N p99_us=N
 *     lat      8-byte WRITEs back and forth; both poll.                      one way: p50_us=N p99_us=N
 *     write    WRITEs of 64 KiB, many at once; the target sleeps.                     gbps=N
 *     read     the same with READs
 *   heap, dm: what the target lends, in lat both, and what WRITEs are of; APART: how many bytes further in its page is
 *   where they go */
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HEAP = 4 << 20, DM = 256 << 10, LARGE = 64 << 10, DEPTH = 128, QUIET_NS = 100000, WARM_UP = 100 };

/* Where one end can be reached; told to the other. */
struct endpoint {
	union ibv_gid gid;
	uint64_t address;
	uint32_t qpn, rkey;
};

struct percentiles {
	double p50, p99;
};

static struct {
	bool is_target, has_dm, reads;
	int peer;               /* a socket to the other end */
	_Atomic uint64_t *seen; /* by a target that spins: not to be told by the library */
	size_t apart, count;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_dm *dm;
	struct ibv_mr *heap_mr, *lent_mr;
	uint8_t *heap;
	struct endpoint own, other;
} end;

static void check(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "%s: %s: %s\n", end.is_target ? "target" : "initiator", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

static struct percentiles percentiles(uint64_t *ns, size_t count)
{
	qsort(ns, count, sizeof(*ns), by_value);
	return (struct percentiles){ (double)ns[count / 2] / 1e3, (double)ns[count * 99 / 100] / 1e3 };
}

static uint64_t *samples(void)
{
	uint64_t *ns = calloc(WARM_UP + end.count, sizeof(*ns));

	check(ns != NULL, "calloc");
	memset(ns, 1, (WARM_UP + end.count) * sizeof(*ns)); /* resident */
	return ns;
}

static void tell(const void *bytes, size_t length)
{
	check(write(end.peer, bytes, length) == (ssize_t)length, "telling the other end");
}

static void hear(void *bytes, size_t length)
{
	check(recv(end.peer, bytes, length, MSG_WAITALL) == (ssize_t)length, "hearing the other end");
}

/* ---- Setting up -------------------------------------------------------------------------------------------------- */

static void run_on(int core)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)core, &one);
	check(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	check(context != NULL, "opening the device");
	return context;
}

/* The memory that the other end reaches. Device memory has no address here. */
static void lend(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	size_t apart = end.is_target && !end.reads ? end.apart : 0;

	end.heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	check(end.heap != MAP_FAILED, "mmap");
	end.heap_mr = ibv_reg_mr(end.pd, end.heap, HEAP, access);
	check(end.heap_mr != NULL, "ibv_reg_mr");
	end.lent_mr = end.heap_mr;
	end.own.address = (uintptr_t)end.heap + apart;
	if (end.has_dm) {
		struct ibv_alloc_dm_attr attr = { .length = DM };

		end.dm = ibv_alloc_dm(end.context, &attr);
		check(end.dm != NULL, "ibv_alloc_dm");
		end.lent_mr = ibv_reg_dm_mr(end.pd, end.dm, 0, DM, (unsigned)access | IBV_ACCESS_ZERO_BASED);
		check(end.lent_mr != NULL, "ibv_reg_dm_mr");
		end.own.address = apart;
	}
	end.own.rkey = end.lent_mr->rkey;
}

static void connect_qp(uint8_t gid_index, enum ibv_mtu mtu)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = end.other.qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = end.other.gid, .sgid_index = gid_index, .hop_limit = 64 } } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16
	};

	check(!ibv_modify_qp(end.qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		"INIT");
	check(!ibv_modify_qp(end.qp, &rtr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		"RTR");
	check(!ibv_modify_qp(end.qp, &rts,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC),
		"RTS");
}

static void set_up(const char *device, uint8_t gid_index)
{
	struct ibv_port_attr port;
	char ready = 0;

	end.context = open_device(device);
	end.pd = ibv_alloc_pd(end.context);
	end.cq = ibv_create_cq(end.context, 2 * DEPTH, NULL, NULL, 0);
	check(end.pd && end.cq, "making a PD and a CQ");
	struct ibv_qp_init_attr attr = { .send_cq = end.cq,
		.recv_cq = end.cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 8 } };
	end.qp = ibv_create_qp(end.pd, &attr);
	check(end.qp && !ibv_query_port(end.context, 1, &port) &&
			!ibv_query_gid(end.context, 1, gid_index, &end.own.gid),
		"making a QP");
	end.own.qpn = end.qp->qp_num;
	lend();
	tell(&end.own, sizeof(end.own));
	hear(&end.other, sizeof(end.other));
	connect_qp(gid_index, port.active_mtu);
	tell(&ready, 1);
	hear(&ready, 1);
}

static void tear_down(void)
{
	check(!ibv_destroy_qp(end.qp) && (!end.dm || !ibv_dereg_mr(end.lent_mr)) && (!end.dm || !ibv_free_dm(end.dm)) &&
			!ibv_dereg_mr(end.heap_mr) && !ibv_destroy_cq(end.cq) && !ibv_dealloc_pd(end.pd) &&
			!ibv_close_device(end.context),
		"tearing down");
}

/* ---- What an end does -------------------------------------------------------------------------------------------- */

static void post_of(enum ibv_wr_opcode opcode, uint64_t address, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { address, length, lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED | (length <= 8 ? IBV_SEND_INLINE : 0),
		.wr.rdma = { end.other.address, end.other.rkey } };

	errno = ibv_post_send(end.qp, &wr, &bad);
	check(!errno, "ibv_post_send");
}

static void post(enum ibv_wr_opcode opcode, const void *bytes, uint32_t length)
{
	post_of(opcode, (uintptr_t)bytes, length, end.heap_mr->lkey);
}

static size_t poll_some(void)
{
	struct ibv_wc wc[16];
	int found = ibv_poll_cq(end.cq, 16, wc);

	check(found >= 0, "ibv_poll_cq");
	for (int i = 0; i < found; i++)
		check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
	return (size_t)found;
}

static void write_and_wait(uint64_t value)
{
	post(IBV_WR_RDMA_WRITE, &value, sizeof(value));
	while (poll_some() == 0)
		;
}

/* The first eight bytes that this end lends. */
static uint64_t lent_value(void)
{
	uint64_t value;

	if (end.dm)
		check(!ibv_memcpy_from_dm(&value, end.dm, end.own.address, sizeof(value)), "ibv_memcpy_from_dm");
	else
		value = atomic_load_explicit(
			(_Atomic uint64_t *)(uintptr_t)end.own.address, memory_order_acquire); // NOLINT
	return value;
}

static void wait_quiet(uint64_t since)
{
	while (now_ns() - since < QUIET_NS)
		;
}

static void wait_seen(uint64_t value)
{
	while (atomic_load(end.seen) != value)
		;
}

/* The initiator of `thread` and `asleep`: its WRITEs carry the time. */
static struct percentiles write_now_and_then(bool is_watched)
{
	uint64_t *ns = samples();

	for (size_t i = 0; i < WARM_UP + end.count; i++) {
		uint64_t began = now_ns();

		write_and_wait(began);
		ns[i] = now_ns() - began;
		if (is_watched)
			wait_seen(began);
		wait_quiet(now_ns());
	}
	return percentiles(ns + WARM_UP, end.count);
}

static struct percentiles spin(void)
{
	uint64_t *ns = samples(), seen = 0;

	for (size_t i = 0; i < WARM_UP + end.count; i++) {
		uint64_t value;

		while ((value = lent_value()) == seen)
			;
		ns[i] = now_ns() - value;
		seen = value;
		atomic_store(end.seen, value);
	}
	return percentiles(ns + WARM_UP, end.count);
}

static struct percentiles back_and_forth(void)
{
	uint64_t *ns = samples();

	for (uint64_t i = 0; i < WARM_UP + end.count; i++) {
		uint64_t began = now_ns();

		if (end.is_target)
			while (lent_value() != i + 1)
				;
		write_and_wait(i + 1);
		if (!end.is_target)
			while (lent_value() != i + 1)
				;
		ns[i] = (now_ns() - began) / 2;
	}
	return percentiles(ns + WARM_UP, end.count);
}

static void pump(enum ibv_wr_opcode opcode, size_t count)
{
	bool is_lent = !end.reads && end.dm; /* has no address here, as in lend() */
	uint64_t bytes = is_lent ? 0 : (uintptr_t)end.heap + (end.reads ? end.apart : 0);
	uint32_t lkey = is_lent ? end.lent_mr->lkey : end.heap_mr->lkey;

	for (size_t posted = 0, done = 0; done < count; done += poll_some())
		for (; posted < count && posted - done < DEPTH; posted++)
			post_of(opcode, bytes, LARGE, lkey);
}

static void print_gbps(enum ibv_wr_opcode opcode)
{
	pump(opcode, WARM_UP);
	uint64_t began = now_ns();
	pump(opcode, end.count);
	printf("gbps=%.3f\n", (double)end.count * LARGE * 8 / (double)(now_ns() - began));
}

static void print_latency(struct percentiles us)
{
	printf("p50_us=%.3f p99_us=%.3f\n", us.p50, us.p99);
}

/* ---- The tests --------------------------------------------------------------------------------------------------- */

static void initiate(const char *test)
{
	struct percentiles us;

	if (strcmp(test, "thread") == 0) {
		write_now_and_then(true);
		hear(&us, sizeof(us)); /* the target saw how long each took */
		print_latency(us);
	} else if (strcmp(test, "asleep") == 0) {
		print_latency(write_now_and_then(false));
	} else if (strcmp(test, "lat") == 0) {
		print_latency(back_and_forth());
	} else {
		print_gbps(end.reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	}
}

static void serve(const char *test)
{
	if (strcmp(test, "thread") == 0) {
		struct percentiles us = spin();

		tell(&us, sizeof(us));
	} else if (strcmp(test, "lat") == 0) {
		back_and_forth();
	}
}

static bool is_test(const char *name)
{
	static const char *const tests[] = { "thread", "asleep", "lat", "write", "read" };

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(name, tests[i]) == 0)
			return true;
	return false;
}

/* Two ends, not yet with a device; the child's dies with its parent. Its id, in the parent. */
static pid_t part(void)
{
	pid_t parent = getpid();
	int sockets[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), "socketpair");
	end.seen = mmap(NULL, sizeof(*end.seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(end.seen != MAP_FAILED, "mmap");
	pid_t child = fork();
	check(child >= 0, "fork");
	end.is_target = child == 0;
	end.peer = sockets[end.is_target];
	close(sockets[!end.is_target]);
	if (end.is_target) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return child;
}

int main(int argc, char **argv)
{
	int cores[2], status = 0;
	char over = 0;

	if (argc < 6 || argc > 8 || sscanf(argv[3], "%d,%d", &cores[0], &cores[1]) != 2 || !is_test(argv[4]) ||
		atol(argv[5]) <= 0) {
		fprintf(stderr, "usage: verbs_pair DEVICE GID-INDEX CORE,CORE thread|asleep|lat|write|read COUNT "
				"[heap|dm [APART]]\n");
		return 2;
	}
	end.count = (size_t)atol(argv[5]);
	end.reads = strcmp(argv[4], "read") == 0;
	end.has_dm = argc > 6 && strcmp(argv[6], "dm") == 0;
	end.apart = argc > 7 ? (size_t)atol(argv[7]) : 0;
	pid_t child = part();
	run_on(cores[!end.is_target]);
	set_up(argv[1], (uint8_t)atoi(argv[2]));
	if (end.is_target)
		serve(argv[4]);
	else
		initiate(argv[4]);
	tell(&over, 1);
	hear(&over, 1);
	tear_down();
	if (!end.is_target)
		check(waitpid(child, &status, 0) == child && status == 0, "the target's end");
	return 0;
}
