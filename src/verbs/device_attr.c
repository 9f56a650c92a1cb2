/* Attributes of a device and its port: the limits that the engine grants, and facts of RoCE.
 * Holds: no number here promises more than a create call gives. */
#include <string.h>
#include <time.h>
#include "core/tags.h"
#include "host/devices/identity.h"
#include "host/settings.h"
#include "verbs/later.h"
#include "verbs/objects.h"

/* Raw packet QPs are offered to processes that may open packet sockets. */
static void fill_raw(struct ibv_device_attr *attr)
{
	if (!vb_host_may_use_frames())
		return;
	attr->device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
	attr->max_raw_ethy_qp = VB_MAX_QP;
}

static void fill_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct vb_settings *settings = vb_settings_get();
	uint64_t guid = vb_context_of(context)->device->node_guid;
	*attr = (struct ibv_device_attr){
		.fw_ver = VB_FIRMWARE,
		.node_guid = guid,
		.sys_image_guid = guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xFFFFF000u,
		.vendor_id = VB_VENDOR_ID,
		.vendor_part_id = settings ? settings->part_id : 1,
		.hw_ver = VB_HW_VERSION,
		.max_qp = VB_MAX_QP,
		.max_qp_wr = VB_MAX_QP_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
				    IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC,
		.max_sge = VB_MAX_SGE,
		.max_sge_rd = VB_MAX_SGE,
		.max_cq = VB_MAX_OBJECTS,
		.max_cqe = VB_MAX_CQE,
		.max_mr = VB_MAX_KEYS,
		.max_pd = VB_MAX_OBJECTS,
		.max_qp_rd_atom = VB_MAX_RD_ATOMIC,
		.max_res_rd_atom = VB_MAX_RD_ATOMIC * VB_MAX_QP,
		.max_qp_init_rd_atom = VB_MAX_INIT_RD_ATOMIC,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mw = VB_MAX_KEYS,
		.max_mcast_grp = VB_MAX_MCAST_ATTACH,
		.max_mcast_qp_attach = VB_MAX_MCAST_ATTACH,
		.max_total_mcast_qp_attach = VB_MAX_MCAST_ATTACH,
		.max_ah = VB_MAX_OBJECTS,
		.max_srq = VB_MAX_OBJECTS,
		.max_srq_wr = VB_MAX_SRQ_WR,
		.max_srq_sge = VB_MAX_SGE,
		.max_pkeys = VB_PKEYS,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = 1,
	};
	fill_raw(attr);
}

VB_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_query_device))
		return errno;
	fill_device(context, attr);
	return 0;
}

int vb_context_ops_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size)
{
	if ((input && input->comp_mask) || attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	/* The engine reads and writes memory with the process's own rights, so pages may come and go. */
	const uint32_t odp_datagram = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t odp_unreliable = odp_datagram | IBV_ODP_SUPPORT_WRITE;
	const uint32_t odp_reliable = odp_unreliable | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | LATER_ODP_FLUSH |
				      LATER_ODP_ATOMIC_WRITE;
	struct ibv_device_attr_ex full = {
		.odp_caps = { IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, { odp_reliable, odp_unreliable,
			odp_datagram } },
		.xrc_odp_caps = odp_reliable & ~(uint32_t)IBV_ODP_SUPPORT_RECV, /* which has SRQs alone */
		.max_dm_size = VB_MAX_DM_BYTES,
		.tm_caps = {
			.max_rndv_hdr_size = VB_TAG_REQUEST,
			.max_num_tags = VB_MAX_TAGS,
			.flags = IBV_TM_CAP_RC,
			.max_ops = VB_MAX_SRQ_WR,
			.max_sge = 1,
		},
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: stamps count nanoseconds */
		.phys_port_cnt_ex = 1,
	};
	const struct ibv_rss_caps rss_caps = {
		.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
		.max_rwq_indirection_tables = VB_MAX_QP,
		.max_rwq_indirection_table_size = VB_MAX_SPREAD,
		.rx_hash_fields_mask = VB_RX_HASH_FIELDS,
		.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
	};
	fill_device(context, &full.orig_attr);
	if (full.orig_attr.max_raw_ethy_qp) {
		full.rss_caps = rss_caps;
		full.max_wq_type_rq = VB_MAX_QP;
	}
	full.device_cap_flags_ex =
		full.orig_attr.device_cap_flags | LATER_DEVICE_ATOMIC_WRITE | LATER_DEVICE_FLUSH_GLOBAL;
	memset(attr, 0, attr_size);
	memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

static enum ibv_mtu mtu_to_enum(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;
	while (mtu < IBV_MTU_4096 && 256u << mtu <= bytes)
		mtu++;
	return mtu;
}

_Static_assert(VB_PORT_CAPABILITIES == (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS), "what sysfs shows too");

static int fill_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	if (port != VB_PORT)
		return EINVAL;
	enum { PHYS_POLLING = 2, PHYS_LINK_UP = 5 };
	struct vb_device_info info;
	vb_device_query(vb_host_of(context), &info);
	info.is_up &= !atomic_load(&vb_context_of(context)->has_port_fault);
	*attr = (struct ibv_port_attr){
		.state = info.is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_to_enum(info.mtu),
		.gid_tbl_len = VB_MAX_GIDS,
		.port_cap_flags = VB_PORT_CAPABILITIES,
		.max_msg_sz = VB_MAX_MESSAGE_BYTES,
		.pkey_tbl_len = VB_PKEYS,
		.max_vl_num = 1,
		.phys_state = info.is_up ? PHYS_LINK_UP : PHYS_POLLING,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	vb_device_rate(info.speed_mbps, &attr->active_width, &attr->active_speed);
	return 0;
}

/* The caller tells the size of its structure, which differs between releases. */
int vb_context_ops_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t attr_size)
{
	struct ibv_port_attr of_44;
	uint8_t full[LATER_PORT_ATTR_BYTES];
	int err = fill_port(context, port, &of_44);
	if (err)
		return err;
	uint32_t speed_ex = of_44.active_speed; /* the same code, with room for more */
	memcpy(full, &of_44, LATER_PORT_ATTR_SPEED_EX);
	memcpy(full + LATER_PORT_ATTR_SPEED_EX, &speed_ex, sizeof(speed_ex));
	memset(attr, 0, attr_size);
	memcpy(attr, full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

VB_EXPORT int later_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	if (vb_call_fails(VB_CALL_ibv_query_port_speed))
		return errno;
	if (port != VB_PORT)
		return EINVAL;
	struct vb_device_info info;
	vb_device_query(vb_host_of(context), &info);
	*speed = (info.speed_mbps ? info.speed_mbps : VB_SPEED_OF_NONE_MBPS) / 100;
	return 0;
}

/* The exported function is called by programs whose structure ends before port_cap_flags2. */
VB_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_query_port))
		return errno;
	return vb_context_ops_query_port(
		context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* The raw clock in the unit of completion stamps, all of it in tv_nsec, as hardware drivers give it. */
int vb_context_ops_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t wanted = values->comp_mask;
	values->comp_mask = 0;
	if (wanted & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (wanted & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock = (struct timespec){ .tv_nsec = (long)vb_host_monotonic_ns(vb_host_now()) };
		values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}
