/* Requests executed on a target that no packet brought: what they do, what the verdict is, and that the connection's
 * PSNs and acks know nothing of it. What packets do is tests/script/responder, errors and datagram. */
#include <errno.h>
#include <string.h>
#include "request.h"
#include "rig.h"

enum { REMOTE = 4096, RECEIVE = 32768, LARGE = 20000 };

struct scene {
	struct rig *rig;
	struct vb_qp *qp;
	struct vb_target *target;
	uint8_t payload[LARGE];
};

static struct scene *open_scene(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	s->rig = rig_open(8);
	s->qp = rig_connected(s->rig, NULL);
	s->target = &s->qp->target;
	for (uint32_t i = 0; i < LARGE; i++)
		s->payload[i] = (uint8_t)(i * 7 + 1);
	return s;
}

static void close_scene(struct scene *s)
{
	assert_int_equal(s->qp->responder.expected_psn, RIG_RQ_PSN);
	assert_int_equal(s->qp->responder.msn, 0);
	assert_false(vb_roce(s->qp)->responses.ack.is_wanted);
	assert_int_equal(rig_transmit(s->rig), 0);
	assert_int_equal(vb_qp_destroy(s->qp), 0);
	rig_close(s->rig);
	free(s);
}

static void post_receive(struct scene *s, uint32_t length)
{
	struct vb_sge sge = rig_sge(s->rig, RECEIVE, length);
	assert_int_equal(vb_rq_post(s->qp, &(struct vb_recv_wr){ .wr_id = 5, .sges = &sge, .sge_count = 1 }), 0);
}

static struct vb_packet write_of(const struct scene *s, uint32_t length)
{
	return (struct vb_packet){ .opcode = VB_RC | VB_WRITE_ONLY,
		.va = (uintptr_t)s->rig->memory + REMOTE,
		.rkey = vb_mr_key(s->rig->mr),
		.dma_length = length,
		.payload = s->payload,
		.payload_length = length };
}

static struct vb_packet send_of(const struct scene *s, uint32_t length)
{
	return (struct vb_packet){ .opcode = VB_RC | VB_SEND_ONLY, .payload = s->payload, .payload_length = length };
}

static struct vb_wc completion(struct scene *s)
{
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(s->rig->cq, &wc, 1), 1);
	return wc;
}

static enum vb_verdict executed_before(struct scene *s, const struct vb_packet *packet, uint64_t *before)
{
	struct vb_request request = request_of(packet);
	return vb_execute(s->target, &request, before);
}

static enum vb_verdict executed(struct scene *s, const struct vb_packet *request)
{
	uint64_t before;
	return executed_before(s, request, &before);
}

/* A message of its own is one request, however long: the path MTU is the packets'. */
static void write__of_any_length_is_one_request(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = write_of(s, LARGE);
	assert_int_equal(executed(s, &request), VB_EXECUTED);
	assert_memory_equal(s->rig->memory + REMOTE, s->payload, LARGE);
	assert_int_equal(s->rig->memory[REMOTE + LARGE], 0);
	assert_true(vb_cq_is_empty(s->rig->cq));
	close_scene(s);
}

static void write__with_immediate_takes_a_receive(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = write_of(s, 100);
	request.opcode = VB_RC | VB_WRITE_ONLY_IMM;
	request.imm = 77;
	assert_int_equal(executed(s, &request), VB_NOT_READY);
	assert_int_equal(s->rig->memory[REMOTE], 0);
	post_receive(s, 0);
	assert_int_equal(executed(s, &request), VB_EXECUTED);
	assert_memory_equal(s->rig->memory + REMOTE, s->payload, 100);
	struct vb_wc wc = completion(s);
	assert_int_equal(wc.opcode, VB_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_or_inv, 77);
	assert_int_equal(wc.byte_len, 100);
	close_scene(s);
}

static void write__of_packets_goes_on_where_it_was(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet first = write_of(s, 3000), last = { .opcode = VB_RC | VB_WRITE_LAST };
	first.opcode = VB_RC | VB_WRITE_FIRST;
	first.payload_length = RIG_MTU;
	last.payload = s->payload + RIG_MTU;
	last.payload_length = 3000 - RIG_MTU;
	assert_int_equal(executed(s, &first), VB_EXECUTED);
	assert_int_equal(s->target->open, VB_MESSAGE_WRITE);
	assert_int_equal(executed(s, &last), VB_EXECUTED);
	assert_int_equal(s->target->open, VB_NO_MESSAGE);
	assert_memory_equal(s->rig->memory + REMOTE, s->payload, 3000);
	close_scene(s);
}

static void write__that_is_refused_touches_no_memory(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet good = write_of(s, 64);
	struct vb_packet key = good, beyond = good, longer = good;
	key.rkey ^= 0x100;
	beyond.va = (uintptr_t)s->rig->memory + RIG_BYTES - 63;
	longer.dma_length = 65;
	assert_int_equal(executed(s, &key), VB_BAD_RKEY);
	assert_int_equal(executed(s, &beyond), VB_BAD_RKEY);
	assert_int_equal(executed(s, &longer), VB_BAD_LENGTH);
	s->qp->attr.access = VB_ACCESS_REMOTE_READ;
	assert_int_equal(executed(s, &good), VB_NOT_PERMITTED);
	for (uint32_t i = 0; i < RIG_BYTES; i++)
		assert_int_equal(s->rig->memory[i], 0);
	assert_int_equal(vb_qp_state(s->qp), VB_QPS_RTS); /* what follows from it is the caller's */
	close_scene(s);
}

