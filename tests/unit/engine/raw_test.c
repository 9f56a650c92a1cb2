/* Raw packet QPs: frames out of their send queues, frames into their receive queues. */
#include "roce/raw.h"
#include <errno.h>
#include "core/counters.h"
#include "engine/nic.h"
#include "engine/qp.h"
#include "../unit.h"

#define FRAME 100

struct scene {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	uint8_t memory[4096];
};

static void move(struct vb_qp *qp, enum vb_qp_state state, uint32_t mask)
{
	struct vb_qp_attr attr = { .state = state, .port = 1 };
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE | mask, 0), 0);
}

static void start(struct vb_qp *qp)
{
	move(qp, VB_QPS_INIT, VB_QP_PORT);
	move(qp, VB_QPS_RTR, 0);
	move(qp, VB_QPS_RTS, 0);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct vb_mr_config region = { .memory = s->memory,
		.iova = (uintptr_t)s->memory,
		.length = sizeof(s->memory),
		.access = VB_ACCESS_LOCAL_WRITE };
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = 1, .mtu = 1024 }, &s->nic), 0);
	assert_int_equal(vb_lane_create(&(struct vb_lane_config){ .seed = 1, .slot = 1 }, &s->lane), 0);
	assert_int_equal(vb_pd_create(s->nic, &s->pd), 0);
	assert_int_equal(vb_cq_create(s->nic, &(struct vb_cq_config){ .capacity = 16 }, &s->cq), 0);
	assert_int_equal(vb_mr_register(s->pd, &region, &s->mr), 0);
	struct vb_qp_config config = { .type = VB_QP_RAW,
		.pd = s->pd,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.signal_all = true };
	assert_int_equal(vb_qp_create(s->lane, &config, &s->qp), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	struct vb_event event;
	while (vb_lane_next_event(s->lane, &event))
		;
	assert_int_equal(vb_qp_destroy(s->qp), 0);
	assert_int_equal(vb_mr_invalidate(s->mr), 0);
	vb_mr_free(s->mr);
	assert_int_equal(vb_cq_destroy(s->cq), 0);
	assert_int_equal(vb_pd_destroy(s->pd), 0);
	vb_lane_destroy(s->lane);
	vb_nic_destroy(s->nic);
	free(s);
	return 0;
}

static struct vb_sge sge(struct scene *s, unsigned offset, uint32_t length)
{
	return (struct vb_sge){ (uintptr_t)s->memory + offset, length, vb_mr_key(s->mr) };
}

static int post(struct scene *s, uint64_t wr_id, enum vb_wr_opcode opcode, const struct vb_sge *sges, uint32_t count)
{
	struct vb_send_wr wr = { .wr_id = wr_id, .opcode = opcode, .sges = sges, .sge_count = count };
	vb_sq_begin(s->qp);
	int error = vb_sq_put(s->qp, &wr);
	vb_sq_end(s->qp, !error);
	return error;
}

static struct vb_wc completion(struct scene *s)
{
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(s->cq, &wc, 1), 1);
	return wc;
}

static void receive(struct scene *s, const uint8_t *frame, uint32_t length)
{
	vb_raw_receive(s->qp, frame, length);
}

static void post_recv(struct scene *s, uint64_t wr_id, const struct vb_sge *entry)
{
	struct vb_recv_wr wr = { wr_id, entry, 1 };
	assert_int_equal(vb_rq_post(s->qp, &wr), 0);
}

static uint64_t counter(struct scene *s, enum vb_counter which)
{
	uint64_t values[VB_COUNTER_COUNT];
	vb_lane_counters(s->lane, values);
	return values[which];
}

static void send__frame_is_its_entries_and_completes_when_it_has_left(void **state)
{
	struct scene *s = *state;
	struct vb_sge two[] = { sge(s, 0, 14), sge(s, 1000, 86) };
	struct vb_frame frame;
	struct vb_wc wc;
	start(s->qp);
	assert_int_equal(post(s, 7, VB_WR_SEND, two, 2), 0);
	assert_true(vb_lane_wants_transmit(s->lane, 0));
	assert_true(vb_lane_next_frame(s->lane, &frame, 0));
	assert_ptr_equal(frame.qp, s->qp);
	assert_int_equal(frame.length, FRAME);
	assert_int_equal(frame.iov_count, 2);
	assert_ptr_equal(frame.iov[1].base, s->memory + 1000);
	assert_int_equal(vb_cq_poll(s->cq, &wc, 1), 0);
	vb_lane_frame_sent(s->lane, &frame, 0, 0);
	wc = completion(s);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
	assert_int_equal(wc.opcode, VB_WC_SEND);
	assert_false(vb_lane_next_frame(s->lane, &frame, 0));
}

