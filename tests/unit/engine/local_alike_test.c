/* The same random work requests, run as packets and as descriptors, give the same completions, events and memory.
 * Where the specification leaves it open what is seen (a READ of what a later WRITE changes, how much of a refused
 * message landed) the requests keep out of it. */
#include <stdio.h>
#include "base/random.h"
#include "pair.h"

enum { ROUNDS = 12, BATCH = 6, SEEDS = 60, LOG = 512 };
/* What is only read, what WRITEs go to, what is written here, words that are counted in, and receives. */
enum {
	READ_ONLY = 0,
	WRITTEN = 200000,
	BROUGHT = 400000,
	WORDS = 600000,
	RECEIVED = 700000,
	LONGEST = 150000,
	DATAGRAM = 1024
};

struct log {
	unsigned sends, receives, events;
	struct vb_wc send[LOG], receive[LOG];
	enum vb_event_kind event[LOG];
};

struct run {
	struct pair *p;
	struct log log[2];
	uint32_t brought_to; /* no two of a round bring bytes to one place: which is there in the end is open */
};

static uint32_t any_length(struct vb_random *random)
{
	switch (vb_random_below(random, 4)) {
	case 0:
		return vb_random_below(random, 40);
	case 1:
		return vb_random_below(random, 5000);
	case 2:
		return vb_random_below(random, LONGEST);
	default:
		return 0;
	}
}

/* Cuts length bytes from offset on into up to three entries. */
static uint32_t cut(
	const struct pair *p, struct vb_random *random, int of, uint32_t offset, uint32_t length, struct vb_sge *sges)
{
	uint32_t count = 1 + vb_random_below(random, 3);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = i + 1 == count ? length : vb_random_below(random, length + 1);
		sges[i] = pair_sge(p, of, offset, part);
		offset += part;
		length -= part;
	}
	return count;
}

static void spoil(struct vb_random *random, struct vb_send_wr *wr, struct vb_sge *sges)
{
	/* Where what came back has no place, requests behind may have been executed or not. */
	bool brings = wr->opcode == VB_WR_RDMA_READ || wr->opcode == VB_WR_ATOMIC_CMP_AND_SWP ||
		      wr->opcode == VB_WR_ATOMIC_FETCH_AND_ADD;
	uint32_t mistake = vb_random_below(random, 4);
	switch (mistake == 2 && brings ? 0 : mistake) {
	case 0:
		wr->rkey ^= 0x100;
		break;
	case 1:
		wr->remote_addr = (2 << 20) - 3;
		break;
	case 2:
		sges[0].lkey ^= 0x100;
		break;
	default:
		wr->remote_addr ^= 4;
		break;
	}
}

/* is_short: where it is refused, no packet before has landed. */
static void post_one(struct run *run, struct vb_random *random, int of, bool is_short, bool is_bad)
{
	static const enum vb_wr_opcode reliable[] = { VB_WR_SEND, VB_WR_SEND_WITH_IMM, VB_WR_RDMA_WRITE,
		VB_WR_RDMA_WRITE_WITH_IMM, VB_WR_RDMA_READ, VB_WR_ATOMIC_CMP_AND_SWP, VB_WR_ATOMIC_FETCH_AND_ADD,
		VB_WR_FLUSH, VB_WR_ATOMIC_WRITE };
	struct pair *p = run->p;
	struct vb_sge sges[3];
	enum vb_wr_opcode opcode = reliable[vb_random_below(random, p->side[of].qp->is_reliable ? 9 : 4)];
	bool takes_eight = opcode == VB_WR_ATOMIC_CMP_AND_SWP || opcode == VB_WR_ATOMIC_FETCH_AND_ADD ||
			   opcode == VB_WR_ATOMIC_WRITE;
	bool brings = opcode == VB_WR_RDMA_READ || (takes_eight && opcode != VB_WR_ATOMIC_WRITE);
	uint32_t length = takes_eight ? 8 : any_length(random);
	if (is_short && length > 1000)
		length = 1000;
	if (brings && length > WORDS - run->brought_to)
		length = WORDS - run->brought_to;
	uint32_t slack = LONGEST - length;
	uint32_t here = READ_ONLY + vb_random_below(random, slack + 1);
	uint32_t there = (opcode == VB_WR_RDMA_READ ? READ_ONLY : WRITTEN) + vb_random_below(random, slack + 1);
	if (brings) {
		here = run->brought_to;
		run->brought_to += length;
	}
	if (takes_eight)
		there = WORDS + 8 * vb_random_below(random, 8);
	struct vb_send_wr wr = { .wr_id = vb_random_u64(random) >> 1,
		.opcode = opcode,
		.flags = vb_random_below(random, 2) ? VB_SEND_SIGNALED : 0,
		.sges = sges,
		.imm_or_inv = vb_random_below(random, 1000),
		.remote_addr = (1 << 20) + there,
		.rkey = vb_mr_key(p->side[!of].mr),
		.compare_add = vb_random_below(random, 4),
		.swap = vb_random_below(random, 4),
		.flush_type = VB_FLUSH_GLOBAL,
		.flush_length = length };
	wr.sge_count = cut(p, random, of, here, length, sges);
	if (vb_random_below(random, 4) == 0)
		wr.flags |= VB_SEND_FENCE;
	if (vb_random_below(random, 4) == 0)
		wr.flags |= VB_SEND_SOLICITED;
	if (is_bad)
		spoil(random, &wr, sges);
	if (opcode == VB_WR_FLUSH)
		wr.sge_count = 0;
	pair_try_post(p, of, &wr);
}

