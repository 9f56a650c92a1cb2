/* The transitions, written out a second time as text, one line a legal transition; everything else must be refused. */
#include <errno.h>
#include "core/qp_state.h"
#include "../unit.h"

struct row {
	enum vb_qp_type type;
	enum vb_qp_state from, to;
	const char *required, *optional;
};

#define ROW(type, from, to, required, optional)                                                                        \
	{                                                                                                              \
		VB_QP_##type, VB_QPS_##from, VB_QPS_##to, required, optional                                           \
	}

static const struct row rows[] = {
	ROW(RC, RESET, RESET, "", ""),
	ROW(RC, RESET, INIT, "pkey port access", ""),
	ROW(RC, INIT, RESET, "", ""),
	ROW(RC, INIT, ERR, "", ""),
	ROW(RC, INIT, INIT, "", "pkey port access"),
	ROW(RC, INIT, RTR, "av mtu dest rq_psn max_dest_rd rnr_timer", "access pkey"),
	ROW(RC, RTR, RESET, "", ""),
	ROW(RC, RTR, ERR, "", ""),
	ROW(RC, RTR, RTS, "timeout retry rnr_retry sq_psn max_rd", "access rnr_timer mig"),
	ROW(RC, RTS, RESET, "", ""),
	ROW(RC, RTS, ERR, "", ""),
	ROW(RC, RTS, RTS, "", "access rnr_timer mig"),
	ROW(RC, RTS, SQD, "", "notify"),
	ROW(RC, SQD, RESET, "", ""),
	ROW(RC, SQD, ERR, "", ""),
	ROW(RC, SQD, RTS, "", "access rnr_timer mig"),
	ROW(RC, SQD, SQD, "", "port av timeout retry rnr_retry max_rd max_dest_rd access pkey rnr_timer mig"),
	ROW(RC, SQE, RESET, "", ""),
	ROW(RC, SQE, ERR, "", ""),
	ROW(RC, ERR, RESET, "", ""),
	ROW(RC, ERR, ERR, "", ""),

	ROW(UC, RESET, RESET, "", ""),
	ROW(UC, RESET, INIT, "pkey port access", ""),
	ROW(UC, INIT, RESET, "", ""),
	ROW(UC, INIT, ERR, "", ""),
	ROW(UC, INIT, INIT, "", "pkey port access"),
	ROW(UC, INIT, RTR, "av mtu dest rq_psn", "access pkey"),
	ROW(UC, RTR, RESET, "", ""),
	ROW(UC, RTR, ERR, "", ""),
	ROW(UC, RTR, RTS, "sq_psn", "access mig"),
	ROW(UC, RTS, RESET, "", ""),
	ROW(UC, RTS, ERR, "", ""),
	ROW(UC, RTS, RTS, "", "access mig"),
	ROW(UC, RTS, SQD, "", "notify"),
	ROW(UC, SQD, RESET, "", ""),
	ROW(UC, SQD, ERR, "", ""),
	ROW(UC, SQD, RTS, "", "access mig"),
	ROW(UC, SQD, SQD, "", "av access pkey mig"),
	ROW(UC, SQE, RESET, "", ""),
	ROW(UC, SQE, ERR, "", ""),
	ROW(UC, SQE, RTS, "", "access"),
	ROW(UC, ERR, RESET, "", ""),
	ROW(UC, ERR, ERR, "", ""),

	ROW(UD, RESET, RESET, "", ""),
	ROW(UD, RESET, INIT, "pkey port qkey", ""),
	ROW(UD, INIT, RESET, "", ""),
	ROW(UD, INIT, ERR, "", ""),
	ROW(UD, INIT, INIT, "", "pkey port qkey"),
	ROW(UD, INIT, RTR, "", "pkey qkey"),
	ROW(UD, RTR, RESET, "", ""),
	ROW(UD, RTR, ERR, "", ""),
	ROW(UD, RTR, RTS, "sq_psn", "qkey"),
	ROW(UD, RTS, RESET, "", ""),
	ROW(UD, RTS, ERR, "", ""),
	ROW(UD, RTS, RTS, "", "qkey"),
	ROW(UD, RTS, SQD, "", "notify"),
	ROW(UD, SQD, RESET, "", ""),
	ROW(UD, SQD, ERR, "", ""),
	ROW(UD, SQD, RTS, "", "qkey"),
	ROW(UD, SQD, SQD, "", "pkey qkey"),
	ROW(UD, SQE, RESET, "", ""),
	ROW(UD, SQE, ERR, "", ""),
	ROW(UD, SQE, RTS, "", "qkey"),
	ROW(UD, ERR, RESET, "", ""),
	ROW(UD, ERR, ERR, "", ""),

	ROW(RAW, RESET, RESET, "", ""),
	ROW(RAW, RESET, INIT, "port", ""),
	ROW(RAW, INIT, RESET, "", ""),
	ROW(RAW, INIT, ERR, "", ""),
	ROW(RAW, INIT, INIT, "", "port"),
	ROW(RAW, INIT, RTR, "", ""),
	ROW(RAW, RTR, RESET, "", ""),
	ROW(RAW, RTR, ERR, "", ""),
	ROW(RAW, RTR, RTS, "", ""),
	ROW(RAW, RTS, RESET, "", ""),
	ROW(RAW, RTS, ERR, "", ""),
	ROW(RAW, RTS, RTS, "", ""),
	ROW(RAW, SQE, RESET, "", ""),
	ROW(RAW, SQE, ERR, "", ""),
	ROW(RAW, SQE, RTS, "", ""),
	ROW(RAW, ERR, RESET, "", ""),
	ROW(RAW, ERR, ERR, "", ""),

	ROW(XRC_SEND, RESET, RESET, "", ""),
	ROW(XRC_SEND, RESET, INIT, "pkey port access", ""),
	ROW(XRC_SEND, INIT, RESET, "", ""),
	ROW(XRC_SEND, INIT, ERR, "", ""),
	ROW(XRC_SEND, INIT, INIT, "", "pkey port access"),
	ROW(XRC_SEND, INIT, RTR, "av mtu dest rq_psn", "access pkey"),
	ROW(XRC_SEND, RTR, RESET, "", ""),
	ROW(XRC_SEND, RTR, ERR, "", ""),
	ROW(XRC_SEND, RTR, RTS, "timeout retry rnr_retry sq_psn max_rd", "access mig"),
	ROW(XRC_SEND, RTS, RESET, "", ""),
	ROW(XRC_SEND, RTS, ERR, "", ""),
	ROW(XRC_SEND, RTS, RTS, "", "access mig"),
	ROW(XRC_SEND, RTS, SQD, "", "notify"),
	ROW(XRC_SEND, SQD, RESET, "", ""),
	ROW(XRC_SEND, SQD, ERR, "", ""),
	ROW(XRC_SEND, SQD, RTS, "", "access mig"),
	ROW(XRC_SEND, SQD, SQD, "", "port av timeout retry rnr_retry max_rd access pkey mig"),
	ROW(XRC_SEND, SQE, RESET, "", ""),
	ROW(XRC_SEND, SQE, ERR, "", ""),
	ROW(XRC_SEND, ERR, RESET, "", ""),
	ROW(XRC_SEND, ERR, ERR, "", ""),

	ROW(XRC_RECV, RESET, RESET, "", ""),
	ROW(XRC_RECV, RESET, INIT, "pkey port access", ""),
	ROW(XRC_RECV, INIT, RESET, "", ""),
	ROW(XRC_RECV, INIT, ERR, "", ""),
	ROW(XRC_RECV, INIT, INIT, "", "pkey port access"),
	ROW(XRC_RECV, INIT, RTR, "av mtu dest rq_psn max_dest_rd rnr_timer", "access pkey"),
	ROW(XRC_RECV, RTR, RESET, "", ""),
	ROW(XRC_RECV, RTR, ERR, "", ""),
	ROW(XRC_RECV, RTR, RTS, "timeout sq_psn", "access rnr_timer mig"),
	ROW(XRC_RECV, RTS, RESET, "", ""),
	ROW(XRC_RECV, RTS, ERR, "", ""),
	ROW(XRC_RECV, RTS, RTS, "", "access rnr_timer mig"),
	ROW(XRC_RECV, RTS, SQD, "", "notify"),
	ROW(XRC_RECV, SQD, RESET, "", ""),
	ROW(XRC_RECV, SQD, ERR, "", ""),
	ROW(XRC_RECV, SQD, RTS, "", "access rnr_timer mig"),
	ROW(XRC_RECV, SQD, SQD, "", "port av timeout max_dest_rd access pkey rnr_timer mig"),
	ROW(XRC_RECV, SQE, RESET, "", ""),
	ROW(XRC_RECV, SQE, ERR, "", ""),
	ROW(XRC_RECV, ERR, RESET, "", ""),
	ROW(XRC_RECV, ERR, ERR, "", ""),
};

