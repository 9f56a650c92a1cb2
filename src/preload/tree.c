/* The table of all paths shown. A row's path has names and wildcards ("@device"); a wildcard stands for each device,
 * GID and so on, and its values determine the row's text.
 * Not here: finding the devices (resolve.c), answering programs (shown.c). */
#include "preload/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "host/devices/identity.h"
#include "host/settings.h"

#define NAME_SIZE 96

/* The values of a path's wildcards. */
struct match {
	const struct vb_tree *tree;
	const struct vb_device_info *device;
	unsigned gid;
	uint64_t counter;
};

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

#define SAY(...) snprintf(text, VB_NODE_TEXT, __VA_ARGS__)

#define TEXT(name, ...)                                                                                                \
	static void name(const struct match *match, char *text)                                                        \
	{                                                                                                              \
		SAY(__VA_ARGS__);                                                                                      \
	}

TEXT(put_device_link, "../../devices/virtual/infiniband/%s", match->device->name)
TEXT(put_uverbs_link, "../../devices/virtual/infiniband_verbs/" VB_UVERBS_PREFIX "%s", match->device->ifname)
TEXT(put_abi_version, "6\n")
TEXT(put_device_abi_version, "1\n")
TEXT(put_name, "%s\n", match->device->name)
TEXT(put_node_type, "1: CA\n")
TEXT(put_firmware, VB_FIRMWARE "\n")
TEXT(put_hw_version, "%u\n", VB_HW_VERSION)
TEXT(put_hca_type, "VERBENA\n")
TEXT(put_board, "verbena\n")
TEXT(put_state, "%s\n", match->device->is_up ? "4: ACTIVE" : "1: DOWN")
TEXT(put_physical_state, "%s\n", match->device->is_up ? "5: LinkUp" : "2: Polling")
TEXT(put_lid, "0x0\n")
TEXT(put_zero, "0\n")
TEXT(put_capabilities, "0x%08x\n", VB_PORT_CAPABILITIES)
TEXT(put_link_layer, "Ethernet\n")
TEXT(put_pkey, "0xffff\n")
TEXT(put_gid_type, "RoCE v2\n")
TEXT(put_ifname, "%s\n", match->device->ifname)
TEXT(put_ifindex, "%u\n", match->device->ifindex)
TEXT(put_vendor, "0x%06x\n", VB_VENDOR_ID)
TEXT(put_no_node, "-1\n")
TEXT(put_counter, "%llu\n", (unsigned long long)match->counter)

static void put_guid(const struct match *match, char *text)
{
	uint8_t b[8];
	memcpy(b, &match->device->node_guid, sizeof(b));
	SAY("%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
}

/* An empty entry reads as zero. */
static void put_gid(const struct match *match, char *text)
{
	const uint8_t *b = match->device->gids[match->gid].gid.raw;
	for (unsigned i = 0; i < 16; i += 2)
		text += sprintf(text, "%02x%02x%s", b[i], b[i + 1], i < 14 ? ":" : "\n");
}

static void put_rate(const struct match *match, char *text)
{
	static const struct {
		uint8_t speed;
		unsigned tenths; /* 0.1 Gb/s, of one lane */
		const char *name;
	} speeds[] = { { 1, 25, "SDR" }, { 2, 50, "DDR" }, { 4, 100, "QDR" }, { 16, 140, "FDR" }, { 32, 250, "EDR" },
		{ 64, 500, "HDR" }, { 128, 1000, "NDR" } };
	uint8_t width, speed;
	unsigned i = 0;

	vb_device_rate(match->device->speed_mbps, &width, &speed);
	while (speeds[i].speed != speed)
		i++;
	unsigned lanes = width == 1 ? 1 : width * 2;
	unsigned tenths = speeds[i].tenths * lanes;
	SAY("%u%s Gb/sec (%uX %s)\n", tenths / 10, tenths % 10 ? ".5" : "", lanes, speeds[i].name);
}

static void put_part(const struct match *match, char *text)
{
	const struct vb_settings *settings = vb_settings_get();
	SAY("0x%04x\n", settings ? settings->part_id : 1);
}

/* Every CPU is equally near: a mask in groups of 32, as the kernel writes it. */
static void put_cpus(const struct match *match, char *text)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	if (cpus < 1 || cpus > 1024)
		cpus = 1024;
	unsigned top = (unsigned)(cpus - 1) % 32 + 1;
	text += sprintf(text, "%0*x", (int)(top + 3) / 4, top == 32 ? ~0u : (1u << top) - 1);
	for (long left = (cpus - 1) / 32; left > 0; left--)
		text += sprintf(text, ",ffffffff");
	strcpy(text, "\n");
}

