/* Reading files on behalf of drivers, whose buffers are of many sizes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fixture.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static char directory[] = "/tmp/vb-sysfs-XXXXXX";

static int setup(void **state)
{
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/entry", directory);
	return unlink(path) || rmdir(directory);
}

static void write_entry(const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/entry", directory);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void entry__is_read_without_its_newline(void **state)
{
	char text[8] = "xxxxxxx";

	write_entry("4A\n");
	assert_int_equal(ibv_read_sysfs_file(directory, "entry", text, sizeof(text)), 2);
	assert_string_equal(text, "4A");
	assert_int_equal(ibv_read_sysfs_file(directory, "entry", text, 3), 2);
	write_entry("4A");
	assert_int_equal(ibv_read_sysfs_file(directory, "entry", text, 3), 2);
	assert_string_equal(text, "4A");
	write_entry("");
	assert_int_equal(ibv_read_sysfs_file(directory, "entry", text, 3), 0);
}

/* With what ends it as a string. */
static void entry__that_does_not_fit_is_an_error(void **state)
{
	char text[4] = "xxx";

	write_entry("4A\n");
	assert_int_equal(ibv_read_sysfs_file(directory, "entry", text, 2), -1);
	assert_int_equal(text[2], 'x');
	assert_int_equal(ibv_read_sysfs_file(directory, "missing", text, 3), -1);
	assert_int_equal(errno, ENOENT);
	static char deep[5000];
	memset(deep, 'd', sizeof(deep) - 1);
	assert_int_equal(ibv_read_sysfs_file(deep, "entry", text, 3), -1);
	assert_int_equal(errno, ENAMETOOLONG);
}

static void path__is_the_environments_without_slashes_behind_it(void **state)
{
	assert_int_equal(setenv("SYSFS_PATH", "/tmp/sys//", 1), 0);
	assert_string_equal(ibv_get_sysfs_path(), "/tmp/sys");
	assert_int_equal(setenv("SYSFS_PATH", "/elsewhere", 1), 0);
	assert_string_equal(ibv_get_sysfs_path(), "/tmp/sys"); /* asked for once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry__is_read_without_its_newline),
		cmocka_unit_test(entry__that_does_not_fit_is_an_error),
		cmocka_unit_test(path__is_the_environments_without_slashes_behind_it),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
