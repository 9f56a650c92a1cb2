/* SRQs with tags: what becomes of eager messages, rendezvous requests and whatever else arrives, and what the program
 * says and hears. left sends, right has the SRQ. */
#include <infiniband/tm_types.h>
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "loop_host.h"

#define TAGS     24
#define HEADER   sizeof(struct ibv_tmh)
#define REQUEST  (sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh))
#define ENTRY    4096 /* where in the buffer entries begin, */
#define ORDINARY 8192 /* and ordinary receives */
#define PRIV     0xC0FFEE
#define IN_PLACE (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)
#define ALL_BITS UINT64_MAX

struct scene {
	struct fixture *f;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
};

struct told {
	uint64_t wr_id, tag;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned flags;
	uint32_t byte_len, priv;
};

static struct ibv_srq *create_srq(struct fixture *f, struct ibv_cq *cq, uint32_t tags)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = f->pd,
		.cq = cq,
		.tm_cap = { .max_num_tags = tags, .max_ops = 8 },
	};
	errno = 0;
	return ibv_create_srq_ex(f->context, &attr);
}

static struct scene scene_of(void **state)
{
	struct fixture *f = *state;
	struct scene s = { .f = f };
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO };
	s.cq = ibv_create_cq_ex(f->context, &attr);
	assert_non_null(s.cq);
	s.srq = create_srq(f, ibv_cq_ex_to_cq(s.cq), TAGS);
	assert_non_null(s.srq);
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_RC, s.srq);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	return s;
}

static void end(struct scene *s)
{
	assert_int_equal(ibv_destroy_srq(s->srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(s->f->right), 0);
	s->f->right = NULL;
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq)), EBUSY);
	assert_int_equal(ibv_destroy_srq(s->srq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq)), 0);
}

/* ---- The receiver ---- */

static struct told next(struct scene *s)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int err = ENOENT;
	for (int i = 0; i < 20000 && err == ENOENT; i++)
		err = ibv_start_poll(s->cq, &attr);
	assert_int_equal(err, 0);
	struct ibv_wc_tm_info info;
	ibv_wc_read_tm_info(s->cq, &info);
	struct told told = { .wr_id = s->cq->wr_id,
		.tag = info.tag,
		.priv = info.priv,
		.status = s->cq->status,
		.opcode = ibv_wc_read_opcode(s->cq),
		.flags = ibv_wc_read_wc_flags(s->cq),
		.byte_len = ibv_wc_read_byte_len(s->cq) };
	ibv_end_poll(s->cq);
	return told;
}

static bool is_quiet(struct scene *s)
{
	struct ibv_poll_cq_attr attr = { 0 };
	for (int i = 0; i < 200; i++)
		if (ibv_start_poll(s->cq, &attr) != ENOENT)
			return false;
	return true;
}

static int post_op(struct scene *s, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int err = ibv_post_srq_ops(s->srq, wr, &bad);
	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

static uint32_t add(struct scene *s, uint64_t wr_id, uint64_t tag, uint64_t mask, unsigned offset, uint32_t length)
{
	struct ibv_sge sge = fixture_sge(s->f, ENTRY + offset, length);
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_ADD,
		.tm = { .add = { .recv_wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .tag = tag, .mask = mask } } };
	assert_int_equal(post_op(s, &wr), 0);
	return wr.tm.handle;
}

/* Its completion. */
static struct told operate(struct scene *s, enum ibv_ops_wr_opcode opcode, uint32_t handle, int flags, uint32_t known)
{
	struct ibv_ops_wr wr = { .wr_id = 77,
		.opcode = opcode,
		.flags = flags | IBV_OPS_SIGNALED,
		.tm = { .unexpected_cnt = known, .handle = handle } };
	assert_int_equal(post_op(s, &wr), 0);
	struct told told = next(s);
	assert_int_equal(told.wr_id, 77);
	assert_int_equal(told.opcode, IBV_WC_TM_ADD + (int)opcode);
	return told;
}

