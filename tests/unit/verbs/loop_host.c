/* See loop_host.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/list.h"
#include "host/call_faults.h"
#include "host/settings.h"
#include "loop_host.h"

#define WAIT_STEPS 20000

struct vb_host_lane {
	struct vb_device *device; /* which has all of it */
};

struct vb_device {
	struct vb_nic *nic;
	struct vb_host_lane host_lane;
	struct vb_lane *lane;
	struct vb_device_sink sink;
	pthread_mutex_t lock;
	struct vb_batch batch;
	vb_time now;
	struct vb_steering steering;
	struct vb_device *opened_before;
};

struct vb_device_flow {
	struct vb_frame_flow flow;
};

static bool forked, blocked, may_use_frames = true, makes_dmabufs, backs_registered;
static int groups, open_devices, deaths, shared;
static struct vb_device *last_opened;
static char logged[256];
static unsigned logged_lines;

void loop_set_makes_dmabufs(bool does)
{
	makes_dmabufs = does;
}

int vb_host_can_make_dmabufs(void)
{
	return makes_dmabufs ? 0 : -EOPNOTSUPP;
}

int vb_host_make_dmabuf(int file, size_t length)
{
	int fd = dup(file);
	return fd < 0 ? -errno : fd;
}

uint32_t vb_host_share_memory(struct vb_host_lane *host_lane, const void *memory, size_t length, int file)
{
	return (uint32_t)++shared;
}

void vb_host_unshare_memory(struct vb_host_lane *host_lane, uint32_t segment)
{
	shared -= segment != 0;
}

uint32_t vb_host_back_registered(struct vb_host_lane *host_lane, void *memory, size_t length)
{
	shared += backs_registered;
	return backs_registered;
}

void vb_host_leave_registered(struct vb_host_lane *host_lane, uint32_t segment)
{
	shared -= segment != 0;
}

void loop_set_backs_registered(bool does)
{
	backs_registered = does;
}

int loop_shared(void)
{
	return shared;
}

void loop_set_forked(bool is_forked)
{
	forked = is_forked;
}

void loop_set_blocked(bool is_blocked)
{
	blocked = is_blocked;
}

void loop_set_may_use_frames(bool may)
{
	may_use_frames = may;
}

void loop_change_port(bool is_active)
{
	last_opened->sink.on_port(last_opened->sink.user, is_active);
}

void loop_change_gids(void)
{
	last_opened->sink.on_gid_change(last_opened->sink.user);
}

int loop_groups(void)
{
	return groups;
}

int loop_open_devices(void)
{
	return open_devices;
}

const char *loop_logged(unsigned *lines)
{
	*lines = logged_lines;
	return logged;
}

int loop_deaths(void)
{
	return deaths;
}

/* ---- The device -------------------------------------------------------------------------------------------------- */

static void describe(struct vb_device_info *info)
{
	*info = (struct vb_device_info){
		.name = "vb_test0",
		.ifname = "test0",
		.ifindex = 7,
		.netdev_mtu = 1500,
		.mtu = 1024,
		.is_up = true,
		.node_guid = 0x1122334455667788,
		.speed_mbps = LOOP_SPEED_MBPS,
		.gid_count = 2,
	};
	info->gids[LOOP_IPV4_GID_INDEX].gid = vb_gid_from_ipv4(10, 0, 0, 1);
	info->gids[LOOP_IPV6_GID_INDEX].gid = (struct vb_gid){ { 0xfe, 0x80, [15] = 1 } };
}

int vb_devices_list(struct vb_device_info **list, size_t *count)
{
	*list = malloc(sizeof(**list));
	if (!*list)
		return -ENOMEM;
	describe(*list);
	*count = 1;
	return 0;
}

static struct vb_settings settings = { .part_id = LOOP_PART_ID };

const struct vb_settings *vb_settings_get(void)
{
	return &settings;
}

void loop_set_dmabuf_on(bool is_on)
{
	settings.dmabuf_on = is_on;
}

