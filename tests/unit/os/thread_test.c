/* Threads of ours, in a program that had none. */
#include "../unit.h"
#include <semaphore.h>
#include "os/thread.h"

enum { MANY = 500 };

/* How many descriptors the kernel's table has room for. */
static unsigned table_size(void)
{
	char line[256];
	unsigned size = 0;
	FILE *status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "FDSize: %u", &size);
	if (status)
		fclose(status);
	return size;
}

static void *wait_for(void *semaphore)
{
	while (sem_wait(semaphore))
		;
	return NULL;
}

/* Each growth that threads have to wait for costs the program 10 ms or more. */
static void thread__leaves_the_table_of_descriptors_large_enough(void **state)
{
	struct rlimit limit;
	int fds[MANY];
	pthread_t thread;
	sem_t end;
	if (!&vb_libc_single_threaded || !vb_libc_single_threaded || !table_size() ||
		getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < MANY + 20)
		skip();
	sem_init(&end, 0, 0);
	assert_int_equal(vb_thread_start(&thread, wait_for, &end), 0);
	unsigned size = table_size();
	for (int i = 0; i < MANY; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(table_size(), size);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	sem_post(&end);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(thread__leaves_the_table_of_descriptors_large_enough) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
