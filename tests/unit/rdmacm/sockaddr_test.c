/* Socket addresses as GIDs, and back. */
#include <arpa/inet.h>
#include "../unit.h"
#include "rdmacm/objects.h"

static struct sockaddr_storage addr_of(const char *ip, uint16_t port)
{
	struct sockaddr_storage addr = { .ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET };
	void *to = addr.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&addr)->sin_addr
					     : (void *)&((struct sockaddr_in6 *)&addr)->sin6_addr;
	assert_int_equal(inet_pton(addr.ss_family, ip, to), 1);
	vb_sockaddr_set_port((struct sockaddr *)&addr, port);
	return addr;
}

static void gid__is_the_address_and_comes_back(void **state)
{
	const struct {
		const char *ip;
		uint8_t tenth, last;
	} of[] = { { "10.0.0.9", 0xff, 9 }, { "0.0.0.0", 0xff, 0 }, { "fd00::7", 0, 7 }, { "::", 0, 0 } };

	for (size_t i = 0; i < COUNT_OF(of); i++) {
		struct sockaddr_storage addr = addr_of(of[i].ip, 7471), back;
		struct vb_gid gid = vb_sockaddr_gid((struct sockaddr *)&addr);
		assert_int_equal(gid.raw[10], of[i].tenth);
		assert_int_equal(gid.raw[15], of[i].last);
		memset(&back, 0xff, sizeof(back));
		vb_sockaddr_fill(&back, &gid, 7471, 0);
		assert_memory_equal(&back, &addr, sizeof(addr));
		assert_int_equal(vb_sockaddr_port((struct sockaddr *)&back), 7471);
	}
}

/* Elsewhere a program may leave anything there. */
static void scope__counts_with_addresses_of_one_link(void **state)
{
	const struct {
		const char *ip;
		uint32_t scope;
	} of[] = { { "fe80::1", 3 }, { "ff02::1", 3 }, { "fd00::1", 0 }, { "ff0e::1", 0 }, { "::1", 0 } };

	for (size_t i = 0; i < COUNT_OF(of); i++) {
		struct sockaddr_storage addr = addr_of(of[i].ip, 0);
		((struct sockaddr_in6 *)&addr)->sin6_scope_id = 3;
		assert_int_equal(vb_sockaddr_scope((struct sockaddr *)&addr), of[i].scope);
	}
	struct sockaddr_storage ipv4 = addr_of("169.254.0.1", 0), back;
	assert_int_equal(vb_sockaddr_scope((struct sockaddr *)&ipv4), 0);
	struct vb_gid link_local = { { 0xfe, 0x80, [15] = 1 } };
	vb_sockaddr_fill(&back, &link_local, 0, 3);
	assert_int_equal(vb_sockaddr_scope((struct sockaddr *)&back), 3);
}

static void kind__is_told_in_both_families(void **state)
{
	const struct {
		const char *ip;
		bool is_any, is_multicast;
	} of[] = { { "0.0.0.0", true, false }, { "::", true, false }, { "127.0.0.1", false, false },
		{ "::1", false, false }, { "224.1.2.3", false, true }, { "240.0.0.1", false, false },
		{ "ff0e::1", false, true } };
	struct sockaddr unix_address = { .sa_family = AF_UNIX };

	for (size_t i = 0; i < COUNT_OF(of); i++) {
		struct sockaddr_storage addr = addr_of(of[i].ip, 1);
		assert_int_equal(vb_sockaddr_is_any((struct sockaddr *)&addr), of[i].is_any);
		assert_int_equal(vb_sockaddr_is_multicast((struct sockaddr *)&addr), of[i].is_multicast);
	}
	assert_int_equal(vb_sockaddr_length(&unix_address), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid__is_the_address_and_comes_back),
		cmocka_unit_test(scope__counts_with_addresses_of_one_link),
		cmocka_unit_test(kind__is_told_in_both_families),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
