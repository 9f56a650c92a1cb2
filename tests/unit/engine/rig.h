/* One lane with RC QPs that are connected to a peer which the test plays: it hands over packets and looks at what
 * leaves. */
#ifndef VB_TESTS_RIG_H
#define VB_TESTS_RIG_H

#include "engine/check.h"
#include "core/lane.h"
#include "engine/qp.h"
#include "core/tags.h"
#include "../unit.h"

enum { RIG_MTU = 1024, RIG_BYTES = 65536, RIG_SQ_PSN = 100, RIG_RQ_PSN = 200 };

struct rig {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	uint8_t *memory;
	vb_time now;
	struct vb_batch batch; /* what left last */
};

static inline struct rig *rig_open_lane(uint32_t cq_capacity, const struct vb_lane_config *lane)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	rig->memory = calloc(1, RIG_BYTES);
	struct vb_mr_config mr = { .memory = rig->memory,
		.iova = (uintptr_t)rig->memory,
		.length = RIG_BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_MW_BIND };
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = 1, .mtu = RIG_MTU }, &rig->nic), 0);
	assert_int_equal(vb_lane_create(lane, &rig->lane), 0);
	assert_int_equal(vb_pd_create(rig->nic, &rig->pd), 0);
	assert_int_equal(vb_cq_create(rig->nic, &(struct vb_cq_config){ .capacity = cq_capacity }, &rig->cq), 0);
	assert_int_equal(vb_mr_register(rig->pd, &mr, &rig->mr), 0);
	return rig;
}

static inline struct rig *rig_open(uint32_t cq_capacity)
{
	return rig_open_lane(cq_capacity, &(struct vb_lane_config){ .seed = 1, .slot = 1 });
}

/* The QPs are gone already. */
static inline void rig_close(struct rig *rig)
{
	struct vb_event event;
	while (vb_lane_next_event(rig->lane, &event))
		;
	assert_int_equal(vb_mr_invalidate(rig->mr), 0);
	vb_mr_free(rig->mr);
	assert_int_equal(vb_cq_destroy(rig->cq), 0);
	assert_int_equal(vb_pd_destroy(rig->pd), 0);
	vb_lane_destroy(rig->lane);
	vb_nic_destroy(rig->nic);
	free(rig->memory);
	free(rig);
}

static inline struct vb_qp_attr rig_attr(enum vb_qp_state state)
{
	return (struct vb_qp_attr){ .state = state,
		.path_mtu = RIG_MTU,
		.port = 1,
		.dest_qpn = 0x020002,
		.sq_psn = RIG_SQ_PSN,
		.rq_psn = RIG_RQ_PSN,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.av = { .sgid = vb_gid_from_ipv4(10, 0, 0, 1), .dgid = vb_gid_from_ipv4(10, 0, 0, 2) } };
}

static inline void rig_modify(struct rig *rig, struct vb_qp *qp, enum vb_qp_state state, uint32_t mask)
{
	struct vb_qp_attr attr = rig_attr(state);
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE | mask, rig->now), 0);
}

static inline void rig_connect(struct rig *rig, struct vb_qp *qp)
{
	rig_modify(rig, qp, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	rig_modify(rig, qp, VB_QPS_RTR,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER);
	rig_modify(rig, qp, VB_QPS_RTS,
		VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC);
}

static inline struct vb_qp *rig_qp(struct rig *rig, struct vb_srq *srq)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = rig->pd,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.srq = srq,
		.max_send_wr = 8,
		.max_recv_wr = 8,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	struct vb_qp *qp;
	assert_int_equal(vb_qp_create(rig->lane, &config, &qp), 0);
	return qp;
}

static inline struct vb_qp *rig_connected(struct rig *rig, struct vb_srq *srq)
{
	struct vb_qp *qp = rig_qp(rig, srq);
	rig_connect(rig, qp);
	return qp;
}

static inline struct vb_sge rig_sge(const struct rig *rig, uint32_t offset, uint32_t length)
{
	return (struct vb_sge){ (uintptr_t)rig->memory + offset, length, vb_mr_key(rig->mr) };
}

static inline void rig_post(struct vb_qp *qp, const struct vb_send_wr *wr)
{
	vb_sq_begin(qp);
	assert_int_equal(vb_sq_put(qp, wr), 0);
	vb_sq_end(qp, true);
}

/* packet comes from the peer, with what every packet has filled in. */
static inline void rig_receive(struct rig *rig, struct vb_qp *qp, struct vb_packet packet)
{
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	packet.opcode |= VB_RC;
	packet.pkey = VB_PKEY_DEFAULT;
	packet.dest_qpn = vb_qp_number(qp);
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	vb_lane_check(rig->lane);
}

/* How many packets leave; they lie in rig->batch. */
static inline unsigned rig_transmit(struct rig *rig)
{
	unsigned count = vb_lane_transmit(rig->lane, &rig->batch, VB_BATCH_PACKETS, rig->now);
	vb_lane_transmit_done(rig->lane, rig->batch.completions, count, rig->now);
	vb_lane_check(rig->lane);
	return count;
}

static inline uint64_t rig_counter(const struct rig *rig, enum vb_counter which)
{
	uint64_t values[VB_COUNTER_COUNT];
	vb_lane_counters(rig->lane, values);
	return values[which];
}

#endif
