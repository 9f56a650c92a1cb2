/* See addresses.h. Asks the kernel at most ten times a second, however often an address is looked up. */
#include "broker/addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "base/invariant.h"

#define FRESH_MS 100  /* for an absent address, which may appear at any moment */
#define GOOD_MS  1000 /* for a present one */

static struct {
	bool is_read;
	uint64_t read_at;
	unsigned count, room;
	struct address {
		struct vb_gid gid;
		uint32_t ifindex;
	} * all;
} addresses;

static bool gid_of(const struct sockaddr *address, struct vb_gid *gid)
{
	const uint8_t *four = (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
	if (address && address->sa_family == AF_INET)
		*gid = vb_gid_from_ipv4(four[0], four[1], four[2], four[3]);
	else if (address && address->sa_family == AF_INET6)
		memcpy(gid->raw, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof(gid->raw));
	else
		return false;
	return true;
}

static void add(const struct vb_gid *gid, uint32_t ifindex)
{
	if (addresses.count == addresses.room) {
		unsigned room = addresses.room ? 2 * addresses.room : 16;
		struct address *all = realloc(addresses.all, room * sizeof(*all));
		if (!all)
			return;
		addresses.all = all;
		addresses.room = room;
	}
	assert(addresses.count < addresses.room);
	addresses.all[addresses.count++] = (struct address){ *gid, ifindex };
}

static void read_all(uint64_t now)
{
	struct ifaddrs *all;
	struct vb_gid gid;
	if (getifaddrs(&all))
		return;
	addresses.count = 0;
	for (const struct ifaddrs *one = all; one; one = one->ifa_next)
		if (gid_of(one->ifa_addr, &gid))
			add(&gid, if_nametoindex(one->ifa_name));
	freeifaddrs(all);
	addresses.is_read = true;
	addresses.read_at = now;
}

static uint32_t find(const struct vb_gid *gid)
{
	for (unsigned i = 0; i < addresses.count; i++)
		if (vb_gid_equal(&addresses.all[i].gid, gid))
			return addresses.all[i].ifindex;
	return 0;
}

uint32_t addresses_interface(const struct vb_gid *gid, uint64_t now)
{
	if (vb_gid_is_ipv4(gid) && gid->raw[12] == 127)
		return 1;
	uint32_t ifindex = find(gid);
	if (addresses.is_read && now < addresses.read_at + (ifindex ? GOOD_MS : FRESH_MS))
		return ifindex;
	read_all(now);
	return find(gid);
}
