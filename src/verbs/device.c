/* The device list: one object per device, shared by all lists that show it and all contexts opened from it. So a
 * program sees the same pointer each time, as long as there is a reference to it.
 * Not here: which devices exist (host/), and their attributes (device_attr.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "host/devices/identity.h"
#include "verbs/objects.h"

_Static_assert(sizeof(struct device_object) > 672, "8 bytes behind the public device must be readable");
_Static_assert(offsetof(struct device_object, provider_ops) == 664, "where direct-verbs libraries look");

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list devices = { &devices, &devices };

static void lock_devices(void)
{
	pthread_mutex_lock(&devices_lock);
}

static void unlock_devices(void)
{
	pthread_mutex_unlock(&devices_lock);
}

/* Without this, a fork while another thread has the lock would leave it locked in the child. */
static void register_fork_handlers(void)
{
	pthread_atfork(lock_devices, unlock_devices, unlock_devices);
}

static struct device_object *device_find(const struct vb_device_info *info)
{
	vb_list_for_each (node, &devices) {
		struct device_object *device = vb_container_of(node, struct device_object, link);
		if (strcmp(device->ibv.name, info->name) == 0 && device->node_guid == info->node_guid)
			return device;
	}
	return NULL;
}

static struct device_object *device_new(const struct vb_device_info *info)
{
	struct device_object *device = calloc(1, sizeof(*device));
	if (!device)
		return NULL;
	struct ibv_device *ibv = &device->ibv;
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	snprintf(ibv->name, sizeof(ibv->name), "%s", info->name);
	snprintf(ibv->dev_name, sizeof(ibv->dev_name), VB_UVERBS_PREFIX "%s", info->ifname);
	snprintf(ibv->dev_path, sizeof(ibv->dev_path), "/sys/class/infiniband_verbs/%s", ibv->dev_name);
	snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "/sys/class/infiniband/%s", ibv->name);
	device->node_guid = info->node_guid;
	vb_list_add_tail(&devices, &device->link);
	return device;
}

void vb_device_object_get(struct device_object *device)
{
	pthread_mutex_lock(&devices_lock);
	device->refs++;
	pthread_mutex_unlock(&devices_lock);
}

static void device_put_locked(struct device_object *device)
{
	if (--device->refs)
		return;
	vb_list_remove(&device->link);
	free(device);
}

void vb_device_object_put(struct device_object *device)
{
	pthread_mutex_lock(&devices_lock);
	device_put_locked(device);
	pthread_mutex_unlock(&devices_lock);
}

/* list has room for count devices and the NULL behind them. */
static int list_fill(struct ibv_device **list, const struct vb_device_info *infos, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct device_object *device = device_find(&infos[i]);
		if (!device)
			device = device_new(&infos[i]);
		if (!device) {
			while (i-- > 0)
				device_put_locked((struct device_object *)list[i]);
			return -ENOMEM;
		}
		device->refs++;
		list[i] = &device->ibv;
	}
	return 0;
}

VB_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	if (vb_call_fails(VB_CALL_ibv_get_device_list))
		return NULL;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, register_fork_handlers);
	if (num_devices)
		*num_devices = 0;
	struct vb_device_info *infos = NULL;
	size_t count = 0;
	int err = vb_devices_list(&infos, &count);
	if (err)
		return vb_fail(-err);
	struct ibv_device **list = calloc(count + 1, sizeof(struct ibv_device *));
	if (list) {
		pthread_mutex_lock(&devices_lock);
		err = list_fill(list, infos, count);
		pthread_mutex_unlock(&devices_lock);
	}
	free(infos);
	if (!list || err) {
		free(list);
		return vb_fail(ENOMEM);
	}
	if (num_devices)
		*num_devices = (int)count;
	vb_devices_expect_use();
	return list;
}

VB_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	if (!list)
		return;
	pthread_mutex_lock(&devices_lock);
	for (struct ibv_device **device = list; *device; device++)
		device_put_locked((struct device_object *)*device);
	pthread_mutex_unlock(&devices_lock);
	free(list);
}

VB_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* The index of a kernel device; ours has none. */
VB_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return -1;
}

VB_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return ((struct device_object *)device)->node_guid;
}
