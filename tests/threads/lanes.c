/* Lanes of one process: QPs of different ones connected to each other, and what they share, a CQ, a channel, an SRQ, a
 * region. Each thread that makes CQs has a lane, where there are cores or VERBENA_LANES; otherwise all of this is done
 * in one. */
#include <poll.h>
#include "rig.h"

enum { DEPTH = 64, BYTES = 4096 };

static unsigned scaled(unsigned count)
{
	return is_sanitized() ? count / 5 : count;
}

/* ---- Two ends of a connection, each made by a thread of its own -------------------------------------------------- */

struct side {
	struct pair_end end;
	struct side *other;
	pthread_barrier_t *barrier;
	unsigned rounds;
	bool sleeps;
};

static void receive_again(struct side *side, uint64_t id)
{
	REQUIRE_EQUAL(post_receive(side->end.qp, id, &side->end.buffer, 0, BYTES), 0);
}

static void await_event(struct side *side)
{
	struct ibv_cq *cq;
	void *context;

	REQUIRE_EQUAL(ibv_get_cq_event(side->end.channel, &cq, &context), 0);
	REQUIRE(cq == side->end.cq);
	ibv_ack_cq_events(cq, 1);
	REQUIRE_EQUAL(ibv_req_notify_cq(side->end.cq, 0), 0);
}

/* What is under way each way never exceeds the other's receives. */
static void talk(struct side *side)
{
	unsigned sent = 0, done = 0, received = 0;
	struct ibv_wc wc;

	while (done < side->rounds || received < side->rounds) {
		struct request send = {
			.opcode = IBV_WR_SEND, .id = sent, .local = &side->end.buffer, .length = 8 + sent % 2000
		};
		if (sent < side->rounds && sent - done < DEPTH / 2 && sent < received + DEPTH / 2) {
			REQUIRE_EQUAL(post(side->end.qp, &send), 0);
			sent++;
		}
		int got = ibv_poll_cq(side->end.cq, 1, &wc);
		REQUIRE(got >= 0);
		if (got == 0 && side->sleeps && (sent == side->rounds || sent - done == DEPTH / 2)) {
			await_event(side);
			continue;
		}
		if (got == 0)
			continue;
		REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV) {
			REQUIRE_EQUAL(wc.wr_id, received % DEPTH);
			receive_again(side, received++ % DEPTH);
		} else {
			REQUIRE_EQUAL(wc.wr_id, done++);
		}
	}
}

static void *be_a_side(void *argument)
{
	struct side *side = argument;

	side->end = make_end(BYTES, DEPTH);
	to_init(side->end.qp);
	for (unsigned i = 0; i < DEPTH; i++)
		receive_again(side, i);
	REQUIRE_EQUAL(ibv_req_notify_cq(side->end.cq, 0), 0);
	pthread_barrier_wait(side->barrier);
	struct address peer = address_of(side->other->end.qp);
	to_rts(side->end.qp, &peer);
	pthread_barrier_wait(side->barrier);
	talk(side);
	pthread_barrier_wait(side->barrier);
	free_end(&side->end);
	return NULL;
}

static void talk_across(unsigned pairs, bool sleeps)
{
	struct side sides[16] = { 0 };
	pthread_t threads[16];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, 2 * pairs);
	for (unsigned i = 0; i < 2 * pairs; i++) {
		sides[i] = (struct side){
			.other = &sides[i ^ 1], .barrier = &barrier, .rounds = scaled(4000), .sleeps = sleeps
		};
		threads[i] = thread_start(be_a_side, &sides[i]);
	}
	for (unsigned i = 0; i < 2 * pairs; i++)
		thread_join(threads[i]);
	pthread_barrier_destroy(&barrier);
}

static void two_lanes_talk_to_each_other(void)
{
	talk_across(1, false);
}

static void eight_lanes_talk_to_each_other(void)
{
	talk_across(4, false);
}

static void lanes_whose_threads_sleep_talk_to_each_other(void)
{
	talk_across(2, true);
}

