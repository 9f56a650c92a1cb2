/* Who receives a frame: flows by what they match and by rank, and the spreading over queues. */
#include <errno.h>
#include "base/bytes.h"
#include "engine/check.h"
#include "roce/raw.h"
#include "../unit.h"

#define QPS 4

struct scene {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_steering steering;
	struct vb_qp *qps[QPS];
	uint8_t memory[4096];
};

/* UDP 1234 to 5678 from 10.0.0.1 to 10.0.0.2, to a multicast address. */
static const uint8_t udp[] = { 0x01, 0x50, 0x56, 0x19, 0x20, 0xa7, 0x24, 1, 2, 3, 4, 5, 0x08, 0, 0x45, 0, 0, 28, 0, 0,
	0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0 };

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct vb_mr_config region = { .memory = s->memory,
		.iova = (uintptr_t)s->memory,
		.length = sizeof(s->memory),
		.access = VB_ACCESS_LOCAL_WRITE };
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = 1, .mtu = 1024 }, &s->nic), 0);
	assert_int_equal(vb_lane_create(&(struct vb_lane_config){ .seed = 1, .slot = 1 }, &s->lane), 0);
	assert_int_equal(vb_pd_create(s->nic, &s->pd), 0);
	assert_int_equal(vb_cq_create(s->nic, &(struct vb_cq_config){ .capacity = 512 }, &s->cq), 0);
	assert_int_equal(vb_mr_register(s->pd, &region, &s->mr), 0);
	vb_steering_init(&s->steering, s->lane);
	for (int i = 0; i < QPS; i++) {
		struct vb_qp_config config = { .type = VB_QP_RAW, .pd = s->pd, .recv_cq = s->cq, .max_recv_wr = 64 };
		struct vb_qp_attr attr = { .state = VB_QPS_INIT, .port = 1 };
		assert_int_equal(vb_qp_create(s->lane, &config, &s->qps[i]), 0);
		assert_int_equal(vb_qp_modify(s->qps[i], &attr, VB_QP_STATE | VB_QP_PORT, 0), 0);
		attr.state = VB_QPS_RTR;
		assert_int_equal(vb_qp_modify(s->qps[i], &attr, VB_QP_STATE, 0), 0);
		struct vb_sge sge = { (uintptr_t)s->memory, sizeof(s->memory), vb_mr_key(s->mr) };
		struct vb_recv_wr wr = { (uint64_t)i, &sge, 1 };
		for (int n = 0; n < 64; n++)
			assert_int_equal(vb_rq_post(s->qps[i], &wr), 0);
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	for (int i = 0; i < QPS; i++)
		vb_qp_destroy(s->qps[i]);
	assert_int_equal(vb_mr_invalidate(s->mr), 0);
	vb_mr_free(s->mr);
	assert_int_equal(vb_cq_destroy(s->cq), 0);
	assert_int_equal(vb_pd_destroy(s->pd), 0);
	vb_lane_destroy(s->lane);
	vb_nic_destroy(s->nic);
	free(s);
	return 0;
}

/* The QPs that got the frame, a bit each. */
static unsigned takers(struct scene *s, const uint8_t *frame, uint32_t length, bool only_sniffers)
{
	struct vb_wc wc;
	unsigned who = 0;
	vb_steering_receive(&s->steering, frame, length, only_sniffers, 0);
	vb_steering_check(&s->steering);
	vb_lane_check(s->lane);
	while (vb_cq_poll(s->cq, &wc, 1) == 1) {
		assert_int_equal(wc.status, VB_WC_SUCCESS);
		assert_int_equal(wc.byte_len, length);
		assert_int_equal(who & 1u << wc.wr_id, 0);
		who |= 1u << wc.wr_id;
	}
	return who;
}

static unsigned takers_of_udp(struct scene *s)
{
	return takers(s, udp, sizeof(udp), false);
}

static struct vb_frame_flow flow_to(struct scene *s, int qp, enum vb_flow_kind kind, uint16_t priority)
{
	return (struct vb_frame_flow){ .kind = kind, .priority = priority, .qp = s->qps[qp] };
}