static void spoil_datagram(struct vb_random *random, struct vb_send_wr *wr, struct vb_sge *sges)
{
	switch (vb_random_below(random, 3)) {
	case 0:
		sges[0].lkey ^= 0x100;
		break;
	case 1:
		sges[0].length += DATAGRAM;
		break;
	default:
		wr->remote_qpn ^= 1;
		break;
	}
}

static void post_datagram(struct run *run, struct vb_random *random, int of, bool is_bad)
{
	struct pair *p = run->p;
	struct vb_sge sges[3];
	struct vb_av av = pair_av(p, of);
	av.traffic_class = (uint8_t)vb_random_below(random, 256);
	av.hop_limit = (uint8_t)vb_random_below(random, 3);
	uint32_t length = vb_random_below(random, vb_random_below(random, 2) ? 40 : DATAGRAM + 1);
	struct vb_send_wr wr = { .wr_id = vb_random_u64(random) >> 1,
		.opcode = vb_random_below(random, 2) ? VB_WR_SEND_WITH_IMM : VB_WR_SEND,
		.flags = vb_random_below(random, 2) ? VB_SEND_SIGNALED : 0,
		.sges = sges,
		.imm_or_inv = vb_random_below(random, 1000),
		.av = &av,
		.remote_qpn = vb_qp_number(p->side[!of].qp),
		.remote_qkey = PAIR_QKEY };
	wr.sge_count = cut(p, random, of, READ_ONLY + vb_random_below(random, 1000), length, sges);
	if (vb_random_below(random, 4) == 0)
		wr.flags |= VB_SEND_SOLICITED;
	if (vb_random_below(random, 8) == 0)
		wr.remote_qkey ^= 1;
	if (is_bad)
		spoil_datagram(random, &wr, sges);
	pair_try_post(p, of, &wr);
}

static void post_receives(struct run *run, struct vb_random *random, int of, bool is_scarce)
{
	uint32_t count = is_scarce ? vb_random_below(random, BATCH) : BATCH;
	for (uint32_t i = 0; i < count; i++) {
		struct vb_sge sges[3];
		struct vb_recv_wr wr = { .wr_id = vb_random_u64(random), .sges = sges };
		wr.sge_count = cut(run->p, random, of, RECEIVED + i * 16, LONGEST, sges);
		vb_rq_post(run->p->side[of].qp, &wr);
	}
}

static void collect(struct run *run)
{
	for (int i = 0; i < 2; i++) {
		struct log *log = &run->log[i];
		struct vb_event event;
		struct vb_wc wc;
		while (vb_cq_poll(run->p->side[i].cq, &wc, 1) == 1) {
			bool is_receive = wc.opcode >= VB_WC_RECV;
			assert_true(log->sends < LOG && log->receives < LOG);
			if (is_receive)
				log->receive[log->receives++] = wc;
			else
				log->send[log->sends++] = wc;
		}
		while (log->events < LOG && vb_lane_next_event(run->p->side[i].lane, &event))
			log->event[log->events++] = event.kind;
	}
}