static void put_cpu_list(const struct match *match, char *text)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	SAY(cpus > 1 ? "0-%ld\n" : "0\n", cpus - 1);
}

static void put_hardware(const struct match *match, char *text)
{
	match->tree->hardware(match->device, text, VB_NODE_TEXT);
}

/* The bus is named after the interface, whose number is unique; NCCL takes addresses that differ only in slot and
 * function for parts of one adapter. */
#define BUS_NAME       "f%03x:%02x"
#define BUS_OF(device) ((device)->ifindex >> 8 & 0xfff), ((device)->ifindex & 0xff)

TEXT(put_slot_link, "../../pci-verbena/" BUS_NAME ":00.0", BUS_OF(match->device))
TEXT(put_bus_link, "../../devices/virtual/pci-verbena/pci_bus/" BUS_NAME, BUS_OF(match->device))
TEXT(put_class, "0x020000\n") /* an Ethernet controller */
TEXT(put_link_speed, "16.0 GT/s PCIe\n")
TEXT(put_link_width, "16\n")

/* ---- The table --------------------------------------------------------------------------------------------------- */

#define CLASS  "/sys/class/infiniband"
#define VERBS  "/sys/class/infiniband_verbs"
#define DEVICE "/sys/devices/virtual/infiniband/@device"
/* Devices whose interface is on no bus get a bus of their own: NCCL climbs from a device to the root of its bus by
 * names, and warns of missing files. */
#define BUS  "/sys/devices/virtual/pci-verbena"
#define BARE BUS "/@slot"
#define PORT DEVICE "/ports/1"

static const struct row {
	const char *path;
	enum vb_kind kind;
	void (*put)(const struct match *match, char *text);
} table[] = {
	/* Without any sysfs, the directories on the way to it are shown, too. */
	{ "/sys", VB_DIRECTORY, NULL },
	{ "/sys/class", VB_DIRECTORY, NULL },
	{ "/sys/devices", VB_DIRECTORY, NULL },
	{ "/sys/devices/virtual", VB_DIRECTORY, NULL },
	/* perftest's libpci ends the program if there is no PCI tree; an empty one is enough. */
	{ "/sys/bus", VB_DIRECTORY, NULL },
	{ "/sys/bus/pci", VB_DIRECTORY, NULL },
	{ "/sys/bus/pci/devices", VB_DIRECTORY, NULL },
	/* UCX ignores a device without its character device. */
	{ "/dev/infiniband", VB_DIRECTORY, NULL },
	{ "/dev/infiniband/@uverbs", VB_CHARACTER_DEVICE, NULL },
	{ VERBS, VB_DIRECTORY, NULL },
	{ VERBS "/abi_version", VB_FILE, put_abi_version },
	{ VERBS "/@uverbs", VB_LINK, put_uverbs_link },
	{ "/sys/devices/virtual/infiniband_verbs", VB_DIRECTORY, NULL },
	{ "/sys/devices/virtual/infiniband_verbs/@uverbs", VB_DIRECTORY, NULL },
	{ "/sys/devices/virtual/infiniband_verbs/@uverbs/ibdev", VB_FILE, put_name },
	{ "/sys/devices/virtual/infiniband_verbs/@uverbs/abi_version", VB_FILE, put_device_abi_version },
	{ CLASS, VB_DIRECTORY, NULL },
	{ CLASS "/@device", VB_LINK, put_device_link },
	{ "/sys/devices/virtual/infiniband", VB_DIRECTORY, NULL },
	{ DEVICE, VB_DIRECTORY, NULL },
	{ DEVICE "/node_type", VB_FILE, put_node_type },
	{ DEVICE "/node_guid", VB_FILE, put_guid },
	{ DEVICE "/sys_image_guid", VB_FILE, put_guid },
	{ DEVICE "/node_desc", VB_FILE, put_name },
	{ DEVICE "/fw_ver", VB_FILE, put_firmware },
	{ DEVICE "/hw_rev", VB_FILE, put_hw_version },
	{ DEVICE "/hca_type", VB_FILE, put_hca_type },
	{ DEVICE "/board_id", VB_FILE, put_board },
	{ DEVICE "/ports", VB_DIRECTORY, NULL },
	{ PORT, VB_DIRECTORY, NULL },
	{ PORT "/state", VB_FILE, put_state },
	{ PORT "/phys_state", VB_FILE, put_physical_state },
	{ PORT "/rate", VB_FILE, put_rate },
	{ PORT "/lid", VB_FILE, put_lid },
	{ PORT "/lid_mask_count", VB_FILE, put_zero },
	{ PORT "/sm_lid", VB_FILE, put_lid },
	{ PORT "/sm_sl", VB_FILE, put_zero },
	{ PORT "/cap_mask", VB_FILE, put_capabilities },
	{ PORT "/link_layer", VB_FILE, put_link_layer },
	{ PORT "/gids", VB_DIRECTORY, NULL },
	{ PORT "/gids/@gid", VB_FILE, put_gid },
	{ PORT "/gid_attrs", VB_DIRECTORY, NULL },
	{ PORT "/gid_attrs/types", VB_DIRECTORY, NULL },
	{ PORT "/gid_attrs/types/@used", VB_FILE, put_gid_type },
	{ PORT "/gid_attrs/ndevs", VB_DIRECTORY, NULL },
	{ PORT "/gid_attrs/ndevs/@used", VB_FILE, put_ifname },
	{ PORT "/pkeys", VB_DIRECTORY, NULL },
	{ PORT "/pkeys/0", VB_FILE, put_pkey },
	{ PORT "/counters", VB_DIRECTORY, NULL },
	{ PORT "/counters/@counter", VB_FILE, put_counter },
	{ PORT "/hw_counters", VB_DIRECTORY, NULL },
	{ PORT "/hw_counters/@hw_counter", VB_FILE, put_counter },
	/* An interface on a bus shares its device, as on an adapter; any other one gets a device with true values. */
	{ "/sys/devices/virtual/infiniband/@onbus/device", VB_LINK, put_hardware },
	{ "/sys/devices/virtual/infiniband/@bare/device", VB_LINK, put_slot_link },
	{ "/sys/class/pci_bus", VB_DIRECTORY, NULL },
	{ "/sys/class/pci_bus/@bus", VB_LINK, put_bus_link },
	{ BUS, VB_DIRECTORY, NULL },
	{ BUS "/max_link_speed", VB_FILE, put_link_speed },
	{ BUS "/max_link_width", VB_FILE, put_link_width },
	{ BUS "/pci_bus", VB_DIRECTORY, NULL },
	{ BUS "/pci_bus/@bus", VB_DIRECTORY, NULL },
	{ BARE, VB_DIRECTORY, NULL },
	{ BARE "/class", VB_FILE, put_class },
	{ BARE "/vendor", VB_FILE, put_vendor },
	{ BARE "/device", VB_FILE, put_part },
	{ BARE "/subsystem_vendor", VB_FILE, put_vendor },
	{ BARE "/subsystem_device", VB_FILE, put_part },
	{ BARE "/max_link_speed", VB_FILE, put_link_speed },
	{ BARE "/max_link_width", VB_FILE, put_link_width },
	{ BARE "/current_link_speed", VB_FILE, put_link_speed },
	{ BARE "/current_link_width", VB_FILE, put_link_width },
	{ BARE "/numa_node", VB_FILE, put_no_node },
	{ BARE "/local_cpus", VB_FILE, put_cpus },
	{ BARE "/local_cpulist", VB_FILE, put_cpu_list },
	{ BARE "/net", VB_DIRECTORY, NULL },
	{ BARE "/net/@netdev", VB_DIRECTORY, NULL },
	{ BARE "/net/@netdev/ifindex", VB_FILE, put_ifindex },
};

