/* From REQ to RTU: both sides, what is lost, doubled, late or refused. */
#include <errno.h>
#include "rig.h"

static void connect__takes_three_messages(void **state)
{
	struct vb_cm_id *a = connect_qp(1), *b;
	expect_state(a, VB_CM_REQ_SENT);
	struct mad req = pass(A, VB_CM_REQ);
	assert_int_equal(req.message.local_id >> 24, 5);
	assert_int_equal(req.message.req.psn, 7);
	b = expect_event(B, VB_CM_EVENT_REQUEST);
	assert_ptr_equal(event.listener, listener);
	assert_int_equal(event.message.req.qpn, 1);
	assert_true(vb_gid_equal(&vb_cm_id_path(b)->remote, &gids[A]));
	expect_state(b, VB_CM_REQ_RCVD);
	accept_qp(b, 2);
	expect_state(b, VB_CM_REP_SENT);
	struct mad rep = pass(B, VB_CM_REP);
	assert_int_equal(rep.message.local_id >> 24, 6);
	assert_int_equal(rep.message.remote_id, req.message.local_id);
	assert_true(rep.message.transaction_id == req.message.transaction_id);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REPLY), a);
	assert_int_equal(event.message.rep.qpn, 2);
	expect_state(a, VB_CM_REP_RCVD);
	assert_int_equal(vb_cm_confirm(a, "hello", 5, now), 0);
	expect_state(a, VB_CM_ESTABLISHED);
	struct mad rtu = pass(A, VB_CM_RTU);
	assert_true(rtu.message.transaction_id == req.message.transaction_id);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_ESTABLISHED), b);
	assert_memory_equal(event.message.rtu.private_data, "hello", 6);
	expect_state(b, VB_CM_ESTABLISHED);
	expect_silence(A);
	expect_silence(B);
}

static void req__is_sent_again_by_its_own_period_then_given_up(void **state)
{
	struct vb_cm_id *a = connect_qp(1);
	struct mad first = take(A, VB_CM_REQ);
	wait_first(A, VB_CM_REQ, PERIOD);
	for (int i = 0; i < RETRIES; i++) {
		struct mad again = take(A, VB_CM_REQ);
		assert_memory_equal(again.out.mad, first.out.mad, VB_MAD_LENGTH);
		wait_exactly(A, PERIOD);
	}
	struct mad rej = take(A, VB_CM_REJ);
	static const uint8_t guid[8] = { [7] = 0xA };
	assert_int_equal(rej.message.rej.reason, VB_CM_REJ_TIMEOUT);
	assert_int_equal(rej.message.rej.answers, VB_CM_ANSWERS_OTHER);
	assert_int_equal(rej.message.rej.ari_length, 8);
	assert_memory_equal(rej.message.rej.ari, guid, 8);
	assert_int_equal(rej.message.remote_id, 0);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_UNREACHABLE), a);
	expect_state(a, VB_CM_IDLE);
	expect_no_deadline(A);
	assert_int_equal(counted(A, VB_CM_RETRIES_COUNT), RETRIES + 5);
}

/* Whoever waits hears a first word after three seconds, once, long before the request is given up. */
static void req__unanswered_is_told_of_once_after_three_seconds(void **state)
{
	const struct vb_cm_config config = { .seed = 9, .slot = 5, .tells_silence = 3 * VB_S };
	vb_cm_destroy(cms[A]);
	assert_int_equal(vb_cm_create(&config, &cms[A]), 0);
	struct vb_cm_id *a = connect_qp(1);
	const vb_time begun = now;
	unsigned told = 0;
	while (vb_cm_next_deadline(cms[A]).is_set) {
		struct vb_cm_outgoing out;
		while (vb_cm_next_outgoing(cms[A], &out))
			;
		now = vb_cm_next_deadline(cms[A]).at;
		vb_cm_advance(cms[A], now);
		while (vb_cm_next_event(cms[A], &event)) {
			if (event.kind != VB_CM_EVENT_SILENT)
				continue;
			assert_ptr_equal(event.id, a);
			assert_in_range(vb_time_since(begun, now) / VB_MS, 3000, 5000);
			told++;
		}
	}
	assert_int_equal(told, 1);
	assert_true(vb_time_since(begun, now) > 5 * VB_S);
}

/* Long before its period is over, and without any retries to spend. */
static void req__lost_costs_a_tenth_of_a_second(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_req req = make_req(1);
	struct vb_cm_path path = path_from(A);
	req.max_cm_retries = 0;
	assert_int_equal(vb_cm_connect(a, &path, &req, now), 0);
	struct mad first = take(A, VB_CM_REQ);
	wait_exactly(A, PAUSE);
	assert_memory_equal(pass(A, VB_CM_REQ).out.mad, first.out.mad, VB_MAD_LENGTH);
	accept_qp(expect_event(B, VB_CM_EVENT_REQUEST), 2);
	take(B, VB_CM_REP);
	wait_exactly(B, PAUSE);
	pass(B, VB_CM_REP);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REPLY), a);
}

