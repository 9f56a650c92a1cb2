/* What the programs do: post work of every kind, sizes and flags by chance, and receives now and then too late. Each
 * request has a slot of memory to itself, here and at the peer, so that what must lie there is always known. */
#include <errno.h>
#include <string.h>
#include "sim.h"

#define MAX_OUTSTANDING (MAX_QUEUE - 16)
#define HEADER          16 /* of UC and UD messages: who it is, and how long */

static uint64_t word_of(uint64_t content, uint64_t index)
{
	uint64_t x = (content + 1) * 0x9E3779B97F4A7C15u + index * 0xBF58476D1CE4E5B9u;
	x ^= x >> 29;
	return x * 0x94D049BB133111EBu;
}

/* Bytes [from, from + length) of a message that is made from content. */
void pattern_fill(uint8_t *bytes, uint32_t length, uint64_t content, uint32_t from)
{
	for (uint32_t i = 0; i < length;) {
		uint64_t word = word_of(content, (from + i) / 8);
		uint32_t skip = (from + i) % 8, n = 8 - skip < length - i ? 8 - skip : length - i;
		memcpy(bytes + i, (uint8_t *)&word + skip, n);
		i += n;
	}
}

bool pattern_check(const uint8_t *bytes, uint32_t length, uint64_t content, uint32_t from)
{
	for (uint32_t i = 0; i < length;) {
		uint64_t word = word_of(content, (from + i) / 8);
		uint32_t skip = (from + i) % 8, n = 8 - skip < length - i ? 8 - skip : length - i;
		if (memcmp(bytes + i, (uint8_t *)&word + skip, n) != 0)
			return false;
		i += n;
	}
	return true;
}

/* UC WRITEs may be lost or overtaken: whatever lands at an address has the one value that belongs there. */
uint8_t addressed_byte(uint64_t address)
{
	uint8_t byte = (uint8_t)(word_of(0x5555, address) >> 40);
	return byte ? byte : 1;
}

/* ---- Receives ---------------------------------------------------------------------------------------------------- */

static unsigned cut(struct vb_sge *sges, const struct block *block, uint32_t offset, uint32_t length)
{
	unsigned n = 1 + below(3);
	for (unsigned i = 0; i < n; i++) {
		uint32_t piece = i + 1 == n ? length : below(length + 1);
		sges[i] = (struct vb_sge){ block->iova + offset, piece, block->key };
		offset += piece;
		length -= piece;
	}
	return n;
}

void recv_refill(struct endpoint *end, unsigned most)
{
	struct vb_sge sges[4];
	for (unsigned i = 0; i < RECVS && most && !end->has_srq && end->qp; i++) {
		if (end->recv_posted[i])
			continue;
		unsigned n = cut(sges, &end->recvs, i * SEND_MAX, end->is_short ? below(200) : SEND_MAX);
		end->is_short = false;
		struct vb_recv_wr wr = { .wr_id = 1000 + i, .sges = sges, .sge_count = n };
		int rc = vb_rq_post(end->qp, &wr);
		if (rc)
			broken("rq_post gives %d with %u of %u posted", rc, i, RECVS);
		end->recv_posted[i] = true;
		most--;
	}
}

void recv_refill_shared(struct host *host, unsigned most)
{
	struct vb_sge sges[4];
	unsigned first = below(POOLS) * SHARED_RECVS;
	for (unsigned k = 0; k < POOLS * SHARED_RECVS && most; k++) {
		unsigned id = (first + k) % (POOLS * SHARED_RECVS), i = id % SHARED_RECVS;
		struct pool *pool = &host->pools[id / SHARED_RECVS];
		if (pool->posted[i])
			continue;
		unsigned n = cut(sges, &pool->recvs, i * SEND_MAX, SEND_MAX);
		struct vb_recv_wr wr = { .wr_id = 5000 + id, .sges = sges, .sge_count = n };
		int rc = vb_srq_post(pool->srq, &wr);
		if (rc)
			broken("srq_post gives %d", rc);
		pool->posted[i] = true;
		most--;
	}
}

/* ---- Making a request -------------------------------------------------------------------------------------------- */

