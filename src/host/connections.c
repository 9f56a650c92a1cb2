/* See connections.h. Holds: every unlock leaves the CM with nothing to send and nothing to tell, and its timer armed.
 *
 * Locks: the CM's mutex alone: while it is held nothing is asked of the broker, and MADs are posted after it has been
 * given away. */
#include "base/invariant.h"
#include "host/connections.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "host/settings.h"
#include "host/random.h"
#include "host/report/text.h"
#include "host/devices/loopback.h"
#include "host/process.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "port/faults.h"

#define FIRST_WORD (3 * VB_S) /* after which a request that is not answered is told of */

#define EXPORT         __attribute__((visibility("default")))
#define SENT_AT_A_TIME 16

static struct {
	pthread_mutex_t mutex;
	_Atomic(struct vb_process *) process; /* NULL: not started */
	struct vb_cm *cm;
	struct vb_faults *faults; /* of MADs received; or NULL */
	vb_connections_handler *handler;
	void *context;
	struct vb_later *unsaid; /* lines for when the mutex has been given away; or NULL */
} connections = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* ---- The CM ------------------------------------------------------------------------------------------------------ */

EXPORT vb_time vb_connections_now(void)
{
	return vb_host_now();
}

/* NULL: not started, or not this process's. */
static struct vb_process *our_process(void)
{
	struct vb_process *p = connections.process;

	return p && !p->is_forked ? p : NULL;
}

EXPORT struct vb_cm *vb_connections_lock(void)
{
	if (!our_process())
		return NULL;
	pthread_mutex_lock(&connections.mutex);
	if (!connections.cm) /* stopped meanwhile */
		pthread_mutex_unlock(&connections.mutex);
	return connections.cm;
}

EXPORT void vb_connections_explain_mtu(const struct vb_mtu_refusal *refusal)
{
	vb_host_explain_mtu(refusal, &connections.unsaid);
}

EXPORT struct vb_later **vb_connections_unsaid(void)
{
	return &connections.unsaid;
}

EXPORT void vb_connections_explain_route(const struct vb_gid *remote)
{
	const char *fault = vb_loopback_fault(remote);

	if (fault)
		vb_log(VB_LOG_ERROR, "%s", fault);
}

static void explain_rejected(const struct vb_cm_event *event)
{
	const struct vb_cm_rej *rej = &event->message.rej;
	const struct vb_cm_path *path = vb_cm_id_path(event->id);
	uint8_t mtu = rej->ari_length ? rej->ari[0] : 0;

	if (!event->has_message || rej->reason != VB_CM_REJ_INVALID_MTU)
		return;
	vb_connections_explain_mtu(&(struct vb_mtu_refusal){ .local = path->local,
		.remote = path->remote,
		.port = (uint16_t)event->service_id,
		.carried = mtu >= 1 && mtu <= 5 ? 128u << mtu : 0 });
}

static void tell(void)
{
	struct vb_cm_event event;

	assert(connections.handler);
	while (vb_cm_next_event(connections.cm, &event)) {
		vb_host_explain_connection(&event, &connections.unsaid);
		if (event.kind == VB_CM_EVENT_SILENT) /* for the user of the program, not for the program */
			continue;
		if (event.kind == VB_CM_EVENT_REJECTED)
			explain_rejected(&event);
		connections.handler(connections.context, &event);
	}
}

static struct vb_deadline next_deadline(void)
{
	struct vb_deadline cm = vb_cm_next_deadline(connections.cm);

	return connections.faults ? vb_deadline_earlier(cm, vb_faults_deadline(connections.faults)) : cm;
}

/* With the CM's mutex held. */
static void arm_timer(struct vb_process *p, struct vb_deadline at)
{
	if (at.is_set == p->connections_at.is_set && (!at.is_set || at.at == p->connections_at.at))
		return;
	if (!vb_host_set_timer(p->connections_fd, at))
		vb_process_lose_descriptors(p);
	p->connections_at = at;
}

/* A capture has the MADs that the broker sends and receives for us. It is written first, so that no answer stands
 * before its question. */
static void send_all(struct vb_broker *broker, struct vb_pcap *pcap, const struct vb_cm_outgoing *out, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (pcap)
			vb_pcap_write_mad(pcap, &out[i].path.local, &out[i].path.remote, out[i].mad);
		vb_broker_post_mad(broker, &out[i].path.local, &out[i].path.remote, out[i].mad);
	}
}

