/* Connections of ids without QPs, as UCX and libfabric make them: both ends in this process, their messages over the
 * real connection manager. */
#include <pthread.h>
#include "loop.h"
#include "rdmacm/family.h"

enum { PORT = 7471 };

static struct rdma_event_channel *passive, *active;
static struct rdma_cm_id *listener, *id;

static int setup_at(void **state, enum rdma_port_space ps, const char *listens, const char *reached)
{
	int error = loop_setup(state);
	passive = rdma_create_event_channel();
	active = rdma_create_event_channel();
	if (error || !passive || !active || rdma_create_id(passive, &listener, (void *)&listener, ps) ||
		rdma_create_id(active, &id, NULL, ps))
		return -1;
	return rdma_bind_addr(listener, loop_address(listens, PORT)) || rdma_listen(listener, 2) ||
	       rdma_resolve_addr(id, NULL, loop_address(reached, PORT), 1) || rdma_resolve_route(id, 1);
}

static int setup_space(void **state, enum rdma_port_space ps)
{
	return setup_at(state, ps, "10.0.0.1", "10.0.0.1");
}

/* No device has that address. */
static int setup_loopback(void **state)
{
	return setup_at(state, RDMA_PS_TCP, "127.0.0.1", "127.0.0.1");
}

static int setup_loopback_datagram(void **state)
{
	return setup_at(state, RDMA_PS_UDP, "127.0.0.1", "127.0.0.1");
}

static int setup_listener_at_loopback(void **state)
{
	return setup_at(state, RDMA_PS_TCP, "127.0.0.1", "10.0.0.1");
}

static int setup_ipv6(void **state)
{
	return setup_at(state, RDMA_PS_TCP, "fd00::1", "fd00::1");
}

static int setup(void **state)
{
	return setup_space(state, RDMA_PS_TCP);
}

static int setup_datagram(void **state)
{
	return setup_space(state, RDMA_PS_UDP);
}

static int teardown(void **state)
{
	if (id)
		rdma_destroy_id(id);
	if (listener)
		rdma_destroy_id(listener);
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
	return loop_teardown(state);
}

static struct rdma_conn_param parameters(const char *data)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)strlen(data),
		.responder_resources = 3,
		.initiator_depth = 2,
		.flow_control = 1,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.qp_num = 0x1234,
	};
}

static void connect_with(const char *data)
{
	struct rdma_conn_param param = parameters(data);
	loop_expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(id, &param), 0);
}

static struct rdma_cm_id *accept_with(const char *data)
{
	struct rdma_conn_param param = parameters(data);
	param.qp_num = 0x5678;
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_accept(request, &param), 0);
	return request;
}

static struct rdma_cm_id *establish(void)
{
	connect_with("");
	struct rdma_cm_id *request = accept_with("");
	loop_expect(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_establish(id), 0);
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0), request);
	return request;
}

static void expect_loopback(const struct sockaddr *addr)
{
	struct vb_gid loopback = vb_gid_from_ipv4(127, 0, 0, 1), gid = vb_sockaddr_gid(addr);
	assert_memory_equal(gid.raw, loopback.raw, sizeof(gid.raw));
}

/* What the peers say is 127.0.0.1, and what carries it is the device's address. */
static void loopback__of_no_device_is_listened_at_and_reached(void **state)
{
	struct rdma_cm_id *request = establish();
	expect_loopback(rdma_get_local_addr(request));
	expect_loopback(rdma_get_peer_addr(request));
	assert_int_equal(request->route.addr.addr.ibaddr.sgid.raw[12], 10);
	assert_int_equal(request->route.addr.addr.ibaddr.dgid.raw[12], 10);
	assert_int_equal(rdma_get_dst_port(request), rdma_get_src_port(id));
	rdma_destroy_id(request);
}

