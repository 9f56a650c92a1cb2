#include "join.h"
#include "cut.h"
#include "headers.h"
#include "../unit/unit.h"

enum { VNET = sizeof(struct virtio_net_hdr) };

static uint8_t original[VNET + 66000], packet[VNET + 9000];
static struct link_train train;
static struct link_cut cut;

/* A train of TCP or UDP over IPv4 or IPv6, as the kernel makes it. */
static size_t make(uint8_t gso_type, bool is_ipv4, uint16_t segment, size_t payload)
{
	const bool is_udp = gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
	size_t transport = is_ipv4 ? LINK_IPV4_BYTES : LINK_IPV6_BYTES;
	size_t headers = transport + (is_udp ? LINK_UDP_BYTES : LINK_TCP_BYTES + 12);
	uint8_t *ip = original + VNET;
	struct virtio_net_hdr header = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = gso_type,
		.gso_size = segment,
		.hdr_len = (uint16_t)headers,
		.csum_start = (uint16_t)transport,
		.csum_offset = is_udp ? LINK_UDP_CHECKSUM : LINK_TCP_CHECKSUM };

	memset(original, 0, sizeof(original));
	memcpy(original, &header, VNET);
	ip[0] = is_ipv4 ? 0x45 : 0x60;
	ip[is_ipv4 ? 9 : 6] = is_udp ? 17 : 6;
	ip[is_ipv4 ? 4 : 7] = 0xFF;
	ip[transport] = 0xC0;
	ip[transport + 3] = 80;
	if (!is_udp) {
		ip[transport + 4] = ip[transport + 5] = ip[transport + 6] = 0xFF;
		ip[transport + LINK_TCP_OFFSET] = 0x80;
		ip[transport + LINK_TCP_FLAGS] = LINK_TCP_ACK | LINK_TCP_PSH;
	}
	for (size_t i = 0; i < payload; i++)
		ip[headers + i] = (uint8_t)(i * 7 >> 3);
	link_write_ip(ip, transport, headers + payload, 0);
	link_write_transport_length(ip, transport, headers + payload);
	return VNET + headers + payload;
}

/* Packet number i of the train that was made. */
static bool add(unsigned i)
{
	link_cut_write(&cut, i, packet);
	return link_train_add(&train, packet, link_cut_length(&cut, i), true);
}

static void begin(uint8_t gso_type, bool is_ipv4, uint16_t segment, size_t payload)
{
	size_t length = make(gso_type, is_ipv4, segment, payload);

	train.count = 0;
	assert_true(link_cut_begin(&cut, original, length));
}

static void train__that_was_cut_is_the_same_again(void **state)
{
	static const struct {
		uint8_t gso_type;
		bool is_ipv4;
		uint16_t segment;
		size_t payload;
	} cases[] = { { VIRTIO_NET_HDR_GSO_UDP_L4, true, 1052, 20 * 1052 },
		{ VIRTIO_NET_HDR_GSO_UDP_L4, false, 1052, 20 * 1052 + 7 },
		{ VIRTIO_NET_HDR_GSO_TCPV4, true, 1448, 40 * 1448 },
		{ VIRTIO_NET_HDR_GSO_TCPV6, false, 1428, 3 * 1428 - 1 } };

	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		begin(cases[k].gso_type, cases[k].is_ipv4, cases[k].segment, cases[k].payload);
		for (unsigned i = 0; i < cut.count; i++)
			assert_true(add(i));
		assert_int_equal(train.count, cut.count);
		link_train_end(&train);
		assert_int_equal(train.length, cut.length + VNET);
		assert_memory_equal(train.bytes, original, train.length);
	}
}

static void train__of_one_packet_is_that_packet(void **state)
{
	begin(VIRTIO_NET_HDR_GSO_UDP_L4, true, 1000, 3000);
	assert_true(add(1));
	link_train_end(&train);
	assert_int_equal(train.length, link_cut_length(&cut, 1));
	assert_memory_equal(train.bytes, packet, train.length);
}

static void train__ends_at_a_gap_and_takes_nothing_twice(void **state)
{
	static const uint8_t types[] = { VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_GSO_TCPV4 };

	for (size_t k = 0; k < COUNT_OF(types); k++) {
		begin(types[k], true, 1000, 5000);
		assert_true(add(0));
		assert_false(add(0));
		assert_false(add(2));
		assert_true(add(1));
		assert_false(add(0));
	}
}

static void train__ends_with_a_shorter_packet(void **state)
{
	begin(VIRTIO_NET_HDR_GSO_UDP_L4, false, 1000, 2500);
	assert_true(add(0));
	assert_true(add(2)); /* without a number, IPv6 does not say that one is missing */
	assert_false(add(1));
}

static void train__is_of_one_flow_and_one_kind_of_header(void **state)
{
	static const size_t differ[] = { 1 /* traffic class */, 8 /* hops */, 15 /* address */, 20, 22 /* ports */ };

	for (size_t k = 0; k < COUNT_OF(differ); k++) {
		begin(VIRTIO_NET_HDR_GSO_UDP_L4, true, 1000, 3000);
		assert_true(add(0));
		link_cut_write(&cut, 1, packet);
		packet[VNET + differ[k]] ^= 4;
		assert_false(link_train_add(&train, packet, link_cut_length(&cut, 1), true));
	}
}

static void train__of_tcp_ends_with_push_and_has_no_bare_acknowledgements(void **state)
{
	begin(VIRTIO_NET_HDR_GSO_TCPV4, true, 1448, 3 * 1448);
	assert_true(add(0));
	link_cut_write(&cut, 1, packet);
	packet[VNET + LINK_IPV4_BYTES + LINK_TCP_FLAGS] |= LINK_TCP_PSH;
	assert_true(link_train_add(&train, packet, link_cut_length(&cut, 1), true));
	assert_false(add(2));
	train.count = 0;
	link_cut_write(&cut, 0, packet);
	size_t bare = VNET + LINK_IPV4_BYTES + LINK_TCP_BYTES + 12;
	assert_true(link_train_add(&train, packet, bare, true));
	assert_false(link_train_add(&train, packet, bare, true));
}

static void train__of_udp_is_for_devices_that_know_it(void **state)
{
	begin(VIRTIO_NET_HDR_GSO_UDP_L4, true, 1000, 3000);
	link_cut_write(&cut, 0, packet);
	assert_true(link_train_add(&train, packet, link_cut_length(&cut, 0), false));
	link_cut_write(&cut, 1, packet);
	assert_false(link_train_add(&train, packet, link_cut_length(&cut, 1), false));
}

static void train__has_an_end(void **state)
{
	begin(VIRTIO_NET_HDR_GSO_UDP_L4, true, 100, 100 * 100);
	for (unsigned i = 0; i < LINK_TRAIN_PACKETS; i++)
		assert_true(add(i));
	assert_false(add(LINK_TRAIN_PACKETS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(train__that_was_cut_is_the_same_again),
		cmocka_unit_test(train__of_one_packet_is_that_packet),
		cmocka_unit_test(train__ends_at_a_gap_and_takes_nothing_twice),
		cmocka_unit_test(train__ends_with_a_shorter_packet),
		cmocka_unit_test(train__is_of_one_flow_and_one_kind_of_header),
		cmocka_unit_test(train__of_tcp_ends_with_push_and_has_no_bare_acknowledgements),
		cmocka_unit_test(train__of_udp_is_for_devices_that_know_it),
		cmocka_unit_test(train__has_an_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
