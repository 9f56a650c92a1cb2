/* Whose an entry is, and what is said of names that there are not. */
#include "../unit.h"
#include "sim/variants.h"

static void variant__owns_what_is_below_its_name(void **state)
{
	assert_string_equal(variant_key("variants.fast.transport.mtu"), "transport.mtu");
	assert_string_equal(variant_key("variants.fast"), "");
	assert_null(variant_key("variants"));
	assert_null(variant_key("variant"));
	assert_null(variant_key("transport.mtu"));
	assert_true(variant_owns("variants.fast.transport.mtu", "fast") && variant_owns("variants.fast", "fast"));
	assert_false(variant_owns("variants.faster.transport.mtu", "fast"));
	assert_false(variant_owns("variants.fast.transport.mtu", "faster"));
	assert_false(variant_owns("transport.mtu", "transport"));
}

static void variants__are_said_once_each_with_the_nearest(void **state)
{
	static const char text[] = "variants:\n  dcqcn: {run: {seed: 1}, name: x}\n  hpcc: {name: y}\n  none:\n";
	struct document document = { 0 };
	struct document_error error = { 0 };
	char said[200];
	assert_int_equal(document_read(&document, text, strlen(text), &error), 0);
	assert_true(variant_exists(&document, "none"));
	assert_false(variant_exists(&document, "dcqc"));
	assert_true(variants_say(&document, "dcqc", said, sizeof(said)));
	assert_string_equal(said, "there are dcqcn, hpcc, none; did you mean dcqcn?");
	variants_say(&document, "something else", said, sizeof(said));
	assert_string_equal(said, "there are dcqcn, hpcc, none");
	variants_say(&document, "dcqc", said, 20); /* no more than there is room for */
	assert_string_equal(said, "there are dcqcn, hp");
	document_free(&document);
	assert_false(variants_say(&document, "dcqcn", said, sizeof(said)));
	assert_string_equal(said, "there are none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variant__owns_what_is_below_its_name),
		cmocka_unit_test(variants__are_said_once_each_with_the_nearest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
