/* Several threads on the same queues: who posts, who polls, and what each completion must say. */
#include <arpa/inet.h>
#include <sched.h>
#include "rig.h"

#define WRITES     20000
#define MESSAGES   12000 /* of all posters together */
#define POSTERS    4
#define POLLERS    3
#define SLOT_BYTES 64

/* What must go on within this time, though all else stands still. */
static void check_patience(double began, unsigned done, unsigned wanted)
{
	if (seconds_now() - began > 30)
		fail(__FILE__, __LINE__, "only %u of %u completed", done, wanted);
}

static unsigned scaled(unsigned count)
{
	return is_sanitized() ? count / 5 : count;
}

/* ---- One posts, another polls ------------------------------------------------------------------------------------ */

struct writer {
	struct pair pair;
	unsigned count;
};

static void *post_writes(void *argument)
{
	struct writer *w = argument;
	uint32_t random = 7;

	for (unsigned i = 0; i < w->count; i++) {
		size_t length = next_random(&random) % (i % 16 ? 256 : 16384);
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &w->pair.a.buffer,
			.length = length,
			.remote = (uintptr_t)w->pair.b.buffer.bytes,
			.rkey = w->pair.b.buffer.mr->rkey };
		post_when_room(w->pair.a.qp, &request);
	}
	return NULL;
}

static void one_thread_posts_while_another_polls(void)
{
	struct writer w = { .pair = make_pair(65536, 64), .count = scaled(WRITES) };
	pthread_t poster = thread_start(post_writes, &w);

	for (unsigned i = 0; i < w.count; i++)
		wait_success(w.pair.a.cq, i);
	thread_join(poster);
	free_pair(&w.pair);
}

/* ---- Many post on one queue pair, many poll one queue ------------------------------------------------------------ */

struct crowd {
	struct pair_end a, b;
	unsigned each; /* messages of a poster */
	unsigned total;
	atomic_uchar *sent, *received; /* how often each message completed */
	atomic_uint sent_count, received_count;
	atomic_uint next_poster;
	bool uses_wr_api;
};

static void post_one(struct crowd *crowd, unsigned message)
{
	uint32_t text = message;

	if (!crowd->uses_wr_api) {
		struct buffer inline_text = { .bytes = (uint8_t *)&text, .mr = crowd->a.buffer.mr };
		struct request request = { .opcode = IBV_WR_SEND_WITH_IMM,
			.id = message,
			.local = &inline_text,
			.length = sizeof(text),
			.flags = IBV_SEND_INLINE,
			.imm = message };
		post_when_room(crowd->a.qp, &request);
		return;
	}
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(crowd->a.qp);
	int error;
	do {
		ibv_wr_start(ex);
		ex->wr_id = message;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_imm(ex, htonl(message));
		ibv_wr_set_inline_data(ex, &text, sizeof(text));
		error = ibv_wr_complete(ex);
		if (error == ENOMEM)
			sched_yield();
	} while (error == ENOMEM);
	REQUIRE_EQUAL(error, 0);
}

static void *post_messages(void *argument)
{
	struct crowd *crowd = argument;
	unsigned first = atomic_fetch_add(&crowd->next_poster, 1) * crowd->each;

	for (unsigned i = 0; i < crowd->each; i++)
		post_one(crowd, first + i);
	return NULL;
}

static void *poll_sends(void *argument)
{
	struct crowd *crowd = argument;
	struct ibv_wc wc[8];
	double began = seconds_now();

	while (atomic_load(&crowd->sent_count) < crowd->total) {
		check_patience(began, crowd->sent_count, crowd->total);
		int got = ibv_poll_cq(crowd->a.cq, 8, wc);
		REQUIRE(got >= 0);
		for (int i = 0; i < got; i++) {
			REQUIRE_EQUAL(wc[i].status, IBV_WC_SUCCESS);
			REQUIRE(wc[i].wr_id < crowd->total);
			atomic_fetch_add(&crowd->sent[wc[i].wr_id], 1);
			atomic_fetch_add(&crowd->sent_count, 1);
		}
	}
	return NULL;
}

