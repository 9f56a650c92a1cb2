/* What a message to an SRQ with tags does when it cannot simply land. What it does otherwise is tests/unit/verbs. */
#include "base/bytes.h"
#include "rig.h"

enum { TAG = 9, READ_BYTES = 4 * RIG_MTU };

struct scene {
	struct rig *rig;
	struct vb_srq *srq;
	struct vb_qp *qp;
};

static void open_scene(struct scene *s)
{
	s->rig = rig_open(64);
	struct vb_srq_config config = { .max_wr = 8, .max_sge = 1, .cq = s->rig->cq, .max_tags = 8 };
	assert_int_equal(vb_srq_create(s->rig->pd, &config, &s->srq), 0);
	s->qp = rig_connected(s->rig, s->srq);
}

static void close_scene(struct scene *s)
{
	assert_int_equal(vb_qp_destroy(s->qp), 0);
	assert_int_equal(vb_srq_destroy(s->srq), 0);
	rig_close(s->rig);
}

static void add(struct scene *s, uint64_t wr_id, uint32_t length)
{
	struct vb_tag_op op = { .kind = VB_TAG_ADD,
		.recv_wr_id = wr_id,
		.tag = TAG,
		.mask = UINT64_MAX,
		.sge = rig_sge(s->rig, 0, length) };
	assert_int_equal(vb_srq_tag_op(s->rig->lane, s->srq, &op, s->rig->now), 0);
}

static void receive_read(struct scene *s, uint32_t psn)
{
	rig_receive(s->rig, s->qp,
		(struct vb_packet){ .opcode = VB_READ_REQUEST,
			.psn = psn,
			.ackreq = true,
			.va = (uintptr_t)s->rig->memory,
			.rkey = vb_mr_key(s->rig->mr),
			.dma_length = READ_BYTES });
}

static void receive_eager_first(struct scene *s, uint32_t psn)
{
	static uint8_t payload[RIG_MTU] = { 3 };
	vb_store_be64(payload + 8, TAG);
	rig_receive(s->rig, s->qp,
		(struct vb_packet){
			.opcode = VB_SEND_FIRST, .psn = psn, .payload = payload, .payload_length = sizeof(payload) });
}

static unsigned told(struct scene *s, struct vb_wc *wc)
{
	return (unsigned)vb_cq_poll(s->rig->cq, wc, 8);
}

/* The refusal waits until the responses to an earlier READ have left, and the peer asks again: about the same request,
 * which has its entry. */
static void eager__refused_behind_a_read_takes_one_entry(void **state)
{
	const uint32_t psn = RIG_RQ_PSN + READ_BYTES / RIG_MTU;
	struct scene s;
	struct vb_wc wc[8];
	open_scene(&s);
	add(&s, 1, 100);
	add(&s, 2, 4096);
	receive_read(&s, RIG_RQ_PSN);
	receive_eager_first(&s, psn);
	assert_int_equal(told(&s, wc), 1);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[0].flags, VB_WC_TM_MATCH);
	receive_eager_first(&s, psn); /* longer than the first entry's buffer, and not than the second's */
	assert_int_equal(told(&s, wc), 0);
	assert_int_equal(vb_qp_state(s.qp), VB_QPS_RTS);

	assert_int_equal(rig_transmit(s.rig), READ_BYTES / RIG_MTU);
	receive_eager_first(&s, psn);
	assert_int_equal(vb_qp_state(s.qp), VB_QPS_ERR);
	assert_int_equal(told(&s, wc), 1);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[0].status, VB_WC_LOC_LEN_ERR);
	assert_int_equal(rig_transmit(s.rig), 1);
	assert_int_equal(s.rig->batch.out[0].packet.syndrome, VB_NAK_INVALID_REQUEST);
	close_scene(&s);
}

/* An overrun of the queue is an event once, as it is when a QP completes. */
static void operations__tell_of_an_overrun_once(void **state)
{
	struct rig *rig = rig_open(1);
	struct vb_srq *srq;
	struct vb_event event;
	struct vb_srq_config config = { .max_wr = 8, .max_sge = 1, .cq = rig->cq, .max_tags = 8 };
	assert_int_equal(vb_srq_create(rig->pd, &config, &srq), 0);
	for (int i = 0; i < 4; i++) {
		struct vb_tag_op op = { .kind = VB_TAG_SYNC, .is_signaled = true };
		assert_int_equal(vb_srq_tag_op(rig->lane, srq, &op, rig->now), 0);
		assert_int_equal(vb_lane_next_event(rig->lane, &event), i == 1);
		if (i == 1)
			assert_int_equal(event.kind, VB_EVENT_CQ_ERR);
	}
	assert_int_equal(rig_counter(rig, VB_CQ_OVERRUNS), 3);
	assert_int_equal(vb_srq_destroy(srq), 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eager__refused_behind_a_read_takes_one_entry),
		cmocka_unit_test(operations__tell_of_an_overrun_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
