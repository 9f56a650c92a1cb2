/* Same host, UD: datagrams for local peers, both ways. One QP has many destinations, so its work requests do not wait
 * in its queue: each goes on to the local peer that it is for, and is handed out there, like a packet that waits at the
 * port. The room there is holds a sender back, as an echo does on the wire. A local peer that takes none for a while is
 * blocked: what is for it is dropped, at once, until there is room again.
 * Holds: datagrams to one destination leave in order; a local peer is watched while some wait; none waits for longer
 * than somebody takes others, or a little more than BLOCKED_AFTER.
 * Not here: what is checked of one that arrives (ud.c). */
#include "base/copy.h"
#include "base/invariant.h"
#include "core/lane.h"
#include "core/gather.h"
#include "local/parts.h"
#include "core/message.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/datagram.h"

#define TURN_DATAGRAMS   16
#define BLOCKED_AFTER    (100 * VB_MS) /* a receiver may have lost its core for a while: as for an echo */
#define BLOCKED_PATIENCE VB_MS         /* for the holder to look once more whether there is room */
#define DEFAULT_HOPS     64
#define LONG_ADDRESSES   (2 * sizeof(struct vb_gid))

/* ---- Who waits --------------------------------------------------------------------------------------------------- */

static vb_time due_of(const struct vb_local_peer *local_peer)
{
	return vb_time_add(local_peer->waits_since, local_peer->is_blocked ? BLOCKED_PATIENCE : BLOCKED_AFTER);
}

/* From now on, if something waits. The blocked come first: the list is in the order in which they are due. */
static void watch(struct vb_local_peer *local_peer)
{
	struct vb_lane *lane = local_peer->lane;
	vb_list_remove(&local_peer->watch_link);
	if (vb_list_empty(&local_peer->datagrams))
		return;
	local_peer->waits_since = lane->now;
	if (local_peer->is_blocked)
		vb_list_add_head(&lane->watched, &local_peer->watch_link);
	else
		vb_list_add_tail(&lane->watched, &local_peer->watch_link);
	assert(vb_list_linked(&local_peer->watch_link));
}

static struct vb_send_wqe *wqe_of(struct vb_list *node)
{
	return vb_container_of(node, struct vb_send_wqe, waits);
}

/* A QP that goes takes its requests out first. */
static struct vb_qp *sender_of(const struct vb_local_peer *local_peer, const struct vb_send_wqe *wqe)
{
	struct vb_qp *qp = vb_lane_find_qp(local_peer->lane, wqe->sender);
	assert(qp);
	return qp;
}

static void add(struct vb_local_peer *local_peer, struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	bool is_first = vb_list_empty(&local_peer->datagrams);
	wqe->sender = qp->qpn;
	vb_list_add_tail(&local_peer->datagrams, &wqe->waits);
	if (is_first)
		watch(local_peer);
	assert(vb_list_linked(&wqe->waits));
}

static void take_out(struct vb_send_wqe *wqe)
{
	vb_list_remove(&wqe->waits);
	wqe->sender = 0;
	wqe->started_at = 0;
	assert(!wqe->sender);
}

/* It is in the ring, or dropped. */
static void finish(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	take_out(wqe);
	vb_requester_wqe_left(qp, wqe, now);
}

/* Completions may let more come; those are for the next time. */
void vb_local_drop_datagrams(struct vb_local_peer *local_peer, vb_time now)
{
	struct vb_list all;
	vb_list_add_tail(&local_peer->datagrams, &all);
	vb_list_remove(&local_peer->datagrams);
	vb_list_remove(&local_peer->watch_link);
	while (!vb_list_empty(&all)) {
		struct vb_send_wqe *wqe = wqe_of(all.next);
		struct vb_qp *qp = sender_of(local_peer, wqe);
		vb_count(local_peer->lane, VB_DROP_LOCAL_PEER, 1);
		finish(qp, wqe, now);
	}
	assert(!vb_list_linked(&local_peer->watch_link) || !vb_list_empty(&local_peer->datagrams));
}

void vb_local_forget_datagrams(struct vb_qp *qp)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	for (uint32_t i = head_index(qp); qp->type == VB_QP_UD && i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (wqe->sender)
			take_out(wqe);
	}
}

