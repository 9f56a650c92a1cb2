/* The piece of a step that runs by packets: small, possible, and of the same kinds as the whole. */
#include "steps/piece.h"
#include "steps/plan_check.h"
#include "steps/program.h"
#include "plans.h"
#include "../unit.h"

/* A bit for each dimension that the stages communicate in. */
static unsigned dimensions_of(const struct step_plan *plan, uint32_t *operations)
{
	unsigned dimensions = 0;
	*operations = 0;
	for (uint32_t stage = 0; stage < plan->pp; stage++) {
		struct step_program program;
		assert_int_equal(program_make(plan, stage, &program), 0);
		for (uint32_t i = 0; i < program.count; i++)
			if (program.operations[i].kind != STEP_COMPUTE)
				dimensions |= 1u << program.operations[i].dimension;
		*operations += program.count;
		program_free(&program);
	}
	return dimensions;
}

static void check_piece(const struct step_plan *plan)
{
	const struct step_plan piece = piece_of(plan, 0.5);
	uint32_t of_plan, of_piece;
	char why[200] = "";
	if (plan_check(plan, why, sizeof(why)) || plan_check(&piece, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(plan_ranks(&piece), plan_ranks(plan));
	assert_int_equal(dimensions_of(&piece, &of_piece), dimensions_of(plan, &of_plan));
	assert_true(of_piece <= of_plan);
}

static void piece__is_of_the_same_kinds(void **state)
{
	for (uint32_t i = 0; model_of(i); i++) {
		struct step_plan plan = plan_of(model_of(i)->name, 2, 1, 8, 64);
		plan.ep = plan.model.experts ? 8 : 1;
		for (plan.zero = 0; plan.zero <= 3; plan.zero++)
			check_piece(&plan);
		plan.zero = 1;
		if (plan.model.layers % 4)
			continue;
		plan.pp = 4;
		check_piece(&plan);
		plan.schedule = SCHEDULE_ZERO_BUBBLE;
		check_piece(&plan);
		plan.schedule = SCHEDULE_INTERLEAVED;
		plan.chunks = plan.model.layers / plan.pp % 2 ? 3 : 2;
		if (plan.model.layers % (plan.pp * plan.chunks) == 0)
			check_piece(&plan);
	}
}

/* Llama 3's 126 layers with embedding and output are 128, so of 16 stages the first and the last have one less. */
static void piece__keeps_ends_that_count_as_layers(void **state)
{
	struct step_plan plan = plan_of("llama3-405b", 8, 16, 2, 64);
	plan.ends_count_as_layers = true;
	check_piece(&plan);
	assert_int_equal(piece_of(&plan, 1).model.layers, 14);
	plan.batch = 256;
	const struct step_plan piece = piece_of(&plan, 1);
	assert_int_equal(plan_micro_batches(&piece), 32);
}

/* Which algorithm a collective takes is as in the whole. */
static void bytes_part__is_of_each_message(void **state)
{
	struct step_plan plan = plan_of("gpt-13b", 1, 1, 4, 4);
	plan.zero = 0;
	plan.model.layers = 1;
	const struct step_plan piece = piece_of(&plan, 1e-6);
	struct step_program whole, part;
	assert_int_equal(program_make(&plan, 0, &whole), 0);
	assert_int_equal(program_make(&piece, 0, &part), 0);
	assert_int_equal(whole.count, part.count);
	for (uint32_t i = 0; i < whole.count; i++) {
		const struct step_operation *one = &whole.operations[i], *other = &part.operations[i];
		assert_int_equal(one->kind, other->kind);
		assert_ptr_equal(one->algorithm, other->algorithm);
		if (one->kind == STEP_COMPUTE)
			assert_int_equal(one->time, other->time);
		else
			assert_int_equal(other->bytes, (uint64_t)((double)one->bytes * 1e-6) + 1);
	}
	program_free(&whole);
	program_free(&part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(piece__is_of_the_same_kinds),
		cmocka_unit_test(piece__keeps_ends_that_count_as_layers),
		cmocka_unit_test(bytes_part__is_of_each_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
