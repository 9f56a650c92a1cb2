/* Raw packet QPs as programs see them: who may have one, flows as they are written, work queues and their tables. */
#include <string.h>
#include "fixture.h"
#include "loop_host.h"

#define FRAME_BYTES 60

struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4_ext ipv4;
	struct ibv_flow_spec_tcp_udp udp;
};

/* UDP 1234 to 5678 from 1.1.1.1 to 2.2.2.2. */
static const uint8_t udp_frame[FRAME_BYTES] = { 0x01, 0x50, 0x56, 0x19, 0x20, 0xa7, 0x24, 0x8a, 7, 0xa5, 0x28, 0xc8,
	0x08, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0x04, 0xd2, 0x16, 0x2e, 0, 26, 0,
	0 };

static struct rule whole_rule(void)
{
	struct rule rule = {
		.attr = { .size = sizeof(rule), .num_of_specs = 3, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth), .val.ether_type = 8 },
		.ipv4 = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(rule.ipv4), .val.dst_ip = 0x02020202 },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(rule.udp), .val.dst_port = 0x2e16 },
	};
	memcpy(rule.eth.val.dst_mac, udp_frame, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	rule.eth.mask.ether_type = 0xffff;
	rule.ipv4.mask.dst_ip = 0xffffffff;
	rule.udp.mask.dst_port = 0xffff;
	return rule;
}

static struct ibv_qp *started(struct fixture *f)
{
	struct ibv_qp *qp = fixture_create_qp(f, IBV_QPT_RAW_PACKET, NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	return qp;
}

static void send_frame(struct fixture *f)
{
	struct ibv_sge sge = fixture_sge(f, 0, FRAME_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};
	memcpy(f->buffer, udp_frame, FRAME_BYTES);
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_SEND);
}

static bool arrives(struct fixture *f)
{
	struct ibv_wc wc;
	struct ibv_sge sge = fixture_sge(f, 4096, 1514);
	memset(f->buffer + 4096, 0, 1514);
	assert_int_equal(fixture_post_recv(f->right, 2, &sge), 0);
	send_frame(f);
	if (ibv_poll_cq(f->cq, 1, &wc) == 0)
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, FRAME_BYTES);
	assert_int_equal(wc.qp_num, f->right->qp_num);
	assert_memory_equal(f->buffer + 4096, udp_frame, FRAME_BYTES);
	return true;
}

static void frame__reaches_whom_a_flow_names_and_nobody_else(void **state)
{
	struct fixture *f = *state;
	f->left = started(f);
	f->right = started(f);
	assert_false(arrives(f));
	struct rule rule = whole_rule();
	struct ibv_flow *flow = ibv_create_flow(f->right, &rule.attr);
	assert_non_null(flow);
	assert_true(arrives(f));
	assert_int_equal(ibv_destroy_qp(f->right), EBUSY);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_false(arrives(f));

	rule.udp.val.dst_port = 0x2f16;
	flow = ibv_create_flow(f->right, &rule.attr);
	assert_non_null(flow);
	assert_false(arrives(f));
	assert_int_equal(ibv_destroy_flow(flow), 0);
}

