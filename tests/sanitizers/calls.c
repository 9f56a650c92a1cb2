/* Has ThreadSanitizer's two functions and counts their calls: as many releases as posts, and an acquire after a poll
 * that gave something, at the latest. */
#include <stdio.h>

static int releases, acquires;

void __tsan_release(void *address);
void __tsan_acquire(void *address);

void __tsan_release(void *address)
{
	__atomic_add_fetch(&releases, 1, __ATOMIC_SEQ_CST);
}

void __tsan_acquire(void *address)
{
	__atomic_add_fetch(&acquires, 1, __ATOMIC_SEQ_CST);
}

__attribute__((destructor)) static void print(void)
{
	printf("releases %d acquires %d\n", releases, acquires);
}
