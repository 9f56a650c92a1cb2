#include "loop.h"

static struct vb_cm *cm;
static pthread_mutex_t mutex;
static vb_connections_handler *handler;
static _Atomic vb_time now;
static bool is_lossy, is_child;
static const char *claim;
static atomic_uint bound, next_port;
static struct ibv_context verbs;
static struct ibv_pd pd;
static struct device_entry device;

static const char *const addresses[] = { "10.0.0.1", "fd00::1", "::1" };

/* ---- What connections.h promises --------------------------------------------------------------------------------- */

static void deliver_events(void)
{
	struct vb_cm_event event;
	while (vb_cm_next_event(cm, &event))
		handler(NULL, &event);
}

static void put_claim(uint8_t mad[VB_MAD_LENGTH])
{
	struct vb_cm_message message;
	struct vb_cm_ip_header header;
	if (!vb_cm_decode(&message, mad) || message.kind != VB_CM_REQ ||
		!vb_cm_ip_header_decode(&header, message.req.private_data))
		return;
	header.src = vb_sockaddr_gid(loop_address(claim, 0));
	header.src_port = 7;
	vb_cm_ip_header_encode(&header, message.req.private_data);
	vb_cm_encode(&message, mad);
}

static void pump(void)
{
	struct vb_cm_outgoing out;
	deliver_events();
	while (vb_cm_next_outgoing(cm, &out)) {
		struct vb_cm_path back = { out.path.remote, out.path.local, out.path.scope };
		if (claim)
			put_claim(out.mad);
		if (!is_lossy)
			vb_cm_receive(cm, &back, out.mad, now);
		deliver_events();
	}
}

struct vb_cm *vb_connections_lock(void)
{
	if (is_child)
		return NULL;
	pthread_mutex_lock(&mutex);
	return cm;
}

void vb_connections_unlock(void)
{
	pump();
	pthread_mutex_unlock(&mutex);
}

int vb_connections_bind(struct vb_binding *binding)
{
	if (binding->port == 1)
		return -EADDRINUSE;
	if (!binding->port)
		binding->port = (uint16_t)atomic_fetch_add(&next_port, 1);
	atomic_fetch_add(&bound, 1);
	return 0;
}

int vb_connections_listen(const struct vb_binding *binding)
{
	return binding->port == 2 ? -EADDRINUSE : 0;
}

void vb_connections_accepting(const struct vb_binding *binding) {}

void vb_connections_unbind(const struct vb_binding *binding)
{
	atomic_fetch_sub(&bound, 1);
}

void vb_connections_explain_mtu(const struct vb_mtu_refusal *refusal) {}
struct vb_later **vb_connections_unsaid(void)
{
	static struct vb_later *nothing; /* no faults are set */
	return &nothing;
}

void vb_connections_explain_route(const struct vb_gid *remote) {}

vb_time vb_connections_now(void)
{
	return now;
}

/* ---- What devices.c promises ------------------------------------------------------------------------------------- */

int vb_devices_open(void)
{
	return 0;
}

int vb_device_of_gid(const struct vb_gid *gid, struct device_entry **found, uint8_t *gid_index)
{
	for (uint8_t i = 0; i < COUNT_OF(addresses); i++) {
		struct vb_gid own = vb_sockaddr_gid(loop_address(addresses[i], 0));
		if (!vb_gid_equal(&own, gid))
			continue;
		*found = &device;
		*gid_index = i;
		return 0;
	}
	return -ENODEV;
}

/* ::1 is the device's own, 127.0.0.1 nobody's. */
int vb_device_of_loopback(struct vb_gid *gid, struct device_entry **found)
{
	uint8_t gid_index;

	if (vb_device_of_gid(gid, found, &gid_index)) {
		*gid = vb_sockaddr_gid(loop_address(addresses[0], 0));
		*found = &device;
	}
	return 0;
}

int vb_device_xrcd(struct device_entry *entry, struct ibv_xrcd **xrcd)
{
	return -EOPNOTSUPP;
}

