/* The first process of a PID namespace, as of a container that has no init, leaves no zombie of its broker, and loses no status
 * of its own children. Skipped where no such namespace may be made. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "connected.h"

#define PATIENCE_MS 10000

enum { GOOD, NO_DEVICE = 10, NO_BROKER, OWN_STATUS_LOST, ZOMBIE };

static bool is_able;

static const struct vb_device_sink sink = { NULL, on_port, on_gid_change, NULL };

/* All of them, whatever they send when they end. */
static bool has_children(void)
{
	siginfo_t end;

	return waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

static int be_first(void)
{
	struct vb_device *device;
	int status;

	pid_t own = fork();
	if (own == 0)
		_exit(7);
	if (vb_device_open("vb_lo", &sink, &device) < 0)
		return NO_DEVICE;
	if (waitpid(own, &status, 0) != own || WEXITSTATUS(status) != 7)
		return OWN_STATUS_LOST;
	if (!has_children())
		return NO_BROKER;
	vb_device_close(device);
	for (int ms = 0; ms < PATIENCE_MS && has_children(); ms += 10) /* the broker leaves a second later */
		poll(NULL, 0, 10);
	return has_children() ? ZOMBIE : GOOD;
}

static void first_process__leaves_no_zombie_of_its_broker(void **state)
{
	int status;
	if (!is_able)
		skip();
	pid_t pid = fork();
	if (pid == 0)
		_exit(be_first());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), GOOD);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_process__leaves_no_zombie_of_its_broker),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	is_able = argc > 1 && own_namespace() && unshare(CLONE_NEWPID) == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