static void send__frame_that_waits_comes_again_and_lost_ones_complete(void **state)
{
	struct scene *s = *state;
	struct vb_sge one = sge(s, 0, FRAME);
	struct vb_frame frame;
	start(s->qp);
	assert_int_equal(post(s, 1, VB_WR_SEND, &one, 1), 0);
	assert_int_equal(post(s, 2, VB_WR_SEND, &one, 1), 0);
	assert_true(vb_lane_next_frame(s->lane, &frame, 0));
	vb_lane_frame_waits(&frame);
	assert_true(vb_lane_next_frame(s->lane, &frame, 0));
	vb_lane_frame_sent(s->lane, &frame, ENOBUFS, 0);
	assert_true(vb_lane_next_frame(s->lane, &frame, 0));
	vb_lane_frame_sent(s->lane, &frame, 0, 0);
	assert_int_equal(completion(s).wr_id, 1);
	assert_int_equal(completion(s).wr_id, 2);
	assert_int_equal(counter(s, VB_TX_ERRORS), 1);
}

static void assert_send_fails(struct scene *s, struct vb_sge entry, enum vb_wc_status status)
{
	struct vb_frame frame;
	assert_int_equal(post(s, 3, VB_WR_SEND, &entry, 1), 0);
	assert_false(vb_lane_next_frame(s->lane, &frame, 0));
	assert_int_equal(completion(s).status, status);
	assert_int_equal(vb_qp_state(s->qp), VB_QPS_SQE);
	move(s->qp, VB_QPS_RTS, 0);
}

static void send__what_is_no_frame_or_not_ours_fails_alone(void **state)
{
	struct scene *s = *state;
	struct vb_sge wrong = sge(s, 0, FRAME), good = wrong;
	struct vb_frame frame;
	wrong.lkey ^= 1;
	start(s->qp);
	assert_send_fails(s, sge(s, 0, 13), VB_WC_LOC_LEN_ERR);
	assert_send_fails(s, sge(s, 0, VB_FRAME_MAX + 1), VB_WC_LOC_LEN_ERR);
	assert_send_fails(s, wrong, VB_WC_LOC_PROT_ERR);
	assert_int_equal(post(s, 4, VB_WR_SEND, &good, 1), 0);
	assert_true(vb_lane_next_frame(s->lane, &frame, 0));
	vb_lane_frame_sent(s->lane, &frame, EMSGSIZE, 0);
	assert_int_equal(completion(s).status, VB_WC_LOC_LEN_ERR);
}

static void send__only_sends_and_only_when_ready(void **state)
{
	struct scene *s = *state;
	struct vb_sge one = sge(s, 0, FRAME);
	assert_int_equal(post(s, 1, VB_WR_SEND, &one, 1), -EINVAL);
	start(s->qp);
	assert_int_equal(post(s, 1, VB_WR_SEND_WITH_IMM, &one, 1), -EINVAL);
	assert_int_equal(post(s, 1, VB_WR_RDMA_WRITE, &one, 1), -EINVAL);
	assert_int_equal(post(s, 1, VB_WR_LOCAL_INV, NULL, 0), -EINVAL);
}

static void receive__frame_lands_whole(void **state)
{
	struct scene *s = *state;
	struct vb_sge one = sge(s, 2000, 200);
	uint8_t frame[FRAME];
	memset(frame, 0xab, sizeof(frame));
	start(s->qp);
	post_recv(s, 9, &one);
	receive(s, frame, sizeof(frame));
	struct vb_wc wc = completion(s);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
	assert_int_equal(wc.opcode, VB_WC_RECV);
	assert_int_equal(wc.byte_len, FRAME);
	assert_memory_equal(s->memory + 2000, frame, FRAME);
	assert_int_equal(s->memory[2000 + FRAME], 0);
}