/* Once before it is dropped the holder has a chance to find room, for it may be us who stood still. */
void vb_local_advance(struct vb_lane *lane, vb_time now)
{
	while (!vb_list_empty(&lane->watched)) {
		struct vb_local_peer *local_peer =
			vb_container_of(lane->watched.next, struct vb_local_peer, watch_link);
		if (vb_list_empty(&local_peer->datagrams)) { /* their QPs are gone */
			vb_list_remove(&local_peer->watch_link);
			continue;
		}
		if (!vb_time_is_due(due_of(local_peer), now))
			return;
		if (local_peer->is_blocked)
			vb_local_drop_datagrams(local_peer, now);
		local_peer->is_blocked = true;
		watch(local_peer);
	}
}

struct vb_deadline vb_local_next_deadline(const struct vb_lane *lane)
{
	if (vb_list_empty(&lane->watched))
		return (struct vb_deadline){ .is_set = false };
	const struct vb_local_peer *local_peer = vb_container_of(lane->watched.next, struct vb_local_peer, watch_link);
	return (struct vb_deadline){ due_of(local_peer), true };
}

/* ---- Which way --------------------------------------------------------------------------------------------------- */

static bool is_at(const struct vb_peer *peer, const struct vb_send_wqe *wqe)
{
	return peer && peer->slot == wqe->ud.qpn >> 16 && vb_gid_equal(&peer->gid, &wqe->ud.av.dgid);
}

/* NULL: not a local peer's. Its devices are those of its host, so the one that has the destination's address has
 * ours. */
static struct vb_peer *find_far(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if (is_at(qp->local->far, wqe))
		return qp->local->far;
	if (is_at(qp->peer, wqe) && !qp->peer->local_peer)
		return NULL;
	struct vb_peer *peer = (struct vb_peer *)vb_peer_find(qp->lane, &wqe->ud.av.dgid, (uint8_t)(wqe->ud.qpn >> 16));
	if (!peer || !peer->local_peer || !vb_nic_has_gid(qp->pd->nic, &wqe->ud.av.dgid) ||
		!vb_nic_has_gid(qp->pd->nic, &wqe->ud.av.sgid))
		return NULL;
	return qp->local->far = peer;
}

/* NULL: it goes as a packet. */
static struct vb_peer *same_host_peer(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_peer *peer = wqe->length <= qp->mtu ? find_far(qp, wqe) : NULL;
	return peer && peer->local_peer && !peer->local_peer->is_lost ? peer : NULL;
}

/* Packets that went there must not be overtaken. */
static bool is_behind_packets(const struct vb_qp *qp, const struct vb_peer *peer)
{
	return qp->peer == peer && qp->transport->has_packets(qp);
}

bool vb_local_follows_packets(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if (!qp->lane->has_local_peers || !qp->transport->has_packets(qp))
		return false;
	const struct vb_peer *peer = same_host_peer(qp, wqe);
	return peer && is_behind_packets(qp, peer);
}

bool vb_local_route_datagrams(struct vb_qp *qp, uint32_t tail)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t first = rq->cursor;
	if (!qp->lane->has_local_peers || vb_state(qp) != VB_QPS_RTS || rq->pending_error)
		return false;
	while (rq->cursor != tail) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
		const struct vb_peer *peer = same_host_peer(qp, wqe);
		if (!peer || is_behind_packets(qp, peer))
			return false;
		vb_requester_start_datagram(qp, wqe);
		add(peer->local_peer, qp, wqe);
	}
	return rq->cursor != first;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static void put_addresses(const struct vb_av *av, struct vb_descriptor *descriptor, uint8_t *far)
{
	descriptor->ip.traffic_class = av->traffic_class;
	descriptor->ip.hop_limit = av->hop_limit ? av->hop_limit : DEFAULT_HOPS;
	if (far) {
		memcpy(far, av->sgid.raw, sizeof(av->sgid));
		memcpy(far + sizeof(av->sgid), av->dgid.raw, sizeof(av->dgid));
	} else {
		memcpy(descriptor->ipv4.source, av->sgid.raw + 12, 4);
		memcpy(descriptor->ipv4.destination, av->dgid.raw + 12, 4);
	}
}

static void put_headers(const struct vb_qp *qp, const struct vb_send_wqe *wqe, struct vb_descriptor *descriptor)
{
	descriptor->opcode = wqe->opcode == VB_WR_SEND_WITH_IMM ? VB_UD_SEND_ONLY_IMM : VB_UD_SEND_ONLY;
	descriptor->dest_qpn = wqe->ud.qpn;
	descriptor->src_qpn = qp->qpn;
	descriptor->psn = wqe->first_psn;
	descriptor->qkey = vb_datagram_qkey(qp, wqe);
	descriptor->length = wqe->length;
	descriptor->imm_or_inv = wqe->imm_or_inv;
}

