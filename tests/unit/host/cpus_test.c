/* A program passes the number of the CPU that it runs on as a completion vector: each must pass. */
#include "../unit.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/lanes/cpus.h"

static unsigned highest_allowed(void)
{
	cpu_set_t set;
	unsigned highest = 0;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		highest = CPU_ISSET(cpu, &set) ? cpu : highest;
	return highest;
}

static void cpus__are_those_that_the_kernel_lists(void **state)
{
	char list[256] = "";
	unsigned last = 0;
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	if (!file || !fgets(list, sizeof(list), file))
		skip();
	fclose(file);
	const char *number = strrchr(list, '-') ? strrchr(list, '-') + 1 : list;
	assert_int_equal(sscanf(number, "%u", &last), 1);
	assert_int_equal(vb_cpus_possible(), last + 1);
	assert_true(vb_cpus_possible() > highest_allowed());
}

/* Where there is neither /sys nor /proc, bound to the highest CPU alone. 2: not allowed. */
static int count_below(const char *root)
{
	unsigned highest = highest_allowed();
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(highest, &set);
	if (chroot(root) || sched_setaffinity(0, sizeof(set), &set))
		return 2;
	return vb_cpus_possible() > highest ? 0 : 1;
}

static void cpus__without_sys_are_at_least_the_allowed(void **state)
{
	char empty[] = "/tmp/cpus-XXXXXX";
	int status;
	assert_non_null(mkdtemp(empty));
	pid_t child = fork();
	if (child == 0)
		_exit(count_below(empty));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rmdir(empty), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus__are_those_that_the_kernel_lists),
		cmocka_unit_test(cpus__without_sys_are_at_least_the_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
