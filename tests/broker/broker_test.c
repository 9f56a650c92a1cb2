/* The broker with live processes: slots, steering, and every way to die. Runs in a network namespace of its own, as the
 * caller or, given "nobody", as that user (which takes root to set up).
 * Usage: broker_test DIRECTORY_OF_BROKER [nobody] [PATTERN] */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/protocol.h"

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) > 0;
	if (fd >= 0)
		close(fd);
	return is_written;
}

/* A network namespace of our own with lo up; false where that is not allowed. */
static bool enter_namespace(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (uid == 0) {
		if (unshare(CLONE_NEWNET))
			return false;
	} else {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return false;
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		if (!write_file("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", map);
	}
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK | IFF_MULTICAST };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool is_up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return is_up;
}

/* A copy of the broker that every user can run: the build may lie where only root comes, in its home for one. */
static bool copy_for_everyone(char directory[static 4096])
{
	static char copy[] = "/tmp/verbena-broker-test-XXXXXX";
	char command[8400];
	if (!mkdtemp(copy) || chmod(copy, 0755))
		return false;
	snprintf(command, sizeof(command), "cp '%s/" VB_BROKER_PROGRAM "' %s/", directory, copy);
	strcpy(directory, copy);
	return system(command) == 0;
}

/* Goes on in a child; this process stays root and removes the copy, however the tests end. */
static void remove_at_the_end(const char *copy)
{
	char command[4200];
	int status;
	pid_t child = fork();
	if (child == 0)
		return;
	if (child < 0 || waitpid(child, &status, 0) != child)
		status = 1;
	snprintf(command, sizeof(command), "rm -rf '%s'", copy);
	exit(system(command) || !WIFEXITED(status) ? 1 : WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_teardown(name, tear_down),
	const struct CMUnitTest tests[] = { BROKER_TESTS(TEST) };
	static char directory[4096];
	if (argc < 2 || !realpath(argv[1], directory)) {
		fprintf(stderr, "usage: broker_test DIRECTORY_OF_BROKER [nobody] [PATTERN]\n");
		return 2;
	}
	client_libexec = directory;
	bool as_nobody = argc > 2 && strcmp(argv[2], "nobody") == 0;
	if (argc > 2 + as_nobody)
		cmocka_set_test_filter(argv[2 + as_nobody]);
	if (as_nobody && geteuid() != 0) {
		printf("SKIP: becoming nobody needs root\n");
		return 77;
	}
	if (!enter_namespace()) {
		printf("SKIP: no network namespace may be made here (%s)\n", strerror(errno));
		return 77;
	}
	if (geteuid() == 0) {
		if (!copy_for_everyone(directory))
			return 1;
		remove_at_the_end(directory);
	}
	if (as_nobody && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
		return 1;
	char program[4200];
	snprintf(program, sizeof(program), "%s/" VB_BROKER_PROGRAM, directory);
	if (access(program, X_OK)) {
		printf("SKIP: uid %u may not run %s\n", geteuid(), program);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
