/* How often it is told how far a run is. */
#include "../unit.h"
#include <string.h>
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

/* The part of a line before the time. */
static void told(struct progress *progress, char *text, size_t size)
{
	const struct fabric_progress now = { .now = VB_US, .operations = 3, .wall_s = 1 };
	FILE *file = tmpfile();
	int kept = dup(STDERR_FILENO);

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	progress_tell(progress, &now);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(file);
	assert_non_null(fgets(text, (int)size, file));
	fclose(file);
	*strstr(text, "1 us") = 0;
}

static void progress__names_the_row_and_its_check(void **state)
{
	struct progress progress = { .every_s = 1, .unit = "flow" };
	char text[200];

	told(&progress, text, sizeof(text));
	assert_string_equal(text, "");
	progress = (struct progress){ .every_s = 1, .unit = "flow", .row = 2, .rows = 9 };
	told(&progress, text, sizeof(text));
	assert_string_equal(text, "row 2 of 9: ");
	progress_begin_check(&progress);
	told(&progress, text, sizeof(text));
	assert_string_equal(text, "row 2 of 9: the check: ");
}

static void progress__is_told_as_often_as_is_wanted(void **state)
{
	assert_int_equal(lines_of(60), 5);
	assert_int_equal(lines_of(1), 300);
	assert_int_equal(lines_of(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress__is_told_as_often_as_is_wanted),
		cmocka_unit_test(progress__names_the_row_and_its_check),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
