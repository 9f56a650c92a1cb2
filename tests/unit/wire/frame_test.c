/* Headers of Ethernet frames, whole and cut off anywhere. */
#include "wire/frame.h"
#include "../unit.h"

/* Ethernet, VLAN 0x2007, IPv4 with an option, UDP 7 to 9. */
static const uint8_t tagged[] = { 0x01, 0x50, 0x56, 1, 2, 3, 0x24, 4, 5, 6, 7, 8, 0x81, 0x00, 0x20, 0x07, 0x08, 0x00,
	0x46, 0xb8, 0, 32, 0, 0, 0x40, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1, 0, 7, 0, 9, 0, 8, 0, 0 };

/* Ethernet, IPv6 with traffic class 0xab and flow label 0xcdef1, TCP 258 to 772. */
static const uint8_t tcp6[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x6a, 0xbc, 0xde, 0xf1, 0, 20, 6, 64,
	0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3,
	4, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0 };

static void assert_be16(uint16_t field, uint16_t value)
{
	assert_int_equal(__builtin_bswap16(field), value);
}

static void parse__finds_what_lies_behind_a_vlan_tag_and_ip_options(void **state)
{
	struct vb_frame_headers h;
	assert_int_equal(vb_frame_parse(&h, tagged, sizeof(tagged)), VB_FRAME_VLAN | VB_FRAME_IPV4 | VB_FRAME_UDP);
	assert_memory_equal(h.dst_mac, tagged, 6);
	assert_memory_equal(h.src_mac, tagged + 6, 6);
	assert_be16(h.vlan_tag, 0x2007);
	assert_be16(h.ether_type, 0x0800);
	assert_memory_equal(h.src_ip, ((uint8_t[]){ 10, 0, 0, 1 }), 4);
	assert_memory_equal(h.dst_ip, ((uint8_t[]){ 10, 0, 0, 2 }), 4);
	assert_int_equal(h.ip_protocol, 17);
	assert_int_equal(h.traffic_class, 0xb8);
	assert_int_equal(h.hop_limit, 63);
	assert_int_equal(h.ip_flags, 2);
	assert_be16(h.src_port, 7);
	assert_be16(h.dst_port, 9);
}

static void parse__reads_ipv6_and_tcp(void **state)
{
	struct vb_frame_headers h;
	assert_int_equal(vb_frame_parse(&h, tcp6, sizeof(tcp6)), VB_FRAME_IPV6 | VB_FRAME_TCP);
	assert_int_equal(h.traffic_class, 0xab);
	assert_int_equal(__builtin_bswap32(h.flow_label), 0xcdef1);
	assert_int_equal(h.src_ip[0], 0x20);
	assert_int_equal(h.src_ip[15], 1);
	assert_int_equal(h.dst_ip[15], 2);
	assert_be16(h.src_port, 0x102);
	assert_be16(h.dst_port, 0x304);
}

static void parse__later_fragment_has_no_ports(void **state)
{
	struct vb_frame_headers h;
	uint8_t fragment[sizeof(tagged)];
	memcpy(fragment, tagged, sizeof(tagged));
	fragment[25] = 1;
	assert_int_equal(vb_frame_parse(&h, fragment, sizeof(fragment)), VB_FRAME_VLAN | VB_FRAME_IPV4);
	assert_int_equal(h.src_port, 0);
}

static void parse__lying_header_lengths_are_not_believed(void **state)
{
	struct vb_frame_headers h;
	uint8_t frame[sizeof(tagged)];
	for (unsigned length = 0; length < 16; length++) {
		memcpy(frame, tagged, sizeof(tagged));
		frame[18] = (uint8_t)(0x40 | length);
		uint32_t found = vb_frame_parse(&h, frame, sizeof(frame));
		assert_int_equal((found & VB_FRAME_IPV4) != 0, length >= 5 && length <= 8);
	}
	frame[18] = 0x66;
	assert_int_equal(vb_frame_parse(&h, frame, sizeof(frame)), VB_FRAME_VLAN);
}

/* Each prefix alone in memory of its own, so that a checker of memory sees a read beyond it. */
static void cut_everywhere(const uint8_t *whole, uint32_t length)
{
	struct vb_frame_headers h;
	uint32_t before = 0;
	for (uint32_t cut = 0; cut <= length; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);
		memcpy(copy, whole, cut);
		uint32_t found = vb_frame_parse(&h, copy, cut);
		assert_int_equal(before & ~found, 0);
		before = found;
		free(copy);
	}
}

static void parse__frame_cut_off_anywhere_has_fewer_headers(void **state)
{
	cut_everywhere(tagged, sizeof(tagged));
	cut_everywhere(tcp6, sizeof(tcp6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__finds_what_lies_behind_a_vlan_tag_and_ip_options),
		cmocka_unit_test(parse__reads_ipv6_and_tcp),
		cmocka_unit_test(parse__later_fragment_has_no_ports),
		cmocka_unit_test(parse__lying_header_lengths_are_not_believed),
		cmocka_unit_test(parse__frame_cut_off_anywhere_has_fewer_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
