/* XRC domains, the numbers of SRQs, and which parts a QP of one half may have. What packets do is tests/script/xrc. */
#include <errno.h>
#include "engine/nic.h"
#include "core/memory.h"
#include "core/queues.h"
#include "../unit.h"

struct scene {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_xrcd *xrcd;
};

static void open_scene(struct scene *s)
{
	struct vb_nic_config nic = { .seed = 1, .mtu = 4096 };
	struct vb_lane_config lane = { .seed = 1, .slot = 1 };
	struct vb_cq_config cq = { .capacity = 8 };
	assert_int_equal(vb_nic_create(&nic, &s->nic), 0);
	assert_int_equal(vb_lane_create(&lane, &s->lane), 0);
	assert_int_equal(vb_pd_create(s->nic, &s->pd), 0);
	assert_int_equal(vb_cq_create(s->nic, &cq, &s->cq), 0);
	assert_int_equal(vb_xrcd_create(s->nic, &s->xrcd), 0);
}

/* Each of them goes only when nothing of it is left. */
static void close_scene(struct scene *s)
{
	assert_int_equal(vb_xrcd_destroy(s->xrcd), 0);
	assert_int_equal(vb_cq_destroy(s->cq), 0);
	assert_int_equal(vb_pd_destroy(s->pd), 0);
	vb_lane_destroy(s->lane);
	vb_nic_destroy(s->nic);
}

static struct vb_srq *created(struct scene *s)
{
	struct vb_srq_config config = { .max_wr = 1, .max_sge = 1, .xrcd = s->xrcd, .cq = s->cq };
	struct vb_srq *srq;
	assert_int_equal(vb_srq_create(s->pd, &config, &srq), 0);
	return srq;
}

static void srq__domain_and_cq_belong_together_and_to_one_device(void **state)
{
	struct scene s, other;
	open_scene(&s);
	open_scene(&other);
	const struct vb_srq_config bad[] = {
		{ .max_wr = 1, .xrcd = s.xrcd },
		{ .max_wr = 1, .cq = s.cq },
		{ .max_wr = 1, .xrcd = other.xrcd, .cq = s.cq },
		{ .max_wr = 1, .xrcd = s.xrcd, .cq = other.cq },
	};
	struct vb_srq *srq = NULL;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(vb_srq_create(s.pd, &bad[i], &srq), -EINVAL);
	assert_null(srq);
	close_scene(&s);
	close_scene(&other);
}

static void srq__holds_its_domain_and_its_cq(void **state)
{
	struct scene s;
	open_scene(&s);
	struct vb_srq *srq = created(&s);
	assert_int_equal(vb_xrcd_destroy(s.xrcd), -EBUSY);
	assert_int_equal(vb_cq_destroy(s.cq), -EBUSY);
	assert_int_equal(vb_pd_destroy(s.pd), -EBUSY);
	assert_int_equal(vb_srq_destroy(srq), 0);
	close_scene(&s);
}

/* All indices come before one comes again, and then with another number. */
static void numbers__do_not_return_soon(void **state)
{
	struct scene s;
	open_scene(&s);
	uint32_t first = 0;
	for (uint32_t i = 0; i < 2 * VB_MAX_XRC_SRQ + 2; i++) {
		struct vb_srq *srq = created(&s);
		uint32_t number = vb_srq_number(srq);
		assert_true(number != 0 && number < 1u << 24);
		if (i == 0)
			first = number;
		assert_true(i == 0 || number != first);
		assert_int_equal(number & 0xffff, 1 + i % VB_MAX_XRC_SRQ);
		assert_int_equal(vb_srq_destroy(srq), 0);
	}
	close_scene(&s);
}

