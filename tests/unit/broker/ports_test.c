/* Who may bind to which port, and who hears a request. */
#include "../unit.h"
#include <errno.h>
#include "broker/ports.h"

static const struct vb_gid any;
static const struct vb_gid any_ipv4 = { { [10] = 0xff, [11] = 0xff } };
static const struct vb_gid ipv6 = { { 0xfd, [15] = 1 } };

static struct vb_gid ipv4(uint8_t last)
{
	return vb_gid_from_ipv4(10, 0, 0, last);
}

static struct port_binding of(uint32_t client, uint32_t number, uint16_t port, struct vb_gid address)
{
	return (struct port_binding){
		.client = client, .number = number, .port_space = VB_CM_PS_TCP, .port = port, .address = address
	};
}

static int bind(struct ports *ports, struct port_binding binding)
{
	return ports_bind(ports, &binding);
}

static int setup(void **state)
{
	*state = ports_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	ports_destroy(*state);
	return 0;
}

static void bind__refuses_the_same_port_and_address(void **state)
{
	assert_int_equal(bind(*state, of(1, 1, 7471, ipv4(1))), 0);
	assert_int_equal(bind(*state, of(2, 1, 7471, ipv4(1))), -EADDRINUSE);
	assert_int_equal(bind(*state, of(1, 2, 7471, ipv4(1))), -EADDRINUSE);
	assert_int_equal(bind(*state, of(2, 1, 7471, ipv4(2))), 0);
	assert_int_equal(bind(*state, of(2, 2, 7472, ipv4(1))), 0);
}

/* Many addresses, of which none is in the way of another: who looks at one looks at all. */
static void bind__refuses_a_port_that_has_too_many_bindings(void **state)
{
	unsigned bound = 0;
	for (uint32_t i = 0; i < 3000; i++) {
		struct vb_gid address = ipv6;
		address.raw[8] = (uint8_t)(i >> 8);
		address.raw[9] = (uint8_t)i;
		bound += bind(*state, of(1, i, 7471, address)) == 0;
	}
	assert_in_range(bound, 1000, 1024);
	assert_int_equal(bind(*state, of(1, 5000, 7472, ipv6)), 0);
}

static void bind__keeps_port_spaces_apart(void **state)
{
	struct port_binding udp = of(1, 2, 7471, ipv4(1));
	udp.port_space = VB_CM_PS_UDP;
	assert_int_equal(bind(*state, of(1, 1, 7471, ipv4(1))), 0);
	assert_int_equal(bind(*state, udp), 0);
	udp.port_space = 0x7777;
	udp.number = 3;
	assert_int_equal(bind(*state, udp), -EPROTONOSUPPORT);
}

static void bind__any_address_covers_its_families(void **state)
{
	struct port_binding only_ipv6 = of(1, 9, 1000, any);
	only_ipv6.is_ipv6_only = true;
	assert_int_equal(bind(*state, only_ipv6), 0);
	assert_int_equal(bind(*state, of(2, 1, 1000, any_ipv4)), 0);
	assert_int_equal(bind(*state, of(2, 2, 1000, ipv6)), -EADDRNOTAVAIL);
	assert_int_equal(bind(*state, of(2, 3, 1000, ipv4(1))), -EADDRNOTAVAIL);
	assert_int_equal(bind(*state, of(2, 4, 1001, any)), 0);
	assert_int_equal(bind(*state, of(2, 5, 1001, ipv4(3))), -EADDRNOTAVAIL);
	assert_int_equal(bind(*state, of(2, 6, 1001, any_ipv4)), -EADDRNOTAVAIL);
}

/* Of the errnos of Linux's rdma_cm programs know both: UCX and libfabric look for another port at either. */
static void bind__says_whether_all_addresses_are_taken(void **state)
{
	struct vb_gid loopback = vb_gid_from_ipv4(127, 0, 0, 1);
	assert_int_equal(bind(*state, of(1, 1, 1000, any)), 0);
	assert_int_equal(bind(*state, of(2, 1, 1000, any)), -EADDRNOTAVAIL);
	assert_int_equal(bind(*state, of(2, 1, 1001, any_ipv4)), 0);
	assert_int_equal(bind(*state, of(2, 2, 1001, any_ipv4)), -EADDRNOTAVAIL);
	assert_int_equal(bind(*state, of(2, 3, 1002, ipv4(1))), 0);
	assert_int_equal(bind(*state, of(1, 4, 1002, any)), -EADDRNOTAVAIL);
	assert_int_equal(bind(*state, of(1, 5, 1002, ipv4(1))), -EADDRINUSE);
	assert_int_equal(bind(*state, of(2, 5, 1003, loopback)), 0);
	assert_int_equal(bind(*state, of(1, 6, 1003, loopback)), -EADDRNOTAVAIL);
}

