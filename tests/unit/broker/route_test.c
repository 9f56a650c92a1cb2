/* Where the connection manager's MADs go. */
#include <errno.h>
#include "../unit.h"
#include "broker/route.h"
#include "wire/mad.h"

static struct registry registry;
static struct exchanges asked;
static uint8_t mad[VB_MAD_LENGTH];

static struct route route(struct ports *ports, const struct vb_cm_message *message)
{
	const struct qp1_mad arrived = {
		.from = vb_gid_from_ipv4(10, 0, 0, 2), .to = vb_gid_from_ipv4(10, 0, 0, 1), .cm = message
	};
	return route_cm(ports, &registry, &asked, &arrived);
}

static int setup(void **state)
{
	registry_init(&registry, -1);
	*state = ports_create();
	exchanges_init(&asked);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	ports_destroy(*state);
	return 0;
}

static const struct vb_cm_message request = {
	.kind = VB_CM_REQ, .transaction_id = 99, .local_id = 0x1234, .req = { .service_id = 0x01060000ull | 7471 }
};

static void request__goes_to_the_listener(void **state)
{
	struct port_binding binding = { .client = 3, .number = 1, .port_space = VB_CM_PS_TCP, .port = 7471 };
	assert_int_equal(ports_bind(*state, &binding), 0);
	assert_int_equal(ports_listen(*state, 3, 1, false), 0);
	struct route found = route(*state, &request);
	assert_int_equal(found.verdict, ROUTE_TO_CLIENT);
	assert_int_equal(found.client, 3);
}

static void request__that_comes_again_goes_to_the_same_of_a_family(void **state)
{
	const struct vb_gid from = vb_gid_from_ipv4(10, 0, 0, 2);
	for (uint32_t client = 3; client <= 4; client++) {
		struct port_binding binding = {
			.client = client, .number = 1, .port_space = VB_CM_PS_TCP, .port = 7471, .family = 5
		};
		assert_int_equal(ports_bind(*state, &binding), 0);
		assert_int_equal(ports_listen(*state, client, 1, true), 0);
	}
	exchanges_note_request(&asked, 4, &from, request.local_id, request.transaction_id);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(route(*state, &request).client, 4);
}

/* Within a host no device need have the loopback address that a listener has; from outside it is no way in. */
static void request__names_loopback_within_its_host_alone(void **state)
{
	const struct vb_gid loopback = vb_gid_from_ipv4(127, 0, 0, 1), own = vb_gid_from_ipv4(10, 0, 0, 1);
	const struct vb_gid other = vb_gid_from_ipv4(10, 0, 0, 2);
	struct port_binding binding = {
		.client = 3, .number = 1, .port_space = VB_CM_PS_TCP, .port = 7471, .address = loopback
	};
	struct vb_cm_message asks = request;
	struct vb_cm_ip_header header = { .src = loopback, .dst = loopback };

	assert_int_equal(ports_bind(*state, &binding), 0);
	assert_int_equal(ports_listen(*state, 3, 1, true), 0);
	vb_cm_ip_header_encode(&header, asks.req.private_data);
	struct qp1_mad arrived = { .from = own, .to = own, .cm = &asks };
	struct route found = route_cm(*state, &registry, &asked, &arrived);
	assert_int_equal(found.verdict, ROUTE_TO_CLIENT);
	assert_int_equal(found.client, 3);
	arrived.from = other;
	assert_int_equal(route_cm(*state, &registry, &asked, &arrived).verdict, ROUTE_TO_NOBODY);
	arrived.from = own;
	header.dst = own;
	vb_cm_ip_header_encode(&header, asks.req.private_data);
	assert_int_equal(route_cm(*state, &registry, &asked, &arrived).verdict, ROUTE_TO_NOBODY);
}