static void req__that_waits_for_less_is_not_repeated_early(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_req req = make_req(1);
	struct vb_cm_path path = path_from(A);
	req.remote_timeout = req.primary.ack_timeout = 12; /* 17 ms each */
	assert_int_equal(vb_cm_connect(a, &path, &req, now), 0);
	take(A, VB_CM_REQ);
	for (int i = 0; i < RETRIES; i++) {
		wait_exactly(A, (vb_time)4096 * VB_NS << 13);
		take(A, VB_CM_REQ);
	}
	wait_exactly(A, (vb_time)4096 * VB_NS << 13);
	expect_event(A, VB_CM_EVENT_UNREACHABLE);
}

static void req__to_a_host_that_is_not_there_is_given_up_at_once(void **state)
{
	struct vb_cm_id *a = connect_qp(1);
	struct mad req = take(A, VB_CM_REQ);
	undelivered(A, &req, -EHOSTUNREACH);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_UNREACHABLE), a);
	assert_int_equal(event.error, -EHOSTUNREACH);
	assert_int_equal(event.tries, 1);
	assert_int_equal(event.service_id, SERVICE);
	expect_state(a, VB_CM_IDLE);
	expect_no_deadline(A);
}

/* The repetitions of the first period prove nothing: a program that starts there needs more than a tenth of a
 * second. */
static void req__to_a_closed_port_is_sent_for_a_period(void **state)
{
	struct vb_cm_id *a = connect_qp(1);
	struct mad req = take(A, VB_CM_REQ);
	undelivered(A, &req, -ECONNREFUSED);
	wait_exactly(A, PAUSE);
	take(A, VB_CM_REQ);
	undelivered(A, &req, -ECONNREFUSED);
	expect_no_event(A);
	for (int i = 1; i < 5; i++) {
		wait_exactly(A, PAUSE << i);
		take(A, VB_CM_REQ);
	}
	wait_exactly(A, PERIOD - 31 * PAUSE);
	take(A, VB_CM_REQ);
	expect_no_event(A);
	undelivered(A, &req, -ECONNREFUSED);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_UNREACHABLE), a);
	assert_int_equal(event.error, -ECONNREFUSED);
	assert_int_equal(event.tries, 7);
}

static void req__refused_once_is_then_only_unanswered(void **state)
{
	connect_qp(1);
	struct mad req = take(A, VB_CM_REQ);
	undelivered(A, &req, -ECONNREFUSED);
	wait_first(A, VB_CM_REQ, PERIOD);
	for (int i = 0; i < RETRIES; i++) {
		take(A, VB_CM_REQ);
		wait_exactly(A, PERIOD);
	}
	expect_event(A, VB_CM_EVENT_UNREACHABLE);
	assert_int_equal(event.error, 0);
	assert_int_equal(event.tries, 1 + 5 + RETRIES);
}

static void undelivered__concerns_only_who_awaits_that_answer(void **state)
{
	struct vb_cm_id *a = connect_qp(1);
	struct mad req = take(A, VB_CM_REQ), other = req, rtu = { .message.kind = VB_CM_RTU };
	other.message.transaction_id++;
	vb_cm_encode(&other.message, other.out.mad);
	undelivered(A, &other, -EHOSTUNREACH);
	other = req;
	other.message.local_id++;
	vb_cm_encode(&other.message, other.out.mad);
	undelivered(A, &other, -EHOSTUNREACH);
	rtu.message.local_id = req.message.local_id;
	rtu.message.transaction_id = req.message.transaction_id;
	vb_cm_encode(&rtu.message, rtu.out.mad);
	undelivered(A, &rtu, -EHOSTUNREACH);
	struct vb_gid elsewhere = vb_gid_from_ipv4(10, 0, 0, 3);
	vb_cm_undelivered(cms[A], &elsewhere, req.out.mad, -EHOSTUNREACH, now);
	memset(other.out.mad, 0xFF, sizeof(other.out.mad));
	undelivered(A, &other, -EHOSTUNREACH);
	expect_no_event(A);
	expect_state(a, VB_CM_REQ_SENT);
	give(B, &req);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_REQUEST);
	accept_qp(b, 2);
	pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
	undelivered(A, &req, -EHOSTUNREACH); /* a duplicate's, late */
	expect_no_event(A);
	expect_state(a, VB_CM_REP_RCVD);
}

static void req__given_up_ends_what_it_began(void **state)
{
	struct ends ends = requested(1);
	vb_cm_id_destroy(ends.a, now);
	pass(A, VB_CM_REJ);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	assert_int_equal(event.message.rej.reason, VB_CM_REJ_TIMEOUT);
	expect_state(ends.b, VB_CM_IDLE);
	struct vb_cm_rep rep = { .qpn = 2 };
	assert_int_equal(vb_cm_accept(ends.b, &rep, now), -EINVAL);
}

