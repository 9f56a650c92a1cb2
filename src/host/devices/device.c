/* Opened devices. */
#include "base/invariant.h"
#include "host/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "host/devices/devices.h"
#include "host/random.h"

bool vb_device_is_forked(const struct vb_device *device)
{
	return device->process->is_forked;
}

__attribute__((visibility("default"))) int vb_refuse_forked(const char *done_by_parent, const char *to_be_done)
{
	static _Atomic pid_t told_by; /* a child's child tells for itself */
	const pid_t self = getpid();

	if (atomic_exchange(&told_by, self) != self)
		vb_log(VB_LOG_ERROR, "process %d was forked from one that had %s: %s in the child", (int)self,
			done_by_parent, to_be_done);
	return -VB_FORKED_ERRNO;
}

static __attribute__((noinline)) bool tell_forked(void)
{
	vb_refuse_forked("opened Verbena's devices", "open the device again");
	return true;
}

/* Asked at each post and poll. */
bool vb_device_refuses_forked(const struct vb_device *device)
{
	return device->process->is_forked && tell_forked();
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

static bool find_listed(const char *name, struct vb_device_info *info, int *error)
{
	struct vb_device_info *list;
	size_t count;
	bool is_found = false;

	*error = vb_devices_openable(&list, &count);
	if (*error < 0)
		return false;
	for (size_t i = 0; i < count && !is_found; i++) {
		is_found = strcmp(list[i].name, name) == 0;
		if (is_found)
			*info = list[i];
	}
	free(list);
	*error = is_found ? 0 : -ENODEV;
	return is_found;
}

static void set_gids(struct vb_device *device)
{
	assert(device->info.gid_count <= VB_MAX_GIDS);
	for (unsigned i = 0; i < VB_MAX_GIDS; i++)
		vb_nic_set_gid(device->nic, i, i < device->info.gid_count ? &device->info.gids[i].gid : NULL);
}

static int create_device(struct vb_process *p, const struct vb_device_info *info, const struct vb_device_sink *sink,
	struct vb_device **device)
{
	struct vb_nic_config config = { .seed = vb_host_random_seed(),
		.seed_high = vb_host_random_seed(),
		.mtu = info->mtu,
		.large_mtu = info->large_mtu,
		.advertise_credits = false,
		.epochs = p->epochs };
	struct vb_device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	int rc = vb_nic_create(&config, &d->nic);
	if (rc < 0) {
		free(d);
		return rc;
	}
	d->process = p;
	d->sink = *sink;
	d->info = *info;
	set_gids(d);
	vb_list_init(&d->link);
	*device = d;
	return 0;
}

/* With the mutexes held, before a device of that name joins. */
static void note_if_another(struct vb_process *p, const char *name)
{
	vb_list_for_each (node, &p->devices)
		if (strcmp(vb_container_of(node, struct vb_device, link)->info.name, name) != 0)
			p->has_had_several = true;
}

/* All devices of a process with one name have the same counters, its lanes' and ports'. */
static const char *counter_of(struct vb_process *p, const char *name, unsigned n, uint64_t *value)
{
	const char *counter = NULL;

	vb_process_lock(p);
	const struct vb_device *any = vb_container_of(p->devices.next, struct vb_device, link);
	if (!vb_list_empty(&p->devices) && !p->has_had_several && strcmp(any->info.name, name) == 0)
		counter = vb_process_counter(p, n, value);
	vb_process_unlock(p);
	return counter;
}

const char *vb_device_counter(const char *name, unsigned n, uint64_t *value)
{
	struct vb_process *p = vb_process_hold();
	const char *counter = p ? counter_of(p, name, n, value) : NULL;
	vb_process_release();
	return counter;
}

/* With the mutexes held, when a device has joined or left. */
static void note_loopback(const struct vb_process *p)
{
	bool is_held = false;

	vb_list_for_each (node, &p->devices)
		is_held |= vb_container_of(node, struct vb_device, link)->info.is_loopback;
	vb_devices_hold_loopback(is_held);
}

static void join(struct vb_device *device)
{
	struct vb_process *p = device->process;

	assert(!vb_list_linked(&device->link));
	vb_process_lock(p);
	note_if_another(p, device->info.name);
	vb_list_add_tail(&p->devices, &device->link);
	note_loopback(p);
	vb_process_unlock(p);
}

int vb_device_open(const char *name, const struct vb_device_sink *sink, struct vb_device **device)
{
	struct vb_device_info info;
	struct vb_process *p;
	struct vb_device *d = NULL;
	int rc = 0;

	if (!find_listed(name, &info, &rc))
		return rc;
	assert(rc == 0);
	rc = vb_process_enter(&p);
	if (rc < 0)
		return rc;
	rc = create_device(p, &info, sink, &d);
	if (rc < 0) {
		vb_process_leave();
		return rc;
	}
	join(d);
	assert(d->process == p);
	*device = d;
	return 0;
}

void vb_device_close(struct vb_device *device)
{
	struct vb_process *p = device->process;

	assert(p);
	if (!p->is_forked) {
		vb_process_lock(p);
		assert(vb_list_linked(&device->link));
		vb_list_remove(&device->link);
		note_loopback(p);
		vb_process_unlock(p);
		vb_process_leave();
	}
	vb_nic_destroy(device->nic);
	free(device);
}

struct vb_nic *vb_device_nic(struct vb_device *device)
{
	return device->nic;
}

struct vb_device *vb_process_device_of(const struct vb_process *p, const struct vb_nic *nic)
{
	vb_list_for_each (node, &p->devices) {
		struct vb_device *device = vb_container_of(node, struct vb_device, link);
		if (device->nic == nic)
			return device;
	}
	return NULL;
}

/* ---- Changes of links and addresses ------------------------------------------------------------------------------ */

static bool same_gids(const struct vb_device_info *a, const struct vb_device_info *b)
{
	return a->gid_count == b->gid_count && memcmp(a->gids, b->gids, a->gid_count * sizeof(a->gids[0])) == 0;
}

/* With the mutexes held. */
static void update_device(struct vb_device *device, const struct vb_device_info *now)
{
	struct vb_device_info before = device->info;

	assert(strcmp(now->name, before.name) == 0);
	device->info = *now;
	if (now->mtu != before.mtu || now->large_mtu != before.large_mtu)
		vb_nic_set_mtu(device->nic, now->mtu, now->large_mtu);
	if (!same_gids(now, &before)) {
		set_gids(device);
		device->sink.on_gid_change(device->sink.user);
	}
	if (now->is_up != before.is_up)
		device->sink.on_port(device->sink.user, now->is_up);
}

/* An interface that is down, or has lost its addresses, is no device any more; an open one keeps its name and loses its
 * link. */
static struct vb_device_info absent(const struct vb_device_info *before)
{
	struct vb_device_info info = *before;

	info.is_up = false;
	info.gid_count = 0;
	memset(info.gids, 0, sizeof(info.gids));
	return info;
}

void vb_process_refresh_devices(struct vb_process *p)
{
	struct vb_device_info *list;
	size_t count;

	struct vb_further further;

	if (vb_devices_named(NULL, &list, &count) < 0)
		return;
	vb_further_read(&further);
	vb_process_lock(p);
	vb_list_for_each (node, &p->devices) {
		struct vb_device *device = vb_container_of(node, struct vb_device, link);
		struct vb_device_info now = absent(&device->info);
		for (size_t i = 0; i < count; i++)
			if (strcmp(list[i].name, device->info.name) == 0)
				now = list[i];
		update_device(device, &now);
	}
	p->further = further;
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		vb_host_peers_address_change(p->host_lanes[i]);
		vb_lane_set_addresses(p->host_lanes[i]->lane, further.addresses, further.count);
	}
	vb_process_unlock(p);
	free(list);
}

void vb_device_query(struct vb_device *device, struct vb_device_info *info)
{
	struct vb_process *p = device->process;

	if (p->is_forked) {
		*info = device->info;
		return;
	}
	if (!vb_progress_has_thread(vb_process_home(p)) || p->link_fd < 0)
		vb_process_refresh_devices(p); /* no thread watches */
	vb_process_lock(p);
	*info = device->info;
	vb_process_unlock(p);
}
