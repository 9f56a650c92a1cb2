/* How two QPs agree on selective repeat, and what is said while but one of them knows. */
#include "selective.h"

static struct rig *open_agreeing_rig_with(bool takes_hellos, bool replies_first)
{
	struct rig *rig = rig_open_lane(
		64, &(struct vb_lane_config){
			    .seed = 1, .slot = 1, .recovery = VB_RECOVERY_AGREED, .replies_first = replies_first });
	struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 2);
	rig->now = VB_S;
	vb_lane_set_peer(rig->lane, &gid,
		&(struct vb_peer_facts){ .is_verbena = true, .takes_hellos = takes_hellos, .receive_buffer = 1 << 20 });
	return rig;
}

static struct rig *open_agreeing_rig(bool takes_hellos)
{
	return open_agreeing_rig_with(takes_hellos, false);
}

static void receive_hello_of(struct rig *rig, struct vb_qp *qp, uint8_t flags, uint32_t psn)
{
	struct vb_packet packet = { .opcode = VB_HELLO,
		.psn = psn,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(qp),
		.hold_bytes = 1 << 20,
		.hello = flags };
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	vb_lane_check(rig->lane);
}

static void receive_hello(struct rig *rig, struct vb_qp *qp, uint8_t flags)
{
	receive_hello_of(rig, qp, flags, flags & VB_HELLO_ANSWERS ? qp->attr.sq_psn : qp->attr.rq_psn);
}

static unsigned hellos_left(struct rig *rig)
{
	unsigned n = rig_transmit(rig), hellos = 0;
	for (unsigned i = 0; i < n; i++)
		hellos += left(rig, i)->opcode == VB_HELLO;
	return hellos;
}