static void req__of_an_unknown_service_is_refused(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_req req = make_req(1);
	struct vb_cm_path path = path_from(A);
	req.service_id++;
	assert_int_equal(vb_cm_connect(a, &path, &req, now), 0);
	pass(A, VB_CM_REQ);
	struct mad rej = pass(B, VB_CM_REJ);
	/* As Linux answers it: tests/interop/captures/cm-reject.pcap. */
	assert_int_equal(rej.message.local_id, 0);
	assert_int_equal(rej.message.rej.answers, VB_CM_ANSWERS_REQ);
	assert_int_equal(rej.message.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), a);
	expect_state(a, VB_CM_IDLE);
	expect_no_event(B);
	assert_int_equal(counted(B, VB_CM_REJECTED_COUNT), 1);
}

/* The copy of a REQ, sent while the REJ was under way: whoever accepted it would accept nobody. */
static void req__refused_is_refused_again_though_its_service_is_there_now(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL), *late = vb_cm_id_create(cms[B], NULL);
	struct vb_cm_req req = make_req(1);
	struct vb_cm_path path = path_from(A);
	struct vb_gid any = { { 0 } };
	req.service_id++;
	assert_int_equal(vb_cm_connect(a, &path, &req, now), 0);
	struct mad first = pass(A, VB_CM_REQ), rej = pass(B, VB_CM_REJ);
	expect_event(A, VB_CM_EVENT_REJECTED);
	assert_int_equal(vb_cm_listen(late, req.service_id, &any), 0);
	give(B, &first);
	assert_memory_equal(take(B, VB_CM_REJ).out.mad, rej.out.mad, VB_MAD_LENGTH);
	expect_no_event(B);
	wait_exactly(B, 2 * PERIOD);
	expect_no_deadline(B);
	/* Who asks anew is asked for. */
	assert_int_equal(vb_cm_connect(a, &path, &req, now), 0);
	pass(A, VB_CM_REQ);
	expect_event(B, VB_CM_EVENT_REQUEST);
}

static void req__of_reliable_datagram_is_refused(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_req req = make_req(1);
	struct vb_cm_path path = path_from(A);
	req.transport = 2;
	vb_cm_connect(a, &path, &req, now);
	pass(A, VB_CM_REQ);
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_INVALID_TRANSPORT);
}

static void req__with_values_out_of_range_is_not_sent(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_path path = path_from(A), nowhere = { .local = gids[A] };
	struct vb_cm_req req = make_req(1 << 24);
	assert_int_equal(vb_cm_connect(a, &path, &req, now), -EINVAL);
	req = make_req(1);
	req.max_cm_retries = 16;
	assert_int_equal(vb_cm_connect(a, &path, &req, now), -EINVAL);
	req = make_req(1);
	req.remote_timeout = 32;
	assert_int_equal(vb_cm_connect(a, &path, &req, now), -EINVAL);
	req = make_req(1);
	assert_int_equal(vb_cm_connect(a, &nowhere, &req, now), -EINVAL);
	assert_int_equal(vb_cm_connect(a, &path, &req, now), 0);
	assert_int_equal(vb_cm_connect(a, &path, &req, now), -EINVAL);
}

static void req__duplicate_waits_with_the_first(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	expect_event(B, VB_CM_EVENT_REQUEST);
	give(B, &req);
	expect_no_event(B);
	expect_silence(B);
	assert_int_equal(counted(B, VB_CM_DUPLICATES_COUNT), 1);
}

static void req__duplicate_gets_the_same_rep(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	accept_qp(expect_event(B, VB_CM_EVENT_REQUEST), 2);
	struct mad rep = take(B, VB_CM_REP);
	give(B, &req);
	struct mad again = take(B, VB_CM_REP);
	assert_memory_equal(again.out.mad, rep.out.mad, VB_MAD_LENGTH);
	expect_no_event(B);
}

static void req__duplicate_gets_the_same_mra(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_REQUEST);
	assert_int_equal(vb_cm_delay(b, 24, now), 0);
	expect_state(b, VB_CM_MRA_REQ_SENT);
	struct mad mra = take(B, VB_CM_MRA);
	give(B, &req);
	assert_memory_equal(take(B, VB_CM_MRA).out.mad, mra.out.mad, VB_MAD_LENGTH);
	accept_qp(b, 2);
	take(B, VB_CM_REP);
}

/* B's user thinks for nearly a minute; A's own time and its three retries end after 18 s. */
static void req__unanswered_for_long_is_held_by_mras(void **state)
{
	struct vb_cm_id *a = connect_qp(1);
	pass(A, VB_CM_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_REQUEST);
	vb_time begun = now;
	vb_cm_advance(cms[A], now = vb_time_add(now, PAUSE));
	pass(A, VB_CM_REQ); /* for the network's sake */
	expect_silence(B);
	now = vb_time_add(begun, PERIOD);
	for (int i = 0; i < RETRIES; i++) {
		vb_cm_advance(cms[A], now);
		pass(A, VB_CM_REQ);
		assert_int_equal(pass(B, VB_CM_MRA).message.mra.answers, VB_CM_ANSWERS_REQ);
		expect_state(b, VB_CM_MRA_REQ_SENT);
		now = vb_time_add(now, PATH + ((vb_time)4096 * VB_NS << 22));
	}
	assert_true(vb_time_diff(now, begun) > 55 * VB_S);
	expect_event(A, VB_CM_EVENT_DELAYED);
	expect_no_event(A);
	accept_qp(b, 2);
	pass(B, VB_CM_REP);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REPLY), a);
}

