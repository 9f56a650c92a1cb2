/* Two lanes, each a process's, between which either packets travel, or descriptors over rings in memory. How much room
 * there is in the rings, and how much of them is carried at a time, is the test's to say. */
#ifndef VB_TESTS_PAIR_H
#define VB_TESTS_PAIR_H

#include "base/random.h"
#include "engine/check.h"
#include "core/lane.h"
#include "local/local.h"
#include "engine/qp.h"
#include "core/tags.h"
#include "../unit.h"

enum { PAIR_BYTES = 1 << 20, PAIR_RING = 64, PAIR_HEAP = 4 * VB_LOCAL_PART, PAIR_PAGES = 4096, PAIR_QKEY = 17 };

/* One direction's rings. */
struct pair_way {
	struct vb_descriptor descriptors[PAIR_RING];
	struct vb_answer answers[PAIR_RING];
	unsigned descriptor_head, descriptor_tail, answer_head, answer_tail;
	uint8_t *heap;
	uint32_t heap_used;
};

struct pair_side {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	uint8_t *memory;
	struct vb_gid gid;
	struct vb_local_peer other;
	struct pair_way out; /* what this side says */
	struct vb_epochs epochs;
};

struct pair {
	struct pair_side side[2];
	bool is_local;
	unsigned descriptor_room, answer_room; /* at a time */
	enum vb_local_outcome outcome;         /* of pulls */
	struct vb_random *fate;                /* of some pulls of READs; or NULL */
	const uint8_t *elsewhere;              /* what is lent, in place of the sides' memory; or NULL */
	uint32_t elsewhere_bytes;
	unsigned pulls, descriptors, answers; /* ever */
	unsigned awaited;                     /* rooms with answers that somebody waits for, ever */
	uint32_t segment;                     /* that the newest pull named */
	vb_time now;
	struct vb_batch batch;
	uint8_t wire[VB_BATCH_PACKETS][VB_MAX_MTU];
};

static inline void pair_open_side(struct pair_side *side, uint8_t n, uint32_t lend_from)
{
	struct vb_lane_config lane = { .seed = n, .slot = n };
	side->gid = vb_gid_from_ipv4(10, 0, 0, n);
	side->memory = aligned_alloc(PAIR_PAGES, PAIR_BYTES);
	memset(side->memory, 0, PAIR_BYTES);
	side->out.heap = malloc(PAIR_HEAP);
	assert_int_equal(
		vb_nic_create(&(struct vb_nic_config){ .seed = n, .mtu = 1024, .epochs = &side->epochs }, &side->nic),
		0);
	struct vb_gid others = vb_gid_from_ipv4(10, 0, 0, (uint8_t)(3 - n)); /* of the same device */
	assert_int_equal(vb_nic_set_gid(side->nic, 0, &side->gid), 0);
	assert_int_equal(vb_nic_set_gid(side->nic, 1, &others), 0);
	assert_int_equal(vb_lane_create(&lane, &side->lane), 0);
	assert_int_equal(vb_pd_create(side->nic, &side->pd), 0);
	assert_int_equal(vb_cq_create(side->nic, &(struct vb_cq_config){ .capacity = 256 }, &side->cq), 0);
	struct vb_mr_config mr = { .memory = side->memory,
		.iova = 1 << 20,
		.length = PAIR_BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ |
			  VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_FLUSH_GLOBAL | VB_ACCESS_MW_BIND };
	assert_int_equal(vb_mr_register(side->pd, &mr, &side->mr), 0);
	vb_local_peer_init(&side->other, side->lane, (uint8_t)(3 - n), lend_from);
	vb_local_peer_set_pulling(&side->other, lend_from);
	vb_lane_publish_epochs(side->lane, &side->epochs);
}

