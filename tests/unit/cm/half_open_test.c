/* Requests that are not connections yet, of which the rig allows eight, and who makes room for whom. */
#include <errno.h>
#include "rig.h"

enum { LIMIT = 8 };

/* A request from 10.0.1.host. */
static void ask_from(uint8_t host, uint32_t qpn)
{
	struct vb_cm_path path = { .local = gids[B], .remote = vb_gid_from_ipv4(10, 0, 1, host) };
	struct vb_cm_message message = {
		.kind = VB_CM_REQ, .transaction_id = qpn, .local_id = qpn, .req = make_req(qpn)
	};
	uint8_t mad[VB_MAD_LENGTH];
	vb_cm_encode(&message, mad);
	vb_cm_receive(cms[B], &path, mad, now);
}

static struct vb_cm_id *expect_request(uint32_t qpn)
{
	struct vb_cm_id *id = expect_event(B, VB_CM_EVENT_REQUEST);
	assert_int_equal(event.message.req.qpn, qpn);
	return id;
}

static void flood__is_dropped_beyond_the_limit(void **state)
{
	for (uint32_t qpn = 1; qpn <= 20; qpn++)
		ask_from(1, qpn);
	struct vb_cm_id *first = expect_request(1);
	for (uint32_t qpn = 2; qpn <= LIMIT; qpn++)
		expect_request(qpn);
	expect_no_event(B);
	expect_silence(B);
	assert_int_equal(counted(B, VB_CM_FLOODED_COUNT), 20 - LIMIT);
	vb_cm_id_destroy(first, now);
	take(B, VB_CM_REJ);
	ask_from(1, 30);
	expect_request(30);
}

static void flood__makes_room_for_another_source(void **state)
{
	for (uint32_t qpn = 1; qpn <= LIMIT; qpn++)
		ask_from(1, qpn);
	ask_from(2, 20);
	ask_from(1, 21);
	for (uint32_t qpn = 2; qpn <= LIMIT; qpn++)
		expect_request(qpn);
	accept_qp(expect_request(20), 2);
	take(B, VB_CM_REP);
	expect_no_event(B);
	expect_silence(B); /* for REQs that come again if they are meant */
	assert_int_equal(counted(B, VB_CM_DISPLACED_COUNT), 1);
	assert_int_equal(counted(B, VB_CM_FLOODED_COUNT), 1);
}

static void flood__of_many_sources_displaces_what_waits_longest(void **state)
{
	for (uint8_t host = 1; host <= LIMIT + 2; host++)
		ask_from(host, host);
	for (uint32_t qpn = 3; qpn <= LIMIT + 2; qpn++)
		expect_request(qpn);
	expect_no_event(B);
}

static void flood__of_a_few_sources_does_not_displace_its_own_kind(void **state)
{
	for (uint8_t host = 1; host <= 2; host++)
		for (uint32_t i = 0; i < LIMIT / 2; i++)
			ask_from(host, 10 * host + i);
	ask_from(1, 30);
	assert_int_equal(counted(B, VB_CM_DISPLACED_COUNT), 0);
	assert_int_equal(counted(B, VB_CM_FLOODED_COUNT), 1);
	ask_from(3, 31);
	ask_from(3, 32);
	assert_int_equal(counted(B, VB_CM_DISPLACED_COUNT), 2);
}

static void request__displaced_is_told_to_its_holder(void **state)
{
	struct ends ends = requested(1);
	for (uint32_t qpn = 2; qpn <= LIMIT; qpn++)
		requested(qpn);
	ask_from(1, 20);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	assert_false(event.has_message);
	assert_int_equal(event.error, -ENOBUFS);
	expect_state(ends.b, VB_CM_IDLE);
	expect_silence(B);
	expect_request(20);
	struct vb_cm_rep rep = { .qpn = 1 };
	assert_int_equal(vb_cm_accept(ends.b, &rep, now), -EINVAL);
	vb_cm_id_destroy(ends.b, now);
	expect_silence(B);
}

static void request__displaced_and_delayed_is_rejected(void **state)
{
	struct ends ends = requested(1);
	vb_cm_delay(ends.b, 20, now);
	pass(B, VB_CM_MRA);
	expect_event(A, VB_CM_EVENT_DELAYED);
	for (uint32_t qpn = 2; qpn <= LIMIT; qpn++)
		requested(qpn);
	ask_from(1, 20);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_REJECTED), ends.b);
	assert_int_equal(pass(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_NO_RESOURCES);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REJECTED), ends.a);
}