enum built { BUILT, NO_ROOM, NO_ACCESS };

static enum built build(struct vb_qp *qp, const struct vb_send_wqe *wqe, struct vb_local_room *room)
{
	const struct vb_av *av = &wqe->ud.av;
	bool is_long = !vb_gid_is_ipv4(&av->dgid);
	uint32_t before = is_long ? LONG_ADDRESSES : 0;
	bool is_inlined = !is_long && wqe->length <= VB_LOCAL_INLINE;
	if (room->descriptor_count == room->descriptor_max ||
		(!is_inlined && vb_local_heap_left(room) < before + wqe->length))
		return NO_ROOM;
	struct vb_descriptor *descriptor = &room->descriptors[room->descriptor_count];
	uint8_t *heap = room->heap + room->heap_used;
	enum vb_gathered gathered = vb_gather(qp, wqe, 0, wqe->length, is_inlined ? descriptor->bytes : heap + before);
	if (gathered == VB_NO_ACCESS)
		return NO_ACCESS;
	bool has_bytes = gathered == VB_GATHERED && wqe->length > 0;
	put_headers(qp, wqe, descriptor);
	put_addresses(av, descriptor, is_long ? heap : NULL);
	descriptor->nature = (struct vb_local_nature){
		.place = !has_bytes   ? VB_LOCAL_NOWHERE
			 : is_inlined ? VB_LOCAL_INLINED
				      : VB_LOCAL_HEAPED,
		.flags = (wqe->flags & VB_SEND_SOLICITED ? VB_LOCAL_SOLICITED : 0) |
			 (is_long ? VB_LOCAL_LONG_ADDRESSES : 0),
	};
	if (!is_inlined) {
		descriptor->heap.at = room->heap_at + room->heap_used;
		vb_local_use_heap(room, before + wqe->length);
	}
	vb_local_add(room);
	vb_count(qp->lane, VB_TX_PACKETS, 1);
	vb_count(qp->lane, VB_TX_BYTES, has_bytes ? wqe->length : 0);
	assert(room->descriptor_count <= room->descriptor_max);
	return BUILT;
}

/* It comes after one that is to fail, and will be flushed. */
static bool is_behind_error(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t index = head_index(qp) + psn_index(head_wqe(qp), wqe->first_psn);
	return rq->pending_error && (int32_t)(index - rq->cursor) >= 0;
}

/* The oldest. False: there is no room. */
static bool send_one(struct vb_local_peer *local_peer, struct vb_local_room *room, vb_time now)
{
	struct vb_send_wqe *wqe = wqe_of(local_peer->datagrams.next);
	struct vb_qp *qp = sender_of(local_peer, wqe);
	if (is_behind_error(qp, wqe)) {
		take_out(wqe);
		return true;
	}
	enum built built = build(qp, wqe, room);
	if (built == NO_ROOM)
		return false;
	if (built == BUILT) {
		finish(qp, wqe, now);
		return true;
	}
	take_out(wqe);
	vb_requester_fault(qp, wqe->first_psn, VB_CAUSE_LOCAL_SGE, now);
	return true;
}

