#include "cut.h"
#include "base/random.h"
#include "../unit/unit.h"

enum { VNET = sizeof(struct virtio_net_hdr), IPV4 = 20, IPV6 = 40, TCP = 20, UDP = 8, GSO_UDP = 5 };

static uint8_t train[VNET + 70000], packet[VNET + 70000];
static struct link_cut cut;

static uint16_t at16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* Sums of 16 bits over bytes with an even length: 0xFFFF where a checksum holds. */
static uint16_t sum_of(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i += 2)
		sum += at16(bytes + i);
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

static void make_header(uint8_t gso_type, uint16_t segment, uint16_t transport)
{
	struct virtio_net_hdr header = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = gso_type, .gso_size = segment, .csum_start = transport
	};

	memset(train, 0, sizeof(train));
	memcpy(train, &header, sizeof(header));
}

/* IPv4, identification 0xFFFF, from 10.0.0.1 to 10.0.0.2, source port 0xC003; the payload counts bytes. */
static size_t make_ipv4(uint8_t gso_type, uint8_t protocol, size_t transport, uint16_t segment, size_t payload)
{
	uint8_t *ip = train + VNET;
	size_t length = IPV4 + transport + payload;
	const uint8_t addresses[] = { 10, 0, 0, 1, 10, 0, 0, 2 };

	make_header(gso_type, segment, IPV4);
	ip[0] = 0x45;
	ip[2] = (uint8_t)(length >> 8);
	ip[3] = (uint8_t)length;
	ip[4] = ip[5] = 0xFF;
	ip[9] = protocol;
	memcpy(ip + 12, addresses, sizeof(addresses));
	ip[IPV4] = 0xC0;
	ip[IPV4 + 1] = 3;
	for (size_t i = 0; i < payload; i++)
		ip[IPV4 + transport + i] = (uint8_t)(i * 7 >> 2);
	return VNET + length;
}

static void expect_payload(unsigned i, size_t headers, size_t segment)
{
	size_t length = link_cut_length(&cut, i) - VNET - headers;

	assert_memory_equal(packet + VNET + headers, train + VNET + headers + i * segment, length);
}

