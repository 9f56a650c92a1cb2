/* Devices: from interfaces to names, order, GIDs, MTU and node GUID. */
#include "../unit.h"
#include "host/devices/devices.h"

static struct vb_interface interfaces[4];
static struct vb_device_info devices[4];

static struct vb_gid ipv6(uint8_t first, uint8_t second, uint8_t last)
{
	return (struct vb_gid){ { [0] = first, [1] = second, [15] = last } };
}

static void add(struct vb_interface *interface, struct vb_gid gid)
{
	interface->addresses[interface->address_count++] = gid;
}

/* lo, two Ethernet interfaces of which the second has the default route, and one without an address. */
static int machine(void **state)
{
	memset(interfaces, 0, sizeof(interfaces));
	interfaces[0] = (struct vb_interface){
		.index = 1, .name = "lo", .mtu = 65536, .is_up = true, .is_running = true, .is_loopback = true
	};
	add(&interfaces[0], vb_gid_from_ipv4(127, 0, 0, 1));
	add(&interfaces[0], ipv6(0, 0, 1));
	interfaces[1] = (struct vb_interface){
		.index = 2, .name = "eth0", .mtu = 1500, .is_up = true, .mac = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 }
	};
	add(&interfaces[1], ipv6(0xfe, 0x80, 2));
	add(&interfaces[1], ipv6(0x20, 0x01, 3));
	add(&interfaces[1], vb_gid_from_ipv4(10, 0, 0, 1));
	add(&interfaces[1], vb_gid_from_ipv4(10, 0, 0, 2));
	interfaces[2] = (struct vb_interface){
		.index = 3, .name = "eth1", .mtu = 9000, .is_up = true, .is_running = true, .mac = { 0, 1, 2, 3, 4, 5 }
	};
	add(&interfaces[2], vb_gid_from_ipv4(10, 1, 0, 1));
	interfaces[3] = (struct vb_interface){ .index = 4, .name = "eth2", .mtu = 1500, .is_up = true };
	return 0;
}

static void list__default_route_first_loopback_last(void **state)
{
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, NULL, devices), 3);
	assert_string_equal(devices[0].name, "vb_eth1");
	assert_string_equal(devices[1].name, "vb_eth0");
	assert_string_equal(devices[2].name, "vb_lo");
	assert_true(devices[0].is_up);
	assert_false(devices[1].is_up);
	assert_true(devices[2].is_loopback);
}

static void list__loopback_is_offered_alone_or_by_name(void **state)
{
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "all", devices), 2);
	assert_string_equal(devices[0].name, "vb_eth1");
	assert_string_equal(devices[1].name, "vb_eth0");
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "eth1,lo", devices), 2);
	assert_string_equal(devices[1].name, "vb_lo");
	interfaces[1].is_up = interfaces[2].is_up = false;
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "all", devices), 1);
	assert_string_equal(devices[0].name, "vb_lo");
}

static void list__wanted_names_narrow_and_order(void **state)
{
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "lo,vb_eth0,nothing", devices), 2);
	assert_string_equal(devices[0].name, "vb_lo");
	assert_string_equal(devices[1].name, "vb_eth0");
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "eth", devices), 0);
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "lo,lo,vb_lo", devices), 1);
}

static void expect_fault(const char **wanted, const char *name, const char *why)
{
	struct vb_name_fault fault;

	assert_true(vb_devices_next_fault(interfaces, 4, wanted, &fault));
	assert_string_equal(fault.name, name);
	assert_non_null(strstr(fault.why, why));
}

static void list__names_in_vain_are_told_apart(void **state)
{
	const char *wanted = "lo,eth,vb_eth0,eth99,eth1,vb_eth2,vb_,eth0x,lo,all";
	struct vb_name_fault fault;

	interfaces[2].is_up = false;
	expect_fault(&wanted, "eth", "no such interface");
	expect_fault(&wanted, "eth99", "no such interface");
	expect_fault(&wanted, "eth1", "is down");
	expect_fault(&wanted, "vb_eth2", "no address");
	expect_fault(&wanted, "vb_", "no such interface");
	expect_fault(&wanted, "eth0x", "no such interface");
	expect_fault(&wanted, "all", "no such interface");
	assert_false(vb_devices_next_fault(interfaces, 4, &wanted, &fault));
	wanted = "eth0";
	interfaces[1].mtu = 335;
	expect_fault(&wanted, "eth0", "too small");
}

static void list__down_or_small_is_no_device(void **state)
{
	interfaces[1].is_up = false;
	interfaces[2].mtu = 335;
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "all", devices), 1);
	assert_string_equal(devices[0].name, "vb_lo");
}