int vb_device_open(const char *name, const struct vb_device_sink *sink, struct vb_device **opened)
{
	struct vb_nic_config nic = { .seed = 1, .mtu = 1024, .advertise_credits = true };
	struct vb_lane_config lane = { .seed = 2, .slot = 1 };
	struct vb_device_info info;
	describe(&info);
	if (strcmp(name, info.name) != 0)
		return -ENODEV;
	struct vb_device *device = calloc(1, sizeof(*device));
	if (!device || vb_nic_create(&nic, &device->nic) || vb_lane_create(&lane, &device->lane))
		abort();
	for (unsigned i = 0; i < info.gid_count; i++)
		vb_nic_set_gid(device->nic, i, &info.gids[i].gid);
	pthread_mutex_init(&device->lock, NULL);
	vb_steering_init(&device->steering, device->lane);
	device->sink = *sink;
	device->host_lane.device = device;
	device->opened_before = last_opened;
	last_opened = device;
	open_devices++;
	*opened = device;
	return 0;
}

void vb_device_close(struct vb_device *device)
{
	vb_lane_destroy(device->lane);
	vb_nic_destroy(device->nic);
	pthread_mutex_destroy(&device->lock);
	if (last_opened == device)
		last_opened = device->opened_before;
	free(device);
	open_devices--;
}

struct vb_nic *vb_device_nic(struct vb_device *device)
{
	return device->nic;
}

void vb_device_query(struct vb_device *device, struct vb_device_info *info)
{
	describe(info);
}

struct vb_host_lane *vb_device_host_lane(struct vb_device *device)
{
	return &device->host_lane;
}

struct vb_host_lane *vb_device_host_lane_of_caller(struct vb_device *device)
{
	return &device->host_lane;
}

struct vb_host_lane *vb_device_host_lane_of_domain(struct vb_device *device)
{
	return &device->host_lane;
}

struct vb_host_lane *vb_device_host_lane_after(struct vb_device *device, const struct vb_host_lane *host_lane)
{
	return &device->host_lane;
}

unsigned vb_host_lane_bit(const struct vb_host_lane *host_lane)
{
	return 1;
}

struct vb_lane *vb_host_lane_lane(struct vb_host_lane *host_lane)
{
	return host_lane->device->lane;
}

int vb_device_join(struct vb_device *device, struct vb_host_lane *host_lane, const struct vb_gid *group)
{
	groups++;
	return 0;
}

int vb_device_leave(struct vb_device *device, struct vb_host_lane *host_lane, const struct vb_gid *group)
{
	groups--;
	return 0;
}

void vb_device_discover(struct vb_device *device, unsigned lanes, const struct vb_av *av) {}

int vb_host_check_route(const struct vb_gid *from, const struct vb_gid *to)
{
	return vb_gid_equal(to, &LOOP_UNROUTED) ? -ENETUNREACH : 0;
}

void vb_log(enum vb_log_level level, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(logged, sizeof(logged), format, arguments);
	va_end(arguments);
	logged_lines++;
}

bool vb_device_is_forked(const struct vb_device *device)
{
	return forked;
}

int vb_refuse_forked(const char *done_by_parent, const char *to_be_done)
{
	return -VB_FORKED_ERRNO;
}

bool vb_device_refuses_forked(const struct vb_device *device)
{
	return forked;
}

vb_time vb_host_now(void)
{
	return last_opened->now;
}

uint64_t vb_host_monotonic_ns(vb_time at)
{
	return (uint64_t)(at / VB_NS);
}

/* ---- The lane ---------------------------------------------------------------------------------------------------- */

struct letter {
	struct vb_packet packet;
	struct vb_path path;
	uint8_t payload[VB_MAX_MTU];
};

