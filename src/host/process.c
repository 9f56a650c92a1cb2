/* The process: started by the first device that is opened, stopped with the last; what happens to it at fork and at
 * exit. */
#include "base/invariant.h"
#include "host/process.h"
#include "host/random.h"
#include "host/peers/segments.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "host/devices/devices.h"
#include "host/devices/interfaces.h"
#include "host/report/summary.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "port/udp.h"

#define LEAVE_PATIENCE_NS   (50 * VB_CLOCK_MS) /* for the mutex, at exit */
#define SUMMARY_PATIENCE_NS VB_CLOCK_S

static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_process *current; /* under open_mutex, as what follows */
static unsigned user_count;

static void close_fds(struct vb_process *p)
{
	vb_descriptor_close(p->connections_fd, VB_TYPE_ANONYMOUS);
	vb_descriptor_close(p->link_fd, S_IFSOCK);
	vb_descriptor_close(p->silence_fd, VB_TYPE_ANONYMOUS);
	p->connections_fd = p->link_fd = p->silence_fd = -1;
}

/* ---- fork, exit -------------------------------------------------------------------------------------------------- */

/* The child shares descriptors with the parent, whose NIC it is; it keeps none and touches nothing else of it. Devices
 * that it opens itself get a process of their own. */
static void after_fork_in_child(void)
{
	struct vb_process *p = current;

	pthread_mutex_init(&open_mutex, NULL);
	vb_summary_forked();
	if (!p)
		return;
	p->is_forked = true;
	vb_connections_forget();
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		vb_host_lane_forked(p->host_lanes[i]);
	close_fds(p);
	vb_pcap_close(p->pcap); /* the parent goes on writing it */
	p->pcap = NULL;
	vb_broker_forked(p->broker);
	vb_segments_forked(p->segments);
	vb_multicast_forked();
	vb_devices_hold_loopback(false);
	current = NULL;
	user_count = 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&open_mutex);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&open_mutex);
}

/* A program that looked at the devices and took none goes another way, such as UCX over TCP, and does not tell. */
static _Atomic pid_t looked_by, opened_by; /* any thread may look */
static atomic_bool has_opened;

static void tell(struct vb_process *p, unsigned lanes, const struct vb_summary *summary)
{
	vb_paths_tell(p, lanes, summary);
	if (p->pcap)
		vb_pcap_end(p->pcap);
}

/* The threads go on until the process is gone; nothing is freed. exit() may have been called from anywhere, a signal
 * handler included, so this very thread may hold a mutex. Messages that the program has received are acknowledged, or
 * the peer would take them for lost. */
static void take_leave(struct vb_process *p)
{
	const bool tells = vb_process_home(p)->paths;
	const struct vb_summary summary = tells ? vb_summary_to_print(p->pcap) : (struct vb_summary){ 0 };
	unsigned count = vb_process_host_lane_count(p), held = 0;
	int64_t until_ns = vb_clock_ns() + (tells ? SUMMARY_PATIENCE_NS : LEAVE_PATIENCE_NS);

	assert(count > 0);
	for (unsigned i = 0; i < count; i++) {
		if (vb_clock_lock(&p->host_lanes[i]->mutex, until_ns) != 0)
			continue;
		held |= 1u << i;
		vb_host_lane_settle(p->host_lanes[i]);
	}
	if (tells && held && vb_summary_is_mine_to_say(p))
		tell(p, held, &summary);
	for (unsigned i = 0; i < count; i++)
		if (held >> i & 1)
			pthread_mutex_unlock(&p->host_lanes[i]->mutex);
}

/* Once, though a handler of exit() may end in _exit(). Between vfork() and exec a child is in its parent's memory, and
 * calls _exit() there when it finds no program: it has nothing to say. */
