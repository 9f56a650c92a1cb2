/* What the tree shows of given devices: names, contents, links, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "base/gid.h"
#include "preload/tree.h"

static const char *no_counter(const char *device, unsigned n, uint64_t *value)
{
	return NULL;
}

static const char *two_counters(const char *device, unsigned n, uint64_t *value)
{
	static const char *const names[] = { "counters/port_xmit_packets", "hw_counters/sent_pkts" };
	if (strcmp(device, "vb_eth0") != 0 || n >= 2)
		return NULL;
	*value = 4000000000000u + n;
	return names[n];
}

static bool eth_is_on_bus(const struct vb_device_info *device, char *text, size_t size)
{
	snprintf(text, size, "/sys/devices/pci0000:00/0000:00:03.0");
	return strcmp(device->ifname, "eth0") == 0;
}

static struct vb_device_info devices[2];
static struct vb_tree tree = { .devices = devices, .count = 2, .counter = no_counter, .hardware = eth_is_on_bus };

static int make_devices(void **state)
{
	const uint8_t guid[8] = { 0x02, 0x42, 0xac, 0xff, 0xfe, 0x11, 0x00, 0x02 };
	devices[0] = (struct vb_device_info){
		.name = "vb_eth0", .ifname = "eth0", .ifindex = 7, .is_up = true, .speed_mbps = 25000, .gid_count = 2
	};
	memcpy(&devices[0].node_guid, guid, sizeof(guid));
	devices[0].gids[0].gid = vb_gid_from_ipv4(192, 0, 2, 1);
	devices[0].gids[1].gid.raw[0] = 0xfe;
	devices[0].gids[1].gid.raw[15] = 0x2a;
	devices[1] = (struct vb_device_info){ .name = "vb_lo", .ifname = "lo", .ifindex = 1, .speed_mbps = 0 };
	tree.counter = no_counter;
	return 0;
}

static void expect(const char *path, enum vb_kind kind, const char *text)
{
	struct vb_node node;
	vb_tree_find(&tree, path, &node);
	assert_int_equal(node.kind, kind);
	if (text)
		assert_string_equal(node.text, text);
}

#define ETH  "/sys/devices/virtual/infiniband/vb_eth0"
#define SLOT "/sys/devices/virtual/pci-verbena/f000:01:00.0"
#define LO   "/sys/devices/virtual/infiniband/vb_lo"

static void tree__shows_each_device_in_its_classes(void **state)
{
	expect("/sys/class/infiniband", VB_DIRECTORY, NULL);
	expect("/sys/class/infiniband/vb_eth0", VB_LINK, "../../devices/virtual/infiniband/vb_eth0");
	expect("/sys/class/infiniband/vb_lo", VB_LINK, "../../devices/virtual/infiniband/vb_lo");
	expect("/sys/class/infiniband_verbs/uverbs_lo", VB_LINK, "../../devices/virtual/infiniband_verbs/uverbs_lo");
	expect("/sys/devices/virtual/infiniband_verbs/uverbs_eth0/ibdev", VB_FILE, "vb_eth0\n");
	expect("/dev/infiniband/uverbs_eth0", VB_CHARACTER_DEVICE, NULL);
	expect("/sys/bus/pci/devices", VB_DIRECTORY, NULL);
}

static void tree__says_what_the_verbs_say(void **state)
{
	expect(ETH "/node_guid", VB_FILE, "0242:acff:fe11:0002\n");
	expect(ETH "/sys_image_guid", VB_FILE, "0242:acff:fe11:0002\n");
	expect(ETH "/node_type", VB_FILE, "1: CA\n");
	expect(ETH "/fw_ver", VB_FILE, "verbena\n");
	expect(ETH "/ports/1/state", VB_FILE, "4: ACTIVE\n");
	expect(LO "/ports/1/state", VB_FILE, "1: DOWN\n");
	expect(LO "/ports/1/phys_state", VB_FILE, "2: Polling\n");
	expect(ETH "/ports/1/cap_mask", VB_FILE, "0x04010000\n");
	expect(ETH "/ports/1/link_layer", VB_FILE, "Ethernet\n");
	expect(ETH "/ports/1/pkeys/0", VB_FILE, "0xffff\n");
	expect(ETH "/ports/1/pkeys/1", VB_ABSENT, NULL);
	expect(ETH "/ports/2", VB_ABSENT, NULL);
}

static void tree__writes_rates_as_the_kernel_does(void **state)
{
	static const struct {
		uint64_t mbps;
		const char *text;
	} rates[] = { { 0, "100 Gb/sec (4X EDR)\n" }, { 1000, "2.5 Gb/sec (1X SDR)\n" },
		{ 25000, "25 Gb/sec (1X EDR)\n" }, { 40000, "40 Gb/sec (4X QDR)\n" }, { 56000, "56 Gb/sec (4X FDR)\n" },
		{ 100000, "100 Gb/sec (4X EDR)\n" }, { 800000, "800 Gb/sec (8X NDR)\n" } };
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		devices[0].speed_mbps = rates[i].mbps;
		expect(ETH "/ports/1/rate", VB_FILE, rates[i].text);
	}
}

static void gids__have_types_only_where_they_are(void **state)
{
	expect(ETH "/ports/1/gids/0", VB_FILE, "0000:0000:0000:0000:0000:ffff:c000:0201\n");
	expect(ETH "/ports/1/gids/1", VB_FILE, "fe00:0000:0000:0000:0000:0000:0000:002a\n");
	expect(ETH "/ports/1/gids/2", VB_FILE, "0000:0000:0000:0000:0000:0000:0000:0000\n");
	expect(ETH "/ports/1/gids/32", VB_ABSENT, NULL);
	expect(ETH "/ports/1/gids/00", VB_ABSENT, NULL);
	expect(ETH "/ports/1/gid_attrs/types/1", VB_FILE, "RoCE v2\n");
	expect(ETH "/ports/1/gid_attrs/types/2", VB_ABSENT, NULL);
	expect(ETH "/ports/1/gid_attrs/ndevs/0", VB_FILE, "eth0\n");
}

static void device__is_the_bus_one_or_made_up_of_what_is_known(void **state)
{
	expect(ETH "/device", VB_LINK, "/sys/devices/pci0000:00/0000:00:03.0");
	expect(ETH "/device/vendor", VB_ABSENT, NULL);
	expect(LO "/device", VB_LINK, "../../pci-verbena/f000:01:00.0");
	expect(SLOT, VB_DIRECTORY, NULL);
	expect(SLOT "/class", VB_FILE, "0x020000\n");
	expect(SLOT "/vendor", VB_FILE, "0x025642\n");
	expect(SLOT "/max_link_speed", VB_FILE, "16.0 GT/s PCIe\n");
	expect(SLOT "/max_link_width", VB_FILE, "16\n");
	expect(SLOT "/numa_node", VB_FILE, "-1\n");
	expect(SLOT "/net/lo/ifindex", VB_FILE, "1\n");
	expect(SLOT "/net/eth0", VB_ABSENT, NULL);
	expect("/sys/class/pci_bus/f000:01", VB_LINK, "../../devices/virtual/pci-verbena/pci_bus/f000:01");
	expect("/sys/class/pci_bus/f000:07", VB_ABSENT, NULL); /* on a bus of its own */
}