/* ---- Wildcards --------------------------------------------------------------------------------------------------- */

/* The n-th name that a wildcard stands for; the values of those before it in the path are known. 0: there is none, 1:
 * found, -1: not this one, but there may be more. */
typedef int (*nth_function)(struct match *match, unsigned n, char name[NAME_SIZE]);

static int nth_device(struct match *match, unsigned n, char name[NAME_SIZE])
{
	if (n >= match->tree->count)
		return 0;
	match->device = &match->tree->devices[n];
	snprintf(name, NAME_SIZE, "%s", match->device->name);
	return 1;
}

static bool is_on_bus(const struct match *match)
{
	char text[VB_NODE_TEXT];
	return match->tree->hardware(match->device, text, sizeof(text));
}

static int nth_on_bus(struct match *match, unsigned n, char name[NAME_SIZE])
{
	return !nth_device(match, n, name) ? 0 : is_on_bus(match) ? 1 : -1;
}

static int nth_bare(struct match *match, unsigned n, char name[NAME_SIZE])
{
	return !nth_device(match, n, name) ? 0 : is_on_bus(match) ? -1 : 1;
}

static int nth_bus(struct match *match, unsigned n, char name[NAME_SIZE])
{
	int found = nth_bare(match, n, name);
	if (found > 0)
		snprintf(name, NAME_SIZE, BUS_NAME, BUS_OF(match->device));
	return found;
}

static int nth_slot(struct match *match, unsigned n, char name[NAME_SIZE])
{
	int found = nth_bare(match, n, name);
	if (found > 0)
		snprintf(name, NAME_SIZE, BUS_NAME ":00.0", BUS_OF(match->device));
	return found;
}