static void *poll_receives(void *argument)
{
	struct crowd *crowd = argument;
	struct ibv_wc wc;
	double began = seconds_now();

	while (atomic_load(&crowd->received_count) < crowd->total) {
		check_patience(began, crowd->received_count, crowd->total);
		int got = ibv_poll_cq(crowd->b.cq, 1, &wc);
		REQUIRE(got >= 0);
		if (!got)
			continue;
		REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
		uint32_t message = ntohl(wc.imm_data), text;
		memcpy(&text, crowd->b.buffer.bytes + wc.wr_id * SLOT_BYTES, sizeof(text));
		REQUIRE(message < crowd->total);
		REQUIRE_EQUAL(text, message);
		atomic_fetch_add(&crowd->received[message], 1);
		atomic_fetch_add(&crowd->received_count, 1);
		REQUIRE_EQUAL(
			post_receive(crowd->b.qp, wc.wr_id, &crowd->b.buffer, wc.wr_id * SLOT_BYTES, SLOT_BYTES), 0);
	}
	return NULL;
}

static void run_crowd(bool uses_wr_api)
{
	enum { DEPTH = 64 };
	struct crowd crowd = { .a = make_end(4096, DEPTH),
		.b = make_end(DEPTH * SLOT_BYTES, DEPTH),
		.each = scaled(MESSAGES) / POSTERS,
		.uses_wr_api = uses_wr_api };
	pthread_t threads[POSTERS + 2 * POLLERS];
	unsigned count = 0;

	if (uses_wr_api) {
		REQUIRE_EQUAL(ibv_destroy_qp(crowd.a.qp), 0);
		crowd.a.qp = make_qp(
			crowd.a.pd, (struct qp_size){ .send_cq = crowd.a.cq, .depth = DEPTH, .has_wr_api = true });
	}
	connect_pair(crowd.a.qp, crowd.b.qp);
	crowd.total = crowd.each * POSTERS;
	crowd.sent = calloc(crowd.total, 1);
	crowd.received = calloc(crowd.total, 1);
	for (unsigned i = 0; i < DEPTH; i++)
		REQUIRE_EQUAL(post_receive(crowd.b.qp, i, &crowd.b.buffer, i * SLOT_BYTES, SLOT_BYTES), 0);
	for (unsigned i = 0; i < POLLERS; i++) {
		threads[count++] = thread_start(poll_sends, &crowd);
		threads[count++] = thread_start(poll_receives, &crowd);
	}
	for (unsigned i = 0; i < POSTERS; i++)
		threads[count++] = thread_start(post_messages, &crowd);
	while (count)
		thread_join(threads[--count]);
	for (unsigned i = 0; i < crowd.total; i++) {
		REQUIRE_EQUAL(crowd.sent[i], 1);
		REQUIRE_EQUAL(crowd.received[i], 1);
	}
	free(crowd.sent);
	free(crowd.received);
	free_end(&crowd.a);
	free_end(&crowd.b);
}

static void many_threads_post_and_poll_one_qp_and_cq(void)
{
	run_crowd(false);
}

static void many_threads_build_requests_on_one_qp(void)
{
	run_crowd(true);
}

/* ---- Queue pairs that share a CQ and an SRQ ---------------------------------------------------------------------- */

#define SHARERS 4

struct shared {
	struct pair_end hub; /* its qp is not used */
	struct ibv_srq *srq;
	struct ibv_qp *hub_qps[SHARERS];
	struct pair_end ends[SHARERS];
	unsigned each;
	atomic_uint received, next;
	atomic_bool is_over;
};

static int post_to_srq(struct shared *shared, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)shared->hub.buffer.bytes + id * SLOT_BYTES, SLOT_BYTES,
		shared->hub.buffer.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(shared->srq, &wr, &bad);
}

static void *send_to_hub(void *argument)
{
	struct shared *shared = argument;
	struct pair_end *end = &shared->ends[atomic_fetch_add(&shared->next, 1)];
	unsigned posted = 0, done = 0;

	while (done < shared->each) {
		if (posted < shared->each && post(end->qp, &(struct request){ .opcode = IBV_WR_SEND,
								   .id = posted,
								   .local = &end->buffer,
								   .length = 32 }) == 0)
			posted++;
		struct ibv_wc wc;
		int got = ibv_poll_cq(end->cq, 1, &wc);
		REQUIRE(got >= 0);
		if (got) {
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			REQUIRE_EQUAL(wc.wr_id, done);
			done++;
		}
	}
	return NULL;
}