EXPORT void vb_connections_unlock(void)
{
	struct vb_cm_outgoing out[SENT_AT_A_TIME];
	struct vb_broker *broker = connections.process->broker;
	struct vb_pcap *pcap = connections.process->pcap;
	unsigned count;

	for (;;) {
		assert(connections.cm);
		tell();
		for (count = 0; count < SENT_AT_A_TIME && vb_cm_next_outgoing(connections.cm, &out[count]);)
			count++;
		arm_timer(connections.process, next_deadline());
		struct vb_later *said = NULL;
		vb_later_take(&connections.unsaid, &said);
		pthread_mutex_unlock(&connections.mutex);
		vb_later_say(said);
		send_all(broker, pcap, out, count);
		if (count < SENT_AT_A_TIME || !vb_connections_lock())
			return;
	}
}

static unsigned copies_of(uint8_t mad[VB_MAD_LENGTH], const struct vb_broker_notice *notice)
{
	struct vb_path path = { .src = notice->gid, .dst = notice->to, .ifindex = notice->scope };

	return connections.faults ? vb_faults_admit(connections.faults, &path, mad, VB_MAD_LENGTH, vb_host_now()) : 1;
}

void vb_connections_receive(const struct vb_broker_notice *notice)
{
	struct vb_cm_path path = { .local = notice->to, .remote = notice->gid, .scope = notice->scope };
	uint8_t mad[VB_MAD_LENGTH]; /* fault injection may damage it */
	struct vb_cm *cm = vb_connections_lock();

	if (!cm)
		return;
	if (connections.process->pcap)
		vb_pcap_write_mad(connections.process->pcap, &notice->gid, &notice->to, notice->mad);
	memcpy(mad, notice->mad, sizeof(mad));
	for (unsigned copies = copies_of(mad, notice); copies > 0; copies--)
		vb_cm_receive(cm, &path, mad, vb_host_now());
	vb_connections_unlock();
}

void vb_connections_undelivered(const struct vb_broker_notice *notice)
{
	struct vb_cm *cm = vb_connections_lock();

	if (!cm)
		return;
	vb_cm_undelivered(cm, &notice->gid, notice->mad, notice->error, vb_host_now());
	vb_connections_unlock();
}

/* Receives MADs that fault injection has held back until now. */
static void receive_held(struct vb_cm *cm)
{
	struct vb_held *held;

	vb_faults_recycle(connections.faults);
	while ((held = vb_faults_release(connections.faults, vb_host_now()))) {
		struct vb_cm_path path = {
			.local = held->path.dst, .remote = held->path.src, .scope = held->path.ifindex
		};
		vb_cm_receive(cm, &path, held->bytes, vb_host_now());
	}
}

void vb_connections_on_timer(void)
{
	struct vb_cm *cm = vb_connections_lock();

	if (!cm)
		return;
	if (connections.faults)
		receive_held(cm);
	vb_cm_advance(cm, vb_host_now());
	vb_connections_unlock();
}

bool vb_connections_counters(struct vb_connections_counts *counts)
{
	if (!our_process())
		return false;
	if (vb_clock_lock(&connections.mutex, vb_clock_ns() + VB_CLOCK_S) != 0)
		return false;
	const bool are_managed = connections.cm;
	if (are_managed)
		vb_cm_counters(connections.cm, counts->cm);
	for (unsigned kind = 0; kind < VB_FAULTS; kind++)
		counts->faults[kind] = connections.faults ? vb_faults_count(connections.faults, kind) : 0;
	pthread_mutex_unlock(&connections.mutex);
	return are_managed;
}

/* ---- Start and stop ---------------------------------------------------------------------------------------------- */

/* The settings have been checked, so this fails for lack of memory alone. */
static int make_faults(void)
{
	const char *text = vb_settings_get()->text[VB_SETTING_FAULTS];
	char why[128];

	if (!vb_settings_get()->packet_faults)
		return 0;
	int rc = vb_faults_parse(text, &connections.faults, why, sizeof(why));
	if (rc == 0)
		vb_faults_be_of_messages(connections.faults);
	return rc;
}

static int create(const struct vb_process *p)
{
	struct vb_cm_config config = { .seed = vb_host_random_seed(),
		.seed_high = vb_host_random_seed(),
		.slot = vb_process_home(p)->slot.number,
		.tells_silence = FIRST_WORD };

	assert(!connections.cm);
	assert(!connections.faults);
	int rc = vb_cm_create(&config, &connections.cm);

	if (rc < 0)
		return rc;
	rc = make_faults();
	if (rc < 0) {
		vb_cm_destroy(connections.cm);
		connections.cm = NULL;
	}
	return rc;
}

