/* The ends of connections, TIMEWAIT, and the refusal of alternate paths. */
#include <errno.h>
#include "rig.h"

#define TIMEWAIT (PATH + 4096 * VB_NS)

static void disconnect__takes_two_messages_and_timewait(void **state)
{
	struct ends ends = established(1);
	assert_int_equal(vb_cm_disconnect(ends.a, "bye", 3, now), 0);
	expect_state(ends.a, VB_CM_DREQ_SENT);
	struct mad dreq = pass(A, VB_CM_DREQ);
	assert_int_equal(dreq.message.dreq.remote_qpn, 101);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECT), ends.b);
	assert_memory_equal(event.message.dreq.private_data, "bye", 4);
	expect_state(ends.b, VB_CM_DREQ_RCVD);
	assert_int_equal(vb_cm_disconnect(ends.b, "yes", 3, now), 0);
	expect_state(ends.b, VB_CM_TIMEWAIT);
	struct mad drep = pass(B, VB_CM_DREP);
	assert_true(drep.message.transaction_id == dreq.message.transaction_id);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECTED), ends.a);
	assert_memory_equal(event.message.drep.private_data, "yes", 4);
	expect_state(ends.a, VB_CM_TIMEWAIT);
	assert_int_equal(vb_cm_disconnect(ends.a, NULL, 0, now), -EINVAL);
	wait_exactly(A, TIMEWAIT);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_TIMEWAIT_EXIT), ends.a);
	expect_state(ends.a, VB_CM_IDLE);
	vb_cm_advance(cms[B], now);
	expect_event(B, VB_CM_EVENT_TIMEWAIT_EXIT);
	expect_no_deadline(A);
	expect_no_deadline(B);
}

static void dreq__unanswered_is_sent_again_then_given_up(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.b, NULL, 0, now);
	struct mad first = take(B, VB_CM_DREQ);
	wait_first(B, VB_CM_DREQ, PERIOD);
	for (int i = 0; i < RETRIES; i++) {
		assert_memory_equal(take(B, VB_CM_DREQ).out.mad, first.out.mad, VB_MAD_LENGTH);
		wait_exactly(B, PERIOD);
	}
	expect_silence(B);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECTED), ends.b);
	assert_false(event.has_message);
	expect_state(ends.b, VB_CM_TIMEWAIT);
}

static void dreq__to_a_host_that_is_gone_is_given_up_at_once(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.b, NULL, 0, now);
	struct mad dreq = take(B, VB_CM_DREQ);
	undelivered(B, &dreq, -EHOSTUNREACH);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECTED), ends.b);
	expect_state(ends.b, VB_CM_TIMEWAIT);
}

static void dreq__duplicate_gets_the_same_drep_in_timewait(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	struct mad dreq = pass(A, VB_CM_DREQ);
	expect_event(B, VB_CM_EVENT_DISCONNECT);
	give(B, &dreq);
	expect_silence(B);
	expect_no_event(B);
	vb_cm_disconnect(ends.b, "z", 1, now);
	struct mad drep = take(B, VB_CM_DREP);
	give(B, &dreq);
	assert_memory_equal(take(B, VB_CM_DREP).out.mad, drep.out.mad, VB_MAD_LENGTH);
	expect_no_event(B);
}

static void dreq__of_nobodys_connection_gets_a_drep(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	struct mad dreq = take(A, VB_CM_DREQ);
	dreq.message.remote_id ^= 1;
	give_message(B, &dreq.message);
	struct mad drep = take(B, VB_CM_DREP);
	assert_int_equal(drep.message.local_id, dreq.message.remote_id);
	assert_int_equal(drep.message.remote_id, dreq.message.local_id);
	assert_true(drep.message.transaction_id == dreq.message.transaction_id);
	expect_no_event(B);
	give(A, &drep);
	expect_no_event(A); /* not of A's peer */
}

static void dreq__of_another_qp_is_dropped(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	struct mad dreq = take(A, VB_CM_DREQ);
	dreq.message.dreq.remote_qpn++;
	give_message(B, &dreq.message);
	expect_no_event(B);
	expect_silence(B);
	expect_state(ends.b, VB_CM_ESTABLISHED);
}

