/* What the peers of a process that died are told. */
#include "../unit.h"
#include <time.h>
#include "broker/orphans.h"
#include "wire/cm.h"

#define CLIENT 7

static uint8_t mad[VB_MAD_LENGTH];

static struct vb_gid ours(void)
{
	return vb_gid_from_ipv4(10, 0, 0, 1);
}

static struct vb_gid theirs(void)
{
	return vb_gid_from_ipv4(10, 0, 0, 2);
}

static void sent(struct orphans *orphans, struct vb_cm_message message)
{
	struct vb_gid from = ours(), to = theirs();
	orphans_note_sent(orphans, CLIENT, &from, &to, &message);
}

static void received(struct orphans *orphans, struct vb_cm_message message)
{
	const struct qp1_mad arrived = { .from = theirs(), .to = ours(), .cm = &message };
	orphans_note_received(orphans, CLIENT, &arrived, false);
}

/* The only farewell. */
static struct vb_cm_message farewell(struct orphans *orphans)
{
	struct vb_cm_message message;
	struct vb_gid from, to, our = ours(), their = theirs();
	assert_true(orphans_next_farewell(orphans, CLIENT, &from, &to, mad));
	assert_true(vb_gid_equal(&from, &our) && vb_gid_equal(&to, &their));
	assert_true(vb_cm_decode(&message, mad));
	assert_false(orphans_next_farewell(orphans, CLIENT, &from, &to, mad));
	return message;
}

static void assert_silent(struct orphans *orphans)
{
	struct vb_gid from, to;
	assert_false(orphans_next_farewell(orphans, CLIENT, &from, &to, mad));
}

static const struct vb_cm_message req_sent = {
	.kind = VB_CM_REQ, .local_id = 5, .transaction_id = 50, .req.qpn = 0x111
};
static const struct vb_cm_message rep_received = { .kind = VB_CM_REP, .local_id = 6, .remote_id = 5, .rep.qpn = 0x222 };
static const struct vb_cm_message req_received = {
	.kind = VB_CM_REQ, .local_id = 8, .transaction_id = 80, .req.qpn = 0x333
};
static const struct vb_cm_message rep_sent = { .kind = VB_CM_REP, .local_id = 9, .remote_id = 8, .rep.qpn = 0x444 };

static int setup(void **state)
{
	*state = orphans_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	orphans_destroy(*state);
	return 0;
}

static void active_end__is_disconnected(void **state)
{
	sent(*state, req_sent);
	sent(*state, req_sent); /* sent again */
	received(*state, rep_received);
	struct vb_cm_message last = farewell(*state);
	assert_int_equal(last.kind, VB_CM_DREQ);
	assert_int_equal(last.local_id, 5);
	assert_int_equal(last.remote_id, 6);
	assert_int_equal(last.dreq.remote_qpn, 0x222);
}

static void passive_end__is_disconnected(void **state)
{
	received(*state, req_received);
	received(*state, req_received);
	sent(*state, rep_sent);
	struct vb_cm_message last = farewell(*state);
	assert_int_equal(last.kind, VB_CM_DREQ);
	assert_int_equal(last.local_id, 9);
	assert_int_equal(last.remote_id, 8);
	assert_int_equal(last.dreq.remote_qpn, 0x333);
}

static unsigned ask(struct orphans *orphans, uint32_t client, unsigned count)
{
	struct vb_cm_message request = req_received;
	const struct qp1_mad arrived = { .from = theirs(), .to = ours(), .cm = &request };
	struct vb_gid from, to;
	unsigned farewells = 0;
	for (request.local_id = 1; request.local_id <= count; request.local_id++)
		orphans_note_received(orphans, client, &arrived, false);
	while (client == CLIENT && orphans_next_farewell(orphans, client, &from, &to, mad))
		farewells++;
	return farewells;
}

/* What many have takes nothing from who has little. */
static void connections__of_all_are_bounded(void **state)
{
	assert_int_equal(ask(*state, CLIENT, 16384), 16384);
	for (uint32_t client = 100; client < 120; client++)
		ask(*state, client, 16384);
	assert_int_equal(ask(*state, CLIENT, 16384), 256);
}

