/* An algorithm and its parameters, as people write them; and what holds of all their tables. */
#include "cc/choice.h"
#include "../unit.h"
#include <errno.h>

static void refused(const char *text, const char *says)
{
	struct vb_cc_choice choice;
	char why[400];
	assert_int_equal(vb_cc_choose(text, &choice, why, sizeof(why)), -EINVAL);
	if (!strstr(why, says))
		fail_msg("'%s' says: %s", text, why);
}

static void choice__of_a_name_has_the_defaults(void **state)
{
	for (unsigned i = 0; vb_cc_algorithms[i]; i++) {
		const struct vb_cc_algorithm *algorithm = vb_cc_algorithms[i];
		struct vb_cc_choice choice;
		char why[400];
		assert_int_equal(vb_cc_choose(algorithm->name, &choice, why, sizeof(why)), 0);
		assert_ptr_equal(choice.algorithm, algorithm);
		for (unsigned j = 0; j < algorithm->parameter_count; j++)
			assert_int_equal(choice.values[j], algorithm->parameters[j].preset);
	}
}

static void choice__that_is_none_says_which_there_are(void **state)
{
	refused("", "there is no congestion control \"\"; there are none, window");
	refused("windw", "did you mean window?");
	refused("bbr, x=1", "no congestion control \"bbr\"");
	refused("window,", "write NAME=VALUE");
	refused("window, first", "\"first\" is no parameter with a value");
	refused("window, first=1", "window has no parameter \"first\"; it has none at all");
	char long_name[300];
	memset(long_name, 'a', sizeof(long_name));
	long_name[299] = 0;
	refused(long_name, "there is no congestion control \"aaaa");
	memcpy(long_name, "window,", 7);
	refused(long_name, "is no parameter with a value");
}

/* Where a way's length is known, a time may be that. */
static void choice__of_the_path_is_for_simulations(void **state)
{
	static const char *const texts[] = { "hpcc, rtt=path", "dctcp,rtt=path", "swift, base-target=path" };
	struct vb_cc_choice choice;
	char why[400];
	for (unsigned i = 0; i < 3; i++) {
		unsigned paths = 0;
		assert_int_equal(vb_cc_choose(texts[i], &choice, why, sizeof(why)), 0);
		for (unsigned j = 0; j < choice.algorithm->parameter_count; j++)
			paths += choice.values[j] == VB_CC_PATH;
		assert_int_equal(paths, 1);
		assert_int_equal(vb_cc_choose_live(texts[i], &choice, why, sizeof(why)), -EINVAL);
	}
	assert_non_null(strstr(why, "base-target=path is for simulations"));
	refused("timely, min-rtt=path", "is not what min-rtt of timely needs");
	refused("swift, per-hop=path", "is not what per-hop of swift needs");
	refused("hpcc, rtt=pth", ", or path");
}

static void choice__cuts_no_character_of_what_it_repeats(void **state)
{
	char text[200] = "";
	for (unsigned i = 0; i < 60; i++) /* one at each place of both bytes */
		strcat(text, "\u00fc");
	refused(text, "\u00fc\"; there are");
	refused(text + 1, "\"; there are");
	memcpy(text, "dcqcn,a", 7);
	refused(text, "\u00fc...\" is no parameter");
	memcpy(text, "dcqcn,", 6);
	text[6] = 'a', text[7] = 'b';
	refused(text, "\u00fc...\" is no parameter");
}

/* Rates become bytes a second, and nothing is not what was written. */
static void choice__of_less_than_a_byte_a_second_is_refused(void **state)
{
	struct vb_cc_choice choice;
	char why[400];
	refused("hpcc, min-rate=0.001k", "too small for hpcc");
	refused("hpcc, wai=0.007k", "too small for hpcc");
	for (unsigned i = 0; vb_cc_algorithms[i]; i++)
		for (unsigned j = 0; j < vb_cc_algorithms[i]->parameter_count; j++) {
			const struct vb_cc_parameter *parameter = &vb_cc_algorithms[i]->parameters[j];
			char text[100];
			if (parameter->kind != VB_QUANTITY_RATE)
				continue;
			snprintf(text, sizeof(text), "%s, %s=0.007k", vb_cc_algorithms[i]->name, parameter->name);
			refused(text, "too small");
			snprintf(text, sizeof(text), "%s, %s=0", vb_cc_algorithms[i]->name, parameter->name);
			assert_int_equal(vb_cc_choose(text, &choice, why, sizeof(why)), parameter->least ? -EINVAL : 0);
		}
	assert_int_equal(vb_cc_choose("hpcc, min-rate=0.008k", &choice, why, sizeof(why)), 0);
}