static uint32_t choose_length(struct endpoint *end, uint32_t most)
{
	uint32_t kind = below(100), mtu = end->connection->mtu;
	uint32_t limit = kind < 8 ? 0 : kind < 40 ? 64 : kind < 70 ? 2 * mtu : kind < 95 ? 8192 : most;
	if (kind >= 98)
		return mtu * (1 + below(3)) <= most ? mtu * (1 + below(3)) % (most + 1) : most;
	return below((limit < most ? limit : most) + 1);
}

static int free_slot(struct endpoint *end)
{
	unsigned slots = end->connection->slots, first = below(slots);
	for (unsigned i = 0; i < slots; i++)
		if (!end->slot_users[(first + i) % slots])
			return (int)((first + i) % slots);
	return -1;
}

/* Pieces of the local slot; every other request has them in reverse order. */
static void cut_local(struct endpoint *end, struct wr *wr)
{
	uint32_t base = (uint32_t)wr->slot * end->connection->slot_bytes;
	wr->sge_count = cut(wr->sges, &end->local, base + wr->offset, wr->length);
	if (wr->id % 2)
		for (unsigned i = 0, k = wr->sge_count - 1; i < k; i++, k--) {
			struct vb_sge swap = wr->sges[i];
			wr->sges[i] = wr->sges[k];
			wr->sges[k] = swap;
		}
}

static void fill_local(struct endpoint *end, struct wr *wr)
{
	uint32_t from = 0;
	for (unsigned i = 0; i < wr->sge_count; i++) {
		uint8_t *bytes = end->local.bytes + (wr->sges[i].addr - end->local.iova);
		pattern_fill(bytes, wr->sges[i].length, wr->content, from);
		from += wr->sges[i].length;
	}
}

/* UC, UD: the message says who it is. */
static void fill_header(struct endpoint *end, struct wr *wr)
{
	wr->sge_count = 1;
	wr->sges[0] = (struct vb_sge){ end->local.iova + (uint64_t)wr->slot * end->connection->slot_bytes, wr->length,
		end->local.key };
	uint8_t *bytes = end->local.bytes + (wr->sges[0].addr - end->local.iova);
	uint64_t length = wr->length;
	pattern_fill(bytes, wr->length, wr->content, 0);
	memcpy(bytes, &wr->content, 8);
	memcpy(bytes + 8, &length, 8);
}

static void fill_addressed(struct endpoint *end, struct wr *wr, uint64_t remote)
{
	wr->sge_count = 1;
	wr->sges[0] = (struct vb_sge){ end->local.iova + (uint64_t)wr->slot * end->connection->slot_bytes, wr->length,
		end->local.key };
	for (uint32_t i = 0; i < wr->length; i++)
		end->local.bytes[(uint64_t)wr->slot * end->connection->slot_bytes + i] = addressed_byte(remote + i);
}

static struct wr *last_posted(struct endpoint *end)
{
	return end->head == end->tail ? NULL : &end->posted[(end->tail - 1) % MAX_QUEUE];
}

static void make_read(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	struct wr *last = last_posted(end);
	uint32_t slot_bytes = end->connection->slot_bytes;
	wr->kind = WR_READ;
	out->opcode = wr->opcode = VB_WR_RDMA_READ;
	wr->from_slot = wr->slot;
	if (last && last->kind == WR_WRITE && last->length && chance(300000)) {
		/* What the WRITE before it writes, before anybody knows that it was written. */
		wr->from_slot = last->slot;
		wr->content = last->content;
		wr->offset = last->offset;
		wr->length = last->length;
		end->slot_users[last->slot]++;
	}
	cut_local(end, wr);
	out->remote_addr = end->peer->target.iova + (uint64_t)wr->from_slot * slot_bytes + wr->offset;
}

static void make_window_request(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	if (end->window_state == WINDOW_UNBOUND) {
		uint32_t key = vb_mw_key(end->window);
		wr->kind = WR_BIND;
		out->opcode = VB_WR_BIND_MW;
		end->window_state = WINDOW_BINDING;
		end->window_key = (key & ~0xFFu) | ((key + 1 + below(254)) & 0xFF);
		out->bind.mw = end->window;
		out->bind.mr = end->target.mr;
		out->bind.addr = end->target.iova;
		out->bind.length = end->target.size;
		out->bind.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ;
		out->bind.rkey = end->window_key;
	} else {
		wr->kind = WR_INVALIDATE;
		out->opcode = VB_WR_LOCAL_INV;
		out->imm_or_inv = end->window_key;
		end->window_state = WINDOW_DYING;
	}
	wr->opcode = out->opcode;
	wr->slot = -1;
}

