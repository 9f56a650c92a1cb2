/* See lanes.h; and what is done in several lanes at once. */
#include "host/process.h"

#include <errno.h>
#include <sched.h>
#include "base/invariant.h"

#define INDICES 65536u

/* ---- How many ---------------------------------------------------------------------------------------------------- */

static unsigned cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return VB_LANES_MAX; /* there are more than a set of this size holds */
	return (unsigned)CPU_COUNT(&set);
}

static unsigned most(const struct vb_settings *settings)
{
	if (settings->progress_off || *settings->text[VB_SETTING_PCAP] || settings->packet_faults)
		return 1;
	if (settings->lanes)
		return settings->lanes;
	return cores() < VB_LANES_MAX ? cores() : VB_LANES_MAX;
}

void vb_lanes_init(struct vb_lanes *lanes, const struct vb_settings *settings)
{
	static _Atomic uint64_t processes;

	atomic_init(&lanes->most, most(settings));
	lanes->are_in_turn = settings->lanes != 0;
	lanes->serial = atomic_fetch_add(&processes, 1) + 1;
	assert(lanes->most >= 1 && lanes->most <= VB_LANES_MAX);
}

int vb_lanes_carry(struct vb_lanes *lanes, unsigned index)
{
	if (index > 0)
		return -EUSERS;
	atomic_store(&lanes->most, 1);
	return 0;
}

void vb_lanes_indices(const struct vb_lanes *lanes, unsigned index, uint32_t *first, uint32_t *count)
{
	*count = INDICES / atomic_load(&lanes->most);
	*first = index * *count;
	assert(*first + *count <= INDICES);
}

/* ---- Which one --------------------------------------------------------------------------------------------------- */

/* False: there is none, and there will be none. */
static bool make_up_to(struct vb_process *p, unsigned index)
{
	int rc = 0;

	vb_process_hold();
	while (rc == 0 && vb_process_host_lane_count(p) <= index)
		rc = vb_process_add_host_lane(p);
	if (rc < 0)
		atomic_store(&p->lanes.most, vb_process_host_lane_count(p));
	vb_process_release();
	return rc == 0;
}

static struct vb_host_lane *host_lane_at(struct vb_process *p, unsigned turn)
{
	unsigned index = turn % atomic_load_explicit(&p->lanes.most, memory_order_relaxed);

	if (p->is_forked)
		return vb_process_home(p);
	while (index >= vb_process_host_lane_count(p) && !make_up_to(p, index))
		index = turn % atomic_load_explicit(&p->lanes.most, memory_order_relaxed);
	assert(index < vb_process_host_lane_count(p));
	return p->host_lanes[index];
}

static unsigned turn_of_caller(struct vb_lanes *lanes)
{
	static _Thread_local struct {
		uint64_t serial;
		unsigned turn;
	} mine __attribute__((tls_model("initial-exec")));

	if (mine.serial != lanes->serial) {
		mine.serial = lanes->serial;
		mine.turn = atomic_fetch_add(&lanes->threads, 1);
	}
	return mine.turn;
}

struct vb_host_lane *vb_device_host_lane_of_caller(struct vb_device *device)
{
	struct vb_lanes *lanes = &device->process->lanes;

	return host_lane_at(
		device->process, lanes->are_in_turn ? atomic_fetch_add(&lanes->queues, 1) : turn_of_caller(lanes));
}

struct vb_host_lane *vb_device_host_lane_of_domain(struct vb_device *device)
{
	return host_lane_at(device->process, atomic_fetch_add(&device->process->lanes.domains, 1));
}

struct vb_host_lane *vb_device_host_lane_after(struct vb_device *device, const struct vb_host_lane *d)
{
	return host_lane_at(device->process, d->index + 1);
}

struct vb_host_lane *vb_device_host_lane(struct vb_device *device)
{
	return vb_process_home(device->process);
}

unsigned vb_host_lane_bit(const struct vb_host_lane *d)
{
	assert(d->index < VB_LANES_MAX);
	return 1u << d->index;
}

/* ---- Several at once --------------------------------------------------------------------------------------------- */

/* The next of the set that exists, taken out of the set. NULL: there is no other. */
static struct vb_host_lane *next(const struct vb_process *p, unsigned *lanes)
{
	unsigned index = *lanes ? (unsigned)__builtin_ctz(*lanes) : VB_LANES_MAX;

	*lanes &= *lanes - 1;
	return index < vb_process_host_lane_count(p) ? p->host_lanes[index] : NULL;
}

int vb_device_lock(struct vb_device *device, unsigned lanes)
{
	if (device->process->is_forked)
		return -VB_FORKED_ERRNO;
	for (struct vb_host_lane *d; (d = next(device->process, &lanes));)
		vb_host_lane_lock(d);
	return 0;
}

int vb_device_lock_quiet(struct vb_device *device)
{
	unsigned lanes = VB_ALL_LANES;

	if (device->process->is_forked)
		return -VB_FORKED_ERRNO;
	for (struct vb_host_lane *d; (d = next(device->process, &lanes));)
		vb_host_lane_lock_quiet(d);
	return 0;
}

/* From the first unlock on there may be more lanes than were locked. */
void vb_device_unlock(struct vb_device *device, unsigned lanes)
{
	lanes &= (1u << vb_process_host_lane_count(device->process)) - 1;
	for (struct vb_host_lane *d; (d = next(device->process, &lanes));)
		vb_host_lane_unlock(d);
}

void vb_device_keep_datagrams(struct vb_device *device, uint32_t lkey)
{
	unsigned lanes = VB_ALL_LANES;

	for (struct vb_host_lane *d; (d = next(device->process, &lanes));) {
		if (!vb_lane_sends_datagrams(d->lane) || vb_host_lane_lock(d))
			continue;
		vb_lane_keep_datagrams(d->lane, lkey);
		vb_host_lane_unlock(d);
	}
}

void vb_device_settle(struct vb_device *device, unsigned lanes)
{
	for (struct vb_host_lane *d; (d = next(device->process, &lanes));)
		vb_host_lane_settle(d);
}

void vb_device_drive(struct vb_device *device, unsigned lanes)
{
	bool is_busy = false;
	vb_time now = 0;

	if (device->process->is_forked)
		return;
	for (struct vb_host_lane *d; (d = next(device->process, &lanes));)
		is_busy |= vb_host_lane_poll(d, &now);
	vb_host_lane_rest(is_busy, now);
}