static void post_write(struct rig *rig, struct vb_qp *qp)
{
	struct vb_sge sge = rig_sge(rig, 0, 4 * RIG_MTU);
	rig_post(qp, &(struct vb_send_wr){
			     .opcode = VB_WR_RDMA_WRITE, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
}

/* A loss of a stranger's counts as congestion, one of a peer that recovers selectively only where there is a queue;
 * unless somebody has chosen otherwise. */
static void hello__makes_losses_no_congestion_unless_an_algorithm_was_chosen(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_ptr_equal(vb_roce(qp)->congestion.cc.algorithm, &vb_cc_window);
	receive_hello(rig, qp, 0);
	assert_ptr_equal(vb_roce(qp)->congestion.cc.algorithm, &vb_cc_queue);
	uint32_t grown = vb_roce(qp)->congestion.cc.window_bytes += RIG_MTU;
	receive_hello(rig, qp, VB_HELLO_ANSWERS);
	assert_int_equal(vb_roce(qp)->congestion.cc.window_bytes, grown); /* once */
	close_rig(rig, qp);

	rig = rig_open_lane(64,
		&(struct vb_lane_config){
			.seed = 1, .slot = 1, .recovery = VB_RECOVERY_AGREED, .cc = { .algorithm = &vb_cc_window } });
	qp = rig_connected(rig, NULL);
	receive_hello(rig, qp, 0);
	assert_non_null(vb_roce(qp)->selective);
	assert_ptr_equal(vb_roce(qp)->congestion.cc.algorithm, &vb_cc_window);
	close_rig(rig, qp);
}

static enum vb_recovers recovers(struct vb_qp *qp)
{
	struct vb_qp_account account;
	assert_true(vb_qp_account(qp, &account));
	return account.recovers;
}

static void qp__says_how_it_recovers_and_why(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_write(rig, qp);
	assert_true(rig_transmit(rig) > 0);
	assert_int_equal(recovers(qp), VB_RECOVERS_BEFORE_ANSWER);
	receive_hello(rig, qp, VB_HELLO_ANSWERS);
	assert_int_equal(recovers(qp), VB_RECOVERS_SELECTIVELY);
	close_rig(rig, qp);
	rig = open_agreeing_rig(false);
	qp = rig_connected(rig, NULL);
	assert_int_equal(recovers(qp), VB_RECOVERS_BY_PEER);
	close_rig(rig, qp);
}

static void hello__is_said_before_the_first_data_and_answered(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_int_equal(rig_transmit(rig), 0);
	post_write(rig, qp);
	assert_int_equal(rig_transmit(rig), 5);
	assert_int_equal(left(rig, 0)->opcode, VB_HELLO);
	assert_int_equal(left(rig, 0)->hold_bytes, VB_HOLD_BYTES);
	assert_int_equal(left(rig, 0)->hello, 0);
	assert_int_equal(left(rig, 0)->psn, qp->attr.sq_psn);
	assert_null(vb_roce(qp)->selective);
	receive_hello(rig, qp, VB_HELLO_ANSWERS);
	assert_non_null(vb_roce(qp)->selective);
	assert_int_equal(rig_transmit(rig), 0); /* an answer is not answered */
	receive_bitmap(rig, qp, 0, 1 << 2, 0);
	wait(rig, VB_MS);
	assert_leaves(rig, 2, (uint32_t[]){ 0, 1 });
	post_write(rig, qp);
	assert_int_equal(hellos_left(rig), 0);
	close_rig(rig, qp);
}

static void hello__of_the_peer_is_answered_by_who_did_not_ask(void **state)
{
	struct rig *rig = open_agreeing_rig(false);
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_hello(rig, qp, 0);
	assert_non_null(vb_roce(qp)->selective);
	const struct vb_packet *packet = only_one(rig);
	assert_int_equal(packet->opcode, VB_HELLO);
	assert_int_equal(packet->hello, VB_HELLO_ANSWERS);
	assert_int_equal(packet->psn, qp->attr.rq_psn);
	receive_write(rig, qp, 1);
	assert_bitmap(rig, 0, 1 << 1);
	receive_hello(rig, qp, 0); /* the answer was lost */
	assert_int_equal(only_one(rig)->opcode, VB_HELLO);
	receive_write(rig, qp, 0);
	assert_ack(rig, 1);
	close_rig(rig, qp);
}

/* Of who does not know the connection, or of the one before it: it has no PSN of this one. */
static void hello__of_another_connection_is_dropped(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_hello_of(rig, qp, 0, qp->attr.rq_psn + 1);
	receive_hello_of(rig, qp, 0, qp->attr.sq_psn);
	receive_hello_of(rig, qp, VB_HELLO_ANSWERS, qp->attr.rq_psn);
	assert_null(vb_roce(qp)->selective);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_DROP_TRANSPORT), 3);
	close_rig(rig, qp);
}

/* What is known of requests stays so when the peer says hello once more. */
static void hello__once_more_forgets_nothing(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_hello(rig, qp, 0);
	rig_transmit(rig);
	post_read(rig, qp, 2); /* PSNs 0 and 1 */
	post_writes(rig, qp, 2);
	receive_ack(rig, qp, 3);
	receive_hello(rig, qp, 0);
	rig_transmit(rig);
	receive_response(rig, qp, 1);
	receive_response(rig, qp, 0);
	assert_completes(rig, 2);
	close_rig(rig, qp);
}

/* Where replies leave first, an answer is one, and waits for room as they do. */
static void hello__is_answered_first(void **state)
{
	struct rig *rig = open_agreeing_rig_with(true, true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint8_t payload[BYTES] = { 0 };
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid, .traffic_class = 3 };
	struct vb_packet send = { .opcode = VB_SEND_ONLY,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(qp),
		.psn = RIG_RQ_PSN,
		.payload = payload,
		.payload_length = BYTES };
	receive_hello(rig, qp, 0);
	assert_int_equal(only_one(rig)->opcode, VB_HELLO);
	post_receive(rig, qp, 0);
	vb_lane_receive(rig->lane, &path, &send, 1, rig->now);
	receive_hello(rig, qp, 0);
	assert_int_equal(vb_lane_transmit(rig->lane, &rig->batch, 1, rig->now), 1);
	assert_int_equal(left(rig, 0)->opcode, VB_CNP);
	vb_lane_transmit_done(rig->lane, rig->batch.completions, 1, rig->now);
	vb_lane_check(rig->lane);
	assert_int_equal(only_one(rig)->opcode, VB_HELLO);
	close_rig(rig, qp);
}