enum ibv_mtu vb_device_mtu(const struct device_entry *entry)
{
	return IBV_MTU_1024;
}

uint8_t vb_gid_mtu(const struct vb_gid *gid)
{
	struct device_entry *unused;
	uint8_t gid_index;
	return vb_device_of_gid(gid, &unused, &gid_index) ? 0 : IBV_MTU_1024;
}

/* Of the host are the device's addresses, loopback and one more. */
static bool is_ours(const struct sockaddr *addr)
{
	struct vb_gid gid = vb_sockaddr_gid(addr), other = vb_sockaddr_gid(loop_address(LOOP_NO_DEVICES, 0));
	struct device_entry *unused;
	uint8_t gid_index;
	return vb_gid_is_loopback(&gid) || vb_gid_equal(&gid, &other) ||
	       vb_device_of_gid(&gid, &unused, &gid_index) == 0;
}

int vb_sockaddr_route(const struct sockaddr *remote, const struct sockaddr *local, struct sockaddr_storage *source)
{
	if (local && !is_ours(local))
		return -EADDRNOTAVAIL;
	if (!local)
		local = is_ours(remote) ? remote : loop_address(addresses[remote->sa_family == AF_INET6], 0);
	memcpy(source, local, vb_sockaddr_length(local));
	return 0;
}

/* ---- For the tests ----------------------------------------------------------------------------------------------- */

int loop_setup(void **state)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&mutex, &attr);
	handler = vb_handle_cm_event;
	now = VB_S;
	is_lossy = is_child = false;
	claim = NULL;
	bound = 0;
	next_port = 40001;
	pd.context = &verbs;
	device = (struct device_entry){
		.verbs = &verbs,
		.pd = &pd,
		.guid = 0x0123456789ABCDEF,
		.max_responder_resources = 16,
		.max_initiator_depth = 8,
		.ack_delay = 15,
	};
	const struct vb_cm_config config = { .seed = 1, .slot = 3 };
	return vb_cm_create(&config, &cm);
}

int loop_teardown(void **state)
{
	vb_cm_destroy(cm);
	pthread_mutex_destroy(&mutex);
	return bound ? -1 : 0;
}

void loop_set_verbs(struct ibv_context *context, struct ibv_pd *domain)
{
	device.verbs = context;
	device.pd = domain;
}

void loop_lose(bool lose)
{
	is_lossy = lose;
}

void loop_claim(const char *ip)
{
	claim = ip;
}

void loop_pass(vb_time span)
{
	vb_time end = vb_time_add(now, span);
	pthread_mutex_lock(&mutex);
	for (struct vb_deadline at; (at = vb_cm_next_deadline(cm)).is_set && vb_time_before(at.at, end);) {
		if (vb_time_before(now, at.at))
			now = at.at;
		vb_cm_advance(cm, now);
		pump();
	}
	now = end;
	pthread_mutex_unlock(&mutex);
}

unsigned loop_bound(void)
{
	return bound;
}

void loop_fork(bool is)
{
	is_child = is;
}

struct sockaddr *loop_address(const char *ip, uint16_t port)
{
	static _Thread_local struct sockaddr_storage storage[8];
	static _Thread_local unsigned next;
	struct sockaddr_storage *addr = &storage[next++ % COUNT_OF(storage)];

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	void *to = addr->ss_family == AF_INET ? (void *)&((struct sockaddr_in *)addr)->sin_addr
					      : (void *)&((struct sockaddr_in6 *)addr)->sin6_addr;
	assert_int_equal(inet_pton(addr->ss_family, ip, to), 1);
	vb_sockaddr_set_port((struct sockaddr *)addr, port);
	return (struct sockaddr *)addr;
}

bool loop_is_readable(struct rdma_event_channel *channel)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	return poll(&fd, 1, 0) == 1;
}

struct rdma_cm_id *loop_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event;

	assert_true(loop_is_readable(channel));
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	assert_int_equal(event->status, status);
	struct rdma_cm_id *id = event->id;
	rdma_ack_cm_event(event);
	return id;
}
