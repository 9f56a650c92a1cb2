/* RDMA-CM: identifiers in every state, asked for what their state allows and for what it does not; and whoever reads a
 * channel answers what comes. All descriptors are non-blocking, and an event is acknowledged at once, so that no call
 * waits for another thread. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <rdma/rdma_verbs.h>

/* What RDMA-CM's pages name, and what the sockets and verbs under it answer. */
#define CM_ERRORS                                                                                                      \
	EINVAL, ENOMEM, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, ENODEV, ENOSYS, EACCES, EAGAIN, EBUSY, EOPNOTSUPP,    \
		ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EPROTONOSUPPORT, ENOPROTOOPT, EISCONN, ENOTCONN, ENOENT,      \
		EPERM, EPROTO, ETIMEDOUT, EMFILE

enum { PORTS = 5, FIRST_PORT = 7500 };

/* ---- Addresses --------------------------------------------------------------------------------------------------- */

static void make_address(struct worker *worker, struct sockaddr_storage *storage)
{
	static const char *const ipv4[] = { "127.0.0.1", "127.0.0.1", "127.0.0.1", "0.0.0.0", "127.0.0.2", "192.0.2.1",
		"224.0.0.5", "255.255.255.255" };
	static const char *const ipv6[] = { "::1", "::", "fe80::1", "2001:db8::1", "ff0e::1", "::ffff:127.0.0.1" };
	uint16_t port =
		htons(one_in(worker, 8) ? (uint16_t)boundary(worker) : (uint16_t)(FIRST_PORT + below(worker, PORTS)));
	memset(storage, 0, sizeof(*storage));
	if (!one_in(worker, 5)) {
		struct sockaddr_in *in = (struct sockaddr_in *)storage;
		*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
		inet_pton(AF_INET, PICK(worker, ipv4), &in->sin_addr);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;
		*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
		inet_pton(AF_INET6, PICK(worker, ipv6), &in6->sin6_addr);
		in6->sin6_scope_id = below(worker, 3);
	}
	if (one_in(worker, 20))
		storage->ss_family = (sa_family_t)boundary(worker);
}

static struct sockaddr *as_address(struct sockaddr_storage *storage)
{
	return (struct sockaddr *)storage;
}

/* ---- Channels and ids -------------------------------------------------------------------------------------------- */

static void create_channel(struct worker *worker)
{
	struct slot *slot = vacant(worker, CM_CHANNEL);
	if (!slot)
		return;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	if (!EXPECT_OBJECT(worker, channel, CM_ERRORS))
		return;
	REQUIRE(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	adopt(worker, slot, channel, NULL, 0);
}

/* Only an empty one: its page asks for that. */
static void destroy_channel(struct worker *worker)
{
	struct slot *slot = own(worker, CM_CHANNEL);
	if (!slot || atomic_load(&slot->children))
		return;
	rdma_destroy_event_channel(slot->object);
	vacate(slot);
}

static void create_id(struct worker *worker)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB,
		RDMA_PS_IPOIB };
	struct slot *channel = use(worker, CM_CHANNEL), *slot = channel ? vacant(worker, CM_ID) : NULL;
	struct rdma_cm_id *id = NULL;
	if (!slot)
		return;
	int rc = rdma_create_id(channel->object, &id, NULL,
		one_in(worker, 20) ? (enum rdma_port_space)boundary(worker) : PICK(worker, spaces));
	if (EXPECT_RC(worker, rc, CM_ERRORS))
		adopt(worker, slot, id, &channel, 1);
}

static int destroy(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	return rdma_destroy_id(id);
}

static void destroy_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	if (!slot)
		return;
	REQUIRE_EQUAL(destroy(slot->object), 0);
	vacate(slot);
}

static void migrate_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID), *channel = use(worker, CM_CHANNEL);
	if (!slot || !channel)
		return;
	if (!EXPECT_RC(worker, rdma_migrate_id(slot->object, channel->object), CM_ERRORS))
		return;
	struct slot *old = slot->parents[0];
	atomic_fetch_add(&channel->children, 1);
	slot->parents[0] = channel;
	atomic_fetch_sub(&old->children, 1);
}