static void req__duplicate_gets_the_same_rej_though_its_id_is_gone(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_REQUEST);
	assert_int_equal(vb_cm_reject(b, VB_CM_REJ_CONSUMER, NULL, 0, "no", 2, now), 0);
	expect_state(b, VB_CM_IDLE);
	struct mad rej = take(B, VB_CM_REJ);
	vb_cm_id_destroy(b, now);
	expect_silence(B);
	give(B, &req);
	assert_memory_equal(take(B, VB_CM_REJ).out.mad, rej.out.mad, VB_MAD_LENGTH);
	expect_no_event(B);
	wait_exactly(B, 2 * PERIOD); /* and then it is forgotten */
	expect_no_deadline(B);
	give(B, &req);
	expect_event(B, VB_CM_EVENT_REQUEST);
}

static void req__late_duplicate_does_not_disturb_a_connection(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_REQUEST);
	accept_qp(b, 2);
	pass(B, VB_CM_REP);
	vb_cm_confirm(expect_event(A, VB_CM_EVENT_REPLY), NULL, 0, now);
	pass(A, VB_CM_RTU);
	expect_event(B, VB_CM_EVENT_ESTABLISHED);
	give(B, &req);
	expect_silence(B);
	expect_no_event(B);
	expect_state(b, VB_CM_ESTABLISHED);
	vb_cm_disconnect(b, NULL, 0, now);
	pass(B, VB_CM_DREQ);
	vb_cm_disconnect(expect_event(A, VB_CM_EVENT_DISCONNECT), NULL, 0, now);
	pass(A, VB_CM_DREP);
	expect_event(B, VB_CM_EVENT_DISCONNECTED);
	give(B, &req);
	expect_silence(B);
	expect_no_event(B);
	expect_state(b, VB_CM_TIMEWAIT);
}

static void req__of_a_communication_id_in_use_is_refused(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	expect_event(B, VB_CM_EVENT_REQUEST);
	req.message.transaction_id++;
	req.message.req.qpn++;
	give_message(B, &req.message);
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_DUPLICATE_COMM_ID);
	expect_no_event(B);
}

static void req__of_the_same_communication_id_from_elsewhere_is_another(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_REQUEST);
	struct vb_cm_path path = { .local = gids[B], .remote = vb_gid_from_ipv4(10, 0, 0, 3) };
	vb_cm_receive(cms[B], &path, req.out.mad, now);
	assert_ptr_not_equal(expect_event(B, VB_CM_EVENT_REQUEST), b);
}

static void req__of_a_connected_qp_is_stale(void **state)
{
	struct ends ends = established(1);
	struct vb_cm_id *again = connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ), rej = pass(B, VB_CM_REJ);
	assert_int_equal(rej.message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), again);
	expect_state(ends.b, VB_CM_DREQ_SENT);
	pass(B, VB_CM_DREQ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECT), ends.a);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	pass(A, VB_CM_DREP);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DISCONNECTED), ends.b);
	assert_int_equal(counted(B, VB_CM_STALE_COUNT), 1);
	/* It is over: the QP may come again at once, but not in a copy of what was refused. */
	give(B, &req);
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	expect_no_event(B);
	vb_cm_id_destroy(again, now);
	requested(1);
}

static void req__of_a_qp_half_open_ends_the_older_half(void **state)
{
	struct ends ends = requested(1);
	connect_qp(1);
	pass(A, VB_CM_REQ);
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	expect_state(ends.b, VB_CM_IDLE);
	assert_int_equal(pass(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), ends.a);
}

static void req__of_a_qp_replied_to_ends_the_older_reply(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	take(B, VB_CM_REP);
	connect_qp(1);
	pass(A, VB_CM_REQ);
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	expect_state(ends.b, VB_CM_DREQ_SENT);
}

/* The REJ is lost, and what B remembered of it is over when A confirms. */
static void req__of_a_qp_replied_to_ends_the_older_reply_though_it_is_confirmed(void **state)
{
	struct ends ends = replied(1);
	connect_qp(1);
	pass(A, VB_CM_REQ);
	take(B, VB_CM_REJ); /* of the newer */
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	expect_event(B, VB_CM_EVENT_REJECTED);
	vb_cm_confirm(ends.a, NULL, 0, now);
	take(A, VB_CM_RTU);
	wait_exactly(B, PAUSE);
	pass(B, VB_CM_DREQ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECT), ends.a);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	pass(A, VB_CM_DREP);
	expect_no_event(B); /* its user knows since the REQ */
	expect_state(ends.b, VB_CM_TIMEWAIT);
}

static void rep__of_a_connected_qp_is_stale(void **state)
{
	struct ends old = established(1), ends = requested(2);
	accept_qp(ends.b, 101); /* of the first */
	pass(B, VB_CM_REP);
	assert_int_equal(pass(A, VB_CM_REJ).message.rej.reason, VB_CM_REJ_STALE_CONNECTION);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), ends.a);
	expect_state(ends.a, VB_CM_IDLE);
	expect_state(old.a, VB_CM_DREQ_SENT);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
}