static void request__for_nobody_is_refused(void **state)
{
	struct vb_cm_message answer;
	struct route found = route(*state, &request);
	assert_int_equal(found.verdict, ROUTE_TO_NOBODY);
	assert_true(vb_cm_decode(&answer, found.answer));
	assert_int_equal(answer.kind, VB_CM_REJ);
	assert_int_equal(answer.transaction_id, 99);
	assert_int_equal(answer.remote_id, 0x1234);
	assert_int_equal(answer.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
}

static void listen_at_the_port(struct ports *ports, uint32_t client)
{
	struct port_binding binding = { .client = client, .number = 1, .port_space = VB_CM_PS_TCP, .port = 7471 };
	assert_int_equal(ports_bind(ports, &binding), 0);
	assert_int_equal(ports_listen(ports, client, 1, true), 0);
}

static void request__refused_is_refused_again(void **state)
{
	const struct vb_gid from = vb_gid_from_ipv4(10, 0, 0, 2);
	struct vb_cm_message next = request;
	exchanges_note_request(&asked, EXCHANGES_REFUSED, &from, request.local_id, request.transaction_id);
	listen_at_the_port(*state, 3);
	assert_int_equal(route(*state, &request).verdict, ROUTE_REFUSED);
	next.transaction_id++; /* of the same ID, but another */
	assert_int_equal(route(*state, &next).client, 3);
}

static void request__answered_is_for_who_answered_it(void **state)
{
	const struct vb_gid from = vb_gid_from_ipv4(10, 0, 0, 2);
	exchanges_note_request(&asked, 4, &from, request.local_id, request.transaction_id);
	assert_int_equal(route(*state, &request).client, 4); /* nobody else could answer */
	listen_at_the_port(*state, 3);
	assert_int_equal(route(*state, &request).client, 3);
	exchanges_note_answered(&asked, 4, &from, request.local_id);
	assert_int_equal(route(*state, &request).client, 4);
	exchanges_refuse_client(&asked, 4);
	assert_int_equal(route(*state, &request).verdict, ROUTE_REFUSED);
}

static void sidr_request__for_nobody_is_not_supported(void **state)
{
	const struct vb_cm_message sidr = {
		.kind = VB_CM_SIDR_REQ, .local_id = 7, .sidr_req = { .service_id = vb_cm_service_id(VB_CM_PS_UDP, 5) }
	};
	struct vb_cm_message answer;
	struct route found = route(*state, &sidr);
	assert_int_equal(found.verdict, ROUTE_TO_NOBODY);
	assert_true(vb_cm_decode(&answer, found.answer));
	assert_int_equal(answer.kind, VB_CM_SIDR_REP);
	assert_int_equal(answer.remote_id, 7);
	assert_int_equal(answer.sidr_rep.status, VB_CM_SIDR_UNSUPPORTED);
}

static void answer__goes_to_the_slot_of_its_communication_id(void **state)
{
	const struct vb_cm_message rtu = { .kind = VB_CM_RTU, .local_id = 1, .remote_id = 0x2A000007 };
	assert_int_equal(route(*state, &rtu).verdict, ROUTE_DROPPED);
	registry.slots[0x2A].user = 11;
	struct route found = route(*state, &rtu);
	assert_int_equal(found.verdict, ROUTE_TO_CLIENT);
	assert_int_equal(found.client, 11);
}

static void answer__for_a_process_that_is_gone(void **state)
{
	struct vb_cm_message answer;
	const struct vb_cm_message dreq = {
		.kind = VB_CM_DREQ, .transaction_id = 5, .local_id = 1, .remote_id = 0x2C000007
	};
	struct route found = route(*state, &dreq);
	assert_int_equal(found.verdict, ROUTE_TO_NOBODY);
	assert_true(vb_cm_decode(&answer, found.answer));
	assert_int_equal(answer.kind, VB_CM_DREP);
	assert_int_equal(answer.transaction_id, 5);
	assert_int_equal(answer.local_id, 0x2C000007);
	assert_int_equal(answer.remote_id, 1);
	const struct vb_cm_message rep = { .kind = VB_CM_REP, .local_id = 1, .remote_id = 0x2C000007 };
	found = route(*state, &rep);
	assert_int_equal(found.verdict, ROUTE_TO_NOBODY);
	assert_true(vb_cm_decode(&answer, found.answer));
	assert_int_equal(answer.kind, VB_CM_REJ);
	assert_int_equal(answer.rej.reason, VB_CM_REJ_INVALID_COMM_ID);
}

/* A request of the peer's that client 4 received. */
static void receive_request(struct vb_gid from, uint32_t id)
{
	exchanges_note_request(&asked, 4, &from, id, 99);
}

static void request_given_up__goes_to_who_received_it(void **state)
{
	const struct vb_cm_message rej = { .kind = VB_CM_REJ, .local_id = 0x1234, .rej.reason = VB_CM_REJ_TIMEOUT };
	receive_request(vb_gid_from_ipv4(10, 0, 0, 3), 0x1234); /* another host's */
	receive_request(vb_gid_from_ipv4(10, 0, 0, 2), 0x1235);
	assert_int_equal(route(*state, &rej).verdict, ROUTE_DROPPED);
	receive_request(vb_gid_from_ipv4(10, 0, 0, 2), 0x1234);
	struct route found = route(*state, &rej);
	assert_int_equal(found.verdict, ROUTE_TO_CLIENT);
	assert_int_equal(found.client, 4);
}

static void failure__is_told_to_who_sent_the_request(void **state)
{
	struct vb_cm_message sent = request;
	const struct qp1_failure failure = { .error = EHOSTUNREACH, .bytes = mad };
	static struct exchanges asking;
	sent.local_id = 0x2B000009;
	vb_cm_encode(&sent, mad);
	assert_int_equal(route_failure(&registry, &asking, &failure), -1);
	registry.slots[0x2B].user = 12;
	assert_int_equal(route_failure(&registry, &asking, &failure), 12);
}

static void failure__is_told_to_who_asked(void **state)
{
	const struct vb_discovery question = { .version = VB_DISCOVERY_VERSION, .transaction_id = 77, .qpn = 0x1a2 };
	const struct qp1_failure failure = { .to = vb_gid_from_ipv4(10, 0, 0, 2), .error = ECONNREFUSED, .bytes = mad };
	static struct exchanges asking;
	vb_discovery_encode(&question, mad);
	exchanges_init(&asking);
	exchanges_note(&asking, 9, &(struct vb_gid){ 0 }, 77); /* of another host */
	assert_int_equal(route_failure(&registry, &asking, &failure), -1);
	exchanges_note(&asking, 9, &failure.to, 77);
	assert_int_equal(route_failure(&registry, &asking, &failure), 9);
}

/* ---- Who may send what ------------------------------------------------------------------------------------------- */

static bool may_send(uint32_t client, struct vb_cm_message message)
{
	const struct vb_gid to = vb_gid_from_ipv4(10, 0, 0, 2);
	return route_may_send(&registry, &asked, client, &to, &message);
}

static void message__leaves_only_in_its_senders_name(void **state)
{
	static const enum vb_cm_kind kinds[] = { VB_CM_REQ, VB_CM_MRA, VB_CM_REJ, VB_CM_REP, VB_CM_RTU, VB_CM_DREQ,
		VB_CM_DREP, VB_CM_SIDR_REQ, VB_CM_LAP, VB_CM_APR };
	registry.slots[0x2A].user = 4;
	registry.slots[0x2B].user = 5;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct vb_cm_message message = { .kind = kinds[i], .local_id = 0x2A000007, .remote_id = 0x1234 };
		assert_true(may_send(4, message));
		assert_false(may_send(5, message));
		message.local_id = 0x2C000007; /* a slot of nobody's */
		assert_false(may_send(4, message));
		message.local_id = 0;
		assert_false(may_send(4, message));
	}
}

