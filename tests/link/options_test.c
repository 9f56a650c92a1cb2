#include "options.h"
#include "../unit/unit.h"

static struct link_options options;
static char why[256];

/* Words with spaces between them, after the name of the program. */
static bool parse(const char *text)
{
	static char copy[1000];
	static char *argv[64];
	int argc = 0;

	snprintf(copy, sizeof(copy), "link %s", text);
	for (char *rest, *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	argv[argc] = NULL;
	why[0] = 0;
	return link_options_parse(&options, argc, argv, why, sizeof(why));
}

static void options__go_to_line_and_paths_of_both_directions(void **state)
{
	assert_true(parse("--rate 1Gb/s --queue 2MB --delay 50ms --loss 1% --burst 4 --seed 7 -- a -b --c"));
	for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++) {
		assert_int_equal(options.lines[direction].rate, 1000000000);
		assert_int_equal(options.lines[direction].queue, 2000000);
		assert_int_equal(options.faults[direction][0].delay, 50 * VB_MS);
		assert_int_equal(options.faults[direction][0].loss, 10000);
		assert_int_equal(options.faults[direction][0].burst, 4);
		assert_int_equal(options.faults[direction][0].rate, 0);
	}
	assert_int_equal(options.seed, 7);
	assert_string_equal(options.command[0], "a");
	assert_string_equal(options.command[2], "--c");
}

static void options__of_a_direction_or_path_come_after_the_others(void **state)
{
	assert_true(parse(
		"--paths 4 --path 3:loss=20%,rate=10Mb/s --path 2:forward:delay=2ms --backward rate=5Mb/s,loss=3% "
		"--loss 1% --rate 1Gb/s a"));
	assert_int_equal(options.lines[LINK_FORWARD].rate, 1000000000);
	assert_int_equal(options.lines[LINK_BACKWARD].rate, 5000000);
	assert_int_equal(options.faults[LINK_FORWARD][0].loss, 10000);
	assert_int_equal(options.faults[LINK_BACKWARD][0].loss, 30000);
	assert_int_equal(options.faults[LINK_FORWARD][3].loss, 200000);
	assert_int_equal(options.faults[LINK_BACKWARD][3].loss, 200000);
	assert_int_equal(options.faults[LINK_BACKWARD][3].rate, 10000000);
	assert_int_equal(options.faults[LINK_FORWARD][2].delay, 2 * VB_MS);
	assert_int_equal(options.faults[LINK_BACKWARD][2].delay, 0);
}

static void options__that_make_no_sense_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{ "", "no COMMAND" },
		{ "--nosuch a", "--help" },
		{ "--rate", "--help" },
		{ "--rate fast a", "not a rate" },
		{ "--rate 1kb/s a", "not a rate" },
		{ "--loss 101% a", "not a loss" },
		{ "--delay 50 a", "not a delay" },
		{ "--delay 2ms,3ms a", "not a delay" },
		{ "--queue 1MB a", "needs a --rate" },
		{ "--reorder 1% a", "reorder-by" },
		{ "--loss 90% --burst 2 a", "burst / (burst + 1)" },
		{ "--dead-after 2s --alive-after 1s a", "alive-after" },
		{ "--path 1:loss=1% a", "--paths" },
		{ "--paths 65 a", "no number" },
		{ "--paths 2 --path 64:loss=1% a", "no number of a path" },
		{ "--paths 2 --path 1 a", "PATH:ITEMS" },
		{ "--paths 2 --path 1:loss a", "NAME=VALUE" },
		{ "--paths 2 --path 1:lose=1% a", "no fault" },
		{ "--paths 2 --path 1:queue=1MB a", "rate of the path" },
		{ "--seed -1 a", "no seed" },
		{ "--mtu 100 a", "no number" },
		{ "--far-port 80 a", "needs a --far" },
	};
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_false(parse(bad[i].text));
		if (!strstr(why, bad[i].said))
			fail_msg("\"%s\": said \"%s\"", bad[i].text, why);
	}
}

static void options__of_help_need_no_command(void **state)
{
	assert_true(parse("--help"));
	assert_true(options.shows_help);
	assert_true(parse("--hold"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options__go_to_line_and_paths_of_both_directions),
		cmocka_unit_test(options__of_a_direction_or_path_come_after_the_others),
		cmocka_unit_test(options__that_make_no_sense_are_refused_with_the_reason),
		cmocka_unit_test(options__of_help_need_no_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
