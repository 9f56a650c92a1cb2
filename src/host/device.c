/* Opened devices, and the worker they share: started with the first, stopped with the last. */
#include "host/worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "host/devices.h"
#include "port/udp.h"

#define ACK_DELAY (20 * VB_US) /* so that a program's answer leaves together with the ack of what it answers */
#define PATIENCE  (32 * VB_MS) /* a peer's process may wait as long for its core, where there are many */

static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_worker *current; /* this process's worker; under open_mutex */
static unsigned device_count;

uint64_t vb_host_random_seed(void)
{
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)vb_host_now() ^ (uint64_t)getpid() << 32;
	return seed;
}

/* ---- fork, exit ------------------------------------------------------------------------------------------------- */

bool vb_device_is_forked(const struct vb_device *device)
{
	return device->worker->is_forked;
}

/* The child shares descriptors with the parent, whose NIC it is; it keeps none and touches nothing else of it. Devices
 * that it opens itself get a worker of their own. */
static void after_fork_in_child(void)
{
	struct vb_worker *w = current;

	pthread_mutex_init(&open_mutex, NULL);
	if (!w)
		return;
	w->is_forked = true;
	vb_connections_forget();
	w->has_thread = false;
	vb_progress_forked(w);
	vb_port_abandon(w->port);
	vb_frames_close(w);
	vb_pcap_close(w->pcap); /* the parent goes on writing it */
	w->pcap = NULL;
	close(w->slot.fd);
	vb_broker_forked(w->broker);
	vb_multicast_forked();
	vb_devices_hold_loopback(false);
	current = NULL;
	device_count = 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&open_mutex);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&open_mutex);
}

/* A program that looked at the devices and took none goes another way, UCX over TCP, and says nothing of it. */
static pid_t looked_by, opened_by;
static bool has_opened;

/* The thread goes on until the process is gone; nothing is freed. exit() may have been called from anywhere, a signal
 * handler included, so the mutex may be this very thread's. */
static void say_paths(struct vb_worker *w)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (pthread_mutex_timedlock(&w->mutex, &until) != 0)
		return;
	vb_paths_print(w);
	pthread_mutex_unlock(&w->mutex);
}

/* Once, though a handler of exit() may end in _exit(). Between vfork() and exec a child is in its parent's memory, and
 * calls _exit() there when it finds no program: it has nothing to say. */
static void at_exit(void)
{
	static atomic_flag is_said = ATOMIC_FLAG_INIT;
	struct vb_worker *w = current;

	if ((w ? opened_by : looked_by) != getpid() || atomic_flag_test_and_set(&is_said))
		return;
	if (w && w->paths)
		say_paths(w);
	else if (!has_opened)
		vb_log(VB_LOG_ERROR, "wire: no device was opened; nothing went through Verbena");
}

/* _exit() runs no handlers; our preload library, where it is loaded, is in front of it (preload/hooks_exit.c). */
static void register_at_exit(void)
{
	void (*before_exit)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(RTLD_DEFAULT, "verbena_before_exit");

	atexit(at_exit);
	at_quick_exit(at_exit);
	if (before_exit)
		before_exit(at_exit);
}

static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT;

void vb_devices_expect_use(void)
{
	const struct vb_settings *settings = vb_settings_get();

	if (!settings || !settings->stats)
		return;
	looked_by = getpid();
	pthread_once(&at_exit_once, register_at_exit);
}

