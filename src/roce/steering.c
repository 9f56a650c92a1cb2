/* The QPs that receive a frame: flows in their order, and the spreading of a QP's frames over receive queues.
 * Holds: sniffers see everything; then normal flows by priority, then the defaults. Flows of one rank all get a frame;
 * the first rank that takes one ends the search, unless the flow is transparent. */
#include <errno.h>
#include <stdlib.h>
#include "roce/roce.h"
#include "base/bytes.h"
#include "base/invariant.h"
#include "roce/raw.h"

/* ---- Spreading --------------------------------------------------------------------------------------------------- */

struct vb_spread_table {
	struct vb_spread spread;
	struct vb_qp *queues[];
};

int vb_qp_spread(struct vb_qp *qp, const struct vb_spread *spread)
{
	uint32_t count = spread->count;
	if (qp->type != VB_QP_RAW || qp->recv_cq || vb_roce(qp)->spread || count == 0 || count > VB_MAX_SPREAD ||
		(count & (count - 1)) || (spread->fields & ~(uint32_t)VB_RX_HASH_FIELDS))
		return -EINVAL;
	struct vb_spread_table *table = malloc(sizeof(*table) + count * sizeof(table->queues[0]));
	if (!table)
		return -ENOMEM;
	table->spread = *spread;
	memcpy(table->queues, spread->queues, count * sizeof(table->queues[0]));
	table->spread.queues = table->queues;
	vb_roce(qp)->spread = table;
	assert(vb_roce(qp)->spread == table);
	return 0;
}

struct hash_input {
	uint8_t bytes[36];
	unsigned length;
};

static void add(struct hash_input *input, bool is_wanted, const void *bytes, unsigned length)
{
	if (!is_wanted)
		return;
	memcpy(input->bytes + input->length, bytes, length);
	input->length += length;
}

static struct hash_input hash_input(uint32_t fields, const struct vb_frame_headers *headers, uint32_t protocols)
{
	struct hash_input input = { .length = 0 };
	uint32_t wanted = 0;
	if (protocols & VB_FRAME_IPV4)
		wanted |= fields & (VB_RX_HASH_SRC_IPV4 | VB_RX_HASH_DST_IPV4);
	if (protocols & VB_FRAME_IPV6)
		wanted |= fields & (VB_RX_HASH_SRC_IPV6 | VB_RX_HASH_DST_IPV6);
	if (protocols & VB_FRAME_TCP)
		wanted |= fields & (VB_RX_HASH_SRC_PORT_TCP | VB_RX_HASH_DST_PORT_TCP);
	if (protocols & VB_FRAME_UDP)
		wanted |= fields & (VB_RX_HASH_SRC_PORT_UDP | VB_RX_HASH_DST_PORT_UDP);
	unsigned address = protocols & VB_FRAME_IPV4 ? 4 : 16;
	add(&input, wanted & (VB_RX_HASH_SRC_IPV4 | VB_RX_HASH_SRC_IPV6), headers->src_ip, address);
	add(&input, wanted & (VB_RX_HASH_DST_IPV4 | VB_RX_HASH_DST_IPV6), headers->dst_ip, address);
	add(&input, wanted & (VB_RX_HASH_SRC_PORT_TCP | VB_RX_HASH_SRC_PORT_UDP), &headers->src_port, 2);
	add(&input, wanted & (VB_RX_HASH_DST_PORT_TCP | VB_RX_HASH_DST_PORT_UDP), &headers->dst_port, 2);
	return input;
}