int connection_destroy(struct slot *slot)
{
	switch (slot->kind) {
	case RSOCKET:
		return rclose(slot->fd) ? errno : 0;
	case CM_ID:
		return destroy(slot->object) ? errno : 0;
	default:
		rdma_destroy_event_channel(slot->object);
		return 0;
	}
}

/* ---- Before there is a connection -------------------------------------------------------------------------------- */

static void bind_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct sockaddr_storage address;
	if (!slot)
		return;
	make_address(worker, &address);
	EXPECT_RC(worker, rdma_bind_addr(slot->object, as_address(&address)), CM_ERRORS);
}

static void resolve_addr(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct sockaddr_storage source, destination;
	if (!slot)
		return;
	make_address(worker, &source);
	make_address(worker, &destination);
	EXPECT_RC(worker,
		rdma_resolve_addr(slot->object, one_in(worker, 6) ? as_address(&source) : NULL,
			as_address(&destination), one_in(worker, 8) ? (int)boundary(worker) : 500),
		CM_ERRORS);
}

static void resolve_route(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	if (slot)
		EXPECT_RC(worker, rdma_resolve_route(slot->object, one_in(worker, 8) ? (int)boundary(worker) : 500),
			CM_ERRORS);
}

static void listen_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	if (slot)
		EXPECT_RC(worker, rdma_listen(slot->object, one_in(worker, 3) ? (int)boundary(worker) : 8), CM_ERRORS);
}

/* With a domain of the device that RDMA-CM has not opened, which cannot be, or with its own. */
static void create_qp(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID), *pd = one_in(worker, 6) ? use(worker, PD) : NULL;
	if (!slot)
		return;
	struct ibv_qp_init_attr attr = { .cap = { below(worker, 64), below(worker, 64), below(worker, 8),
						 below(worker, 8), below(worker, 256) },
		.qp_type = one_in(worker, 10) ? (enum ibv_qp_type)boundary(worker)
					      : ((struct rdma_cm_id *)slot->object)->qp_type };
	EXPECT_RC(worker, rdma_create_qp(slot->object, pd ? pd->object : NULL, &attr), CM_ERRORS);
}

static void destroy_qp(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	if (slot && ((struct rdma_cm_id *)slot->object)->qp)
		rdma_destroy_qp(slot->object);
}

static void set_option(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	uint64_t value[8] = { boundary(worker) };
	static const size_t lengths[] = { 1, 4, 4, 0, 2, 8 };
	if (!slot)
		return;
	int level = one_in(worker, 8) ? (int)boundary(worker) : (int)below(worker, 2);
	int name = one_in(worker, 8) ? (int)boundary(worker) : (int)below(worker, 6);
	EXPECT_RC(worker, rdma_set_option(slot->object, level, name, value, PICK(worker, lengths)), CM_ERRORS);
}

static void look_up_names(struct worker *worker)
{
	static const char *const nodes[] = { "127.0.0.1", "::1", "localhost", "no.such.name.invalid.", "" };
	static const char *const services[] = { "7500", "70000", "0", "-1", "" };
	struct rdma_addrinfo hints = { .ai_flags = one_in(worker, 4) ? (int)boundary(worker) : RAI_NUMERICHOST,
		.ai_family = one_in(worker, 6) ? (int)boundary(worker) : 0,
		.ai_qp_type = one_in(worker, 4) ? (int)boundary(worker) : IBV_QPT_RC,
		.ai_port_space = one_in(worker, 4) ? (int)boundary(worker) : RDMA_PS_TCP },
			     *found = NULL;
	hints.ai_flags |= RAI_NUMERICHOST; /* nobody is asked outside */
	int rc = rdma_getaddrinfo(one_in(worker, 6) ? NULL : PICK(worker, nodes),
		one_in(worker, 6) ? NULL : PICK(worker, services), &hints, &found);
	if (rc == 0)
		rdma_freeaddrinfo(found);
	else
		REQUIRE(rc >= EAI_OVERFLOW - 100 && rc < 200);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static uint8_t private_data[256];

static struct rdma_conn_param parameters(struct worker *worker)
{
	return (struct rdma_conn_param){ .private_data = one_in(worker, 8) ? NULL : private_data,
		.private_data_len = one_in(worker, 3) ? (uint8_t)boundary(worker) : 0,
		.responder_resources = one_in(worker, 6) ? (uint8_t)boundary(worker) : 1,
		.initiator_depth = one_in(worker, 6) ? (uint8_t)boundary(worker) : 1,
		.flow_control = (uint8_t)boundary(worker),
		.retry_count = (uint8_t)boundary(worker),
		.rnr_retry_count = (uint8_t)boundary(worker),
		.srq = (uint8_t)below(worker, 2),
		.qp_num = one_in(worker, 2) ? 0 : (uint32_t)boundary(worker) };
}

static void connect_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct rdma_conn_param param = parameters(worker);
	if (slot)
		EXPECT_RC(worker, rdma_connect(slot->object, one_in(worker, 4) ? NULL : &param), CM_ERRORS);
}