static int nth_uverbs(struct match *match, unsigned n, char name[NAME_SIZE])
{
	if (!nth_device(match, n, name))
		return 0;
	snprintf(name, NAME_SIZE, VB_UVERBS_PREFIX "%s", match->device->ifname);
	return 1;
}

static int nth_gid(struct match *match, unsigned n, char name[NAME_SIZE])
{
	match->gid = n;
	snprintf(name, NAME_SIZE, "%u", n);
	return n < VB_MAX_GIDS;
}

static int nth_used(struct match *match, unsigned n, char name[NAME_SIZE])
{
	if (!nth_gid(match, n, name))
		return 0;
	return vb_gid_is_zero(&match->device->gids[n].gid) ? -1 : 1;
}

static int nth_netdev(struct match *match, unsigned n, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%s", match->device->ifname);
	return n == 0;
}

static int nth_counter_of(struct match *match, unsigned n, const char *group, char name[NAME_SIZE])
{
	const char *counter = match->tree->counter(match->device->name, n, &match->counter);
	size_t length = strlen(group);
	if (!counter)
		return 0;
	if (strncmp(counter, group, length) != 0)
		return -1;
	snprintf(name, NAME_SIZE, "%s", counter + length);
	return 1;
}

static int nth_counter(struct match *match, unsigned n, char name[NAME_SIZE])
{
	return nth_counter_of(match, n, "counters/", name);
}

static int nth_hw_counter(struct match *match, unsigned n, char name[NAME_SIZE])
{
	return nth_counter_of(match, n, "hw_counters/", name);
}

static nth_function wildcard(const char *name, size_t length)
{
	static const struct {
		const char *name;
		nth_function nth;
	} wildcards[] = {
		{ "@device", nth_device },
		{ "@onbus", nth_on_bus },
		{ "@bare", nth_bare },
		{ "@bus", nth_bus },
		{ "@slot", nth_slot },
		{ "@uverbs", nth_uverbs },
		{ "@gid", nth_gid },
		{ "@used", nth_used },
		{ "@netdev", nth_netdev },
		{ "@counter", nth_counter },
		{ "@hw_counter", nth_hw_counter },
	};
	for (unsigned i = 0; i < sizeof(wildcards) / sizeof(wildcards[0]); i++)
		if (strlen(wildcards[i].name) == length && memcmp(wildcards[i].name, name, length) == 0)
			return wildcards[i].nth;
	return NULL;
}

/* ---- Matching ---------------------------------------------------------------------------------------------------- */

static bool matches_wildcard(struct match *match, nth_function nth, const char *name, size_t length)
{
	char candidate[NAME_SIZE];
	int found;

	for (unsigned n = 0; (found = nth(match, n, candidate)) != 0; n++)
		if (found > 0 && strlen(candidate) == length && memcmp(candidate, name, length) == 0)
			return true;
	return false;
}

/* Follows pattern along path. Returns the rest of the pattern if all of the path fits, or NULL. */
static const char *follow(struct match *match, const char *pattern, const char *path)
{
	while (*path) {
		if (*path++ != '/' || *pattern++ != '/')
			return NULL;
		size_t length = strcspn(path, "/"), expected = strcspn(pattern, "/");
		if (*pattern == '@') {
			if (!matches_wildcard(match, wildcard(pattern, expected), path, length))
				return NULL;
		} else if (length != expected || memcmp(path, pattern, length) != 0) {
			return NULL;
		}
		path += length;
		pattern += expected;
	}
	return pattern;
}

void vb_tree_find(const struct vb_tree *tree, const char *path, struct vb_node *node)
{
	node->kind = VB_ABSENT;
	node->is_live = false;
	node->text[0] = '\0';
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct match match = { .tree = tree };
		const char *rest = follow(&match, table[i].path, path);
		if (!rest || *rest)
			continue;
		node->kind = table[i].kind;
		node->is_live = table[i].put == put_counter;
		if (table[i].put)
			table[i].put(&match, node->text);
		return;
	}
}

void vb_tree_list(const struct vb_tree *tree, const char *path,
	void (*each)(void *user, const char *name, enum vb_kind kind), void *user)
{
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct match match = { .tree = tree };
		const char *rest = follow(&match, table[i].path, path);
		if (!rest || *rest++ != '/' || strchr(rest, '/'))
			continue;
		nth_function nth = *rest == '@' ? wildcard(rest, strlen(rest)) : NULL;
		char name[NAME_SIZE];
		int found;
		if (!nth)
			each(user, rest, table[i].kind);
		for (unsigned n = 0; nth && (found = nth(&match, n, name)) != 0; n++)
			if (found > 0)
				each(user, name, table[i].kind);
	}
}
