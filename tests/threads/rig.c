/* See rig.h. */
#include "rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) ||                 \
	HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
size_t __sanitizer_get_current_allocated_bytes(void);
#else
#define SANITIZED 0
#endif

#define SKIPPED	      77
#define CASE_SECONDS  (SANITIZED ? 120 : 40)
#define PATIENCE_S    (SANITIZED ? 60 : 10)
#define DEFAULT_DEPTH 128

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

void fail(const char *file, int line, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s:%d: %s\n", file, line, text);
	abort();
}

void skip(const char *why)
{
	printf("  skipped: %s\n", why);
	fflush(stdout);
	_exit(SKIPPED);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return is_written;
}

/* A network namespace of our own with lo up, and so a broker of our own; false where that is not allowed. */
static bool enter_namespace(void)
{
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "%u %u 1", geteuid(), geteuid());
	snprintf(gid_map, sizeof(gid_map), "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWNET)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return false;
		write_file("/proc/self/setgroups", "deny");
		if (!write_file("/proc/self/uid_map", uid_map) || !write_file("/proc/self/gid_map", gid_map))
			return false;
	}
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK | IFF_MULTICAST };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return is_up;
}

/* The exit status of one case in a process of its own. */
static int run_case(const struct test_case *test)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(CASE_SECONDS);
		test->run();
		exit(0); /* with the handlers of exit: the library has some, and so have the sanitizers */
	}
	REQUIRE(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		REQUIRE(errno == EINTR);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("  ended by signal %d%s\n", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": took too long" : "");
	return 128 + WTERMSIG(status);
}

int run_cases(int argc, char **argv, const struct test_case *cases, size_t count)
{
	unsigned passed = 0, failed = 0, skipped = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!enter_namespace()) {
		printf("SKIP: no network namespace may be made here (%s)\n", strerror(errno));
		return SKIPPED;
	}
	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		printf("%s\n", cases[i].name);
		double began = seconds_now();
		int status = run_case(&cases[i]);
		passed += status == 0;
		skipped += status == SKIPPED;
		failed += status != 0 && status != SKIPPED;
		printf("  %s, %.2f s\n", status == 0 ? "ok" : status == SKIPPED ? "skipped" : "FAILED",
			seconds_now() - began);
	}
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}

/* ---- A second process -------------------------------------------------------------------------------------------- */

struct peer peer_start(const char *role)
{
	struct peer peer;
	int ends[2];
	char number[16];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	peer.pid = fork();
	if (peer.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(CASE_SECONDS);
		fcntl(ends[1], F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", ends[1]);
		execl("/proc/self/exe", "peer", role, number, (char *)NULL);
		_exit(127);
	}
	REQUIRE(peer.pid > 0);
	close(ends[1]);
	peer.socket = ends[0];
	return peer;
}

int peer_socket(int argc, char **argv, const char *role)
{
	return argc == 3 && strcmp(argv[0], "peer") == 0 && strcmp(argv[1], role) == 0 ? atoi(argv[2]) : -1;
}

void peer_send(int socket, const void *bytes, size_t length)
{
	REQUIRE_EQUAL(send(socket, bytes, length, MSG_NOSIGNAL), length);
}

void peer_receive(int socket, void *bytes, size_t length)
{
	ssize_t got = recv(socket, bytes, length, MSG_WAITALL);

	if (got == 0)
		exit(0); /* the other side is done with us */
	REQUIRE_EQUAL(got, length);
}

/* ---- Time, threads, what a process holds ---------------------------------------------------------------------------- */

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double seconds_now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double cpu_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

void sleep_ms(unsigned ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&left, &left) < 0)
		;
}

unsigned count_fds(void)
{
	unsigned count = 0;
	DIR *directory = opendir("/proc/self/fd");

	REQUIRE(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count - 1; /* the directory's own */
}

size_t heap_bytes(void)
{
#if SANITIZED
	return __sanitizer_get_current_allocated_bytes();
#else
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
#endif
}

bool is_sanitized(void)
{
	return SANITIZED;
}

pthread_t thread_start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	REQUIRE_EQUAL(pthread_create(&thread, NULL, run, argument), 0);
	return thread;
}

void thread_join(pthread_t thread)
{
	REQUIRE_EQUAL(pthread_join(thread, NULL), 0);
}

uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* ---- Verbs ---------------------------------------------------------------------------------------------------------- */

struct ibv_context *open_lo(void)
{
	struct ibv_context *context = NULL;
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	REQUIRE(list);
	for (int i = 0; i < count && !context; i++)
		if (strcmp(ibv_get_device_name(list[i]), "vb_lo") == 0)
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	REQUIRE(context);
	return context;
}

struct ibv_qp *make_qp(struct ibv_pd *pd, struct qp_size size)
{
	uint32_t depth = size.depth ? size.depth : DEFAULT_DEPTH;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = size.send_cq,
		.recv_cq = size.recv_cq ? size.recv_cq : size.send_cq,
		.srq = size.srq,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = 64 },
		.qp_type = size.type ? size.type : IBV_QPT_RC,
		.sq_sig_all = 0,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (size.has_wr_api ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &attr);

	REQUIRE(qp);
	return qp;
}

/* vb_lo has one IPv4 address, the first of its GIDs. */
struct address address_of(struct ibv_qp *qp)
{
	struct address address = { .qpn = qp->qp_num };