static void copy_payload(const struct vb_batch *batch, const struct vb_outgoing *out, struct letter *letter)
{
	size_t length = 0;
	for (unsigned i = out->iov_first; i < (unsigned)out->iov_first + out->iov_count; i++) {
		memcpy(letter->payload + length, batch->iov[i].base, batch->iov[i].length);
		length += batch->iov[i].length;
	}
	letter->packet = out->packet;
	letter->packet.payload = letter->payload;
	letter->path =
		(struct vb_path){ .src = out->av->sgid, .dst = out->av->dgid, .src_port = out->flow, .hop_limit = 64 };
}

static bool exchange(struct vb_device *device)
{
	unsigned n = vb_lane_transmit(device->lane, &device->batch, VB_BATCH_PACKETS, device->now);
	if (n == 0)
		return false;
	struct letter *letters = calloc(n, sizeof(*letters));
	if (!letters)
		abort();
	for (unsigned i = 0; i < n; i++)
		copy_payload(&device->batch, &device->batch.out[i], &letters[i]);
	vb_lane_transmit_done(device->lane, device->batch.completions, n, device->now);
	for (unsigned i = 0; i < n && !blocked; i++)
		vb_lane_receive(device->lane, &letters[i].path, &letters[i].packet, 1, device->now);
	free(letters);
	return true;
}

static bool exchange_frame(struct vb_device *device)
{
	struct vb_frame frame;
	static uint8_t bytes[VB_FRAME_MAX];
	uint32_t length = 0;
	if (!vb_lane_next_frame(device->lane, &frame, device->now))
		return false;
	for (unsigned i = 0; i < frame.iov_count; i++) {
		memcpy(bytes + length, frame.iov[i].base, frame.iov[i].length);
		length += (uint32_t)frame.iov[i].length;
	}
	vb_lane_frame_sent(device->lane, &frame, length > LOOP_FRAME_MAX ? EMSGSIZE : 0, device->now);
	if (length <= LOOP_FRAME_MAX)
		vb_steering_receive(&device->steering, bytes, length, false, device->now);
	return true;
}

static void run(struct vb_device *device)
{
	vb_lane_advance(device->lane, device->now);
	while (exchange(device) || exchange_frame(device))
		;
	struct vb_event event;
	while (vb_lane_next_event(device->lane, &event)) {
		if (event.kind == VB_EVENT_QP_DIED)
			deaths++;
		else
			device->sink.on_event(&event);
	}
}

int vb_host_lane_lock(struct vb_host_lane *host_lane)
{
	if (forked)
		return -EPERM;
	pthread_mutex_lock(&host_lane->device->lock);
	return 0;
}

int vb_host_lane_lock_quiet(struct vb_host_lane *host_lane)
{
	return vb_host_lane_lock(host_lane); /* what is sent has arrived */
}

void vb_host_lane_unlock(struct vb_host_lane *host_lane)
{
	run(host_lane->device);
	pthread_mutex_unlock(&host_lane->device->lock);
}

int vb_device_lock(struct vb_device *device, unsigned lanes)
{
	return vb_host_lane_lock(&device->host_lane);
}

int vb_device_lock_quiet(struct vb_device *device)
{
	return vb_host_lane_lock_quiet(&device->host_lane);
}

void vb_device_unlock(struct vb_device *device, unsigned lanes)
{
	vb_host_lane_unlock(&device->host_lane);
}

void vb_device_settle(struct vb_device *device, unsigned lanes)
{
	vb_host_lane_settle(&device->host_lane);
}

void vb_host_lane_end_post(struct vb_host_lane *host_lane, struct vb_qp *qp)
{
	vb_sq_end(qp, true);
	vb_host_lane_kick(host_lane);
}

void vb_host_lane_kick(struct vb_host_lane *host_lane)
{
	if (pthread_mutex_trylock(&host_lane->device->lock) == 0)
		vb_host_lane_unlock(host_lane);
}

void vb_host_lane_keep_time(struct vb_host_lane *host_lane) {}

/* Somebody waits: time goes on, to the next deadline when there is one. */
unsigned loop_host_notified;

bool vb_device_has_lost_descriptors(const struct vb_device *device)
{
	return false;
}

unsigned vb_host_losses(void)
{
	return 0;
}

