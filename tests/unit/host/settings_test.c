/* Settings: what is accepted, what is refused and what the refusal says. */
#include "../unit.h"
#include <errno.h>
#include "host/settings.h"

static struct vb_settings settings;
static char why[1024];

static int parse_one(const char *entry)
{
	char *environment[] = { (char *)"PATH=/bin", (char *)entry, NULL };

	why[0] = '\0';
	return vb_settings_parse(&settings, environment, why, sizeof(why));
}

static void parse__nothing_gives_the_defaults(void **state)
{
	assert_int_equal(parse_one("HOME=/"), 0);
	assert_int_equal(settings.receive_buffer, 4194304);
	assert_int_equal(settings.part_id, 1);
	assert_int_equal(settings.log, VB_LOG_WARN);
	assert_false(settings.stats || settings.local_off || settings.trains_off || settings.broker_any ||
		     settings.progress_off);
	assert_string_equal(settings.text[VB_SETTING_DEVICES], "all");
	assert_string_equal(settings.text[VB_SETTING_PCAP], "");
	assert_false(settings.is_given[VB_SETTING_DEVICES]);
	assert_null(settings.cc.algorithm);
}

static void parse__good_values_are_taken(void **state)
{
	char *environment[] = { (char *)"VERBENA_STATS=1", (char *)"VERBENA_LOCAL=off", (char *)"VERBENA_TRAINS=off",
		(char *)"VERBENA_BROKER=any", (char *)"VERBENA_PROGRESS=off", (char *)"VERBENA_RCVBUF=65536",
		(char *)"VERBENA_PART_ID=4294967295", (char *)"VERBENA_LOG=debug",
		(char *)"VERBENA_PCAP=/tmp/a.%p.pcap", (char *)"VERBENA_DEVICES=lo,vb_eth0",
		(char *)"VERBENA_LIBEXEC=/usr/lib", (char *)"VERBENA_FAULTS=drop=1%,seed=7", (char *)"VERBENA_STATS=0",
		(char *)"VERBENA_CC=none", NULL };

	assert_int_equal(vb_settings_parse(&settings, environment, why, sizeof(why)), 0);
	assert_true(settings.stats && settings.local_off && settings.trains_off && settings.broker_any &&
		    settings.progress_off);
	assert_int_equal(settings.receive_buffer, 65536);
	assert_int_equal(settings.part_id, 4294967295u);
	assert_int_equal(settings.log, VB_LOG_DEBUG);
	assert_string_equal(settings.text[VB_SETTING_DEVICES], "lo,vb_eth0");
	assert_true(settings.is_given[VB_SETTING_FAULTS]);
	assert_ptr_equal(settings.cc.algorithm, &vb_cc_none);
}

static void parse__one_path_is_never_left(void **state)
{
	static const struct {
		const char *entry;
		uint32_t paths;
		bool fails_over;
	} cases[] = { { "HOME=/", 1, true }, { "VERBENA_PATHS=auto", 1, true }, { "VERBENA_PATHS=1", 1, false },
		{ "VERBENA_PATHS=8", 8, true } };

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(parse_one(cases[i].entry), 0);
		assert_int_equal(settings.paths, cases[i].paths);
		assert_int_equal(settings.fails_over, cases[i].fails_over);
	}
}

static void parse__empty_is_as_if_unset(void **state)
{
	assert_int_equal(parse_one("VERBENA_RCVBUF="), 0);
	assert_int_equal(settings.receive_buffer, 4194304);
	assert_false(settings.is_given[VB_SETTING_RCVBUF]);
}

static void parse__bad_values_say_what_is_allowed(void **state)
{
	static const char *const bad[][2] = {
		{ "VERBENA_STATS=yes", "0|1" },
		{ "VERBENA_LOCAL=on", "auto|off" },
		{ "VERBENA_RCVBUF=65535", "65536 .. 1073741824" },
		{ "VERBENA_RCVBUF=1073741825", "65536 .. 1073741824" },
		{ "VERBENA_RCVBUF=4M", "65536 .. 1073741824" },
		{ "VERBENA_RCVBUF=99999999999999999999999", "65536 .. 1073741824" },
		{ "VERBENA_PART_ID=-1", "0 .. 4294967295" },
		{ "VERBENA_PART_ID=4294967296", "0 .. 4294967295" },
		{ "VERBENA_LOG=loud", "error|warn|info|debug" },
		{ "VERBENA_DEVICES=lo,,eth0", "comma-separated" },
		{ "VERBENA_DEVICES=,", "comma-separated" },
		{ "VERBENA_DEVICES=a b", "comma-separated" },
		{ "VERBENA_PCAP=a%d", "%p" },
		{ "VERBENA_PCAP=a%", "%p" },
		{ "VERBENA_LIBEXEC=lib", "directory" },
		{ "VERBENA_FAULTS=drop=200%", "drop=P" },
		{ "VERBENA_PROGRESS=on", "thread|off" },
		{ "VERBENA_CC=bbr", "there is no congestion control \"bbr\"; there are none, window" },
		{ "VERBENA_CC=window,size=3", "window has no parameter \"size\"" },
		{ "VERBENA_CC=hpcc", "it is for simulations" },
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(parse_one(bad[i][0]), -EINVAL);
		assert_non_null(strstr(why, bad[i][1]));
		assert_non_null(strstr(why, "VERBENA_"));
	}
}

