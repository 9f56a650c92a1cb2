/* Between the kernel's structures and ours: each field comes out where it belongs, and nothing else is touched. */
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include "fixture.h"

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

/* Every byte of ours that the kernel's structure with this field alone sets must be of our field. */
#define EXPECT_ALONE(theirs, ours)                                                                                     \
	do {                                                                                                           \
		struct ib_uverbs_qp_attr from_ = { 0 };                                                                \
		struct ibv_qp_attr to_ = { 0 }, none_ = { 0 };                                                         \
		memset(&from_.theirs, 0x7f, sizeof(from_.theirs));                                                     \
		ibv_copy_qp_attr_from_kern(&to_, &from_);                                                              \
		assert_memory_equal(&to_.ours, &from_.theirs,                                                          \
			sizeof(to_.ours) < sizeof(from_.theirs) ? sizeof(to_.ours) : sizeof(from_.theirs));            \
		memset(&to_.ours, 0, sizeof(to_.ours));                                                                \
		assert_memory_equal(&to_, &none_, sizeof(to_));                                                        \
	} while (0)
#define EXPECT_SAME(field) EXPECT_ALONE(field, field)

static void expect_address(void)
{
	EXPECT_SAME(ah_attr.grh.dgid);
	EXPECT_SAME(ah_attr.grh.flow_label);
	EXPECT_SAME(ah_attr.grh.sgid_index);
	EXPECT_SAME(ah_attr.grh.hop_limit);
	EXPECT_SAME(ah_attr.grh.traffic_class);
	EXPECT_SAME(ah_attr.dlid);
	EXPECT_SAME(ah_attr.sl);
	EXPECT_SAME(ah_attr.src_path_bits);
	EXPECT_SAME(ah_attr.static_rate);
	EXPECT_SAME(ah_attr.is_global);
	EXPECT_SAME(ah_attr.port_num);
	EXPECT_SAME(alt_ah_attr.grh.dgid);
	EXPECT_SAME(alt_ah_attr.port_num);
}

static void qp_attr__has_each_field_in_its_place(void **state)
{
	expect_address();
	EXPECT_SAME(cur_qp_state);
	EXPECT_SAME(path_mtu);
	EXPECT_SAME(path_mig_state);
	EXPECT_SAME(qkey);
	EXPECT_SAME(rq_psn);
	EXPECT_SAME(sq_psn);
	EXPECT_SAME(dest_qp_num);
	EXPECT_SAME(qp_access_flags);
	EXPECT_ALONE(max_send_wr, cap.max_send_wr);
	EXPECT_ALONE(max_recv_wr, cap.max_recv_wr);
	EXPECT_ALONE(max_send_sge, cap.max_send_sge);
	EXPECT_ALONE(max_recv_sge, cap.max_recv_sge);
	EXPECT_ALONE(max_inline_data, cap.max_inline_data);
	EXPECT_SAME(pkey_index);
	EXPECT_SAME(alt_pkey_index);
	EXPECT_SAME(en_sqd_async_notify);
	EXPECT_SAME(sq_draining);
	EXPECT_SAME(max_rd_atomic);
	EXPECT_SAME(max_dest_rd_atomic);
	EXPECT_SAME(min_rnr_timer);
	EXPECT_SAME(port_num);
	EXPECT_SAME(timeout);
	EXPECT_SAME(retry_cnt);
	EXPECT_SAME(rnr_retry);
	EXPECT_SAME(alt_port_num);
	EXPECT_SAME(alt_timeout);
}

/* The caller has set it, and the kernel's may be another. */
static void qp_attr__state_stays_the_callers(void **state)
{
	struct ib_uverbs_qp_attr from = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RTR };

	ibv_copy_qp_attr_from_kern(&to, &from);
	assert_int_equal(to.qp_state, IBV_QPS_RTR);
}

static void path_record__comes_back_as_it_went(void **state)
{
	struct ibv_sa_path_rec path = { .dlid = 1,
		.slid = 2,
		.raw_traffic = 3,
		.flow_label = 4,
		.hop_limit = 5,
		.traffic_class = 6,
		.reversible = 7,
		.numb_path = 8,
		.pkey = 9,
		.sl = 10,
		.mtu_selector = 11,
		.mtu = 12,
		.rate_selector = 13,
		.rate = 14,
		.packet_life_time_selector = 15,
		.packet_life_time = 16,
		.preference = 17 };
	struct ibv_sa_path_rec back = { 0 };
	struct ib_user_path_rec kernels = { 0 };

	memset(path.dgid.raw, 18, sizeof(path.dgid.raw));
	memset(path.sgid.raw, 19, sizeof(path.sgid.raw));
	ibv_copy_path_rec_to_kern(&kernels, &path);
	assert_int_equal(kernels.dgid[15], 18);
	assert_int_equal(kernels.slid, 2);
	assert_int_equal(kernels.packet_life_time, 16);
	ibv_copy_path_rec_from_kern(&back, &kernels);
	assert_memory_equal(&back, &path, sizeof(path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_attr__has_each_field_in_its_place),
		cmocka_unit_test(qp_attr__state_stays_the_callers),
		cmocka_unit_test(path_record__comes_back_as_it_went),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
