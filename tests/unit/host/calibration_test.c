/* What is measured of the machine, and that a machine on which it cannot be measured is not held up by that. */
#include "../unit.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine/local.h"
#include "host/calibration.h"

#define OTHERS 40
#define MOST_TURNS 14 /* on the core; it takes one to five, and without a bound 24 */

static void stay_on_one_core(void)
{
	cpu_set_t mine, one;

	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &mine))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static pid_t child_that_spins(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned i = 0;; i++)
			;
	}
	return child;
}

/* How often this process had to give the core away. */
static long turns(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void measuring__ends_though_many_want_the_core(void **state)
{
	pid_t others[OTHERS];

	stay_on_one_core();
	for (unsigned i = 0; i < OTHERS; i++)
		others[i] = child_that_spins();
	const long began = turns();
	uint32_t from = vb_pull_pays_from();
	const long taken = turns() - began;
	for (unsigned i = 0; i < OTHERS; i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	assert_in_range(from, 16384, VB_LOCAL_PART + 1);
	assert_in_range(taken, 0, MOST_TURNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measuring__ends_though_many_want_the_core),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