static void register_handlers(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- The worker ------------------------------------------------------------------------------------------------- */

/* "%p" becomes the process id. */
static void expand_file_name(const char *pattern, char *name, size_t size)
{
	size_t at = 0;

	for (const char *c = pattern; *c && at + 1 < size; c++) {
		if (c[0] == '%' && c[1] == 'p') {
			at += (size_t)snprintf(name + at, size - at, "%d", (int)getpid());
			at = at < size ? at : size - 1;
			c++;
		} else {
			name[at++] = *c;
		}
	}
	name[at] = '\0';
}

static int open_pcap(struct vb_worker *w, const char *pattern)
{
	char name[4096];

	if (!*pattern)
		return 0;
	expand_file_name(pattern, name, sizeof(name));
	int rc = vb_pcap_open(name, &w->pcap);
	if (rc == -EBUSY) {
		char wanted[sizeof(name)];
		memcpy(wanted, name, sizeof(name));
		size_t length = strlen(name);
		snprintf(name + length, sizeof(name) - length, ".%d", (int)getpid());
		vb_log(VB_LOG_WARN, "VERBENA_PCAP: another process captures into %s, this one into %s", wanted, name);
		rc = vb_pcap_open(name, &w->pcap);
	}
	if (rc < 0)
		vb_log(VB_LOG_ERROR, "VERBENA_PCAP: cannot write %s: %s", name, strerror(-rc));
	return rc;
}

/* The settings have been checked, so this fails for lack of memory alone. */
static int make_faults(struct vb_worker *w, const char *text)
{
	char why[128];

	return *text ? vb_faults_parse(text, &w->faults, why, sizeof(why)) : 0;
}

static int open_port(struct vb_worker *w, const struct vb_settings *settings)
{
	struct vb_udp_config config = { .receive_fd = w->slot.fd, .is_carried = w->slot.is_carried,
		.slot = w->slot.number, .pcap = w->pcap,
		.faults = w->faults, .single_datagrams = settings->trains_off };

	return vb_udp_open(&config, &w->port);
}

static int create_lane(struct vb_worker *w)
{
	struct vb_lane_config config = { .seed = vb_host_random_seed(), .slot = w->slot.number,
		.receive_buffer = w->slot.receive_buffer, .patience = PATIENCE, .ack_delay = ACK_DELAY,
		.turn_bytes = w->port->largest_segment };

	return vb_lane_create(&config, &w->lane);
}

static void free_worker(struct vb_worker *w)
{
	vb_broker_watch_stop(w); /* if it could not be started; its thread looks at the lane */
	if (w->lane)
		vb_lane_destroy(w->lane);
	vb_frames_close(w);
	if (w->port)
		vb_port_close(w->port);
	if (w->slot.fd >= 0)
		close(w->slot.fd);
	vb_multicast_forget();
	vb_progress_forked(w); /* closes what is open */
	if (w->pcap)
		vb_pcap_close(w->pcap);
	if (w->faults)
		vb_faults_free(w->faults);
	free(w->paths);
	free(w->batch);
	free(w->train);
	pthread_mutex_destroy(&w->mutex);
	free(w);
}

static int fill_worker(struct vb_worker *w, const struct vb_settings *settings)
{
	w->batch = calloc(1, sizeof(*w->batch));
	w->train = calloc(1, sizeof(*w->train));
	w->paths = settings->stats ? vb_paths_create() : NULL;
	if (!w->batch || !w->train || (settings->stats && !w->paths))
		return -ENOMEM;
	int rc = open_pcap(w, settings->text[VB_SETTING_PCAP]);
	if (rc == 0)
		rc = make_faults(w, settings->text[VB_SETTING_FAULTS]);
	if (rc == 0)
		rc = vb_broker_watch_start(w, settings);
	if (rc == 0)
		rc = open_port(w, settings);
	if (rc == 0)
		rc = create_lane(w);
	if (rc == 0)
		rc = vb_progress_start(w);
	return rc;
}

static int start_worker(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct vb_settings *settings = vb_settings_get();
	struct vb_worker *w = settings ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return settings ? -ENOMEM : -EINVAL;
	pthread_once(&once, register_handlers);
	pthread_once(&at_exit_once, register_at_exit);
	pthread_mutex_init(&w->mutex, NULL);
	vb_list_init(&w->devices);
	w->slot.fd = w->epoll_fd = w->timer_fd = w->wake_fd = w->stop_fd = w->link_fd = w->connections_fd = -1;
	pthread_mutex_lock(&w->mutex); /* the broker may have something to say before all is there */
	int rc = fill_worker(w, settings);
	pthread_mutex_unlock(&w->mutex);
	if (rc < 0) {
		free_worker(w);
		return rc;
	}
	current = w;
	opened_by = getpid();
	has_opened = true;
	return 0;
}

static void stop_worker(void)
{
	struct vb_worker *w = current;

	vb_broker_watch_stop(w); /* its thread may wake the other one */
	vb_progress_stop(w);
	if (w->paths)
		vb_paths_print(w);
	current = NULL;
	free_worker(w);
}

/* ---- Devices ---------------------------------------------------------------------------------------------------- */

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
	for (unsigned i = 0; i < VB_MAX_GIDS; i++)
		vb_nic_set_gid(device->nic, i, i < device->info.gid_count ? &device->info.gids[i].gid : NULL);
}

static int create_device(const struct vb_device_info *info, const struct vb_device_sink *sink,
	struct vb_device **device)
{
	struct vb_nic_config config = { .seed = vb_host_random_seed(), .seed_high = vb_host_random_seed(),
		.mtu = info->mtu, .advertise_credits = false };
	struct vb_device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	int rc = vb_nic_create(&config, &d->nic);
	if (rc < 0) {
		free(d);
		return rc;
	}
	d->sink = *sink;
	d->info = *info;
	set_gids(d);
	*device = d;
	return 0;
}