static void parse__unknown_names_are_refused(void **state)
{
	assert_int_equal(parse_one("VERBENA_TRIANS=off"), -EINVAL);
	assert_non_null(strstr(why, "VERBENA_TRIANS"));
	assert_non_null(strstr(why, "VERBENA_TRAINS"));
	assert_int_equal(parse_one("VERBENA_=1"), -EINVAL);
	assert_int_equal(parse_one("VERBENA=1"), 0); /* not of ours */
}

static void parse__a_refusal_changes_nothing(void **state)
{
	memset(&settings, 0x5a, sizeof(settings));
	struct vb_settings before = settings;
	assert_int_equal(parse_one("VERBENA_STATS=2"), -EINVAL);
	assert_memory_equal(&settings, &before, sizeof(before));
}

static void parse__why_is_never_overrun(void **state)
{
	char small[16];
	char *environment[] = { (char *)"VERBENA_STATS=a value that is longer than the room for the answer", NULL };

	memset(small, 'x', sizeof(small));
	assert_int_equal(vb_settings_parse(&settings, environment, small, 8), -EINVAL);
	assert_int_equal(strlen(small), 7);
	assert_int_equal(small[8], 'x');
}

static char ignored[400];

static int parse_secure(char *const *environment)
{
	why[0] = '\0';
	return vb_settings_parse_secure(&settings, environment, ignored, sizeof(ignored), why, sizeof(why));
}

static void parse_secure__obeys_five_and_lists_the_others(void **state)
{
	char *environment[] = { (char *)"VERBENA_LIBEXEC=/tmp/mine", (char *)"VERBENA_DEVICES=lo",
		(char *)"VERBENA_LOCAL=off", (char *)"VERBENA_PCAP=/etc/passwd", (char *)"VERBENA_LANES=2",
		(char *)"VERBENA_STATS=1", (char *)"VERBENA_STATS_JSON=/etc/passwd", (char *)"VERBENA_LOG=info",
		(char *)"VERBENA_BROKER=any", (char *)"VERBENA_FAULTS=not understood", (char *)"VERBENA_MAP=registered",
		(char *)"VERBENA_CC=none", (char *)"VERBENA_RCVBUF=65536", (char *)"VERBENA_PROGRESS=off",
		(char *)"VERBENA_UNKNOWN=1", NULL };

	assert_int_equal(parse_secure(environment), 0);
	assert_true(settings.local_off && settings.stats);
	assert_int_equal(settings.lanes, 2);
	assert_int_equal(settings.log, VB_LOG_INFO);
	assert_string_equal(settings.text[VB_SETTING_DEVICES], "lo");
	assert_false(settings.broker_any || settings.map_registered || settings.progress_off);
	assert_string_equal(settings.text[VB_SETTING_LIBEXEC], "");
	assert_string_equal(settings.text[VB_SETTING_PCAP], "");
	assert_string_equal(settings.text[VB_SETTING_STATS_JSON], "");
	assert_string_equal(settings.text[VB_SETTING_FAULTS], "");
	assert_int_equal(settings.receive_buffer, 4194304);
	assert_string_equal(ignored, "VERBENA_LIBEXEC, VERBENA_PCAP, VERBENA_STATS_JSON, VERBENA_BROKER, "
				     "VERBENA_FAULTS, VERBENA_MAP, VERBENA_CC, "
				     "VERBENA_RCVBUF, VERBENA_PROGRESS, VERBENA_UNKNOWN");
}

static void parse_secure__still_refuses_what_it_does_not_understand(void **state)
{
	char *environment[] = { (char *)"VERBENA_STATS=yes", NULL };

	assert_int_equal(parse_secure(environment), -EINVAL);
	assert_non_null(strstr(why, "0|1"));
	assert_string_equal(ignored, "");
}

/* The names are another user's. */
static void parse_secure__lists_no_more_than_fits(void **state)
{
	static char long_name[8192] = "VERBENA_";
	char *environment[] = { long_name, (char *)"VERBENA_PCAP=a", NULL };

	memset(long_name + 8, 'X', sizeof(long_name) - 9);
	assert_int_equal(parse_secure(environment), 0);
	assert_string_equal(ignored, "VERBENA_PCAP");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__nothing_gives_the_defaults),
		cmocka_unit_test(parse__good_values_are_taken),
		cmocka_unit_test(parse__one_path_is_never_left),
		cmocka_unit_test(parse__empty_is_as_if_unset),
		cmocka_unit_test(parse__bad_values_say_what_is_allowed),
		cmocka_unit_test(parse__unknown_names_are_refused),
		cmocka_unit_test(parse__a_refusal_changes_nothing),
		cmocka_unit_test(parse__why_is_never_overrun),
		cmocka_unit_test(parse_secure__obeys_five_and_lists_the_others),
		cmocka_unit_test(parse_secure__still_refuses_what_it_does_not_understand),
		cmocka_unit_test(parse_secure__lists_no_more_than_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
