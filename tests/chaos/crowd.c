/* Many processes of one host, connected to each other, and what that costs. Only the public verbs ABI.
 *
 *   crowd PROCESSES [-s SHARE] [-b BYTES] [-r ROUNDS]
 *     -s: of all pairs, so many per cent are connected, the same ones each time (100)
 *     -b: a message of so many bytes goes each way (16384), so often (4)
 *
 * The first process forks the others, and uses no verbs itself. They tell each other their queue pairs in a table that
 * all share, and go from step to step together. Each message's bytes are looked at. When all have arrived and nothing
 * is under way, it measures, prints one line "crowd ...", lets them end, and ends with 0 when each did so well. */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 250 };
enum step { CREATED = 1, CONNECTED, MOVED, MEASURED };

static unsigned count, share = 100, rounds = 4;
static uint32_t bytes = 16384;

static struct table {
	atomic_uint arrived[MEASURED + 1];
	atomic_bool is_measured;
	union ibv_gid gid;
	pid_t pids[MOST];
	uint32_t qpn[MOST][MOST]; /* of the first, for the second */
} * table;

struct connection {
	unsigned other;
	struct ibv_qp *qp;
	uint8_t *in, *out;
	unsigned received, sent;
};

static void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "crowd: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void nap(void)
{
	usleep(1000);
}

static void arrive(enum step step)
{
	atomic_fetch_add(&table->arrived[step], 1);
	while (atomic_load(&table->arrived[step]) < count)
		nap();
}

static bool are_connected(unsigned a, unsigned b)
{
	unsigned low = a < b ? a : b, high = a < b ? b : a;

	return a != b && (low * 2654435761u ^ high * 40503u) % 100 < share;
}

/* ---- One of them ------------------------------------------------------------------------------------------------- */

static uint8_t content(unsigned from, unsigned to, unsigned round, uint32_t at)
{
	return (uint8_t)(from * 7 + to * 13 + round * 29 + at);
}

static void modify(struct connection *c, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(c->qp, attr, mask);

	if (error)
		fatal("ibv_modify_qp: %s", strerror(error));
}

static void connect_to(struct connection *c, unsigned self)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = table->qpn[c->other][self],
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = table->gid, .hop_limit = 64 } } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};

	modify(c, &rtr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(c, &rts,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

static void post_receive(struct connection *c, const struct ibv_mr *mr, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)c->in, bytes, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(c->qp, &wr, &bad))
		fatal("ibv_post_recv");
}

static void post_send(struct connection *c, unsigned self, const struct ibv_mr *mr, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)c->out, bytes, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};

	for (uint32_t i = 0; i < bytes; i++)
		c->out[i] = content(self, c->other, c->sent, i);
	c->sent++;
	if (ibv_post_send(c->qp, &wr, &bad))
		fatal("ibv_post_send");
}

static void look_at(const struct connection *c, unsigned self)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (c->in[i] != content(c->other, self, c->received, i))
			fatal("message %u of %u to %u has other bytes than were sent", c->received, c->other, self);
}

static unsigned make_connections(
	struct connection *all, unsigned self, struct ibv_pd *pd, struct ibv_cq *cq, uint8_t *memory)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	unsigned n = 0;

	for (unsigned other = 0; other < count; other++) {
		if (!are_connected(self, other))
			continue;
		struct connection *c = &all[n];
		*c = (struct connection){ .other = other,
			.in = memory + (size_t)2 * n * bytes,
			.out = memory + (size_t)(2 * n + 1) * bytes,
			.qp = ibv_create_qp(pd, &init) };
		if (!c->qp)
			fatal("ibv_create_qp: %m");
		modify(c, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
		table->qpn[self][other] = c->qp->qp_num;
		n++;
	}
	return n;
}

/* Round by round with each of the others: what comes is answered by the next. */
static void move(struct connection *all, unsigned n, unsigned self, struct ibv_cq *cq, const struct ibv_mr *mr)
{
	unsigned left = 2 * n * rounds;
	struct ibv_wc wc[16];

	for (unsigned i = 0; i < n; i++)
		post_send(&all[i], self, mr, i);
	while (left > 0) {
		int found = ibv_poll_cq(cq, 16, wc);
		if (found <= 0)
			nap();
		for (int i = 0; i < found; i++) {
			struct connection *c = &all[wc[i].wr_id];
			if (wc[i].status != IBV_WC_SUCCESS)
				fatal("%u and %u: %s", self, c->other, ibv_wc_status_str(wc[i].status));
			left--;
			if (wc[i].opcode == IBV_WC_SEND) {
				if (c->sent < rounds)
					post_send(c, self, mr, wc[i].wr_id);
				continue;
			}
			look_at(c, self);
			if (++c->received < rounds)
				post_receive(c, mr, wc[i].wr_id);
		}
	}
}

