/* The addresses that queue pairs may go over to when their own link dies: one of each device that VERBENA_DEVICES
 * allows, whether the program has opened it or not, and one more for IPv6. roce/failover.h uses them. */
#include "host/devices/failover.h"
#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>
#include "host/devices/devices.h"
#include "host/settings.h"

static bool is_link_local(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static void add(struct vb_further *further, const struct vb_device_info *device, bool is_ipv4)
{
	assert(further->count <= VB_LANE_ADDRESSES);
	for (unsigned i = 0; i < device->gid_count && further->count < VB_LANE_ADDRESSES; i++) {
		const struct vb_gid *gid = &device->gids[i].gid;
		if (vb_gid_is_ipv4(gid) != is_ipv4 || is_link_local(gid))
			continue;
		further->addresses[further->count] =
			(struct vb_address){ *gid, device->large_mtu ? device->large_mtu : device->mtu };
		memcpy(further->ifnames[further->count++], device->ifname, sizeof(device->ifname));
		return;
	}
}

void vb_further_read(struct vb_further *further)
{
	const struct vb_settings *settings = vb_settings_get();
	struct vb_device_info *list;
	size_t count;

	further->count = 0;
	if (!settings || !settings->fails_over ||
		vb_devices_named(settings->text[VB_SETTING_DEVICES], &list, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (list[i].is_loopback)
			continue;
		add(further, &list[i], true);
		add(further, &list[i], false);
	}
	free(list);
}

const char *vb_further_interface(const struct vb_further *further, const struct vb_gid *gid)
{
	assert(further->count <= VB_LANE_ADDRESSES);
	for (unsigned i = 0; i < further->count; i++)
		if (vb_gid_equal(&further->addresses[i].gid, gid))
			return further->ifnames[i];
	return "a link that is down";
}