static void *serve_hub(void *argument)
{
	struct shared *shared = argument;
	struct ibv_wc wc;
	double began = seconds_now();

	while (atomic_load(&shared->received) < shared->each * SHARERS) {
		check_patience(began, shared->received, shared->each * SHARERS);
		int got = ibv_poll_cq(shared->hub.cq, 1, &wc);
		REQUIRE(got >= 0);
		if (!got)
			continue;
		REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
		REQUIRE_EQUAL(wc.byte_len, 32);
		REQUIRE_EQUAL(post_to_srq(shared, wc.wr_id), 0);
		atomic_fetch_add(&shared->received, 1);
	}
	return NULL;
}

static void *resize_hub(void *argument)
{
	struct shared *shared = argument;
	int size = 512;

	while (!atomic_load(&shared->is_over)) {
		int error = ibv_resize_cq(shared->hub.cq, size);
		REQUIRE(error == 0 || error == EINVAL);
		size = size == 512 ? 1000 : 512;
		sleep_ms(1);
	}
	return NULL;
}

static void qps_share_a_cq_and_an_srq_while_it_is_resized(void)
{
	enum { DEPTH = 64 };
	struct shared shared = { .hub = make_end(DEPTH * SLOT_BYTES, 256), .each = scaled(4000) };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	pthread_t threads[SHARERS + 2], resizer;

	REQUIRE((shared.srq = ibv_create_srq(shared.hub.pd, &attr)));
	for (unsigned i = 0; i < DEPTH; i++)
		REQUIRE_EQUAL(post_to_srq(&shared, i), 0);
	for (unsigned i = 0; i < SHARERS; i++) {
		shared.hub_qps[i] = make_qp(
			shared.hub.pd, (struct qp_size){ .send_cq = shared.hub.cq, .srq = shared.srq, .depth = 16 });
		shared.ends[i] = make_end(4096, 32);
		connect_pair(shared.hub_qps[i], shared.ends[i].qp);
	}
	resizer = thread_start(resize_hub, &shared);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = thread_start(serve_hub, &shared);
	for (unsigned i = 0; i < SHARERS; i++)
		threads[2 + i] = thread_start(send_to_hub, &shared);
	for (unsigned i = 0; i < SHARERS + 2; i++)
		thread_join(threads[i]);
	atomic_store(&shared.is_over, true);
	thread_join(resizer);
	for (unsigned i = 0; i < SHARERS; i++) {
		free_end(&shared.ends[i]);
		REQUIRE_EQUAL(ibv_destroy_qp(shared.hub_qps[i]), 0);
	}
	REQUIRE_EQUAL(ibv_destroy_srq(shared.srq), 0);
	free_end(&shared.hub);
}

/* ---- The extended poller ----------------------------------------------------------------------------------------- */

struct extended {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	unsigned count;
	atomic_uint done;
	atomic_uchar *seen;
};

static void *poll_extended(void *argument)
{
	struct extended *x = argument;
	struct ibv_poll_cq_attr attr = { 0 };
	double began = seconds_now();

	while (atomic_load(&x->done) < x->count) {
		check_patience(began, x->done, x->count);
		int error = ibv_start_poll(x->cq, &attr);
		if (error == ENOENT)
			continue;
		REQUIRE_EQUAL(error, 0);
		do {
			REQUIRE_EQUAL(x->cq->status, IBV_WC_SUCCESS);
			REQUIRE_EQUAL(ibv_wc_read_opcode(x->cq), IBV_WC_RDMA_WRITE);
			REQUIRE(x->cq->wr_id < x->count);
			atomic_fetch_add(&x->seen[x->cq->wr_id], 1);
			atomic_fetch_add(&x->done, 1);
		} while (ibv_next_poll(x->cq) == 0);
		ibv_end_poll(x->cq);
	}
	return NULL;
}

static void threads_take_turns_at_the_extended_poller(void)
{
	struct pair_end a = make_end(4096, 16), b = make_end(4096, 16);
	struct ibv_cq_init_attr_ex attr = { .cqe = 256, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct extended x = { .count = scaled(6000) };
	pthread_t pollers[POLLERS];

	REQUIRE((x.cq = ibv_create_cq_ex(a.context, &attr)));
	x.qp = make_qp(a.pd, (struct qp_size){ .send_cq = ibv_cq_ex_to_cq(x.cq), .depth = 64 });
	connect_pair(x.qp, b.qp);
	x.seen = calloc(x.count, 1);
	for (unsigned i = 0; i < POLLERS; i++)
		pollers[i] = thread_start(poll_extended, &x);
	for (unsigned i = 0; i < x.count; i++) {
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &a.buffer,
			.length = 8,
			.remote = (uintptr_t)b.buffer.bytes,
			.rkey = b.buffer.mr->rkey };
		post_when_room(x.qp, &request);
	}
	for (unsigned i = 0; i < POLLERS; i++)
		thread_join(pollers[i]);
	for (unsigned i = 0; i < x.count; i++)
		REQUIRE_EQUAL(x.seen[i], 1);
	free(x.seen);
	REQUIRE_EQUAL(ibv_destroy_qp(x.qp), 0);
	REQUIRE_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(x.cq)), 0);
	free_end(&a);
	free_end(&b);
}