static const struct {
	const char *name;
	uint32_t bit;
} attributes[] = {
	{ "state", VB_QP_STATE },
	{ "cur_state", VB_QP_CUR_STATE },
	{ "notify", VB_QP_EN_SQD_ASYNC_NOTIFY },
	{ "access", VB_QP_ACCESS_FLAGS },
	{ "pkey", VB_QP_PKEY_INDEX },
	{ "port", VB_QP_PORT },
	{ "qkey", VB_QP_QKEY },
	{ "av", VB_QP_AV },
	{ "mtu", VB_QP_PATH_MTU },
	{ "timeout", VB_QP_TIMEOUT },
	{ "retry", VB_QP_RETRY_CNT },
	{ "rnr_retry", VB_QP_RNR_RETRY },
	{ "rq_psn", VB_QP_RQ_PSN },
	{ "max_rd", VB_QP_MAX_QP_RD_ATOMIC },
	{ "alt_path", VB_QP_ALT_PATH },
	{ "rnr_timer", VB_QP_MIN_RNR_TIMER },
	{ "sq_psn", VB_QP_SQ_PSN },
	{ "max_dest_rd", VB_QP_MAX_DEST_RD_ATOMIC },
	{ "mig", VB_QP_PATH_MIG_STATE },
	{ "cap", VB_QP_CAP },
	{ "dest", VB_QP_DEST_QPN },
	{ "rate_limit", VB_QP_RATE_LIMIT },
};

