/* The throughput of several threads of one process. Each makes a CQ and two QPs that are connected to each other, and
 * drives both ends: SENDs of 8 bytes, some under way at any time, polled at both. Rounds of one thread and of all
 * threads alternate, so that noise of the machine affects both. Only the public verbs ABI.
 *
 *   lane_pairs DEVICE GID-INDEX THREADS MS ROUNDS [thread|domain|one]
 *     thread each makes its own CQ domain the first makes all, each pair in a thread domain of its own
 *     one the first makes all CQs
 *   one_mps=N all_mps=N ratio=N, medians of the rounds: messages a second of one thread, of all, and what the latter
 *   is of it */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 64, ROUNDS = 64, DEPTH = 64, BATCH = 16, BYTES = 8, MEMORY = 4096 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int gid_index;
static atomic_uint running; /* so many of the workers, from the first on */
static atomic_bool is_over;
static pthread_barrier_t at_beginning, at_end;

struct worker {
	pthread_t thread;
	unsigned index;
	bool is_made;
	struct ibv_pd *domain; /* which QPs are made in */
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	uint8_t *memory; /* sent from the first half, received into the second */
	uint64_t messages;
};

static struct worker workers[THREADS];

static void check(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "lane_pairs: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- Setting up -------------------------------------------------------------------------------------------------- */

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !context; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	check(context != NULL, "opening the device");
	check(ibv_query_gid(context, 1, gid_index, &gid) == 0, "ibv_query_gid");
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
}

static struct ibv_qp *make_qp(struct worker *w)
{
	struct ibv_qp_init_attr attr = { .send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
		.cap = { .max_send_wr = 2 * DEPTH,
			.max_recv_wr = 2 * DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = BYTES } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(w->domain, &attr);

	check(qp != NULL, "ibv_create_qp");
	check(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		"to INIT");
	return qp;
}

static void connect_to(struct ibv_qp *qp, uint32_t qpn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 1 } } };

	check(!ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		"to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC),
		"to RTS");
}

static void post_receives(const struct worker *w, unsigned count)
{
	struct ibv_sge sge = { (uintptr_t)w->memory + MEMORY / 2, BYTES, w->mr->lkey };
	struct ibv_recv_wr wrs[BATCH], *bad;

	while (count) {
		unsigned now = count < BATCH ? count : BATCH;
		for (unsigned i = 0; i < now; i++)
			wrs[i] = (struct ibv_recv_wr){
				.next = i + 1 < now ? &wrs[i + 1] : NULL, .sg_list = &sge, .num_sge = 1
			};
		check(!ibv_post_recv(w->to, wrs, &bad), "ibv_post_recv");
		count -= now;
	}
}

static struct ibv_pd *make_domain(void)
{
	struct ibv_td_init_attr of_thread = { 0 };
	struct ibv_td *td = ibv_alloc_td(context, &of_thread);
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };

	check(td != NULL, "ibv_alloc_td");
	return ibv_alloc_parent_domain(context, &attr);
}

