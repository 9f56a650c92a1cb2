/* What a program writes into a flow's specifications, header by header, against frames: each field that is asked for
 * counts, and none that is not. */
#include <string.h>
#include "fixture.h"

#define FRAME_BYTES 96

static struct fixture *f;

/* What the tests ask of the frames below is at one place of each. */
static const uint8_t ipv6_frame[FRAME_BYTES] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, /* Ethernet */
	0x6a, 0xb1, 0x23, 0x45, 0, 42, 17, 33, /* class 0xab, flow label 0x12345, UDP, hop limit 33 */
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x04,
	0xd2, 0x16, 0x2e, 0, 42 };
static const uint8_t ipv4_frame[FRAME_BYTES] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, /* Ethernet */
	0x45, 0xb8, 0, 82, 0, 7, 0x40, 0, 33, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, /* tos 0xb8, DF, ttl 33, TCP */
	0x04, 0xd2, 0x16, 0x2e };
static const uint8_t vlan_frame[FRAME_BYTES] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x81, 0, 0x60, 5, /* tag */
	8, 0, 0x45, 0, 0, 78, 0, 7, 0x40, 0, 33, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0x04, 0xd2, 0x16, 0x2e };

static struct ibv_qp *started(void)
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

static void post_receive(void)
{
	struct ibv_sge to = fixture_sge(f, 4096, 1514);
	assert_int_equal(fixture_post_recv(f->right, 2, &to), 0);
}

/* From then on one receive is posted. */
static int setup(void **state)
{
	fixture_open(state);
	f = *state;
	f->left = started();
	f->right = started();
	post_receive();
	return 0;
}

/* Does a flow of this one specification take the frame? */
static bool takes(const void *spec, size_t size, const uint8_t *frame)
{
	struct __attribute__((aligned(8))) {
		struct ibv_flow_attr attr;
		uint8_t spec[sizeof(struct ibv_flow_spec_ipv6)];
	} rule = { .attr = { .size = sizeof(rule.attr), .num_of_specs = 1, .port = 1 } };
	struct ibv_sge from = fixture_sge(f, 0, FRAME_BYTES);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_wc wc;

	memcpy(rule.spec, spec, size);
	struct ibv_flow *flow = ibv_create_flow(f->right, &rule.attr);
	assert_non_null(flow);
	memcpy(f->buffer, frame, FRAME_BYTES);
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_SEND);
	bool is_taken = ibv_poll_cq(f->cq, 1, &wc) == 1;
	if (is_taken)
		post_receive();
	assert_int_equal(ibv_destroy_flow(flow), 0);
	return is_taken;
}

/* The field as it is in the frame, and otherwise; nothing else is asked for. */
#define EXPECT_FIELD(kind, kind_size, frame, field, right, wrong)                                                      \
	do {                                                                                                           \
		struct kind spec_ = { .type = kind_size, .size = sizeof(spec_) };                                      \
		memset(&spec_.mask.field, 0xff, sizeof(spec_.mask.field));                                             \
		spec_.val.field = right;                                                                               \
		assert_true(takes(&spec_, sizeof(spec_), frame));                                                      \
		spec_.val.field = wrong;                                                                               \
		assert_false(takes(&spec_, sizeof(spec_), frame));                                                     \
		memset(&spec_.mask.field, 0, sizeof(spec_.mask.field));                                                \
		assert_true(takes(&spec_, sizeof(spec_), frame));                                                      \
	} while (0)

#define EXPECT_ETH(frame, field, right, wrong)                                                                         \
	EXPECT_FIELD(ibv_flow_spec_eth, IBV_FLOW_SPEC_ETH, frame, field, right, wrong)
#define EXPECT_IPV4(field, right, wrong)                                                                               \
	EXPECT_FIELD(ibv_flow_spec_ipv4, IBV_FLOW_SPEC_IPV4, ipv4_frame, field, right, wrong)
#define EXPECT_EXT(field, right, wrong)                                                                                \
	EXPECT_FIELD(ibv_flow_spec_ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT, ipv4_frame, field, right, wrong)