bool vb_local_send_datagrams(struct vb_local_peer *local_peer, struct vb_local_room *room, vb_time now)
{
	unsigned sent = 0;
	bool has_room = true;
	if (vb_list_empty(&local_peer->datagrams))
		return true;
	while (has_room && sent < TURN_DATAGRAMS && !vb_list_empty(&local_peer->datagrams)) {
		has_room = send_one(local_peer, room, now);
		vb_lane_reap(local_peer->lane);
		sent += has_room;
	}
	if (sent > 0)
		local_peer->is_blocked = false;
	if (sent > 0)
		watch(local_peer);
	else if (local_peer->is_blocked)
		vb_local_drop_datagrams(local_peer, now);
	return has_room;
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

static bool place_is_right(const struct vb_descriptor *request, const struct vb_local_heap *heap)
{
	bool is_long = request->flags & VB_LOCAL_LONG_ADDRESSES;
	uint64_t before = is_long ? LONG_ADDRESSES : 0;
	if (request->length > VB_MAX_MTU || (before && before + request->heap.at > heap->length))
		return false;
	if (request->place == VB_LOCAL_INLINED)
		return !is_long && request->length <= VB_LOCAL_INLINE;
	if (request->place == VB_LOCAL_HEAPED)
		return before + request->heap.at + request->length <= heap->length;
	return request->place == VB_LOCAL_NOWHERE;
}

static struct vb_gid from_ipv4(const uint8_t bytes[4])
{
	return vb_gid_from_ipv4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* Addresses are read once: they are judged, and then shown. */
static void read_path(const struct vb_descriptor *request, const struct vb_local_heap *heap, struct vb_path *path)
{
	*path = (struct vb_path){ .traffic_class = request->ip.traffic_class, .hop_limit = request->ip.hop_limit };
	if (request->flags & VB_LOCAL_LONG_ADDRESSES) {
		memcpy(path->src.raw, heap->bytes + request->heap.at, sizeof(path->src));
		memcpy(path->dst.raw, heap->bytes + request->heap.at + sizeof(path->src), sizeof(path->dst));
	} else {
		path->src = from_ipv4(request->ipv4.source);
		path->dst = from_ipv4(request->ipv4.destination);
	}
}

static const uint8_t *payload_of(const struct vb_descriptor *request, const struct vb_local_heap *heap)
{
	uint32_t before = request->flags & VB_LOCAL_LONG_ADDRESSES ? LONG_ADDRESSES : 0;
	if (request->place == VB_LOCAL_INLINED)
		return request->bytes;
	return request->place == VB_LOCAL_HEAPED ? heap->bytes + request->heap.at + before : NULL;
}

/* By UDP anybody on this host could send from any of its addresses, in the name of any QP. Here it is a QP of its own,
 * and an address of the device where it arrives, or one that the holder knows it by. */
static bool is_his(
	const struct vb_local_peer *local_peer, const struct vb_nic *nic, const struct vb_gid *address, uint32_t qpn)
{
	if (qpn >> 16 != local_peer->slot)
		return false;
	if (vb_nic_has_gid(nic, address))
		return true;
	const struct vb_peer *peer = vb_peer_find(local_peer->lane, address, local_peer->slot);
	return peer && peer->local_peer == local_peer;
}

void vb_local_receive_datagram(
	struct vb_local_peer *local_peer, const struct vb_descriptor *request, const struct vb_local_heap *heap)
{
	struct vb_lane *lane = local_peer->lane;
	struct vb_qp *qp = vb_lane_find_qp(lane, request->dest_qpn);
	struct vb_path path;
	bool is_datagram = request->opcode == VB_UD_SEND_ONLY || request->opcode == VB_UD_SEND_ONLY_IMM;
	if (!qp) {
		vb_count(lane, VB_DROP_BAD_QPN, 1);
		return;
	}
	if (qp->type != VB_QP_UD || !is_datagram) {
		vb_count(lane, VB_DROP_TRANSPORT, 1);
		return;
	}
	if (!place_is_right(request, heap)) {
		vb_count(lane, VB_DROP_LENGTH, 1);
		return;
	}
	read_path(request, heap, &path);
	if (!is_his(local_peer, qp->pd->nic, &path.src, request->src_qpn)) {
		vb_count(lane, VB_DROP_ADDRESS, 1);
		return;
	}
	struct vb_datagram datagram = {
		.row = &vb_opcodes[request->opcode],
		.path = &path,
		.payload = payload_of(request, heap),
		.length = request->length,
		.src_qpn = request->src_qpn,
		.qkey = request->qkey,
		.imm = request->imm_or_inv,
		.is_solicited = request->flags & VB_LOCAL_SOLICITED,
	};
	vb_datagram_receive(qp, &datagram);
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

void vb_local_check_datagrams(const struct vb_local_peer *local_peer)
{
	assert(vb_list_empty(&local_peer->datagrams) || vb_list_linked(&local_peer->watch_link));
	assert(vb_list_empty(&local_peer->datagrams) || !local_peer->is_lost);
	vb_list_for_each (node, &local_peer->datagrams) {
		const struct vb_send_wqe *wqe = wqe_of(node);
		const struct vb_qp *qp = sender_of(local_peer, wqe);
		assert(qp->type == VB_QP_UD && wqe->is_started && wqe->at_port == 1);
	}
}