static void make_send(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	wr->kind = WR_SEND;
	wr->takes_recv = true;
	out->opcode = VB_WR_SEND;
	if (wr->length > SEND_MAX)
		wr->length = SEND_MAX;
	if (end->type == VB_QP_UD && wr->length > 2048)
		wr->length = 2048;
	if (chance(200000)) {
		out->opcode = VB_WR_SEND_WITH_IMM;
	} else if (end->type == VB_QP_RC && end->peer->window_state == WINDOW_BOUND && chance(100000)) {
		out->opcode = VB_WR_SEND_WITH_INV;
		out->flags |= VB_SEND_FENCE; /* a READ through the window may still have to be repeated */
		end->peer->window_state = WINDOW_DYING;
		wr->inv_key = end->peer->window_key;
		out->imm_or_inv = wr->inv_key;
	}
	wr->opcode = out->opcode;
	if (end->type == VB_QP_RC) {
		cut_local(end, wr);
		fill_local(end, wr);
		return;
	}
	if (wr->length < HEADER)
		wr->length = HEADER;
	fill_header(end, wr);
}

/* Requests of RC alone: eight bytes at once, or nothing but the certainty that what came before has landed. */
static void make_atomic_write_or_flush(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	bool is_flush = chance(500000);
	wr->kind = WR_WRITE;
	out->opcode = wr->opcode = is_flush ? VB_WR_FLUSH : VB_WR_ATOMIC_WRITE;
	wr->length = is_flush ? 0 : 8;
	wr->offset = below(end->connection->slot_bytes - 7) & ~7u;
	out->remote_addr = end->peer->target.iova + (uint64_t)wr->slot * end->connection->slot_bytes + wr->offset;
	out->flush_length = below(9);
	out->flush_type = VB_FLUSH_GLOBAL;
	out->flush_level = chance(500000) ? VB_FLUSH_RANGE : VB_FLUSH_REGION;
	cut_local(end, wr);
	fill_local(end, wr);
}

static void make_write(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	wr->kind = WR_WRITE;
	wr->takes_recv = chance(150000);
	out->opcode = wr->opcode = wr->takes_recv ? VB_WR_RDMA_WRITE_WITH_IMM : VB_WR_RDMA_WRITE;
	out->remote_addr = end->peer->target.iova + (uint64_t)wr->slot * end->connection->slot_bytes + wr->offset;
	if (end->type == VB_QP_UC) {
		fill_addressed(end, wr, out->remote_addr);
		return;
	}
	cut_local(end, wr);
	fill_local(end, wr);
}

static void make_request(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	uint32_t kind = below(100), slot_bytes = end->connection->slot_bytes;
	wr->length = choose_length(end, slot_bytes);
	wr->offset = below(slot_bytes - wr->length + 1);
	if (end->type == VB_QP_UD || kind < 30) {
		make_send(end, wr, out);
	} else if (kind < 34 && end->type == VB_QP_RC && !end->connection->is_xrc) {
		make_atomic_write_or_flush(end, wr, out);
	} else if (end->type == VB_QP_UC || kind < 68) {
		make_write(end, wr, out);
	} else if (kind < 86) {
		make_read(end, wr, out);
	} else if (kind < 95) {
		atomic_choose(end, wr);
		out->opcode = wr->opcode;
		out->compare_add = wr->opcode == VB_WR_ATOMIC_FETCH_AND_ADD ? 1 : wr->compare;
		out->swap = wr->swap_add;
		out->remote_addr = end->peer->host->cells.iova + wr->cell * 8;
		wr->length = 8;
		wr->sge_count = 1;
		wr->sges[0] = (struct vb_sge){ end->local.iova + (uint64_t)wr->slot * slot_bytes, 8, end->local.key };
	} else if (!world.is_twin &&
		   (end->window_state == WINDOW_UNBOUND || (end->window_state == WINDOW_BOUND && !end->window_users))) {
		make_window_request(end, wr, out);
	} else {
		make_write(end, wr, out);
	}
}

