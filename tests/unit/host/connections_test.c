/* Connections over loopback with a real broker: both ends are this process, each MAD travels by UDP. In a network
 * namespace of the test's own; skipped where none may be made. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/bytes.h"
#include "host/connections.h"
#include "host/host.h"
#include "wire/mad.h"

#define PATIENCE_S 20
#define MANY       300

static char capture[] = "/tmp/verbena-connections-XXXXXX";

static struct vb_device *device;
static struct vb_gid address;
static bool is_able;
static pthread_mutex_t seen_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t seen_change = PTHREAD_COND_INITIALIZER;
static unsigned seen[VB_CM_EVENT_SIDR_TIMEOUT + 1];
static uint16_t last_reason;
static struct vb_cm_id *passive[MANY];
static bool accepts;

static void on_event(const struct vb_event *event) {}

static void on_port(void *user, bool is_active) {}

static void on_gid_change(void *user) {}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

/* What a program would do with an event, at once. */
static void react(const struct vb_cm_event *event)
{
	const struct vb_cm_rep rep = { .qpn = 0x2000 + seen[VB_CM_EVENT_REQUEST] };

	switch (event->kind) {
	case VB_CM_EVENT_REQUEST:
		passive[seen[VB_CM_EVENT_REQUEST] % MANY] = event->id;
		if (accepts)
			assert_int_equal(vb_cm_accept(event->id, &rep, vb_connections_now()), 0);
		break;
	case VB_CM_EVENT_REPLY:
		assert_int_equal(vb_cm_confirm(event->id, "hello", 5, vb_connections_now()), 0);
		break;
	case VB_CM_EVENT_DISCONNECT:
		assert_int_equal(vb_cm_disconnect(event->id, NULL, 0, vb_connections_now()), 0);
		break;
	case VB_CM_EVENT_REJECTED:
		last_reason = event->message.rej.reason;
		break;
	default:
		break;
	}
}

static void on_cm_event(void *context, const struct vb_cm_event *event)
{
	pthread_mutex_lock(&seen_mutex);
	react(event);
	seen[event->kind]++;
	pthread_cond_broadcast(&seen_change);
	pthread_mutex_unlock(&seen_mutex);
}

static void await(enum vb_cm_event_kind kind, unsigned count)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&seen_mutex);
	while (seen[kind] < count && rc == 0)
		rc = pthread_cond_timedwait(&seen_change, &seen_mutex, &until);
	assert_int_equal(seen[kind], count);
	pthread_mutex_unlock(&seen_mutex);
}

static int open_all(void **state)
{
	if (!is_able)
		skip();
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	assert_int_equal(vb_connections_start(device, on_cm_event, NULL), 0);
	memset(seen, 0, sizeof(seen));
	accepts = true;
	address = vb_gid_from_ipv4(127, 0, 0, 1);
	return 0;
}

static int close_all(void **state)
{
	if (!is_able)
		return 0;
	vb_connections_stop();
	vb_device_close(device);
	return 0;
}

static struct vb_binding listen_somewhere(struct vb_cm_id **listener)
{
	struct vb_binding binding = { .port_space = VB_CM_PS_TCP, .address = address };

	assert_int_equal(vb_connections_bind(&binding), 0);
	assert_true(binding.port > 0);
	struct vb_cm *cm = vb_connections_lock();
	assert_non_null(cm);
	*listener = vb_cm_id_create(cm, NULL);
	assert_int_equal(vb_cm_listen(*listener, vb_cm_service_id(VB_CM_PS_TCP, binding.port), &address), 0);
	vb_connections_unlock();
	assert_int_equal(vb_connections_listen(&binding), 0);
	return binding;
}

static struct vb_cm_id *connect_to(uint16_t port, uint32_t qpn)
{
	struct vb_cm_path path = { .local = address, .remote = address };
	struct vb_cm_req req = { .service_id = vb_cm_service_id(VB_CM_PS_TCP, port),
		.qpn = qpn,
		.remote_timeout = 18,
		.local_timeout = 18,
		.max_cm_retries = 15,
		.path_mtu = 5,
		.ca_guid = 1,
		.primary = { .local = address, .remote = address, .ack_timeout = 14 } };
	struct vb_cm *cm = vb_connections_lock();
	struct vb_cm_id *id = vb_cm_id_create(cm, NULL);

	assert_int_equal(vb_cm_connect(id, &path, &req, vb_connections_now()), 0);
	vb_connections_unlock();
	return id;
}

static void destroy(struct vb_cm_id *id)
{
	assert_non_null(vb_connections_lock());
	vb_cm_id_destroy(id, vb_connections_now());
	vb_connections_unlock();
}