static void rep__duplicate_gets_the_same_rtu(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	struct mad rep = pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
	give(A, &rep); /* undecided: nothing to say */
	expect_silence(A);
	vb_cm_confirm(ends.a, "x", 1, now);
	struct mad rtu = take(A, VB_CM_RTU);
	wait_exactly(B, PAUSE);
	pass(B, VB_CM_REP);
	assert_memory_equal(take(A, VB_CM_RTU).out.mad, rtu.out.mad, VB_MAD_LENGTH);
	expect_no_event(A);
	give(B, &rtu);
	expect_event(B, VB_CM_EVENT_ESTABLISHED);
	give(B, &rtu);
	expect_no_event(B);
}

static void rep__duplicate_gets_the_same_mra(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	struct mad rep = pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
	assert_int_equal(vb_cm_delay(ends.a, 22, now), 0);
	struct mad mra = take(A, VB_CM_MRA);
	assert_int_equal(mra.message.mra.answers, VB_CM_ANSWERS_REP);
	give(A, &rep);
	assert_memory_equal(take(A, VB_CM_MRA).out.mad, mra.out.mad, VB_MAD_LENGTH);
	assert_int_equal(vb_cm_confirm(ends.a, NULL, 0, now), 0);
}

static void rep__unread_for_long_is_held_by_an_mra(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	struct mad rep = pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
	now = vb_time_add(now, PERIOD - 1);
	give(A, &rep);
	expect_silence(A);
	now = vb_time_add(now, 1);
	give(A, &rep);
	assert_int_equal(pass(A, VB_CM_MRA).message.mra.answers, VB_CM_ANSWERS_REP);
	expect_state(ends.a, VB_CM_MRA_REP_SENT);
	expect_state(ends.b, VB_CM_MRA_REP_RCVD);
	assert_int_equal(counted(A, VB_CM_DUPLICATES_COUNT), 2);
	assert_int_equal(vb_cm_confirm(ends.a, NULL, 0, now), 0);
	pass(A, VB_CM_RTU);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DELAYED), ends.b);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_ESTABLISHED), ends.b);
}

static void rep__unanswered_is_sent_again_then_given_up(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	take(B, VB_CM_REP);
	wait_first(B, VB_CM_REP, PERIOD);
	for (int i = 0; i < RETRIES; i++) {
		take(B, VB_CM_REP);
		wait_exactly(B, PERIOD);
	}
	struct mad rej = take(B, VB_CM_REJ);
	assert_int_equal(rej.message.rej.reason, VB_CM_REJ_TIMEOUT);
	assert_int_not_equal(rej.message.remote_id, 0);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_UNREACHABLE), ends.b);
	expect_state(ends.b, VB_CM_TIMEWAIT);
	wait_exactly(B, PATH + 4096 * VB_NS);
	expect_event(B, VB_CM_EVENT_TIMEWAIT_EXIT);
	expect_state(ends.b, VB_CM_IDLE);
}

static void rep__given_up_is_told_to_who_confirms_too_late(void **state)
{
	struct ends ends = replied(1);
	wait_first(B, VB_CM_REP, PERIOD);
	for (int i = 0; i < RETRIES; i++) {
		take(B, VB_CM_REP);
		wait_exactly(B, PERIOD);
	}
	take(B, VB_CM_REJ); /* lost */
	expect_event(B, VB_CM_EVENT_UNREACHABLE);
	vb_cm_confirm(ends.a, NULL, 0, now);
	pass(A, VB_CM_RTU);
	pass(B, VB_CM_REJ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECTED), ends.a);
	expect_state(ends.a, VB_CM_TIMEWAIT);
}

/* A thinks it over for so long that B's retries are spent; the REJ is lost, and the RTU comes when all is forgotten. */
static void rep__given_up_after_an_mra_is_taken_back_by_a_dreq(void **state)
{
	struct ends ends = replied(1);
	vb_cm_delay(ends.a, 22, now);
	pass(A, VB_CM_MRA);
	expect_event(B, VB_CM_EVENT_DELAYED);
	wait_exactly(B, PATH + ((vb_time)4096 * VB_NS << 22));
	take(B, VB_CM_REP);
	for (int i = 1; i < RETRIES; i++) {
		wait_exactly(B, PERIOD);
		take(B, VB_CM_REP);
	}
	wait_exactly(B, PERIOD);
	assert_int_equal(take(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_TIMEOUT);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_UNREACHABLE), ends.b);
	assert_true(event.is_of_reply);
	vb_cm_confirm(ends.a, NULL, 0, now);
	take(A, VB_CM_RTU);
	wait_exactly(B, PAUSE);
	pass(B, VB_CM_DREQ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECT), ends.a);
	vb_cm_disconnect(ends.a, NULL, 0, now);
	pass(A, VB_CM_DREP);
	expect_no_event(B);
	expect_state(ends.b, VB_CM_TIMEWAIT);
}