static inline void pair_modify(struct pair *p, int of, enum vb_qp_state state, uint32_t mask)
{
	struct pair_side *side = &p->side[of], *peer = &p->side[!of];
	struct vb_qp_attr attr = { .state = state,
		.path_mtu = 1024,
		.port = 1,
		.dest_qpn = vb_qp_number(peer->qp),
		.sq_psn = 0xfffff0u + (uint32_t)of,
		.rq_psn = 0xfffff0u + (uint32_t)!of,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.timeout = 8,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.min_rnr_timer = 1,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC |
			  VB_ACCESS_FLUSH_GLOBAL,
		.av = { .sgid = side->gid, .dgid = peer->gid } };
	assert_int_equal(vb_qp_modify(side->qp, &attr, VB_QP_STATE | mask, p->now), 0);
}

static inline void pair_to_rtr(struct pair *p, int of)
{
	enum vb_qp_type type = p->side[of].qp->type;
	bool is_reliable = type == VB_QP_RC || type == VB_QP_XRC_RECV;
	pair_modify(p, of, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	pair_modify(p, of, VB_QPS_RTR,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
			(is_reliable ? VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER : 0));
}

static inline void pair_to_rts(struct pair *p, int of)
{
	enum vb_qp_type type = p->side[of].qp->type;
	uint32_t of_requester = VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC;
	pair_modify(p, of, VB_QPS_RTS,
		VB_QP_SQ_PSN | (type == VB_QP_UC ? 0 : VB_QP_TIMEOUT) |
			(type == VB_QP_RC || type == VB_QP_XRC_SEND ? of_requester : 0));
}

static inline void pair_ud_to_rts(struct pair *p, int of)
{
	struct vb_qp_attr attr = { .state = VB_QPS_INIT, .port = 1, .qkey = PAIR_QKEY };
	uint32_t mask[] = { VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY, 0, VB_QP_SQ_PSN };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vb_qp_modify(p->side[of].qp, &attr, VB_QP_STATE | mask[i], p->now), 0);
		attr.state++;
	}
}

static inline struct vb_qp *pair_qp(struct pair_side *side, enum vb_qp_type type, struct vb_srq *srq)
{
	struct vb_qp_config config = { .type = type,
		.pd = side->pd,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.srq = srq,
		.max_send_wr = 16,
		.max_recv_wr = 16,
		.max_send_sge = 3,
		.max_recv_sge = 3,
		.max_inline = 256 };
	struct vb_qp *qp;
	assert_int_equal(vb_qp_create(side->lane, &config, &qp), 0);
	return qp;
}

/* Each knows the other as a local peer, if it is to be one. */
static inline void pair_be_local_peers(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			vb_lane_set_local_peer(p->side[i].lane, &p->side[!i].gid, (uint8_t)(2 - i), &p->side[i].other),
			0);
}

static inline struct pair *pair_open_lanes(bool is_local, uint32_t lend_from)
{
	struct pair *p = calloc(1, sizeof(*p));
	p->is_local = is_local;
	p->descriptor_room = p->answer_room = PAIR_RING;
	for (int i = 0; i < 2; i++)
		pair_open_side(&p->side[i], (uint8_t)(i + 1), lend_from);
	if (is_local)
		pair_be_local_peers(p);
	return p;
}

static inline void pair_connect(struct pair *p)
{
	for (int i = 0; i < 2 && p->side[0].qp->type == VB_QP_UD; i++)
		pair_ud_to_rts(p, i);
	if (p->side[0].qp->type == VB_QP_UD)
		return;
	for (int i = 0; i < 2; i++)
		pair_to_rtr(p, i);
	for (int i = 0; i < 2; i++)
		pair_to_rts(p, i);
}

static inline struct pair *pair_open(enum vb_qp_type type, bool is_local, uint32_t lend_from)
{
	struct pair *p = pair_open_lanes(is_local, lend_from);
	for (int i = 0; i < 2; i++)
		p->side[i].qp = pair_qp(&p->side[i], type, NULL);
	pair_connect(p);
	return p;
}

static inline void pair_check(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		vb_lane_check(p->side[i].lane);
		vb_local_peer_check(&p->side[i].other);
	}
}

