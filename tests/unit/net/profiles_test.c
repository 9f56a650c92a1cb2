#include "net/profile.h"
#include "../unit.h"

/* A line says where its numbers are from; what is published, in brackets, where. NULL: it does. */
static const char *wrong_with_line(const char *line)
{
	const char *published = strstr(line, "published");
	if (!published && !strstr(line, "measured") && !strstr(line, "assumed"))
		return "does not say where from";
	return published && !strchr(published, '(') && !strstr(published, "the same")
		       ? "does not say where it is published"
		       : NULL;
}

struct number {
	const char *name;
	bool is_there;
};

/* What it is, then lines of which each says where its numbers are from, and each number is in one. NULL: so it is. */
static const char *wrong_with(const char *sources, const struct number *numbers, size_t count, char *why, size_t size)
{
	const char *line = strchr(sources, '\n');
	if (!line || !line[1])
		return "has no sources";
	for (line++; *line; line = strchr(line, '\n') + 1) {
		char text[200];
		size_t length = strcspn(line, "\n");
		if (length >= sizeof(text) || line[length] != '\n')
			return "has a line without an end";
		snprintf(text, sizeof(text), "%.*s", (int)length, line);
		const char *wrong = wrong_with_line(text);
		if (wrong) {
			snprintf(why, size, "\"%s\" %s", text, wrong);
			return why;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (numbers[i].is_there && !strstr(strchr(sources, '\n'), numbers[i].name)) {
			snprintf(why, size, "does not say where %s is from", numbers[i].name);
			return why;
		}
	return NULL;
}

static const char *wrong_with_switch(const struct switch_profile *profile, const char *sources, char *why, size_t size)
{
	const struct class_profile *class = &profile->classes[0];
	const struct number numbers[] = {
		{ "buffer_bytes", profile->buffer_bytes },
		{ "port_bytes", profile->port_bytes },
		{ "cut-through", profile->is_cut_through },
		{ "store and forward", !profile->is_cut_through },
		{ "latency", true },
		{ "pauses", profile->flow_control == FLOW_PFC },
		{ "credits", profile->flow_control == FLOW_CREDITS },
		{ "credit_bytes", profile->credit_bytes },
		{ "reserved_bytes", profile->reserved_bytes },
		{ "headroom_bytes", profile->flow_control == FLOW_PFC },
		{ "resume_offset", profile->resume_offset },
		{ "pause_quanta", profile->pause_quanta },
		{ "watchdog", profile->watchdog },
		{ "alpha", class->alpha != 0 },
		{ "marks", true },
		{ "limit_bytes", class->limit_bytes },
	};
	return wrong_with(sources, numbers, COUNT_OF(numbers), why, size);
}

static const char *wrong_with_nic(const struct nic_profile *profile, const char *sources, char *why, size_t size)
{
	const struct number numbers[] = {
		{ "send", profile->send_latency },
		{ "receive latency", profile->receive_latency },
		{ "pcie_latency", profile->pcie_latency },
		{ "pcie_bits_per_second", profile->pcie_bits_per_second },
		{ "host_latency", strcmp(profile->name, "ideal") != 0 },
	};
	return wrong_with(sources, numbers, COUNT_OF(numbers), why, size);
}

static void profile__without_a_source_is_refused(void **state)
{
	const struct switch_profile profile = { .name = "new", .buffer_bytes = 1 << 20 };
	const struct nic_profile nic = { .name = "new", .pcie_latency = 1 };
	char why[300];
	static const struct {
		const char *sources, *says;
	} wrong[] = {
		{ "A new one.\n", "has no sources" },
		{ "A new one.\nbuffer_bytes 1 MiB\n", "does not say where from" },
		{ "A new one.\nbuffer_bytes 1 MiB: published\n", "does not say where it is published" },
		{ "A new one.\nlatency 0, store and forward, no marks: assumed\n",
			"does not say where buffer_bytes is from" },
		{ "A new one.\nbuffer_bytes 1 MiB: published (its data sheet)\nlatency 0, store and forward: "
		  "measured\n",
			"does not say where marks is from" },
	};
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		const char *says = wrong_with_switch(&profile, wrong[i].sources, why, sizeof(why));
		assert_non_null(says);
		assert_non_null(strstr(says, wrong[i].says));
	}
	assert_null(wrong_with_switch(&profile,
		"A new one.\nbuffer_bytes 1 MiB: published (its data sheet)\n"
		"latency 0, store and forward, no marks: measured\n",
		why, sizeof(why)));
	assert_non_null(wrong_with_nic(&nic, "A new one.\nhost_latency 0: assumed\n", why, sizeof(why)));
}

static void switches__are_found_by_name_and_say_their_sources(void **state)
{
	uint32_t count = 0;
	char why[300];
	for (const char *name; (name = switch_profile_name(count)); count++) {
		const struct switch_profile *profile = switch_profile_find(name);
		assert_non_null(profile);
		assert_string_equal(profile->name, name);
		const char *wrong = wrong_with_switch(profile, switch_profile_sources(count), why, sizeof(why));
		if (wrong)
			fail_msg("%s %s", name, wrong);
	}
	assert_int_equal(count, 5);
	assert_null(switch_profile_sources(count));
	assert_null(switch_profile_find("nexus"));
}

static void nics__are_found_by_name_and_say_their_sources(void **state)
{
	uint32_t count = 0;
	char why[300];
	for (const char *name; (name = nic_profile_name(count)); count++) {
		assert_string_equal(nic_profile_find(name)->name, name);
		const char *wrong =
			wrong_with_nic(nic_profile_find(name), nic_profile_sources(count), why, sizeof(why));
		if (wrong)
			fail_msg("%s %s", name, wrong);
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
	assert_int_equal(profile->marks, MARKS_LEAVING);
	assert_int_equal(profile->keeps, KEEPS_PORTS);
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
		cmocka_unit_test(profile__without_a_source_is_refused),
		cmocka_unit_test(switches__are_found_by_name_and_say_their_sources),
		cmocka_unit_test(nics__are_found_by_name_and_say_their_sources),
		cmocka_unit_test(switches__make_sense),
		cmocka_unit_test(hpcc__is_as_the_reference_runs_have_it),
		cmocka_unit_test(ideal__has_no_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
