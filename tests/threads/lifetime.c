/* Objects that come and go while others work: what is destroyed is no longer touched, what is left is undisturbed, and
 * nothing stays behind. */
#include <sys/mman.h>
#include "rig.h"

#define ROUNDS   (is_sanitized() ? 40 : 100)
#define MANY_QPS 1000
#define MANY_MRS 100000
#define PATTERN  0xC3 /* what no sender ever sends */

/* ---- Background traffic ------------------------------------------------------------------------------------------ */

/* Writes from one end of a pair to the other until told to stop; every write must succeed. */
struct traffic {
	struct pair pair;
	atomic_bool is_over;
	unsigned count;
	pthread_t thread;
};

static void *write_on(void *argument)
{
	struct traffic *t = argument;

	for (uint64_t id = 0; !atomic_load(&t->is_over); id++) {
		struct request request = { .opcode = id % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
			.id = id,
			.local = &t->pair.a.buffer,
			.length = 8192,
			.remote = (uintptr_t)t->pair.b.buffer.bytes,
			.rkey = t->pair.b.buffer.mr->rkey };
		REQUIRE_EQUAL(post(t->pair.a.qp, &request), 0);
		wait_success(t->pair.a.cq, id);
		t->count++;
	}
	return NULL;
}

static void traffic_start(struct traffic *t)
{
	*t = (struct traffic){ .pair = make_pair(8192, 16) };
	t->thread = thread_start(write_on, t);
}

static void traffic_stop(struct traffic *t)
{
	atomic_store(&t->is_over, true);
	thread_join(t->thread);
	REQUIRE(t->count > 0);
	free_pair(&t->pair);
}

/* ---- Creating and destroying ------------------------------------------------------------------------------------- */

struct churn {
	struct pair_end *end;
	unsigned rounds;
};

static void *come_and_go(void *argument)
{
	struct churn *churn = argument;
	struct ibv_context *context = churn->end->context;

	for (unsigned i = 0; i < churn->rounds; i++) {
		struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
		REQUIRE(channel);
		struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0);
		REQUIRE(cq);
		struct ibv_pd *pd = ibv_alloc_pd(context);
		REQUIRE(pd);
		struct buffer buffer = make_buffer(pd, 4096);
		struct ibv_qp *a = make_qp(pd, (struct qp_size){ .send_cq = cq, .depth = 8 });
		struct ibv_qp *b = make_qp(pd, (struct qp_size){ .send_cq = cq, .depth = 8 });
		connect_pair(a, b);
		REQUIRE_EQUAL(ibv_req_notify_cq(cq, 0), 0);
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &buffer,
			.length = 2048,
			.remote = (uintptr_t)buffer.bytes + 2048,
			.rkey = buffer.mr->rkey };
		REQUIRE_EQUAL(post(a, &request), 0);
		if (i % 2)
			wait_success(
				cq, i); /* every other time it dies with the request under way and the event unread */
		REQUIRE_EQUAL(ibv_destroy_cq(cq), EBUSY);
		REQUIRE_EQUAL(ibv_destroy_comp_channel(channel), EBUSY);
		REQUIRE_EQUAL(ibv_destroy_qp(i % 3 ? a : b), 0);
		REQUIRE_EQUAL(ibv_destroy_qp(i % 3 ? b : a), 0);
		free_buffer(&buffer);
		REQUIRE_EQUAL(ibv_dealloc_pd(pd), 0);
		REQUIRE_EQUAL(ibv_destroy_cq(cq), 0);
		REQUIRE_EQUAL(ibv_destroy_comp_channel(channel), 0);
	}
	return NULL;
}

static void threads_create_and_destroy_beside_traffic(void)
{
	enum { CHURNERS = 4 };
	struct traffic traffic;
	pthread_t threads[CHURNERS];

	traffic_start(&traffic);
	struct churn churn = { &traffic.pair.a, 2 * (unsigned)ROUNDS };
	for (unsigned i = 0; i < CHURNERS; i++)
		threads[i] = thread_start(come_and_go, &churn);
	for (unsigned i = 0; i < CHURNERS; i++)
		thread_join(threads[i]);
	traffic_stop(&traffic);
}

