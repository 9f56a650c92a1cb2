/* Flows: rules for the frames that a raw packet QP receives, with one specification per header.
 * Holds: each specification has exactly its structure's size, and no byte behind the last is read. The total size in
 * attr is not relied upon, since programs leave it at the size of attr itself. A specification that cannot be matched
 * is refused, never ignored. The only action is counting (counters.c). */
#include <stdlib.h>
#include <string.h>
#include "verbs/objects.h"

/* A flow in the making, and the layers that it names so far. */
struct builder {
	struct vb_frame_flow *flow;
	struct ibv_context *context;
	struct counters_object *counters;
	bool has_ethernet, has_ip, has_ports;
};

static void add_ethernet(struct builder *to, const struct ibv_flow_spec_eth *spec)
{
	struct vb_frame_headers *value = &to->flow->value, *mask = &to->flow->mask;
	memcpy(value->dst_mac, spec->val.dst_mac, VB_MAC_LENGTH);
	memcpy(mask->dst_mac, spec->mask.dst_mac, VB_MAC_LENGTH);
	memcpy(value->src_mac, spec->val.src_mac, VB_MAC_LENGTH);
	memcpy(mask->src_mac, spec->mask.src_mac, VB_MAC_LENGTH);
	value->ether_type = spec->val.ether_type;
	mask->ether_type = spec->mask.ether_type;
	value->vlan_tag = spec->val.vlan_tag;
	mask->vlan_tag = spec->mask.vlan_tag;
	if (spec->mask.vlan_tag)
		to->flow->protocols |= VB_FRAME_VLAN;
}

static void add_ipv4_addresses(
	struct builder *to, const struct ibv_flow_ipv4_filter *value, const struct ibv_flow_ipv4_filter *mask)
{
	memcpy(to->flow->value.src_ip, &value->src_ip, 4);
	memcpy(to->flow->mask.src_ip, &mask->src_ip, 4);
	memcpy(to->flow->value.dst_ip, &value->dst_ip, 4);
	memcpy(to->flow->mask.dst_ip, &mask->dst_ip, 4);
	to->flow->protocols |= VB_FRAME_IPV4;
}

static void add_ipv4(struct builder *to, const struct ibv_flow_spec_ipv4_ext *spec)
{
	struct vb_frame_headers *value = &to->flow->value, *mask = &to->flow->mask;
	add_ipv4_addresses(to, &(struct ibv_flow_ipv4_filter){ spec->val.src_ip, spec->val.dst_ip },
		&(struct ibv_flow_ipv4_filter){ spec->mask.src_ip, spec->mask.dst_ip });
	value->ip_protocol = spec->val.proto;
	mask->ip_protocol = spec->mask.proto;
	value->traffic_class = spec->val.tos;
	mask->traffic_class = spec->mask.tos;
	value->hop_limit = spec->val.ttl;
	mask->hop_limit = spec->mask.ttl;
	value->ip_flags = spec->val.flags;
	mask->ip_flags = spec->mask.flags;
}

static void add_ipv6(struct builder *to, const struct ibv_flow_spec_ipv6 *spec)
{
	struct vb_frame_headers *value = &to->flow->value, *mask = &to->flow->mask;
	memcpy(value->src_ip, spec->val.src_ip, 16);
	memcpy(mask->src_ip, spec->mask.src_ip, 16);
	memcpy(value->dst_ip, spec->val.dst_ip, 16);
	memcpy(mask->dst_ip, spec->mask.dst_ip, 16);
	value->flow_label = spec->val.flow_label;
	mask->flow_label = spec->mask.flow_label;
	value->ip_protocol = spec->val.next_hdr;
	mask->ip_protocol = spec->mask.next_hdr;
	value->traffic_class = spec->val.traffic_class;
	mask->traffic_class = spec->mask.traffic_class;
	value->hop_limit = spec->val.hop_limit;
	mask->hop_limit = spec->mask.hop_limit;
	to->flow->protocols |= VB_FRAME_IPV6;
}

static void add_ports(struct builder *to, const struct ibv_flow_spec_tcp_udp *spec)
{
	to->flow->value.src_port = spec->val.src_port;
	to->flow->mask.src_port = spec->mask.src_port;
	to->flow->value.dst_port = spec->val.dst_port;
	to->flow->mask.dst_port = spec->mask.dst_port;
	to->flow->protocols |= spec->type == IBV_FLOW_SPEC_TCP ? VB_FRAME_TCP : VB_FRAME_UDP;
}

/* 0: it cannot be matched or done: tunnels, inner headers, most actions. */
static size_t size_of(enum ibv_flow_spec_type type)
{
	switch (type) {
	case IBV_FLOW_SPEC_ETH:
		return sizeof(struct ibv_flow_spec_eth);
	case IBV_FLOW_SPEC_IPV4:
		return sizeof(struct ibv_flow_spec_ipv4);
	case IBV_FLOW_SPEC_IPV4_EXT:
		return sizeof(struct ibv_flow_spec_ipv4_ext);
	case IBV_FLOW_SPEC_IPV6:
		return sizeof(struct ibv_flow_spec_ipv6);
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
		return sizeof(struct ibv_flow_spec_tcp_udp);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return sizeof(struct ibv_flow_spec_counter_action);
	default:
		return 0;
	}
}