static void answer_without_an_id__needs_its_request(void **state)
{
	const struct vb_cm_message rej = { .kind = VB_CM_REJ, .remote_id = 0x1234 };
	const struct vb_cm_message sidr = { .kind = VB_CM_SIDR_REP, .remote_id = 0x1234 };
	const struct vb_cm_message drep = { .kind = VB_CM_DREP, .remote_id = 0x1234 };
	receive_request(vb_gid_from_ipv4(10, 0, 0, 3), 0x1234); /* another host's */
	assert_false(may_send(4, rej));
	receive_request(vb_gid_from_ipv4(10, 0, 0, 2), 0x1234);
	assert_true(may_send(4, rej));
	assert_true(may_send(4, sidr));
	assert_false(may_send(4, drep));
	assert_false(may_send(5, rej));
	assert_false(may_send(5, sidr));
	exchanges_refuse_client(&asked, 4);
	assert_false(may_send(4, rej));
}

/* With an ID of one's own, but to a request that another was passed. */
static void answer__to_anothers_request_is_refused(void **state)
{
	registry.slots[0x2A].user = 4;
	registry.slots[0x2B].user = 5;
	receive_request(vb_gid_from_ipv4(10, 0, 0, 2), 0x1234);
	static const enum vb_cm_kind kinds[] = { VB_CM_REP, VB_CM_MRA, VB_CM_REJ };
	for (unsigned i = 0; i < 3; i++) {
		struct vb_cm_message answer = { .kind = kinds[i], .local_id = 0x2A000001, .remote_id = 0x1234 };
		assert_true(may_send(4, answer));
		answer.local_id = 0x2B000001;
		assert_false(may_send(5, answer));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request__goes_to_the_listener),
		TEST(request__that_comes_again_goes_to_the_same_of_a_family),
		TEST(request__names_loopback_within_its_host_alone),
		TEST(request__for_nobody_is_refused),
		TEST(request__refused_is_refused_again),
		TEST(request__answered_is_for_who_answered_it),
		TEST(sidr_request__for_nobody_is_not_supported),
		TEST(answer__for_a_process_that_is_gone),
		TEST(request_given_up__goes_to_who_received_it),
		TEST(failure__is_told_to_who_sent_the_request),
		TEST(failure__is_told_to_who_asked),
		TEST(answer__goes_to_the_slot_of_its_communication_id),
		TEST(message__leaves_only_in_its_senders_name),
		TEST(answer_without_an_id__needs_its_request),
		TEST(answer__to_anothers_request_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