static void choose_key(struct endpoint *end, struct wr *wr, struct vb_send_wr *out)
{
	if (end->type == VB_QP_UD)
		return;
	out->rkey = wr->kind == WR_ATOMIC ? end->peer->host->cells.key : end->peer->target.key;
	if (end->type == VB_QP_RC && (wr->kind == WR_WRITE || wr->kind == WR_READ) && wr->opcode != VB_WR_FLUSH &&
		end->peer->window_state == WINDOW_BOUND && chance(500000)) {
		out->rkey = end->peer->window_key;
		wr->uses_window = true;
		end->peer->window_users++;
	}
}

static void expect_at_peer(struct endpoint *end, const struct wr *wr)
{
	if (end->type != VB_QP_RC || !wr->takes_recv)
		return;
	struct endpoint *peer = end->peer;
	peer->inbound[peer->inbound_tail++ % MAX_QUEUE] = (struct inbound){ .id = wr->id,
		.content = wr->content,
		.length = wr->length,
		.imm = wr->imm,
		.inv_key = wr->inv_key,
		.has_imm = wr->opcode == VB_WR_SEND_WITH_IMM || wr->opcode == VB_WR_RDMA_WRITE_WITH_IMM,
		.has_inv = wr->opcode == VB_WR_SEND_WITH_INV,
		.is_write = wr->kind == WR_WRITE,
		.pool = wr->pool,
		.way = wr->way,
		.heard = wr->heard };
}

/* What a refused post had taken is given back. */
static void forget(struct endpoint *end, struct wr *wr)
{
	if (wr->kind == WR_BIND)
		end->window_state = WINDOW_UNBOUND;
	if (wr->kind == WR_INVALIDATE)
		end->window_state = WINDOW_BOUND;
	if (wr->opcode == VB_WR_SEND_WITH_INV)
		end->peer->window_state = WINDOW_BOUND;
	if (wr->uses_window)
		end->peer->window_users--;
	if (wr->kind == WR_READ && wr->from_slot != wr->slot)
		end->slot_users[wr->from_slot]--;
}

static void make_inline(struct endpoint *end, struct vb_send_wr *out, struct vb_sge *sges, uint8_t *scratch)
{
	for (unsigned i = 0; i < out->sge_count; i++) {
		memcpy(scratch, end->local.bytes + (sges[i].addr - end->local.iova), sges[i].length);
		sges[i].addr = (uintptr_t)scratch;
		scratch += sges[i].length;
	}
	out->flags |= VB_SEND_INLINE;
}

/* The SRQ at the peer that an XRC request names; 0 where there is none to name. */
static uint32_t choose_srq(struct endpoint *end, struct wr *wr)
{
	if (!end->connection->is_xrc)
		return 0;
	wr->pool = 1 + below(POOLS - 1);
	return vb_srq_number(end->peer->host->pools[wr->pool].srq);
}

/* Twins name requests by their place among the endpoint's own. */
static uint64_t next_id(struct endpoint *end)
{
	uint64_t own = (uint64_t)endpoint_number(end) << 32 | end->request_count;
	return (1ull << 40) + (world.is_twin ? own : world.next_id++);
}

/* Nothing to say; but what is unsignalled shows its end only through something signalled behind it. */
bool request_post_last(struct endpoint *end)
{
	struct wr *last = last_posted(end);
	if (!last || last->is_signalled)
		return false;
	struct wr *wr = &end->posted[end->tail % MAX_QUEUE];
	struct vb_av av = { .sgid = end->host->gid, .dgid = end->peer->host->gid };
	struct vb_send_wr out = { .opcode = end->type == VB_QP_UD ? VB_WR_SEND : VB_WR_RDMA_WRITE,
		.flags = VB_SEND_SIGNALED,
		.av = &av,
		.remote_qpn = end->peer->qpn,
		.remote_qkey = 0x1234 };
	*wr = (struct wr){ .id = next_id(end),
		.kind = WR_WRITE,
		.opcode = out.opcode,
		.slot = -1,
		.from_slot = -1,
		.is_signalled = true };
	if (end->type == VB_QP_UD) /* empty datagrams have no name: the receiver knows them by that */
		wr->kind = WR_SEND;
	out.wr_id = wr->id;
	out.remote_srqn = choose_srq(end, wr);
	if (vb_sq_put(end->qp, &out))
		return false;
	end->tail++;
	end->request_count++;
	end->unsignalled = 0;
	progress_made(end);
	return true;
}