static void reply__displaced_is_taken_back(void **state)
{
	struct ends ends = replied(1);
	vb_cm_confirm(ends.a, NULL, 0, now);
	struct mad rtu = take(A, VB_CM_RTU); /* late */
	for (uint32_t qpn = 2; qpn <= LIMIT; qpn++)
		replied(qpn);
	ask_from(1, 20);
	struct mad dreq = take(B, VB_CM_DREQ);
	assert_int_equal(dreq.message.dreq.remote_qpn, 1);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_UNREACHABLE), ends.b);
	assert_int_equal(event.error, -ENOBUFS);
	assert_true(event.is_of_reply);
	expect_state(ends.b, VB_CM_IDLE);
	expect_request(20);
	/* Whichever of the two comes first. */
	give(B, &rtu);
	assert_int_equal(pass(B, VB_CM_REJ).message.rej.reason, VB_CM_REJ_INVALID_COMM_ID);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_DISCONNECTED), ends.a);
	give(A, &dreq);
	expect_no_event(A);
}

static void question__displaced_cannot_be_answered(void **state)
{
	struct vb_cm_path path = { .local = gids[B], .remote = vb_gid_from_ipv4(10, 0, 1, 1) };
	struct vb_cm_message message = { .kind = VB_CM_SIDR_REQ, .sidr_req = { .service_id = SERVICE } };
	struct vb_cm_sidr_rep rep = { .qpn = 1 };
	uint8_t mad[VB_MAD_LENGTH];
	for (uint32_t i = 1; i <= LIMIT; i++) {
		message.local_id = message.transaction_id = i;
		vb_cm_encode(&message, mad);
		vb_cm_receive(cms[B], &path, mad, now);
	}
	struct vb_cm_id *first = expect_event(B, VB_CM_EVENT_SIDR_REQUEST);
	ask_from(2, 20);
	assert_int_equal(vb_cm_sidr_reply(first, &rep, now), -EINVAL);
	expect_silence(B);
	vb_cm_id_destroy(first, now);
}

static void connection__suffers_from_no_flood(void **state)
{
	struct ends ends = established(1), other = replied(2);
	vb_cm_delay(other.a, 20, now);
	pass(A, VB_CM_MRA);
	expect_event(B, VB_CM_EVENT_DELAYED);
	for (uint8_t host = 1; host <= 200; host++)
		ask_from(host, host);
	for (uint32_t i = 0; i < LIMIT; i++)
		assert_ptr_not_equal(expect_event(B, VB_CM_EVENT_REQUEST), ends.b);
	expect_no_event(B);
	expect_state(ends.b, VB_CM_ESTABLISHED);
	expect_state(other.b, VB_CM_MRA_REP_RCVD); /* A has read the REP, so there is an A */
	assert_int_equal(counted(B, VB_CM_DISPLACED_COUNT), 200 - LIMIT);
}

static void request__forgotten_may_come_again(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	vb_cm_id_forget(expect_event(B, VB_CM_EVENT_REQUEST));
	expect_silence(B);
	expect_no_deadline(B);
	give(B, &req);
	accept_qp(expect_event(B, VB_CM_EVENT_REQUEST), 2);
	pass(B, VB_CM_REP);
	expect_event(A, VB_CM_EVENT_REPLY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

/* Requests of nobody, answered and then let go, one after another: few of them are remembered. */
static void replies__abandoned_are_bounded(void **state)
{
	struct vb_cm_outgoing out;
	unsigned repeated = 0;
	for (uint32_t qpn = 1; qpn <= 3 * LIMIT; qpn++) {
		ask_from(1, qpn);
		struct vb_cm_id *id = expect_request(qpn);
		accept_qp(id, qpn);
		take(B, VB_CM_REP);
		vb_cm_id_destroy(id, now);
		take(B, VB_CM_REJ);
	}
	now = vb_time_add(now, PAUSE);
	vb_cm_advance(cms[B], now);
	while (vb_cm_next_outgoing(cms[B], &out))
		repeated++;
	assert_int_equal(repeated, LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flood__is_dropped_beyond_the_limit),
		TEST(flood__makes_room_for_another_source),
		TEST(flood__of_many_sources_displaces_what_waits_longest),
		TEST(flood__of_a_few_sources_does_not_displace_its_own_kind),
		TEST(request__displaced_is_told_to_its_holder),
		TEST(request__displaced_and_delayed_is_rejected),
		TEST(reply__displaced_is_taken_back),
		TEST(question__displaced_cannot_be_answered),
		TEST(connection__suffers_from_no_flood),
		TEST(request__forgotten_may_come_again),
		TEST(replies__abandoned_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