static void loopback__serves_datagrams(void **state)
{
	connect_with("");
	struct rdma_cm_id *request = accept_with("");
	expect_loopback(rdma_get_local_addr(request));
	loop_expect(active, RDMA_CM_EVENT_ESTABLISHED, 0);
	rdma_destroy_id(request);
}

/* As a socket bound to 127.0.0.1 is not reached at the host's other addresses. */
static void loopback__listener_is_not_at_the_devices_address(void **state)
{
	connect_with("");
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 8);
	assert_false(loop_is_readable(passive));
}

static void request__shows_who_and_what(void **state)
{
	struct rdma_cm_event *event;

	connect_with("hello");
	assert_int_equal(rdma_get_cm_event(passive, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(event->listen_id, listener);
	assert_ptr_equal(event->id->context, &listener);
	assert_non_null(event->id->verbs);
	assert_memory_equal(event->param.conn.private_data, "hello", 6);
	assert_int_equal(event->param.conn.private_data_len, 56);
	/* What one side will do, the other must bear. */
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	assert_int_equal(event->param.conn.retry_count, 5);
	assert_int_equal(event->param.conn.rnr_retry_count, 6);
	assert_int_equal(event->param.conn.qp_num, 0x1234);
	assert_int_equal(rdma_get_src_port(event->id), htons(PORT));
	assert_int_equal(rdma_get_dst_port(event->id), rdma_get_src_port(id));
	struct rdma_cm_id *request = event->id;
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_destroy_id(request), 0);
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 28);
}

static void expect_address(struct sockaddr *seen, const char *ip, uint16_t port)
{
	struct sockaddr *wanted = loop_address(ip, port);
	assert_int_equal(seen->sa_family, wanted->sa_family);
	assert_memory_equal(seen, wanted, sizeof(struct sockaddr_in));
}

static void request__is_of_the_address_that_it_came_from(void **state)
{
	loop_claim("10.9.9.9");
	connect_with("");
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	expect_address(rdma_get_peer_addr(request), "10.0.0.1", 7);
	expect_address(rdma_get_local_addr(request), "10.0.0.1", PORT);
	assert_int_equal(rdma_destroy_id(request), 0);
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 28);
}

static void request__of_ipv6_has_ipv6_names(void **state)
{
	struct rdma_cm_id *request = establish();
	struct sockaddr_in6 *seen = (struct sockaddr_in6 *)rdma_get_peer_addr(request);
	struct sockaddr_in6 *wanted = (struct sockaddr_in6 *)loop_address("fd00::1", 0);

	assert_int_equal(seen->sin6_family, AF_INET6);
	assert_memory_equal(&seen->sin6_addr, &wanted->sin6_addr, sizeof(seen->sin6_addr));
	assert_int_equal(rdma_get_dst_port(request), rdma_get_src_port(id));
	assert_int_equal(rdma_get_local_addr(request)->sa_family, AF_INET6);
	assert_int_equal(rdma_get_src_port(request), htons(PORT));
	rdma_destroy_id(request);
}

