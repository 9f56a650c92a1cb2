/* A scenario file as a flat list: what is read, and where what is refused stands. */
#include "../unit.h"
#include <errno.h>
#include "sim/document.h"

static const char *value_of(const struct document *document, const char *path)
{
	for (unsigned i = 0; i < document->count; i++)
		if (strcmp(document->entries[i].path, path) == 0)
			return document->entries[i].value;
	return "absent";
}

static void document__maps_and_lists_become_paths(void **state)
{
	static const char text[] = "network:\n"
				   "  topology: fat-tree   # a comment\n"
				   "  dimensions: [4, 4, 2]\n"
				   "workload:\n"
				   "  - kind: incast\n"
				   "    bytes: 2 MB\n"
				   "  - {kind: poisson}\n"
				   "capture:\n";
	struct document document = { 0 };
	struct document_error error;
	assert_int_equal(document_read(&document, text, strlen(text), &error), 0);
	assert_int_equal(document.count, 6);
	assert_string_equal(value_of(&document, "network.topology"), "fat-tree");
	assert_string_equal(value_of(&document, "network.dimensions"), "4,4,2");
	assert_string_equal(value_of(&document, "workload.0.bytes"), "2 MB");
	assert_string_equal(value_of(&document, "workload.1.kind"), "poisson");
	assert_string_equal(value_of(&document, "capture"), "");
	assert_int_equal(document.entries[0].key_at.line, 2);
	assert_int_equal(document.entries[0].key_at.column, 3);
	assert_int_equal(document.entries[0].value_at.column, 13);
	document_free(&document);
}

static void document__settings_replace_what_is_there(void **state)
{
	struct document document = { 0 };
	struct document_error error;
	assert_int_equal(document_read(&document, "a: 1\nb: 2\n", 10, &error), 0);
	assert_int_equal(document_set(&document, "b", "3", &error), 0);
	assert_int_equal(document_set(&document, "c", "4", &error), 0);
	assert_int_equal(document.count, 3);
	assert_string_equal(value_of(&document, "b"), "3");
	assert_int_equal(document.entries[1].value_at.line, 0);
	document_free(&document);
}

static void document__a_setting_may_be_a_list(void **state)
{
	static const char *const wrong[] = { "[1", "[1]\nb: 2", "[1] 2", "[{a: 1}]", "[*x]", "[[1]]", "[1, {b: 2}]" };
	struct document document = { 0 };
	struct document_error error = { 0 };
	assert_int_equal(document_read(&document, "a: 1\nb: 2\n", 10, &error), 0);
	assert_int_equal(document_set(&document, "b", "[8-15, 0, 2]", &error), 0);
	assert_string_equal(value_of(&document, "b"), "8-15,0,2");
	assert_int_equal(document_set(&document, "b", "[]", &error), 0);
	assert_string_equal(value_of(&document, "b"), "");
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		error = (struct document_error){ .at.line = 1 };
		assert_int_equal(document_set(&document, "a", wrong[i], &error), -EINVAL);
		assert_int_equal(error.at.line, 0);
		if (strncmp(error.text, "a: ", 3) != 0)
			fail_msg("%s: %s", wrong[i], error.text);
		assert_string_equal(value_of(&document, "a"), "1");
	}
	document_free(&document);
}

static void document__what_is_wrong_has_a_place(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *says;
	} wrong[] = {
		{ "", 1, 1, "empty" },
		{ "a: 1\na: 2\n", 2, 1, "twice" },
		{ "a: &x 1\nb: *x\n", 1, 4, "anchors" },
		{ "a: *x\n", 1, 4, "aliases" },
		{ "a: !!int 1\n", 1, 4, "tags" },
		{ "- 1\n", 1, 1, "map" },
		{ "a: 1\n---\nb: 2\n", 2, 1, "another document" },
		{ "a: [1, {b: 2}]\n", 1, 8, "not both" },
		{ "a:\n\tb: 1\n", 2, 1, "YAML" },
		{ "a: [1\n", 2, 1, "YAML" },
		{ "a.b: 1\n", 1, 1, "no key" },
		{ "? [a]\n: 1\n", 1, 3, "word" },
		{ "a: \"x\\ny\"\n", 1, 4, "one line" },
		{ "a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}\n", 1, 32, "deep" },
	};
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		struct document document = { 0 };
		struct document_error error = { 0 };
		assert_int_equal(document_read(&document, wrong[i].text, strlen(wrong[i].text), &error), -EINVAL);
		if (error.at.line != wrong[i].line || error.at.column != wrong[i].column ||
			!strstr(error.text, wrong[i].says))
			fail_msg("%s: %u:%u %s", wrong[i].text, error.at.line, error.at.column, error.text);
		document_free(&document);
	}
}

static void document__size_and_number_are_bounded(void **state)
{
	struct document document = { 0 };
	struct document_error error;
	char *large = malloc(DOCUMENT_MAX_BYTES + 1), *at = large;
	memset(large, ' ', DOCUMENT_MAX_BYTES + 1);
	assert_int_equal(document_read(&document, large, DOCUMENT_MAX_BYTES + 1, &error), -EINVAL);
	for (int i = 0; i < 5000; i++)
		at += sprintf(at, "k%d: 1\n", i);
	assert_int_equal(document_read(&document, large, (size_t)(at - large), &error), -EINVAL);
	assert_int_equal(error.at.line, 4097);
	document_free(&document);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document__maps_and_lists_become_paths),
		cmocka_unit_test(document__settings_replace_what_is_there),
		cmocka_unit_test(document__a_setting_may_be_a_list),
		cmocka_unit_test(document__what_is_wrong_has_a_place),
		cmocka_unit_test(document__size_and_number_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
