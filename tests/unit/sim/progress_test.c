/* How often it is told how far a run is. */
#include "../unit.h"
#include <unistd.h>
#include "sim/progress.h"

/* Lines on standard error in five minutes of a run that asks each second. */
static unsigned lines_of(unsigned every_s)
{
	struct progress progress = { .every_s = every_s, .packets = 1000, .unit = "flow" };
	FILE *file = tmpfile();
	unsigned lines = 0;
	int kept = dup(STDERR_FILENO);

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	progress_start(&progress);
	for (unsigned second = 1; second <= 300; second++) {
		struct fabric_progress now = {
			.now = second * VB_US, .data_packets = second, .operations = 3, .wall_s = 1.001 * second
		};
		progress_tell(&progress, &now);
	}
	progress_end(&progress);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(file);
	for (int c; (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static void progress__is_told_as_often_as_is_wanted(void **state)
{
	assert_int_equal(lines_of(60), 5);
	assert_int_equal(lines_of(1), 300);
	assert_int_equal(lines_of(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(progress__is_told_as_often_as_is_wanted) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