static void numbers__run_out_cleanly(void **state)
{
	struct scene s;
	open_scene(&s);
	struct vb_srq **all = calloc(VB_MAX_XRC_SRQ, sizeof(struct vb_srq *)), *more = NULL;
	struct vb_srq_config config = { .max_wr = 1, .max_sge = 1, .xrcd = s.xrcd, .cq = s.cq };
	for (uint32_t i = 0; i < VB_MAX_XRC_SRQ; i++)
		all[i] = created(&s);
	assert_int_equal(vb_srq_create(s.pd, &config, &more), -ENOMEM);
	uint32_t freed = vb_srq_number(all[500]);
	assert_int_equal(vb_srq_destroy(all[500]), 0);
	all[500] = created(&s);
	assert_int_equal(vb_srq_number(all[500]), freed + 0x10000);
	for (uint32_t i = 0; i < VB_MAX_XRC_SRQ; i++)
		assert_int_equal(vb_srq_destroy(all[i]), 0);
	free(all);
	close_scene(&s);
}

static void qp__halves_have_their_parts_alone(void **state)
{
	struct scene s;
	open_scene(&s);
	struct vb_srq *srq = created(&s);
	const struct vb_qp_config bad[] = {
		{ .type = VB_QP_XRC_SEND, .send_cq = s.cq },
		{ .type = VB_QP_XRC_SEND, .pd = s.pd },
		{ .type = VB_QP_XRC_SEND, .pd = s.pd, .send_cq = s.cq, .recv_cq = s.cq },
		{ .type = VB_QP_XRC_SEND, .pd = s.pd, .send_cq = s.cq, .xrcd = s.xrcd },
		{ .type = VB_QP_XRC_SEND, .pd = s.pd, .send_cq = s.cq, .srq = srq },
		{ .type = VB_QP_XRC_RECV },
		{ .type = VB_QP_XRC_RECV, .xrcd = s.xrcd, .pd = s.pd },
		{ .type = VB_QP_XRC_RECV, .xrcd = s.xrcd, .send_cq = s.cq },
		{ .type = VB_QP_XRC_RECV, .xrcd = s.xrcd, .srq = srq },
		{ .type = VB_QP_RC, .pd = s.pd, .send_cq = s.cq, .recv_cq = s.cq, .xrcd = s.xrcd },
		{ .type = VB_QP_RC, .pd = s.pd, .send_cq = s.cq, .recv_cq = s.cq, .srq = srq },
	};
	struct vb_qp *qp = NULL;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct vb_qp_config config = bad[i];
		assert_int_equal(vb_qp_create(s.lane, &config, &qp), -EINVAL);
	}
	assert_null(qp);
	assert_int_equal(vb_srq_destroy(srq), 0);
	close_scene(&s);
}

static void qp__receiving_one_holds_its_domain_and_reports_no_parts(void **state)
{
	struct scene s;
	open_scene(&s);
	struct vb_qp *qp;
	struct vb_qp_attr attr;
	struct vb_qp_config config = { .type = VB_QP_XRC_RECV, .xrcd = s.xrcd, .max_send_wr = 5, .max_recv_wr = 5 };
	assert_int_equal(vb_qp_create(s.lane, &config, &qp), 0);
	assert_int_equal(config.max_send_wr + config.max_recv_wr, 0);
	assert_int_equal(vb_xrcd_destroy(s.xrcd), -EBUSY);
	vb_qp_query(qp, &attr, &config);
	assert_ptr_equal(config.xrcd, s.xrcd);
	assert_true(!config.pd && !config.send_cq && !config.recv_cq && !config.srq);
	assert_int_equal(vb_qp_destroy(qp), 0);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(srq__domain_and_cq_belong_together_and_to_one_device),
		cmocka_unit_test(srq__holds_its_domain_and_its_cq),
		cmocka_unit_test(numbers__do_not_return_soon),
		cmocka_unit_test(numbers__run_out_cleanly),
		cmocka_unit_test(qp__halves_have_their_parts_alone),
		cmocka_unit_test(qp__receiving_one_holds_its_domain_and_reports_no_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
