#include "core/counters.h"
#include "engine/nic.h"
#include "../unit.h"

static void counters__each_has_a_name_of_its_own(void **state)
{
	for (unsigned i = 0; i < VB_COUNTER_COUNT; i++) {
		assert_non_null(vb_counter_name[i]);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(vb_counter_name[i], vb_counter_name[j]);
	}
}

static void counters__names_are_in_their_places(void **state)
{
	assert_string_equal(vb_counter_name[VB_DROP_BAD_QPN], "drop_bad_qpn");
	assert_string_equal(vb_counter_name[VB_CQ_OVERRUNS], "cq_overruns");
}

static void causes__each_has_a_text_of_its_own(void **state)
{
	for (int i = 0; i < VB_CAUSE_COUNT; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(vb_cause_text(i), vb_cause_text(j));
	assert_string_equal(vb_cause_text(VB_CAUSE_RETRY_EXCEEDED), "retry exceeded");
}

static void causes__an_unknown_one_has_a_text_too(void **state)
{
	assert_string_equal(vb_cause_text(VB_CAUSE_COUNT), "unknown cause");
	assert_string_equal(vb_cause_text((enum vb_cause_kind)UINT32_MAX), "unknown cause");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters__each_has_a_name_of_its_own),
		cmocka_unit_test(counters__names_are_in_their_places),
		cmocka_unit_test(causes__each_has_a_text_of_its_own),
		cmocka_unit_test(causes__an_unknown_one_has_a_text_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