static void accept_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct rdma_conn_param param = parameters(worker);
	if (slot)
		EXPECT_RC(worker, rdma_accept(slot->object, one_in(worker, 4) ? NULL : &param), CM_ERRORS);
}

static void reject_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	if (!slot)
		return;
	uint8_t length = (uint8_t)boundary(worker);
	const void *data = one_in(worker, 4) ? NULL : private_data;
	EXPECT_RC(worker,
		one_in(worker, 4) ? rdma_reject_ece(slot->object, data, length)
				  : rdma_reject(slot->object, data, length),
		CM_ERRORS);
}

static void end_id(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct ibv_ece ece = { 0 };
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)below(worker, 8) };
	int mask;
	if (!slot)
		return;
	switch (below(worker, 6)) {
	case 0:
		EXPECT_RC(worker, rdma_establish(slot->object), CM_ERRORS);
		break;
	case 1:
		EXPECT_RC(worker, rdma_notify(slot->object, (enum ibv_event_type)boundary(worker)), CM_ERRORS);
		break;
	case 2:
		EXPECT_RC(worker, rdma_init_qp_attr(slot->object, &attr, &mask), CM_ERRORS);
		break;
	case 3:
		EXPECT_RC(worker, rdma_get_remote_ece(slot->object, &ece), CM_ERRORS);
		EXPECT_RC(worker, rdma_set_local_ece(slot->object, &ece), CM_ERRORS);
		break;
	default:
		EXPECT_RC(worker, rdma_disconnect(slot->object), CM_ERRORS);
	}
	rdma_get_src_port(slot->object);
	rdma_get_dst_port(slot->object);
}

static void join_group(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct sockaddr_storage address;
	if (!slot)
		return;
	make_address(worker, &address);
	if (!one_in(worker, 3)) {
		struct sockaddr_in in = { .sin_family = AF_INET };
		inet_pton(AF_INET, "239.0.0.1", &in.sin_addr);
		memcpy(&address, &in, sizeof(in));
	}
	if (one_in(worker, 2))
		EXPECT_RC(worker, rdma_join_multicast(slot->object, as_address(&address), NULL), CM_ERRORS);
	else
		EXPECT_RC(worker, rdma_leave_multicast(slot->object, as_address(&address)), CM_ERRORS);
}

/* A new id is somebody's from now on, or is destroyed. */
static void take_request(struct worker *worker, struct slot *channel, struct rdma_cm_id *id)
{
	struct slot *slot = one_in(worker, 5) ? NULL : vacant(worker, CM_ID);
	if (!slot) {
		REQUIRE_EQUAL(rdma_destroy_id(id), 0);
		return;
	}
	adopt(worker, slot, id, &channel, 1);
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = id->qp_type };
	if (one_in(worker, 3))
		return; /* somebody may do what he likes with it */
	if (one_in(worker, 2))
		EXPECT_RC(worker, rdma_create_qp(id, NULL, &attr), CM_ERRORS);
	EXPECT_RC(worker, rdma_accept(id, &param), CM_ERRORS);
}