static void counters__are_left_out_when_unknown(void **state)
{
	expect(ETH "/ports/1/hw_counters", VB_DIRECTORY, NULL);
	expect(ETH "/ports/1/hw_counters/sent_pkts", VB_ABSENT, NULL);
	tree.counter = two_counters;
	expect(ETH "/ports/1/hw_counters/sent_pkts", VB_FILE, "4000000000001\n");
	expect(ETH "/ports/1/counters/port_xmit_packets", VB_FILE, "4000000000000\n");
	expect(ETH "/ports/1/counters/sent_pkts", VB_ABSENT, NULL);
	expect(LO "/ports/1/hw_counters/sent_pkts", VB_ABSENT, NULL);
}

static void tree__has_nothing_else(void **state)
{
	static const char *const paths[] = { "", "/", "/sys/class/infinibandx", "/sys/class/infiniband/vb_eth1",
		"/sys/class/infiniband/vb_eth0/ports", "/sys/class/infiniband/", "/sys/class/infiniband/@device",
		"sys/class", ETH "/ports/1/gids/@gid", "/dev/infiniband/uverbs0", "/dev", "/etc" };
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (paths[i][0])
			expect(paths[i], VB_ABSENT, NULL);
}

static void gather(void *user, const char *name, enum vb_kind kind)
{
	char *all = user;
	sprintf(all + strlen(all), "%s:%d ", name, kind);
}

static void expect_list(const char *path, const char *wanted)
{
	char all[4096] = "";
	vb_tree_list(&tree, path, gather, all);
	assert_string_equal(all, wanted);
}

static void list__has_the_names_of_one_directory(void **state)
{
	expect_list("/sys/class/infiniband", "vb_eth0:3 vb_lo:3 ");
	expect_list("/dev/infiniband", "uverbs_eth0:4 uverbs_lo:4 ");
	expect_list(ETH "/ports/1/gid_attrs/ndevs", "0:2 1:2 ");
	expect_list(ETH "/ports", "1:1 ");
	expect_list("/sys/bus/pci/devices", "");
	expect_list("/etc", "");
	expect_list(ETH "/ports/1/counters", "");
	tree.counter = two_counters;
	expect_list(ETH "/ports/1/counters", "port_xmit_packets:2 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(tree__shows_each_device_in_its_classes, make_devices),
		cmocka_unit_test_setup(tree__says_what_the_verbs_say, make_devices),
		cmocka_unit_test_setup(tree__writes_rates_as_the_kernel_does, make_devices),
		cmocka_unit_test_setup(gids__have_types_only_where_they_are, make_devices),
		cmocka_unit_test_setup(device__is_the_bus_one_or_made_up_of_what_is_known, make_devices),
		cmocka_unit_test_setup(counters__are_left_out_when_unknown, make_devices),
		cmocka_unit_test_setup(tree__has_nothing_else, make_devices),
		cmocka_unit_test_setup(list__has_the_names_of_one_directory, make_devices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