	REQUIRE_EQUAL(ibv_query_gid(qp->context, 1, 0, &address.gid), 0);
	return address;
}

void to_init(struct ibv_qp *qp)
{
	bool is_ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS_ALL,
		.qkey = 0x1234 };

	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
		0);
}

static void to_rtr(struct ibv_qp *qp, const struct address *peer)
{
	int mask = IBV_QP_STATE;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	if (qp->qp_type != IBV_QPT_UD) {
		attr.path_mtu = IBV_MTU_4096;
		attr.dest_qp_num = peer->qpn;
		attr.max_dest_rd_atomic = 8;
		attr.min_rnr_timer = 1;
		attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = 0, .hop_limit = 64 } };
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, mask), 0);
}

void to_rts(struct ibv_qp *qp, const struct address *peer)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 8 };

	to_rtr(qp, peer);
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, mask), 0);
}

void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	struct address of_a = address_of(a), of_b = address_of(b);

	to_init(a);
	to_init(b);
	to_rts(a, &of_b);
	to_rts(b, &of_a);
}

static void to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

void reconnect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	to_reset(a);
	to_reset(b);
	connect_pair(a, b);
}

void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	REQUIRE_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

struct buffer make_buffer(struct ibv_pd *pd, size_t length)
{
	struct buffer buffer = { .length = length };

	buffer.bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(buffer.bytes != MAP_FAILED);
	buffer.mr = ibv_reg_mr(pd, buffer.bytes, length, ACCESS_ALL);
	REQUIRE(buffer.mr);
	return buffer;
}

void free_buffer(struct buffer *buffer)
{
	REQUIRE_EQUAL(ibv_dereg_mr(buffer->mr), 0);
	REQUIRE_EQUAL(munmap(buffer->bytes, buffer->length), 0);
}

int post(struct ibv_qp *qp, const struct request *request)
{
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .wr_id = request->id, .opcode = request->opcode, .imm_data = htonl(request->imm),
		.send_flags = IBV_SEND_SIGNALED | request->flags };
	struct ibv_send_wr *bad;

	if (request->local) {
		sge = (struct ibv_sge){ (uintptr_t)request->local->bytes + request->offset, (uint32_t)request->length,
			request->local->mr->lkey };
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = request->remote;
		wr.wr.atomic.rkey = request->rkey;
		wr.wr.atomic.compare_add = request->compare_add;
		wr.wr.atomic.swap = request->swap;
	} else {
		wr.wr.rdma.remote_addr = request->remote;
		wr.wr.rdma.rkey = request->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

void credits_take(struct credits *credits)
{
	double began = seconds_now();

	while (atomic_fetch_sub(&credits->left, 1) <= 0) {
		atomic_fetch_add(&credits->left, 1);
		REQUIRE(seconds_now() - began < PATIENCE_S);
		sched_yield();
	}
}

void credits_give(struct credits *credits)
{
	atomic_fetch_add(&credits->left, 1);
}

void post_with_credit(struct ibv_qp *qp, const struct request *request, struct credits *credits)
{
	credits_take(credits);
	REQUIRE_EQUAL(post(qp, request), 0);
}

int post_receive(struct ibv_qp *qp, uint64_t id, const struct buffer *local, size_t offset, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)local->bytes + offset, (uint32_t)length, local->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

struct ibv_wc wait_completion(struct ibv_cq *cq)
{
	double began = seconds_now();
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		REQUIRE(seconds_now() - began < PATIENCE_S);
	REQUIRE_EQUAL(got, 1);
	return wc;
}

void wait_success(struct ibv_cq *cq, uint64_t id)
{
	struct ibv_wc wc = wait_completion(cq);

	if (wc.status != IBV_WC_SUCCESS)
		fail(__FILE__, __LINE__, "completion %llu: %s", (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
	REQUIRE_EQUAL(wc.wr_id, id);
}

struct pair_end make_end(size_t buffer_length, uint32_t depth)
{
	struct pair_end end = { .context = open_lo() };

	REQUIRE((end.pd = ibv_alloc_pd(end.context)));
	REQUIRE((end.channel = ibv_create_comp_channel(end.context)));
	REQUIRE((end.cq = ibv_create_cq(end.context, (int)(2 * depth), NULL, end.channel, 0)));
	end.qp = make_qp(end.pd, (struct qp_size){ .send_cq = end.cq, .depth = depth });
	end.buffer = make_buffer(end.pd, buffer_length);
	return end;
}

void free_end(struct pair_end *end)
{
	REQUIRE_EQUAL(ibv_destroy_qp(end->qp), 0);
	free_buffer(&end->buffer);
	REQUIRE_EQUAL(ibv_destroy_cq(end->cq), 0);
	REQUIRE_EQUAL(ibv_destroy_comp_channel(end->channel), 0);
	REQUIRE_EQUAL(ibv_dealloc_pd(end->pd), 0);
	REQUIRE_EQUAL(ibv_close_device(end->context), 0);
}

struct pair make_pair(size_t buffer_length, uint32_t depth)
{
	struct pair pair = { .a = make_end(buffer_length, depth), .b = make_end(buffer_length, depth) };

	connect_pair(pair.a.qp, pair.b.qp);
	return pair;
}

void free_pair(struct pair *pair)
{
	free_end(&pair->a);
	free_end(&pair->b);
}
