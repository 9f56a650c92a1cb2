/* libverbena-preload.so: _exit() runs no handlers, and programs whose workers are forked end by it. Here the library
 * says what it has to say first (VERBENA_STATS=1, host/process.c). exit() and quick_exit() end inside libc, not
 * here. */
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

/* No look into the loader from here: in the child of a fork its lock may be nobody's. */
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