static void choice__says_no_more_than_there_is_room_for(void **state)
{
	struct vb_cc_choice choice;
	char why[8];
	for (unsigned size = 0; size <= sizeof(why); size++) {
		memset(why, 'x', sizeof(why));
		assert_int_equal(vb_cc_choose("nobody", &choice, why, size), -EINVAL);
		for (unsigned i = size; i < sizeof(why); i++)
			assert_int_equal(why[i], 'x');
	}
}

static void choice__that_needs_telemetry_is_refused_where_there_is_none(void **state)
{
	struct vb_cc_choice choice = { 0 };
	char why[400];
	assert_int_equal(vb_cc_choose_live("hpcc, eta=90%", &choice, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "hpcc goes by what switches tell of their queues"));
	assert_null(choice.algorithm);
	assert_int_equal(vb_cc_choose_live("nobody", &choice, why, sizeof(why)), -EINVAL);
	assert_int_equal(vb_cc_choose_live("window", &choice, why, sizeof(why)), 0);
	assert_ptr_equal(choice.algorithm, &vb_cc_window);
}

static void choice__of_a_live_process_has_its_own_defaults(void **state)
{
	struct vb_cc_choice choice, simulated;
	char why[400];
	assert_int_equal(vb_cc_choose("swift", &simulated, why, sizeof(why)), 0);
	assert_int_equal(vb_cc_choose_live("swift, ai=0.5, above-least=0", &choice, why, sizeof(why)), 0);
	for (unsigned i = 0; i < vb_cc_swift.parameter_count; i++) {
		const struct vb_cc_parameter *parameter = &vb_cc_swift.parameters[i];
		assert_int_equal(simulated.values[i], parameter->preset);
		if (strcmp(parameter->name, "ai") == 0)
			assert_int_equal(choice.values[i], VB_GAIN_ONE / 2);
		else if (strcmp(parameter->name, "above-least") == 0)
			assert_int_equal(choice.values[i], 0);
		else if (strcmp(parameter->name, "base-target") == 0)
			assert_int_equal(choice.values[i], VB_MS);
		else
			assert_int_equal(choice.values[i], parameter->live ? parameter->live : parameter->preset);
	}
}

static void parameters__are_within_their_own_bounds_and_explained(void **state)
{
	for (unsigned i = 0; vb_cc_algorithms[i]; i++) {
		const struct vb_cc_algorithm *algorithm = vb_cc_algorithms[i];
		assert_true(algorithm->parameter_count <= VB_CC_PARAMETERS_MAX);
		assert_true(strlen(algorithm->help) > 10);
		for (unsigned j = 0; j < algorithm->parameter_count; j++) {
			const struct vb_cc_parameter *parameter = &algorithm->parameters[j];
			assert_true(parameter->least <= parameter->preset && parameter->preset <= parameter->most);
			assert_true(!parameter->live ||
				    (parameter->least <= parameter->live && parameter->live <= parameter->most));
			assert_true(strlen(parameter->name) < 32 && strlen(parameter->help) > 10);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choice__of_a_name_has_the_defaults),
		cmocka_unit_test(choice__that_is_none_says_which_there_are),
		cmocka_unit_test(choice__of_the_path_is_for_simulations),
		cmocka_unit_test(choice__cuts_no_character_of_what_it_repeats),
		cmocka_unit_test(choice__of_less_than_a_byte_a_second_is_refused),
		cmocka_unit_test(choice__says_no_more_than_there_is_room_for),
		cmocka_unit_test(choice__that_needs_telemetry_is_refused_where_there_is_none),
		cmocka_unit_test(choice__of_a_live_process_has_its_own_defaults),
		cmocka_unit_test(parameters__are_within_their_own_bounds_and_explained),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
