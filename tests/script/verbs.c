/* What a script does as a program would: post, modify, invalidate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"

/* len bytes from an address, cut into n pieces: equal ones, the first taking what is over. */
static unsigned read_sges(struct line *line, const char *key, uint64_t fallback, struct vb_sge *sges)
{
	uint64_t length = line_number(line, "len", fallback), at = read_address(line, key, stage.regions[0].iova);
	unsigned n = (unsigned)line_number(line, "sges", length || line_has(line, key) ? 1 : 0);
	struct region *region = region_at(at, length);
	uint32_t lkey = read_key(line, "lkey", region ? region->key : stage.regions[0].key);
	uint64_t gap = line_number(line, "gap", n > 1 ? 8 : 0);
	if (n > VB_MAX_SGE)
		n = VB_MAX_SGE;
	for (unsigned i = 0; i < n; i++) {
		uint64_t piece = length / n + (i == 0 ? length % n : 0);
		sges[i] = (struct vb_sge){ .addr = at, .length = (uint32_t)piece, .lkey = lkey };
		at += piece + gap;
	}
	return n;
}

static enum vb_wr_opcode read_opcode(struct line *line)
{
	static const char *const names[] = { "write", "write_imm", "send", "send_imm", "read", "cmp_swap", "fetch_add",
		"local_inv", "bind", "send_inv" };
	const char *word = line_word(line);
	for (int i = 0; word && i < 10; i++)
		if (strcmp(names[i], word) == 0)
			return (enum vb_wr_opcode)i;
	if (word && strcmp(word, "atomic_write") == 0)
		return VB_WR_ATOMIC_WRITE;
	if (word && strcmp(word, "flush") == 0)
		return VB_WR_FLUSH;
	fail(line, "'%s' cannot be posted", word ? word : "");
}

bool is_atomic(enum vb_wr_opcode opcode)
{
	return opcode == VB_WR_ATOMIC_CMP_AND_SWP || opcode == VB_WR_ATOMIC_FETCH_AND_ADD;
}

static void number_psns(struct actor *actor, struct posted *posted)
{
	uint32_t mtu = actor->attr.path_mtu;
	bool travels = posted->opcode != VB_WR_LOCAL_INV && posted->opcode != VB_WR_BIND_MW;
	posted->packets = !travels ? 0
			  : actor->config.type == VB_QP_UD || is_atomic(posted->opcode) || posted->length == 0
				  ? 1
				  : (uint32_t)((posted->length + mtu - 1) / mtu);
	posted->psn = actor->next_psn;
	actor->next_psn = vb_psn_add(actor->next_psn, posted->packets);
}

static void read_bind(struct line *line, struct vb_send_wr *wr)
{
	const char *name = line_text(line, "mw");
	int window = name ? window_named(name, strlen(name)) : -1;
	if (window < 0)
		fail(line, "bind needs mw=");
	const char *region = line_text(line, "mr");
	wr->bind.mw = stage.windows[window].mw;
	struct region *to = region_named(region ? region : "remote", strlen(region ? region : "remote"));
	wr->bind.mr = to->mr;
	wr->bind.addr = read_address(line, "at", to->iova);
	wr->bind.length = line_number(line, "len", 0);
	wr->bind.access = read_access(line, "access", VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ);
	uint32_t next = stage.windows[window].type == 1
				? vb_mw_next_key(wr->bind.mw)
				: (vb_mw_key(wr->bind.mw) & ~0xFFu) | ((vb_mw_key(wr->bind.mw) + 1) & 0xFF);
	wr->bind.rkey = read_key(line, "key", next);
}

