/* What the tests of an opened device share: handlers that ignore, and a QP brought to RTS step by step. */
#ifndef VB_TEST_HOST_CONNECTED_H
#define VB_TEST_HOST_CONNECTED_H

#include "../unit.h"
#include "host/host.h"

static void on_port(void *user, bool is_active) {}

static void on_gid_change(void *user) {}

static inline void modify_on(struct vb_device *device, struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	int rc = vb_qp_modify(qp, attr, VB_QP_STATE | mask, vb_host_now());
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(rc, 0);
}

/* Over the device's first address to itself. attr says the rest; without dest_qpn the QP is its own peer. */
static inline struct vb_qp *connected_on(
	struct vb_device *device, struct vb_pd *pd, struct vb_cq *cq, struct vb_qp_attr attr)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = pd,
		.send_cq = cq,
		.recv_cq = cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.signal_all = true };
	struct vb_device_info info;
	struct vb_qp *qp;

	vb_device_query(device, &info);
	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	int rc = vb_qp_create(vb_host_lane_lane(vb_device_host_lane(device)), &config, &qp);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(rc, 0);
	attr.port = 1;
	attr.path_mtu = 1024;
	attr.min_rnr_timer = 12;
	attr.av = (struct vb_av){ .sgid = info.gids[0].gid, .dgid = info.gids[0].gid };
	if (!attr.dest_qpn)
		attr.dest_qpn = vb_qp_number(qp);
	attr.state = VB_QPS_INIT;
	modify_on(device, qp, &attr, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	attr.state = VB_QPS_RTR;
	modify_on(device, qp, &attr,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER);
	attr.state = VB_QPS_RTS;
	modify_on(device, qp, &attr,
		VB_QP_SQ_PSN | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC);
	return qp;
}

/* A UD QP that receives: whoever likes may be introduced to its lane. */
static inline struct vb_qp *receiving_datagrams_on(struct vb_device *device, struct vb_pd *pd, struct vb_cq *cq)
{
	struct vb_qp_config config = { .type = VB_QP_UD,
		.pd = pd,
		.send_cq = cq,
		.recv_cq = cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	struct vb_qp_attr attr = { .state = VB_QPS_INIT, .port = 1, .qkey = 1 };
	struct vb_qp *qp;

	assert_int_equal(vb_host_lane_lock(vb_device_host_lane(device)), 0);
	int rc = vb_qp_create(vb_host_lane_lane(vb_device_host_lane(device)), &config, &qp);
	vb_host_lane_unlock(vb_device_host_lane(device));
	assert_int_equal(rc, 0);
	modify_on(device, qp, &attr, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY);
	attr.state = VB_QPS_RTR;
	modify_on(device, qp, &attr, 0);
	return qp;
}

#endif
