/* Devices: each is opened once in a process, when it is first needed, and stays open, so that the contexts of
 * rdma_get_devices and of ids are the same. The first one starts the process's connection management.
 * Holds: the list only grows, and of an entry only its XRC domain is ever added. Who asks with the CM's mutex held,
 * under which devices_lock must not be taken, has list_lock alone, and asks of a device what takes no lock. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "rdmacm/objects.h"

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* the links: to change them, or without devices_lock */
static struct vb_list devices = { &devices, &devices };
static unsigned device_count;

static int describe(struct device_entry *entry)
{
	struct ibv_device_attr attr;
	int error = ibv_query_device(entry->verbs, &attr);
	if (error)
		return -error;
	entry->guid = be64toh(ibv_get_device_guid(entry->verbs->device));
	entry->max_responder_resources = attr.max_qp_rd_atom < UINT8_MAX ? (uint8_t)attr.max_qp_rd_atom : UINT8_MAX - 1;
	entry->max_initiator_depth =
		attr.max_qp_init_rd_atom < UINT8_MAX ? (uint8_t)attr.max_qp_init_rd_atom : UINT8_MAX - 1;
	entry->ack_delay = attr.local_ca_ack_delay;
	return 0;
}

/* With devices_lock held. */
static int open_one(struct ibv_device *device)
{
	struct device_entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->verbs = ibv_open_device(device);
	int error = entry->verbs ? describe(entry) : -errno;
	if (!error && device_count == 0)
		error = vb_connections_start(vb_connections_device(entry->verbs), vb_handle_cm_event, NULL);
	if (!error) {
		entry->pd = ibv_alloc_pd(entry->verbs);
		error = entry->pd ? 0 : -errno;
		if (error && device_count == 0)
			vb_connections_stop();
	}
	if (error) {
		if (entry->verbs)
			ibv_close_device(entry->verbs);
		free(entry);
		return error;
	}
	pthread_mutex_lock(&list_lock);
	vb_list_add_tail(&devices, &entry->link);
	pthread_mutex_unlock(&list_lock);
	device_count++;
	return 0;
}

static bool is_open(const struct ibv_device *device)
{
	vb_list_for_each (link, &devices) {
		if (vb_container_of(link, struct device_entry, link)->verbs->device == device)
			return true;
	}
	return false;
}

/* Opens what is not yet open: interfaces come while a process runs. With devices_lock held. */
static int open_new(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	if (!list)
		return -errno;
	int error = 0;
	for (struct ibv_device **device = list; *device && !error; device++) {
		if (!is_open(*device))
			error = open_one(*device);
	}
	ibv_free_device_list(list);
	if (device_count)
		return 0;
	return error ? error : -ENODEV;
}

int vb_devices_open(void)
{
	pthread_mutex_lock(&devices_lock);
	int error = open_new();
	pthread_mutex_unlock(&devices_lock);
	return error;
}

/* What the entries hold stays where it is, as another thread may have been amid a change. */
void vb_devices_forget(void)
{
	pthread_mutex_init(&devices_lock, NULL);
	pthread_mutex_init(&list_lock, NULL);
	vb_list_init(&devices);
	device_count = 0;
}

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

static struct device_entry *find(const struct vb_gid *gid, uint8_t *gid_index)
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

int vb_device_of_gid(const struct vb_gid *gid, struct device_entry **device, uint8_t *gid_index)
{
	int error = 0;

	pthread_mutex_lock(&devices_lock);
	*device = find(gid, gid_index);
	if (!*device) {
		error = open_new();
		if (!error)
			*device = find(gid, gid_index);
		if (!error && !*device)
			error = -ENODEV;
	}
	pthread_mutex_unlock(&devices_lock);
	return error;
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

/* The first that has an address, and before all others one whose link is up. */
static struct device_entry *find_first(struct vb_gid *gid)
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

/* Under the devices' lock. */
static struct device_entry *find_loopback(struct vb_gid *gid)
{
	uint8_t unused;
	struct device_entry *device = find(gid, &unused);

	return device ? device : find_first(gid);
}

int vb_device_of_loopback(struct vb_gid *gid, struct device_entry **device)
{
	int error = 0;

	pthread_mutex_lock(&devices_lock);
	*device = find_loopback(gid);
	if (!*device) {
		error = open_new();
		if (!error)
			*device = find_loopback(gid);
		if (!error && !*device)
			error = -ENODEV;
	}
	pthread_mutex_unlock(&devices_lock);
	return error;
}

int vb_device_xrcd(struct device_entry *device, struct ibv_xrcd **xrcd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	int error = 0;

	pthread_mutex_lock(&devices_lock);
	if (!device->xrcd) {
		device->xrcd = ibv_open_xrcd(device->verbs, &attr);
		error = device->xrcd ? 0 : -errno;
	}
	*xrcd = device->xrcd;
	pthread_mutex_unlock(&devices_lock);
	return error;
}

enum ibv_mtu vb_device_mtu(const struct device_entry *device)
{
	struct ibv_port_attr attr;
	return ibv_query_port(device->verbs, VB_PORT, &attr) ? IBV_MTU_256 : attr.active_mtu;
}

/* In bytes; of one that is not open yet too, for interfaces come while a process listens. */
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

VB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	if (num_devices)
		*num_devices = 0;
	pthread_mutex_lock(&devices_lock);
	int error = open_new();
	struct ibv_context **list = error ? NULL : calloc(device_count + 1, sizeof(struct ibv_context *));
	if (list) {
		unsigned n = 0;
		vb_list_for_each (link, &devices)
			list[n++] = vb_container_of(link, struct device_entry, link)->verbs;
		if (num_devices)
			*num_devices = (int)n;
	} else if (!error) {
		error = -ENOMEM;
	}
	pthread_mutex_unlock(&devices_lock);
	return error ? vb_result_null(error) : list;
}

VB_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