/* Small rooms, and little taken at a time: other orders of the same things. */
static void vary(struct pair *p, struct vb_random *random)
{
	p->descriptor_room = 1 + vb_random_below(random, 8);
	p->answer_room = 1 + vb_random_below(random, 3);
	for (unsigned i = vb_random_below(random, 40); p->is_local && i > 0; i--)
		pair_step_local(p, (int)vb_random_below(random, 2), 1 + vb_random_below(random, 4));
}

static void play(struct run *run, enum vb_qp_type type, uint64_t seed, bool is_local)
{
	struct vb_random random, order;
	vb_random_seed(&random, seed);
	vb_random_seed(&order, seed + 1);
	run->p = pair_open(type, is_local, vb_random_below(&random, 2) ? VB_LOCAL_LEND_MIN : 0);
	run->p->fate = vb_random_below(&random, 2) ? &order : NULL;
	for (int i = 0; i < 2; i++)
		for (uint32_t at = 0; at < LONGEST; at++)
			run->p->side[i].memory[READ_ONLY + at] = (uint8_t)vb_random_u64(&random);
	uint32_t bad_round = vb_random_below(&random, 2 * ROUNDS), scarce_round = vb_random_below(&random, 4 * ROUNDS);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		int of = (int)vb_random_below(&random, 2);
		uint32_t count = 1 + vb_random_below(&random, BATCH);
		uint32_t bad = round == bad_round ? vb_random_below(&random, count) : count;
		post_receives(run, &random, !of, round == scarce_round);
		run->brought_to = BROUGHT;
		for (uint32_t i = 0; i < count; i++)
			if (type == VB_QP_UD)
				post_datagram(run, &random, of, i == bad);
			else
				post_one(run, &random, of, i == bad || round == scarce_round, i == bad);
		vary(run->p, &order);
		pair_run(run->p, 16);
		collect(run);
	}
}

static void assert_wc_alike(const struct vb_wc *a, const struct vb_wc *b)
{
	assert_int_equal(a->wr_id, b->wr_id);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->vendor_err, b->vendor_err);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->src_qpn, b->src_qpn);
	if (a->status != VB_WC_SUCCESS)
		return;
	assert_int_equal(a->byte_len, b->byte_len);
	assert_int_equal(a->imm_or_inv, b->imm_or_inv);
}

static void assert_alike(struct run *a, struct run *b)
{
	for (int i = 0; i < 2; i++) {
		struct log *x = &a->log[i], *y = &b->log[i];
		assert_int_equal(x->sends, y->sends);
		assert_int_equal(x->receives, y->receives);
		assert_int_equal(x->events, y->events);
		for (unsigned n = 0; n < x->sends; n++)
			assert_wc_alike(&x->send[n], &y->send[n]);
		for (unsigned n = 0; n < x->receives; n++)
			assert_wc_alike(&x->receive[n], &y->receive[n]);
		for (unsigned n = 0; n < x->events; n++)
			assert_int_equal(x->event[n], y->event[n]);
		assert_int_equal(vb_qp_state(a->p->side[i].qp), vb_qp_state(b->p->side[i].qp));
		assert_memory_equal(a->p->side[i].memory, b->p->side[i].memory, PAIR_BYTES);
	}
}

static void compare(enum vb_qp_type type)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct run *runs = calloc(2, sizeof(*runs));
		print_message("seed %u\n", (unsigned)seed);
		play(&runs[0], type, seed, false);
		play(&runs[1], type, seed, true);
		assert_int_equal(runs[0].p->descriptors, 0);
		assert_true(runs[1].p->descriptors > 0);
		assert_alike(&runs[0], &runs[1]);
		for (int i = 0; i < 2; i++)
			pair_close(runs[i].p);
		free(runs);
	}
}

static void rc__is_alike(void **state)
{
	compare(VB_QP_RC);
}

static void uc__is_alike(void **state)
{
	compare(VB_QP_UC);
}

static void ud__is_alike(void **state)
{
	compare(VB_QP_UD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rc__is_alike),
		cmocka_unit_test(uc__is_alike),
		cmocka_unit_test(ud__is_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