static void *open_and_close(void *argument)
{
	const unsigned *rounds = argument;

	for (unsigned i = 0; i < *rounds; i++) {
		struct pair_end end = make_end(4096, 16);
		free_end(&end);
	}
	return NULL;
}

static void threads_open_and_close_devices(void)
{
	unsigned rounds = (unsigned)ROUNDS / 3;
	unsigned fds;
	pthread_t threads[3];

	open_and_close(&(unsigned){ 1 });
	fds = count_fds();
	for (unsigned i = 0; i < 3; i++)
		threads[i] = thread_start(open_and_close, &rounds);
	for (unsigned i = 0; i < 3; i++)
		thread_join(threads[i]);
	REQUIRE_EQUAL(count_fds(), fds);
}

/* ---- Regions that close while they are used ---------------------------------------------------------------------- */

/* One thread sends requests at a region over and over; the other closes the region at a random moment and at once takes
 * the memory away. A late access of ours would end the process. */
struct assault {
	struct pair pair;
	enum ibv_wr_opcode opcode;
	bool is_local; /* the region that closes is the sender's own */
	struct buffer victim;
	_Atomic uint32_t rkey;
	_Atomic uintptr_t address;
	atomic_uint round, rounds_begun, rounds_ended;
	atomic_bool is_over;
	unsigned successes, refusals;
};

#define VICTIM_BYTES 65536
#define IN_FLIGHT    16 /* each with a place of its own in the sender's buffer */

