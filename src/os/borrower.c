/* See borrower.h. */
#include "os/borrower.h"

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

static pid_t owner; /* of this memory; 0: too early to know */

static void be_owner(void)
{
	owner = getpid();
}

/* vfork() runs no handlers of fork(). */
__attribute__((constructor)) static void watch_forks(void)
{
	be_owner();
	pthread_atfork(NULL, NULL, be_owner);
}

bool vb_is_borrower(void)
{
	return owner && getpid() != owner;
}