static void reply__tells_the_active_side_which_qp(void **state)
{
	struct rdma_cm_event *event;

	connect_with("");
	struct rdma_cm_id *request = accept_with("reply");
	assert_int_equal(rdma_get_cm_event(active, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event->param.conn.qp_num, 0x5678);
	assert_int_equal(event->param.conn.private_data_len, 196);
	assert_memory_equal(event->param.conn.private_data, "reply", 6);
	rdma_ack_cm_event(event);
	rdma_destroy_id(request);
}

static void attributes__of_both_sides_fit_together(void **state)
{
	struct rdma_cm_id *request = establish();
	struct ibv_qp_attr mine = { .qp_state = IBV_QPS_RTR }, theirs = { .qp_state = IBV_QPS_RTS };
	int mask;

	assert_int_equal(rdma_init_qp_attr(id, &mine, &mask), 0);
	assert_true(mask & IBV_QP_AV && mask & IBV_QP_PATH_MTU && mask & IBV_QP_MAX_DEST_RD_ATOMIC);
	assert_int_equal(mine.dest_qp_num, 0x5678);
	assert_int_equal(mine.path_mtu, IBV_MTU_1024);
	assert_int_equal(mine.ah_attr.is_global, 1);
	assert_int_equal(rdma_init_qp_attr(request, &theirs, &mask), 0);
	assert_int_equal(theirs.sq_psn, mine.rq_psn);
	assert_int_equal(theirs.retry_cnt, 5);
	assert_int_equal(theirs.rnr_retry, 6);
	assert_int_equal(theirs.timeout, 17);
	assert_int_equal(theirs.max_rd_atomic, 2);
	assert_int_equal(mine.max_dest_rd_atomic, 2);
	theirs = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR };
	mine = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS };
	assert_int_equal(rdma_init_qp_attr(id, &mine, &mask), 0);
	assert_int_equal(rdma_init_qp_attr(request, &theirs, &mask), 0);
	assert_int_equal(theirs.rq_psn, mine.sq_psn);
	assert_int_equal(theirs.dest_qp_num, 0x1234);
	rdma_destroy_id(request);
}

static void attributes__are_known_before_accepting(void **state)
{
	struct ibv_qp_attr early = { .qp_state = IBV_QPS_RTR }, late = early;
	int mask;

	connect_with("");
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_init_qp_attr(request, &early, &mask), 0);
	assert_int_equal(early.max_dest_rd_atomic, 2);
	assert_int_equal(rdma_accept(request, NULL), 0);
	assert_int_equal(rdma_init_qp_attr(request, &late, &mask), 0);
	assert_int_equal(early.rq_psn, late.rq_psn);
	rdma_destroy_id(request);
}

static void disconnect__is_seen_by_both_and_timewait_ends(void **state)
{
	struct rdma_cm_id *request = establish();
	assert_int_equal(rdma_disconnect(id), 0);
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_DISCONNECTED, 0), request);
	assert_int_equal(rdma_disconnect(request), 0);
	loop_expect(active, RDMA_CM_EVENT_DISCONNECTED, 0);
	loop_pass(600 * VB_S);
	loop_expect(active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), request);
	rdma_destroy_id(request);
}

