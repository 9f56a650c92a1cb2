/* What the routing table says, in a network namespace that has loopback and nothing else. */
#include "../unit.h"
#include <errno.h>
#include <netinet/in.h>
#include "../namespace.h"
#include "host/host.h"

static void control(unsigned long what, struct ifreq request)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, what, &request), 0);
	close(fd);
}

static struct ifreq with_address(struct vb_gid gid)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	struct ifreq request = { .ifr_name = "lo:1" };
	memcpy(&name.sin_addr, gid.raw + 12, 4);
	memcpy(&request.ifr_addr, &name, sizeof(name));
	return request;
}

/* 10.9.0.1/24, with its route. */
static int setup(void **state)
{
	if (!own_namespace())
		return 0;
	control(SIOCSIFADDR, with_address(vb_gid_from_ipv4(10, 9, 0, 1)));
	control(SIOCSIFNETMASK, with_address(vb_gid_from_ipv4(255, 255, 255, 0)));
	*state = "";
	return 0;
}

static const struct vb_gid ours = { { [10] = 0xff, [11] = 0xff, 10, 9, 0, 1 } };
static const struct vb_gid neighbour = { { [10] = 0xff, [11] = 0xff, 10, 9, 0, 2 } };
static const struct vb_gid loopback6 = { { [15] = 1 } };

static void route__leads_to_the_network_and_no_further(void **state)
{
	const struct vb_gid far = vb_gid_from_ipv4(10, 10, 0, 1), far6 = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
	if (!*state)
		skip();
	assert_int_equal(vb_host_check_route(&ours, &neighbour), 0);
	assert_int_equal(vb_host_check_route(&ours, &far), -ENETUNREACH);
	assert_int_equal(vb_host_check_route(&loopback6, &far6), -ENETUNREACH);
}

static void route__is_there_to_this_machine(void **state)
{
	const struct vb_gid loopback = vb_gid_from_ipv4(127, 0, 0, 1);
	if (!*state)
		skip();
	assert_int_equal(vb_host_check_route(&ours, &ours), 0);
	assert_int_equal(vb_host_check_route(&ours, &loopback), 0);
	assert_int_equal(vb_host_check_route(&loopback, &ours), 0);
	assert_int_equal(vb_host_check_route(&loopback6, &loopback6), 0);
}

/* The interface of the device that has the address is the way. */
static void route__is_not_asked_for_groups_and_the_link(void **state)
{
	const struct vb_gid group = vb_gid_from_ipv4(239, 1, 2, 3), group6 = { { 0xff, 0x02, [15] = 9 } };
	const struct vb_gid on_link = { { 0xfe, 0x80, [15] = 9 } };
	if (!*state)
		skip();
	assert_int_equal(vb_host_check_route(&ours, &group), 0);
	assert_int_equal(vb_host_check_route(&loopback6, &group6), 0);
	assert_int_equal(vb_host_check_route(&loopback6, &on_link), 0);
}

/* An address that has just been taken away is no reason to say that there is no route. */
static void route__that_cannot_be_asked_is_let_pass(void **state)
{
	const struct vb_gid gone = vb_gid_from_ipv4(10, 9, 0, 7);
	if (!*state)
		skip();
	assert_int_equal(vb_host_check_route(&gone, &neighbour), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		TEST(route__leads_to_the_network_and_no_further),
		TEST(route__is_there_to_this_machine),
		TEST(route__is_not_asked_for_groups_and_the_link),
		TEST(route__that_cannot_be_asked_is_let_pass),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