static void receive__without_request_or_room_nothing_is_written(void **state)
{
	struct scene *s = *state;
	struct vb_sge small = sge(s, 2000, FRAME - 1), wrong = sge(s, 2000, FRAME);
	uint8_t frame[FRAME] = { 1 };
	wrong.lkey ^= 1;
	receive(s, frame, sizeof(frame));
	assert_int_equal(counter(s, VB_DROP_QP_STATE), 1);
	start(s->qp);
	receive(s, frame, sizeof(frame));
	assert_int_equal(counter(s, VB_DROP_NO_RECV), 1);
	post_recv(s, 1, &small);
	post_recv(s, 2, &wrong);
	receive(s, frame, sizeof(frame));
	receive(s, frame, sizeof(frame));
	assert_int_equal(completion(s).status, VB_WC_LOC_LEN_ERR);
	assert_int_equal(completion(s).status, VB_WC_LOC_PROT_ERR);
	assert_int_equal(s->memory[2000], 0);
}

static void error__flushes_both_queues(void **state)
{
	struct scene *s = *state;
	struct vb_sge one = sge(s, 0, FRAME);
	struct vb_frame frame;
	start(s->qp);
	post_recv(s, 1, &one);
	assert_int_equal(post(s, 2, VB_WR_SEND, &one, 1), 0);
	move(s->qp, VB_QPS_ERR, 0);
	assert_false(vb_lane_next_frame(s->lane, &frame, 0));
	assert_int_equal(completion(s).status, VB_WC_WR_FLUSH_ERR);
	assert_int_equal(completion(s).status, VB_WC_WR_FLUSH_ERR);
}

/* A packet that names the QP by its number is for nobody. */
static void packet__of_any_transport_is_dropped(void **state)
{
	struct scene *s = *state;
	struct vb_path path = { .hop_limit = 1 };
	start(s->qp);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (!vb_opcodes[opcode].name)
			continue;
		struct vb_packet packet = {
			.opcode = (uint8_t)opcode, .pkey = VB_PKEY_DEFAULT, .dest_qpn = vb_qp_number(s->qp)
		};
		uint64_t before = counter(s, VB_DROP_BAD_QPN);
		vb_lane_receive(s->lane, &path, &packet, 1, 0);
		assert_int_equal(counter(s, VB_DROP_BAD_QPN), before + 1);
	}
}

static void create__halves_may_lack_and_then_refuse_work(void **state)
{
	struct scene *s = *state;
	struct vb_qp_config config = { .type = VB_QP_RAW, .pd = s->pd, .recv_cq = s->cq, .max_recv_wr = 1 };
	struct vb_qp *queue, *none;
	assert_int_equal(vb_qp_create(s->lane, &config, &queue), 0);
	config.recv_cq = NULL;
	assert_int_equal(vb_qp_create(s->lane, &config, &none), 0);
	start(queue);
	start(none);
	struct vb_send_wr send = { .opcode = VB_WR_SEND };
	struct vb_recv_wr recv = { .wr_id = 1 };
	vb_sq_begin(queue);
	assert_int_equal(vb_sq_put(queue, &send), -EINVAL);
	vb_sq_end(queue, false);
	assert_int_equal(vb_rq_post(none, &recv), -EINVAL);
	assert_int_equal(vb_qp_destroy(queue), 0);
	assert_int_equal(vb_qp_destroy(none), 0);
	config.pd = NULL;
	assert_int_equal(vb_qp_create(s->lane, &config, &none), -EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(send__frame_is_its_entries_and_completes_when_it_has_left),
		TEST(send__frame_that_waits_comes_again_and_lost_ones_complete),
		TEST(send__what_is_no_frame_or_not_ours_fails_alone),
		TEST(send__only_sends_and_only_when_ready),
		TEST(receive__frame_lands_whole),
		TEST(receive__without_request_or_room_nothing_is_written),
		TEST(error__flushes_both_queues),
		TEST(packet__of_any_transport_is_dropped),
		TEST(create__halves_may_lack_and_then_refuse_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