static void at_exit(void)
{
	static atomic_flag is_said = ATOMIC_FLAG_INIT;
	struct vb_process *p = current;

	if ((p ? opened_by : looked_by) != getpid() || atomic_flag_test_and_set(&is_said))
		return;
	if (p)
		take_leave(p);
	else if (!has_opened && vb_summary_is_mine_to_say(NULL))
		vb_summary_say_none_opened();
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

static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT, handlers_once = PTHREAD_ONCE_INIT;

static void register_handlers(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void vb_devices_expect_use(void)
{
	const struct vb_settings *settings = vb_settings_get();

	if (!settings || !vb_settings_want_summary(settings))
		return;
	looked_by = getpid();
	pthread_once(&at_exit_once, register_at_exit);
	pthread_once(&handlers_once, register_handlers);
	vb_process_hold();
	vb_summary_begin();
	vb_process_release();
}

/* ---- Its parts --------------------------------------------------------------------------------------------------- */

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

static int open_pcap(struct vb_process *p, const char *pattern)
{
	char name[4096];

	assert(!p->pcap);
	if (!*pattern)
		return 0;
	expand_file_name(pattern, name, sizeof(name));
	int rc = vb_pcap_open(name, &p->pcap);
	if (rc == -EBUSY) {
		char wanted[sizeof(name)];
		memcpy(wanted, name, sizeof(name));
		size_t length = strlen(name);
		snprintf(name + length, sizeof(name) - length, ".%d", (int)getpid());
		vb_log(VB_LOG_WARN, "VERBENA_PCAP: another process captures into %s, this one into %s", wanted, name);
		rc = vb_pcap_open(name, &p->pcap);
	}
	if (rc < 0)
		vb_log(VB_LOG_ERROR, "VERBENA_PCAP: cannot write %s: %s", name, strerror(-rc));
	return rc;
}

/* The settings have been checked, so this fails for lack of memory alone. */
static int make_faults(struct vb_host_lane *d, const struct vb_settings *settings)
{
	char why[128];

	assert(!d->faults);
	return settings->packet_faults
		       ? vb_faults_parse(settings->text[VB_SETTING_FAULTS], &d->faults, why, sizeof(why))
		       : 0;
}

/* Packets of a connection that go by the same of its paths before the next: a train. And source ports to choose from.
 */
enum { FLOWLET = 16, PATH_PORTS = 64 };

static int open_port(struct vb_host_lane *d, const struct vb_settings *settings)
{
	struct vb_udp_config config = { .receive_fd = d->slot.fd,
		.is_carried = d->slot.is_carried,
		.slot = d->slot.number,
		.pcap = d->process->pcap,
		.faults = d->faults,
		.single_datagrams = settings->trains_off,
		.flow_mask = settings->paths > 1 ? PATH_PORTS - 1 : 0,
		.takes_marks = vb_cc_takes_marks_live(settings->cc.algorithm) };

	assert(d->slot.fd >= 0);
	assert(!d->port);
	return vb_udp_open(&config, &d->port);
}

static int create_lane(struct vb_host_lane *d, const struct vb_settings *settings, bool meets_local_peers)
{
	struct vb_lane_config config = vb_lane_behind_sockets(d->slot.receive_buffer);

	assert(d->port);
	assert(!d->lane);
	config.seed = vb_host_random_seed();
	config.slot = d->slot.number;
	vb_lanes_indices(&d->process->lanes, d->index, &config.first_index, &config.index_count);
	config.meets_local_peers = meets_local_peers;
	config.tells_silence = true;
	config.recovery = settings->go_back_n ? VB_RECOVERY_GO_BACK_N : VB_RECOVERY_AGREED;
	config.paths = (uint16_t)settings->paths;
	config.flowlet_packets = FLOWLET;
	config.fails_over = settings->fails_over;
	config.goes_by_large = !settings->large_off;
	config.is_present = vb_host_memory_is_present;
	config.cc = (struct vb_cc_config){ .algorithm = settings->cc.algorithm, .parameters = settings->cc.values };
	int rc = vb_lane_create(&config, &d->lane);

	if (rc == 0)
		vb_lane_set_addresses(d->lane, d->process->further.addresses, d->process->further.count);
	if (rc < 0 || !meets_local_peers)
		return rc;
	assert(d->process->epochs);
	vb_lane_publish_epochs(d->lane, d->process->epochs);
	return vb_host_peers_open(d);
}

static int fill_host_lane(struct vb_host_lane *d, const struct vb_settings *settings)
{
	d->paths = vb_settings_want_accounts(settings) ? vb_paths_create() : NULL;
	d->accounts = vb_settings_want_accounts(settings) ? vb_accounts_create() : NULL;
	if (vb_settings_want_accounts(settings) && (!d->paths || !d->accounts))
		return -ENOMEM;
	int rc = make_faults(d, settings);
	if (rc == 0)
		rc = vb_broker_watch_get_slot(d, settings);
	if (rc == 0 && d->slot.is_carried)
		rc = vb_lanes_carry(&d->process->lanes, d->index);
	if (rc == 0)
		rc = open_port(d, settings);
	if (rc == 0)
		rc = create_lane(d, settings, vb_local_refusal(settings) == VB_LOCAL_IS_USED);
	if (rc == 0)
		rc = vb_progress_start(d, !settings->progress_off);
	return rc;
}

static void on_link(void *process)
{
	struct vb_process *p = process;

	vb_interfaces_drain(p->link_fd);
	vb_process_refresh_devices(p);
}

static void on_connections(void *process)
{
	struct vb_process *p = process;

	if (!vb_eventfd_take(p->connections_fd))
		vb_process_lose_descriptors(p);
	vb_connections_on_timer();
}

/* A program that waits for a peer by memory, or for a message of the peer, sees no retry that would tell it. */
static void on_silence(void *process)
{
	struct vb_process *p = process;

	if (!vb_eventfd_take(p->silence_fd))
		vb_process_lose_descriptors(p);
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		if (vb_host_lane_lock(p->host_lanes[i]) < 0)
			continue;
		vb_host_lane_ask_after_silent(p->host_lanes[i]);
		vb_host_lane_unlock(p->host_lanes[i]);
	}
}

/* Where the timer cannot be made, silent peers are not asked after. */
static void watch_silence(struct vb_process *p, struct vb_host_lane *home)
{
	const int64_t every_ns = VB_SILENCE_LOOK / VB_NS;

	p->silence_fd = vb_clock_timer();
	if (p->silence_fd < 0)
		return;
	vb_clock_set_timer(p->silence_fd, vb_clock_ns() + every_ns, every_ns);
	vb_progress_watch(home, (struct vb_chore){ p->silence_fd, on_silence, p });
}

/* home's thread sleeps on them. */
static int open_fds(struct vb_process *p, struct vb_host_lane *home)
{
	assert(p->connections_fd < 0);
	assert(p->link_fd < 0);
	p->connections_fd = vb_clock_timer();
	p->link_fd = vb_interfaces_watch(); /* where it is forbidden, changes go unseen */
	if (p->connections_fd < 0)
		return -errno;
	vb_progress_watch(home, (struct vb_chore){ p->connections_fd, on_connections, p });
	if (p->link_fd >= 0)
		vb_progress_watch(home, (struct vb_chore){ p->link_fd, on_link, p });
	watch_silence(p, home);
	return 0;
}

/* ---- Start and stop ---------------------------------------------------------------------------------------------- */

/* Most pages of it are never touched. It is the first segment, if there may be such memory: without it no other is of
 * use to a peer. */
static int make_epochs(struct vb_process *p)
{
	int file = vb_host_make_memory(sizeof(*p->epochs));
	int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *memory = mmap(NULL, sizeof(*p->epochs), PROT_READ | PROT_WRITE, flags, file < 0 ? -1 : file, 0);
	int rc = memory == MAP_FAILED ? -errno : 0;

	assert(!p->epochs);
	if (rc == 0) {
		p->epochs = memory;
		p->epochs->nonce = vb_host_random_seed();
		if (file >= 0)
			vb_segments_add(p->segments, p->epochs, sizeof(*p->epochs), file);
	}
	if (file >= 0)
		close(file);
	return rc;
}

static int fill(struct vb_process *p, struct vb_host_lane *d, const struct vb_settings *settings)
{
	int rc = open_pcap(p, settings->text[VB_SETTING_PCAP]);

	if (rc == 0 && !(p->segments = vb_segments_create()))
		rc = -ENOMEM;
	if (rc == 0)
		rc = make_epochs(p);
	if (rc == 0)
		rc = open_fds(p, d);
	if (rc == 0)
		rc = vb_broker_watch_start(p, settings);
	if (rc == 0)
		rc = fill_host_lane(d, settings);
	return rc;
}

static int make_home(struct vb_process *p, const struct vb_settings *settings)
{
	struct vb_host_lane *d;
	int rc = vb_host_lane_create(p, &d);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&d->mutex); /* the broker may send something before all is there */
	assert(vb_process_host_lane_count(p) == 0);
	p->host_lanes[0] = d;
	atomic_store(&p->host_lane_count, 1);
	rc = fill(p, d, settings);
	pthread_mutex_unlock(&d->mutex);
	return rc;
}