static void cut__of_udp_numbers_datagrams_and_says_their_lengths(void **state)
{
	size_t length = make_ipv4(GSO_UDP, 17, UDP, 1000, 2500);

	assert_true(link_cut_begin(&cut, train, length));
	assert_int_equal(cut.count, 3);
	assert_int_equal(cut.source_port, 0xC003);
	for (unsigned i = 0; i < 3; i++) {
		size_t payload = i < 2 ? 1000 : 500;
		struct virtio_net_hdr header;
		assert_int_equal(link_cut_length(&cut, i), VNET + IPV4 + UDP + payload);
		link_cut_write(&cut, i, packet);
		memcpy(&header, packet, sizeof(header));
		assert_int_equal(header.gso_type, VIRTIO_NET_HDR_GSO_NONE);
		assert_int_equal(header.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
		assert_int_equal(header.csum_start, IPV4);
		assert_int_equal(header.csum_offset, 6);
		assert_int_equal(at16(packet + VNET + 2), IPV4 + UDP + payload);
		assert_int_equal(at16(packet + VNET + 4), (uint16_t)(0xFFFF + i));
		assert_int_equal(sum_of(packet + VNET, IPV4), 0xFFFF);
		assert_int_equal(at16(packet + VNET + IPV4 + 4), UDP + payload);
		/* 10.0.0.1, 10.0.0.2, protocol and length */
		assert_int_equal(at16(packet + VNET + IPV4 + 6), 0x0A00 + 1 + 0x0A00 + 2 + 17 + UDP + payload);
		expect_payload(i, IPV4 + UDP, 1000);
	}
}

static void cut__of_tcp_goes_on_in_sequence_and_ends_with_its_flags(void **state)
{
	size_t length = make_ipv4(VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN, 6, TCP, 1448, 3 * 1448);
	uint8_t *tcp = train + VNET + IPV4;
	static const uint8_t flags[] = { 0x90, 0x10, 0x19 }; /* CWR ACK, ACK, ACK PSH FIN */

	tcp[4] = tcp[5] = tcp[6] = tcp[7] = 0xFF; /* sequence 2^32 - 1 */
	tcp[12] = 0x50;
	tcp[13] = 0x99;
	assert_true(link_cut_begin(&cut, train, length));
	assert_int_equal(cut.count, 3);
	for (unsigned i = 0; i < 3; i++) {
		link_cut_write(&cut, i, packet);
		const uint8_t *of = packet + VNET + IPV4;
		assert_int_equal((uint32_t)at16(of + 4) << 16 | at16(of + 6), (uint32_t)(i * 1448 - 1u));
		assert_int_equal(of[13], flags[i]);
		expect_payload(i, IPV4 + TCP, 1448);
	}
}

static void cut__of_ipv6_says_its_lengths(void **state)
{
	uint8_t *ip = train + VNET;

	make_header(GSO_UDP, 1000, IPV6);
	ip[0] = 0x60;
	ip[6] = 17;
	ip[IPV6] = 0xC0;
	ip[IPV6 + 1] = 9;
	assert_true(link_cut_begin(&cut, train, VNET + IPV6 + UDP + 1001));
	assert_int_equal(cut.count, 2);
	assert_int_equal(cut.source_port, 0xC009);
	link_cut_write(&cut, 1, packet);
	assert_int_equal(at16(packet + VNET + 4), UDP + 1);
	assert_int_equal(at16(packet + VNET + IPV6 + 4), UDP + 1);
}

static void cut__of_a_single_packet_leaves_it_as_it_is(void **state)
{
	size_t length = make_ipv4(VIRTIO_NET_HDR_GSO_NONE, 17, UDP, 0, 100);

	assert_true(link_cut_begin(&cut, train, length));
	assert_int_equal(cut.count, 1);
	assert_int_equal(cut.source_port, 0xC003);
	assert_int_equal(link_cut_length(&cut, 0), length);
	link_cut_write(&cut, 0, packet);
	assert_memory_equal(packet, train, length);
	train[VNET + 7] = 1; /* a later fragment has no ports */
	assert_true(link_cut_begin(&cut, train, length));
	assert_int_equal(cut.source_port, 0);
}

static void cut__of_what_is_no_train_is_refused(void **state)
{
	size_t length = make_ipv4(GSO_UDP, 17, UDP, 0, 100); /* segments of nothing */
	assert_false(link_cut_begin(&cut, train, length));
	length = make_ipv4(GSO_UDP, 6, TCP, 50, 100); /* of another protocol */
	assert_false(link_cut_begin(&cut, train, length));
	length = make_ipv4(VIRTIO_NET_HDR_GSO_TCPV4, 6, TCP, 50, 100); /* a header of no length */
	assert_false(link_cut_begin(&cut, train, length));
	length = make_ipv4(3, 17, UDP, 50, 100); /* UFO, which nobody asked for */
	assert_false(link_cut_begin(&cut, train, length));
	assert_false(link_cut_begin(&cut, train, VNET));
}

/* Anything at all, of any length: ASan and UBSan watch. */
static void cut__of_noise_stays_within_it(void **state)
{
	struct vb_random random;

	vb_random_seed(&random, 5);
	for (unsigned round = 0; round < 20000; round++) {
		size_t length = vb_random_below(&random, 200);
		uint8_t *noise = malloc(length ? length : 1);
		for (size_t i = 0; i < length; i++)
			noise[i] = (uint8_t)vb_random_u64(&random);
		if (length > 1) /* of a kind that is looked at */
			noise[1] = (uint8_t)(noise[1] % 6);
		if (length > VNET)
			noise[VNET] = vb_random_below(&random, 2) ? 0x45 : 0x60;
		if (link_cut_begin(&cut, noise, length))
			for (unsigned i = 0; i < cut.count; i++) {
				assert_true(link_cut_length(&cut, i) <= sizeof(packet));
				link_cut_write(&cut, i, packet);
			}
		free(noise);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut__of_udp_numbers_datagrams_and_says_their_lengths),
		cmocka_unit_test(cut__of_tcp_goes_on_in_sequence_and_ends_with_its_flags),
		cmocka_unit_test(cut__of_ipv6_says_its_lengths),
		cmocka_unit_test(cut__of_a_single_packet_leaves_it_as_it_is),
		cmocka_unit_test(cut__of_what_is_no_train_is_refused),
		cmocka_unit_test(cut__of_noise_stays_within_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