static void destroy__disconnects(void **state)
{
	struct rdma_cm_id *request = establish();
	assert_int_equal(rdma_destroy_id(request), 0);
	loop_expect(active, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void reject__carries_its_data(void **state)
{
	struct rdma_cm_event *event;

	connect_with("");
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_reject(request, "no", 3), 0);
	assert_int_equal(rdma_get_cm_event(active, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_int_equal(event->param.conn.private_data_len, 148);
	assert_memory_equal(event->param.conn.private_data, "no", 3);
	rdma_ack_cm_event(event);
	rdma_destroy_id(request);
}

static void connect__nobody_listens_is_rejected_by_service(void **state)
{
	rdma_destroy_id(listener);
	listener = NULL;
	connect_with("");
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 8);
}

static void connect__silence_is_unreachable(void **state)
{
	loop_lose(true);
	connect_with("");
	assert_false(loop_is_readable(active));
	loop_pass(600 * VB_S);
	loop_expect(active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

static void connect__parameters_are_checked(void **state)
{
	struct rdma_conn_param param = parameters("");
	loop_expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	char data[64] = { 0 };
	param.private_data = data;
	param.private_data_len = 57;
	assert_int_equal(rdma_connect(id, &param), -1);
	assert_int_equal(errno, EINVAL);
	param.private_data_len = 56;
	param.responder_resources = 17;
	assert_int_equal(rdma_connect(id, &param), -1);
	assert_int_equal(errno, EINVAL);
	param.responder_resources = RDMA_MAX_RESP_RES;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(rdma_connect(id, &param), -1); /* once */
	struct rdma_cm_event *event;
	assert_int_equal(rdma_get_cm_event(passive, &event), 0);
	assert_int_equal(event->param.conn.responder_resources, 8);
	assert_int_equal(event->param.conn.initiator_depth, 16);
	struct rdma_cm_id *request = event->id;
	rdma_ack_cm_event(event);
	rdma_destroy_id(request);
}

static void connect__in_a_forked_child_is_refused(void **state)
{
	loop_expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	loop_fork(true);
	assert_int_equal(rdma_connect(id, NULL), -1);
	assert_int_equal(errno, EPERM);
	loop_fork(false);
}

/* The connection manager's part of the first stays in TIMEWAIT, and is none of the second's. */
static void reject__of_a_reply_leaves_an_id_that_may_connect_again(void **state)
{
	connect_with("");
	struct rdma_cm_id *request = accept_with("");
	loop_expect(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_reject(id, NULL, 0), 0);
	loop_expect(passive, RDMA_CM_EVENT_REJECTED, 28);
	rdma_destroy_id(request);
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("10.0.0.1", PORT), 1), 0);
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	connect_with("");
	request = accept_with("");
	loop_expect(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_establish(id), 0);
	loop_expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	loop_pass(60 * VB_S);
	assert_false(loop_is_readable(active));
	rdma_destroy_id(request);
}

/* Three ask, two may wait; the third is not refused, but asks again. */
static void backlog__is_a_bound(void **state)
{
	struct rdma_cm_id *more[2];
	connect_with("");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdma_create_id(NULL, &more[i], NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(more[i], NULL, loop_address("10.0.0.1", PORT), 1), 0);
		assert_int_equal(rdma_resolve_route(more[i], 1), 0);
		assert_int_equal(rdma_migrate_id(more[i], active), 0);
		assert_int_equal(rdma_connect(more[i], NULL), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_destroy_id(loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0)), 0);
	assert_false(loop_is_readable(passive));
	assert_ptr_equal(loop_expect(active, RDMA_CM_EVENT_REJECTED, 28), id);
	assert_ptr_equal(loop_expect(active, RDMA_CM_EVENT_REJECTED, 28), more[0]);
	assert_false(loop_is_readable(active));
	loop_pass(101 * VB_MS);
	struct rdma_cm_id *third = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_accept(third, NULL), 0);
	assert_ptr_equal(loop_expect(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), more[1]);
	rdma_destroy_id(third);
	for (int i = 0; i < 2; i++)
		rdma_destroy_id(more[i]);
}

static void destroy_listener__rejects_what_waits(void **state)
{
	connect_with("");
	assert_true(loop_is_readable(passive));
	rdma_destroy_id(listener);
	listener = NULL;
	assert_false(loop_is_readable(passive));
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 28);
}

static void migrate_listener__takes_its_requests_along(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	connect_with("");
	assert_int_equal(rdma_migrate_id(listener, other), 0);
	assert_false(loop_is_readable(passive));
	struct rdma_cm_id *request = loop_expect(other, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(request->channel, other);
	rdma_destroy_id(request);
	assert_int_equal(rdma_migrate_id(listener, passive), 0);
	rdma_destroy_event_channel(other);
}

static void assert_fails(int result, int error)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, error);
}

/* The program learns it when it answers, for until then the id has the listener's context. */
static void expect_lost(struct rdma_cm_id *request)
{
	assert_false(loop_is_readable(passive));
	assert_ptr_equal(request->context, &listener);
	assert_fails(rdma_accept(request, NULL), EINVAL);
	assert_fails(rdma_reject(request, NULL, 0), EINVAL);
	loop_pass(60 * VB_S);
	assert_false(loop_is_readable(passive));
	rdma_destroy_id(request);
}

static void request__given_up_before_it_is_fetched_is_no_event(void **state)
{
	connect_with("");
	rdma_destroy_id(id);
	id = NULL;
	expect_lost(loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0));
}