static void bind__shares_among_those_who_say_so_until_one_listens(void **state)
{
	struct port_binding a = of(1, 1, 2000, ipv4(1)), b = of(2, 1, 2000, ipv4(1)), c = of(3, 1, 2000, ipv4(1));
	a.is_shared = b.is_shared = c.is_shared = true;
	assert_int_equal(bind(*state, a), 0);
	assert_int_equal(bind(*state, b), 0);
	assert_int_equal(ports_listen(*state, 1, 1, false), 0);
	assert_int_equal(ports_listen(*state, 2, 1, false), -EADDRINUSE);
	assert_int_equal(bind(*state, c), -EADDRINUSE);
	a.port = b.port = 2001;
	a.number = b.number = 2;
	b.address = any;
	assert_int_equal(bind(*state, a), 0);
	assert_int_equal(bind(*state, b), 0);
	assert_int_equal(ports_listen(*state, 2, 2, false), 0);
	assert_int_equal(ports_listen(*state, 1, 2, false), -EADDRNOTAVAIL);
}

static struct port_binding of_family(uint32_t client, uint64_t family)
{
	struct port_binding binding = of(client, 1, 2000, ipv4(1));
	binding.family = family;
	return binding;
}

static void bind__takes_none_of_another_family(void **state)
{
	assert_int_equal(bind(*state, of_family(1, 99)), 0);
	assert_int_equal(ports_listen(*state, 1, 1, false), 0);
	assert_int_equal(bind(*state, of_family(2, 98)), -EADDRINUSE);
	assert_int_equal(bind(*state, of_family(2, 0)), -EADDRINUSE);
	for (uint64_t family = 0; family < 100; family++) {
		struct port_binding child = of_family(2, family), elsewhere = child, wider = child;
		elsewhere.port++;
		wider.address = any_ipv4;
		assert_int_equal(ports_has_family(*state, &child), family == 99);
		assert_false(ports_has_family(*state, &elsewhere));
		assert_false(ports_has_family(*state, &wider));
	}
	assert_int_equal(bind(*state, of_family(2, 99)), 0);
	assert_int_equal(ports_listen(*state, 2, 1, false), 0);
}

/* As with the kernel's sockets: a server that binds, goes into the background and gives up root has its port still. */
static void family__outlives_who_was_allowed_to_bind(void **state)
{
	struct port_binding child = of_family(2, 99), elsewhere = child, other = child;
	elsewhere.address = ipv4(2);
	other.family = 98;
	ports_remember_family(*state, &child);
	assert_true(ports_has_family(*state, &child));
	assert_false(ports_has_family(*state, &elsewhere));
	assert_false(ports_has_family(*state, &other));
	for (unsigned i = 0; i < 1000; i++)
		ports_remember_family(*state, &child); /* takes no room again */
	ports_remember_family(*state, &other);
	assert_true(ports_has_family(*state, &child));
	other.family = 0;
	ports_remember_family(*state, &other);
	assert_false(ports_has_family(*state, &other));
	for (uint64_t family = 1000; family < 2000; family++) {
		other.family = family;
		ports_remember_family(*state, &other);
	}
	assert_true(ports_has_family(*state, &other));
	assert_false(ports_has_family(*state, &child)); /* there is no end to the newer ones */
}

static uint32_t find(struct ports *ports, uint32_t before)
{
	const struct vb_gid one = ipv4(1);
	return ports_find_listener(ports, vb_cm_service_id(VB_CM_PS_TCP, 2000), &one, before);
}

static void listeners__of_a_family_take_turns(void **state)
{
	for (uint32_t client = 1; client <= 3; client++) {
		assert_int_equal(bind(*state, of_family(client, 99)), 0);
		assert_int_equal(ports_listen(*state, client, 1, false), 0);
	}
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(find(*state, PORTS_NOBODY), 1 + i % 3);
	for (unsigned i = 0; i < 3; i++) /* a request that comes again */
		assert_int_equal(find(*state, 2), 2);
	assert_int_equal(find(*state, 7), 1);
}