static void flow__counts_what_it_takes(void **state)
{
	struct fixture *f = *state;
	struct __attribute__((packed, aligned(8))) { /* one behind the other */
		struct rule rule;
		struct ibv_flow_spec_counter_action count;
	} counted = { .rule = whole_rule() };
	struct ibv_counters_init_attr none = { 0 };
	uint64_t values[4] = { 7, 7, 7, 7 };
	f->left = started(f);
	f->right = started(f);
	struct ibv_counters *counters = ibv_create_counters(f->context, &none);
	assert_non_null(counters);
	struct ibv_counter_attach_attr frames = { .counter_desc = IBV_COUNTER_PACKETS, .index = 2 };
	struct ibv_counter_attach_attr bytes = { .counter_desc = IBV_COUNTER_BYTES, .index = 0 };
	assert_int_equal(ibv_attach_counters_point_flow(counters, &frames, NULL), 0);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &bytes, NULL), 0);
	assert_int_equal(ibv_read_counters(counters, values, 3, 0), 0);
	assert_int_equal(values[0] + values[1] + values[2], 0);

	counted.rule.attr.num_of_specs = 4;
	counted.count =
		(struct ibv_flow_spec_counter_action){ IBV_FLOW_SPEC_ACTION_COUNT, sizeof(counted.count), NULL };
	assert_null(ibv_create_flow(f->right, &counted.rule.attr));
	assert_int_equal(errno, EINVAL);
	counted.count.counters = counters;
	struct ibv_flow *flow = ibv_create_flow(f->right, &counted.rule.attr);
	assert_non_null(flow);
	assert_true(arrives(f));
	assert_true(arrives(f));
	assert_int_equal(ibv_read_counters(counters, values, 4, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	assert_int_equal(values[0], 2 * FRAME_BYTES);
	assert_int_equal(values[1], 0);
	assert_int_equal(values[2], 2);
	assert_int_equal(values[3], 0);
	assert_int_equal(ibv_read_counters(counters, values, 2, 0), EINVAL);
	assert_int_equal(ibv_read_counters(counters, values, 3, 2), EOPNOTSUPP);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &frames, NULL), EBUSY);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &frames, flow), ENOTSUP);
	assert_int_equal(ibv_destroy_counters(counters), EBUSY);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &bytes, NULL), 0); /* twice the bytes from now on */
	assert_int_equal(ibv_read_counters(counters, values, 3, 0), 0);
	assert_int_equal(values[0], 4 * FRAME_BYTES);
	assert_int_equal(ibv_destroy_counters(counters), 0);
}

static void frame__event_tells_of_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq;
	void *context;
	f->left = started(f);
	f->right = started(f);
	struct rule rule = whole_rule();
	struct ibv_flow *flow = ibv_create_flow(f->right, &rule.attr);
	assert_non_null(flow);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	assert_true(arrives(f));
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
	assert_ptr_equal(cq, f->cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_flow(flow), 0);
}

static void assert_refused(struct fixture *f, struct rule rule, int error)
{
	errno = 0;
	assert_null(ibv_create_flow(f->right, &rule.attr));
	assert_int_equal(errno, error);
}

static void flow__what_is_wrong_or_cannot_be_matched_is_refused(void **state)
{
	struct fixture *f = *state;
	struct rule rule;
	f->right = started(f);
#define REFUSED(change, error)                                                                                         \
	do {                                                                                                           \
		rule = whole_rule();                                                                                   \
		change;                                                                                                \
		assert_refused(f, rule, error);                                                                        \
	} while (0)
	REFUSED(rule.attr.port = 2, EINVAL);
	REFUSED(rule.attr.port = 0, EINVAL);
	REFUSED(rule.attr.comp_mask = 1, EINVAL);
	REFUSED(rule.attr.type = (enum ibv_flow_attr_type)4, EINVAL);
	REFUSED(rule.attr.type = IBV_FLOW_ATTR_SNIFFER, EINVAL); /* with specifications */
	REFUSED(rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS, EOPNOTSUPP);
	REFUSED(rule.attr.flags = 1, EOPNOTSUPP);
	REFUSED(rule.eth.size = 0, EINVAL);
	REFUSED(rule.eth.size--, EINVAL);
	REFUSED(rule.ipv4.size = 0xffff, EINVAL);
	REFUSED(rule.udp.size++, EINVAL);
	REFUSED(rule.eth.type = IBV_FLOW_SPEC_ESP, EOPNOTSUPP);
	REFUSED(rule.eth.type |= IBV_FLOW_SPEC_INNER, EOPNOTSUPP);
	REFUSED(rule.udp.type = IBV_FLOW_SPEC_ACTION_DROP, EOPNOTSUPP);
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_tcp_udp tcp, udp;
	} twice = {
		.attr = { .num_of_specs = 2, .port = 1 },
		.tcp = { .type = IBV_FLOW_SPEC_TCP, .size = sizeof(twice.tcp) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(twice.udp) },
	};
	assert_null(ibv_create_flow(f->right, &twice.attr));
	assert_int_equal(errno, EINVAL);
	f->left = fixture_create_qp(f, IBV_QPT_UD, NULL);
	rule = whole_rule();
	assert_null(ibv_create_flow(f->left, &rule.attr));
	assert_int_equal(errno, EINVAL);
}

