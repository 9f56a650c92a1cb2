#include "fabric/profile.h"
#include "../unit.h"

/* What it is, then numbers, of which each line, or the one that goes on from it, says where they are from. */
static void sources_are_said(const char *sources)
{
	const char *line = strchr(sources, '\n');
	assert_non_null(line);
	assert_true(line[1] != 0);
	for (line++; *line; line = strchr(line, '\n') + 1) {
		char text[200];
		size_t length = strcspn(line, "\n");
		assert_true(length < sizeof(text) && line[length] == '\n');
		snprintf(text, sizeof(text), "%.*s", (int)length, line);
		if (!strstr(text, "measured") && !strstr(text, "published") && !strstr(text, "assumed"))
			fail_msg("\"%s\" does not say where from", text);
	}
}

static void switches__are_found_by_name_and_say_their_sources(void **state)
{
	uint32_t count = 0;
	for (const char *name; (name = switch_profile_name(count)); count++) {
		const struct switch_profile *profile = switch_profile_find(name);
		assert_non_null(profile);
		assert_string_equal(profile->name, name);
		sources_are_said(switch_profile_sources(count));
	}
	assert_int_equal(count, 5);
	assert_null(switch_profile_sources(count));
	assert_null(switch_profile_find("nexus"));
}

static void nics__are_found_by_name_and_say_their_sources(void **state)
{
	uint32_t count = 0;
	for (const char *name; (name = nic_profile_name(count)); count++) {
		assert_string_equal(nic_profile_find(name)->name, name);
		sources_are_said(nic_profile_sources(count));
	}
	assert_int_equal(count, 2);
	assert_null(nic_profile_sources(count));
	assert_null(nic_profile_find("nexus"));
}

static void switches__make_sense(void **state)
{
	const char *name;
	for (uint32_t i = 0; (name = switch_profile_name(i)); i++) {
		const struct switch_profile *profile = switch_profile_find(name);
		assert_in_range(profile->class_count, 1, FABRIC_CLASSES);
		for (uint32_t class = 0; class < profile->class_count; class ++) {
			const struct class_profile *of = &profile->classes[class];
			assert_true(of->mark_min <= of->mark_max && of->mark_ppm <= 1000000);
			assert_true(!of->is_lossless || profile->flow_control == FLOW_PFC);
		}
		assert_true(profile->flow_control != FLOW_CREDITS || profile->credit_bytes > 0);
		assert_true(profile->flow_control != FLOW_PFC || profile->buffer_bytes > 0);
	}
}

static void hpcc__is_as_the_reference_runs_have_it(void **state)
{
	const struct switch_profile *profile = switch_profile_find("hpcc");
	assert_int_equal(profile->buffer_bytes, 32 * 1024 * 1024);
	assert_int_equal(profile->flow_control, FLOW_PFC);
	assert_false(profile->is_cut_through);
	for (int class = 0; class < 7; class ++) {
		assert_true(profile->classes[class].is_lossless);
		assert_true(profile->classes[class].alpha == 0.125);
		assert_int_equal(profile->classes[class].mark_min, 400000);
		assert_int_equal(profile->classes[class].mark_max, 1600000);
		assert_int_equal(profile->classes[class].mark_ppm, 200000);
	}
	assert_true(profile->classes[7].is_strict);
	assert_false(profile->classes[7].is_lossless);
}

static void ideal__has_no_bounds(void **state)
{
	const struct switch_profile *profile = switch_profile_find("ideal");
	assert_int_equal(profile->buffer_bytes, 0);
	assert_int_equal(profile->port_bytes, 0);
	assert_int_equal(profile->latency, 0);
	assert_int_equal(profile->flow_control, FLOW_DROPS);
	assert_int_equal(profile->classes[0].mark_max, 0);
	const struct nic_profile *nic = nic_profile_find("ideal");
	assert_int_equal(nic->send_latency + nic->receive_latency + nic->pcie_latency + nic->host_latency, 0);
	assert_int_equal(nic->pcie_bits_per_second, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches__are_found_by_name_and_say_their_sources),
		cmocka_unit_test(nics__are_found_by_name_and_say_their_sources),
		cmocka_unit_test(switches__make_sense),
		cmocka_unit_test(hpcc__is_as_the_reference_runs_have_it),
		cmocka_unit_test(ideal__has_no_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
