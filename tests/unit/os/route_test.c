/* Of which address the kernel would send, as its routes of this machine to itself tell. */
#include <errno.h>
#include "../unit.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include "os/route.h"

static struct sockaddr_in at(const char *ip, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	assert_int_equal(inet_pton(AF_INET, ip, &addr.sin_addr), 1);
	return addr;
}

static int route(struct sockaddr_in to, const struct sockaddr_in *from, struct sockaddr_in *source)
{
	struct sockaddr_storage found;
	int error = vb_route_source((struct sockaddr *)&to, (const struct sockaddr *)from, &found);
	memcpy(source, &found, sizeof(*source));
	return error;
}

/* Also to no port. */
static void route__to_this_machine_begins_here(void **state)
{
	struct sockaddr_in source;

	assert_int_equal(route(at("127.0.0.1", 0), NULL, &source), 0);
	assert_int_equal(source.sin_family, AF_INET);
	assert_int_equal(ntohl(source.sin_addr.s_addr), INADDR_LOOPBACK);
}

/* Whatever port it is bound to, which others may have. */
static void route__from_an_address_of_ours_is_that_address(void **state)
{
	struct sockaddr_in source, own = at("127.0.0.2", 9), same = own;

	assert_int_equal(route(at("127.0.0.1", 80), &own, &source), 0);
	assert_int_equal(source.sin_addr.s_addr, own.sin_addr.s_addr);
	assert_int_equal(source.sin_port, 0);
	assert_memory_equal(&own, &same, sizeof(own));
}

static void route__from_an_address_of_others_there_is_none(void **state)
{
	struct sockaddr_in source, others = at("203.0.113.9", 0);

	assert_int_equal(route(at("127.0.0.1", 80), &others, &source), -EADDRNOTAVAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(route__to_this_machine_begins_here),
		cmocka_unit_test(route__from_an_address_of_ours_is_that_address),
		cmocka_unit_test(route__from_an_address_of_others_there_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