static void flow__defaults_and_sniffers_need_no_specification(void **state)
{
	struct fixture *f = *state;
	f->left = started(f);
	f->right = started(f);
	for (int type = IBV_FLOW_ATTR_NORMAL; type <= IBV_FLOW_ATTR_SNIFFER; type++) {
		struct ibv_flow_attr attr = { .type = (enum ibv_flow_attr_type)type, .size = sizeof(attr), .port = 1 };
		struct ibv_flow *flow = ibv_create_flow(f->right, &attr);
		assert_non_null(flow);
		assert_true(arrives(f));
		assert_int_equal(ibv_destroy_flow(flow), 0);
	}
}

static void device__offers_what_the_process_may(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr_ex ex;
	struct ibv_wq_init_attr wq = { .pd = f->pd, .cq = f->cq, .max_wr = 1, .max_sge = 1 };
	struct ibv_qp_init_attr init = {
		.send_cq = f->cq, .recv_cq = f->cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RAW_PACKET
	};
	for (int may = 0; may < 2; may++) {
		loop_set_may_use_frames(may);
		assert_int_equal(ibv_query_device_ex(f->context, NULL, &ex), 0);
		assert_int_equal(ex.orig_attr.max_raw_ethy_qp != 0, may);
		assert_int_equal((ex.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) != 0, may);
		assert_int_equal(ex.max_wq_type_rq != 0, may);
		assert_int_equal(ex.rss_caps.supported_qpts != 0, may);
		assert_int_equal(ex.rss_caps.max_rwq_indirection_table_size != 0, may);
		assert_int_equal(ex.raw_packet_caps, 0);
		if (may)
			break;
		errno = 0;
		assert_null(ibv_create_qp(f->pd, &init));
		assert_int_equal(errno, EPERM);
		errno = 0;
		assert_null(ibv_create_wq(f->context, &wq));
		assert_int_equal(errno, EPERM);
	}
}

static struct ibv_wq *create_wq(struct fixture *f)
{
	struct ibv_wq_init_attr attr = { .pd = f->pd, .cq = f->cq, .max_wr = 5, .max_sge = 2 };
	struct ibv_wq *wq = ibv_create_wq(f->context, &attr);
	assert_non_null(wq);
	assert_true(attr.max_wr >= 5 && attr.max_sge >= 2);
	assert_int_equal(wq->state, IBV_WQS_RESET);
	return wq;
}

static int move_wq(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };
	return ibv_modify_wq(wq, &attr);
}

static int post_wq(struct fixture *f, struct ibv_wq *wq, uint64_t wr_id)
{
	struct ibv_sge sge = fixture_sge(f, 8192, 1514);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	return ibv_post_wq_recv(wq, &wr, &bad);
}

static void wq__goes_through_its_states(void **state)
{
	struct fixture *f = *state;
	struct ibv_wq *wq = create_wq(f);
	assert_int_equal(post_wq(f, wq, 1), EINVAL);
	assert_int_equal(move_wq(wq, IBV_WQS_ERR), EINVAL);
	assert_int_equal(move_wq(wq, IBV_WQS_UNKNOWN), EINVAL);
	assert_int_equal(move_wq(wq, IBV_WQS_RDY), 0);
	assert_int_equal(wq->state, IBV_WQS_RDY);
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_ERR,
		.curr_wq_state = IBV_WQS_RESET };
	assert_int_equal(ibv_modify_wq(wq, &attr), EINVAL);
	assert_int_equal(post_wq(f, wq, 7), 0);
	assert_int_equal(move_wq(wq, IBV_WQS_ERR), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(move_wq(wq, IBV_WQS_RDY), EINVAL);
	assert_int_equal(move_wq(wq, IBV_WQS_RESET), 0);
	assert_int_equal(move_wq(wq, IBV_WQS_RDY), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static struct ibv_qp *create_spread(
	struct fixture *f, struct ibv_rwq_ind_table *table, uint8_t key_length, uint64_t fields)
{
	static uint8_t key[40] = { 0x6d, 0x5a, 0x56, 0xda };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = f->pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, key_length, key, fields },
	};
	errno = 0;
	return ibv_create_qp_ex(f->context, &attr);
}

