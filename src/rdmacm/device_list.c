/* The devices that this process has opened, and finding one of them by address.
 * Holds: the list only grows; a caller without list_lock holds the lock under which devices are opened (devices.c).
 * vb_gid_mtu() runs with the CM's mutex held, under which that lock must not be taken: it holds list_lock alone, and
 * asks of a device only what takes no lock. Not here: opening (devices.c). */
#include <string.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* the links: to change them, or to read them alone */
static struct vb_list devices = { &devices, &devices };
static unsigned device_count;

void vb_device_list_add(struct device_entry *entry)
{
	assert(entry->verbs && entry->pd);
	assert(!vb_device_list_has(entry->verbs->device));
	pthread_mutex_lock(&list_lock);
	vb_list_add_tail(&devices, &entry->link);
	pthread_mutex_unlock(&list_lock);
	device_count++;
}

bool vb_device_list_has(const struct ibv_device *device)
{
	vb_list_for_each (link, &devices) {
		if (vb_container_of(link, struct device_entry, link)->verbs->device == device)
			return true;
	}
	return false;
}

unsigned vb_device_list_count(void)
{
	return device_count;
}

unsigned vb_device_list_copy(struct ibv_context **to)
{
	unsigned n = 0;
	vb_list_for_each (link, &devices)
		to[n++] = vb_container_of(link, struct device_entry, link)->verbs;
	assert(n == device_count);
	return n;
}

void vb_device_list_forget(void)
{
	pthread_mutex_init(&list_lock, NULL);
	vb_list_init(&devices);
	device_count = 0;
}

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

#define GIDS_MAX 256

/* Index of gid in the device's table, or -1. */
static int gid_index_of(const struct device_entry *device, const struct vb_gid *gid)
{
	struct ibv_gid_entry entries[GIDS_MAX];
	ssize_t count = ibv_query_gid_table(device->verbs, entries, GIDS_MAX, 0);
	for (ssize_t i = 0; i < count; i++) {
		if (memcmp(entries[i].gid.raw, gid->raw, sizeof(gid->raw)) == 0)
			return (int)entries[i].gid_index;
	}
	return -1;
}

struct device_entry *vb_device_list_find(const struct vb_gid *gid, uint8_t *gid_index)
{
	vb_list_for_each (link, &devices) {
		struct device_entry *device = vb_container_of(link, struct device_entry, link);
		int index = gid_index_of(device, gid);
		if (index < 0)
			continue;
		*gid_index = (uint8_t)index;
		return device;
	}
	return NULL;
}

/* The device's first address; false: none. */
static bool first_gid(const struct device_entry *device, struct vb_gid *gid)
{
	struct ibv_gid_entry entries[GIDS_MAX];

	if (ibv_query_gid_table(device->verbs, entries, GIDS_MAX, 0) < 1)
		return false;
	memcpy(gid->raw, entries[0].gid.raw, sizeof(gid->raw));
	return true;
}

static bool is_active(const struct device_entry *device)
{
	struct ibv_port_attr attr;
	return !ibv_query_port(device->verbs, VB_PORT, &attr) && attr.state == IBV_PORT_ACTIVE;
}

/* A device with an active link comes before one without. */
struct device_entry *vb_device_list_first(struct vb_gid *gid)
{
	struct device_entry *first = NULL;
	struct vb_gid own;

	vb_list_for_each (link, &devices) {
		struct device_entry *device = vb_container_of(link, struct device_entry, link);
		bool is_better = !first || is_active(device);
		if (!is_better || !first_gid(device, &own))
			continue;
		first = device;
		*gid = own;
		if (is_active(device))
			break;
	}
	return first;
}

/* ---- MTU --------------------------------------------------------------------------------------------------------- */

enum ibv_mtu vb_device_mtu(const struct device_entry *device)
{
	struct ibv_port_attr attr;
	return ibv_query_port(device->verbs, VB_PORT, &attr) ? IBV_MTU_256 : attr.active_mtu;
}

/* In bytes. A device that is not open yet counts, too: interfaces may appear while a process listens. */
static uint32_t mtu_of(const struct vb_gid *gid)
{
	uint32_t mtu = 0;

	pthread_mutex_lock(&list_lock);
	vb_list_for_each (link, &devices) {
		const struct device_entry *device = vb_container_of(link, struct device_entry, link);
		if (!mtu)
			mtu = vb_connections_device_mtu(vb_connections_device(device->verbs), gid);
	}
	pthread_mutex_unlock(&list_lock);
	return mtu ? mtu : vb_connections_find_mtu(gid);
}

uint8_t vb_gid_mtu(const struct vb_gid *gid)
{
	uint32_t bytes = mtu_of(gid);
	uint8_t mtu = 0;

	while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= bytes)
		mtu++;
	return mtu;
}
