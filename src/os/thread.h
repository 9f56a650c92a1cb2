/* The library's threads in somebody else's program. */
#ifndef VB_OS_THREAD_H
#define VB_OS_THREAD_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* True while the process never had a second thread. Only glibc has it. */
extern char vb_libc_single_threaded __asm__("__libc_single_threaded") __attribute__((weak));

/* The kernel's table of descriptors grows as it fills. Once threads share it each growth waits for an RCU grace
 * period, 10 ms and more, in whichever call of the program needs the descriptor. So it grows before there is a thread,
 * while that costs nothing. */
static inline void vb_thread_make_room_for_descriptors(void)
{
	enum { ENOUGH = 4096 };
	struct rlimit limit;

	if (!&vb_libc_single_threaded || !vb_libc_single_threaded || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	int last = limit.rlim_cur < ENOUGH ? (int)limit.rlim_cur - 1 : ENOUGH - 1;
	int any = eventfd(0, EFD_CLOEXEC);
	int high = fcntl(any, F_DUPFD_CLOEXEC, last);
	if (high >= 0)
		close(high);
	if (any >= 0)
		close(any);
}

/* Starts a thread that blocks all signals: they are the program's. 0 or -errno. */
static inline int vb_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;

	vb_thread_make_room_for_descriptors();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

#endif