void vb_host_lane_notified(void)
{
	loop_host_notified++;
}

void vb_device_drive(struct vb_device *device, unsigned lanes)
{
	pthread_mutex_lock(&device->lock);
	struct vb_deadline next = vb_lane_next_deadline(device->lane);
	device->now = vb_time_add(device->now, VB_US);
	if (next.is_set && vb_time_before(device->now, next.at))
		device->now = next.at;
	vb_host_lane_unlock(&device->host_lane);
}

bool vb_device_wait(struct vb_device *device, unsigned lanes, int fd, const atomic_uint *count)
{
	for (int i = 0; i < WAIT_STEPS; i++) {
		struct pollfd readable = { .fd = fd, .events = POLLIN };
		if (atomic_load(count) > 0 || poll(&readable, 1, 0) > 0)
			return true;
		vb_device_drive(device, lanes);
	}
	return false;
}

int vb_device_poll(struct vb_device *device, unsigned lanes, struct pollfd *fds, unsigned count, int timeout_ms,
	const atomic_uint *news)
{
	for (int i = 0; i < WAIT_STEPS && !atomic_load(news); i++) {
		int ready = poll(fds, count, 0);
		if (ready)
			return ready;
		vb_device_drive(device, lanes);
	}
	return 0;
}

void vb_host_lane_note_end(struct vb_host_lane *host_lane, struct vb_qp *qp) {}

void vb_host_lane_settle(struct vb_host_lane *host_lane)
{
	vb_lane_flush_acks(host_lane->device->lane);
	run(host_lane->device);
}

void vb_host_lane_settle_qp(struct vb_host_lane *host_lane, struct vb_qp *qp)
{
	vb_host_lane_settle(host_lane);
}

void vb_host_lane_take_leave(struct vb_host_lane *host_lane, struct vb_qp *qp)
{
	(void)qp; /* nothing is lost here */
	vb_host_lane_settle(host_lane);
}

void vb_host_lane_catch_up(struct vb_host_lane *host_lane, uint32_t qpn) {}

void vb_device_keep_datagrams(struct vb_device *device, uint32_t lkey)
{
	pthread_mutex_lock(&device->lock);
	vb_lane_keep_datagrams(device->lane, lkey);
	vb_host_lane_unlock(&device->host_lane);
}

void vb_device_grace(struct vb_device *device)
{
	pthread_mutex_lock(&device->lock);
	vb_host_lane_unlock(&device->host_lane);
}

bool vb_host_may_use_frames(void)
{
	return may_use_frames;
}

int vb_device_open_frames(struct vb_device *device)
{
	return forked || !may_use_frames ? -EPERM : 0;
}

int vb_device_steer(struct vb_device *device, const struct vb_frame_flow *flow, struct vb_device_flow **made)
{
	*made = malloc(sizeof(**made));
	if (!*made)
		return -ENOMEM;
	(*made)->flow = *flow;
	vb_list_init(&(*made)->flow.link);
	vb_steering_add(&device->steering, &(*made)->flow);
	return 0;
}

int vb_device_unsteer(struct vb_device *device, struct vb_device_flow *flow)
{
	vb_steering_remove(&flow->flow);
	free(flow);
	return 0;
}

void vb_devices_expect_use(void) {}

const char *vb_device_counter(const char *name, unsigned n, uint64_t *value)
{
	return NULL;
}

/* ---- Faults of calls: no setting asks for any -------------------------------------------------------------------- */

atomic_int vb_call_faults_state = VB_CALL_FAULTS_NONE;

const struct vb_call_faults *vb_call_faults_get(void)
{
	static const struct vb_call_faults none;
	return &none;
}

int vb_call_strike(enum vb_call call)
{
	return 0;
}

int vb_call_strike_later(enum vb_call call, struct vb_later **unsaid)
{
	return 0;
}

void vb_calls_pass(bool are_passed) {}

void vb_calls_break(bool are_broken) {}

void vb_call_faults_event_struck(unsigned index) {}