/* Sends until the region is gone, then waits until all that was sent has failed, and mends the connection. */
static void send_until_refused(struct assault *assault)
{
	struct pair *pair = &assault->pair;
	unsigned posted = 0, done = 0;
	bool is_refused = false;
	double began = seconds_now();

	while (!is_refused || done < posted) {
		if (seconds_now() - began > 10)
			fail(__FILE__, __LINE__, "round %u: %u of %u posted requests completed, %srefused",
				assault->rounds_begun, done, posted, is_refused ? "" : "not ");
		if (!is_refused && posted - done < IN_FLIGHT) {
			struct buffer own = { .bytes = (uint8_t *)atomic_load(&assault->address),
				.mr = &(struct ibv_mr){ .lkey = atomic_load(&assault->rkey) } };
			bool is_local = assault->is_local;
			struct request request = { .opcode = assault->opcode,
				.id = posted,
				.local = is_local ? &own : &pair->a.buffer,
				.length = VICTIM_BYTES,
				.offset = is_local ? 0 : posted % IN_FLIGHT * VICTIM_BYTES,
				.remote = is_local ? (uintptr_t)pair->b.buffer.bytes : atomic_load(&assault->address),
				.rkey = is_local ? pair->b.buffer.mr->rkey : atomic_load(&assault->rkey) };
			REQUIRE_EQUAL(post(pair->a.qp, &request), 0);
			posted++;
		}
		struct ibv_wc wc;
		int got = ibv_poll_cq(pair->a.cq, 1, &wc);
		REQUIRE(got >= 0);
		if (!got)
			continue;
		done++;
		if (wc.status == IBV_WC_SUCCESS) {
			REQUIRE(!is_refused);
			assault->successes++;
			const uint8_t *place = pair->a.buffer.bytes + wc.wr_id % IN_FLIGHT * VICTIM_BYTES;
			for (unsigned at = 0; at < VICTIM_BYTES && assault->opcode == IBV_WR_RDMA_READ; at += 4096)
				REQUIRE(place[at] != PATTERN);
		} else if (!is_refused) {
			is_refused = true;
			REQUIRE_EQUAL(wc.status, assault->is_local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR);
			assault->refusals++;
		} else {
			REQUIRE_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
	}
	reconnect_pair(pair->a.qp, pair->b.qp);
}

static void *assail(void *argument)
{
	struct assault *assault = argument;
	unsigned seen = 0;

	for (;;) {
		while (atomic_load(&assault->round) == seen && !atomic_load(&assault->is_over))
			;
		if (atomic_load(&assault->is_over))
			return NULL;
		seen++;
		atomic_store(&assault->rounds_begun, seen);
		send_until_refused(assault);
		atomic_store(&assault->rounds_ended, seen);
	}
}

static void open_victim(struct assault *assault)
{
	struct ibv_pd *pd = assault->is_local ? assault->pair.a.pd : assault->pair.b.pd;

	assault->victim = make_buffer(pd, VICTIM_BYTES);
	atomic_store(&assault->address, (uintptr_t)assault->victim.bytes);
	atomic_store(&assault->rkey, assault->victim.mr->rkey);
}

/* Half of the time the memory goes, half of the time it stays, and must then stay as it is. */
static void close_victim(struct assault *assault, bool unmaps)
{
	struct buffer *victim = &assault->victim;

	REQUIRE_EQUAL(ibv_dereg_mr(victim->mr), 0);
	if (unmaps) {
		REQUIRE_EQUAL(munmap(victim->bytes, victim->length), 0);
		return;
	}
	memset(victim->bytes, PATTERN, victim->length);
	sleep_ms(2);
	for (size_t i = 0; i < victim->length; i++)
		REQUIRE_EQUAL(victim->bytes[i], PATTERN);
	REQUIRE_EQUAL(mprotect(victim->bytes, victim->length, PROT_NONE), 0);
	sleep_ms(1);
	REQUIRE_EQUAL(munmap(victim->bytes, victim->length), 0);
}

static void assault_region(enum ibv_wr_opcode opcode, bool is_local)
{
	struct assault assault = {
		.pair = make_pair(IN_FLIGHT * VICTIM_BYTES, 16), .opcode = opcode, .is_local = is_local
	};
	pthread_t thread = thread_start(assail, &assault);
	uint32_t random = 11;

	for (unsigned i = 1; i <= (unsigned)ROUNDS; i++) {
		open_victim(&assault);
		atomic_store(&assault.round, i);
		while (atomic_load(&assault.rounds_begun) != i)
			;
		usleep(next_random(&random) % 2000);
		close_victim(&assault, i % 2);
		while (atomic_load(&assault.rounds_ended) != i)
			;
	}
	atomic_store(&assault.is_over, true);
	thread_join(thread);
	REQUIRE_EQUAL(assault.refusals, ROUNDS);
	REQUIRE(assault.successes > 0);
	free_pair(&assault.pair);
}

static void dereg_ends_all_writes_into_a_region(void)
{
	assault_region(IBV_WR_RDMA_WRITE, false);
}

static void dereg_ends_all_reads_from_a_region(void)
{
	assault_region(IBV_WR_RDMA_READ, false);
}

static void dereg_ends_all_sending_from_a_region(void)
{
	assault_region(IBV_WR_RDMA_WRITE, true);
}

static void dereg_ends_all_answers_into_a_region(void)
{
	assault_region(IBV_WR_RDMA_READ, true);
}

/* ---- Rereg ------------------------------------------------------------------------------------------------------- */

struct steady_writer {
	struct pair pair;
	_Atomic uint32_t rkey;
	_Atomic uintptr_t address;
	atomic_bool is_over;
	unsigned successes;
};

/* Writes to where the region is said to be; it may just have moved, which is no harm but a refusal. */
static void *write_steadily(void *argument)
{
	struct steady_writer *w = argument;

	while (!atomic_load(&w->is_over)) {
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.local = &w->pair.a.buffer,
			.length = 16384,
			.remote = atomic_load(&w->address),
			.rkey = atomic_load(&w->rkey) };
		REQUIRE_EQUAL(post(w->pair.a.qp, &request), 0);
		struct ibv_wc wc = wait_completion(w->pair.a.cq);
		if (wc.status == IBV_WC_SUCCESS) {
			w->successes++;
			continue;
		}
		REQUIRE_EQUAL(wc.status, IBV_WC_REM_ACCESS_ERR);
		reconnect_pair(w->pair.a.qp, w->pair.b.qp);
	}
	return NULL;
}