static void rep__to_nobody_is_refused(void **state)
{
	struct ends ends = requested(1);
	vb_cm_id_destroy(ends.a, now);
	take(A, VB_CM_REJ); /* lost */
	accept_qp(ends.b, 2);
	struct mad rep = pass(B, VB_CM_REP);
	struct mad rej = pass(A, VB_CM_REJ);
	assert_int_equal(rej.message.rej.reason, VB_CM_REJ_INVALID_COMM_ID);
	assert_int_equal(rej.message.rej.answers, VB_CM_ANSWERS_REP);
	assert_int_equal(rej.message.remote_id, rep.message.local_id);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	expect_state(ends.b, VB_CM_TIMEWAIT);
}

static void rep__rejected_is_rejected_again(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	struct mad rep = pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
	assert_int_equal(vb_cm_reject(ends.a, VB_CM_REJ_CONSUMER, "i", 1, "no", 2, now), 0);
	struct mad rej = take(A, VB_CM_REJ);
	assert_int_equal(rej.message.rej.answers, VB_CM_ANSWERS_REP);
	assert_int_equal(rej.message.rej.ari_length, 1);
	give(A, &rep);
	pass(A, VB_CM_REJ);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	assert_memory_equal(event.message.rej.private_data, "no", 3);
	expect_state(ends.a, VB_CM_TIMEWAIT);
}

static void mra__stretches_the_wait_for_a_rep(void **state)
{
	struct ends ends = requested(1);
	vb_cm_delay(ends.b, 22, now);
	struct mad mra = pass(B, VB_CM_MRA);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DELAYED), ends.a);
	assert_int_equal(event.message.mra.service_timeout, 22);
	expect_state(ends.a, VB_CM_MRA_REQ_RCVD);
	give(A, &mra);
	expect_no_event(A);
	wait_exactly(A, PATH + ((vb_time)4096 * VB_NS << 22));
	take(A, VB_CM_REQ); /* and goes on as before */
	wait_exactly(A, PERIOD);
	take(A, VB_CM_REQ);
	accept_qp(ends.b, 2);
	pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
}

static void mra__stretches_the_wait_for_an_rtu(void **state)
{
	struct ends ends = replied(1);
	vb_cm_delay(ends.a, 22, now);
	pass(A, VB_CM_MRA);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_DELAYED), ends.b);
	expect_state(ends.b, VB_CM_MRA_REP_RCVD);
	wait_exactly(B, PATH + ((vb_time)4096 * VB_NS << 22));
	take(B, VB_CM_REP);
	vb_cm_confirm(ends.a, NULL, 0, now);
	pass(A, VB_CM_RTU);
	expect_event(B, VB_CM_EVENT_ESTABLISHED);
}

static void mra__does_not_make_us_wait_for_hours(void **state)
{
	struct ends ends = requested(1);
	vb_cm_delay(ends.b, 31, now);
	pass(B, VB_CM_MRA);
	expect_event(A, VB_CM_EVENT_DELAYED);
	wait_exactly(A, PATH + ((vb_time)4096 * VB_NS << 25));
	take(A, VB_CM_REQ);
	assert_int_equal(vb_cm_delay(ends.b, 32, now), -EINVAL);
}

static void rej__may_follow_an_mra(void **state)
{
	struct ends ends = requested(1);
	vb_cm_delay(ends.b, 20, now);
	pass(B, VB_CM_MRA);
	expect_event(A, VB_CM_EVENT_DELAYED);
	vb_cm_reject(ends.b, 28, NULL, 0, NULL, 0, now);
	struct mad rej = take(B, VB_CM_REJ);
	rej.message.local_id = 0; /* of somebody who has no ID for it */
	give_message(A, &rej.message);
	expect_event(A, VB_CM_EVENT_REJECTED);
	expect_state(ends.a, VB_CM_IDLE);
}

static void rtu__lost_is_replaced_by_data(void **state)
{
	struct ends ends = replied(1);
	vb_cm_confirm(ends.a, NULL, 0, now);
	struct mad rtu = take(A, VB_CM_RTU);
	assert_int_equal(vb_cm_notify_established(ends.b, now), 0);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_ESTABLISHED), ends.b);
	assert_false(event.has_message);
	expect_no_deadline(B);
	give(B, &rtu);
	expect_no_event(B);
	assert_int_equal(vb_cm_notify_established(ends.b, now), 0);
	expect_no_event(B);
	assert_int_equal(vb_cm_notify_established(listener, now), -EINVAL);
}

