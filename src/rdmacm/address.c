/* Binding and resolving addresses. A RoCEv2 GID is an IP address: resolving one asks the kernel's routing table for the
 * local address to send from, and finds the device that has it. Nothing is sent.
 * Holds: a port is taken from the broker when an id is bound or resolved, and given back with the id. */
#include <string.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

/* A device must have the address. Another address of this host is ENODEV, a foreign one EADDRNOTAVAIL. A loopback
 * address names this host, and always belongs to some device. */
static int find_device(const struct sockaddr *addr, struct device_entry **device, struct vb_gid *gid)
{
	struct sockaddr_storage unused;
	uint8_t gid_index;

	*gid = vb_sockaddr_gid(addr);
	if (vb_gid_is_loopback(gid))
		return vb_device_of_loopback(gid, device);
	int error = vb_device_of_gid(gid, device, &gid_index);
	if (error == -ENODEV && vb_sockaddr_route(addr, addr, &unused) == -EADDRNOTAVAIL)
		return -EADDRNOTAVAIL;
	return error;
}

static int check_local(const struct sockaddr *addr)
{
	if (!addr)
		return -EINVAL;
	if (!vb_sockaddr_length(addr))
		return -EAFNOSUPPORT;
	const struct in6_addr *ip = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(ip) && !vb_sockaddr_scope(addr))
		return -EINVAL;
	return 0;
}

static void set_source(struct id_object *id, const struct sockaddr *addr, uint16_t port)
{
	memset(&id->public.route.addr.src_storage, 0, sizeof(id->public.route.addr.src_storage));
	memcpy(&id->public.route.addr.src_storage, addr, vb_sockaddr_length(addr));
	vb_sockaddr_set_port(&id->public.route.addr.src_addr, port);
}

/* Takes the port, in place of the one of a connection that was rejected. device is NULL if the address does not
 * determine it. */
static int bind_to(
	struct id_object *id, const struct sockaddr *addr, struct device_entry *device, const struct vb_gid *gid)
{
	vb_id_unbind(id);
	id->binding = (struct vb_binding){
		.port_space = (uint16_t)id->public.ps,
		.port = vb_sockaddr_port(addr),
		.address = vb_sockaddr_gid(addr),
		.is_shared = id->options.is_reuse,
		.is_ipv6_only = id->options.is_ipv6_only,
		.family = id->options.family,
	};
	int error = vb_connections_bind(&id->binding);
	if (error)
		return error;
	assert(id->binding.port != 0); /* the broker has chosen one */
	id->is_bound = true;
	if (device)
		vb_id_set_device(id, device, gid);
	set_source(id, addr, id->binding.port);
	id->state = ID_BOUND;
	return 0;
}

int vb_id_bind(struct id_object *id, const struct sockaddr *addr)
{
	struct device_entry *device = NULL;
	struct vb_gid gid;

	int error = check_local(addr);
	if (!error)
		error = vb_sockaddr_is_any(addr) ? vb_devices_open() : find_device(addr, &device, &gid);
	return error ? error : bind_to(id, addr, device, &gid);
}

/* A loopback address that no device has: as with Linux, the id gets its device when a request arrives or a peer is
 * resolved. libfabric binds to "localhost"; if the id had a device then, libfabric would take it for the only one, and
 * 127.0.0.1 for its address. */
static int bind_loopback(struct id_object *id, const struct sockaddr *addr)
{
	struct device_entry *device;
	struct vb_gid gid = vb_sockaddr_gid(addr);
	uint8_t unused;

	int error = vb_devices_open();
	if (error)
		return error;
	return bind_to(id, addr, vb_device_of_gid(&gid, &device, &unused) ? NULL : device, &gid);
}

static int bind_addr(struct id_object *id, const struct sockaddr *addr)
{
	if (id->state != ID_IDLE)
		return -EINVAL;
	int error = check_local(addr);
	if (error)
		return error;
	struct vb_gid gid = vb_sockaddr_gid(addr);
	return vb_gid_is_loopback(&gid) ? bind_loopback(id, addr) : vb_id_bind(id, addr);
}

VB_EXPORT int rdma_bind_addr(struct rdma_cm_id *public, struct sockaddr *addr)
{
	if (vb_call_fails(VB_CALL_rdma_bind_addr))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = bind_addr(id, addr);
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}

/* ---- Resolving --------------------------------------------------------------------------------------------------- */

