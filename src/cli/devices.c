/* verbena devices: the devices as programs will see them, without starting anything. */
#include "cli/cli.h"
#include "host/host.h"
#include "host/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const char vb_devices_help[] =
	"usage: verbena devices [--json]\n"
	"\n"
	"Lists the RDMA devices that programs under verbena run see: one a network\n"
	"interface that is up and has an address, with its state, MTUs, speed and GIDs.\n"
	"VERBENA_DEVICES narrows and orders them.\n"
	"\n"
	"Exit status: 0, or 1 when there is none.\n";
/* clang-format on */

/* IPv4-mapped GIDs are shown as the IPv4 address they are. */
static const char *gid_text(const struct vb_gid *gid, char text[INET6_ADDRSTRLEN])
{
	if (vb_gid_is_ipv4(gid))
		return inet_ntop(AF_INET, gid->raw + 12, text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

static const char *speed_text(uint64_t mbps, char text[32])
{
	if (mbps == 0)
		return "unknown";
	if (mbps >= 1000)
		snprintf(text, 32, "%g Gb/s", (double)mbps / 1000);
	else
		snprintf(text, 32, "%" PRIu64 " Mb/s", mbps);
	return text;
}

static void print_text(const struct vb_device_info *devices, size_t count)
{
	char gid[INET6_ADDRSTRLEN], speed[32];
	int name_width = (int)strlen("DEVICE"), interface_width = (int)strlen("INTERFACE");

	for (size_t i = 0; i < count; i++) {
		if ((int)strlen(devices[i].name) > name_width)
			name_width = (int)strlen(devices[i].name);
		if ((int)strlen(devices[i].ifname) > interface_width)
			interface_width = (int)strlen(devices[i].ifname);
	}
	printf("%-*s  %-*s  %-6s  %7s  %8s  %10s  GIDS\n", name_width, "DEVICE", interface_width, "INTERFACE", "STATE",
		"MTU", "ROCE MTU", "SPEED");
	for (size_t i = 0; i < count; i++) {
		const struct vb_device_info *device = &devices[i];
		printf("%-*s  %-*s  %-6s  %7u  %8u  %10s", name_width, device->name, interface_width, device->ifname,
			device->is_up ? "active" : "down", device->netdev_mtu, device->mtu,
			speed_text(device->speed_mbps, speed));
		for (unsigned index = 0; index < device->gid_count; index++)
			if (!vb_gid_is_zero(&device->gids[index].gid))
				printf("  %u:%s", index, gid_text(&device->gids[index].gid, gid));
		putchar('\n');
	}
}

static void print_json_gids(const struct vb_device_info *device)
{
	char gid[INET6_ADDRSTRLEN];
	const char *separator = "";

	for (unsigned index = 0; index < device->gid_count; index++) {
		if (vb_gid_is_zero(&device->gids[index].gid))
			continue;
		printf("%s{\"index\": %u, \"address\": \"%s\", \"interface\": ", separator, index,
			gid_text(&device->gids[index].gid, gid));
		vb_json_string(stdout, device->gids[index].ifname);
		putchar('}');
		separator = ", ";
	}
}

static void print_json(const struct vb_device_info *devices, size_t count)
{
	printf("[");
	for (size_t i = 0; i < count; i++) {
		const struct vb_device_info *device = &devices[i];
		printf("%s\n  {\"name\": ", i ? "," : "");
		vb_json_string(stdout, device->name);
		printf(", \"interface\": ");
		vb_json_string(stdout, device->ifname);
		printf(", \"state\": \"%s\", \"netdev_mtu\": %u, \"mtu\": %u, \"speed_mbps\": ",
			device->is_up ? "active" : "down", device->netdev_mtu, device->mtu);
		if (device->speed_mbps)
			printf("%" PRIu64, device->speed_mbps);
		else
			printf("null");
		printf(", \"gids\": [");
		print_json_gids(device);
		printf("]}");
	}
	printf("%s]\n", count ? "\n" : "");
}

int vb_devices_main(const struct vb_command *self, int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' },
		{ 0 } };
	struct vb_device_info *devices = NULL;
	bool is_json = false;
	size_t count = 0;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(self->help, stdout);
			return VB_EXIT_OK;
		}
		if (option != 'j')
			return vb_option_error(self);
		is_json = true;
	}
	if (optind < argc)
		return vb_usage_error(self, "takes no arguments");
	int error = vb_devices_list(&devices, &count);
	if (error) {
		/* -EINVAL: the setting at fault has been named already. */
		if (error != -EINVAL)
			fprintf(stderr, "verbena devices: %s\n", strerror(-error));
		return VB_EXIT_BAD_NEWS;
	}
	if (is_json)
		print_json(devices, count);
	else if (count)
		print_text(devices, count);
	else if (strcmp(vb_settings_get()->text[VB_SETTING_DEVICES], "all") == 0) /* else said of each name */
		fputs("verbena devices: none: no interface is up with an address\n", stderr);
	free(devices);
	return count ? VB_EXIT_OK : VB_EXIT_BAD_NEWS;
}