static void count(struct vb_process *p, struct vb_host_lane *d)
{
	vb_process_lock(p);
	pthread_mutex_lock(&d->mutex);
	assert(d->index == vb_process_host_lane_count(p));
	assert(d->index < VB_LANES_MAX);
	assert(d->lane);
	p->host_lanes[d->index] = d;
	atomic_store_explicit(&p->host_lane_count, d->index + 1, memory_order_release);
	vb_process_unlock(p);
}

int vb_process_add_host_lane(struct vb_process *p)
{
	const struct vb_settings *settings = vb_settings_get();
	struct vb_host_lane *d;
	int rc = vb_host_lane_create(p, &d);

	if (rc == 0) {
		d->index = vb_process_host_lane_count(p);
		rc = fill_host_lane(d, settings);
		if (rc == 0) {
			count(p, d);
			vb_log(VB_LOG_DEBUG, "lane %u: slot %u of UDP port 4791", d->index, d->slot.number);
			return 0;
		}
		if (d->slot.fd >= 0)
			vb_broker_release_slot(p->broker, &d->slot);
		vb_host_lane_destroy(d);
	}
	vb_log(rc == -EUSERS ? VB_LOG_INFO : VB_LOG_WARN, "no further lane can be made (%s): threads share %u",
		strerror(-rc), vb_process_host_lane_count(p));
	return rc;
}

