/* Service ID resolution. */
#include <errno.h>
#include "rig.h"

static struct vb_cm_id *ask(uint64_t service_id)
{
	struct vb_cm_id *id = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_sidr_req req = { .pkey = 0xFFFF, .service_id = service_id };
	struct vb_cm_path path = path_from(A);
	assert_int_equal(vb_cm_sidr_request(id, &path, &req, VB_S, 2, now), 0);
	return id;
}

static const struct vb_cm_sidr_rep answer = { .qpn = 3, .qkey = 0x1234567, .service_id = 1 };

static void sidr__is_asked_and_answered(void **state)
{
	struct vb_cm_id *a = ask(SERVICE);
	expect_state(a, VB_CM_SIDR_REQ_SENT);
	struct mad req = pass(A, VB_CM_SIDR_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_SIDR_REQUEST);
	assert_ptr_equal(event.listener, listener);
	expect_state(b, VB_CM_SIDR_REQ_RCVD);
	assert_int_equal(vb_cm_sidr_reply(b, &answer, now), 0);
	expect_state(b, VB_CM_IDLE);
	struct mad rep = pass(B, VB_CM_SIDR_REP);
	assert_int_equal(rep.message.remote_id, req.message.local_id);
	assert_true(rep.message.transaction_id == req.message.transaction_id);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_SIDR_REPLY), a);
	assert_int_equal(event.message.sidr_rep.qpn, 3);
	assert_int_equal(event.message.sidr_rep.qkey, 0x1234567);
	expect_state(a, VB_CM_IDLE);
	expect_no_deadline(A);
	give(A, &rep);
	expect_no_event(A);
}

static void sidr__question_is_asked_again_then_given_up(void **state)
{
	struct vb_cm_id *a = ask(SERVICE);
	take(A, VB_CM_SIDR_REQ);
	wait_first(A, VB_CM_SIDR_REQ, VB_S);
	for (int i = 0; i < 2; i++) {
		take(A, VB_CM_SIDR_REQ);
		wait_exactly(A, VB_S);
	}
	expect_silence(A);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_SIDR_TIMEOUT), a);
	expect_state(a, VB_CM_IDLE);
}

static void sidr__to_a_host_that_is_not_there_is_given_up_at_once(void **state)
{
	struct vb_cm_id *a = ask(SERVICE);
	struct mad req = take(A, VB_CM_SIDR_REQ);
	undelivered(A, &req, -EHOSTUNREACH);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_SIDR_TIMEOUT), a);
	assert_int_equal(event.error, -EHOSTUNREACH);
	expect_state(a, VB_CM_IDLE);
}

static void sidr__duplicate_gets_the_same_answer(void **state)
{
	ask(SERVICE);
	struct mad req = pass(A, VB_CM_SIDR_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_SIDR_REQUEST);
	give(B, &req);
	expect_no_event(B);
	expect_silence(B);
	vb_cm_sidr_reply(b, &answer, now);
	struct mad rep = take(B, VB_CM_SIDR_REP);
	vb_cm_id_destroy(b, now);
	give(B, &req);
	assert_memory_equal(take(B, VB_CM_SIDR_REP).out.mad, rep.out.mad, VB_MAD_LENGTH);
	expect_no_event(B);
	/* The number again, for another question. */
	req.message.transaction_id++;
	give_message(B, &req.message);
	expect_event(B, VB_CM_EVENT_SIDR_REQUEST);
}

static void sidr__of_an_unknown_service_is_refused(void **state)
{
	struct vb_cm_id *a = ask(SERVICE + 1);
	pass(A, VB_CM_SIDR_REQ);
	struct mad rep = pass(B, VB_CM_SIDR_REP);
	assert_int_equal(rep.message.sidr_rep.status, VB_CM_SIDR_UNSUPPORTED);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_SIDR_REPLY), a);
}

static void sidr__id_destroyed_is_a_refusal(void **state)
{
	ask(SERVICE);
	struct mad req = pass(A, VB_CM_SIDR_REQ);
	vb_cm_id_destroy(expect_event(B, VB_CM_EVENT_SIDR_REQUEST), now);
	assert_int_equal(take(B, VB_CM_SIDR_REP).message.sidr_rep.status, VB_CM_SIDR_REJECTED);
	give(B, &req);
	assert_int_equal(take(B, VB_CM_SIDR_REP).message.sidr_rep.status, VB_CM_SIDR_REJECTED);
}

static void sidr__asker_destroyed_hears_nothing(void **state)
{
	struct vb_cm_id *a = ask(SERVICE);
	take(A, VB_CM_SIDR_REQ);
	vb_cm_id_destroy(a, now);
	expect_silence(A);
	expect_no_deadline(A);
}

static void sidr__numbers_are_not_those_of_connections(void **state)
{
	connect_qp(1);
	struct mad req = pass(A, VB_CM_REQ);
	expect_event(B, VB_CM_EVENT_REQUEST);
	struct vb_cm_message sidr = { .kind = VB_CM_SIDR_REQ,
		.transaction_id = req.message.transaction_id,
		.local_id = req.message.local_id,
		.sidr_req = { .service_id = SERVICE } };
	give_message(B, &sidr);
	expect_event(B, VB_CM_EVENT_SIDR_REQUEST);
}

static void sidr__values_out_of_range_are_refused(void **state)
{
	struct vb_cm_id *a = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_sidr_req req = { .service_id = SERVICE };
	struct vb_cm_path path = path_from(A);
	struct vb_cm_sidr_rep rep = answer;
	assert_int_equal(vb_cm_sidr_request(a, &path, &req, 0, 1, now), -EINVAL);
	assert_int_equal(vb_cm_sidr_request(a, &path, &req, VB_S, 256, now), -EINVAL);
	assert_int_equal(vb_cm_sidr_reply(a, &rep, now), -EINVAL);
	assert_int_equal(vb_cm_sidr_request(a, &path, &req, VB_S, 1, now), 0);
	pass(A, VB_CM_SIDR_REQ);
	struct vb_cm_id *b = expect_event(B, VB_CM_EVENT_SIDR_REQUEST);
	rep.info_length = VB_CM_ARI_LENGTH + 1;
	assert_int_equal(vb_cm_sidr_reply(b, &rep, now), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sidr__is_asked_and_answered),
		TEST(sidr__question_is_asked_again_then_given_up),
		TEST(sidr__to_a_host_that_is_not_there_is_given_up_at_once),
		TEST(sidr__duplicate_gets_the_same_answer),
		TEST(sidr__of_an_unknown_service_is_refused),
		TEST(sidr__id_destroyed_is_a_refusal),
		TEST(sidr__asker_destroyed_hears_nothing),
		TEST(sidr__numbers_are_not_those_of_connections),
		TEST(sidr__values_out_of_range_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