static void connect__reaches_the_listener_and_ends(void **state)
{
	struct vb_cm_id *listener;
	struct vb_binding binding = listen_somewhere(&listener);
	struct vb_cm_id *active = connect_to(binding.port, 0x111);
	await(VB_CM_EVENT_ESTABLISHED, 1);
	assert_non_null(vb_connections_lock());
	assert_int_equal(vb_cm_disconnect(active, NULL, 0, vb_connections_now()), 0);
	vb_connections_unlock();
	await(VB_CM_EVENT_DISCONNECTED, 1);
	destroy(active);
	destroy(passive[0]);
	destroy(listener);
	vb_connections_unbind(&binding);
}

static void connect__to_nobody_is_rejected(void **state)
{
	struct vb_cm_id *active = connect_to(1, 0x111);
	await(VB_CM_EVENT_REJECTED, 1);
	assert_int_equal(last_reason, VB_CM_REJ_INVALID_SERVICE_ID);
	destroy(active);
}

static void connect__many_at_once(void **state)
{
	static struct vb_cm_id *active[MANY];
	struct vb_cm_id *listener;
	struct vb_binding binding = listen_somewhere(&listener);
	for (uint32_t i = 0; i < MANY; i++)
		active[i] = connect_to(binding.port, 0x1000 + i);
	await(VB_CM_EVENT_ESTABLISHED, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		destroy(active[i]);
	await(VB_CM_EVENT_DISCONNECT, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		destroy(passive[i]);
	destroy(listener);
	vb_connections_unbind(&binding);
}

static void bind__is_unique(void **state)
{
	struct vb_binding one = { .port_space = VB_CM_PS_TCP, .address = address, .port = 7471 }, two = one;
	struct vb_binding all = { .port_space = VB_CM_PS_TCP, .port = 7471 };
	struct vb_binding foreign = {
		.port_space = VB_CM_PS_TCP, .address = vb_gid_from_ipv4(192, 0, 2, 77), .port = 7471
	};
	assert_int_equal(vb_connections_bind(&one), 0);
	assert_int_equal(vb_connections_bind(&two), -EADDRNOTAVAIL); /* loopback counts as all addresses */
	assert_int_equal(vb_connections_bind(&foreign), -EADDRNOTAVAIL);
	assert_int_equal(vb_connections_bind(&all), -EADDRNOTAVAIL);
	vb_connections_unbind(&one);
	assert_int_equal(vb_connections_bind(&two), 0);
	vb_connections_unbind(&two);
}

/* How many messages of the CM of that attribute the capture has. Records: 16 bytes, then IPv4, UDP, BTH, DETH, MAD. */
static unsigned captured(uint16_t attribute)
{
	enum { FIRST_BLOCKS = 28 + 32, BEFORE_PACKET = 28, PACKET = 6, BEFORE_MAD = 20 + 8 + 12 + 8 };
	uint32_t block[BEFORE_PACKET / 4], length; /* of which the last is the packet's, and the second the block's */
	uint8_t packet[BEFORE_MAD + VB_MAD_LENGTH + 4];
	struct vb_mad_header mad;
	unsigned found = 0;
	FILE *file = fopen(capture, "re");

	assert_non_null(file);
	assert_int_equal(fseek(file, FIRST_BLOCKS, SEEK_SET), 0);
	while (fread(block, sizeof(block), 1, file) == 1) {
		assert_int_equal(block[0], PACKET);
		assert_int_equal(block[6], sizeof(packet));
		assert_int_equal(fread(packet, sizeof(packet), 1, file), 1);
		assert_int_equal(fread(&length, sizeof(length), 1, file), 1);
		assert_int_equal(length, block[1]);
		vb_mad_header_decode(&mad, packet + BEFORE_MAD);
		assert_int_equal(mad.mgmt_class, VB_MAD_CLASS_CM);
		assert_int_equal(vb_load_be16(packet + 22), 4791);
		found += mad.attribute_id == attribute;
	}
	fclose(file);
	return found;
}

static void capture__has_each_message_sent_and_received(void **state)
{
	enum { REQ = 0x10, REJ = 0x12, REP = 0x13, RTU = 0x14, DREQ = 0x15, DREP = 0x16 };

	connect__reaches_the_listener_and_ends(state);
	assert_in_range(captured(REQ), 2, 20); /* either end is this process; what was late was sent again */
	assert_in_range(captured(REP), 2, 20);
	assert_in_range(captured(RTU), 2, 20);
	assert_in_range(captured(DREQ), 2, 20);
	assert_in_range(captured(DREP), 2, 20);
	assert_int_equal(captured(REJ), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(bind__is_unique),
		TEST(connect__to_nobody_is_rejected),
		TEST(connect__reaches_the_listener_and_ends),
		TEST(connect__many_at_once),
		TEST(capture__has_each_message_sent_and_received),
	};
	alarm(120);
	is_able = argc > 1 && own_namespace();
	if (is_able)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	close(mkstemp(capture));
	setenv("VERBENA_PCAP", capture, 1);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(capture);
	return failed;
}
