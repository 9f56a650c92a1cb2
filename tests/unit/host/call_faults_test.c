#include <errno.h>
#include "host/call_faults.h"
#include "host/settings.h"
#include "../unit.h"

static struct vb_call_faults faults;
static char why[400];

static void parse(const char *text)
{
	if (vb_call_faults_parse(text, &faults, why, sizeof(why)))
		fail_msg("%s", why);
}

static void parse__takes_calls_events_and_connections(void **state)
{
	parse("verb:ibv_reg_mr:nth=3:ENOMEM,drop=1%,event:port_down:after=2s,cm:reject:nth=2:reason=6,seed=7");
	assert_int_equal(faults.count, 3);
	assert_int_equal(faults.seed, 7);
	assert_int_equal(faults.faults[0].call, VB_CALL_ibv_reg_mr);
	assert_int_equal(faults.faults[0].value, ENOMEM);
	assert_int_equal(faults.faults[0].number, 3);
	assert_true(faults.faults[1].is_event);
	assert_int_equal(faults.faults[1].after, 2 * VB_S);
	assert_int_equal(faults.faults[2].call, VB_CALL_CM_REJECT);
	assert_int_equal(faults.faults[2].value, 6);
}

static void parse__refuses_what_it_does_not_understand(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{ "verb:ibv_regmr:nth=3:ENOMEM", "did you mean ibv_reg_mr?" },
		{ "verb:nothing_of_the_kind:nth=3:ENOMEM", "'verbena run --faults list'" },
		{ "verb:ibv_reg_mr:nth=3:ENOMEN", "did you mean ENOMEM?" },
		{ "verb:ibv_reg_mr:nth=3", "is not verb:NAME:nth=N:ERRNO" },
		{ "verb:ibv_reg_mr:nth=3:ENOMEM:EIO", "is not verb:NAME:nth=N:ERRNO" },
		{ "verb:", "is not verb:NAME:nth=N:ERRNO" },
		{ "verb:ibv_reg_mr:nth=0:ENOMEM", "needs a whole number from 1" },
		{ "verb:ibv_reg_mr:nth=-1:ENOMEM", "needs a whole number from 1" },
		{ "verb:ibv_reg_mr:nth=:ENOMEM", "needs a whole number from 1" },
		{ "verb:ibv_reg_mr:3:ENOMEM", "does not say when" },
		{ "verb:ibv_reg_mr:last=3:ENOMEM", "does not say when" },
		{ "verb:ibv_reg_mr:p=101%:ENOMEM", "needs a chance" },
		{ "verb:ibv_reg_mr:p=0.1:ENOMEM", "needs a chance" },
		{ "event:port_dwn:after=2s", "did you mean port_down?" },
		{ "event:port_down:after=2", "needs a time" },
		{ "event:port_down:nth=2", "needs a time" },
		{ "event:port_down", "is not event:NAME:after=TIME" },
		{ "cm:refuse:nth=1", "is none of cm:reject" },
		{ "cm:timeout:nth=1:reason=3", "is none of cm:reject" },
		{ "cm:disconnect:nth=1:reason=3", "is none of cm:reject" },
		{ "cm:disconnect:1", "does not say when" },
		{ "cm:reject:nth=1:reason=256", "needs a reason" },
		{ "cm:reject:nth=1:28", "needs a reason" },
		{ "verb:ibv_reg_mr:nth=1:"
		  "EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE"
		  "EEEEEEEEEEEEEE",
			"is too long" },
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(vb_call_faults_parse(bad[i].text, &faults, why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].said))
			fail_msg("%s: %s", bad[i].text, why);
	}
}

static void parse__takes_32_faults_and_no_more(void **state)
{
	char text[33 * 32] = "cm:reject:nth=1";

	for (int i = 1; i < 32; i++)
		strcat(text, ",cm:reject:nth=1");
	parse(text);
	assert_int_equal(faults.count, 32);
	strcat(text, ",cm:reject:nth=1");
	assert_int_equal(vb_call_faults_parse(text, &faults, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "one too many"));
}

static void strikes__nth_every_from(void **state)
{
	parse("verb:ibv_reg_mr:nth=3:EIO,verb:ibv_reg_mr:every=3:EIO,verb:ibv_reg_mr:from=3:EIO");
	for (unsigned n = 1; n <= 12; n++) {
		assert_int_equal(vb_call_fault_strikes(&faults, 0, n), n == 3);
		assert_int_equal(vb_call_fault_strikes(&faults, 1, n), n % 3 == 0);
		assert_int_equal(vb_call_fault_strikes(&faults, 2, n), n >= 3);
	}
}

static void strikes__a_chance_is_kept_and_repeats_with_its_seed(void **state)
{
	unsigned counts[2] = { 0 }, same = 0;

	for (unsigned n = 1; n <= 10000; n++) {
		parse("verb:ibv_reg_mr:p=20%:EIO,seed=7");
		const bool first = vb_call_fault_strikes(&faults, 0, n);
		assert_int_equal(vb_call_fault_strikes(&faults, 0, n), first);
		parse("verb:ibv_reg_mr:p=20%:EIO,seed=8000000");
		const bool other = vb_call_fault_strikes(&faults, 0, n);
		counts[0] += first;
		counts[1] += other;
		same += first && other;
	}
	for (int i = 0; i < 2; i++)
		assert_in_range(counts[i], 1800, 2200);
	assert_in_range(same, 300, 500);
}

/* Faults of calls alone leave packets and their path as they are. */
static void settings__faults_of_calls_are_not_of_packets(void **state)
{
	static const struct {
		const char *text;
		bool are_of_packets;
	} cases[] = { { "VERBENA_FAULTS=verb:ibv_reg_mr:nth=1:EIO,seed=7", false }, { "VERBENA_FAULTS=seed=7", true },
		{ "VERBENA_FAULTS=drop=1%,verb:ibv_reg_mr:nth=1:EIO", true }, { "VERBENA_FAULTS=", false } };

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char *environment[] = { (char *)cases[i].text, NULL };
		struct vb_settings settings;
		assert_int_equal(vb_settings_parse(&settings, environment, why, sizeof(why)), 0);
		assert_int_equal(settings.packet_faults, cases[i].are_of_packets);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__takes_calls_events_and_connections),
		cmocka_unit_test(parse__refuses_what_it_does_not_understand),
		cmocka_unit_test(parse__takes_32_faults_and_no_more),
		cmocka_unit_test(strikes__nth_every_from),
		cmocka_unit_test(strikes__a_chance_is_kept_and_repeats_with_its_seed),
		cmocka_unit_test(settings__faults_of_calls_are_not_of_packets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
