/* Devices: which there are, in which order, with which GIDs, MTU and node GUID. Of open devices (device.c) it knows
 * only whether loopback's is among them, and it asks the broker for nothing. */
#include "base/invariant.h"
#include "host/devices/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "host/devices/loopback.h"
#include "host/settings.h"

/* IP (40 for IPv6), UDP, BTH and the longest usual extension headers, ICRC: as Linux's rxe reserves. */
#define ENCAPSULATION_BYTES 80
#define NAME_PREFIX         "vb_"
#define CACHE_LINE          64

uint32_t vb_device_mtu(uint32_t netdev_mtu)
{
	static const uint32_t ib_mtu[] = { 4096, 2048, 1024, 512, 256 };

	for (unsigned i = 0; i < sizeof(ib_mtu) / sizeof(ib_mtu[0]); i++)
		if (netdev_mtu >= ib_mtu[i] + ENCAPSULATION_BYTES)
			return ib_mtu[i];
	return 0;
}

/* All that the interface carries, behind RETH and an immediate, in whole cache lines: of Ethernet's 1,500 bytes 1,408,
 * where the path MTU is 1,024. */
static uint32_t large_mtu(uint32_t netdev_mtu)
{
	uint32_t room = netdev_mtu > ENCAPSULATION_BYTES + 4 ? netdev_mtu - ENCAPSULATION_BYTES - 4 : 0;
	room -= room % CACHE_LINE;
	if (room <= vb_device_mtu(netdev_mtu))
		return 0;
	return room < VB_LARGE_MTU ? room : VB_LARGE_MTU;
}

/* ---- GIDs -------------------------------------------------------------------------------------------------------- */

static bool is_link_local(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

enum gid_kind { GID_IPV4, GID_IPV6, GID_LINK_LOCAL };

static enum gid_kind kind_of(const struct vb_gid *gid)
{
	if (vb_gid_is_ipv4(gid))
		return GID_IPV4;
	return is_link_local(gid) ? GID_LINK_LOCAL : GID_IPV6;
}

static void add_gids(struct vb_device_info *device, const struct vb_interface *interface, enum gid_kind kind)
{
	for (unsigned i = 0; i < interface->address_count && device->gid_count < VB_MAX_GIDS; i++) {
		if (kind_of(&interface->addresses[i]) != kind)
			continue;
		struct vb_device_gid *gid = &device->gids[device->gid_count++];
		assert(vb_gid_is_zero(&gid->gid));
		gid->gid = interface->addresses[i];
		memcpy(gid->ifname, interface->name, sizeof(gid->ifname));
		if (kind == GID_IPV4)
			return; /* one: -g 0 means IPv4, -g 1 IPv6, on every machine */
	}
}

/* ---- The node GUID ----------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3u;
	return hash;
}

/* Tells this machine from others, for interfaces without a MAC of their own. */
static uint64_t machine_hash(void)
{
	char id[64] = "";
	ssize_t length = 0;
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		length = read(fd, id, sizeof(id));
		close(fd);
	}
	if (length <= 0) {
		gethostname(id, sizeof(id) - 1);
		length = (ssize_t)strlen(id);
	}
	return mix(0xCBF29CE484222325u, id, (size_t)length);
}