static void listeners__that_accept_come_before_those_that_only_might(void **state)
{
	for (uint32_t client = 1; client <= 3; client++) {
		assert_int_equal(bind(*state, of_family(client, 99)), 0);
		assert_int_equal(ports_listen(*state, client, 1, client != 1), 0);
	}
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(find(*state, 1), 2 + i % 2);
	ports_forget_client(*state, 2);
	ports_forget_client(*state, 3);
	assert_int_equal(find(*state, 2), 1);
	assert_int_equal(ports_listen(*state, 1, 1, true), 0); /* again, as it has changed */
}

static void bind__gives_every_free_port_once(void **state)
{
	bool seen[65536] = { false };
	struct port_binding binding;
	uint32_t count = 0;
	for (;;) {
		binding = of(1, ++count, 0, ipv4(1));
		if (ports_bind(*state, &binding))
			break;
		assert_true(binding.port >= 32768 && binding.port <= 60999);
		assert_false(seen[binding.port]);
		seen[binding.port] = true;
	}
	assert_int_equal(count, 60999 - 32768 + 2);
	ports_unbind(*state, 1, 77);
	binding = of(1, 77, 0, ipv4(1));
	assert_int_equal(ports_bind(*state, &binding), 0);
}

static void bind__refuses_a_number_in_use(void **state)
{
	assert_int_equal(bind(*state, of(1, 1, 3000, ipv4(1))), 0);
	assert_int_equal(bind(*state, of(1, 1, 3001, ipv4(1))), -EINVAL);
	assert_int_equal(bind(*state, of(512, 1, 3001, ipv4(1))), -EINVAL);
	assert_int_equal(ports_listen(*state, 1, 2, false), -EINVAL);
}

static void listener__is_found_by_address_before_any(void **state)
{
	uint64_t service = vb_cm_service_id(VB_CM_PS_TCP, 7471);
	struct vb_gid one = ipv4(1), two = ipv4(2);
	struct port_binding wide = of(1, 1, 7471, any), narrow = of(2, 1, 7471, one);
	wide.is_shared = narrow.is_shared = true;
	assert_int_equal(bind(*state, wide), 0);
	assert_int_equal(ports_find_listener(*state, service, &one, PORTS_NOBODY), PORTS_NOBODY);
	assert_int_equal(ports_listen(*state, 1, 1, false), 0);
	assert_int_equal(ports_find_listener(*state, service, &one, PORTS_NOBODY), 1);
	assert_int_equal(ports_find_listener(*state, service, &ipv6, PORTS_NOBODY), 1);
	assert_int_equal(ports_find_listener(*state, service + 1, &one, PORTS_NOBODY), PORTS_NOBODY);
	assert_int_equal(ports_find_listener(*state, service | 1ull << 40, &one, PORTS_NOBODY), PORTS_NOBODY);
	ports_unbind(*state, 1, 1);
	assert_int_equal(bind(*state, narrow), 0);
	assert_int_equal(ports_listen(*state, 2, 1, false), 0);
	assert_int_equal(ports_find_listener(*state, service, &one, PORTS_NOBODY), 2);
	assert_int_equal(ports_find_listener(*state, service, &two, PORTS_NOBODY), PORTS_NOBODY);
}

static void client__takes_its_bindings_with_it(void **state)
{
	uint64_t service = vb_cm_service_id(VB_CM_PS_TCP, 7471);
	struct vb_gid one = ipv4(1);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(bind(*state, of(5, i, (uint16_t)(7471 + i), one)), 0);
	assert_int_equal(ports_listen(*state, 5, 0, false), 0);
	ports_forget_client(*state, 5);
	assert_int_equal(ports_find_listener(*state, service, &one, PORTS_NOBODY), PORTS_NOBODY);
	assert_int_equal(bind(*state, of(6, 1, 7500, one)), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bind__refuses_the_same_port_and_address),
		TEST(bind__refuses_a_port_that_has_too_many_bindings),
		TEST(bind__keeps_port_spaces_apart),
		TEST(bind__any_address_covers_its_families),
		TEST(bind__says_whether_all_addresses_are_taken),
		TEST(bind__shares_among_those_who_say_so_until_one_listens),
		TEST(bind__takes_none_of_another_family),
		TEST(family__outlives_who_was_allowed_to_bind),
		TEST(bind__gives_every_free_port_once),
		TEST(bind__refuses_a_number_in_use),
		TEST(listener__is_found_by_address_before_any),
		TEST(listeners__of_a_family_take_turns),
		TEST(listeners__that_accept_come_before_those_that_only_might),
		TEST(client__takes_its_bindings_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
