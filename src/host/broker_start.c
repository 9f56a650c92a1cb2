/* Starts a broker: finds its program beside the library, and runs it so that the program which needed it never notices.
 * broker.c decides who of several starts one. */
#include "host/broker_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "host/protocol.h"
#include "host/settings.h"

#define PATIENCE_MS	 10000 /* for a broker to say that it listens */
#define MAX_PATH	 4096
#define GO_BETWEEN_STACK 65536

extern char **environ;

/* clone() by the name that sanitizers of programs do not take: they would treat their own thread as a forked child. musl
 * has no other than the usual. */
#ifdef __GLIBC__
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
#else
#define __clone clone
#endif

int64_t vb_broker_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int vb_broker_fail(int error, char *why, size_t why_size, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (why_size)
		vsnprintf(why, why_size, format, arguments);
	va_end(arguments);
	return -error;
}

/* ---- Finding the program --------------------------------------------------------------------------------------- */

static bool is_program(char *path, size_t size, const char *directory, const char *below)
{
	struct stat status;
	int length = snprintf(path, size, "%s/%s" VB_BROKER_PROGRAM, directory, below);
	return length > 0 && (size_t)length < size && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Of a program that was found by PATH the loader knows no more than its name. */
static const char *place_of(const Dl_info *object)
{
	return strchr(object->dli_fname, '/') ? object->dli_fname : "/proc/self/exe";
}

/* Beside the library this code is in: installed, or in the build tree. */
static int find_program(const char *libexec, char *path, size_t size, char *why, size_t why_size)
{
	static const char *const places[] = { "verbena/", "", "../broker/", "../src/broker/", "../libexec/verbena/",
		"../../libexec/verbena/" };
	Dl_info here;
	char real[MAX_PATH];
	if (libexec && *libexec) {
		if (is_program(path, size, libexec, ""))
			return 0;
		return vb_broker_fail(ENOENT, why, why_size, "no " VB_BROKER_PROGRAM " in VERBENA_LIBEXEC=%s", libexec);
	}
	if (!dladdr((void *)(uintptr_t)vb_broker_start, &here) || !here.dli_fname || !realpath(place_of(&here), real))
		return vb_broker_fail(ENOENT, why, why_size, "cannot tell where the library lies; set VERBENA_LIBEXEC to the "
			"directory of " VB_BROKER_PROGRAM);
	char *slash = strrchr(real, '/');
	if (slash)
		*slash = 0;
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (is_program(path, size, real, places[i]))
			return 0;
	return vb_broker_fail(ENOENT, why, why_size, VB_BROKER_PROGRAM " not found beside the library in %s; reinstall, or set "
		"VERBENA_LIBEXEC to its directory", real);
}

/* ---- Running it ------------------------------------------------------------------------------------------------ */

/* The environment without the loader's variables: the broker outlives us and needs nobody's preloads. In secure execution it
 * is another user's, and the broker gets none of it. */
static char **clean_environment(void)
{
	size_t count = 0, kept = 0;
	while (environ && environ[count])
		count++;
	char **clean = calloc(count + 1, sizeof(*clean));
	for (size_t i = 0; clean && i < count && !vb_settings_are_secure(); i++)
		if (strncmp(environ[i], "LD_", 3) != 0)
			clean[kept++] = environ[i];
	return clean;
}

struct errand {
	const char *path;
	char **environment;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attributes;
	int error; /* errno's kind of number */
};

/* Runs the program and waits until it has left us, which it does at once. */
static int run_errand(void *argument)
{
	char *arguments[] = { (char *)VB_BROKER_PROGRAM, (char *)"--report-fd=3", NULL };
	struct errand *errand = argument;
	pid_t pid;
	errand->error = posix_spawn(&pid, errand->path, errand->actions, errand->attributes, arguments, errand->environment);
	while (!errand->error && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* The program must not meet a child that it knows nothing of: not in wait(), and not by a SIGCHLD. So the broker is the
 * child of a go-between, which has no exit signal, for which wait() passes it over. It borrows our memory while we stand
 * still, as vfork's child does; no signal of the program's is handled in it, nor a cancellation of the thread. */
static void run_unseen(struct errand *errand)
{
	char *stack = malloc(GO_BETWEEN_STACK);
	sigset_t all, before;
	int cancelled_before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled_before);
	pid_t pid = stack ? __clone(run_errand, stack + GO_BETWEEN_STACK, CLONE_VM | CLONE_VFORK, errand) : -1;
	if (pid < 0)
		run_errand(errand); /* emulators, for one, know no such clone: rather seen than not started */
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_setcancelstate(cancelled_before, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(stack);
}

/* Everything that takes memory is made before the go-between, in which an allocator may be out of its depth. */
static int spawn(const char *path, int report)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	struct errand errand = { path, clean_environment(), &actions, &attributes, 0 };
	if (!errand.environment)
		return ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, report, 3);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	run_unseen(&errand);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(errand.environment);
	return errand.error;
}

/* All that was said on report until its end, or until patience ends. */
static void read_report(int report, char *text, size_t size)
{
	size_t length = 0;
	int64_t until = vb_broker_now_ms() + PATIENCE_MS;
	struct pollfd wait = { .fd = report, .events = POLLIN };
	while (length < size - 1 && vb_broker_now_ms() < until) {
		if (poll(&wait, 1, (int)(until - vb_broker_now_ms())) <= 0)
			continue;
		ssize_t got = read(report, text + length, size - 1 - length);
		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	text[length] = 0;
}

/* Returns when a broker listens, ours or another that was quicker; or why there is none. */
int vb_broker_start(const char *libexec, char *why, size_t why_size)
{
	char path[MAX_PATH], text[VB_BROKER_WHY_SIZE + 1];
	int report[2];
	int rc = find_program(libexec, path, sizeof(path), why, why_size);
	if (rc)
		return rc;
	if (pipe2(report, O_CLOEXEC))
		return vb_broker_fail(errno, why, why_size, "cannot start the broker: %s", strerror(errno));
	int error = spawn(path, report[1]);
	close(report[1]);
	if (error) {
		close(report[0]);
		return vb_broker_fail(error, why, why_size, "cannot run %s: %s; where programs may not be started, start the "
			"broker beforehand", path, strerror(error));
	}
	read_report(report[0], text, sizeof(text));
	close(report[0]);
	if (strcmp(text, VB_BROKER_READY) == 0 || !*text)
		return 0; /* silent: it died, or was made to; connecting tells */
	return vb_broker_fail(EADDRINUSE, why, why_size, "%s", text);
}