/* Its sender would stay alone: nothing else is said in a connection that both believe to be there. */
static void rtu__of_a_connection_that_is_forgotten_is_refused(void **state)
{
	struct ends ends = replied(1);
	vb_cm_confirm(ends.a, NULL, 0, now);
	struct mad rtu = take(A, VB_CM_RTU);
	vb_cm_destroy(cms[B]);
	struct vb_cm_config config = { .seed = 77, .slot = 6 };
	assert_int_equal(vb_cm_create(&config, &cms[B]), 0);
	give(B, &rtu);
	struct mad rej = pass(B, VB_CM_REJ);
	assert_int_equal(rej.message.rej.reason, VB_CM_REJ_INVALID_COMM_ID);
	assert_int_equal(rej.message.rej.answers, VB_CM_ANSWERS_OTHER);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECTED), ends.a);
	expect_state(ends.a, VB_CM_TIMEWAIT);
	give(B, &rtu); /* a duplicate's refusal meets nobody who cares */
	pass(B, VB_CM_REJ);
	expect_no_event(A);
	expect_silence(A);
}

static void rtu__of_a_stranger_changes_nothing(void **state)
{
	struct ends ends = replied(1);
	vb_cm_confirm(ends.a, NULL, 0, now);
	struct mad rtu = take(A, VB_CM_RTU);
	struct vb_cm_path path = { .local = gids[B], .remote = vb_gid_from_ipv4(10, 0, 0, 3) };
	vb_cm_receive(cms[B], &path, rtu.out.mad, now);
	expect_no_event(B);
	rtu.message.local_id++;
	give_message(B, &rtu.message);
	expect_no_event(B);
	expect_state(ends.b, VB_CM_REP_SENT);
	assert_int_equal(counted(B, VB_CM_DROPPED_COUNT), 2);
}

static void rej__after_an_rtu_that_was_lost_ends_the_connection(void **state)
{
	struct ends ends = replied(1);
	vb_cm_confirm(ends.a, NULL, 0, now);
	take(A, VB_CM_RTU);
	vb_cm_id_destroy(ends.b, now);
	pass(B, VB_CM_REJ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECTED), ends.a);
	wait_exactly(A, PATH + 4096 * VB_NS);
	expect_event(A, VB_CM_EVENT_TIMEWAIT_EXIT);
	/* B does not know that it was heard, asks, and hears that there is nothing left. */
	vb_cm_advance(cms[B], now);
	pass(B, VB_CM_DREQ);
	pass(A, VB_CM_DREP);
	wait_exactly(B, PATH + 4096 * VB_NS);
	expect_no_event(B);
	expect_no_deadline(B);
}

static void rej__lost_before_a_rep_is_made_good_by_a_dreq(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	take(B, VB_CM_REP);
	vb_cm_id_destroy(ends.b, now);
	take(B, VB_CM_REJ);
	wait_exactly(A, PAUSE);
	pass(A, VB_CM_REQ);
	vb_cm_advance(cms[B], now);
	pass(B, VB_CM_DREQ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), ends.a);
	expect_state(ends.a, VB_CM_IDLE);
	pass(A, VB_CM_DREP);
	expect_silence(B);
}

static void listener__destroyed_takes_its_unheard_requests_along(void **state)
{
	struct vb_cm_id *a = connect_qp(1), *b = connect_qp(2);
	pass(A, VB_CM_REQ);
	pass(A, VB_CM_REQ);
	vb_cm_id_destroy(listener, now);
	expect_no_event(B);
	pass(B, VB_CM_REJ);
	pass(B, VB_CM_REJ);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), a);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), b);
	assert_int_equal(event.message.rej.reason, VB_CM_REJ_CONSUMER);
}

static void listener__of_the_address_comes_before_any(void **state)
{
	struct vb_cm_id *exact = vb_cm_id_create(cms[B], NULL), *ipv4 = vb_cm_id_create(cms[B], NULL);
	struct vb_gid any_ipv4 = vb_gid_from_ipv4(0, 0, 0, 0);
	assert_int_equal(vb_cm_listen(exact, SERVICE, &gids[B]), 0);
	assert_int_equal(vb_cm_listen(ipv4, SERVICE, &gids[B]), -EADDRINUSE);
	assert_int_equal(vb_cm_listen(ipv4, SERVICE, &any_ipv4), 0);
	assert_int_equal(vb_cm_listen(ipv4, SERVICE + 1, &any_ipv4), -EINVAL);
	requested(1);
	assert_ptr_equal(event.listener, exact);
	vb_cm_id_destroy(exact, now);
	requested(2);
	assert_ptr_equal(event.listener, ipv4);
	vb_cm_id_destroy(ipv4, now);
	requested(3);
	assert_ptr_equal(event.listener, listener);
}

static void events__of_an_id_destroyed_do_not_come(void **state)
{
	struct ends ends = requested(1);
	accept_qp(ends.b, 2);
	pass(B, VB_CM_REP);
	vb_cm_id_destroy(ends.a, now);
	expect_no_event(A);
	assert_int_equal(take(A, VB_CM_REJ).message.rej.answers, VB_CM_ANSWERS_REP);
}

