#include "rsocket/datagram.h"
#include "../unit.h"

#include <arpa/inet.h>
#include <string.h>

static union vb_rs_address ipv4(const char *text, uint16_t port)
{
	union vb_rs_address address = { .ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) } };
	assert_int_equal(inet_pton(AF_INET, text, &address.ipv4.sin_addr), 1);
	return address;
}

static union vb_rs_address ipv6(const char *text, uint16_t port)
{
	union vb_rs_address address = { .ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
	assert_int_equal(inet_pton(AF_INET6, text, &address.ipv6.sin6_addr), 1);
	return address;
}

static void udp_header__lies_on_the_wire_as_librdmacm_has_it(void **state)
{
	static const uint8_t wire[] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0x12, 0x34, 0x56, 0, 10, 1, 2, 3 };
	struct vb_rs_udp_header header = { .is_data = true, .qpn = 0x123456, .target = ipv4("10.1.2.3", 99) }, seen;
	uint8_t bytes[VB_RS_HEADER_MAX];

	assert_int_equal(vb_rs_udp_header_encode(&header, bytes), sizeof(wire));
	assert_memory_equal(bytes, wire, sizeof(wire));
	assert_int_equal(vb_rs_udp_header_decode(&seen, wire, sizeof(wire)), sizeof(wire));
	assert_true(seen.is_data && vb_rs_address_equal(&seen.target, &header.target, false));
	assert_int_equal(seen.qpn, 0x123456);
}

static void udp_header__of_ipv6_comes_back(void **state)
{
	struct vb_rs_udp_header header = { .qpn = 0xFFFFFE, .target = ipv6("fd00::1:2", 99) }, seen;
	uint8_t bytes[VB_RS_HEADER_MAX];

	assert_int_equal(vb_rs_udp_header_encode(&header, bytes), VB_RS_UDP_HEADER_IPV6);
	assert_int_equal(bytes[5], 7); /* an answer */
	assert_int_equal(vb_rs_udp_header_decode(&seen, bytes, sizeof(bytes)), VB_RS_UDP_HEADER_IPV6);
	assert_true(!seen.is_data && vb_rs_address_equal(&seen.target, &header.target, false));
}

static void udp_header__that_is_none_is_refused(void **state)
{
	struct vb_rs_udp_header header = { .is_data = true, .qpn = 17, .target = ipv4("10.1.2.3", 99) }, seen;
	uint8_t good[VB_RS_HEADER_MAX], bytes[VB_RS_HEADER_MAX];
	static const size_t checked[] = { 0, 3, 4, 5, 6 };

	size_t length = vb_rs_udp_header_encode(&header, good);
	for (size_t i = 0; i < sizeof(checked) / sizeof(checked[0]); i++) {
		memcpy(bytes, good, length);
		bytes[checked[i]] ^= 0x02;
		assert_int_equal(vb_rs_udp_header_decode(&seen, bytes, length), 0);
	}
	for (size_t shorter = 0; shorter < length; shorter++)
		assert_int_equal(vb_rs_udp_header_decode(&seen, good, shorter), 0);
}

static void ud_header__tells_address_and_port(void **state)
{
	static const uint8_t wire[] = { 4, 8, 0x1F, 0x90, 10, 1, 2, 3 };
	union vb_rs_address sender = ipv4("10.1.2.3", 8080), seen;
	uint8_t bytes[VB_RS_HEADER_MAX];

	assert_int_equal(vb_rs_ud_header_encode(&sender, bytes), sizeof(wire));
	assert_memory_equal(bytes, wire, sizeof(wire));
	assert_int_equal(vb_rs_ud_header_decode(&seen, bytes, 100), sizeof(wire));
	assert_true(vb_rs_address_equal(&seen, &sender, true));

	sender = ipv6("fd00::7", 8081);
	assert_int_equal(vb_rs_ud_header_encode(&sender, bytes), VB_RS_UD_HEADER_IPV6);
	assert_int_equal(vb_rs_ud_header_decode(&seen, bytes, VB_RS_UD_HEADER_IPV6), VB_RS_UD_HEADER_IPV6);
	assert_true(vb_rs_address_equal(&seen, &sender, true));
	for (size_t shorter = 0; shorter < VB_RS_UD_HEADER_IPV6; shorter++)
		assert_int_equal(vb_rs_ud_header_decode(&seen, bytes, shorter), 0);
}