/* The peer at "any" address is this host. */
static void peer_of(const struct sockaddr *dst, struct sockaddr_storage *peer)
{
	static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
	memset(peer, 0, sizeof(*peer));
	memcpy(peer, dst, vb_sockaddr_length(dst));
	if (!vb_sockaddr_is_any(dst))
		return;
	if (dst->sa_family == AF_INET)
		((struct sockaddr_in *)peer)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)peer)->sin6_addr = loopback;
}

static int check_peer(const struct id_object *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	if (!dst)
		return -EINVAL;
	if (!vb_sockaddr_length(dst) || (src && !vb_sockaddr_length(src)))
		return -EAFNOSUPPORT;
	if (src && src->sa_family != dst->sa_family)
		return -EINVAL;
	if (id->state == ID_BOUND && id->public.route.addr.src_addr.sa_family != dst->sa_family)
		return -EINVAL;
	return id->state == ID_IDLE || id->state == ID_BOUND ? 0 : -EINVAL;
}

/* The address that the id sends from: its own if it has one. A group needs no route if that is known. */
static int find_source(const struct sockaddr *own, const struct sockaddr *peer, struct sockaddr_storage *source)
{
	bool has_own = own && !vb_sockaddr_is_any(own);
	if (has_own && vb_sockaddr_is_multicast(peer)) {
		memcpy(source, own, vb_sockaddr_length(own));
		return 0;
	}
	int error = vb_sockaddr_route(peer, has_own ? own : NULL, source);
	if (error == -ENETUNREACH) {
		struct vb_gid remote = vb_sockaddr_gid(peer);
		vb_connections_explain_route(&remote);
	}
	return error;
}

/* An id that is bound to a port alone gets its address and device now; the port stays. */
static int settle_source(struct id_object *id, const struct sockaddr *source)
{
	struct device_entry *device;
	struct vb_gid gid;
	int error = find_device(source, &device, &gid);
	if (error)
		return error;
	assert(id->state == ID_BOUND);
	vb_id_set_device(id, device, &gid);
	set_source(id, source, id->binding.port);
	return 0;
}

/* A peer on this host is reached at the address that packets leave from. */
static void set_peer(struct id_object *id, const struct sockaddr_storage *peer)
{
	struct vb_gid gid = vb_sockaddr_gid((const struct sockaddr *)peer);

	assert(id->device);
	memcpy(&id->public.route.addr.dst_storage, peer, sizeof(*peer));
	id->way.remote = vb_gid_is_loopback(&gid) ? id->way.local : gid;
	memcpy(id->public.route.addr.addr.ibaddr.dgid.raw, id->way.remote.raw, sizeof(id->way.remote.raw));
}

/* status is for the event, the return value for the call. */
static int resolve(struct id_object *id, const struct sockaddr *src, const struct sockaddr *dst, int *status)
{
	struct sockaddr_storage peer, source;

	*status = 0;
	peer_of(dst, &peer);
	if (id->state == ID_IDLE && src && (!vb_sockaddr_is_any(src) || vb_sockaddr_port(src))) {
		int error = vb_id_bind(id, src);
		if (error)
			return error;
	}
	const struct sockaddr *own = id->state == ID_BOUND ? &id->public.route.addr.src_addr : NULL;
	*status = find_source(own, (struct sockaddr *)&peer, &source);
	if (*status)
		return 0;
	if (id->state == ID_IDLE) {
		vb_sockaddr_set_port((struct sockaddr *)&source, 0);
		int error = vb_id_bind(id, (struct sockaddr *)&source);
		if (error == -ENODEV || error == -EADDRNOTAVAIL)
			*status = error;
		else if (error)
			return error;
	} else if (!id->device) {
		*status = settle_source(id, (struct sockaddr *)&source);
	}
	if (*status)
		return 0;
	set_peer(id, &peer);
	id->state = ID_ADDR_RESOLVED;
	return 0;
}

/* The routing table answers at once, so the event exists when the call returns, and no timeout runs. */
VB_EXPORT int rdma_resolve_addr(struct rdma_cm_id *public, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	if (vb_call_fails(VB_CALL_rdma_resolve_addr))
		return -1;
	struct id_object *id = vb_id_of(public);
	int status;

	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = check_peer(id, src, dst);
	if (!error)
		error = resolve(id, src, dst, &status);
	if (!error)
		error = vb_event_post(id, status ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, status);
	pthread_mutex_unlock(&id->calls);
	return vb_id_complete(id, error);
}

static __be16 port_of(const struct sockaddr *addr)
{
	return vb_sockaddr_length(addr) ? htons(vb_sockaddr_port(addr)) : 0;
}

VB_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

VB_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