static void table__spreads_over_its_queues_and_holds_them(void **state)
{
	struct fixture *f = *state;
	struct ibv_wq *wqs[4];
	for (int i = 0; i < 4; i++) {
		wqs[i] = create_wq(f);
		assert_int_equal(move_wq(wqs[i], IBV_WQS_RDY), 0);
		assert_int_equal(post_wq(f, wqs[i], 10 + (uint64_t)i), 0);
	}
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 2, .ind_tbl = wqs };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(f->context, &init);
	assert_non_null(table);
	init.log_ind_tbl_size = 13;
	assert_null(ibv_create_rwq_ind_table(f->context, &init));
	assert_int_equal(ibv_destroy_wq(wqs[2]), EBUSY);

	assert_null(create_spread(f, table, 39, IBV_RX_HASH_SRC_IPV4));
	assert_int_equal(errno, EINVAL);
	assert_null(create_spread(f, table, 40, IBV_RX_HASH_INNER));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create_spread(f, NULL, 40, IBV_RX_HASH_SRC_IPV4));
	assert_int_equal(errno, EINVAL);
	f->right = create_spread(f, table, 40, IBV_RX_HASH_SRC_IPV4);
	assert_non_null(f->right);
	assert_int_equal(ibv_destroy_rwq_ind_table(table), EBUSY);
	struct ibv_sge sge = fixture_sge(f, 0, 64);
	assert_int_equal(fixture_post_recv(f->right, 1, &sge), EINVAL);

	struct rule rule = whole_rule();
	struct ibv_flow *flow = ibv_create_flow(f->right, &rule.attr);
	assert_non_null(flow);
	f->left = started(f);
	send_frame(f);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(wc.wr_id >= 10 && wc.wr_id < 14);
	assert_int_equal(wc.qp_num, wqs[wc.wr_id - 10]->wq_num);
	assert_memory_equal(f->buffer + 8192, udp_frame, FRAME_BYTES);

	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(f->right), 0);
	f->right = NULL;
	assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ibv_destroy_wq(wqs[i]), 0);
}

static void close__takes_flows_tables_and_queues(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *context = ibv_open_device(f->context->device);
	struct fixture other = { .context = context, .pd = ibv_alloc_pd(context) };
	other.cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_wq *wq = create_wq(&other);
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 0, .ind_tbl = &wq };
	struct ibv_qp *qp = create_spread(&other, ibv_create_rwq_ind_table(context, &init), 40, IBV_RX_HASH_DST_IPV6);
	struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .port = 1 };
	assert_non_null(qp);
	assert_non_null(ibv_create_flow(qp, &attr));
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(loop_open_devices(), 1);
}

static int close_and_allow(void **state)
{
	loop_set_may_use_frames(true);
	return fixture_close(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, close_and_allow)
	const struct CMUnitTest tests[] = {
		TEST(frame__reaches_whom_a_flow_names_and_nobody_else),
		TEST(flow__counts_what_it_takes),
		TEST(frame__event_tells_of_it),
		TEST(flow__what_is_wrong_or_cannot_be_matched_is_refused),
		TEST(flow__defaults_and_sniffers_need_no_specification),
		TEST(device__offers_what_the_process_may),
		TEST(wq__goes_through_its_states),
		TEST(table__spreads_over_its_queues_and_holds_them),
		TEST(close__takes_flows_tables_and_queues),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
