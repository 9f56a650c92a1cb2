#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/packet.h"
#include "../unit.h"

static const struct vb_discovery asked = {
	.transaction_id = 0x0123456789ABCDEF,
	.version = VB_DISCOVERY_VERSION,
	.receive_buffer = 425984,
	.features = VB_FEATURE_TRAINS,
};

static void mad__header_lies_where_the_specification_puts_it(void **state)
{
	/* Of a CM REQ that Linux sent. */
	static const uint8_t wire[VB_MAD_LENGTH] = { 1, 7, 2, 3, 0x11, 0x12, 0x13, 0x14, 1, 2, 3, 4, 5, 6, 7, 8, 0x00,
		0x10, 0, 0, 0x21, 0x22, 0x23, 0x24 };
	struct vb_mad_header header;
	vb_mad_header_decode(&header, wire);
	assert_int_equal(header.base_version, 1);
	assert_int_equal(header.mgmt_class, VB_MAD_CLASS_CM);
	assert_int_equal(header.class_version, 2);
	assert_int_equal(header.method, VB_MAD_METHOD_SEND);
	assert_int_equal(header.status, 0x1112);
	assert_int_equal(header.class_specific, 0x1314);
	assert_true(header.transaction_id == 0x0102030405060708);
	assert_int_equal(header.attribute_id, 0x10);
	assert_int_equal(header.attribute_modifier, 0x21222324);

	uint8_t again[VB_MAD_LENGTH];
	memset(again, 0xEE, sizeof(again));
	vb_mad_header_encode(&header, again);
	assert_memory_equal(again, wire, VB_MAD_HEADER_LENGTH);
	assert_int_equal(again[VB_MAD_HEADER_LENGTH], 0xEE);
}

static void discovery__comes_back_as_it_was(void **state)
{
	for (int is_response = 0; is_response < 2; is_response++) {
		struct vb_discovery sent = asked, seen = { 0 };
		uint8_t mad[VB_MAD_LENGTH];
		sent.is_response = is_response;
		vb_discovery_encode(&sent, mad);
		assert_true(vb_discovery_decode(&seen, mad));
		assert_int_equal(seen.is_response, is_response);
		assert_true(seen.transaction_id == sent.transaction_id);
		assert_int_equal(seen.version, VB_DISCOVERY_VERSION);
		assert_int_equal(seen.receive_buffer, 425984);
		assert_int_equal(seen.features, VB_FEATURE_TRAINS);
	}
}

static void discovery__fills_the_whole_mad(void **state)
{
	uint8_t a[VB_MAD_LENGTH], b[VB_MAD_LENGTH];
	memset(a, 0x00, sizeof(a));
	memset(b, 0xFF, sizeof(b));
	vb_discovery_encode(&asked, a);
	vb_discovery_encode(&asked, b);
	assert_memory_equal(a, b, sizeof(a));
}

/* These bytes are on the wire between versions of Verbena: they do not change. */
static void discovery__layout_is_fixed(void **state)
{
	static const uint8_t layout[VB_MAD_LENGTH] = { 1, 0x35, 1, 0x01, 0, 0, 0, 0, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB,
		0xCD, 0xEF, 0xFF, 0x10, [37] = 0x76, 0x62, 0x6E, 0, 1, 0, 0, 0x00, 0x06, 0x80, 0x00, 0, 0, 0, 1 };
	uint8_t mad[VB_MAD_LENGTH];
	vb_discovery_encode(&asked, mad);
	assert_memory_equal(mad, layout, sizeof(mad));
}

static void discovery__asks_for_a_process_where_others_have_zero(void **state)
{
	struct vb_discovery question = asked, seen;
	uint8_t mad[VB_MAD_LENGTH], without[VB_MAD_LENGTH];
	question.qpn = 0x1a2b3c;
	question.process = VB_PROCESS_STOPPED;
	vb_discovery_encode(&asked, without);
	vb_discovery_encode(&question, mad);
	assert_memory_equal(mad + 52, ((uint8_t[]){ 0, 0x1a, 0x2b, 0x3c, 3, 0, 0, 0 }), 8);
	memset(mad + 52, 0, 5);
	assert_memory_equal(mad, without, sizeof(mad));
	vb_discovery_encode(&question, mad);
	assert_true(vb_discovery_decode(&seen, mad));
	assert_int_equal(seen.qpn, 0x1a2b3c);
	assert_int_equal(seen.process, VB_PROCESS_STOPPED);
	mad[56] = 200; /* of a later version */
	assert_true(vb_discovery_decode(&seen, mad));
	assert_int_equal(seen.process, VB_PROCESS_NOT_TOLD);
}

static void discovery__what_says_it_is_something_else_is_not_one(void **state)
{
	static const uint8_t telling[] = { 0, 1, 2, 3, 4, 5, 16, 17, 37, 38, 39, 40, 41 };
	for (size_t i = 0; i < COUNT_OF(telling); i++) {
		uint8_t mad[VB_MAD_LENGTH];
		struct vb_discovery seen;
		vb_discovery_encode(&asked, mad);
		mad[telling[i]] ^= 0x04;
		assert_false(vb_discovery_decode(&seen, mad));
	}
}

static void packet__is_a_ud_send_to_qp1_with_a_good_icrc(void **state)
{
	const struct vb_flow flow = { .src = vb_gid_from_ipv4(10, 0, 0, 1),
		.dst = vb_gid_from_ipv4(10, 0, 0, 2),
		.src_port = 0xC123,
		.dst_port = 4791 };
	uint8_t mad[VB_MAD_LENGTH], bytes[VB_MAD_PACKET_BYTES + 48];
	struct vb_packet packet;
	uint16_t id = 0;

	vb_discovery_encode(&asked, mad);
	for (uint32_t extra = 0; extra <= 45; extra += 45) {
		size_t length = vb_mad_packet(&flow, 0x1000007, mad, VB_MAD_LENGTH + extra, bytes);
		assert_int_equal(length, VB_MAD_PACKET_BYTES + (extra ? 48 : 0));
		assert_int_equal(vb_packet_decode(&packet, bytes, length), VB_DECODE_OK);
		assert_true(vb_icrc_verify(&flow, bytes, length, false, &id));
		assert_int_equal(packet.opcode, VB_UD_SEND_ONLY);
		assert_int_equal(packet.psn, 7);
		assert_int_equal(packet.dest_qpn, 1);
		assert_int_equal(packet.src_qpn, 1);
		assert_int_equal(packet.qkey, VB_QKEY_GSI);
		assert_int_equal(packet.payload_length, VB_MAD_LENGTH + extra);
		assert_memory_equal(packet.payload, mad, sizeof(mad));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet__is_a_ud_send_to_qp1_with_a_good_icrc),
		cmocka_unit_test(mad__header_lies_where_the_specification_puts_it),
		cmocka_unit_test(discovery__comes_back_as_it_was),
		cmocka_unit_test(discovery__fills_the_whole_mad),
		cmocka_unit_test(discovery__layout_is_fixed),
		cmocka_unit_test(discovery__asks_for_a_process_where_others_have_zero),
		cmocka_unit_test(discovery__what_says_it_is_something_else_is_not_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
