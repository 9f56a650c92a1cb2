/* verbena doctor: the interfaces that become devices, and the RoCE MTU that each carries. */
#include "cli/doctor.h"
#include "host/devices/devices.h"
#include "host/devices/failover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Least Ethernet MTU for RoCE MTU 4096 with all headers. */
enum { MTU_FOR_4096 = 4200 };

static void check_device(struct vb_findings *findings, const struct vb_device_info *device)
{
	if (!device->is_up) {
		vb_finding_add(
			findings, VB_FINDING_SLOW, "device", "%s: %s has no carrier", device->name, device->ifname);
		return;
	}
	if (device->mtu >= VB_MAX_MTU) {
		vb_finding_add(findings, VB_FINDING_OK, "device", "%s: MTU %u carries RoCE MTU %u, %u GID%s",
			device->name, device->netdev_mtu, device->mtu, device->gid_count,
			device->gid_count == 1 ? "" : "s");
		return;
	}
	vb_finding_add(findings, VB_FINDING_SLOW, "device", "%s: MTU %u carries RoCE MTU %u only, %u GID%s",
		device->name, device->netdev_mtu, device->mtu, device->gid_count, device->gid_count == 1 ? "" : "s");
	vb_finding_cure(findings, "sudo ip link set %s mtu %u at both ends, where the network carries it",
		device->ifname, MTU_FOR_4096);
}

static void check_names(struct vb_findings *findings, const char *wanted)
{
	struct vb_interface *interfaces;
	struct vb_name_fault fault;
	size_t count;

	if (vb_interfaces_read(&interfaces, &count) < 0)
		return;
	while (vb_devices_next_fault(interfaces, count, &wanted, &fault)) {
		vb_finding_add(
			findings, VB_FINDING_SLOW, "devices", "VERBENA_DEVICES names %s: %s", fault.name, fault.why);
		vb_finding_cure(findings, "VERBENA_DEVICES= verbena devices lists the names that can be used");
	}
	free(interfaces);
}

static void check_devices(struct vb_findings *findings, const struct vb_settings *settings)
{
	struct vb_device_info *devices = NULL;
	const char *wanted = settings->text[VB_SETTING_DEVICES];
	size_t count = 0;

	int error = vb_devices_named(wanted, &devices, &count);
	if (strcmp(wanted, "all") != 0)
		check_names(findings, wanted);
	if (error) {
		vb_finding_add(
			findings, VB_FINDING_STOP, "devices", "cannot list network interfaces: %s", strerror(-error));
	} else if (count == 0 && strcmp(wanted, "all") != 0) {
		vb_finding_add(findings, VB_FINDING_STOP, "devices", "VERBENA_DEVICES=%s leaves none", wanted);
		vb_finding_cure(findings, "unset it; verbena devices then lists the names");
	} else if (count == 0) {
		vb_finding_add(findings, VB_FINDING_STOP, "devices", "no network interface is up and has an address");
		vb_finding_cure(findings, "sudo ip link set lo up");
	}
	for (size_t i = 0; i < count; i++)
		check_device(findings, &devices[i]);
	free(devices);
}

static bool is_ipv6_disabled(void)
{
	char value = '0';

	FILE *file = fopen("/proc/sys/net/ipv6/conf/all/disable_ipv6", "re");
	if (file) {
		value = (char)fgetc(file);
		fclose(file);
	}
	return value == '1';
}

static void check_ipv6(struct vb_findings *findings)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || is_ipv6_disabled())
		vb_finding_add(findings, VB_FINDING_OK, "IPv6", "off: devices have IPv4 GIDs only");
	else
		vb_finding_add(findings, VB_FINDING_OK, "IPv6", "on");
	if (fd >= 0)
		close(fd);
}

/* Whether connections to Verbena peers outlive a link: the peer needs another interface, too, that this one reaches. */
static void check_failover(struct vb_findings *findings, const struct vb_settings *settings)
{
	struct vb_further further;
	char names[VB_LANE_ADDRESSES * 18] = "";
	unsigned interfaces = 0;
	size_t at = 0;

	if (!settings->fails_over || settings->go_back_n) {
		vb_finding_add(findings, VB_FINDING_OK, "failover", "off, by %s",
			settings->go_back_n ? "VERBENA_RECOVERY=go-back-n" : "VERBENA_PATHS=1");
		return;
	}
	vb_further_read(&further);
	for (unsigned i = 0; i < further.count; i++) {
		if (i > 0 && strcmp(further.ifnames[i], further.ifnames[i - 1]) == 0)
			continue;
		at += (size_t)snprintf(
			names + at, sizeof(names) - at, "%s%s", interfaces++ ? ", " : "", further.ifnames[i]);
	}
	if (interfaces > 1)
		vb_finding_add(findings, VB_FINDING_OK, "failover",
			"connections go over to another interface when theirs dies: %s", names);
	else
		vb_finding_add(findings, VB_FINDING_OK, "failover", "none: it takes a second interface");
}

void vb_check_network(struct vb_findings *findings, const struct vb_settings *settings)
{
	check_devices(findings, settings);
	check_failover(findings, settings);
	check_ipv6(findings);
}