static void dreq__crossing_ends_both_sides(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	vb_cm_disconnect(ends.b, NULL, 0, now);
	struct mad a = take(A, VB_CM_DREQ), b = take(B, VB_CM_DREQ);
	give(A, &b);
	give(B, &a);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECTED), ends.a);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECTED), ends.b);
	pass(A, VB_CM_DREP);
	pass(B, VB_CM_DREP);
	expect_no_event(A);
	expect_no_event(B);
	expect_state(ends.a, VB_CM_TIMEWAIT);
	expect_state(ends.b, VB_CM_TIMEWAIT);
}

static void dreq__crossing_late_is_answered_from_timewait(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	vb_cm_disconnect(ends.b, NULL, 0, now);
	struct mad a = take(A, VB_CM_DREQ), b = take(B, VB_CM_DREQ);
	give(B, &a);
	expect_event(B, VB_CM_EVENT_DISCONNECTED);
	pass(B, VB_CM_DREP);
	expect_event(A, VB_CM_EVENT_DISCONNECTED);
	give(A, &b);
	assert_true(take(A, VB_CM_DREP).message.transaction_id == b.message.transaction_id);
	expect_no_event(A);
}

static void dreq__says_that_the_rtu_was_lost(void **state)
{
	struct ends ends = replied(1);
	vb_cm_confirm(ends.a, NULL, 0, now);
	take(A, VB_CM_RTU);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	pass(A, VB_CM_DREQ);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_ESTABLISHED), ends.b);
	assert_false(event.has_message);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECT), ends.b);
	vb_cm_disconnect(ends.b, NULL, 0, now);
	pass(B, VB_CM_DREP);
	expect_event(A, VB_CM_EVENT_DISCONNECTED);
}

static void dreq__before_the_rtu_ends_the_attempt(void **state)
{
	struct ends ends = replied(1);
	vb_cm_notify_established(ends.b, now);
	expect_event(B, VB_CM_EVENT_ESTABLISHED);
	vb_cm_disconnect(ends.b, NULL, 0, now);
	pass(B, VB_CM_DREQ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), ends.a);
	expect_state(ends.a, VB_CM_TIMEWAIT);
	pass(A, VB_CM_DREP);
	expect_event(B, VB_CM_EVENT_DISCONNECTED);
}

static void destroy__disconnects_and_asks_again_by_itself(void **state)
{
	struct ends ends = established(1);
	vb_cm_id_destroy(ends.a, now);
	take(A, VB_CM_DREQ);
	wait_exactly(A, PAUSE);
	pass(A, VB_CM_DREQ);
	expect_event(B, VB_CM_EVENT_DISCONNECT);
	vb_cm_id_destroy(ends.b, now);
	pass(B, VB_CM_DREP);
	expect_no_event(A);
	wait_exactly(A, TIMEWAIT);
	expect_no_event(A);
	expect_no_deadline(A);
}

static void destroy__in_timewait_leaves_the_answer_behind(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	struct mad dreq = pass(A, VB_CM_DREQ);
	vb_cm_disconnect(expect_event(B, VB_CM_EVENT_DISCONNECT), NULL, 0, now);
	take(B, VB_CM_DREP);
	vb_cm_id_destroy(ends.b, now);
	give(B, &dreq);
	take(B, VB_CM_DREP);
	wait_exactly(B, TIMEWAIT);
	expect_no_event(B);
	expect_no_deadline(B);
}

static void rej__of_a_connection_ends_it(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	struct mad dreq = take(A, VB_CM_DREQ);
	struct vb_cm_message rej = { .kind = VB_CM_REJ,
		.local_id = dreq.message.local_id + 1,
		.remote_id = dreq.message.remote_id,
		.rej = { .reason = VB_CM_REJ_TIMEOUT } };
	give_message(B, &rej);
	rej.local_id = 0;
	give_message(B, &rej);
	expect_no_event(B); /* of somebody else */
	rej.local_id = dreq.message.local_id;
	give_message(B, &rej);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECTED), ends.b);
	expect_state(ends.b, VB_CM_TIMEWAIT);
	give(B, &dreq);
	pass(B, VB_CM_DREP);
	expect_event(A, VB_CM_EVENT_DISCONNECTED);
}