/* For each bit of the input that is 1, the 32 bits of the key that begin at its place. */
uint32_t vb_toeplitz(const struct vb_spread *spread, const struct vb_frame_headers *headers, uint32_t protocols)
{
	struct hash_input input = hash_input(spread->fields, headers, protocols);
	uint32_t hash = 0, window = vb_load_be32(spread->key);
	for (unsigned i = 0; i < input.length; i++) {
		uint8_t next = i + 4 < VB_TOEPLITZ_KEY ? spread->key[i + 4] : 0;
		for (int bit = 7; bit >= 0; bit--) {
			if (input.bytes[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (next >> bit & 1);
		}
	}
	return hash;
}

/* ---- Flows ------------------------------------------------------------------------------------------------------- */

void vb_steering_init(struct vb_steering *steering, struct vb_lane *lane)
{
	steering->lane = lane;
	vb_list_init(&steering->flows);
}

static uint32_t rank(const struct vb_frame_flow *flow)
{
	switch (flow->kind) {
	case VB_FLOW_SNIFFER:
		return 0;
	case VB_FLOW_NORMAL:
		return 1u + flow->priority;
	case VB_FLOW_MC_DEFAULT:
		return 0x10001;
	case VB_FLOW_ALL_DEFAULT:
		break;
	}
	return 0x10002;
}

void vb_steering_add(struct vb_steering *steering, struct vb_frame_flow *flow)
{
	struct vb_list *before = &steering->flows;
	vb_list_for_each (node, &steering->flows) {
		if (rank(vb_container_of(node, struct vb_frame_flow, link)) > rank(flow)) {
			before = node;
			break;
		}
	}
	vb_list_add_tail(before, &flow->link);
	assert(vb_list_linked(&flow->link));
}

void vb_steering_remove(struct vb_frame_flow *flow)
{
	vb_list_remove(&flow->link);
}

bool vb_frame_flow_matches(const struct vb_frame_flow *flow, const struct vb_frame_headers *headers, uint32_t protocols)
{
	if (flow->kind == VB_FLOW_SNIFFER || flow->kind == VB_FLOW_ALL_DEFAULT)
		return true;
	if (flow->kind == VB_FLOW_MC_DEFAULT)
		return headers->dst_mac[0] & 1;
	if (flow->protocols & ~protocols)
		return false;
	const uint8_t *value = (const uint8_t *)&flow->value, *mask = (const uint8_t *)&flow->mask;
	const uint8_t *seen = (const uint8_t *)headers;
	for (size_t i = 0; i < sizeof(*headers); i++)
		if ((value[i] ^ seen[i]) & mask[i])
			return false;
	return true;
}

static void deliver(struct vb_qp *qp, const struct vb_frame_headers *headers, uint32_t protocols, const uint8_t *frame,
	uint32_t length)
{
	if (!vb_roce(qp)->spread) {
		vb_raw_receive(qp, frame, length);
		return;
	}
	const struct vb_spread *spread = &vb_roce(qp)->spread->spread;
	vb_raw_receive(spread->queues[vb_toeplitz(spread, headers, protocols) & (spread->count - 1)], frame, length);
}

void vb_steering_receive(
	struct vb_steering *steering, const uint8_t *frame, uint32_t length, bool only_sniffers, vb_time now)
{
	struct vb_frame_headers headers;
	uint32_t protocols = vb_frame_parse(&headers, frame, length), last = only_sniffers ? 0 : UINT32_MAX;

	if (length < VB_ETHERNET_LENGTH)
		return;
	uint64_t number = ++vb_roce_lane(steering->lane)->frames;
	steering->lane->now = now;
	vb_list_for_each (node, &steering->flows) {
		struct vb_frame_flow *flow = vb_container_of(node, struct vb_frame_flow, link);
		if (rank(flow) > last)
			break;
		if (!vb_frame_flow_matches(flow, &headers, protocols))
			continue;
		if (flow->kind != VB_FLOW_SNIFFER && !flow->is_transparent)
			last = rank(flow);
		if (flow->tally) {
			flow->tally->frames++;
			flow->tally->bytes += length;
		}
		if (vb_roce(flow->qp)->last_frame == number)
			continue;
		vb_roce(flow->qp)->last_frame = number;
		deliver(flow->qp, &headers, protocols, frame, length);
	}
	vb_lane_reap(steering->lane);
}

void vb_steering_check(const struct vb_steering *steering)
{
	uint32_t before = 0;
	vb_list_for_each (node, &steering->flows) {
		const struct vb_frame_flow *flow = vb_container_of(node, struct vb_frame_flow, link);
		assert(rank(flow) >= before && flow->qp->type == VB_QP_RAW && flow->qp->lane == steering->lane);
		before = rank(flow);
	}
}