static void send__completes_the_next_receive(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = send_of(s, LARGE);
	assert_int_equal(executed(s, &request), VB_NOT_READY);
	post_receive(s, LARGE);
	assert_int_equal(executed(s, &request), VB_EXECUTED);
	assert_memory_equal(s->rig->memory + RECEIVE, s->payload, LARGE);
	struct vb_wc wc = completion(s);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
	assert_int_equal(wc.byte_len, LARGE);
	assert_null(s->target->recv);
	close_scene(s);
}

static void atomic__says_what_was_there(void **state)
{
	struct scene *s = open_scene();
	uint64_t word = 40, before = 0;
	struct vb_mr_config config = {
		.memory = &word, .iova = 8, .length = 8, .access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_ATOMIC
	};
	struct vb_mr *mr;
	assert_int_equal(vb_mr_register(s->rig->pd, &config, &mr), 0);
	struct vb_packet add = { .opcode = VB_RC | VB_FETCH_ADD, .va = 8, .rkey = vb_mr_key(mr), .swap_add = 2 };
	struct vb_packet swap = {
		.opcode = VB_RC | VB_CMP_SWAP, .va = 8, .rkey = vb_mr_key(mr), .compare = 42, .swap_add = 7
	};
	assert_int_equal(executed_before(s, &add, &before), VB_NOT_PERMITTED);
	s->qp->attr.access = VB_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(executed_before(s, &add, &before), VB_EXECUTED);
	assert_int_equal(before, 40);
	assert_int_equal(executed_before(s, &swap, &before), VB_EXECUTED);
	assert_int_equal(before, 42);
	assert_int_equal(word, 7);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	close_scene(s);
}

/* Whoever answers reads the memory, and remembers the request if it must. */
static void read__is_only_allowed(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = { .opcode = VB_RC | VB_READ_REQUEST,
		.va = (uintptr_t)s->rig->memory,
		.rkey = vb_mr_key(s->rig->mr),
		.dma_length = RIG_BYTES };
	assert_int_equal(executed(s, &request), VB_EXECUTED);
	request.dma_length++;
	assert_int_equal(executed(s, &request), VB_BAD_RKEY);
	assert_int_equal(vb_roce(s->qp)->responses.resource_count, 0);
	close_scene(s);
}

static void datagram__lies_behind_its_head(void **state)
{
	struct scene *s = open_scene();
	static const uint8_t head[4] = "head";
	assert_int_equal(vb_execute_datagram(s->target, head, 4, s->payload, 100), VB_NOT_READY);
	post_receive(s, 104);
	assert_int_equal(vb_execute_datagram(s->target, head, 4, s->payload, 101), VB_RECV_TOO_SHORT);
	assert_int_equal(s->rig->memory[RECEIVE], 0);
	assert_int_equal(vb_execute_datagram(s->target, head, 4, s->payload, 100), VB_EXECUTED);
	assert_memory_equal(s->rig->memory + RECEIVE, head, 4);
	assert_memory_equal(s->rig->memory + RECEIVE + 4, s->payload, 100);
	assert_true(vb_cq_is_empty(s->rig->cq));
	close_scene(s);
}

static void refuse(struct scene *s, const struct vb_packet *packet, enum vb_verdict verdict)
{
	struct vb_request request = request_of(packet);
	vb_execute_refusal(s->target, &request, verdict, s->rig->now);
}

static void refusal__completes_the_receive_in_hand_in_error(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = send_of(s, 200);
	post_receive(s, 199);
	assert_int_equal(executed(s, &request), VB_RECV_TOO_SHORT);
	refuse(s, &request, VB_RECV_TOO_SHORT);
	assert_int_equal(completion(s).status, VB_WC_LOC_LEN_ERR);
	assert_int_equal(vb_qp_state(s->qp), VB_QPS_ERR);
	close_scene(s);
}

static void refusal__without_a_receive_is_an_event_that_says_what_was_wanted(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = write_of(s, 64);
	struct vb_event event;
	struct vb_cause cause;
	while (vb_lane_next_event(s->rig->lane, &event))
		;
	request.rkey = 1;
	refuse(s, &request, VB_BAD_RKEY);
	assert_true(vb_lane_next_event(s->rig->lane, &event));
	assert_int_equal(event.kind, VB_EVENT_QP_ACCESS_ERR);
	vb_qp_cause(s->qp, &cause);
	assert_int_equal(cause.kind, VB_CAUSE_REMOTE_BAD_RKEY);
	assert_string_equal(cause.access.what, vb_access_text(VB_MESSAGE_WRITE));
	assert_int_equal(cause.access.rkey, 1);
	assert_int_equal(cause.access.length, 64);
	close_scene(s);
}

/* What shares its place with another opcode's header is none of this one's. */
static void completion__of_a_message_without_immediate_has_none(void **state)
{
	struct scene *s = open_scene();
	struct vb_packet request = send_of(s, 8);
	request.imm = request.inv_rkey = 99;
	post_receive(s, 8);
	assert_int_equal(executed(s, &request), VB_EXECUTED);
	assert_int_equal(completion(s).imm_or_inv, 0);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__of_any_length_is_one_request),
		cmocka_unit_test(write__with_immediate_takes_a_receive),
		cmocka_unit_test(write__of_packets_goes_on_where_it_was),
		cmocka_unit_test(write__that_is_refused_touches_no_memory),
		cmocka_unit_test(send__completes_the_next_receive),
		cmocka_unit_test(atomic__says_what_was_there),
		cmocka_unit_test(read__is_only_allowed),
		cmocka_unit_test(datagram__lies_behind_its_head),
		cmocka_unit_test(refusal__completes_the_receive_in_hand_in_error),
		cmocka_unit_test(refusal__without_a_receive_is_an_event_that_says_what_was_wanted),
		cmocka_unit_test(completion__of_a_message_without_immediate_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