static void destroy(struct vb_process *p)
{
	vb_broker_watch_stop(p); /* if it could not be started; its thread looks at the lanes */
	assert(!p->broker);
	assert(vb_list_empty(&p->devices));
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		vb_host_lane_destroy(p->host_lanes[i]);
	vb_multicast_forget();
	close_fds(p);
	if (p->pcap)
		vb_pcap_close(p->pcap);
	if (p->epochs)
		munmap(p->epochs, sizeof(*p->epochs));
	vb_segments_destroy(p->segments);
	free(p);
}

static int start(void)
{
	const struct vb_settings *settings = vb_settings_get();
	struct vb_process *p = settings ? calloc(1, sizeof(*p)) : NULL;

	assert(!current);
	if (!p)
		return settings ? -ENOMEM : -EINVAL;
	pthread_once(&handlers_once, register_handlers);
	pthread_once(&at_exit_once, register_at_exit);
	vb_lanes_init(&p->lanes, settings);
	vb_list_init(&p->devices);
	pthread_mutex_init(&p->backing.mutex, NULL);
	p->link_fd = p->connections_fd = p->alarm_fd = p->silence_fd = -1;
	vb_further_read(&p->further);
	int rc = make_home(p, settings);
	if (rc < 0) {
		destroy(p);
		return rc;
	}
	current = p;
	opened_by = getpid();
	has_opened = true;
	if (vb_settings_want_summary(settings)) {
		vb_summary_begin();
		vb_summary_keep(p);
	}
	return 0;
}

static void stop(void)
{
	struct vb_process *p = current;

	assert(p);
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		vb_progress_stop(p->host_lanes[i]); /* it may ask the broker */
	vb_broker_watch_stop(p);
	if (vb_process_home(p)->paths && vb_summary_is_mine_to_say(p)) {
		const struct vb_summary summary = vb_summary_to_print(p->pcap);
		tell(p, VB_ALL_LANES, &summary);
	}
	current = NULL;
	destroy(p);
}

/* ---- Its users --------------------------------------------------------------------------------------------------- */

int vb_process_enter(struct vb_process **process)
{
	pthread_mutex_lock(&open_mutex);
	int rc = user_count == 0 ? start() : 0;
	if (rc == 0) {
		assert(current);
		user_count++;
		*process = current;
	}
	pthread_mutex_unlock(&open_mutex);
	return rc;
}

void vb_process_leave(void)
{
	pthread_mutex_lock(&open_mutex);
	assert(user_count > 0);
	if (--user_count == 0)
		stop();
	pthread_mutex_unlock(&open_mutex);
}

struct vb_process *vb_process_hold(void)
{
	pthread_mutex_lock(&open_mutex);
	return current;
}

void vb_process_release(void)
{
	pthread_mutex_unlock(&open_mutex);
}

void vb_process_lock(struct vb_process *p)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		vb_host_lane_lock(p->host_lanes[i]);
}

/* Once the first is unlocked, there may be more host lanes. */
void vb_process_unlock(struct vb_process *p)
{
	const unsigned count = vb_process_host_lane_count(p);

	for (unsigned i = 0; i < count; i++)
		vb_host_lane_unlock(p->host_lanes[i]);
}
