/* See helper.h. */
#include "base/invariant.h"
#include "host/client/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/client/start.h"
#include "host/settings.h"

#define GO_BETWEEN_STACK 65536

extern char **environ;

/* clone() by the name that sanitizers of programs do not take: they would treat their own thread as a forked child.
 * musl has no other than the usual. */
#ifdef __GLIBC__
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
#else
#define __clone clone
#endif

/* ---- Finding the program ----------------------------------------------------------------------------------------- */

static bool is_program(char path[VB_HELPER_PATH], const char *directory, const char *below, const char *name)
{
	struct stat status;
	int length = snprintf(path, VB_HELPER_PATH, "%s/%s%s", directory, below, name);
	return length > 0 && length < VB_HELPER_PATH && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The loader knows only the name of a program that was found by PATH. */
static const char *place_of(const Dl_info *object)
{
	return strchr(object->dli_fname, '/') ? object->dli_fname : "/proc/self/exe";
}

/* Beside the library this code is in: installed, or in the build tree. */
int vb_helper_find(const char *name, const char *libexec, char path[VB_HELPER_PATH], char *why, size_t why_size)
{
	static const char *const places[] = { "verbena/", "", "../broker/", "../src/broker/", "../libexec/verbena/",
		"../../libexec/verbena/" };
	Dl_info here;
	char real[VB_HELPER_PATH];
	if (libexec && *libexec) {
		if (is_program(path, libexec, "", name))
			return 0;
		return vb_broker_fail(ENOENT, why, why_size, "no %s in VERBENA_LIBEXEC=%s", name, libexec);
	}
	if (!dladdr((void *)(uintptr_t)vb_helper_find, &here) || !here.dli_fname || !realpath(place_of(&here), real))
		return vb_broker_fail(ENOENT, why, why_size,
			"cannot tell where the library lies; set VERBENA_LIBEXEC to the "
			"directory of %s",
			name);
	char *slash = strrchr(real, '/');
	if (slash)
		*slash = 0;
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (is_program(path, real, places[i], name))
			return 0;
	return vb_broker_fail(ENOENT, why, why_size,
		"%s not found beside the library in %s; reinstall, or set "
		"VERBENA_LIBEXEC to its directory",
		name, real);
}

/* ---- Running it -------------------------------------------------------------------------------------------------- */

/* The environment without the loader's variables: a helper may outlive us and needs no preloads. In secure execution
 * the environment is another user's, and the helper gets none of it. */
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
	char **arguments;
	char **environment;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attributes;
	int error; /* an errno, or 0 */
};

/* Runs the program and waits until it has left us, which it does at once. */
static int run_errand(void *argument)
{
	struct errand *errand = argument;
	pid_t pid;
	errand->error = posix_spawn(
		&pid, errand->path, errand->actions, errand->attributes, errand->arguments, errand->environment);
	while (!errand->error && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* The program must not meet a child that it knows nothing of: not in wait(), and not by a SIGCHLD. So a helper is the
 * child of a go-between, which has no exit signal, so that wait() passes it over. The go-between borrows our memory
 * while this thread stands still, as vfork's child does; it handles no signal of the program's, nor a cancellation of
 * the thread. */
static void run_unseen(struct errand *errand)
{
	/* Not of the allocator: tools that look for leaks would see it lost in the go-between. */
	char *stack =
		mmap(NULL, GO_BETWEEN_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	int cancelled_before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled_before);
	pid_t pid = stack != MAP_FAILED ? __clone(run_errand, stack + GO_BETWEEN_STACK, CLONE_VM | CLONE_VFORK, errand)
					: -1;
	if (pid < 0)
		run_errand(errand); /* emulators know no such clone: better a child that is seen than none */
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_setcancelstate(cancelled_before, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (stack != MAP_FAILED)
		munmap(stack, GO_BETWEEN_STACK);
}

/* All memory is allocated before the go-between runs, in which an allocator may not work. */
int vb_helper_run(const char *path, char **arguments, int given)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	struct errand errand = { path, arguments, clean_environment(), &actions, &attributes, 0 };
	if (!errand.environment)
		return ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, given, 3);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	run_unseen(&errand);
	assert(errand.error >= 0);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(errand.environment);
	return errand.error;
}