static inline void pair_close(struct pair *p)
{
	struct vb_event event;
	for (int i = 0; i < 2; i++) {
		struct pair_side *side = &p->side[i];
		if (side->qp)
			assert_int_equal(vb_qp_destroy(side->qp), 0);
		vb_local_lost(&side->other, p->now);
		while (vb_lane_next_event(side->lane, &event))
			;
		assert_int_equal(vb_mr_invalidate(side->mr), 0);
		vb_mr_free(side->mr);
		assert_int_equal(vb_cq_destroy(side->cq), 0);
		assert_int_equal(vb_pd_destroy(side->pd), 0);
		vb_lane_destroy(side->lane);
		vb_nic_destroy(side->nic);
		free(side->memory);
		free(side->out.heap);
	}
	free(p);
}

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

static inline struct vb_local_room pair_room(
	struct pair *p, struct pair_way *way, struct vb_descriptor *descriptors, struct vb_answer *answers)
{
	unsigned free_descriptors = PAIR_RING - (way->descriptor_tail - way->descriptor_head);
	unsigned free_answers = PAIR_RING - (way->answer_tail - way->answer_head);
	if (free_descriptors == PAIR_RING && free_answers == PAIR_RING)
		way->heap_used = 0;
	return (struct vb_local_room){ .descriptors = descriptors,
		.answers = answers,
		.descriptor_max = free_descriptors < p->descriptor_room ? free_descriptors : p->descriptor_room,
		.answer_max = free_answers < p->answer_room ? free_answers : p->answer_room,
		.heap = way->heap + way->heap_used,
		.heap_at = way->heap_used,
		.heap_bytes = PAIR_HEAP - way->heap_used };
}

static inline bool pair_put(struct pair *p, struct pair_way *way, const struct vb_local_room *room)
{
	for (unsigned i = 0; i < room->descriptor_count; i++)
		way->descriptors[way->descriptor_tail++ % PAIR_RING] = room->descriptors[i];
	for (unsigned i = 0; i < room->answer_count; i++)
		way->answers[way->answer_tail++ % PAIR_RING] = room->answers[i];
	way->heap_used += room->heap_used;
	p->descriptors += room->descriptor_count;
	p->answers += room->answer_count;
	p->awaited += room->is_awaited;
	return room->descriptor_count + room->answer_count > 0;
}

static inline void pair_copy(const struct vb_local_pull *pull)
{
	uint8_t *bytes = malloc(pull->length);
	uint32_t length = 0;
	for (unsigned i = 0; i < pull->lent_count; length += pull->lent[i++].length)
		memcpy(bytes + length, (const uint8_t *)(uintptr_t)pull->lent[i].address, pull->lent[i].length);
	assert_int_equal(length, pull->length);
	length = 0;
	for (unsigned i = 0; i < pull->iov_count; length += (uint32_t)pull->iov[i++].length)
		memcpy(pull->iov[i].base, bytes + length, pull->iov[i].length);
	assert_int_equal(length, pull->length);
	free(bytes);
}

static inline enum vb_local_outcome pair_outcome(
	struct pair *p, const struct pair_side *of, const struct vb_local_pull *pull)
{
	const uint8_t *proof = (const uint8_t *)&of->epochs + pull->proof_at;
	const uint8_t *memory = p->elsewhere ? p->elsewhere : of->memory;
	uint32_t bytes = p->elsewhere ? p->elsewhere_bytes : PAIR_BYTES;
	bool is_read = pull->proof_at < offsetof(struct vb_epochs, epochs);
	if (p->fate && is_read && vb_random_below(p->fate, 4) == 0)
		return vb_random_below(p->fate, 2) ? VB_PULL_STALE : VB_PULL_REFUSED;
	for (unsigned i = 0; i < pull->lent_count; i++) {
		uint64_t offset = pull->lent[i].address - (uintptr_t)memory;
		if (offset > bytes || pull->lent[i].length > bytes - offset)
			return VB_PULL_FAULT;
	}
	if (memcmp(proof, &pull->proof, pull->proof_bytes) != 0)
		return VB_PULL_STALE;
	return p->outcome;
}