static void rereg_moves_a_region_under_traffic(void)
{
	struct steady_writer w = { .pair = make_pair(16384, 16) };
	struct buffer places[2] = { make_buffer(w.pair.b.pd, 16384), make_buffer(w.pair.b.pd, 16384) };
	struct ibv_mr *mr = places[0].mr;
	pthread_t thread;

	atomic_store(&w.address, (uintptr_t)places[0].bytes);
	atomic_store(&w.rkey, mr->rkey);
	thread = thread_start(write_steadily, &w);
	for (unsigned i = 1; i <= (unsigned)ROUNDS; i++) {
		struct buffer *next = &places[i % 2], *before = &places[(i + 1) % 2];
		usleep(500);
		REQUIRE_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, next->bytes, next->length, 0), 0);
		REQUIRE_EQUAL(mr->rkey, atomic_load(&w.rkey));
		memset(before->bytes, PATTERN, before->length);
		atomic_store(&w.address, (uintptr_t)next->bytes);
		usleep(500);
		for (size_t at = 0; at < before->length; at++)
			REQUIRE_EQUAL(before->bytes[at], PATTERN);
	}
	atomic_store(&w.is_over, true);
	thread_join(thread);
	REQUIRE(w.successes > 0);
	free_buffer(&places[0]);
	free_buffer(&places[1]);
	free_pair(&w.pair);
}

/* ---- Closing with objects left ----------------------------------------------------------------------------------- */

static void abandon_everything(bool uses_traffic)
{
	struct pair pair = make_pair(65536, 64);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };

	REQUIRE(ibv_create_srq(pair.a.pd, &attr));
	REQUIRE(ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_2));
	REQUIRE(ibv_create_ah(pair.a.pd,
		&(struct ibv_ah_attr){ .is_global = 1, .port_num = 1, .grh = { .dgid = address_of(pair.b.qp).gid } }));
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.a.cq, 0), 0);
	for (unsigned i = 0; uses_traffic && i < 32; i++) {
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.local = &pair.a.buffer,
			.length = 65536,
			.remote = (uintptr_t)pair.b.buffer.bytes,
			.rkey = pair.b.buffer.mr->rkey };
		REQUIRE_EQUAL(post(pair.a.qp, &request), 0);
	}
	REQUIRE_EQUAL(ibv_close_device(pair.b.context), 0);
	REQUIRE_EQUAL(ibv_close_device(pair.a.context), 0);
	REQUIRE_EQUAL(munmap(pair.a.buffer.bytes, pair.a.buffer.length), 0);
	REQUIRE_EQUAL(munmap(pair.b.buffer.bytes, pair.b.buffer.length), 0);
}

static void close_takes_what_is_left(void)
{
	abandon_everything(true);
	unsigned fds = count_fds();
	size_t heap = heap_bytes();

	for (unsigned i = 0; i < 100; i++)
		abandon_everything(i % 2);
	REQUIRE_EQUAL(count_fds(), fds);
	REQUIRE_LESS(heap_bytes(), heap + 65536);
}

/* ---- Many -------------------------------------------------------------------------------------------------------- */

static void make_and_destroy_qps(struct pair_end *a, struct pair_end *b, unsigned count)
{
	struct ibv_qp **qps = calloc(2 * count, sizeof(struct ibv_qp *));

	for (unsigned i = 0; i < count; i++) {
		qps[2 * i] = make_qp(a->pd, (struct qp_size){ .send_cq = a->cq, .depth = 4 });
		qps[2 * i + 1] = make_qp(b->pd, (struct qp_size){ .send_cq = b->cq, .depth = 4 });
		connect_pair(qps[2 * i], qps[2 * i + 1]);
	}
	for (unsigned i = 0; i < count; i++) {
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &a->buffer,
			.length = 64,
			.remote = (uintptr_t)b->buffer.bytes,
			.rkey = b->buffer.mr->rkey };
		REQUIRE_EQUAL(post(qps[2 * i], &request), 0);
		wait_success(a->cq, i);
	}
	for (unsigned i = 0; i < 2 * count; i++)
		REQUIRE_EQUAL(ibv_destroy_qp(qps[i]), 0);
	free(qps);
}