static void read_send(
	struct line *line, struct actor *actor, struct vb_send_wr *wr, struct vb_sge *sges, struct vb_av *av)
{
	wr->opcode = read_opcode(line);
	wr->wr_id = line_number(line, "wr", 0);
	wr->flags = (line_flag(line, "unsignalled") ? 0 : VB_SEND_SIGNALED) |
		    (line_flag(line, "fence") ? VB_SEND_FENCE : 0) |
		    (line_flag(line, "solicited") ? VB_SEND_SOLICITED : 0) |
		    (line_flag(line, "inline") ? VB_SEND_INLINE : 0);
	wr->remote_addr = line_number(line, "va", 0x7000000000);
	wr->rkey = read_key(line, "rkey", 0x4242);
	wr->imm_or_inv = line_has(line, "imm") ? __builtin_bswap32((uint32_t)line_number(line, "imm", 0))
					       : read_key(line, "inv", 0);
	wr->compare_add = line_number(line, line_has(line, "add") ? "add" : "compare", 0);
	wr->swap = line_number(line, "swap", 0);
	wr->remote_srqn = (uint32_t)line_number(line, "srqn", 0);
	wr->flush_length = (uint32_t)line_number(line, "range", 0);
	wr->flush_type = (uint8_t)line_number(line, "type", VB_FLUSH_GLOBAL);
	wr->flush_level = (uint8_t)line_number(line, "level", VB_FLUSH_RANGE);
	if (wr->opcode == VB_WR_BIND_MW)
		read_bind(line, wr);
	else if (wr->opcode != VB_WR_LOCAL_INV)
		wr->sge_count = read_sges(line, "from", is_atomic(wr->opcode) ? 8 : 0, sges);
	wr->sges = sges;
	if (actor->config.type == VB_QP_UD) {
		*av = actor->attr.av;
		av->dgid = read_gid(line, "to", av->dgid);
		wr->av = av;
		wr->remote_qpn = (uint32_t)line_number(line, "remote_qpn", 0x222);
		wr->remote_qkey = (uint32_t)line_number(line, "qkey", actor->attr.qkey);
	}
}

/* INLINE copies the bytes at once, from any address: the caller's memory is overwritten right after the post. */
static void make_inline(struct vb_send_wr *wr, struct vb_sge *sges, uint8_t *scratch)
{
	for (unsigned i = 0; i < wr->sge_count; i++) {
		uint8_t *from = shadow_at(sges[i].addr, sges[i].length);
		memcpy(scratch, from, sges[i].length);
		sges[i] = (struct vb_sge){ .addr = (uintptr_t)scratch, .length = sges[i].length, .lkey = 0 };
		scratch += sges[i].length;
	}
}

void do_post(struct line *line)
{
	stage_input(line);
	struct actor *actor = stage_actor(line);
	struct vb_sge sges[VB_MAX_SGE];
	uint8_t scratch[VB_MAX_INLINE * 2];
	struct vb_send_wr wr = { 0 };
	struct vb_av av;
	if (actor->posted_count == MAX_POSTED)
		fail(line, "too many posts");
	read_send(line, actor, &wr, sges, &av);
	bool is_kept = line_flag(line, "more"); /* published together with the next post */
	struct posted *posted = &actor->posted[actor->posted_count];
	*posted = (struct posted){ .wr_id = wr.wr_id,
		.opcode = wr.opcode,
		.flags = wr.flags,
		.sge_count = wr.sge_count,
		.imm_or_inv = wr.imm_or_inv,
		.rkey = wr.rkey,
		.remote_addr = wr.remote_addr,
		.srqn = wr.remote_srqn,
		.compare_add = wr.compare_add,
		.swap = wr.swap };
	memcpy(posted->sges, sges, sizeof(sges));
	for (unsigned i = 0; i < wr.sge_count; i++)
		posted->length += sges[i].length;
	posted->range = wr.flush_length;
	posted->feth = (uint32_t)(wr.flush_type | wr.flush_level << 4);
	if (wr.opcode != VB_WR_RDMA_READ && !is_atomic(wr.opcode)) {
		posted->bytes = calloc(1, posted->length + 1);
		shadow_gather(sges, wr.sge_count, posted->bytes);
	}
	if (wr.flags & VB_SEND_INLINE)
		make_inline(&wr, sges, scratch);
	static bool is_begun;
	if (!is_begun)
		vb_sq_begin(actor->qp);
	int rc = vb_sq_put(actor->qp, &wr);
	is_begun = is_kept;
	if (!is_kept)
		vb_sq_end(actor->qp, rc == 0);
	memset(scratch, 0xEE, sizeof(scratch));
	if (refused(line, rc, "post")) {
		free(posted->bytes);
		return;
	}
	if (!line_flag(line, "unsent")) /* its PSNs are for the next one */
		number_psns(actor, posted);
	actor->posted_count++;
	if (!is_kept) {
		if (!vb_lane_has_doorbells(stage.lane) && vb_qp_state(actor->qp) == VB_QPS_RTS)
			fail(line, "a post rings a doorbell");
		stage_settle(line);
	}
}