static void nonsense__is_dropped(void **state)
{
	struct mad mad = { 0 };
	give(B, &mad);
	struct vb_cm_message message = { .kind = VB_CM_RTU, .remote_id = 0x06000001 };
	give_message(B, &message);
	message.kind = VB_CM_APR;
	give_message(B, &message);
	message = (struct vb_cm_message){ .kind = VB_CM_REQ, .req = { .service_id = SERVICE } };
	give_message(B, &message);
	expect_no_event(B);
	expect_silence(B);
	assert_int_equal(counted(B, VB_CM_DROPPED_COUNT), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

/* Who has connected once, or a thousand times, does not know the IDs that come: he could speak for others. */
static void id__tells_nothing_of_the_next(void **state)
{
	enum { MANY = 20000 };
	static uint32_t seen[MANY];
	struct vb_cm *cm;
	struct vb_cm_config config = { .seed = 1, .seed_high = 2, .slot = 9 };
	const struct vb_cm_path path = { .local = vb_gid_from_ipv4(10, 0, 0, 1),
		.remote = vb_gid_from_ipv4(10, 0, 0, 2) };
	unsigned same_steps = 0;
	assert_int_equal(vb_cm_create(&config, &cm), 0);
	static uint8_t is_used[1 << 24];
	for (unsigned i = 0; i < MANY; i++) {
		struct vb_cm_id *id = vb_cm_id_create(cm, NULL);
		const struct vb_cm_req req = { .service_id = 7, .qpn = 5 };
		assert_int_equal(vb_cm_connect(id, &path, &req, 0), 0);
		struct vb_cm_outgoing out;
		struct vb_cm_message message;
		assert_true(vb_cm_next_outgoing(cm, &out) && vb_cm_decode(&message, out.mad));
		seen[i] = message.local_id;
		assert_int_equal(seen[i] >> 24, 9);
		assert_false(is_used[seen[i] & 0xFFFFFF]);
		is_used[seen[i] & 0xFFFFFF] = 1;
		same_steps += i > 1 && seen[i] - seen[i - 1] == seen[i - 1] - seen[i - 2];
		vb_cm_id_destroy(id, 0);
		while (vb_cm_next_outgoing(cm, &out))
			;
	}
	assert_true(same_steps < 5);
	vb_cm_destroy(cm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id__tells_nothing_of_the_next),
		TEST(connect__takes_three_messages),
		TEST(req__is_sent_again_by_its_own_period_then_given_up),
		TEST(req__unanswered_is_told_of_once_after_three_seconds),
		TEST(req__lost_costs_a_tenth_of_a_second),
		TEST(req__that_waits_for_less_is_not_repeated_early),
		TEST(req__to_a_host_that_is_not_there_is_given_up_at_once),
		TEST(req__to_a_closed_port_is_sent_for_a_period),
		TEST(req__refused_once_is_then_only_unanswered),
		TEST(undelivered__concerns_only_who_awaits_that_answer),
		TEST(req__given_up_ends_what_it_began),
		TEST(req__of_an_unknown_service_is_refused),
		TEST(req__refused_is_refused_again_though_its_service_is_there_now),
		TEST(req__of_reliable_datagram_is_refused),
		TEST(req__with_values_out_of_range_is_not_sent),
		TEST(req__duplicate_waits_with_the_first),
		TEST(req__duplicate_gets_the_same_rep),
		TEST(req__duplicate_gets_the_same_mra),
		TEST(req__unanswered_for_long_is_held_by_mras),
		TEST(req__duplicate_gets_the_same_rej_though_its_id_is_gone),
		TEST(req__late_duplicate_does_not_disturb_a_connection),
		TEST(req__of_a_communication_id_in_use_is_refused),
		TEST(req__of_the_same_communication_id_from_elsewhere_is_another),
		TEST(req__of_a_connected_qp_is_stale),
		TEST(req__of_a_qp_half_open_ends_the_older_half),
		TEST(req__of_a_qp_replied_to_ends_the_older_reply),
		TEST(req__of_a_qp_replied_to_ends_the_older_reply_though_it_is_confirmed),
		TEST(rep__of_a_connected_qp_is_stale),
		TEST(rep__duplicate_gets_the_same_rtu),
		TEST(rep__duplicate_gets_the_same_mra),
		TEST(rep__unread_for_long_is_held_by_an_mra),
		TEST(rep__unanswered_is_sent_again_then_given_up),
		TEST(rep__given_up_is_told_to_who_confirms_too_late),
		TEST(rep__given_up_after_an_mra_is_taken_back_by_a_dreq),
		TEST(rep__to_nobody_is_refused),
		TEST(rep__rejected_is_rejected_again),
		TEST(mra__stretches_the_wait_for_a_rep),
		TEST(mra__stretches_the_wait_for_an_rtu),
		TEST(mra__does_not_make_us_wait_for_hours),
		TEST(rej__may_follow_an_mra),
		TEST(rtu__lost_is_replaced_by_data),
		TEST(rtu__of_a_connection_that_is_forgotten_is_refused),
		TEST(rtu__of_a_stranger_changes_nothing),
		TEST(rej__after_an_rtu_that_was_lost_ends_the_connection),
		TEST(rej__lost_before_a_rep_is_made_good_by_a_dreq),
		TEST(listener__destroyed_takes_its_unheard_requests_along),
		TEST(listener__of_the_address_comes_before_any),
		TEST(events__of_an_id_destroyed_do_not_come),
		TEST(nonsense__is_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
