/* libverbena-preload.so: _exit() runs no exit handlers, and programs with forked workers end by it. So the library
 * prints its summary here first (VERBENA_STATS=1, host/process.c). exit() and quick_exit() end inside libc, and do not
 * come here. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/hook.h"

static void (*before)(void);

void verbena_before_exit(void (*call)(void));

HOOK void verbena_before_exit(void (*call)(void))
{
	__atomic_store_n(&before, call, __ATOMIC_RELEASE);
}

/* Does not use the loader: in a forked child its lock may be held by a thread that does not exist. */
static _Noreturn void end(int status)
{
	void (*call)(void) = __atomic_load_n(&before, __ATOMIC_ACQUIRE);
	if (call)
		call();
	for (;;)
		syscall(SYS_exit_group, status);
}

HOOK _Noreturn void _exit(int status)
{
	end(status);
}

HOOK _Noreturn void _Exit(int status)
{
	end(status);
}