void do_recv(struct line *line)
{
	stage_input(line);
	struct actor *actor = stage.actor_count ? stage_actor(line) : NULL;
	bool is_shared = line_flag(line, "srq");
	struct named_srq *named = NULL;
	read_srqn(line, &named);
	struct recv_queue *queue = named ? &named->recvs : is_shared ? &stage.srq_recvs : actor->recvs;
	struct recv *recv = &queue->items[queue->tail % MAX_RECVS];
	*recv = (struct recv){ .wr_id = line_number(line, "wr", 0) };
	recv->sge_count = read_sges(line, "at", 0, recv->sges);
	struct vb_recv_wr wr = { .wr_id = recv->wr_id, .sges = recv->sges, .sge_count = recv->sge_count };
	int rc = named       ? vb_srq_post(named->srq, &wr)
		 : is_shared ? vb_srq_post(stage.srq, &wr)
			     : vb_rq_post(actor->qp, &wr);
	if (refused(line, rc, "recv"))
		return;
	queue->tail++;
	stage_settle(line);
}

/* Puts a number where the program keeps it: of the local memory behind an address. */
void do_store(struct line *line)
{
	stage_input(line);
	uint64_t at = read_address(line, "at", 0), value = line_number(line, "value", 0);
	struct region *region = region_at(at, 8);
	memcpy(region->shadow + (at - region->iova), &value, 8);
	memcpy(region->bytes + (at - region->iova), &value, 8);
}

void do_modify(struct line *line)
{
	stage_input(line);
	struct actor *actor = stage_actor(line);
	struct vb_qp_attr attr = actor->attr;
	enum vb_qp_state to = read_state(line, line_text(line, "state"));
	uint32_t mask = to == VB_QPS_RTS && vb_qp_state(actor->qp) != VB_QPS_RTR
				? VB_QP_STATE
				: attributes_of(actor->config.type, to);
	attr.state = to;
	if (line_flag(line, "notify")) {
		attr.notify_drained = true;
		mask |= VB_QP_EN_SQD_ASYNC_NOTIFY;
	}
	if (line_has(line, "min_rnr") && to == VB_QPS_RTS)
		mask |= VB_QP_MIN_RNR_TIMER;
	if (line_has(line, "dest_rd_atomic") && to == VB_QPS_SQD)
		mask |= VB_QP_MAX_DEST_RD_ATOMIC;
	read_attributes(line, &attr);
	int rc = vb_qp_modify(actor->qp, &attr, mask, stage.now);
	if (!refused(line, rc, "modify"))
		actor->attr = attr;
	if (to == VB_QPS_RESET && rc == 0) {
		actor->recvs->head = actor->recvs->tail;
		actor->message_open = false;
	}
	if (to == VB_QPS_RTS)
		actor->next_psn = mask & VB_QP_SQ_PSN ? attr.sq_psn : actor->next_psn;
	stage_settle(line);
}

void do_arm(struct line *line)
{
	stage_input(line);
	vb_cq_request_notify(find_cq(line, "cq")->cq, line_flag(line, "solicited"));
}

void do_invalidate(struct line *line)
{
	stage_input(line);
	const char *name = line_text(line, "mr");
	struct region *region = region_named(name, strlen(name));
	refused(line, vb_mr_invalidate(region->mr), "invalidate");
}

void do_mcast(struct line *line)
{
	stage_input(line);
	struct vb_gid gid = read_gid(line, "group", stage.peer);
	struct actor *actor = stage_actor(line);
	int rc = line_flag(line, "leave") ? vb_qp_detach_mcast(actor->qp, &gid) : vb_qp_attach_mcast(actor->qp, &gid);
	line_flag(line, "join");
	refused(line, rc, "mcast");
}

/* send_error errno=14 [after=2]: the next packet handed out, or the third, cannot be sent. */
void do_send_error(struct line *line)
{
	stage_input(line);
	stage.send_error = (int)line_number(line, "errno", EFAULT);
	stage.send_error_after = (unsigned)line_number(line, "after", 0);
}

void do_flush_acks(struct line *line)
{
	stage_input(line);
	vb_lane_flush_acks(stage.lane);
	stage_settle(line);
}