static void get_cm_event(struct worker *worker)
{
	struct slot *channel = use(worker, CM_CHANNEL);
	struct rdma_cm_event *event;
	for (unsigned i = 0; channel && i < 8; i++) {
		if (!EXPECT_RC(worker, rdma_get_cm_event(channel->object, &event), EAGAIN))
			return;
		REQUIRE(event->event <= RDMA_CM_EVENT_TIMEWAIT_EXIT);
		bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		struct rdma_cm_id *id = event->id;
		REQUIRE_EQUAL(rdma_ack_cm_event(event), 0);
		if (is_request)
			take_request(worker, channel, id);
	}
}

/* All that leads to a connection, which chance alone seldom finds. */
static void set_out(struct worker *worker)
{
	struct slot *slot = own(worker, CM_ID);
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)(FIRST_PORT + below(worker, PORTS))) };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_conn_param param = parameters(worker);
	if (!slot)
		return;
	struct rdma_cm_id *id = slot->object;
	attr.qp_type = id->qp_type;
	if (one_in(worker, 3)) {
		if (EXPECT_RC(worker, rdma_bind_addr(id, (struct sockaddr *)&to), CM_ERRORS))
			EXPECT_RC(worker, rdma_listen(id, 8), CM_ERRORS);
	} else if (EXPECT_RC(worker, rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 500), CM_ERRORS) &&
		   EXPECT_RC(worker, rdma_resolve_route(id, 500), CM_ERRORS)) {
		if (one_in(worker, 2))
			EXPECT_RC(worker, rdma_create_qp(id, NULL, &attr), CM_ERRORS);
		EXPECT_RC(worker, rdma_connect(id, &param), CM_ERRORS);
	}
}

/* An endpoint lives as long as this call: synchronous ids would wait for their peer. */
static void play_with_endpoint(struct worker *worker)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | (one_in(worker, 2) ? RAI_PASSIVE : 0),
		.ai_port_space = one_in(worker, 6) ? RDMA_PS_UDP : RDMA_PS_TCP },
			     *found = NULL;
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id = NULL;
	if (rdma_getaddrinfo("127.0.0.1", "7600", &hints, &found))
		return;
	int rc = rdma_create_ep(&id, found, NULL, one_in(worker, 2) ? &attr : NULL);
	rdma_freeaddrinfo(found);
	if (EXPECT_RC(worker, rc, CM_ERRORS))
		rdma_destroy_ep(id);
}

static void list_devices(struct worker *worker)
{
	int count = -1;
	struct ibv_context **list = rdma_get_devices(one_in(worker, 2) ? &count : NULL);
	REQUIRE(list);
	rdma_free_devices(list);
}

static const struct call calls[] = {
	{ "rdma_create_event_channel", create_channel, 3 },
	{ "rdma_destroy_event_channel", destroy_channel, 1 },
	{ "rdma_create_id", create_id, 14 },
	{ "rdma_destroy_id", destroy_id, 8 },
	{ "rdma_migrate_id", migrate_id, 3 },
	{ "rdma_bind_addr", bind_id, 4 },
	{ "rdma_resolve_addr", resolve_addr, 6 },
	{ "rdma_resolve_route", resolve_route, 5 },
	{ "rdma_listen", listen_id, 4 },
	{ "rdma_create_qp", create_qp, 6 },
	{ "rdma_destroy_qp", destroy_qp, 2 },
	{ "rdma_set_option", set_option, 3 },
	{ "rdma_getaddrinfo", look_up_names, 2 },
	{ "rdma_connect", connect_id, 6 },
	{ "rdma_accept", accept_id, 8 },
	{ "rdma_reject", reject_id, 3 },
	{ "rdma_disconnect and its like", end_id, 8 },
	{ "rdma_join_multicast", join_group, 3 },
	{ "rdma_get_cm_event", get_cm_event, 40 },
	{ "rdma_connect with all before", set_out, 14 },
	{ "rdma_create_ep", play_with_endpoint, 2 },
	{ "rdma_get_devices", list_devices, 1 },
};
const struct calls connection_calls = { calls, sizeof(calls) / sizeof(calls[0]) };
