/* Opening devices: each is opened once in a process, when it is first needed, and stays open, so that rdma_get_devices
 * and ids have the same contexts. The first one starts the process's connection management. Not here: the devices that
 * are open (device_list.c). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "rdmacm/objects.h"

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

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
	if (!error && vb_device_list_count() == 0)
		error = vb_connections_start(vb_connections_device(entry->verbs), vb_handle_cm_event, NULL);
	if (!error) {
		entry->pd = ibv_alloc_pd(entry->verbs);
		error = entry->pd ? 0 : -errno;
		if (error && vb_device_list_count() == 0)
			vb_connections_stop();
	}
	if (error) {
		if (entry->verbs)
			ibv_close_device(entry->verbs);
		free(entry);
		return error;
	}
	vb_device_list_add(entry);
	return 0;
}

/* Opens the devices that are not open yet: interfaces may appear while a process runs. With devices_lock held. */
static int open_new(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	if (!list)
		return -errno;
	int error = 0;
	for (struct ibv_device **device = list; *device && !error; device++) {
		if (!vb_device_list_has(*device))
			error = open_one(*device);
	}
	ibv_free_device_list(list);
	if (vb_device_list_count())
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

/* A forked child's copies of the entries are left alone: another thread may have been changing them. */
static void on_fork_child(void)
{
	pthread_mutex_init(&devices_lock, NULL);
	vb_device_list_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

/* The device that has the address; a loopback address that no device has stands for the first device. */
static struct device_entry *look(struct vb_gid *gid, bool is_loopback, uint8_t *gid_index)
{
	struct device_entry *device = vb_device_list_find(gid, gid_index);
	return device || !is_loopback ? device : vb_device_list_first(gid);
}

/* Looks among the open devices first, then among all. */
static int find(struct vb_gid *gid, bool is_loopback, struct device_entry **device, uint8_t *gid_index)
{
	int error = 0;

	pthread_mutex_lock(&devices_lock);
	*device = look(gid, is_loopback, gid_index);
	if (!*device) {
		error = open_new();
		if (!error)
			*device = look(gid, is_loopback, gid_index);
		if (!error && !*device)
			error = -ENODEV;
	}
	pthread_mutex_unlock(&devices_lock);
	return error;
}

int vb_device_of_gid(const struct vb_gid *gid, struct device_entry **device, uint8_t *gid_index)
{
	struct vb_gid exact = *gid;
	return find(&exact, false, device, gid_index);
}

int vb_device_of_loopback(struct vb_gid *gid, struct device_entry **device)
{
	uint8_t unused;
	return find(gid, true, device, &unused);
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

VB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	if (vb_call_fails(VB_CALL_rdma_get_devices))
		return NULL;
	if (num_devices)
		*num_devices = 0;
	pthread_mutex_lock(&devices_lock);
	int error = open_new();
	struct ibv_context **list = error ? NULL : calloc(vb_device_list_count() + 1, sizeof(struct ibv_context *));
	if (list) {
		unsigned n = vb_device_list_copy(list);
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