static void timewait__is_bounded(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_req req = make_req(1);
	struct vb_cm_rep rep = { .ca_guid = 0xB, .qpn = 2, .target_ack_delay = 31 };
	struct vb_cm_path path = path_from(A);
	req.primary.ack_timeout = 31;
	vb_cm_connect(a, &path, &req, now);
	pass(A, VB_CM_REQ);
	vb_cm_accept(expect_event(B, VB_CM_EVENT_REQUEST), &rep, now);
	pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
	vb_cm_reject(a, VB_CM_REJ_CONSUMER, NULL, 0, NULL, 0, now);
	take(A, VB_CM_REJ);
	wait_exactly(A, 2 * ((vb_time)4096 * VB_NS << 21));
	expect_event(A, VB_CM_EVENT_TIMEWAIT_EXIT);
}

static void lap__is_refused(void **state)
{
	struct ends ends = established(1);
	vb_cm_disconnect(ends.a, NULL, 0, now); /* to learn the IDs */
	struct vb_cm_message lap = take(A, VB_CM_DREQ).message;
	lap.kind = VB_CM_LAP;
	give_message(B, &lap);
	struct mad apr = take(B, VB_CM_APR);
	assert_int_equal(apr.message.apr.status, VB_CM_APR_UNSUPPORTED);
	assert_int_equal(apr.message.remote_id, lap.local_id);
	assert_true(apr.message.transaction_id == lap.transaction_id);
	lap.remote_id ^= 1;
	give_message(B, &lap);
	assert_int_equal(take(B, VB_CM_APR).message.apr.status, VB_CM_APR_INVALID_COMM_ID);
	expect_state(ends.b, VB_CM_ESTABLISHED);
	expect_no_event(B);
}

static void calls__in_the_wrong_state_are_refused(void **state)
{
	struct ends ends = established(1);
	struct vb_cm_rep rep = { .qpn = 1 };
	assert_int_equal(vb_cm_accept(ends.b, &rep, now), -EINVAL);
	assert_int_equal(vb_cm_confirm(ends.a, NULL, 0, now), -EINVAL);
	assert_int_equal(vb_cm_reject(ends.a, 28, NULL, 0, NULL, 0, now), -EINVAL);
	assert_int_equal(vb_cm_delay(ends.a, 20, now), -EINVAL);
	assert_int_equal(vb_cm_disconnect(ends.a, NULL, VB_CM_DREQ_PRIVATE + 1, now), -EINVAL);
	assert_int_equal(vb_cm_disconnect(listener, NULL, 0, now), -EINVAL);
	ends = requested(2);
	assert_int_equal(vb_cm_disconnect(ends.a, NULL, 0, now), -EINVAL);
	assert_int_equal(vb_cm_reject(ends.b, 28, NULL, VB_CM_ARI_LENGTH + 1, NULL, 0, now), -EINVAL);
	assert_int_equal(vb_cm_reject(ends.b, 28, NULL, 0, NULL, VB_CM_REJ_PRIVATE + 1, now), -EINVAL);
	rep.qpn = 1 << 24;
	assert_int_equal(vb_cm_accept(ends.b, &rep, now), -EINVAL);
	expect_silence(A);
	expect_silence(B);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(disconnect__takes_two_messages_and_timewait),
		TEST(dreq__unanswered_is_sent_again_then_given_up),
		TEST(dreq__to_a_host_that_is_gone_is_given_up_at_once),
		TEST(dreq__duplicate_gets_the_same_drep_in_timewait),
		TEST(dreq__of_nobodys_connection_gets_a_drep),
		TEST(dreq__of_another_qp_is_dropped),
		TEST(dreq__crossing_ends_both_sides),
		TEST(dreq__crossing_late_is_answered_from_timewait),
		TEST(dreq__says_that_the_rtu_was_lost),
		TEST(dreq__before_the_rtu_ends_the_attempt),
		TEST(destroy__disconnects_and_asks_again_by_itself),
		TEST(destroy__in_timewait_leaves_the_answer_behind),
		TEST(rej__of_a_connection_ends_it),
		TEST(timewait__is_bounded),
		TEST(lap__is_refused),
		TEST(calls__in_the_wrong_state_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