static void request__given_up_before_it_is_accepted_is_no_event(void **state)
{
	connect_with("");
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rdma_destroy_id(id);
	id = NULL;
	expect_lost(request);
}

static void request__given_up_after_it_is_accepted_is_an_event(void **state)
{
	connect_with("");
	struct rdma_cm_id *request = accept_with("");
	rdma_destroy_id(id);
	id = NULL;
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_REJECTED, VB_CM_REJ_CONSUMER), request);
	rdma_destroy_id(request);
}

/* A listener of rsockets, which drops it. */
static void request__given_up_is_an_event_where_it_is_wanted(void **state)
{
	vb_id_hear_lost_requests(listener);
	connect_with("");
	rdma_destroy_id(id);
	id = NULL;
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_REJECTED, VB_CM_REJ_TIMEOUT), request);
	rdma_destroy_id(request);
}

static void notify__establishes_when_the_confirmation_is_late(void **state)
{
	connect_with("");
	struct rdma_cm_id *request = accept_with("");
	assert_int_equal(rdma_notify(request, IBV_EVENT_COMM_EST), 0);
	loop_expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_notify(request, IBV_EVENT_COMM_EST), -1);
	assert_int_equal(errno, EISCONN);
	assert_int_equal(rdma_notify(request, IBV_EVENT_QP_FATAL), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(request);
}

static void get_request__fetches_a_synchronous_id(void **state)
{
	struct rdma_cm_id *request;

	connect_with("ep");
	assert_int_equal(rdma_get_request(listener, &request), -1); /* not synchronous */
	assert_int_equal(rdma_migrate_id(listener, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &request), 0);
	assert_int_equal(request->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_memory_equal(request->event->param.conn.private_data, "ep", 3);
	assert_ptr_not_equal(request->channel, listener->channel);
	assert_int_equal(rdma_reject(request, NULL, 0), 0);
	rdma_destroy_id(request);
}

static void ece__vendor_goes_to_the_peer(void **state)
{
	struct ibv_ece ece = { .vendor_id = 0x15B3 }, seen;
	assert_int_equal(rdma_set_local_ece(id, &ece), 0);
	connect_with("");
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_get_remote_ece(request, &seen), 0);
	assert_int_equal(seen.vendor_id, 0x15B3);
	assert_int_equal(rdma_reject_ece(request, NULL, 0), 0);
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 35);
	rdma_destroy_id(request);
}

static void datagram__service_is_found(void **state)
{
	struct rdma_cm_event *event;

	connect_with("who");
	assert_int_equal(rdma_get_cm_event(passive, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.ud.private_data_len, 180);
	assert_memory_equal(event->param.ud.private_data, "who", 4);
	struct rdma_cm_id *request = event->id;
	rdma_ack_cm_event(event);
	struct rdma_conn_param param = parameters("me");
	param.qp_num = 0x4321;
	assert_int_equal(rdma_accept(request, &param), 0);
	assert_int_equal(rdma_get_cm_event(active, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.ud.qp_num, 0x4321);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.ah_attr.is_global, 1);
	assert_int_equal(event->param.ud.ah_attr.port_num, 1);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_memory_equal(event->param.ud.private_data, "me", 3);
	rdma_ack_cm_event(event);
	rdma_destroy_id(request);
}

static void datagram__refusal_is_unreachable_with_its_status(void **state)
{
	connect_with("");
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_reject(request, NULL, 0), 0);
	loop_expect(active, RDMA_CM_EVENT_UNREACHABLE, 2);
	rdma_destroy_id(request);
}

