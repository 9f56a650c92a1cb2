/* Routes: on Ethernet no subnet administrator is asked. The path record follows from the two addresses, the device and
 * the id's options. */
#include <stdlib.h>
#include <string.h>
#include <infiniband/sa.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

enum {
	HOP_LIMIT = 64,
	PACKET_LIFETIME = 16, /* 4.096 us * 2^16, which Linux assumes of a RoCE network */
	ACK_TIMEOUT_MAX = 31,
	SELECT_EXACTLY = 2,
	RATE_10_GBPS = IBV_RATE_10_GBPS,
};

/* The local ACK timeout: twice the packet lifetime plus the peer's delay, in powers of two (IBA vol. 1, 12.7.34). */
static uint8_t ack_timeout(uint8_t delay, uint8_t lifetime)
{
	unsigned timeout = lifetime + 1u;
	if (timeout >= delay)
		timeout += delay >= timeout - 1;
	else
		timeout = delay + (timeout >= delay - 1u);
	return timeout < ACK_TIMEOUT_MAX ? (uint8_t)timeout : ACK_TIMEOUT_MAX;
}

/* Routers spread flows by it, and the UDP source port is derived from it. */
static uint32_t flow_label(const struct id_object *id)
{
	uint32_t src = vb_sockaddr_port(&id->public.route.addr.src_addr);
	uint32_t dst = vb_sockaddr_port(&id->public.route.addr.dst_addr);
	return (src * 31 + dst) & 0xFFFFF;
}

static int fill_way(struct id_object *id)
{
	const struct rdma_addr *addr = &id->public.route.addr;
	struct device_entry *device;
	struct vb_way *way = &id->way;

	int error = vb_device_of_gid(&way->local, &device, &way->gid_index);
	if (error)
		return error;
	assert(id->device); /* the address is resolved */
	if (device != id->device)
		return -ENODEV;
	way->scope = vb_sockaddr_scope(&addr->dst_addr);
	way->flow_label = flow_label(id);
	way->mtu = vb_device_mtu(device);
	way->traffic_class = id->options.tos;
	way->hop_limit = HOP_LIMIT;
	way->ack_timeout =
		id->options.has_ack_timeout ? id->options.ack_timeout : ack_timeout(device->ack_delay, PACKET_LIFETIME);
	return 0;
}

static void fill_record(const struct id_object *id, struct ibv_sa_path_rec *record)
{
	const struct vb_way *way = &id->way;

	*record = (struct ibv_sa_path_rec){
		.flow_label = htobe32(way->flow_label),
		.hop_limit = way->hop_limit,
		.traffic_class = way->traffic_class,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htobe16(VB_PKEY),
		.mtu_selector = SELECT_EXACTLY,
		.mtu = way->mtu,
		.rate_selector = SELECT_EXACTLY,
		.rate = RATE_10_GBPS,
		.packet_life_time_selector = SELECT_EXACTLY,
		.packet_life_time = id->options.has_ack_timeout && id->options.ack_timeout ? id->options.ack_timeout - 1
											   : PACKET_LIFETIME,
	};
	memcpy(record->sgid.raw, way->local.raw, sizeof(record->sgid.raw));
	memcpy(record->dgid.raw, way->remote.raw, sizeof(record->dgid.raw));
}

int vb_id_set_route(struct id_object *id)
{
	struct rdma_route *route = &id->public.route;
	int error = fill_way(id);
	if (error)
		return error;
	if (!route->path_rec)
		route->path_rec = malloc(sizeof(*route->path_rec));
	if (!route->path_rec)
		return -ENOMEM;
	route->num_paths = 1;
	fill_record(id, route->path_rec);
	return 0;
}

VB_EXPORT int rdma_resolve_route(struct rdma_cm_id *public, int timeout_ms)
{
	if (vb_call_fails(VB_CALL_rdma_resolve_route))
		return -1;
	struct id_object *id = vb_id_of(public);

	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = id->state == ID_ADDR_RESOLVED ? 0 : -EINVAL;
	if (!error) {
		int status = vb_id_set_route(id);
		error = vb_event_post(id, status ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED, status);
		if (!status && !error)
			id->state = ID_ROUTE_RESOLVED;
	}
	pthread_mutex_unlock(&id->calls);
	return vb_id_complete(id, error);
}
