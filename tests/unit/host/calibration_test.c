/* That a machine on which nothing can be measured does not hold a process up. Its time is played: a real one is as
 * others leave it to us. */
#include "../unit.h"
#include <pthread.h>
#include <time.h>
#include "local/local.h"
#include "host/peers/calibration.h"

#define STEP 1000000 /* ns, between two looks at the clock */
#define SOME 100     /* looks of what is not tried again and again */

static long looks;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	looks++;
	*now = (struct timespec){ looks / 1000, looks % 1000 * STEP };
	return 0;
}

/* The other thread never gets a core. */
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument)
{
	(void)thread, (void)how, (void)run, (void)argument;
	return 0;
}

int pthread_join(pthread_t thread, void **result)
{
	(void)thread, (void)result;
	return 0;
}

static void measuring__ends_after_a_tenth_of_a_second_though_the_threads_never_meet(void **state)
{
	const long before = looks;
	uint32_t from = vb_pull_pays_from();
	const long taken = looks - before;

	assert_int_equal(from, VB_LOCAL_PART); /* only the longest are pulled */
	assert_in_range(taken, 100, 100 + SOME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measuring__ends_after_a_tenth_of_a_second_though_the_threads_never_meet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
