/* Parameters that both sides of a connection put into their messages: resources, private data, packet numbers. */
#include <string.h>
#include <sys/random.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

int vb_check_resources(const struct id_object *id, const struct rdma_conn_param *param)
{
	assert(id->device);
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
		param->responder_resources > id->device->max_responder_resources)
		return -EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH && param->initiator_depth > id->device->max_initiator_depth)
		return -EINVAL;
	return param->private_data_len && !param->private_data ? -EINVAL : 0;
}

int vb_put_private_data(const struct id_object *id, const void *data, size_t length, uint8_t *to, size_t room)
{
	if (id->connect_length + length > room)
		return -EINVAL;
	if (id->connect_length)
		memcpy(to, id->connect_data, id->connect_length);
	if (length)
		memcpy(to + id->connect_length, data, length);
	return 0;
}

uint32_t vb_random_psn(void)
{
	uint32_t psn = 0;
	/* A guessable PSN adds no risk that a connection does not have anyway. */
	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
		psn = (uint32_t)vb_connections_now();
	return psn & (VB_QPN_LIMIT - 1);
}

uint64_t vb_id_service(const struct id_object *id, uint16_t port)
{
	return vb_cm_service_id((uint16_t)id->public.ps, port);
}