/* The answer to our hello may be lost: the peer goes on behind a READ that it misses, and we do not know yet. */
static void reads__are_remembered_for_a_peer_that_may_have_agreed(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	const uint32_t granted = qp->attr.max_dest_rd_atomic;
	post_write(rig, qp);
	assert_int_equal(hellos_left(rig), 1);
	for (uint32_t i = 0; i < VB_GRANTED_BEHIND * granted; i++)
		receive_read(rig, qp, i, 0, RIG_MTU);
	assert_int_equal(rig_transmit(rig), VB_GRANTED_BEHIND * granted);
	assert_null(vb_roce(qp)->selective);
	receive_read(rig, qp, 0, 0, RIG_MTU);
	assert_int_equal(only_one(rig)->psn, RIG_RQ_PSN);
	close_rig(rig, qp);
}

static void hello__that_is_lost_is_said_again_but_not_for_ever(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	unsigned hellos = 0;
	post_write(rig, qp);
	for (int i = 0; i < 100; i++) {
		hellos += hellos_left(rig);
		wait(rig, 10 * VB_MS);
		assert_null(vb_roce(qp)->selective);
		receive_ack(rig, qp, 4 * (uint32_t)i + 2);
		receive_ack(rig, qp, 4 * (uint32_t)i + 3);
		assert_completes(rig, 1);
		post_write(rig, qp);
	}
	assert_in_range(hellos, 2, 16);
	close_rig(rig, qp);
}

static void hello__strangers_never_get_one(void **state)
{
	struct rig *rig = open_agreeing_rig(false);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_write(rig, qp);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(hellos_left(rig), 0);
		wait(rig, 10 * VB_MS);
	}
	assert_int_equal(rig_counter(rig, VB_PROBES) > 0, true);
	close_rig(rig, qp);
}

static void hello__means_nothing_to_a_qp_that_goes_back(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = rig_connected(rig, NULL);
	receive_hello(rig, qp, 0);
	assert_null(vb_roce(qp)->selective);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_DROP_TRANSPORT), 1);
	close_rig(rig, qp);
}

/* The peer is selective already, we are not yet: all that is unacknowledged is sent again; if nothing is, nothing was
 * missed. */
static void bitmap__to_a_qp_that_goes_back_is_a_nak(void **state)
{
	struct rig *rig = open_agreeing_rig(true);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_write(rig, qp);
	assert_int_equal(hellos_left(rig), 1);
	receive_bitmap(rig, qp, 1, 1 << 2, 0);
	assert_int_equal(rig_transmit(rig), 4);
	assert_int_equal(left(rig, 0)->opcode, VB_HELLO);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(left(rig, i)->psn, RIG_SQ_PSN + i);
	receive_bitmap(rig, qp, 4, 0, 1u << 24 | RIG_SQ_PSN);
	assert_false(vb_requester_is_busy(qp));
	receive_bitmap(rig, qp, 4, 0, 2u << 24 | RIG_SQ_PSN);
	assert_int_equal(qp->requester.retries_left, 7);
	assert_false(vb_roce(qp)->recovery.is_recovering);
	close_rig(rig, qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__makes_losses_no_congestion_unless_an_algorithm_was_chosen),
		cmocka_unit_test(qp__says_how_it_recovers_and_why),
		cmocka_unit_test(hello__is_said_before_the_first_data_and_answered),
		cmocka_unit_test(hello__of_the_peer_is_answered_by_who_did_not_ask),
		cmocka_unit_test(hello__of_another_connection_is_dropped),
		cmocka_unit_test(hello__once_more_forgets_nothing),
		cmocka_unit_test(hello__is_answered_first),
		cmocka_unit_test(reads__are_remembered_for_a_peer_that_may_have_agreed),
		cmocka_unit_test(hello__that_is_lost_is_said_again_but_not_for_ever),
		cmocka_unit_test(hello__strangers_never_get_one),
		cmocka_unit_test(hello__means_nothing_to_a_qp_that_goes_back),
		cmocka_unit_test(bitmap__to_a_qp_that_goes_back_is_a_nak),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