static const enum vb_qp_type types[] = { VB_QP_RC, VB_QP_UC, VB_QP_UD, VB_QP_RAW, VB_QP_XRC_SEND, VB_QP_XRC_RECV };

static uint32_t bit_of(const char *name, size_t length)
{
	for (size_t i = 0; i < COUNT_OF(attributes); i++)
		if (strlen(attributes[i].name) == length && memcmp(attributes[i].name, name, length) == 0)
			return attributes[i].bit;
	fail_msg("no attribute %.*s", (int)length, name);
	return 0;
}

static uint32_t mask_of(const char *names)
{
	uint32_t mask = 0;
	while (*names) {
		size_t length = strcspn(names, " ");
		mask |= bit_of(names, length);
		names += length + (names[length] == ' ');
	}
	return mask;
}

static const struct row *row_of(enum vb_qp_type type, unsigned from, unsigned to)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].type == type && rows[i].from == from && rows[i].to == to)
			return &rows[i];
	return NULL;
}

static void transitions__legal_ones_take_required_and_any_optional_attributes(void **state)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		uint32_t required = mask_of(row->required), optional = mask_of(row->optional);
		assert_int_equal(vb_qp_transition_check(row->type, row->from, row->to, required), 0);
		assert_int_equal(vb_qp_transition_check(row->type, row->from, row->to, required | optional), 0);
		assert_int_equal(
			vb_qp_transition_check(row->type, row->from, row->to, required | VB_QP_STATE | VB_QP_CUR_STATE),
			0);
		for (uint32_t bit = 1; bit; bit <<= 1)
			if (optional & bit)
				assert_int_equal(
					vb_qp_transition_check(row->type, row->from, row->to, required | bit), 0);
	}
}

static void transitions__a_missing_required_attribute_is_refused(void **state)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		uint32_t required = mask_of(row->required), optional = mask_of(row->optional);
		for (uint32_t bit = 1; bit; bit <<= 1)
			if (required & bit)
				assert_int_equal(vb_qp_transition_check(
							 row->type, row->from, row->to, (required | optional) & ~bit),
					-EINVAL);
	}
}

static void transitions__an_attribute_outside_the_row_is_refused(void **state)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		uint32_t required = mask_of(row->required);
		uint32_t allowed = required | mask_of(row->optional) | VB_QP_STATE | VB_QP_CUR_STATE;
		for (uint32_t bit = 1; bit; bit <<= 1)
			if (!(allowed & bit))
				assert_int_equal(
					vb_qp_transition_check(row->type, row->from, row->to, required | bit), -EINVAL);
	}
}

static void transitions__what_is_not_written_is_refused_with_any_one_attribute_or_all(void **state)
{
	int refused = 0;
	for (size_t t = 0; t < COUNT_OF(types); t++) {
		for (unsigned from = 0; from < VB_QPS_COUNT; from++) {
			for (unsigned to = 0; to < VB_QPS_COUNT; to++) {
				if (row_of(types[t], from, to))
					continue;
				refused++;
				assert_int_equal(vb_qp_transition_check(types[t], from, to, 0), -EINVAL);
				assert_int_equal(vb_qp_transition_check(types[t], from, to, UINT32_MAX), -EINVAL);
				for (size_t i = 0; i < COUNT_OF(attributes); i++)
					assert_int_equal(
						vb_qp_transition_check(types[t], from, to, attributes[i].bit), -EINVAL);
			}
		}
	}
	assert_int_equal(refused + COUNT_OF(rows), COUNT_OF(types) * VB_QPS_COUNT * VB_QPS_COUNT);
}

static void transitions__unknown_states_and_types_are_refused(void **state)
{
	assert_int_equal(vb_qp_transition_check(VB_QP_RC, VB_QPS_COUNT, VB_QPS_RESET, 0), -EINVAL);
	assert_int_equal(vb_qp_transition_check(VB_QP_RC, VB_QPS_RESET, VB_QPS_COUNT, 0), -EINVAL);
	assert_int_equal(vb_qp_transition_check(VB_QP_RC, (enum vb_qp_state)UINT32_MAX, VB_QPS_RESET, 0), -EINVAL);
	assert_int_equal(vb_qp_transition_check((enum vb_qp_type)7, VB_QPS_RESET, VB_QPS_RESET, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transitions__legal_ones_take_required_and_any_optional_attributes),
		cmocka_unit_test(transitions__a_missing_required_attribute_is_refused),
		cmocka_unit_test(transitions__an_attribute_outside_the_row_is_refused),
		cmocka_unit_test(transitions__what_is_not_written_is_refused_with_any_one_attribute_or_all),
		cmocka_unit_test(transitions__unknown_states_and_types_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