static void receive__without_a_flow_nobody_gets_anything(void **state)
{
	struct scene *s = *state;
	assert_int_equal(takers_of_udp(s), 0);
}

static void flow__matches_the_masked_bits_alone(void **state)
{
	struct scene *s = *state;
	struct vb_frame_headers headers;
	uint32_t protocols = vb_frame_parse(&headers, udp, sizeof(udp));
	struct vb_frame_flow flow = flow_to(s, 0, VB_FLOW_NORMAL, 0);
	assert_true(vb_frame_flow_matches(&flow, &headers, protocols));
	for (size_t i = 0; i < sizeof(headers); i++) {
		flow = flow_to(s, 0, VB_FLOW_NORMAL, 0);
		flow.value = headers;
		memset(&flow.mask, 0xff, sizeof(flow.mask));
		assert_true(vb_frame_flow_matches(&flow, &headers, protocols));
		((uint8_t *)&flow.value)[i] ^= 0x10;
		assert_false(vb_frame_flow_matches(&flow, &headers, protocols));
		((uint8_t *)&flow.mask)[i] = (uint8_t)~0x10;
		assert_true(vb_frame_flow_matches(&flow, &headers, protocols));
	}
	flow = flow_to(s, 0, VB_FLOW_NORMAL, 0);
	flow.protocols = VB_FRAME_IPV4 | VB_FRAME_UDP;
	assert_true(vb_frame_flow_matches(&flow, &headers, protocols));
	flow.protocols = VB_FRAME_TCP;
	assert_false(vb_frame_flow_matches(&flow, &headers, protocols));
}

static void flow__smaller_priority_takes_and_equals_share(void **state)
{
	struct scene *s = *state;
	struct vb_frame_flow late = flow_to(s, 0, VB_FLOW_NORMAL, 9), early = flow_to(s, 1, VB_FLOW_NORMAL, 3),
			     equal = flow_to(s, 2, VB_FLOW_NORMAL, 3), again = flow_to(s, 2, VB_FLOW_NORMAL, 3);
	vb_steering_add(&s->steering, &late);
	assert_int_equal(takers_of_udp(s), 1);
	vb_steering_add(&s->steering, &early);
	assert_int_equal(takers_of_udp(s), 2);
	vb_steering_add(&s->steering, &equal);
	vb_steering_add(&s->steering, &again);
	assert_int_equal(takers_of_udp(s), 6);
	early.is_transparent = equal.is_transparent = again.is_transparent = true;
	assert_int_equal(takers_of_udp(s), 7);
	vb_steering_remove(&early);
	vb_steering_remove(&equal);
	vb_steering_remove(&again);
	assert_int_equal(takers_of_udp(s), 1);
}

static void flow__defaults_take_what_is_left_and_sniffers_a_copy(void **state)
{
	struct scene *s = *state;
	struct vb_frame_flow all = flow_to(s, 0, VB_FLOW_ALL_DEFAULT, 0), mc = flow_to(s, 1, VB_FLOW_MC_DEFAULT, 0),
			     sniffer = flow_to(s, 2, VB_FLOW_SNIFFER, 0), normal = flow_to(s, 3, VB_FLOW_NORMAL, 65535);
	uint8_t unicast[sizeof(udp)];
	memcpy(unicast, udp, sizeof(udp));
	unicast[0] = 2;
	vb_steering_add(&s->steering, &all);
	vb_steering_add(&s->steering, &mc);
	vb_steering_add(&s->steering, &sniffer);
	assert_int_equal(takers_of_udp(s), 2 | 4);
	assert_int_equal(takers(s, unicast, sizeof(unicast), false), 1 | 4);
	assert_int_equal(takers(s, udp, sizeof(udp), true), 4);
	vb_steering_add(&s->steering, &normal);
	assert_int_equal(takers_of_udp(s), 8 | 4);
	assert_int_equal(takers(s, udp, 13, false), 0);
}

/* What is published for the common key: addresses and ports of an IPv4 and an IPv6 packet. */
static const uint8_t common_key[VB_TOEPLITZ_KEY] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25,
	0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80,
	0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa };

