/* See runner.h. */
#include "runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) ||                 \
	HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
size_t __sanitizer_get_current_allocated_bytes(void);
#else
#define SANITIZED 0
#endif

#define SKIPPED      77
#define CASE_SECONDS (SANITIZED ? 120 : 40)

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

void fail(const char *file, int line, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s:%d: %s\n", file, line, text);
	abort();
}

void skip(const char *why)
{
	printf("  skipped: %s\n", why);
	fflush(stdout);
	_exit(SKIPPED);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return is_written;
}

/* A network namespace of our own with lo up, and so a broker of our own; false where that is not allowed. */
static bool enter_namespace(void)
{
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "%u %u 1", geteuid(), geteuid());
	snprintf(gid_map, sizeof(gid_map), "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWNET)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return false;
		write_file("/proc/self/setgroups", "deny");
		if (!write_file("/proc/self/uid_map", uid_map) || !write_file("/proc/self/gid_map", gid_map))
			return false;
	}
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK | IFF_MULTICAST };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return is_up;
}

/* The exit status of one case in a process of its own. */
static int run_case(const struct test_case *test)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(CASE_SECONDS);
		test->run();
		exit(0); /* with the handlers of exit: the library has some, and so have the sanitizers */
	}
	REQUIRE(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		REQUIRE(errno == EINTR);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("  ended by signal %d%s\n", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": took too long" : "");
	return 128 + WTERMSIG(status);
}

int run_cases(int argc, char **argv, const struct test_case *cases, size_t count)
{
	unsigned passed = 0, failed = 0, skipped = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!enter_namespace()) {
		printf("SKIP: no network namespace may be made here (%s)\n", strerror(errno));
		return SKIPPED;
	}
	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		printf("%s\n", cases[i].name);
		double began = seconds_now();
		int status = run_case(&cases[i]);
		passed += status == 0;
		skipped += status == SKIPPED;
		failed += status != 0 && status != SKIPPED;
		printf("  %s, %.2f s\n",
			status == 0         ? "ok"
			: status == SKIPPED ? "skipped"
					    : "FAILED",
			seconds_now() - began);
	}
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}

/* ---- A second process -------------------------------------------------------------------------------------------- */

struct peer peer_start(const char *role)
{
	struct peer peer;
	int ends[2];
	char number[16];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	peer.pid = fork();
	if (peer.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(CASE_SECONDS);
		fcntl(ends[1], F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", ends[1]);
		execl("/proc/self/exe", "peer", role, number, (char *)NULL);
		_exit(127);
	}
	REQUIRE(peer.pid > 0);
	close(ends[1]);
	peer.socket = ends[0];
	return peer;
}

int peer_socket(int argc, char **argv, const char *role)
{
	return argc == 3 && strcmp(argv[0], "peer") == 0 && strcmp(argv[1], role) == 0 ? atoi(argv[2]) : -1;
}

void peer_send(int socket, const void *bytes, size_t length)
{
	REQUIRE_EQUAL(send(socket, bytes, length, MSG_NOSIGNAL), length);
}

void peer_receive(int socket, void *bytes, size_t length)
{
	ssize_t got = recv(socket, bytes, length, MSG_WAITALL);

	if (got == 0)
		exit(0); /* the other side is done with us */
	REQUIRE_EQUAL(got, length);
}

/* ---- Time, threads, what a process holds ------------------------------------------------------------------------- */

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double seconds_now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double cpu_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

void sleep_ms(unsigned ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&left, &left) < 0)
		;
}

unsigned count_fds(void)
{
	unsigned count = 0;
	DIR *directory = opendir("/proc/self/fd");

	REQUIRE(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count - 1; /* the directory's own */
}

size_t heap_bytes(void)
{
#if SANITIZED
	return __sanitizer_get_current_allocated_bytes();
#else
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
#endif
}

bool is_sanitized(void)
{
	return SANITIZED;
}

bool is_over_the_wire(void)
{
	const char *local = getenv("VERBENA_LOCAL");

	return local && strcmp(local, "off") == 0;
}

pthread_t thread_start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	REQUIRE_EQUAL(pthread_create(&thread, NULL, run, argument), 0);
	return thread;
}

void thread_join(pthread_t thread)
{
	REQUIRE_EQUAL(pthread_join(thread, NULL), 0);
}

uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}
