/* The port where the kernel steers nothing (gVisor): it is one slot's. The test says so of a kernel that would steer.
 */
#include "broker/group.h"

#include <arpa/inet.h>
#include "broker/port_holder.h"
#include "../namespace.h"
#include "../unit.h"
#include "wire/packet.h"

#define SKIPPED 77

void port_holder_explain(uint16_t port, char *why, size_t size)
{
	snprintf(why, size, "port %u is held", port);
}

static bool has_port(int fd, struct in6_addr *address)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t length = sizeof(name);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	*address = name.sin6_addr;
	return name.sin6_port == htons(VB_UDP_PORT);
}

static void unsteered__the_first_slot_has_the_port(void **state)
{
	(void)state;
	struct group group;
	struct in6_addr address, loopback;
	char why[200];
	uint32_t buffer;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &loopback), 1);
	assert_int_equal(group_open(&group, why, sizeof(why)), 0);
	assert_false(group.is_unsteered);
	group.is_unsteered = true;

	assert_int_equal(group_add(&group, 5, 65536, &buffer), 0);
	assert_int_equal(group_add(&group, 6, 65536, &buffer), 0);
	assert_true(has_port(group.fd[5], &address));
	assert_true(IN6_IS_ADDR_UNSPECIFIED(&address));
	assert_false(has_port(group.fd[6], &address));
	assert_true(has_port(group.own, &address)); /* for this host's connections */
	assert_memory_equal(&address, &loopback, sizeof(address));
	assert_true(group_verify(&group, 5));
	assert_int_equal(group_repair(&group), 0);

	assert_true(group_remove(&group, 5));
	assert_true(has_port(group.own, &address));
	assert_true(IN6_IS_ADDR_UNSPECIFIED(&address));
	assert_int_equal(group_add(&group, 7, 65536, &buffer), 0);
	assert_true(has_port(group.fd[7], &address));
	assert_true(group_remove(&group, 6));
	assert_true(group_remove(&group, 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(unsteered__the_first_slot_has_the_port) };
	if (!own_namespace()) {
		puts("skipped: no network namespaces here");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
