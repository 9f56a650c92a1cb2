/* verbena devices: the devices as programs will see them, without starting anything. */
#include "cli/cli.h"
#include "host/devices/devices.h"
#include "host/settings.h"
#include "os/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const char vb_devices_help[] =
	"usage: verbena devices [--json | --links]\n"
	"\n"
	"Lists the RDMA devices that programs under verbena run see: one for each network\n"
	"interface that is up and has an address, with its state, MTUs, speed and GIDs.\n"
	"VERBENA_DEVICES narrows and orders them. The loopback device vb_lo is listed only\n"
	"if the machine has no other device, or if VERBENA_DEVICES names it.\n"
	"\n"
	"  --json   print JSON, with the devices that are not offered and the reason\n"
	"  --links  print one line each, as iproute2's \"rdma link\" does for the kernel's\n"
	"\n"
	"Exit status: 0, or 1 if there is no device.\n";
/* clang-format on */

/* First the devices that programs see, then those that they would see if VERBENA_DEVICES named them. */
struct listing {
	struct vb_device_info *devices;
	size_t offered, count;
};

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

static void print_gids(const struct vb_device_info *device)
{
	char gid[INET6_ADDRSTRLEN];

	for (unsigned index = 0; index < device->gid_count; index++)
		if (!vb_gid_is_zero(&device->gids[index].gid))
			printf("  %u:%s", index, gid_text(&device->gids[index].gid, gid));
}

/* ---- What is not offered ----------------------------------------------------------------------------------------- */

static const char why_not_offered[] = "every host has its addresses, and programs that choose a device for themselves "
				      "would reach themselves";

/* Prints the value of VERBENA_DEVICES that adds this device to the others. */
static void print_names_with(const struct listing *listing, const struct vb_device_info *device)
{
	printf("VERBENA_DEVICES=");
	for (size_t i = 0; i < listing->offered; i++)
		printf("%s,", listing->devices[i].ifname);
	printf("%s", device->ifname);
}

static void print_not_offered(const struct listing *listing)
{
	for (size_t i = listing->offered; i < listing->count; i++) {
		const struct vb_device_info *device = &listing->devices[i];
		printf("\n%s is not offered beside another device: %s.\n", device->name, why_not_offered);
		print_names_with(listing, device);
		printf(" offers it too; without it 127.0.0.1 is reached over %s.\n", listing->devices[0].name);
	}
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void print_text(const struct listing *listing)
{
	int name_width = (int)strlen("DEVICE"), interface_width = (int)strlen("INTERFACE");
	const struct vb_device_info *devices = listing->devices;
	char speed[32];

	for (size_t i = 0; i < listing->offered; i++) {
		if ((int)strlen(devices[i].name) > name_width)
			name_width = (int)strlen(devices[i].name);
		if ((int)strlen(devices[i].ifname) > interface_width)
			interface_width = (int)strlen(devices[i].ifname);
	}
	printf("%-*s  %-*s  %-6s  %7s  %8s  %10s  GIDS\n", name_width, "DEVICE", interface_width, "INTERFACE", "STATE",
		"MTU", "ROCE MTU", "SPEED");
	for (size_t i = 0; i < listing->offered; i++) {
		const struct vb_device_info *device = &devices[i];
		printf("%-*s  %-*s  %-6s  %7u  %8u  %10s", name_width, device->name, interface_width, device->ifname,
			device->is_up ? "active" : "down", device->netdev_mtu, device->mtu,
			speed_text(device->speed_mbps, speed));
		print_gids(device);
		putchar('\n');
	}
	print_not_offered(listing);
}

/* Prints these devices as "rdma link" prints the kernel's. */
static void print_links(const struct listing *listing)
{
	for (size_t i = 0; i < listing->offered; i++) {
		const struct vb_device_info *device = &listing->devices[i];
		printf("link %s/1 state %s physical_state %s netdev %s netdev_index %u\n", device->name,
			device->is_up ? "ACTIVE" : "DOWN", device->is_up ? "LINK_UP" : "DISABLED", device->ifname,
			device->ifindex);
	}
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

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

static void print_json_device(const struct vb_device_info *device)
{
	printf("{\"name\": ");
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
	printf("]");
}

static void print_json(const struct listing *listing)
{
	printf("[");
	for (size_t i = 0; i < listing->count; i++) {
		bool is_offered = i < listing->offered;
		printf("%s\n  ", i ? "," : "");
		print_json_device(&listing->devices[i]);
		printf(", \"offered\": %s", is_offered ? "true" : "false");
		if (!is_offered) {
			printf(", \"why\": \"%s\", \"how\": \"", why_not_offered);
			print_names_with(listing, &listing->devices[i]);
			putchar('"');
		}
		putchar('}');
	}
	printf("%s]\n", listing->count ? "\n" : "");
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static bool is_offered(const struct vb_device_info *devices, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(devices[i].name, name) == 0)
			return true;
	return false;
}

/* Every offered device is also among those that can be opened. */
static int read_listing(struct listing *listing)
{
	struct vb_device_info *offered = NULL, *all = NULL;
	size_t count = 0;

	int error = vb_devices_list(&offered, &listing->offered);
	if (!error)
		error = vb_devices_openable(&all, &count);
	listing->devices = error ? NULL : calloc(listing->offered + count + 1, sizeof(*all));
	if (!error && !listing->devices)
		error = -ENOMEM;
	if (!error) {
		listing->count = listing->offered;
		memcpy(listing->devices, offered, listing->offered * sizeof(*offered));
		for (size_t i = 0; i < count; i++)
			if (!is_offered(offered, listing->offered, all[i].name))
				listing->devices[listing->count++] = all[i];
	}
	free(offered);
	free(all);
	return error;
}

static int show(void (*print)(const struct listing *listing))
{
	struct listing listing = { 0 };

	int error = read_listing(&listing);
	if (error) {
		/* -EINVAL: the message about the setting is already printed. */
		if (error != -EINVAL)
			fprintf(stderr, "verbena devices: %s\n", strerror(-error));
		return VB_EXIT_BAD_NEWS;
	}
	if (listing.offered || print == print_json)
		print(&listing);
	else if (strcmp(vb_settings_get()->text[VB_SETTING_DEVICES], "all") ==
		 0) /* else each name has its own message */
		fputs("verbena devices: none: no interface is up with an address\n", stderr);
	free(listing.devices);
	return listing.offered ? VB_EXIT_OK : VB_EXIT_BAD_NEWS;
}

int vb_devices_main(const struct vb_command *self, int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
		{ "links", no_argument, NULL, 'l' }, { "help", no_argument, NULL, 'h' }, { 0 } };
	bool is_json = false, is_links = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(self->help, stdout);
			return VB_EXIT_OK;
		}
		if (option != 'j' && option != 'l')
			return vb_option_error(self);
		is_json |= option == 'j';
		is_links |= option == 'l';
	}
	if (optind < argc)
		return vb_usage_error(self, "takes no arguments");
	if (is_json && is_links)
		return vb_usage_error(self, "takes --json or --links");
	return show(is_json ? print_json : is_links ? print_links : print_text);
}
