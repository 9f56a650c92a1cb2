/* Threads of ours in a program that is not. */
#ifndef VB_OS_THREAD_H
#define VB_OS_THREAD_H

#include <pthread.h>
#include <signal.h>

/* It hears no signals: all are the program's. 0 or -errno. */
static inline int vb_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

#endif
