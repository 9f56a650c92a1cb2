/* Dimensions of ranks: their text, their sizes, and their groups. */
#include <errno.h>
#include "net/dimensions.h"
#include "../unit.h"

enum { MOST = 64 };

static struct dimensions dimensions;
static char why[400];

static void parse(const char *text, uint32_t ranks)
{
	if (dimensions_parse(&dimensions, text, why, sizeof(why)) ||
		dimensions_complete(&dimensions, ranks, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
}

static struct dimensions_named name(const char *text)
{
	struct dimensions_named named;
	if (dimensions_name(&dimensions, text, &named, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return named;
}

static void text__has_names_and_sizes(void **state)
{
	parse("  tp=8,cp = 1, dp , pp=2 ", 64);
	assert_int_equal(dimensions.count, 4);
	assert_string_equal(dimensions.of[2].name, "dp");
	assert_int_equal(dimensions.of[2].size, 4);
	assert_int_equal(dimensions_ranks(&dimensions), 64);
	parse("tp=2", 64); /* others are idle */
	assert_int_equal(dimensions_ranks(&dimensions), 2);
}

static void expect_refused(const char *text, uint32_t ranks, const char *part)
{
	why[0] = 0;
	int error = dimensions_parse(&dimensions, text, why, sizeof(why));
	if (!error)
		error = dimensions_complete(&dimensions, ranks, why, sizeof(why));
	assert_int_equal(error, -EINVAL);
	if (!strstr(why, part))
		fail_msg("%s: %s, without %s", text, why, part);
}

static void what_makes_no_sense__is_refused_with_a_cure(void **state)
{
	expect_refused("", 64, "write tp=8, dp=4");
	expect_refused("TP=8", 64, "small letters");
	expect_refused("tp=8,", 64, "small letters");
	expect_refused("averylongname=8", 64, "1 to 11");
	expect_refused("tp=8; dp=4", 64, "';' stands behind a dimension");
	expect_refused("tp=0", 64, "such as tp=8");
	expect_refused("tp=-1", 64, "such as tp=8");
	expect_refused("tp=99999999999999999999", 64, "such as tp=8");
	expect_refused("tp=2, tp=4", 64, "tp is there twice");
	expect_refused("tp, dp", 64, "only one dimension");
	expect_refused("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", 64, "more than 8");
	expect_refused("tp=8, dp=16", 64, "128 ranks, and the network has 64");
	expect_refused("tp=1000000000, dp=1000000000, pp=1000000000", 64, "the network has 64");
	expect_refused("tp=5, dp", 64, "write dp=12 to leave 4 ranks idle");
}

static void expect_name_refused(const char *text, const char *part)
{
	struct dimensions_named named;
	assert_int_equal(dimensions_name(&dimensions, text, &named, why, sizeof(why)), -EINVAL);
	if (!strstr(why, part))
		fail_msg("%s: %s, without %s", text, why, part);
}

static void names__are_known_and_there_once(void **state)
{
	parse("tp=2, dp=3", 6);
	expect_name_refused("pp", "'pp' is no dimension of ranks.dimensions");
	expect_name_refused("tp-", "'' is no dimension");
	expect_name_refused("", "'' is no dimension");
	expect_name_refused("tp-tp", "tp is there twice");
	expect_name_refused("dp-tpp", "'tpp' is no dimension");
}

/* Megatron's example of 16 ranks (parallel_state.py): tp 2, pp 4, so dp 2, in the order tp-dp-pp. */
static void groups__are_those_of_megatron(void **state)
{
	static const uint32_t tensor[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
			      data[] = { 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15 },
			      pipeline[] = { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 },
			      model[] = { 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15 };
	static const struct {
		const char *name;
		const uint32_t *lists;
		uint32_t size;
	} cases[] = { { "tp", tensor, 2 }, { "dp", data, 2 }, { "pp", pipeline, 4 }, { "pp-tp", model, 8 } };
	parse("tp=2, dp=2, pp=4", 16);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t lists[MOST];
		const struct dimensions_named named = name(cases[i].name);
		assert_int_equal(dimensions_size(&dimensions, &named), cases[i].size);
		dimensions_list_groups(&dimensions, &named, lists);
		assert_memory_equal(lists, cases[i].lists, 16 * sizeof(*lists));
	}
}

static void ranks__are_renumbered_along_an_order(void **state)
{
	parse("tp=2, dp=3, pp=4", 24);
	const struct dimensions_named same = name("tp-dp-pp"), other = name("pp-tp-dp");
	for (uint32_t rank = 0; rank < 24; rank++) {
		assert_int_equal(dimensions_renumber(&dimensions, &same, rank), rank);
		assert_int_equal(
			dimensions_renumber(&dimensions, &other, rank), rank / 6 + rank % 2 * 4 + rank / 2 % 3 * 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__has_names_and_sizes),
		cmocka_unit_test(what_makes_no_sense__is_refused_with_a_cure),
		cmocka_unit_test(names__are_known_and_there_once),
		cmocka_unit_test(groups__are_those_of_megatron),
		cmocka_unit_test(ranks__are_renumbered_along_an_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