static void make(struct worker *w, bool in_domain)
{
	w->domain = in_domain ? make_domain() : pd;
	check(w->domain != NULL, "ibv_alloc_parent_domain");
	w->memory = aligned_alloc(MEMORY, MEMORY);
	check(w->memory != NULL, "memory");
	memset(w->memory, 1, MEMORY);
	w->mr = ibv_reg_mr(pd, w->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
	check(w->mr != NULL, "ibv_reg_mr");
	w->cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
	check(w->cq != NULL, "ibv_create_cq");
	w->from = make_qp(w);
	w->to = make_qp(w);
	connect_to(w->from, w->to->qp_num);
	connect_to(w->to, w->from->qp_num);
	post_receives(w, 2 * DEPTH);
	w->is_made = true;
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

/* A list, whose last one is signalled. */
static void post_sends(const struct worker *w)
{
	struct ibv_sge sge = { (uintptr_t)w->memory, BYTES, w->mr->lkey };
	struct ibv_send_wr wrs[BATCH], *bad;

	for (unsigned i = 0; i < BATCH; i++)
		wrs[i] = (struct ibv_send_wr){ .next = i + 1 < BATCH ? &wrs[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE | (i + 1 < BATCH ? 0 : IBV_SEND_SIGNALED) };
	check(!ibv_post_send(w->from, wrs, &bad), "ibv_post_send");
}

/* Until told to stop, and what is under way has come. */
static uint64_t exchange(const struct worker *w)
{
	unsigned sent = 0, done = 0, received = 0, taken = 0;
	struct ibv_wc wcs[BATCH];

	while (!atomic_load_explicit(&is_over, memory_order_relaxed) || done < sent || received < sent) {
		if (!atomic_load_explicit(&is_over, memory_order_relaxed) && sent - done < DEPTH &&
			sent - received < DEPTH) {
			post_sends(w);
			sent += BATCH;
		}
		int count = ibv_poll_cq(w->cq, BATCH, wcs);
		check(count >= 0, "ibv_poll_cq");
		for (int i = 0; i < count; i++) {
			check(wcs[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wcs[i].status));
			if (wcs[i].opcode & IBV_WC_RECV)
				received++;
			else
				done += BATCH;
		}
		if (received - taken >= BATCH) {
			post_receives(w, received - taken);
			taken = received;
		}
	}
	post_receives(w, received - taken);
	return received;
}

static void *work(void *argument)
{
	struct worker *w = argument;

	if (!w->is_made)
		make(w, false);
	for (;;) {
		pthread_barrier_wait(&at_beginning);
		unsigned count = atomic_load(&running);
		if (count == 0)
			return NULL;
		w->messages = w->index < count ? exchange(w) : 0;
		pthread_barrier_wait(&at_end);
	}
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Messages a second of the first count threads. */
static double measure(unsigned count, unsigned ms)
{
	double begin;
	uint64_t messages = 0;

	atomic_store(&is_over, false);
	atomic_store(&running, count);
	pthread_barrier_wait(&at_beginning);
	begin = now_s();
	usleep(ms * 1000);
	atomic_store(&is_over, true);
	pthread_barrier_wait(&at_end);
	for (unsigned i = 0; i < count; i++)
		messages += workers[i].messages;
	return (double)messages / (now_s() - begin);
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	const char *way = argc > 6 ? argv[6] : "thread";
	unsigned threads = argc > 5 ? (unsigned)atoi(argv[3]) : 0, ms = argc > 5 ? (unsigned)atoi(argv[4]) : 0;
	unsigned rounds = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
	double one[ROUNDS], all[ROUNDS], ratio[ROUNDS];

	if (threads < 1 || threads > THREADS || ms < 1 || rounds < 1 || rounds > ROUNDS) {
		fprintf(stderr, "usage: lane_pairs DEVICE GID-INDEX THREADS MS ROUNDS [thread|domain|one]\n");
		return 2;
	}
	gid_index = atoi(argv[2]);
	open_device(argv[1]);
	pthread_barrier_init(&at_beginning, NULL, threads + 1);
	pthread_barrier_init(&at_end, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		workers[i].index = i;
		if (strcmp(way, "thread") != 0)
			make(&workers[i], strcmp(way, "domain") == 0);
	}
	for (unsigned i = 0; i < threads; i++)
		check(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "pthread_create");
	measure(threads, 50);
	for (unsigned i = 0; i < rounds; i++) {
		one[i] = measure(1, ms);
		all[i] = measure(threads, ms);
		ratio[i] = all[i] / one[i];
	}
	atomic_store(&running, 0);
	pthread_barrier_wait(&at_beginning);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	printf("one_mps=%.0f all_mps=%.0f ratio=%.2f\n", median(one, rounds), median(all, rounds),
		median(ratio, rounds));
	return 0;
}
