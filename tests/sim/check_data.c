/* Invariant: what arrives is what was sent, byte for byte, once, and in the order of posting: when a receive
 * completes, every WRITE posted before its message can be seen; when a WRITE completes, its bytes lie at the peer and
 * none beside them. */
#include <string.h>
#include "sim.h"

#define EDGE 32

static uint8_t *target_of(struct endpoint *end, const struct wr *wr, int slot)
{
	return end->peer->target.bytes + (size_t)slot * end->connection->slot_bytes + wr->offset;
}

static void check_write(struct endpoint *end, struct wr *wr)
{
	struct block *target = &end->peer->target;
	uint8_t *bytes = target_of(end, wr, wr->slot);
	if (target->is_revoked)
		return;
	if (!pattern_check(bytes, wr->length, wr->content, 0))
		broken("qpn %06x: WRITE %llu of %u bytes is not at the peer", end->qpn, (unsigned long long)wr->id,
			wr->length);
	size_t at = (size_t)(bytes - target->bytes);
	pattern_fill(target->shadow + at, wr->length, wr->content, 0);
	size_t first = at < EDGE ? 0 : at - EDGE, last = at + wr->length + EDGE;
	if (first / end->connection->slot_bytes != (size_t)wr->slot)
		first = at;
	if (last > (size_t)(wr->slot + 1) * end->connection->slot_bytes)
		last = (size_t)(wr->slot + 1) * end->connection->slot_bytes;
	if (memcmp(target->bytes + first, target->shadow + first, last - first) != 0)
		broken("qpn %06x: WRITE %llu touched bytes beside its own", end->qpn, (unsigned long long)wr->id);
}

/* Read before the key was revoked, or not at all. */
static void check_no_secret(const struct endpoint *end, const uint8_t *bytes, uint32_t length)
{
	uint32_t run = 0;
	for (uint32_t i = 0; i < length; i++) {
		run = bytes[i] == SECRET ? run + 1 : 0;
		if (run == 8)
			broken("qpn %06x: a READ brings what its key did not open any more", end->qpn);
	}
}

static void check_read(struct endpoint *end, struct wr *wr)
{
	const uint8_t *source = target_of(end, wr, wr->from_slot);
	for (unsigned i = 0; i < wr->sge_count; i++) {
		const uint8_t *bytes = end->local.bytes + (wr->sges[i].addr - end->local.iova);
		if (end->peer->target.is_revoked)
			check_no_secret(end, bytes, wr->sges[i].length);
		else if (memcmp(bytes, source, wr->sges[i].length) != 0)
			broken("qpn %06x: READ %llu of %u bytes brought others%s", end->qpn, (unsigned long long)wr->id,
				wr->length, wr->from_slot != wr->slot ? " (of the WRITE just before it)" : "");
		source += wr->sges[i].length;
	}
}

void check_sent(struct endpoint *end, struct wr *wr)
{
	uint64_t result;
	switch (wr->kind) {
	case WR_WRITE:
		if (end->type == VB_QP_RC && wr->slot >= 0)
			check_write(end, wr);
		break;
	case WR_READ:
		check_read(end, wr);
		break;
	case WR_ATOMIC:
		memcpy(&result, end->local.bytes + (wr->sges[0].addr - end->local.iova), 8);
		atomic_done(end, wr, result);
		break;
	case WR_BIND:
		end->window_state = WINDOW_BOUND;
		break;
	case WR_INVALIDATE:
		end->window_state = WINDOW_UNBOUND;
		break;
	case WR_SEND:
		break;
	}
}

/* WRITEs that the peer posted before this message are here. */
static void check_order(struct endpoint *end, uint64_t id)
{
	struct endpoint *peer = end->peer;
	for (unsigned i = peer->head; i != peer->tail; i++) {
		struct wr *wr = &peer->posted[i % MAX_QUEUE];
		if (wr->id > id)
			return;
		if (wr->kind != WR_WRITE || wr->is_seen || wr->slot < 0)
			continue;
		wr->is_seen = true;
		if (!end->target.is_revoked &&
			!pattern_check(target_of(peer, wr, wr->slot), wr->length, wr->content, 0))
			broken("qpn %06x: a receive completes before the WRITE %llu that came first", end->qpn,
				(unsigned long long)wr->id);
	}
}