/* ---- What lanes share -------------------------------------------------------------------------------------------- */

enum { DOMAINS = 4, RECEIVES = 512, PLACE = 128 };

static struct ibv_pd *thread_domain(struct ibv_context *context, struct ibv_pd *pd, struct ibv_td **td)
{
	struct ibv_td_init_attr of_thread = { 0 };

	*td = ibv_alloc_td(context, &of_thread);
	REQUIRE(*td);
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = *td };
	struct ibv_pd *domain = ibv_alloc_parent_domain(context, &attr);
	REQUIRE(domain);
	return domain;
}

/* Pairs whose ends are in thread domains of their own, with one CQ, one SRQ, one channel and one region for all. */
struct shared {
	struct ibv_context *context;
	struct ibv_pd *pd, *domains[DOMAINS];
	struct ibv_td *tds[DOMAINS];
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qps[DOMAINS];
	struct buffer buffer;
};

static void receive_from_srq(struct shared *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->buffer.bytes + BYTES + id * PLACE, PLACE, s->buffer.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	REQUIRE_EQUAL(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
}

static struct shared make_shared(void)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1024, .max_sge = 1 } };
	struct shared s = { .context = open_lo() };

	s.pd = ibv_alloc_pd(s.context);
	s.channel = ibv_create_comp_channel(s.context);
	s.cq = ibv_create_cq(s.context, 4096, NULL, s.channel, 0);
	s.srq = ibv_create_srq(s.pd, &srq);
	REQUIRE(s.pd && s.channel && s.cq && s.srq);
	s.buffer = make_buffer(s.pd, BYTES + RECEIVES * PLACE);
	for (unsigned i = 0; i < DOMAINS; i++) {
		s.domains[i] = thread_domain(s.context, s.pd, &s.tds[i]);
		s.qps[i] = make_qp(
			s.domains[i], (struct qp_size){ .send_cq = s.cq, .recv_cq = s.cq, .srq = s.srq, .depth = 64 });
	}
	for (unsigned i = 0; i < DOMAINS; i += 2)
		connect_pair(s.qps[i], s.qps[i + 1]);
	for (unsigned i = 0; i < RECEIVES; i++)
		receive_from_srq(&s, i);
	return s;
}

static void free_shared(struct shared *s)
{
	for (unsigned i = 0; i < DOMAINS; i++) {
		REQUIRE_EQUAL(ibv_destroy_qp(s->qps[i]), 0);
		REQUIRE_EQUAL(ibv_dealloc_pd(s->domains[i]), 0);
		REQUIRE_EQUAL(ibv_dealloc_td(s->tds[i]), 0);
	}
	REQUIRE_EQUAL(ibv_destroy_srq(s->srq), 0);
	REQUIRE_EQUAL(ibv_destroy_cq(s->cq), 0);
	REQUIRE_EQUAL(ibv_destroy_comp_channel(s->channel), 0);
	free_buffer(&s->buffer);
	REQUIRE_EQUAL(ibv_dealloc_pd(s->pd), 0);
	REQUIRE_EQUAL(ibv_close_device(s->context), 0);
}