static void address__as_gid_is_mapped_or_itself(void **state)
{
	static const uint8_t mapped[16] = { [10] = 0xFF, 0xFF, 10, 1, 2, 3 };
	union vb_rs_address address = ipv4("10.1.2.3", 1);
	union ibv_gid gid = vb_rs_address_gid(&address);
	assert_memory_equal(gid.raw, mapped, 16);
	address = ipv6("fd00::7", 1);
	gid = vb_rs_address_gid(&address);
	assert_memory_equal(gid.raw, &address.ipv6.sin6_addr, 16);
}

/* A socket of IPv6 that speaks IPv4, to one that knows no other. */
static void headers__of_a_mapped_address_are_those_of_ipv4(void **state)
{
	static const uint8_t ud[] = { 4, 8, 0x1F, 0x90, 10, 1, 2, 3 }, target[] = { 10, 1, 2, 3 };
	union vb_rs_address mapped = ipv6("::ffff:10.1.2.3", 8080);
	struct vb_rs_udp_header header = { .is_data = true, .qpn = 17, .target = mapped };
	uint8_t bytes[VB_RS_HEADER_MAX];

	assert_int_equal(vb_rs_ud_header_encode(&mapped, bytes), sizeof(ud));
	assert_memory_equal(bytes, ud, sizeof(ud));
	assert_int_equal(vb_rs_udp_header_encode(&header, bytes), VB_RS_UDP_HEADER_IPV4);
	assert_int_equal(bytes[4], 4);
	assert_memory_equal(bytes + 12, target, sizeof(target));
}

static void address__converts_to_the_family_of_a_socket(void **state)
{
	union vb_rs_address plain = ipv4("10.1.2.3", 8080), mapped = ipv6("::ffff:10.1.2.3", 8080), seen = plain;

	assert_true(vb_rs_address_convert(&seen, AF_INET6) && vb_rs_address_equal(&seen, &mapped, true));
	assert_true(vb_rs_address_convert(&seen, AF_INET6) && vb_rs_address_equal(&seen, &mapped, true));
	assert_true(vb_rs_address_convert(&seen, AF_INET) && vb_rs_address_equal(&seen, &plain, true));
	seen = ipv6("fd00::7", 1);
	assert_false(vb_rs_address_convert(&seen, AF_INET));
}

static void addresses__differ_by_family_address_and_port(void **state)
{
	union vb_rs_address a = ipv4("10.1.2.3", 1), b = ipv4("10.1.2.3", 2), c = ipv4("10.1.2.4", 1),
			    d = ipv6("::", 1);
	assert_true(vb_rs_address_equal(&a, &b, false));
	assert_false(vb_rs_address_equal(&a, &b, true));
	assert_false(vb_rs_address_equal(&a, &c, true));
	assert_false(vb_rs_address_equal(&a, &d, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp_header__lies_on_the_wire_as_librdmacm_has_it),
		cmocka_unit_test(udp_header__of_ipv6_comes_back),
		cmocka_unit_test(udp_header__that_is_none_is_refused),
		cmocka_unit_test(ud_header__tells_address_and_port),
		cmocka_unit_test(address__as_gid_is_mapped_or_itself),
		cmocka_unit_test(headers__of_a_mapped_address_are_those_of_ipv4),
		cmocka_unit_test(address__converts_to_the_family_of_a_socket),
		cmocka_unit_test(addresses__differ_by_family_address_and_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
