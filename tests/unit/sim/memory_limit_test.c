/* How much memory there is, by /proc and /sys as containers have them. */
#include "../unit.h"
#include <sys/stat.h>
#include <unistd.h>
#include "sim/memory_limit.h"

static char root[] = "/tmp/verbena-root-XXXXXX";

static int set_up(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[100];
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void put(const char *name, const char *text)
{
	char path[300];
	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(path, 0700);
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void limit__is_the_least_of_machine_and_groups(void **state)
{
	assert_true(memory_limit(root) == UINT64_MAX);
	put("/proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\n");
	assert_true(memory_limit(root) == 24000000ull * 1024);

	put("/proc/self/cgroup", "0::/pod/one\n"); /* version 2 */
	put("/sys/fs/cgroup/pod/one/memory.max", "max\n");
	assert_true(memory_limit(root) == 24000000ull * 1024);
	put("/sys/fs/cgroup/pod/memory.max", "4000000000\n"); /* of what it is in */
	assert_true(memory_limit(root) == 4000000000);
	put("/sys/fs/cgroup/pod/one/memory.max", "3000000000\n");
	assert_true(memory_limit(root) == 3000000000);

	put("/proc/self/cgroup", "9:cpu:/\n4:memory:/docker/of-the-host\n0::/\n"); /* version 1, of another namespace */
	assert_true(memory_limit(root) == 24000000ull * 1024);
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
	assert_true(memory_limit(root) == 2000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(limit__is_the_least_of_machine_and_groups) };
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
