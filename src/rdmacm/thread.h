/* Threads of ours in a program that is not. */
#ifndef VB_RDMACM_THREAD_H
#define VB_RDMACM_THREAD_H

#include <pthread.h>
#include <signal.h>

/* It hears no signals: all are the program's. 0 or -errno. */
static inline int vb_start_quiet_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

#endif