static void datagram__silence_is_unreachable(void **state)
{
	loop_lose(true);
	connect_with("");
	loop_pass(600 * VB_S);
	loop_expect(active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

static void multicast__event_says_how_to_send(void **state)
{
	struct rdma_cm_event *event;
	struct sockaddr *group = loop_address("224.1.2.3", 0);

	loop_expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_join_multicast(id, loop_address("10.0.0.1", 0), NULL), -1);
	assert_int_equal(rdma_join_multicast(id, group, &group), 0);
	assert_int_equal(rdma_join_multicast(id, group, &group), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rdma_get_cm_event(active, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_ptr_equal(event->param.ud.private_data, &group);
	assert_int_equal(event->param.ud.qp_num, 0xFFFFFF);
	struct vb_gid gid = vb_gid_from_ipv4(224, 1, 2, 3);
	assert_memory_equal(event->param.ud.ah_attr.grh.dgid.raw, gid.raw, 16);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_leave_multicast(id, group), 0);
	assert_int_equal(rdma_leave_multicast(id, group), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	/* Left before its event was fetched: no event. */
	assert_int_equal(rdma_join_multicast(id, group, NULL), 0);
	assert_int_equal(rdma_leave_multicast(id, group), 0);
	assert_false(loop_is_readable(active));
}

static void connect_by_hand(const char *address, struct vb_cm_req req)
{
	struct vb_gid gid = vb_sockaddr_gid(loop_address(address, 0));
	struct vb_cm_path path = { gid, gid, 0 };
	struct id_object *object = vb_id_of(id);

	req.service_id = vb_cm_service_id(RDMA_PS_TCP, PORT);
	req.qpn = 5;
	assert_int_equal(vb_id_reserve_events(object), 0);
	struct vb_cm *cm = vb_connections_lock();
	assert_int_equal(vb_id_make_cm(object, cm), 0);
	assert_int_equal(vb_cm_connect(object->cm, &path, &req, vb_connections_now()), 0);
	vb_connections_unlock();
}

/* A request made by hand. */
static void request_at(const char *address, struct vb_cm_req req)
{
	connect_by_hand(address, req);
	loop_expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

/* No REJ is sent of it, but an event's status shall say that something is wrong. */
static void request__of_who_began_anew_is_rejected_with_a_reason(void **state)
{
	vb_id_hear_lost_requests(listener);
	struct vb_cm_req req = { .path_mtu = IBV_MTU_1024, .remote_timeout = 20 };
	struct vb_cm_ip_header header = { .src = vb_sockaddr_gid(loop_address("10.0.0.1", 0)), .dst = header.src };
	vb_cm_ip_header_encode(&header, req.private_data);
	request_at("10.0.0.1", req);
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	loop_lose(true); /* that the first one was given up */
	connect_by_hand("10.0.0.1", req);
	loop_lose(false);
	loop_pass(VB_S);
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_REJECTED, VB_CM_REJ_STALE_CONNECTION), request);
	rdma_destroy_id(request);
}

static void *connect_synchronously(void *unused)
{
	struct rdma_conn_param param = parameters("");
	return (void *)(intptr_t)(rdma_connect(id, &param) ? errno : 0);
}

static void synchronous__rejection_for_reason_0_is_one(void **state)
{
	pthread_t thread;
	void *error;
	loop_expect(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	pthread_create(&thread, NULL, connect_synchronously, NULL);
	assert_int_equal(poll(&(struct pollfd){ .fd = passive->fd, .events = POLLIN }, 1, 10000), 1);
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	vb_connections_lock();
	vb_cm_reject(vb_id_of(request)->cm, 0, NULL, 0, NULL, 0, vb_connections_now());
	vb_connections_unlock();
	pthread_join(thread, &error);
	assert_int_equal((intptr_t)error, ECONNREFUSED);
	rdma_destroy_id(request);
}

/* 92 bytes of nonsense where addresses should be. */
static void hostile__request_without_addresses_is_rejected(void **state)
{
	struct vb_cm_req req = { .path_mtu = IBV_MTU_1024 };
	memset(req.private_data, 0xEE, sizeof(req.private_data));
	request_at("10.0.0.1", req);
	assert_false(loop_is_readable(passive));
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 28);
}

/* Whoever polls the channel and then fetches would wait. */
static void request__that_cannot_be_served_is_no_event(void **state)
{
	struct vb_cm_req req = { .path_mtu = IBV_MTU_2048 };
	struct vb_cm_ip_header header = { .src = vb_sockaddr_gid(loop_address("10.0.0.1", 0)), .dst = header.src };
	vb_cm_ip_header_encode(&header, req.private_data);
	request_at("10.0.0.1", req);
	assert_false(loop_is_readable(passive));
	loop_expect(active, RDMA_CM_EVENT_REJECTED, VB_CM_REJ_INVALID_MTU);
}

static void request__to_an_address_of_no_device_is_no_event(void **state)
{
	struct vb_cm_req req = { .path_mtu = IBV_MTU_1024 };
	struct vb_cm_ip_header header = { .src = vb_sockaddr_gid(loop_address("10.0.0.9", 0)), .dst = header.src };
	vb_cm_ip_header_encode(&header, req.private_data);
	assert_int_equal(rdma_destroy_id(listener), 0);
	assert_int_equal(rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, loop_address("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_listen(listener, 2), 0);
	request_at("10.0.0.9", req);
	assert_false(loop_is_readable(passive));
	loop_expect(active, RDMA_CM_EVENT_REJECTED, 28);
}

int main(void)
{
#define TEST(name)     cmocka_unit_test_setup_teardown(name, setup, teardown)
#define DATAGRAM(name) cmocka_unit_test_setup_teardown(name, setup_datagram, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			loopback__of_no_device_is_listened_at_and_reached, setup_loopback, teardown),
		cmocka_unit_test_setup_teardown(loopback__serves_datagrams, setup_loopback_datagram, teardown),
		cmocka_unit_test_setup_teardown(
			loopback__listener_is_not_at_the_devices_address, setup_listener_at_loopback, teardown),
		TEST(request__shows_who_and_what),
		TEST(request__is_of_the_address_that_it_came_from),
		cmocka_unit_test_setup_teardown(request__of_ipv6_has_ipv6_names, setup_ipv6, teardown),
		TEST(reply__tells_the_active_side_which_qp),
		TEST(attributes__of_both_sides_fit_together),
		TEST(attributes__are_known_before_accepting),
		TEST(disconnect__is_seen_by_both_and_timewait_ends),
		TEST(destroy__disconnects),
		TEST(reject__carries_its_data),
		TEST(connect__nobody_listens_is_rejected_by_service),
		TEST(connect__silence_is_unreachable),
		TEST(connect__parameters_are_checked),
		TEST(connect__in_a_forked_child_is_refused),
		TEST(reject__of_a_reply_leaves_an_id_that_may_connect_again),
		TEST(backlog__is_a_bound),
		TEST(destroy_listener__rejects_what_waits),
		TEST(migrate_listener__takes_its_requests_along),
		TEST(request__given_up_before_it_is_fetched_is_no_event),
		TEST(request__given_up_before_it_is_accepted_is_no_event),
		TEST(request__given_up_after_it_is_accepted_is_an_event),
		TEST(request__given_up_is_an_event_where_it_is_wanted),
		TEST(notify__establishes_when_the_confirmation_is_late),
		TEST(get_request__fetches_a_synchronous_id),
		TEST(request__of_who_began_anew_is_rejected_with_a_reason),
		TEST(synchronous__rejection_for_reason_0_is_one),
		TEST(ece__vendor_goes_to_the_peer),
		DATAGRAM(datagram__service_is_found),
		DATAGRAM(datagram__refusal_is_unreachable_with_its_status),
		DATAGRAM(datagram__silence_is_unreachable),
		DATAGRAM(multicast__event_says_how_to_send),
		TEST(request__that_cannot_be_served_is_no_event),
		TEST(request__to_an_address_of_no_device_is_no_event),
		TEST(hostile__request_without_addresses_is_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
