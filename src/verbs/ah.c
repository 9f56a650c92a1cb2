/* Address handles, and the translation between the ABI's address attributes and the engine's address vectors. */
#include <stdlib.h>
#include <string.h>
#include "host/settings.h"
#include "host/report/text.h"
#include "verbs/objects.h"

struct vb_gid vb_gid_plain(const union ibv_gid *from)
{
	static const uint8_t wrapped[12] = { 0xff, 0x0e, [10] = 0xff, [11] = 0xff };
	struct vb_gid gid;
	memcpy(gid.raw, from->raw, sizeof(gid.raw));
	if (memcmp(gid.raw, wrapped, sizeof(wrapped)) == 0)
		gid.raw[0] = gid.raw[1] = 0;
	return gid;
}

/* True the first few times: a fault of one address may be one of thousands. */
static bool may_say(atomic_uint *said)
{
	enum { LINES = 8 };
	return atomic_load_explicit(said, memory_order_relaxed) < LINES && atomic_fetch_add(said, 1) < LINES;
}

/* Programs for InfiniBand name peers by LID alone. */
static void say_not_global(void)
{
	static atomic_flag is_said = ATOMIC_FLAG_INIT;
	if (!atomic_flag_test_and_set(&is_said))
		vb_log(VB_LOG_WARN, "an address without a GRH was refused: RoCE needs is_global and sgid_index");
}

static int check_route(const struct vb_av *av)
{
	static atomic_uint said;
	char from[VB_TEXT_GID], to[VB_TEXT_GID];
	int err = vb_host_check_route(&av->sgid, &av->dgid);
	if (err && may_say(&said))
		vb_log(VB_LOG_WARN, "no route from %s to %s: %s", vb_text_gid(&av->sgid, from),
			vb_text_gid(&av->dgid, to), strerror(-err));
	return err;
}

int vb_av_from_ah_attr(struct ibv_context *context, const struct ibv_ah_attr *attr, struct vb_av *av)
{
	if (!attr->is_global)
		say_not_global();
	if (!attr->is_global || attr->port_num != VB_PORT)
		return -EINVAL;
	struct vb_gid sgid;
	int err = vb_nic_get_gid(vb_device_nic(vb_host_of(context)), attr->grh.sgid_index, &sgid);
	if (err)
		return -EINVAL;
	*av = (struct vb_av){
		.sgid = sgid,
		.dgid = vb_gid_plain(&attr->grh.dgid),
		.flow_label = attr->grh.flow_label & 0xFFFFF,
		.sgid_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.sl = attr->sl,
		.port = attr->port_num,
		.static_rate = attr->static_rate,
	};
	/* IPv4 does not reach IPv6, nor the other way round; the zero address is none. */
	if (vb_gid_is_zero(&av->dgid) || vb_gid_is_ipv4(&av->sgid) != vb_gid_is_ipv4(&av->dgid))
		return -EINVAL;
	return check_route(av);
}

void vb_av_to_ah_attr(const struct vb_av *av, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){
		.grh = { .flow_label = av->flow_label,
			.sgid_index = av->sgid_index,
			.hop_limit = av->hop_limit,
			.traffic_class = av->traffic_class },
		.sl = av->sl,
		.static_rate = av->static_rate,
		.is_global = av->port != 0, /* never set: all zeros */
		.port_num = av->port,
	};
	memcpy(attr->grh.dgid.raw, av->dgid.raw, sizeof(attr->grh.dgid.raw));
}

VB_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_create_ah))
		return NULL;
	struct vb_av av;
	int err = vb_refuses_forked(pd->context) ? -VB_FORKED_ERRNO : vb_av_from_ah_attr(pd->context, attr, &av);
	if (err)
		return vb_fail(-err);
	struct ah_object *ah = malloc(sizeof(*ah));
	if (!ah)
		return vb_fail(ENOMEM);
	struct vb_device *host = vb_host_of(pd->context);
	err = vb_device_lock(host, VB_ALL_LANES);
	if (err) {
		free(ah);
		return vb_fail(-err);
	}
	vb_device_discover(host, VB_ALL_LANES, &av);
	vb_device_unlock(host, VB_ALL_LANES);
	ah->av = av;
	ah->ibv = (struct ibv_ah){ .context = pd->context, .pd = pd, .handle = vb_object_handle() };
	vb_pd_hold(pd, 1);
	vb_object_add(pd->context, OBJECT_AH, &ah->link);
	return &ah->ibv;
}

VB_EXPORT int ibv_destroy_ah(struct ibv_ah *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_destroy_ah))
		return errno;
	struct ah_object *ah = (struct ah_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	vb_object_remove(ibv->context, &ah->link);
	vb_pd_hold(ibv->pd, -1);
	free(ah);
	return 0;
}