/* One piece. */
static inline bool pair_pull(struct pair *p, int of)
{
	struct pair_side *side = &p->side[of], *peer = &p->side[!of];
	struct vb_local_pull pull;
	if (!vb_local_pull(&side->other, &pull, p->now))
		return false;
	enum vb_local_outcome outcome = pair_outcome(p, peer, &pull);
	if (outcome == VB_PULLED)
		pair_copy(&pull);
	p->pulls++;
	p->segment = pull.lent[0].segment;
	peer->out.descriptor_head += vb_local_pulled(&side->other, outcome, p->now);
	pair_check(p);
	return true;
}

static inline bool pair_take_answers(struct pair *p, int of)
{
	struct pair_side *side = &p->side[of];
	struct pair_way *in = &p->side[!of].out;
	struct vb_local_heap heap = { in->heap, PAIR_HEAP };
	if (in->answer_head == in->answer_tail)
		return false;
	for (; in->answer_head != in->answer_tail; in->answer_head++)
		vb_local_answered(&side->other, &in->answers[in->answer_head % PAIR_RING], 1, &heap, p->now);
	pair_check(p);
	return true;
}

static inline bool pair_take_descriptors(struct pair *p, int of, unsigned most)
{
	struct pair_side *side = &p->side[of];
	struct pair_way *in = &p->side[!of].out;
	struct vb_descriptor descriptors[PAIR_RING], given[PAIR_RING];
	struct vb_answer answers[PAIR_RING];
	struct vb_local_heap heap = { in->heap, PAIR_HEAP };
	unsigned n = 0;
	for (unsigned i = in->descriptor_head; i != in->descriptor_tail && n < most; i++)
		given[n++] = in->descriptors[i % PAIR_RING];
	struct vb_local_room room = pair_room(p, &side->out, descriptors, answers);
	unsigned taken = vb_local_receive(&side->other, given, n, &heap, &room, p->now);
	pair_put(p, &side->out, &room);
	in->descriptor_head += taken;
	pair_check(p);
	return taken > 0;
}

static inline bool pair_send(struct pair *p, int of)
{
	struct pair_side *side = &p->side[of];
	struct vb_descriptor descriptors[PAIR_RING];
	struct vb_answer answers[PAIR_RING];
	if (!vb_local_wants_transmit(&side->other))
		return false;
	struct vb_local_room room = pair_room(p, &side->out, descriptors, answers);
	vb_local_transmit(&side->other, &room, p->now);
	bool has_sent = pair_put(p, &side->out, &room);
	pair_check(p);
	return has_sent;
}

static inline bool pair_step_local(struct pair *p, int of, unsigned most)
{
	bool is_busy = pair_take_answers(p, of);
	is_busy |= pair_take_descriptors(p, of, most);
	is_busy |= pair_pull(p, of);
	is_busy |= pair_send(p, of);
	return is_busy;
}

/* ---- Packets ----------------------------------------------------------------------------------------------------- */

static inline bool pair_step_wire(struct pair *p, int of)
{
	struct pair_side *from = &p->side[of], *to = &p->side[!of];
	struct vb_path path = { .src_port = 0xC000 };
	unsigned n = vb_lane_transmit(from->lane, &p->batch, VB_BATCH_PACKETS, p->now);
	for (unsigned i = 0; i < n; i++) {
		struct vb_packet packet = p->batch.out[i].packet;
		size_t length = 0;
		for (unsigned j = 0; j < p->batch.out[i].iov_count; j++) {
			const struct vb_iov *iov = &p->batch.iov[p->batch.out[i].iov_first + j];
			memcpy(p->wire[i] + length, iov->base, iov->length);
			length += iov->length;
		}
		packet.payload = length ? p->wire[i] : NULL;
		const struct vb_av *av = p->batch.out[i].av;
		path.src = av->sgid;
		path.dst = av->dgid;
		path.traffic_class = av->traffic_class;
		path.hop_limit = av->hop_limit ? av->hop_limit : 64;
		vb_lane_receive(to->lane, &path, &packet, 1, p->now);
	}
	vb_lane_transmit_done(from->lane, p->batch.completions, n, p->now);
	pair_check(p);
	return n > 0;
}