/* CPU milliseconds that as many requests cost, of which each one's ID is the one before times factor. */
static double cost(struct orphans *orphans, uint32_t factor)
{
	clock_t begin = clock();
	struct vb_cm_message request = req_received;
	for (uint32_t i = 1; i <= 16384; i++) {
		request.local_id = (i & 0x3fff) * factor;
		request.transaction_id = i;
		received(orphans, request);
	}
	return (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
}

/* Whatever a multiplication makes of them. */
static void ids__that_are_chosen_cost_no_more_than_others(void **state)
{
	struct orphans *other = orphans_create();
	double usual = cost(other, 1), chosen = cost(*state, 0x0e8b2f51u); /* times 0x9E3779B1 it is 1 */
	orphans_destroy(other);
	assert_true(chosen < 10 * usual + 50);
}

static void unanswered_request__is_rejected(void **state)
{
	received(*state, req_received);
	struct vb_cm_message last = farewell(*state);
	assert_int_equal(last.kind, VB_CM_REJ);
	assert_int_equal(last.remote_id, 8);
	assert_int_equal(last.transaction_id, 80);
	assert_int_equal(last.rej.reason, VB_CM_REJ_CONSUMER);
}

static void ended_connections__are_forgotten(void **state)
{
	sent(*state, req_sent);
	received(*state, rep_received);
	sent(*state, (struct vb_cm_message){ .kind = VB_CM_DREQ, .local_id = 5, .remote_id = 6 });
	received(*state, req_received);
	sent(*state, rep_sent);
	sent(*state, (struct vb_cm_message){ .kind = VB_CM_DREP, .local_id = 9, .remote_id = 8 });
	assert_silent(*state);
}

static void rejected_requests__are_forgotten(void **state)
{
	sent(*state, req_sent);
	received(*state, (struct vb_cm_message){ .kind = VB_CM_REJ, .local_id = 77, .remote_id = 5 });
	received(*state, req_received);
	sent(*state, (struct vb_cm_message){ .kind = VB_CM_REJ, .local_id = 9, .remote_id = 8 });
	assert_silent(*state);
}

/* Before our answer, and when that was lost. */
static void request_given_up__is_forgotten(void **state)
{
	const struct vb_cm_message given_up = { .kind = VB_CM_REJ, .local_id = req_received.local_id };
	received(*state, req_received);
	received(*state, given_up);
	assert_silent(*state);
	received(*state, req_received);
	sent(*state, rep_sent);
	received(*state, req_received);
	received(*state, given_up);
	assert_silent(*state);
}

/* One that this process did not answer, and that came again and went to another of its family. */
static void request_that_another_got__is_forgotten(void **state)
{
	const struct qp1_mad arrived = { .from = theirs(), .to = ours(), .cm = &req_received };
	received(*state, req_received);
	assert_true(orphans_note_passed_to_another(*state, CLIENT, &arrived));
	assert_false(orphans_note_passed_to_another(*state, CLIENT, &arrived));
	assert_silent(*state);
	received(*state, req_received);
	sent(*state, rep_sent);
	assert_false(orphans_note_passed_to_another(*state, CLIENT, &arrived)); /* a connection stays one */
	assert_int_equal(farewell(*state).kind, VB_CM_DREQ);
}

static void nonsense__is_not_remembered(void **state)
{
	struct vb_gid from = ours(), to = theirs();
	orphans_note_sent(*state, 100000, &from, &to, &req_sent);
	received(*state, rep_received);
	sent(*state, rep_sent);
	assert_silent(*state);
}

/* ---- Requests that another may have ------------------------------------------------------------------------------ */

static void received_by_one_of_several(struct orphans *orphans, struct vb_cm_message message)
{
	uint8_t bytes[VB_MAD_LENGTH];
	const struct qp1_mad arrived = { .from = theirs(), .to = ours(), .cm = &message, .bytes = bytes };
	vb_cm_encode(&message, bytes);
	orphans_note_received(orphans, CLIENT, &arrived, true);
	memset(bytes, 0xff, sizeof(bytes)); /* as the next one that comes */
}

static void request__that_was_not_answered_is_anothers(void **state)
{
	struct orphans_request request;
	struct vb_cm_message message;
	received_by_one_of_several(*state, req_received);
	received_by_one_of_several(*state, req_received); /* asked again */
	assert_false(orphans_next_request(*state, CLIENT + 1, &request));
	assert_true(orphans_next_request(*state, CLIENT, &request));
	assert_true(vb_cm_decode(&message, request.mad.bytes));
	assert_int_equal(message.local_id, req_received.local_id);
	assert_int_equal(request.mad.cm->req.qpn, req_received.req.qpn);
	assert_false(orphans_next_request(*state, CLIENT, &request));
	assert_silent(*state); /* who asked is told by the other */
}

static void request__that_was_answered_is_nobody_elses(void **state)
{
	struct orphans_request request;
	received_by_one_of_several(*state, req_received);
	sent(*state, rep_sent);
	assert_false(orphans_next_request(*state, CLIENT, &request));
	assert_int_equal(farewell(*state).kind, VB_CM_DREQ);
}

static void requests__are_kept_up_to_a_bound(void **state)
{
	struct orphans_request request;
	struct vb_cm_message message = req_received;
	unsigned kept = 0;
	for (unsigned i = 0; i < ORPHANS_KEPT + 10; i++) {
		message.local_id = 1000 + i;
		received_by_one_of_several(*state, message);
	}
	while (orphans_next_request(*state, CLIENT, &request))
		kept++;
	assert_int_equal(kept, ORPHANS_KEPT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(active_end__is_disconnected),
		TEST(passive_end__is_disconnected),
		TEST(connections__of_all_are_bounded),
		TEST(ids__that_are_chosen_cost_no_more_than_others),
		TEST(unanswered_request__is_rejected),
		TEST(ended_connections__are_forgotten),
		TEST(rejected_requests__are_forgotten),
		TEST(request_given_up__is_forgotten),
		TEST(request_that_another_got__is_forgotten),
		TEST(nonsense__is_not_remembered),
		TEST(request__that_was_not_answered_is_anothers),
		TEST(request__that_was_answered_is_nobody_elses),
		TEST(requests__are_kept_up_to_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