static void gids__ipv4_first_and_one_then_global_then_link_local(void **state)
{
	vb_devices_from_interfaces(interfaces, 4, 3, "eth0", devices);
	struct vb_gid expected[] = { vb_gid_from_ipv4(10, 0, 0, 1), ipv6(0x20, 0x01, 3), ipv6(0xfe, 0x80, 2) };
	assert_int_equal(devices[0].gid_count, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_memory_equal(&devices[0].gids[i].gid, &expected[i], 16);
		assert_string_equal(devices[0].gids[i].ifname, "eth0");
	}
}

static void gids__no_more_than_the_table_holds(void **state)
{
	for (unsigned i = 0; i < VB_INTERFACE_ADDRESSES - 4; i++)
		add(&interfaces[1], ipv6(0x20, 0x02, (uint8_t)i));
	vb_devices_from_interfaces(interfaces, 4, 3, "eth0", devices);
	assert_int_equal(devices[0].gid_count, VB_MAX_GIDS);
}

static void mtu__is_the_largest_that_fits(void **state)
{
	assert_int_equal(vb_device_mtu(1500), 1024);
	assert_int_equal(vb_device_mtu(9000), 4096);
	assert_int_equal(vb_device_mtu(65536), 4096);
	assert_int_equal(vb_device_mtu(4176), 4096);
	assert_int_equal(vb_device_mtu(4175), 2048);
	assert_int_equal(vb_device_mtu(336), 256);
	assert_int_equal(vb_device_mtu(335), 0);
}

static uint32_t large_mtu_of(uint32_t netdev_mtu)
{
	interfaces[1].mtu = netdev_mtu;
	assert_int_equal(vb_devices_from_interfaces(interfaces, 4, 3, "eth0", devices), 1);
	return devices[0].large_mtu;
}

/* Where that is more than the path MTU. */
static void large_mtu__is_what_the_link_carries_in_whole_cache_lines(void **state)
{
	assert_int_equal(large_mtu_of(1500), 1408);
	assert_int_equal(large_mtu_of(1460), 1344);
	assert_int_equal(large_mtu_of(1171), 0);
	assert_int_equal(large_mtu_of(1172), 1088);
	assert_int_equal(large_mtu_of(4200), 0);
	assert_int_equal(large_mtu_of(8531), 8384);
	assert_int_equal(large_mtu_of(8532), 8448);
	assert_int_equal(large_mtu_of(65536), 8448);
}

static void guid__is_the_mac_as_eui64(void **state)
{
	const uint8_t expected[8] = { 0x00, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55 };

	vb_devices_from_interfaces(interfaces, 4, 3, "eth0", devices);
	assert_memory_equal(&devices[0].node_guid, expected, 8);
}

static void guid__without_mac_is_stable_and_not_zero(void **state)
{
	vb_devices_from_interfaces(interfaces, 4, 3, "lo", devices);
	uint64_t guid = devices[0].node_guid;
	assert_true(guid != 0);
	vb_devices_from_interfaces(interfaces, 4, 2, NULL, devices);
	assert_true(devices[2].node_guid == guid);
	interfaces[1].is_loopback = true;
	memset(interfaces[1].mac, 0, 6);
	vb_devices_from_interfaces(interfaces, 4, 3, "eth0", devices);
	assert_true(devices[0].node_guid != guid);
}

static void interfaces__of_this_machine_have_loopback(void **state)
{
	struct vb_interface *list;
	size_t count;
	bool found = false;

	assert_int_equal(vb_interfaces_read(&list, &count), 0);
	for (size_t i = 0; i < count; i++)
		found |= list[i].is_loopback && strcmp(list[i].name, "lo") == 0 && list[i].index && list[i].mtu;
	free(list);
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(list__default_route_first_loopback_last, machine),
		cmocka_unit_test_setup(list__loopback_is_offered_alone_or_by_name, machine),
		cmocka_unit_test_setup(list__wanted_names_narrow_and_order, machine),
		cmocka_unit_test_setup(list__names_in_vain_are_told_apart, machine),
		cmocka_unit_test_setup(list__down_or_small_is_no_device, machine),
		cmocka_unit_test_setup(gids__ipv4_first_and_one_then_global_then_link_local, machine),
		cmocka_unit_test_setup(gids__no_more_than_the_table_holds, machine),
		cmocka_unit_test(mtu__is_the_largest_that_fits),
		cmocka_unit_test(large_mtu__is_what_the_link_carries_in_whole_cache_lines),
		cmocka_unit_test_setup(guid__is_the_mac_as_eui64, machine),
		cmocka_unit_test_setup(guid__without_mac_is_stable_and_not_zero, machine),
		cmocka_unit_test(interfaces__of_this_machine_have_loopback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
