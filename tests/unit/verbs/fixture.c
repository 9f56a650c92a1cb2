/* See fixture.h. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "loop_host.h"

int fixture_open(void **state)
{
	struct fixture *f = aligned_alloc(64, sizeof(*f));
	memset(f, 0, sizeof(*f));
	struct ibv_device **list = ibv_get_device_list(NULL);
	assert_non_null(list);
	f->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(f->context);
	f->pd = ibv_alloc_pd(f->context);
	f->channel = ibv_create_comp_channel(f->context);
	f->cq = ibv_create_cq(f->context, 64, f, f->channel, 0);
	f->mr = ibv_reg_mr(f->pd, f->buffer, sizeof(f->buffer), ALL_ACCESS);
	assert_non_null(f->pd);
	assert_non_null(f->channel);
	assert_non_null(f->cq);
	assert_non_null(f->mr);
	*state = f;
	return 0;
}

int fixture_close(void **state)
{
	struct fixture *f = *state;
	loop_set_forked(false);
	loop_set_blocked(false);
	if (f->left)
		assert_int_equal(ibv_destroy_qp(f->left), 0);
	if (f->right)
		assert_int_equal(ibv_destroy_qp(f->right), 0);
	assert_int_equal(ibv_dereg_mr(f->mr), 0);
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(f->channel), 0);
	assert_int_equal(ibv_dealloc_pd(f->pd), 0);
	assert_int_equal(ibv_close_device(f->context), 0);
	assert_int_equal(loop_open_devices(), 0);
	assert_int_equal(loop_groups(), 0);
	free(f);
	return 0;
}

int fixture_connect_rc(void **state)
{
	fixture_open(state);
	struct fixture *f = *state;
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_RC, NULL);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	return 0;
}

struct ibv_qp *fixture_create_qp(struct fixture *f, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.srq = srq,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	return qp;
}

void fixture_init_qp(struct ibv_qp *qp)
{
	bool is_ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
		0);
}

struct ibv_ah_attr fixture_ah_attr(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .sgid_index = LOOP_IPV4_GID_INDEX, .hop_limit = 64 },
	};
	struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 1);
	memcpy(attr.grh.dgid.raw, gid.raw, sizeof(gid.raw));
	return attr;
}

void fixture_connect(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = 100,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = fixture_ah_attr(),
	};
	fixture_init_qp(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 100,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

void fixture_start_ud(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	fixture_init_qp(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct ibv_wc fixture_complete(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	memset(&wc, 0xff, sizeof(wc));
	int got = 0;
	for (int i = 0; i < 20000 && got == 0; i++)
		got = ibv_poll_cq(cq, 1, &wc);
	assert_int_equal(got, 1);
	return wc;
}

struct ibv_sge fixture_sge(struct fixture *f, unsigned offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)f->buffer + offset, length, f->mr->lkey };
}

int fixture_post_recv(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = sge ? 1 : 0 }, *bad;
	return ibv_post_recv(qp, &wr, &bad);
}

int fixture_post(struct ibv_qp *qp, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	return ibv_post_send(qp, &wr, &bad);
}

bool fixture_is_readable(int fd)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	return poll(&readable, 1, 0) > 0;
}