EXPORT int vb_connections_start(struct vb_device *device, vb_connections_handler *handler, void *context)
{
	struct vb_process *p = device->process;

	if (p->is_forked)
		return -VB_FORKED_ERRNO;
	if (!vb_progress_has_thread(vb_process_home(p))) {
		vb_log(VB_LOG_ERROR, "VERBENA_PROGRESS=off: connections need the progress thread");
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&connections.mutex);
	int rc = connections.process ? -EBUSY : create(p);
	if (rc == 0) {
		assert(connections.cm);
		connections.handler = handler;
		connections.context = context;
		connections.process = p;
	}
	pthread_mutex_unlock(&connections.mutex);
	return rc;
}

EXPORT void vb_connections_stop(void)
{
	if (!vb_connections_lock())
		return;
	vb_cm_destroy(connections.cm);
	vb_faults_free(connections.faults);
	connections.cm = NULL;
	connections.faults = NULL;
	connections.process = NULL;
	vb_later_say(connections.unsaid);
	connections.unsaid = NULL;
	pthread_mutex_unlock(&connections.mutex);
}

/* In a forked child: all of it is the parent's. Memory is not freed, for another thread of the parent may have been in
 * the middle of a change. */
void vb_connections_forget(void)
{
	pthread_mutex_init(&connections.mutex, NULL);
	connections.process = NULL;
	connections.cm = NULL;
	connections.faults = NULL;
	connections.unsaid = NULL;
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

EXPORT uint32_t vb_connections_device_mtu(struct vb_device *device, const struct vb_gid *gid)
{
	const struct vb_nic *nic = vb_device_nic(device);
	struct vb_gid own;

	for (uint32_t i = 0; i < VB_MAX_GIDS; i++)
		if (vb_nic_get_gid(nic, i, &own) == 0 && vb_gid_equal(&own, gid))
			return vb_nic_get_mtu(nic);
	return 0;
}

EXPORT uint32_t vb_connections_find_mtu(const struct vb_gid *gid)
{
	struct vb_device_info *list;
	size_t count;
	uint32_t mtu = 0;

	if (vb_devices_list(&list, &count) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		for (unsigned j = 0; j < list[i].gid_count; j++)
			if (vb_gid_equal(&list[i].gids[j].gid, gid))
				mtu = list[i].mtu;
	free(list);
	return mtu;
}

/* ---- Ports ------------------------------------------------------------------------------------------------------- */

/* The kernel tells whether an address is this machine's. For a link-local one it would want the interface. */
static int check_address(const struct vb_gid *address)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6 };

	memcpy(&name.sin6_addr, address->raw, sizeof(address->raw));
	if (IN6_IS_ADDR_LINKLOCAL(&name.sin6_addr) || vb_gid_is_zero(address))
		return 0;
	int fd = vb_descriptor_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0; /* no IPv6 here: the broker's word will do */
	int rc = bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ? -errno : 0;
	close(fd);
	return rc == -EADDRNOTAVAIL ? rc : 0;
}

EXPORT int vb_connections_bind(struct vb_binding *binding)
{
	struct vb_process *p = our_process();
	char why[256];

	if (!p)
		return -VB_FORKED_ERRNO;
	int rc = check_address(&binding->address);
	return rc < 0 ? rc : vb_broker_bind(p->broker, binding, why, sizeof(why));
}

/* Most servers print nothing of the kind. */
static void say_listening(const struct vb_binding *binding)
{
	char address[VB_TEXT_GID];

	vb_log(VB_LOG_INFO, "listening at %s, port %u of port space 0x%04x",
		vb_gid_is_zero(&binding->address) ? "any address" : vb_text_gid(&binding->address, address),
		binding->port, binding->port_space);
}

EXPORT int vb_connections_listen(const struct vb_binding *binding)
{
	struct vb_process *p = our_process();
	char why[256];

	if (!p)
		return -VB_FORKED_ERRNO;
	int rc = vb_broker_listen(p->broker, binding, why, sizeof(why));
	if (rc == 0)
		say_listening(binding);
	return rc;
}

EXPORT void vb_connections_accepting(const struct vb_binding *binding)
{
	struct vb_process *p = our_process();

	if (p)
		vb_broker_accepting(p->broker, binding);
}

EXPORT void vb_connections_unbind(const struct vb_binding *binding)
{
	struct vb_process *p = our_process();

	if (p)
		vb_broker_unbind(p->broker, binding);
}