/* False: the layer was named before. */
static bool take_layer(bool *has_layer)
{
	bool is_first = !*has_layer;
	*has_layer = true;
	return is_first;
}

static bool add_counters(struct builder *to, struct ibv_counters *counters)
{
	if (!counters || counters->context != to->context || to->counters)
		return false;
	to->counters = vb_counters_of(counters);
	to->flow->tally = &to->counters->tally;
	return true;
}

static bool add_spec(struct builder *to, const struct ibv_flow_spec *spec)
{
	switch (spec->hdr.type) {
	case IBV_FLOW_SPEC_ETH:
		add_ethernet(to, &spec->eth);
		return take_layer(&to->has_ethernet);
	case IBV_FLOW_SPEC_IPV4:
		add_ipv4_addresses(to, &spec->ipv4.val, &spec->ipv4.mask);
		return take_layer(&to->has_ip);
	case IBV_FLOW_SPEC_IPV4_EXT:
		add_ipv4(to, &spec->ipv4_ext);
		return take_layer(&to->has_ip);
	case IBV_FLOW_SPEC_IPV6:
		add_ipv6(to, &spec->ipv6);
		return take_layer(&to->has_ip);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return add_counters(to, spec->flow_count.counters);
	default:
		add_ports(to, &spec->tcp_udp);
		return take_layer(&to->has_ports);
	}
}

/* The specifications follow attr, one behind the other; a program need not align them. */
static int add_specs(struct builder *to, const struct ibv_flow_attr *attr)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	for (unsigned i = 0; i < attr->num_of_specs; i++) {
		struct ibv_flow_spec spec;
		memcpy(&spec.hdr, at, sizeof(spec.hdr));
		size_t size = size_of(spec.hdr.type);
		if (size == 0)
			return EOPNOTSUPP;
		if (spec.hdr.size != size)
			return EINVAL;
		memcpy(&spec, at, size);
		if (!add_spec(to, &spec))
			return EINVAL;
		at += size;
	}
	return 0;
}

/* An IPv6 rule that also asks for IPv4's Ethernet type is legal, and matches nothing. */
static int translate(struct builder *to, const struct ibv_flow_attr *attr)
{
	if (attr->comp_mask || attr->port != VB_PORT || attr->type < IBV_FLOW_ATTR_NORMAL ||
		attr->type > IBV_FLOW_ATTR_SNIFFER)
		return EINVAL;
	if (attr->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_DONT_TRAP)
		return EOPNOTSUPP;
	*to->flow = (struct vb_frame_flow){
		.kind = (enum vb_flow_kind)attr->type,
		.priority = attr->priority,
		.is_transparent = attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP,
	};
	if (attr->type != IBV_FLOW_ATTR_NORMAL) /* the type alone is the rule */
		return attr->num_of_specs ? EINVAL : 0;
	return add_specs(to, attr);
}

static int check_qp(struct ibv_qp *qp)
{
	if (vb_refuses_forked(qp->context))
		return VB_FORKED_ERRNO;
	return qp->qp_type == IBV_QPT_RAW_PACKET ? 0 : EINVAL;
}

struct ibv_flow *vb_flow_ops_create(struct ibv_qp *ibv, struct ibv_flow_attr *attr)
{
	struct qp_object *qp = vb_qp_of(ibv);
	struct vb_frame_flow wanted;
	struct builder builder = { .flow = &wanted, .context = ibv->context };
	int err = check_qp(ibv);
	if (!err)
		err = translate(&builder, attr);
	if (err)
		return vb_fail(err);
	struct flow_object *flow = calloc(1, sizeof(*flow));
	if (!flow)
		return vb_fail(ENOMEM);
	wanted.qp = qp->qp;
	err = -vb_device_steer(qp->host, &wanted, &flow->flow);
	if (err) {
		free(flow);
		return vb_fail(err);
	}
	flow->ibv.context = ibv->context;
	flow->ibv.handle = vb_object_handle();
	flow->qp = qp;
	flow->counters = builder.counters;
	vb_counters_hold(flow->counters, 1);
	vb_users_add(&qp->flows, 1);
	vb_object_add(ibv->context, OBJECT_FLOW, &flow->link);
	return &flow->ibv;
}

int vb_flow_ops_destroy(struct ibv_flow *ibv)
{
	struct flow_object *flow = (struct flow_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	int err = vb_device_unsteer(flow->qp->host, flow->flow);
	if (err)
		return -err;
	vb_object_remove(ibv->context, &flow->link);
	vb_users_add(&flow->qp->flows, -1);
	vb_counters_hold(flow->counters, -1);
	free(flow);
	return 0;
}