/* With the mutex held, before a device of that name joins. */
static void note_if_another(struct vb_worker *w, const char *name)
{
	vb_list_for_each(node, &w->devices)
		if (strcmp(vb_container_of(node, struct vb_device, link)->info.name, name) != 0)
			w->has_had_several = true;
}

/* All devices of a worker with one name have the same counters, its lane's and port's. */
static const char *counter_of(struct vb_worker *w, const char *name, unsigned n, uint64_t *value)
{
	const char *counter = NULL;

	vb_worker_lock(w);
	const struct vb_device *any = vb_container_of(w->devices.next, struct vb_device, link);
	if (!w->has_had_several && strcmp(any->info.name, name) == 0)
		counter = vb_worker_counter(w, n, value);
	vb_worker_unlock(w);
	return counter;
}

const char *vb_device_counter(const char *name, unsigned n, uint64_t *value)
{
	pthread_mutex_lock(&open_mutex);
	const char *counter = current && device_count ? counter_of(current, name, n, value) : NULL;
	pthread_mutex_unlock(&open_mutex);
	return counter;
}

/* With the mutex held, when a device has joined or left. */
static void note_loopback(const struct vb_worker *w)
{
	bool is_held = false;

	vb_list_for_each(node, &w->devices)
		is_held |= vb_container_of(node, struct vb_device, link)->info.is_loopback;
	vb_devices_hold_loopback(is_held);
}

int vb_device_open(const char *name, const struct vb_device_sink *sink, struct vb_device **device)
{
	struct vb_device_info info;
	struct vb_device *d = NULL;
	int rc = 0;

	if (!find_listed(name, &info, &rc))
		return rc;
	rc = create_device(&info, sink, &d);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&open_mutex);
	if (device_count == 0)
		rc = start_worker();
	if (rc == 0) {
		device_count++;
		d->worker = current;
		vb_worker_lock(current);
		note_if_another(current, info.name);
		vb_list_add_tail(&current->devices, &d->link);
		note_loopback(current);
		vb_worker_unlock(current);
	}
	pthread_mutex_unlock(&open_mutex);
	if (rc < 0) {
		vb_nic_destroy(d->nic);
		free(d);
		return rc;
	}
	*device = d;
	return 0;
}

void vb_device_close(struct vb_device *device)
{
	struct vb_worker *w = device->worker;

	if (!w->is_forked) {
		pthread_mutex_lock(&open_mutex);
		vb_worker_lock(w);
		vb_list_remove(&device->link);
		note_loopback(w);
		vb_worker_unlock(w);
		if (--device_count == 0)
			stop_worker();
		pthread_mutex_unlock(&open_mutex);
	}
	vb_nic_destroy(device->nic);
	free(device);
}

struct vb_nic *vb_device_nic(struct vb_device *device)
{
	return device->nic;
}

struct vb_device *vb_worker_device_of(struct vb_worker *w, const struct vb_nic *nic)
{
	vb_list_for_each(node, &w->devices) {
		struct vb_device *device = vb_container_of(node, struct vb_device, link);
		if (device->nic == nic)
			return device;
	}
	return NULL;
}

/* ---- Changes of links and addresses ----------------------------------------------------------------------------- */

static bool same_gids(const struct vb_device_info *a, const struct vb_device_info *b)
{
	return a->gid_count == b->gid_count && memcmp(a->gids, b->gids, a->gid_count * sizeof(a->gids[0])) == 0;
}

/* With the mutex held. */
static void update_device(struct vb_device *device, const struct vb_device_info *now)
{
	struct vb_device_info before = device->info;

	device->info = *now;
	if (now->mtu != before.mtu)
		vb_nic_set_mtu(device->nic, now->mtu);
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

void vb_worker_refresh_devices(struct vb_worker *w)
{
	struct vb_device_info *list;
	size_t count;

	if (vb_devices_named(NULL, &list, &count) < 0)
		return;
	vb_worker_lock(w);
	vb_list_for_each(node, &w->devices) {
		struct vb_device *device = vb_container_of(node, struct vb_device, link);
		struct vb_device_info now = absent(&device->info);
		for (size_t i = 0; i < count; i++)
			if (strcmp(list[i].name, device->info.name) == 0)
				now = list[i];
		update_device(device, &now);
	}
	vb_worker_unlock(w);
	free(list);
}

void vb_device_query(struct vb_device *device, struct vb_device_info *info)
{
	struct vb_worker *w = device->worker;

	if (w->is_forked) {
		*info = device->info;
		return;
	}
	if (!w->has_thread || w->link_fd < 0)
		vb_worker_refresh_devices(w); /* nobody watches */
	vb_worker_lock(w);
	*info = device->info;
	vb_worker_unlock(w);
}