bool request_post(struct endpoint *end)
{
	struct vb_send_wr out = { 0 };
	struct vb_av av = { .sgid = end->host->gid, .dgid = end->peer->host->gid };
	struct vb_sge sges[4];
	uint8_t scratch[256];
	struct wr *wr = &end->posted[end->tail % MAX_QUEUE];
	int slot = free_slot(end);
	bool awaits_none = end->unsignalled == end->tail - end->head;

	if (slot < 0)
		return request_post_last(end);
	memset(wr, 0, sizeof(*wr));
	wr->id = next_id(end);
	wr->content = wr->id;
	wr->slot = slot;
	wr->from_slot = -1;
	wr->imm = (uint32_t)vb_random_u64(&world.random);
	out.imm_or_inv = wr->imm;
	make_request(end, wr, &out);
	wr->is_signalled = chance(700000) || end->unsignalled >= 6 || end->unsignalled + 2 >= end->depth ||
			   wr->kind == WR_BIND || wr->kind == WR_INVALIDATE;
	choose_key(end, wr, &out);
	out.remote_srqn = choose_srq(end, wr);
	memcpy(sges, wr->sges, sizeof(sges));
	out.wr_id = wr->id;
	out.flags |= (wr->is_signalled ? VB_SEND_SIGNALED : 0) | (chance(100000) ? VB_SEND_FENCE : 0) |
		     (chance(300000) ? VB_SEND_SOLICITED : 0);
	out.sges = sges;
	out.sge_count = wr->sge_count;
	out.av = &av;
	out.remote_qpn = end->peer->qpn;
	out.remote_qkey = 0x1234;
	if ((wr->kind == WR_SEND || wr->kind == WR_WRITE) && wr->opcode != VB_WR_FLUSH &&
		wr->length <= sizeof(scratch) && chance(300000))
		make_inline(end, &out, sges, scratch);
	int rc = vb_sq_put(end->qp, &out);
	memset(scratch, 0xEE, sizeof(scratch));
	if (rc) {
		if (rc != -ENOMEM)
			broken("sq_put gives %d for opcode %d, length %u, %u SGEs", rc, out.opcode, wr->length,
				out.sge_count);
		forget(end, wr);
		return false;
	}
	if (awaits_none)
		progress_made(end);
	wr->posted_at = world.now;
	answer_posted(end, wr);
	if (wr->slot >= 0)
		end->slot_users[wr->slot]++;
	end->unsignalled = wr->is_signalled ? 0 : end->unsignalled + 1;
	end->tail++;
	end->request_count++;
	expect_at_peer(end, wr);
	note(wr->id);
	return true;
}

static bool post_some(struct endpoint *end)
{
	unsigned n = 1 + below(4);
	bool has_posted = false;
	while (n-- && end->tail - end->head < MAX_OUTSTANDING)
		has_posted |= world.is_stopping ? request_post_last(end) : request_post(end);
	return has_posted;
}

void app_run(struct endpoint *end)
{
	bool has_posted = false;
	if (end->qp && end->connection->state == UP && !end->is_dead && !end->is_target && !end->is_late &&
		!end->host->is_dead) {
		vb_sq_begin(end->qp);
		has_posted = world.is_twin ? twins_post(end) : post_some(end);
		vb_sq_end(end->qp, true);
		if (chance(700000))
			recv_refill(end, 1 + below(RECVS));
		if (has_posted) {
			local_look(end->lane, NULL);
			lane_wake(end->lane, world.now);
		}
	}
	if (chance(500000) && !end->host->is_dead)
		recv_refill_shared(end->host, 1 + below(8));
	end->app_pause = has_posted ? 2 * VB_US : end->app_pause < 400 * VB_US ? 2 * end->app_pause : 400 * VB_US;
	event_add(after(end->app_pause + (vb_time)below(20000) * VB_NS), EVENT_APP, end);
}