static void toeplitz__gives_the_published_values(void **state)
{
	struct vb_spread spread = { .fields = VB_RX_HASH_SRC_IPV4 | VB_RX_HASH_DST_IPV4 };
	struct vb_frame_headers h = { .src_ip = { 66, 9, 149, 187 }, .dst_ip = { 161, 142, 100, 80 } };
	memcpy(spread.key, common_key, sizeof(common_key));
	vb_store_be16(&h.src_port, 2794);
	vb_store_be16(&h.dst_port, 1766);
	assert_int_equal(vb_toeplitz(&spread, &h, VB_FRAME_IPV4 | VB_FRAME_TCP), 0x323e8fc2);
	spread.fields |= VB_RX_HASH_SRC_PORT_TCP | VB_RX_HASH_DST_PORT_TCP;
	assert_int_equal(vb_toeplitz(&spread, &h, VB_FRAME_IPV4 | VB_FRAME_TCP), 0x51ccc178);
	assert_int_equal(vb_toeplitz(&spread, &h, VB_FRAME_IPV4 | VB_FRAME_UDP), 0x323e8fc2);
	assert_int_equal(vb_toeplitz(&spread, &h, 0), 0);

	struct vb_frame_headers h6 = { .dst_ip = { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0,
					       1 },
		.src_ip = { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7 } };
	vb_store_be16(&h6.src_port, 2794);
	vb_store_be16(&h6.dst_port, 1766);
	spread.fields = VB_RX_HASH_FIELDS;
	assert_int_equal(vb_toeplitz(&spread, &h6, VB_FRAME_IPV6 | VB_FRAME_UDP), 0x40207d3d);
	spread.fields = VB_RX_HASH_SRC_IPV6 | VB_RX_HASH_DST_IPV6;
	assert_int_equal(vb_toeplitz(&spread, &h6, VB_FRAME_IPV6), 0x2cc18cd5);
}

static void spread__frames_go_to_the_queue_of_their_hash(void **state)
{
	struct scene *s = *state;
	struct vb_qp_config config = { .type = VB_QP_RAW, .pd = s->pd };
	struct vb_qp *qp;
	struct vb_spread spread = { .fields = VB_RX_HASH_SRC_IPV4, .count = QPS, .queues = s->qps };
	memcpy(spread.key, common_key, sizeof(common_key));
	assert_int_equal(vb_qp_create(s->lane, &config, &qp), 0);
	for (uint32_t count = 0; count < 4; count++) {
		if (count == 1 || count == 2)
			continue;
		struct vb_spread wrong = spread;
		wrong.count = count;
		assert_int_equal(vb_qp_spread(qp, &wrong), -EINVAL);
	}
	assert_int_equal(vb_qp_spread(s->qps[0], &spread), -EINVAL);
	assert_int_equal(vb_qp_spread(qp, &spread), 0);
	assert_int_equal(vb_qp_spread(qp, &spread), -EINVAL);

	struct vb_frame_flow flow = { .kind = VB_FLOW_NORMAL, .qp = qp };
	uint8_t frame[sizeof(udp)];
	unsigned seen = 0;
	vb_steering_add(&s->steering, &flow);
	memcpy(frame, udp, sizeof(udp));
	for (unsigned i = 0; i < 32; i++) {
		struct vb_frame_headers h;
		frame[29] = (uint8_t)i;
		uint32_t hash = vb_toeplitz(&spread, &h, vb_frame_parse(&h, frame, sizeof(frame)));
		assert_int_equal(takers(s, frame, sizeof(frame), false), 1u << (hash & (QPS - 1)));
		seen |= 1u << (hash & (QPS - 1));
	}
	assert_int_equal(seen, (1u << QPS) - 1);
	vb_steering_remove(&flow);
	assert_int_equal(vb_qp_destroy(qp), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(receive__without_a_flow_nobody_gets_anything),
		TEST(flow__matches_the_masked_bits_alone),
		TEST(flow__smaller_priority_takes_and_equals_share),
		TEST(flow__defaults_take_what_is_left_and_sniffers_a_copy),
		TEST(toeplitz__gives_the_published_values),
		TEST(spread__frames_go_to_the_queue_of_their_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
