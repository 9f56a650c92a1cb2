/* Which paths the preload library shows from the tree beside it. Here "beside" is the test's own directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include "preload/redirect.h"

static void expect_shown(const char *path, const char *tail)
{
	char other[PATH_MAX] = "";
	assert_true(vb_redirect(path, other, sizeof(other)));
	assert_true(strlen(other) > strlen(tail));
	assert_string_equal(other + strlen(other) - strlen(tail), tail);
}

static void expect_left_alone(const char *path)
{
	char other[PATH_MAX];
	assert_false(vb_redirect(path, other, sizeof(other)));
}

static void redirect__shows_the_pci_tree(void **state)
{
	expect_shown("/sys/bus/pci", "/sysfs/bus/pci");
	expect_shown("/sys/bus/pci/devices", "/sysfs/bus/pci/devices");
	expect_shown("/sys/bus/pci/devices/0000:00:01.0/config", "/sysfs/bus/pci/devices/0000:00:01.0/config");
}

static void redirect__leaves_other_paths_alone(void **state)
{
	expect_left_alone("/sys/bus/pcix");
	expect_left_alone("/sys/bus");
	expect_left_alone("/etc/passwd");
	expect_left_alone("sys/bus/pci");
	expect_left_alone("");
	expect_left_alone(NULL);
}

static void redirect__keeps_errno(void **state)
{
	char other[PATH_MAX];
	errno = ENOENT;
	vb_redirect("/sys/bus/pci", other, sizeof(other));
	assert_int_equal(errno, ENOENT);
}

static void redirect__refuses_what_does_not_fit(void **state)
{
	char other[16];
	assert_false(vb_redirect("/sys/bus/pci/devices", other, sizeof(other)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redirect__shows_the_pci_tree),
		cmocka_unit_test(redirect__leaves_other_paths_alone),
		cmocka_unit_test(redirect__keeps_errno),
		cmocka_unit_test(redirect__refuses_what_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
