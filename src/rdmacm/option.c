/* Options of an id, and their ranges. */
#include <string.h>
#include <infiniband/sa.h>
#include "rdmacm/objects.h"

enum { ACK_TIMEOUT_LIMIT = 32 };

static bool read_byte(const void *value, size_t length, uint8_t *to)
{
	if (length != sizeof(*to))
		return false;
	memcpy(to, value, sizeof(*to));
	return true;
}

static bool read_flag(const void *value, size_t length, bool *to)
{
	int flag;
	if (length != sizeof(flag))
		return false;
	memcpy(&flag, value, sizeof(flag));
	*to = flag != 0;
	return true;
}

/* Read when the id is bound: afterwards it has no effect. */
static int set_binding_flag(struct id_object *id, const void *value, size_t length, bool *to)
{
	if (id->state != ID_IDLE)
		return -EINVAL;
	return read_flag(value, length, to) ? 0 : -EINVAL;
}

static int set_ack_timeout(struct id_object *id, const void *value, size_t length)
{
	uint8_t timeout;
	if (!read_byte(value, length, &timeout) || timeout >= ACK_TIMEOUT_LIMIT || vb_id_is_datagram(id))
		return -EINVAL;
	id->options.ack_timeout = timeout;
	id->options.has_ack_timeout = true;
	return 0;
}

static int set_id_option(struct id_object *id, int name, const void *value, size_t length)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return read_byte(value, length, &id->options.tos) ? 0 : -EINVAL;
	case RDMA_OPTION_ID_REUSEADDR:
		return set_binding_flag(id, value, length, &id->options.is_reuse);
	case RDMA_OPTION_ID_AFONLY:
		return set_binding_flag(id, value, length, &id->options.is_ipv6_only);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return set_ack_timeout(id, value, length);
	default:
		return -ENOSYS;
	}
}

/* The record must lead from our address to the peer's, which is the only path; its other fields are ignored. */
static int set_path(struct id_object *id, const void *value, size_t length)
{
	const uint32_t primary = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	const struct rdma_ib_addr *addr = &id->public.route.addr.addr.ibaddr;
	struct ibv_path_data path;

	if (id->state != ID_ADDR_RESOLVED || length == 0 || length % sizeof(path))
		return -EINVAL;
	for (size_t at = 0; at < length; at += sizeof(path)) {
		memcpy(&path, (const char *)value + at, sizeof(path));
		if ((path.flags & primary) == primary)
			break;
	}
	if ((path.flags & primary) != primary || memcmp(path.path.sgid.raw, addr->sgid.raw, sizeof(addr->sgid.raw)) ||
		memcmp(path.path.dgid.raw, addr->dgid.raw, sizeof(addr->dgid.raw)))
		return -EINVAL;
	int error = vb_id_set_route(id);
	if (!error)
		error = vb_event_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (!error)
		id->state = ID_ROUTE_RESOLVED;
	return error;
}

VB_EXPORT int rdma_set_option(struct rdma_cm_id *public, int level, int name, void *value, size_t length)
{
	if (vb_call_fails(VB_CALL_rdma_set_option))
		return -1;
	struct id_object *id = vb_id_of(public);
	int error = -ENOSYS;

	if (!value && length)
		return vb_result(-EINVAL);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	if (level == RDMA_OPTION_ID) {
		vb_events_lock(); /* handler.c copies the options of a listener when a request comes */
		error = set_id_option(id, name, value, length);
		vb_events_unlock();
	} else if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH) {
		error = set_path(id, value, length);
	}
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}