static void a_thousand_qps_leave_nothing_behind(void)
{
	struct pair_end a = make_end(4096, 16), b = make_end(4096, 16);
	unsigned count = MANY_QPS / 2;

	make_and_destroy_qps(&a, &b, count);
	make_and_destroy_qps(&a, &b, count);
	unsigned fds = count_fds();
	size_t heap = heap_bytes();
	for (unsigned i = 0; i < (is_sanitized() ? 2 : 6); i++)
		make_and_destroy_qps(&a, &b, count);
	REQUIRE_EQUAL(count_fds(), fds);
	REQUIRE_LESS(heap_bytes(), heap + 65536);
	free_end(&a);
	free_end(&b);
}

/* Regions of one page, overlapping; the first, the last and one in between are used. */
static void a_hundred_thousand_regions(void)
{
	unsigned count = is_sanitized() ? MANY_MRS / 5 : MANY_MRS;
	struct pair pair = make_pair(1 << 20, 16);
	struct ibv_mr **mrs = calloc(count, sizeof(struct ibv_mr *));
	size_t heap[2];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < count; i++)
			REQUIRE((mrs[i] = ibv_reg_mr(pair.b.pd, pair.b.buffer.bytes + i % 1000, 4096, ACCESS_ALL)));
		for (unsigned i = 0; i < count; i += count / 2 - 1) {
			uint64_t text = 0x1122334455667788 + i;
			memcpy(pair.a.buffer.bytes, &text, sizeof(text));
			struct request request = { .opcode = IBV_WR_RDMA_WRITE,
				.id = i,
				.local = &pair.a.buffer,
				.length = sizeof(text),
				.remote = (uintptr_t)pair.b.buffer.bytes + i % 1000,
				.rkey = mrs[i]->rkey };
			REQUIRE_EQUAL(post(pair.a.qp, &request), 0);
			wait_success(pair.a.cq, i);
			REQUIRE(memcmp(pair.b.buffer.bytes + i % 1000, &text, sizeof(text)) == 0);
		}
		for (unsigned i = 0; i < count; i++)
			REQUIRE_EQUAL(ibv_dereg_mr(mrs[i]), 0);
		heap[round] = heap_bytes();
	}
	REQUIRE_LESS(heap[1], heap[0] + 262144);
	free(mrs);
	free_pair(&pair);
}

/* ---- Overrun ----------------------------------------------------------------------------------------------------- */

