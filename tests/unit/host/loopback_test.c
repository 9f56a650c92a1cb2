/* Loopback is down, as in a fresh network namespace: what is said of it, once. Skipped where no namespace may be made;
 * the argument is the directory of verbena-broker. */
#include "../unit.h"
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "connected.h"
#include "host/connections.h"
#include "host/devices/loopback.h"

#define CURE        "cure: sudo ip link set lo up\n"
#define PATIENCE_MS 5000

static const char *directory;
static const struct vb_gid here = { { [10] = 0xff, 0xff, 127, 0, 0, 1 } },
			   elsewhere = { { [10] = 0xff, 0xff, 192, 0, 2, 1 } };

static bool own_namespace(void)
{
	return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

static void set_loopback(bool is_up)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = is_up ? IFF_UP | IFF_RUNNING : 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
}

/* What a process of its own says, in a namespace of its own. */
static bool run(void (*act)(void), char *text, size_t size)
{
	int status, said = memfd_create("said", MFD_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0) {
		if (!own_namespace())
			_exit(77);
		dup2(said, STDERR_FILENO);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ssize_t length = pread(said, text, size - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	close(said);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return false;
	assert_int_equal(status, 0);
	return true;
}

static void list_twice(void)
{
	struct vb_device_info *list;
	size_t count;

	for (int i = 0; i < 2; i++) {
		if (vb_devices_list(&list, &count) < 0 || count)
			_exit(1);
		free(list);
	}
}

static void look_for_routes(void)
{
	vb_connections_explain_route(&elsewhere);
	vb_connections_explain_route(&here);
	vb_connections_explain_route(&here);
}

static void on_event(const struct vb_event *event) {}

/* It goes down under a QP that wants to reach this host by the wire. */
static void lose_it(void)
{
	static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };
	struct vb_device *device;
	struct vb_pd *pd;
	struct vb_cq *cq;

	set_loopback(true);
	if (vb_device_open("vb_lo", &sink, &device) < 0 || vb_pd_create(vb_device_nic(device), &pd) < 0 ||
		vb_cq_create(vb_device_nic(device), &(struct vb_cq_config){ .capacity = 4 }, &cq) < 0)
		_exit(1);
	struct vb_qp *qp = connected_on(
		device, pd, cq, (struct vb_qp_attr){ .dest_qpn = 0xFA0002, .timeout = 10, .retry_cnt = 1 });
	set_loopback(false);
	vb_sq_begin(qp);
	vb_sq_put(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE });
	vb_sq_end(qp, true);
	vb_host_lane_kick(vb_device_host_lane(device));
	for (int ms = 0; ms < PATIENCE_MS && vb_cq_is_empty(cq); ms++)
		usleep(1000);
	usleep(50000);
}

static void require_once(const char *text, const char *words)
{
	const char *first = strstr(text, words);

	if (!first)
		print_message("%s", text);
	assert_non_null(first);
	assert_null(strstr(first + 1, words));
	assert_non_null(strstr(first, CURE));
}

static void no_device__is_said_once_with_the_cure(void **state)
{
	char text[4096];
	if (!run(list_twice, text, sizeof(text)))
		skip();
	require_once(text, "there is no device: no network interface is up and has an address; ");
}

static void route__that_is_missing_on_this_host_is_said_once(void **state)
{
	char text[4096];
	if (!run(look_for_routes, text, sizeof(text)))
		skip();
	require_once(text, "the loopback interface is down, and what stays on this host needs it; ");
}

static void peer_on_this_host__that_is_silent_for_it_is_explained(void **state)
{
	char text[4096];
	if (!directory || !run(lose_it, text, sizeof(text)))
		skip();
	require_once(text, "the loopback interface is down, and what stays on this host needs it; ");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_device__is_said_once_with_the_cure),
		cmocka_unit_test(route__that_is_missing_on_this_host_is_said_once),
		cmocka_unit_test(peer_on_this_host__that_is_silent_for_it_is_explained),
	};

	directory = argc > 1 ? argv[1] : NULL;
	if (directory)
		setenv("VERBENA_LIBEXEC", directory, 1);
	setenv("VERBENA_LOCAL", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