/* Everybody sends, one thread sleeps on the channel and takes all. */
static void one_queue_hears_of_all_lanes(void)
{
	struct shared s = make_shared();
	const unsigned rounds = scaled(3000);
	unsigned sent[DOMAINS] = { 0 }, done[DOMAINS] = { 0 }, received = 0, all_done = 0;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	REQUIRE_EQUAL(ibv_req_notify_cq(s.cq, 0), 0);
	while (received < DOMAINS * rounds || all_done < DOMAINS * rounds) {
		for (unsigned i = 0; i < DOMAINS; i++) {
			struct request send = { .opcode = IBV_WR_SEND, .id = i, .local = &s.buffer, .length = 100 };
			for (; sent[i] < rounds && sent[i] - done[i] < 32; sent[i]++)
				REQUIRE_EQUAL(post(s.qps[i], &send), 0);
		}
		REQUIRE_EQUAL(ibv_get_cq_event(s.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		REQUIRE_EQUAL(ibv_req_notify_cq(s.cq, 0), 0);
		while (ibv_poll_cq(s.cq, 1, &wc) > 0) {
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode == IBV_WC_RECV) {
				receive_from_srq(&s, wc.wr_id);
				received++;
			} else {
				done[wc.wr_id]++;
				all_done++;
			}
		}
	}
	free_shared(&s);
}

/* While others are at work, in every lane. */
static atomic_bool is_over;

static void *write_on(void *argument)
{
	struct side *side = argument;

	while (!atomic_load(&is_over)) {
		struct request write = { .opcode = IBV_WR_RDMA_WRITE,
			.id = 1,
			.local = &side->end.buffer,
			.length = 512,
			.remote = (uintptr_t)side->other->end.buffer.bytes,
			.rkey = side->other->end.buffer.mr->rkey };
		REQUIRE_EQUAL(post(side->end.qp, &write), 0);
		wait_success(side->end.cq, 1);
	}
	return NULL;
}

static void regions_and_queues_come_and_go_beside_busy_lanes(void)
{
	struct side sides[2] = { 0 };
	pthread_t threads[2];
	struct pair pair = make_pair(BYTES, DEPTH);

	atomic_store(&is_over, false);
	sides[0] = (struct side){ .end = pair.a, .other = &sides[1] };
	sides[1] = (struct side){ .end = pair.b, .other = &sides[0] };
	for (unsigned i = 0; i < 2; i++)
		threads[i] = thread_start(write_on, &sides[i]);
	for (unsigned i = 0; i < scaled(100); i++) {
		struct shared s = make_shared();
		struct request send = { .opcode = IBV_WR_SEND, .id = i, .local = &s.buffer, .length = 100 };
		struct buffer more = make_buffer(s.pd, BYTES);
		REQUIRE_EQUAL(post(s.qps[i % DOMAINS], &send), 0);
		free_buffer(&more);
		free_shared(&s);
	}
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < 2; i++)
		thread_join(threads[i]);
	free_pair(&pair);
}

/* A lane has a part of the numbers alone: then they are another's, and the same CQ hears of them. */
static void more_queue_pairs_than_a_lane_has_numbers_for(void)
{
	enum { MOST = 20000 };
	static struct ibv_qp *qps[MOST];
	const char *lanes = getenv("VERBENA_LANES");
	unsigned count = lanes && atoi(lanes) == 8 && !is_sanitized() ? 8192 + 100 : 500;
	struct pair_end end = make_end(BYTES, DEPTH);
	struct qp_size size = { .send_cq = end.cq, .recv_cq = end.cq, .depth = 1 };

	for (unsigned i = 0; i < count; i++)
		qps[i] = make_qp(end.pd, size);
	REQUIRE((qps[0]->qp_num >> 16 == qps[count - 1]->qp_num >> 16) == (count == 500));
	connect_pair(qps[0], qps[count - 1]);
	REQUIRE_EQUAL(post_receive(qps[count - 1], 7, &end.buffer, 0, 8), 0);
	struct request send = { .opcode = IBV_WR_SEND, .id = 3, .local = &end.buffer, .length = 8 };
	REQUIRE_EQUAL(post(qps[0], &send), 0);
	for (unsigned seen = 0; seen < 2; seen++)
		REQUIRE_EQUAL(wait_completion(end.cq).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < count; i++)
		REQUIRE_EQUAL(ibv_destroy_qp(qps[i]), 0);
	free_end(&end);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(two_lanes_talk_to_each_other),
		CASE(eight_lanes_talk_to_each_other),
		CASE(lanes_whose_threads_sleep_talk_to_each_other),
		CASE(one_queue_hears_of_all_lanes),
		CASE(regions_and_queues_come_and_go_beside_busy_lanes),
		CASE(more_queue_pairs_than_a_lane_has_numbers_for),
	};
	return run_cases(argc, argv, CASES(cases));
}