static void post_ordinary(struct scene *s, uint64_t wr_id)
{
	struct ibv_sge sge = fixture_sge(s->f, ORDINARY, 512);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	assert_int_equal(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
}

static void assert_told(struct told told, uint64_t wr_id, enum ibv_wc_opcode opcode, unsigned flags, uint32_t byte_len)
{
	assert_int_equal(told.status, IBV_WC_SUCCESS);
	assert_int_equal(told.wr_id, wr_id);
	assert_int_equal(told.opcode, opcode);
	assert_int_equal(told.flags, flags);
	assert_int_equal(told.byte_len, byte_len);
}

/* ---- The sender ---- */

static void post_message(struct scene *s, uint32_t length)
{
	struct ibv_sge sge = fixture_sge(s->f, 0, length);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};
	assert_int_equal(fixture_post(s->f->left, wr), 0);
}

static void send_message(struct scene *s, uint32_t length)
{
	post_message(s, length);
	struct ibv_wc wc = fixture_complete(s->f->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
}

static void write_header(struct scene *s, enum ibv_tmh_op opcode, uint64_t tag)
{
	struct ibv_tmh header = { .opcode = (uint8_t)opcode, .app_ctx = htobe32(PRIV), .tag = htobe64(tag) };
	memcpy(s->f->buffer, &header, sizeof(header));
}

static void send_eager(struct scene *s, uint64_t tag, uint32_t payload)
{
	for (uint32_t i = 0; i < payload; i++)
		s->f->buffer[HEADER + i] = (uint8_t)(tag + i * 7);
	write_header(s, IBV_TMH_EAGER, tag);
	send_message(s, (uint32_t)HEADER + payload);
}

/* Of bytes that lie at 1024 in the buffer. */
static void write_request(struct scene *s, uint64_t tag, uint32_t length, uint32_t rkey)
{
	struct ibv_rvh where = {
		.va = htobe64((uintptr_t)s->f->buffer + 1024), .rkey = htobe32(rkey), .len = htobe32(length)
	};
	write_header(s, IBV_TMH_RNDV, tag);
	memcpy(s->f->buffer + HEADER, &where, sizeof(where));
}

static void expect_fin(struct scene *s, uint64_t wr_id)
{
	struct ibv_sge sge = fixture_sge(s->f, 512, REQUEST);
	assert_int_equal(fixture_post_recv(s->f->left, wr_id, &sge), 0);
}

/* ---- Eager messages ---- */

static void eager__lands_behind_its_header_in_the_first_buffer_that_matches(void **state)
{
	struct scene s = scene_of(state);
	add(&s, 1, 0x100, ALL_BITS, 0, 64);
	add(&s, 2, 0x200, 0xff00, 100, 64);
	add(&s, 3, 0x2ab, ALL_BITS, 200, 64);
	send_eager(&s, 0x2ab, 40);
	struct told told = next(&s);
	assert_told(told, 2, IBV_WC_TM_RECV, IN_PLACE, 40);
	assert_int_equal(told.tag, 0x2ab);
	assert_int_equal(told.priv, PRIV);
	assert_memory_equal(s.f->buffer + ENTRY + 100, s.f->buffer + HEADER, 40);
	assert_int_equal(s.f->buffer[ENTRY + 140], 0);

	send_eager(&s, 0x2ab, 64); /* the next that matches */
	assert_told(next(&s), 3, IBV_WC_TM_RECV, IN_PLACE, 64);
	send_eager(&s, 0x100, 0); /* nothing behind the header */
	assert_told(next(&s), 1, IBV_WC_TM_RECV, IN_PLACE, 0);
	assert_true(is_quiet(&s));
	end(&s);
}

static void eager__of_many_packets_tells_of_its_match_first(void **state)
{
	struct scene s = scene_of(state);
	add(&s, 1, 9, ALL_BITS, 0, 3000);
	send_eager(&s, 9, 3000);
	struct told match = next(&s), data = next(&s);
	assert_told(match, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 0);
	assert_int_equal(match.tag, 9);
	assert_told(data, 1, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, 3000);
	assert_memory_equal(s.f->buffer + ENTRY, s.f->buffer + HEADER, 3000);
	end(&s);
}

static void eager__too_long_for_its_buffer_fails_as_any_receive(void **state)
{
	struct scene s = scene_of(state);
	add(&s, 1, 9, ALL_BITS, 0, 39);
	write_header(&s, IBV_TMH_EAGER, 9);
	post_message(&s, HEADER + 40);
	assert_int_equal(fixture_complete(s.f->cq).status, IBV_WC_REM_INV_REQ_ERR);
	struct told told = next(&s);
	assert_int_equal(told.wr_id, 1);
	assert_int_equal(told.status, IBV_WC_LOC_LEN_ERR);
	end(&s);
}

/* ---- What matches nothing ---- */

static void unexpected__holds_later_tags_back_until_the_program_knows(void **state)
{
	struct scene s = scene_of(state);
	for (int i = 0; i < 3; i++)
		post_ordinary(&s, 50);
	add(&s, 1, 6, ALL_BITS, 0, 64);
	send_eager(&s, 5, 20);
	assert_told(next(&s), 50, IBV_WC_TM_RECV, 0, HEADER + 20);
	assert_memory_equal(s.f->buffer + ORDINARY, s.f->buffer, HEADER + 20);

	add(&s, 2, 5, ALL_BITS, 100, 64); /* might be for the message that is on its way to the program */
	assert_int_equal(operate(&s, IBV_WR_TAG_SYNC, 0, 0, 0).flags, IBV_WC_TM_SYNC_REQ);
	send_eager(&s, 5, 20);
	assert_told(next(&s), 50, IBV_WC_TM_RECV, 0, HEADER + 20);
	send_eager(&s, 6, 20); /* was there before */
	assert_told(next(&s), 1, IBV_WC_TM_RECV, IN_PLACE, 20);

	assert_int_equal(operate(&s, IBV_WR_TAG_SYNC, 0, 0, 1).flags, IBV_WC_TM_SYNC_REQ);
	assert_int_equal(operate(&s, IBV_WR_TAG_SYNC, 0, 0, 2).flags, 0);
	send_eager(&s, 5, 20);
	assert_told(next(&s), 2, IBV_WC_TM_RECV, IN_PLACE, 20);
	end(&s);
}

static void untagged__goes_into_ordinary_receives_and_is_not_counted(void **state)
{
	struct scene s = scene_of(state);
	add(&s, 1, 0, 0, 0, 512); /* matches every tag */
	for (int i = 0; i < 4; i++)
		post_ordinary(&s, 50);
	write_header(&s, IBV_TMH_NO_TAG, 0);
	send_message(&s, 100);
	assert_told(next(&s), 50, IBV_WC_TM_NO_TAG, 0, 100);
	write_header(&s, IBV_TMH_FIN, 0);
	send_message(&s, REQUEST);
	assert_told(next(&s), 50, IBV_WC_TM_NO_TAG, 0, REQUEST);
	write_header(&s, IBV_TMH_EAGER, 0); /* less than a header */
	send_message(&s, HEADER - 1);
	assert_told(next(&s), 50, IBV_WC_TM_NO_TAG, 0, HEADER - 1);
	write_request(&s, 0, 64, s.f->mr->rkey); /* less than a request's */
	send_message(&s, REQUEST - 1);
	assert_told(next(&s), 50, IBV_WC_TM_NO_TAG, 0, REQUEST - 1);
	assert_int_equal(operate(&s, IBV_WR_TAG_SYNC, 0, 0, 0).flags, 0);
	end(&s);
}

static void unexpected__without_receive_waits_for_one(void **state)
{
	struct scene s = scene_of(state);
	write_header(&s, IBV_TMH_EAGER, 5);
	post_message(&s, 64);
	assert_true(is_quiet(&s));
	post_ordinary(&s, 50);
	assert_told(next(&s), 50, IBV_WC_TM_RECV, 0, 64);
	assert_int_equal(fixture_complete(s.f->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(operate(&s, IBV_WR_TAG_SYNC, 0, 0, 1).flags, 0); /* counted once, however often it came */
	end(&s);
}

/* ---- Rendezvous ---- */

static void rendezvous__is_fetched_and_answered(void **state)
{
	struct scene s = scene_of(state);
	for (int i = 0; i < 3000; i++)
		s.f->buffer[1024 + i] = (uint8_t)(i * 13);
	add(&s, 1, 9, ALL_BITS, 0, 3500);
	expect_fin(&s, 20);
	write_request(&s, 9, 3000, s.f->mr->rkey);
	send_message(&s, REQUEST);
	struct told match = next(&s);
	assert_told(match, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 3000);
	assert_int_equal(match.tag, 9);
	assert_int_equal(match.priv, PRIV);
	struct ibv_wc fin = fixture_complete(s.f->cq);
	assert_int_equal(fin.opcode, IBV_WC_RECV);
	assert_int_equal(fin.byte_len, REQUEST);
	assert_told(next(&s), 1, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID, 3000);
	assert_memory_equal(s.f->buffer + ENTRY, s.f->buffer + 1024, 3000);
	assert_int_equal(s.f->buffer[512], IBV_TMH_FIN);
	assert_memory_equal(s.f->buffer + 513, s.f->buffer + 1, REQUEST - 1);
	assert_true(is_quiet(&s));
	end(&s);
}

static void rendezvous__into_too_small_a_buffer_is_the_programs(void **state)
{
	struct scene s = scene_of(state);
	add(&s, 1, 9, ALL_BITS, 0, 100);
	add(&s, 2, 9, ALL_BITS, 200, 10);
	add(&s, 3, 9, ALL_BITS, 300, 100);
	write_request(&s, 9, 101, s.f->mr->rkey);
	send_message(&s, REQUEST);
	send_message(&s, REQUEST);
	for (uint64_t wr_id = 1; wr_id <= 2; wr_id++) {
		struct told told = next(&s);
		assert_int_equal(told.wr_id, wr_id);
		assert_int_equal(told.status, IBV_WC_TM_RNDV_INCOMPLETE);
		assert_int_equal(told.opcode, IBV_WC_TM_RECV);
		assert_int_equal(told.flags, IBV_WC_TM_MATCH);
		assert_int_equal(told.byte_len, wr_id == 1 ? REQUEST : 10);
	}
	assert_memory_equal(s.f->buffer + ENTRY, s.f->buffer, REQUEST);
	assert_memory_equal(s.f->buffer + ENTRY + 200, s.f->buffer, 10);
	assert_int_equal(s.f->buffer[ENTRY + 210], 0);
	write_request(&s, 9, UINT32_MAX, s.f->mr->rkey);
	send_message(&s, REQUEST);
	assert_int_equal(next(&s).status, IBV_WC_TM_RNDV_INCOMPLETE);
	end(&s);
}

static void rendezvous__of_what_may_not_be_read_fails_its_receive(void **state)
{
	struct scene s = scene_of(state);
	add(&s, 1, 9, ALL_BITS, 0, 100);
	write_request(&s, 9, 100, s.f->mr->rkey ^ 0x100);
	post_message(&s, REQUEST);
	assert_told(next(&s), 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 100);
	struct told told = next(&s);
	assert_int_equal(told.wr_id, 1);
	assert_int_equal(told.status, IBV_WC_REM_ACCESS_ERR);
	assert_true(is_quiet(&s)); /* of the FIN that went with it nobody hears */
	end(&s);
}

static void rendezvous__more_than_can_be_fetched_at_once_wait(void **state)
{
	struct scene s = scene_of(state);
	write_request(&s, 9, 32, s.f->mr->rkey);
	for (unsigned i = 0; i < 20; i++) {
		add(&s, i, 9, ALL_BITS, i * 32, 32);
		expect_fin(&s, 100);
		post_message(&s, REQUEST);
		if (i < 16) { /* what right's send queue has room for while its completions are not taken */
			fixture_complete(s.f->cq);
			fixture_complete(s.f->cq);
		}
		if (i == 16) {
			struct ibv_wc wc;
			for (int turn = 0; turn < 50; turn++)
				assert_int_equal(ibv_poll_cq(s.f->cq, 1, &wc), 0);
		}
	}
	unsigned matches = 0, fetched = 0;
	while (fetched < 20) {
		struct told told = next(&s);
		assert_int_equal(told.status, IBV_WC_SUCCESS);
		unsigned *count = told.flags & IBV_WC_TM_MATCH ? &matches : &fetched;
		assert_int_equal(told.wr_id, (*count)++);
	}
	assert_int_equal(matches, 20);
	end(&s);
}

/* ---- The list ---- */

static void tag__that_is_gone_cannot_be_deleted(void **state)
{
	struct scene s = scene_of(state);
	uint32_t first = add(&s, 1, 9, ALL_BITS, 0, 64), second = add(&s, 2, 9, ALL_BITS, 0, 64);
	assert_int_equal(operate(&s, IBV_WR_TAG_DEL, first, 0, 0).status, IBV_WC_SUCCESS);
	assert_int_equal(operate(&s, IBV_WR_TAG_DEL, first, 0, 0).status, IBV_WC_TM_ERR);
	send_eager(&s, 9, 8);
	assert_told(next(&s), 2, IBV_WC_TM_RECV, IN_PLACE, 8);
	for (int i = 0; i < TAGS; i++) /* its place is another's by then, which stays */
		add(&s, 3, 9, ALL_BITS, 0, 64);
	assert_int_equal(operate(&s, IBV_WR_TAG_DEL, second, 0, 0).status, IBV_WC_TM_ERR);
	assert_int_equal(operate(&s, IBV_WR_TAG_DEL, UINT32_MAX, 0, 0).status, IBV_WC_TM_ERR);
	struct ibv_ops_wr full = { .opcode = IBV_WR_TAG_ADD };
	assert_int_equal(post_op(&s, &full), ENOMEM);
	struct ibv_ops_wr unsignaled = { .wr_id = 5, .opcode = IBV_WR_TAG_DEL, .tm.handle = second };
	assert_int_equal(post_op(&s, &unsignaled), 0); /* a failure is always told */
	assert_int_equal(next(&s).wr_id, 5);
	end(&s);
}

static void srq__what_is_wrong_is_refused(void **state)
{
	struct scene s = scene_of(state);
	struct fixture *f = s.f;
	struct ibv_cq *cq = ibv_cq_ex_to_cq(s.cq);
	assert_null(create_srq(f, NULL, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(create_srq(f, cq, 0));
	assert_int_equal(errno, EINVAL);
	struct ibv_device_attr_ex device;
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &device), 0);
	assert_int_equal(device.tm_caps.flags, IBV_TM_CAP_RC);
	assert_null(create_srq(f, cq, device.tm_caps.max_num_tags + 1));
	assert_int_equal(errno, EINVAL);
	struct ibv_qp_init_attr ud = { .send_cq = cq, .recv_cq = cq, .srq = s.srq, .qp_type = IBV_QPT_UD };
	assert_null(ibv_create_qp(f->pd, &ud));
	assert_int_equal(errno, EINVAL);

	struct ibv_sge sge = fixture_sge(f, 0, 8);
	assert_int_equal(
		fixture_post(f->right, (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }),
		EINVAL); /* its send queue is the SRQ's */
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC + 1 }, *bad;
	assert_int_equal(post_op(&s, &wr), EINVAL);
	wr = (struct ibv_ops_wr){ .opcode = IBV_WR_TAG_SYNC, .flags = 1 << 8 };
	assert_int_equal(post_op(&s, &wr), EINVAL);
	wr = (struct ibv_ops_wr){ .opcode = IBV_WR_TAG_ADD, .tm.add = { .num_sge = 2 } };
	assert_int_equal(post_op(&s, &wr), EINVAL);
	wr = (struct ibv_ops_wr){ .opcode = IBV_WR_TAG_SYNC };
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *plain = ibv_create_srq(f->pd, &basic);
	assert_int_equal(ibv_post_srq_ops(plain, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	loop_set_forked(true);
	assert_int_equal(post_op(&s, &wr), EPERM);
	loop_set_forked(false);
	assert_int_equal(ibv_destroy_srq(plain), 0);
	end(&s);
}

/* It completes to the SRQ's, but names it: ibv_query_qp tells it. */
static void cq__of_a_qp_with_tags_is_busy(void **state)
{
	struct scene s = scene_of(state);
	struct fixture *f = s.f;
	struct ibv_cq *cq = ibv_create_cq(f->context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .srq = s.srq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	end(&s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
	const struct CMUnitTest tests[] = {
		TEST(eager__lands_behind_its_header_in_the_first_buffer_that_matches),
		TEST(eager__of_many_packets_tells_of_its_match_first),
		TEST(eager__too_long_for_its_buffer_fails_as_any_receive),
		TEST(unexpected__holds_later_tags_back_until_the_program_knows),
		TEST(untagged__goes_into_ordinary_receives_and_is_not_counted),
		TEST(unexpected__without_receive_waits_for_one),
		TEST(rendezvous__is_fetched_and_answered),
		TEST(rendezvous__into_too_small_a_buffer_is_the_programs),
		TEST(rendezvous__of_what_may_not_be_read_fails_its_receive),
		TEST(rendezvous__more_than_can_be_fetched_at_once_wait),
		TEST(tag__that_is_gone_cannot_be_deleted),
		TEST(cq__of_a_qp_with_tags_is_busy),
		TEST(srq__what_is_wrong_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