/* ---- Both -------------------------------------------------------------------------------------------------------- */

static inline void pair_advance(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		vb_lane_advance(p->side[i].lane, p->now);
	pair_check(p);
}

/* Until nothing moves: one round. */
static inline void pair_settle(struct pair *p)
{
	bool is_busy = true;
	while (is_busy) {
		is_busy = false;
		for (int i = 0; i < 2; i++) {
			is_busy |= pair_step_wire(p, i);
			if (p->is_local)
				is_busy |= pair_step_local(p, i, PAIR_RING);
		}
	}
}

/* And until nobody waits for a time, up to so many milliseconds. */
static inline void pair_run(struct pair *p, unsigned ms)
{
	for (unsigned i = 0; i < ms * 4; i++) {
		pair_settle(p);
		p->now = vb_time_add(p->now, 250 * VB_US);
		pair_advance(p);
	}
	pair_settle(p);
}

static inline struct vb_sge pair_sge(const struct pair *p, int of, uint32_t offset, uint32_t length)
{
	return (struct vb_sge){ (1 << 20) + offset, length, vb_mr_key(p->side[of].mr) };
}

static inline int pair_try_post(struct pair *p, int of, const struct vb_send_wr *wr)
{
	vb_sq_begin(p->side[of].qp);
	int error = vb_sq_put(p->side[of].qp, wr);
	vb_sq_end(p->side[of].qp, !error);
	return error;
}

/* A request about our memory from offset on and the peer's from there on as well. */
static inline struct vb_send_wr pair_wr(
	const struct pair *p, int of, enum vb_wr_opcode opcode, const struct vb_sge *sge, uint64_t remote)
{
	return (struct vb_send_wr){ .wr_id = 7,
		.opcode = opcode,
		.flags = VB_SEND_SIGNALED,
		.sges = sge,
		.sge_count = 1,
		.remote_addr = (1 << 20) + remote,
		.rkey = vb_mr_key(p->side[!of].mr) };
}

static inline void pair_post(
	struct pair *p, int of, enum vb_wr_opcode opcode, uint32_t offset, uint32_t length, uint64_t remote)
{
	struct vb_sge sge = pair_sge(p, of, offset, length);
	struct vb_send_wr wr = pair_wr(p, of, opcode, &sge, remote);
	assert_int_equal(pair_try_post(p, of, &wr), 0);
}

static inline struct vb_av pair_av(const struct pair *p, int of)
{
	return (struct vb_av){ .sgid = p->side[of].gid, .dgid = p->side[!of].gid, .hop_limit = 64 };
}

/* To the peer's QP. */
static inline void pair_post_datagram(struct pair *p, int of, uint32_t offset, uint32_t length)
{
	struct vb_sge sge = pair_sge(p, of, offset, length);
	struct vb_av av = pair_av(p, of);
	struct vb_send_wr wr = { .wr_id = 7,
		.opcode = VB_WR_SEND,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.av = &av,
		.remote_qpn = vb_qp_number(p->side[!of].qp),
		.remote_qkey = PAIR_QKEY };
	assert_int_equal(pair_try_post(p, of, &wr), 0);
}

static inline void pair_post_receive(struct pair *p, int of, uint64_t id, uint32_t offset, uint32_t length)
{
	struct vb_sge sge = pair_sge(p, of, offset, length);
	assert_int_equal(
		vb_rq_post(p->side[of].qp, &(struct vb_recv_wr){ .wr_id = id, .sges = &sge, .sge_count = 1 }), 0);
}

static inline struct vb_wc pair_completion(struct pair *p, int of)
{
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(p->side[of].cq, &wc, 1), 1);
	return wc;
}

#endif