/* ---- Datagrams --------------------------------------------------------------------------------------------------- */

struct datagrams {
	struct pair_end a;
	struct ibv_qp *from, *to;
	unsigned each;
};

static void *send_datagrams(void *argument)
{
	struct datagrams *d = argument;
	struct address to = address_of(d->to);

	for (unsigned i = 0; i < d->each; i++) {
		struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = to.gid, .hop_limit = 64 } };
		struct ibv_ah *ah = ibv_create_ah(d->a.pd, &attr);
		REQUIRE(ah);
		struct ibv_sge sge = { (uintptr_t)d->a.buffer.bytes + 65536, 100, d->a.buffer.mr->lkey };
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.ud = { ah, to.qpn, 0x1234 } },
				   *bad;
		int error;
		while ((error = ibv_post_send(d->from, &wr, &bad)) == ENOMEM)
			sched_yield();
		REQUIRE_EQUAL(error, 0);
		REQUIRE_EQUAL(ibv_destroy_ah(ah), 0); /* posted requests have their own copy of the address */
	}
	return NULL;
}

static void threads_send_datagrams_and_destroy_their_handles(void)
{
	enum { SENDERS = 3 };
	struct datagrams d = { .a = make_end(2 * 65536, 64), .each = scaled(3000) };
	pthread_t senders[SENDERS];
	struct ibv_cq *cq = ibv_create_cq(d.a.context, 256, NULL, NULL, 0);

	REQUIRE(cq);
	d.from = make_qp(d.a.pd, (struct qp_size){ .send_cq = cq, .type = IBV_QPT_UD, .depth = 64 });
	d.to = make_qp(d.a.pd, (struct qp_size){ .send_cq = d.a.cq, .type = IBV_QPT_UD, .depth = 64 });
	to_init(d.from);
	to_init(d.to);
	to_rts(d.from, NULL);
	to_rts(d.to, NULL);
	for (unsigned i = 0; i < 64; i++)
		REQUIRE_EQUAL(post_receive(d.to, i, &d.a.buffer, 1024 * i, 1024), 0);
	for (unsigned i = 0; i < SENDERS; i++)
		senders[i] = thread_start(send_datagrams, &d);
	unsigned sent = 0, received = 0;
	double began = seconds_now();
	while (sent < SENDERS * d.each) {
		check_patience(began, sent, SENDERS * d.each);
		struct ibv_wc wc;
		int got = ibv_poll_cq(cq, 1, &wc);
		REQUIRE(got >= 0);
		if (got) {
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			sent++;
		}
		got = ibv_poll_cq(d.a.cq, 1, &wc);
		REQUIRE(got >= 0);
		if (got) {
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			REQUIRE_EQUAL(wc.byte_len, 40 + 100);
			REQUIRE_EQUAL(post_receive(d.to, wc.wr_id, &d.a.buffer, 1024 * wc.wr_id, 1024), 0);
			received++;
		}
	}
	REQUIRE(received > 0);
	for (unsigned i = 0; i < SENDERS; i++)
		thread_join(senders[i]);
	REQUIRE_EQUAL(ibv_destroy_qp(d.from), 0);
	REQUIRE_EQUAL(ibv_destroy_qp(d.to), 0);
	REQUIRE_EQUAL(ibv_destroy_cq(cq), 0);
	free_end(&d.a);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(one_thread_posts_while_another_polls),
		CASE(many_threads_post_and_poll_one_qp_and_cq),
		CASE(many_threads_build_requests_on_one_qp),
		CASE(qps_share_a_cq_and_an_srq_while_it_is_resized),
		CASE(threads_take_turns_at_the_extended_poller),
		CASE(threads_send_datagrams_and_destroy_their_handles),
	};
	return run_cases(argc, argv, CASES(cases));
}