static void check_connected(struct endpoint *end, const struct vb_wc *wc, const uint8_t *bytes)
{
	if (end->inbound_head == end->inbound_tail)
		broken("qpn %06x: a receive completes, and nothing was sent", end->qpn);
	const struct inbound *in = &end->inbound[end->inbound_head++ % MAX_QUEUE];
	uint32_t flags = (in->has_imm ? VB_WC_WITH_IMM : 0) | (in->has_inv ? VB_WC_WITH_INV : 0);
	if (wc->byte_len != in->length || wc->flags != flags || wc->src_qpn != end->peer->qpn ||
		wc->opcode != (in->is_write ? VB_WC_RECV_RDMA_WITH_IMM : VB_WC_RECV))
		broken("qpn %06x: message %llu of %u bytes completes as opcode %u, %u bytes, flags %u", end->qpn,
			(unsigned long long)in->id, in->length, wc->opcode, wc->byte_len, wc->flags);
	if (in->has_imm && wc->imm_or_inv != in->imm)
		broken("qpn %06x: immediate %08x of %08x", end->qpn, wc->imm_or_inv, in->imm);
	if (in->has_inv) {
		if (wc->imm_or_inv != in->inv_key)
			broken("qpn %06x: invalidated %08x of %08x", end->qpn, wc->imm_or_inv, in->inv_key);
		end->window_state = WINDOW_UNBOUND;
	}
	if (!in->is_write && !pattern_check(bytes, in->length, in->content, 0))
		broken("qpn %06x: message %llu of %u bytes arrived as something else", end->qpn,
			(unsigned long long)in->id, in->length);
	check_order(end, in->id);
	check_answer(end, in);
}

static void check_named(struct endpoint *end, const uint8_t *bytes, uint32_t length)
{
	uint64_t content, said;
	if (end->type == VB_QP_UD && length == 0)
		return; /* the last of a queue, see post_last */
	if (length < 16)
		broken("qpn %06x: a message of %u bytes, which nobody sends", end->qpn, length);
	memcpy(&content, bytes, 8);
	memcpy(&said, bytes + 8, 8);
	if (said != length || !pattern_check(bytes + 16, length - 16, content, 16))
		broken("qpn %06x: a message of %u bytes (sent as %llu) is not whole", end->qpn, length,
			(unsigned long long)said);
}

static void check_grh(struct endpoint *end, const struct vb_wc *wc, const uint8_t *grh)
{
	if (wc->flags != (VB_WC_GRH | (wc->flags & VB_WC_WITH_IMM)) || wc->byte_len < 40)
		broken("qpn %06x: a datagram without GRH", end->qpn);
	const struct vb_gid *from = &end->peer->host->gid, *to = &end->host->gid;
	bool is_right = vb_gid_is_ipv4(to) ? grh[20] == 0x45 && memcmp(grh + 32, from->raw + 12, 4) == 0 &&
						     memcmp(grh + 36, to->raw + 12, 4) == 0
					   : grh[0] >> 4 == 6 && memcmp(grh + 8, from->raw, 16) == 0 &&
						     memcmp(grh + 24, to->raw, 16) == 0;
	if (!is_right)
		broken("qpn %06x: the GRH does not say who sent this", end->qpn);
}

void check_received(struct endpoint *end, const struct vb_wc *wc, const uint8_t *bytes)
{
	if (end->type == VB_QP_RC) {
		check_connected(end, wc, bytes);
	} else if (end->type == VB_QP_UD) {
		check_grh(end, wc, bytes);
		check_named(end, bytes + 40, wc->byte_len - 40);
	} else if (wc->opcode == VB_WC_RECV) {
		check_named(end, bytes, wc->byte_len);
	}
}

/* All of the target memory, at rest: RC as its shadow says, UC either untouched or what belongs at the address, unless
 * it lost a peer. */
void check_targets(struct connection *connection)
{
	for (int k = 0; k < 2; k++) {
		struct block *target = &connection->ends[k].target;
		if (connection->type == VB_QP_RC && memcmp(target->bytes, target->shadow, target->size) != 0)
			broken("connection %u: memory changed that nobody wrote", connection->index);
		bool is_checked = connection->type == VB_QP_UC && !connection->lost_lender;
		for (uint64_t i = 0; is_checked && i < target->size; i++)
			if (target->bytes[i] && target->bytes[i] != addressed_byte(target->iova + i))
				broken("connection %u: a UC WRITE landed at the wrong place", connection->index);
	}
}