static int be_one(unsigned self)
{
	static struct connection all[MOST];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 4 * MOST, NULL, NULL, 0) : NULL;
	size_t length = (size_t)2 * bytes * count;
	uint8_t *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = cq ? ibv_reg_mr(pd, memory, length, IBV_ACCESS_LOCAL_WRITE) : NULL;

	if (!mr)
		fatal("no device, or no memory of it: %m");
	if (self == 0 && ibv_query_gid(context, 1, 0, &table->gid))
		fatal("ibv_query_gid");
	unsigned n = make_connections(all, self, pd, cq, memory);
	for (unsigned i = 0; i < n; i++)
		post_receive(&all[i], mr, i);
	arrive(CREATED);
	for (unsigned i = 0; i < n; i++)
		connect_to(&all[i], self);
	arrive(CONNECTED);
	move(all, n, self, cq, mr);
	arrive(MOVED);
	while (!atomic_load(&table->is_measured))
		nap();
	for (unsigned i = 0; i < n; i++)
		ibv_destroy_qp(all[i].qp);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	ibv_free_device_list(list);
	return 0;
}

/* ---- The first --------------------------------------------------------------------------------------------------- */

static unsigned long in_file(const char *path, const char *name)
{
	char line[256];
	unsigned long value = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		fatal("%s: %m", path);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoul(line + strlen(name), NULL, 10);
	fclose(file);
	return value;
}

static unsigned descriptors_of(pid_t pid)
{
	char path[64];
	unsigned n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *folder = opendir(path);
	if (!folder)
		fatal("%s: %m", path);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n - 2;
}

static void watch(enum step step)
{
	int status;

	while (atomic_load(&table->arrived[step]) < count) {
		pid_t ended = waitpid(-1, &status, WNOHANG);
		if (ended > 0) {
			for (unsigned i = 0; i < count; i++)
				kill(table->pids[i], SIGKILL);
			fatal("process %d ended with status %#x amid it", ended, status);
		}
		nap();
	}
}

static void measure(double connected_s, double moved_s)
{
	unsigned long pss = 0, pss_shared = 0, descriptors = 0, most = 0, pairs = 0;
	char path[64];

	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", table->pids[i]);
		pss += in_file(path, "Pss:");
		pss_shared += in_file(path, "Pss_Shmem:");
		unsigned n = descriptors_of(table->pids[i]);
		descriptors += n;
		most = n > most ? n : most;
		for (unsigned other = 0; other < i; other++)
			pairs += are_connected(i, other);
	}
	printf("crowd processes=%u pairs=%lu connected_s=%.2f moved_s=%.2f pss_kib_each=%lu of_it_shared_kib_each=%lu "
	       "shared_kib_a_pair=%.1f pss_kib_in_all=%lu descriptors_each=%lu descriptors_most=%lu\n",
		count, pairs, connected_s, moved_s, pss / count, pss_shared / count,
		(double)pss_shared / (double)(pairs ? pairs : 1), pss, descriptors / count, most);
}

static void take_options(int argc, char **argv)
{
	for (int option; (option = getopt(argc, argv, "s:b:r:")) != -1;) {
		unsigned long value = strtoul(optarg ? optarg : "0", NULL, 10);
		if (option == 's')
			share = (unsigned)value;
		else if (option == 'b')
			bytes = (uint32_t)value;
		else if (option == 'r')
			rounds = (unsigned)value;
		else
			exit(2);
	}
	count = optind < argc ? (unsigned)strtoul(argv[optind], NULL, 10) : 0;
	if (count < 2 || count > MOST || bytes == 0 || rounds == 0)
		fatal("crowd PROCESSES (2 .. %d) [-s SHARE] [-b BYTES] [-r ROUNDS]", MOST);
}

int main(int argc, char **argv)
{
	take_options(argc, argv);
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		fatal("memory");
	memset(table, 0, sizeof(*table));
	for (unsigned i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid < 0)
			fatal("fork: %m");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			exit(be_one(i));
		}
		table->pids[i] = pid;
	}
	watch(CREATED);
	double began = now();
	watch(CONNECTED);
	double connected = now();
	watch(MOVED);
	measure(connected - began, now() - connected);
	atomic_store(&table->is_measured, true);
	for (unsigned i = 0; i < count; i++) {
		int status;
		if (waitpid(table->pids[i], &status, 0) != table->pids[i] || status)
			fatal("process %u ended with status %#x", i, status);
	}
	return 0;
}
