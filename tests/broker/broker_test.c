/* The broker with live processes: slots, steering, and every way to die. Each test runs in a process and a network
 * namespace of its own, so that none fails for what another left, as the caller or, given "nobody", as that user (which
 * takes root to set up). Ends with the names of those that failed.
 * Usage: broker_test DIRECTORY_OF_BROKER [nobody] [PATTERN] */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
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

enum { FAILED = 1, SKIPPED = 77 };
#define LIMIT_S 120 /* of one test, of which none takes ten when the machine has nothing else to do */

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

static void remove_copy(const char *copy)
{
	char command[4200];
	snprintf(command, sizeof(command), "rm -rf '%s'", copy);
	if (system(command))
		fprintf(stderr, "%s is not removed\n", copy);
}

/* What a test's process needs, whose end is its end. 0, or what to exit with. */
static int set_up(bool as_nobody)
{
	char program[4200];
	if (!enter_namespace()) {
		printf("SKIP: no network namespace may be made here (%s)\n", strerror(errno));
		return SKIPPED;
	}
	if (as_nobody && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
		return FAILED;
	snprintf(program, sizeof(program), "%s/" VB_BROKER_PROGRAM, client_libexec);
	if (access(program, X_OK)) {
		printf("SKIP: uid %u may not run %s\n", geteuid(), program);
		return SKIPPED;
	}
	return 0;
}

/* In a process of its own, only set up where there is no test. What it exits with, or 128 and the signal that killed
 * it. */
static int run(const struct CMUnitTest *test, bool as_nobody)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(LIMIT_S);
		int rc = set_up(as_nobody);
		if (rc || !test)
			exit(rc);
		const struct CMUnitTest one[] = { *test };
		exit(cmocka_run_group_tests_name(test->name, one, NULL, NULL));
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_all(const char *pattern, bool as_nobody)
{
#define TEST(name) cmocka_unit_test_teardown(name, tear_down),
	const struct CMUnitTest tests[] = { BROKER_TESTS(TEST) };
	enum { ALL = sizeof(tests) / sizeof(tests[0]) };
	int ends[ALL] = { 0 };
	unsigned failed = 0;
	for (unsigned i = 0; i < ALL; i++)
		if (fnmatch(pattern, tests[i].name, 0) == 0)
			failed += (ends[i] = run(&tests[i], as_nobody)) != 0;
	for (unsigned i = 0; i < ALL; i++)
		if (ends[i] > 128)
			printf("FAILED: %s, by signal %d (%s)\n", tests[i].name, ends[i] - 128,
				strsignal(ends[i] - 128));
		else if (ends[i])
			printf("FAILED: %s\n", tests[i].name);
	return failed ? FAILED : 0;
}

int main(int argc, char **argv)
{
	static char directory[4096];
	if (argc < 2 || !realpath(argv[1], directory)) {
		fprintf(stderr, "usage: broker_test DIRECTORY_OF_BROKER [nobody] [PATTERN]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0); /* what is said and what goes wrong, in one order */
	dup2(STDOUT_FILENO, STDERR_FILENO);
	client_libexec = directory;
	bool as_nobody = argc > 2 && strcmp(argv[2], "nobody") == 0;
	bool is_root = geteuid() == 0;
	if (as_nobody && !is_root) {
		printf("SKIP: becoming nobody needs root\n");
		return SKIPPED;
	}
	if (is_root && !copy_for_everyone(directory))
		return FAILED;
	int rc = run(NULL, as_nobody) ?: run_all(argc > 2 + as_nobody ? argv[2 + as_nobody] : "*", as_nobody);
	if (is_root)
		remove_copy(directory);
	return rc;
}