#define EXPECT_IPV6(field, right, wrong)                                                                               \
	EXPECT_FIELD(ibv_flow_spec_ipv6, IBV_FLOW_SPEC_IPV6, ipv6_frame, field, right, wrong)
#define EXPECT_PORTS(type, frame, field, right, wrong)                                                                 \
	EXPECT_FIELD(ibv_flow_spec_tcp_udp, type, frame, field, right, wrong)

static void ethernet__is_matched_field_by_field(void **state)
{
	EXPECT_ETH(ipv4_frame, dst_mac[5], 6, 7);
	EXPECT_ETH(ipv4_frame, src_mac[5], 12, 11);
	EXPECT_ETH(ipv4_frame, ether_type, htobe16(0x0800), htobe16(0x86dd));
	EXPECT_ETH(vlan_frame, ether_type, htobe16(0x0800), htobe16(0x8100)); /* that of what is tagged */
}

/* Who asks for no tag takes frames of any, and who asks for one none without. */
static void vlan__is_matched_with_its_tag(void **state)
{
	EXPECT_ETH(vlan_frame, vlan_tag, htobe16(0x6005), htobe16(0x6006));
	struct ibv_flow_spec_eth spec = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(spec) };
	spec.mask.vlan_tag = htobe16(0x0fff);
	assert_false(takes(&spec, sizeof(spec), ipv4_frame));
}

static void ipv4__is_matched_field_by_field(void **state)
{
	EXPECT_IPV4(src_ip, htobe32(0x01010101), htobe32(0x02020202));
	EXPECT_IPV4(dst_ip, htobe32(0x02020202), htobe32(0x01010101));
	EXPECT_EXT(src_ip, htobe32(0x01010101), htobe32(0x02020202));
	EXPECT_EXT(dst_ip, htobe32(0x02020202), htobe32(0x01010101));
	EXPECT_EXT(proto, 6, 17);
	EXPECT_EXT(tos, 0xb8, 33);
	EXPECT_EXT(ttl, 33, 0xb8);
	EXPECT_EXT(flags, 2, 1);
	struct ibv_flow_spec_ipv4 any = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof(any) };
	assert_false(takes(&any, sizeof(any), ipv6_frame)); /* that it is IPv4 is asked for too */
}

static void ipv6__is_matched_field_by_field(void **state)
{
	EXPECT_IPV6(src_ip[15], 1, 2);
	EXPECT_IPV6(dst_ip[15], 2, 1);
	EXPECT_IPV6(flow_label, htobe32(0x12345), htobe32(0x12346));
	EXPECT_IPV6(next_hdr, 17, 6);
	EXPECT_IPV6(traffic_class, 0xab, 33);
	EXPECT_IPV6(hop_limit, 33, 0xab);
	struct ibv_flow_spec_ipv6 any = { .type = IBV_FLOW_SPEC_IPV6, .size = sizeof(any) };
	assert_false(takes(&any, sizeof(any), ipv4_frame));
}

static void ports__are_those_of_their_protocol(void **state)
{
	EXPECT_PORTS(IBV_FLOW_SPEC_TCP, ipv4_frame, src_port, htobe16(1234), htobe16(5678));
	EXPECT_PORTS(IBV_FLOW_SPEC_TCP, ipv4_frame, dst_port, htobe16(5678), htobe16(1234));
	EXPECT_PORTS(IBV_FLOW_SPEC_UDP, ipv6_frame, dst_port, htobe16(5678), htobe16(1234));
	struct ibv_flow_spec_tcp_udp udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(udp) };
	assert_false(takes(&udp, sizeof(udp), ipv4_frame));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ethernet__is_matched_field_by_field, setup, fixture_close),
		cmocka_unit_test_setup_teardown(vlan__is_matched_with_its_tag, setup, fixture_close),
		cmocka_unit_test_setup_teardown(ipv4__is_matched_field_by_field, setup, fixture_close),
		cmocka_unit_test_setup_teardown(ipv6__is_matched_field_by_field, setup, fixture_close),
		cmocka_unit_test_setup_teardown(ports__are_those_of_their_protocol, setup, fixture_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
