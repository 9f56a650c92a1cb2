/* The first process of a PID namespace, as of a container that has no init, leaves no zombie of its broker, and loses
 * no status of its own children. Skipped where no such namespace may be made. The argument is the directory of
 * verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "connected.h"

#define PATIENCE_MS 10000
#define FILES       64

enum { GOOD, NO_NAMESPACE = 9, NO_DEVICE, NO_BROKER, OWN_STATUS_LOST, ZOMBIE, FILE_LOST };

static bool is_able;

static const struct vb_device_sink sink = { NULL, on_port, on_gid_change, NULL };

/* All of them, whatever they send when they end. */
static bool has_children(void)
{
	siginfo_t end;

	return waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

/* It leaves a second after its last client. */
static bool await_broker(void)
{
	for (int ms = 0; ms < PATIENCE_MS && has_children(); ms += 10)
		poll(NULL, 0, 10);
	return !has_children();
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
	return await_broker() ? GOOD : ZOMBIE;
}

static int be_first_and_close_all(void)
{
	struct vb_device *device;
	int files[FILES];

	if (vb_device_open("vb_lo", &sink, &device) < 0)
		return NO_DEVICE;
	syscall(SYS_close_range, 3, ~0u, 0);
	for (unsigned i = 0; i < FILES; i++)
		files[i] = memfd_create("own", MFD_CLOEXEC);
	if (!await_broker())
		return ZOMBIE;
	poll(NULL, 0, 100); /* the reaper's thread is about to end */
	for (unsigned i = 0; i < FILES; i++)
		if (fcntl(files[i], F_GETFD) < 0)
			return FILE_LOST;
	return GOOD;
}

static void run_first(int (*be)(void))
{
	int status;
	if (!is_able)
		skip();
	pid_t outer = fork();
	if (outer == 0) {
		pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
		if (pid == 0)
			_exit(be());
		_exit(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
										      : NO_NAMESPACE);
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		skip();
	assert_int_equal(WEXITSTATUS(status), GOOD);
}

static void first_process__leaves_no_zombie_of_its_broker(void **state)
{
	run_first(be_first);
}

static void first_process__that_closes_all_descriptors_keeps_its_files(void **state)
{
	run_first(be_first_and_close_all);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_process__leaves_no_zombie_of_its_broker),
		cmocka_unit_test(first_process__that_closes_all_descriptors_keeps_its_files),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