static void overrun_is_an_event_and_then_an_error(void)
{
	struct pair pair = make_pair(4096, 64);
	struct ibv_cq *small = ibv_create_cq(pair.a.context, 4, NULL, NULL, 0);
	REQUIRE(small);
	struct ibv_qp *qp = make_qp(pair.a.pd, (struct qp_size){ .send_cq = small, .recv_cq = pair.a.cq, .depth = 64 });
	struct ibv_qp *peer = make_qp(pair.b.pd, (struct qp_size){ .send_cq = pair.b.cq, .depth = 4 });
	struct ibv_async_event event;
	unsigned got = 0;
	int rc;

	connect_pair(qp, peer);
	for (unsigned i = 0; i < 32; i++) {
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &pair.a.buffer,
			.length = 64,
			.remote = (uintptr_t)pair.b.buffer.bytes,
			.rkey = pair.b.buffer.mr->rkey };
		REQUIRE_EQUAL(post(qp, &request), 0);
	}
	do {
		REQUIRE_EQUAL(ibv_get_async_event(pair.a.context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_CQ_ERR);
	REQUIRE(event.element.cq == small);
	for (struct ibv_wc wc; (rc = ibv_poll_cq(small, 1, &wc)) > 0; got++)
		REQUIRE_EQUAL(wc.wr_id, got);
	REQUIRE(rc < 0);
	REQUIRE(got >= 4 && got < 32);
	/* The local peers are well. */
	struct request request = { .opcode = IBV_WR_RDMA_WRITE,
		.id = 99,
		.local = &pair.a.buffer,
		.length = 64,
		.remote = (uintptr_t)pair.b.buffer.bytes,
		.rkey = pair.b.buffer.mr->rkey };
	REQUIRE_EQUAL(post(pair.a.qp, &request), 0);
	wait_success(pair.a.cq, 99);
	REQUIRE_EQUAL(ibv_destroy_qp(qp), 0);
	REQUIRE_EQUAL(ibv_destroy_qp(peer), 0);
	REQUIRE_EQUAL(ibv_destroy_cq(small), 0);
	free_pair(&pair);
}

/* As from a NIC, which has sent a datagram before its program gets any further: each has a region of its own, which is
 * closed right behind the post, and its memory is something else's at once. */
static void datagrams_leave_though_their_region_is_closed(void)
{
	enum { BURST = 64, LENGTH = 1000, GRH = 40, PLACE = 1100 };
	static uint8_t bytes[LENGTH];
	struct pair_end end = make_end(BURST * PLACE, 2 * BURST);
	struct ibv_cq *received = ibv_create_cq(end.context, 2 * BURST, NULL, NULL, 0);
	struct ibv_qp *from = make_qp(end.pd, (struct qp_size){ .send_cq = end.cq, .type = IBV_QPT_UD });
	struct ibv_qp *to =
		make_qp(end.pd, (struct qp_size){ .send_cq = end.cq, .recv_cq = received, .type = IBV_QPT_UD });
	struct ibv_qp *qps[] = { from, to };

	for (unsigned i = 0; i < 2; i++) {
		to_init(qps[i]);
		to_rts(qps[i], NULL);
	}
	struct address address = address_of(to);
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1, .grh = { .dgid = address.gid, .hop_limit = 64 } };
	struct ibv_ah *ah = ibv_create_ah(end.pd, &path);
	REQUIRE(ah);
	for (unsigned sent = 0; sent < 2000; sent += BURST) {
		for (unsigned i = 0; i < BURST; i++)
			REQUIRE_EQUAL(post_receive(to, i, &end.buffer, i * PLACE, PLACE), 0);
		for (unsigned i = 0; i < BURST; i++) {
			struct ibv_mr *mr = ibv_reg_mr(end.pd, bytes, LENGTH, 0);
			REQUIRE(mr);
			memset(bytes, (int)(i + 1), LENGTH);
			struct ibv_sge sge = { (uintptr_t)bytes, LENGTH, mr->lkey };
			struct ibv_send_wr wr = { .wr_id = i,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.ud = { ah, address.qpn, 0x1234 /* to_init */ } };
			struct ibv_send_wr *bad;
			REQUIRE_EQUAL(ibv_post_send(from, &wr, &bad), 0);
			REQUIRE_EQUAL(ibv_dereg_mr(mr), 0);
			memset(bytes, PATTERN, LENGTH);
		}
		for (unsigned i = 0; i < BURST; i++)
			wait_success(end.cq, i);
		for (unsigned i = 0; i < BURST; i++) {
			struct ibv_wc wc = wait_completion(received);
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			for (unsigned n = 0; n < LENGTH; n++)
				REQUIRE_EQUAL(end.buffer.bytes[wc.wr_id * PLACE + GRH + n], i + 1);
		}
	}
	REQUIRE_EQUAL(ibv_destroy_ah(ah), 0);
	REQUIRE_EQUAL(ibv_destroy_qp(from), 0);
	REQUIRE_EQUAL(ibv_destroy_qp(to), 0);
	REQUIRE_EQUAL(ibv_destroy_cq(received), 0);
	free_end(&end);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(threads_create_and_destroy_beside_traffic),
		CASE(threads_open_and_close_devices),
		CASE(dereg_ends_all_writes_into_a_region),
		CASE(dereg_ends_all_reads_from_a_region),
		CASE(dereg_ends_all_sending_from_a_region),
		CASE(dereg_ends_all_answers_into_a_region),
		CASE(rereg_moves_a_region_under_traffic),
		CASE(datagrams_leave_though_their_region_is_closed),
		CASE(close_takes_what_is_left),
		CASE(a_thousand_qps_leave_nothing_behind),
		CASE(a_hundred_thousand_regions),
		CASE(overrun_is_an_event_and_then_an_error),
	};
	return run_cases(argc, argv, CASES(cases));
}