static uint64_t node_guid(const struct vb_interface *interface)
{
	static const uint8_t none[6];
	uint8_t guid[8] = { 0 };
	uint64_t result;

	if (memcmp(interface->mac, none, sizeof(none)) != 0) {
		const uint8_t *mac = interface->mac;
		const uint8_t eui64[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };
		memcpy(guid, eui64, sizeof(guid));
	} else {
		uint64_t hash = mix(machine_hash(), interface->name, strlen(interface->name));
		memcpy(guid, &hash, sizeof(guid));
		guid[0] = (uint8_t)((guid[0] & ~1) | 2); /* locally administered, and so never zero */
	}
	memcpy(&result, guid, sizeof(result));
	return result;
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

/* Why it is no device; NULL when it is one. */
static const char *fault_of(const struct vb_interface *interface)
{
	if (!interface->is_up)
		return "that interface is down";
	if (!interface->address_count)
		return "that interface has no address";
	return vb_device_mtu(interface->mtu) ? NULL : "the MTU of that interface is too small";
}

static bool make_device(struct vb_device_info *device, const struct vb_interface *interface)
{
	uint32_t mtu = vb_device_mtu(interface->mtu);

	if (fault_of(interface))
		return false;
	*device = (struct vb_device_info){ .ifindex = interface->index,
		.netdev_mtu = interface->mtu,
		.mtu = mtu,
		.large_mtu = large_mtu(interface->mtu),
		.is_up = interface->is_running,
		.is_loopback = interface->is_loopback,
		.node_guid = node_guid(interface) };
	snprintf(device->name, sizeof(device->name), NAME_PREFIX "%s", interface->name);
	memcpy(device->ifname, interface->name, sizeof(device->ifname));
	for (enum gid_kind kind = GID_IPV4; kind <= GID_LINK_LOCAL; kind++)
		add_gids(device, interface, kind);
	assert(device->mtu > 0);
	assert(device->gid_count > 0);
	return true;
}

/* Both are names of the device: the interface's, and its own. */
static bool is_named(const char *ifname, const char *name, size_t length)
{
	const size_t prefix = strlen(NAME_PREFIX);

	if (strlen(ifname) == length && memcmp(ifname, name, length) == 0)
		return true;
	return strlen(ifname) + prefix == length && memcmp(name, NAME_PREFIX, prefix) == 0 &&
	       memcmp(ifname, name + prefix, length - prefix) == 0;
}

/* Keeps the devices that wanted names, in its order. */
static size_t narrow(struct vb_device_info *devices, size_t count, const char *wanted)
{
	size_t kept = 0;

	while (*wanted && kept < count) {
		size_t length = strcspn(wanted, ",");
		for (size_t i = kept; i < count; i++) {
			if (is_named(devices[i].ifname, wanted, length)) {
				struct vb_device_info found = devices[i];
				memmove(&devices[kept + 1], &devices[kept], (i - kept) * sizeof(found));
				devices[kept++] = found;
				break;
			}
		}
		wanted += length + (wanted[length] == ',');
	}
	assert(kept <= count);
	return kept;
}

/* Both ends of a network have loopback's addresses: beside another device it misleads programs that choose for
 * themselves. It stands behind the others. */
static size_t without_loopback(const struct vb_device_info *devices, size_t count)
{
	while (count > 1 && devices[count - 1].is_loopback && !devices[0].is_loopback)
		count--;
	return count;
}

/* 0: the default route's interface, 1: others, 2: loopback. */
static int rank(const struct vb_interface *interface, uint32_t default_index)
{
	if (interface->is_loopback)
		return 2;
	return interface->index == default_index ? 0 : 1;
}

size_t vb_devices_from_interfaces(const struct vb_interface *interfaces, size_t count, uint32_t default_index,
	const char *wanted, struct vb_device_info *devices)
{
	size_t made = 0;

	for (int wanted_rank = 0; wanted_rank <= 2; wanted_rank++)
		for (size_t i = 0; i < count; i++)
			if (rank(&interfaces[i], default_index) == wanted_rank &&
				make_device(&devices[made], &interfaces[i]))
				made++;
	assert(made <= count);
	if (!wanted)
		return made;
	return strcmp(wanted, "all") == 0 ? without_loopback(devices, made) : narrow(devices, made, wanted);
}

/* ---- Names that are no device ------------------------------------------------------------------------------------ */

static const char *fault_of_name(const struct vb_interface *interfaces, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (is_named(interfaces[i].name, name, length))
			return fault_of(&interfaces[i]);
	return "there is no such interface";
}

bool vb_devices_next_fault(
	const struct vb_interface *interfaces, size_t count, const char **wanted, struct vb_name_fault *fault)
{
	while (**wanted) {
		const char *name = *wanted;
		size_t length = strcspn(name, ",");
		*wanted = name + length + (name[length] == ',');
		fault->why = fault_of_name(interfaces, count, name, length);
		snprintf(fault->name, sizeof(fault->name), "%.*s", (int)length, name);
		if (fault->why)
			return true;
	}
	return false;
}

/* Names in VERBENA_DEVICES that are no devices are told of once in a process: each, or that no device is left. */
static void say_faults(const struct vb_interface *interfaces, size_t count, const char *wanted, bool is_empty)
{
	static atomic_flag was_said = ATOMIC_FLAG_INIT;
	struct vb_name_fault fault;
	char all[512] = "";

	if (strcmp(wanted, "all") == 0 || atomic_flag_test_and_set(&was_said))
		return;
	for (const char *rest = wanted; vb_devices_next_fault(interfaces, count, &rest, &fault);) {
		size_t at = strlen(all);
		if (is_empty)
			snprintf(all + at, sizeof(all) - at, "%s%s: %s", at ? "; " : "", fault.name, fault.why);
		else
			vb_log(VB_LOG_WARN, "VERBENA_DEVICES names %s: %s", fault.name, fault.why);
	}
	if (*all)
		vb_log(VB_LOG_ERROR, "VERBENA_DEVICES leaves no device: %s", all);
}

/* ---- For other files --------------------------------------------------------------------------------------------- */

static int read_devices(const char *wanted, bool says_faults, struct vb_device_info **list, size_t *count)
{
	struct vb_interface *interfaces;
	size_t interface_count;
	int rc = vb_interfaces_read(&interfaces, &interface_count);

	if (rc < 0)
		return rc;
	struct vb_device_info *devices = calloc(interface_count + 1, sizeof(*devices));
	if (devices) {
		*count = vb_devices_from_interfaces(
			interfaces, interface_count, vb_interfaces_default(), wanted, devices);
		assert(*count <= interface_count);
		*list = devices;
		for (size_t i = 0; i < *count; i++)
			devices[i].speed_mbps = vb_interface_speed(devices[i].ifname);
		if (says_faults)
			say_faults(interfaces, interface_count, wanted, *count == 0);
	}
	free(interfaces);
	return devices ? 0 : -ENOMEM;
}

/* There is no device, and the user has not asked for that. */
static void say_none(void)
{
	const char *fault = vb_loopback_fault(NULL);

	if (fault)
		vb_log(VB_LOG_ERROR, "%s", fault);
}

/* A device that a program has open stays in the list when it looks again after another interface came. */
static atomic_bool is_loopback_held;

void vb_devices_hold_loopback(bool is_held)
{
	is_loopback_held = is_held;
}

int vb_devices_list(struct vb_device_info **list, size_t *count)
{
	const struct vb_settings *settings = vb_settings_get();

	if (!settings)
		return -EINVAL;
	const char *wanted = settings->text[VB_SETTING_DEVICES];
	if (strcmp(wanted, "all") != 0)
		return read_devices(wanted, true, list, count);
	int rc = read_devices(is_loopback_held ? NULL : wanted, false, list, count);
	if (rc == 0 && *count == 0)
		say_none();
	return rc;
}

int vb_devices_openable(struct vb_device_info **list, size_t *count)
{
	const struct vb_settings *settings = vb_settings_get();

	if (!settings)
		return -EINVAL;
	const char *wanted = settings->text[VB_SETTING_DEVICES];
	return strcmp(wanted, "all") == 0 ? read_devices(NULL, false, list, count) : vb_devices_list(list, count);
}

int vb_devices_named(const char *wanted, struct vb_device_info **list, size_t *count)
{
	return read_devices(wanted, false, list, count);
}
