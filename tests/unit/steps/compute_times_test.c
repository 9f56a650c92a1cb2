/* Tables of kernels' times. */
#include "steps/compute_times.h"
#include <errno.h>
#include "steps/layers.h"
#include "steps/piece.h"
#include "steps/plan_check.h"
#include "plans.h"
#include "../unit.h"

#define HEAD "operation,shape,microseconds\n"
#define ROWS                                                                                                           \
	"projections-forward,1x8192/8,100\nprojections-backward,1x8192/8,200\n"                                        \
	"scores-forward,1x8192/8,10.5\nscores-backward,1x8192/8,30\n"                                                  \
	"ffn-forward,1x8192/8,300\nffn-backward,1x8192/8,700\n"                                                        \
	"output-forward,1x8192/8,50\noutput-backward,1x8192/8,90\n"

static char why[300];

static char missing[300];

/* Also what is missing. */
static int use(struct step_plan *plan, struct text *text)
{
	struct compute_times times;
	int error = compute_times_read(plan, text, &times);
	*missing = 0;
	if (error)
		return error;
	compute_times_missing(plan, &times, missing, sizeof(missing));
	compute_times_use(plan, &times);
	return 0;
}

static int read_into(struct step_plan *plan, const char *bytes)
{
	struct text text = text_of("t.csv", bytes, strlen(bytes), why, sizeof(why));
	*plan = plan_of("llama3-70b", 8, 2, 4, 64);
	*why = 0;
	return use(plan, &text);
}

static vb_time computing(const struct step_plan *plan, uint32_t stage)
{
	struct step_program program;
	vb_time sum = 0;
	assert_int_equal(program_make(plan, stage, &program), 0);
	for (uint32_t i = 0; i < program.count; i++)
		sum += program.operations[i].kind == STEP_COMPUTE ? program.operations[i].time : 0;
	program_free(&program);
	return sum;
}

/* Operations that are split are as long together as their row, but for rounding. */
static void assert_about(vb_time is, double us)
{
	if ((double)is < us * 1e6 - 1000 || (double)is > us * 1e6 + 1000)
		fail_msg("%lld ps instead of %g us", (long long)is, us);
}

static void computing__takes_what_the_rows_say(void **state)
{
	struct step_plan plan;
	const double forward = 100 + 10.5 + 300, backward = 200 + 30 + 700;
	assert_int_equal(read_into(&plan, HEAD ROWS), 0);
	assert_about(computing(&plan, 0), 16 * 40 * (forward + backward + 10.5)); /* scores again */
	assert_about(computing(&plan, 1), 16 * (40 * (forward + backward + 10.5) + 50 + 90));
	plan.recompute = RECOMPUTE_NONE;
	assert_about(computing(&plan, 0), 16 * 40 * (forward + backward));
	plan.recompute = RECOMPUTE_FULL;
	assert_about(computing(&plan, 0), 16 * 40 * (2 * forward + backward));
	plan.schedule = SCHEDULE_ZERO_BUBBLE;
	assert_about(computing(&plan, 0), 16 * 40 * (2 * forward + backward));
	plan.is_sequence_parallel = false;
	assert_about(computing(&plan, 1), 16 * (40 * (2 * forward + backward) + 50 + 90));
	const struct step_plan piece = piece_of(&plan, 0.5);
	assert_about(computing(&piece, 0), 4 * (2 * forward + backward));
}

static void rows_of_other_shapes__are_passed_over(void **state)
{
	struct step_plan plan, other;
	assert_int_equal(read_into(&other, HEAD ROWS), 0);
	assert_int_equal(read_into(&plan, "# mine\n" HEAD "ffn-forward,2x8192/8,7\nexperts-forward,1x8192/8,7\n" ROWS
					  "ffn-forward,1x8192/4,7\r\n\n"),
		0);
	assert_int_equal(computing(&plan, 0), computing(&other, 0));
}

/* A model with experts needs rows of these, and of the dense layers that it has. */
static void rows__are_those_of_the_model(void **state)
{
	static const char bytes[] = HEAD ROWS "experts-forward,1x4096/1,1\n";
	struct step_plan plan = plan_of("mixtral-8x7b", 1, 1, 8, 8);
	struct text text = text_of("t.csv", bytes, sizeof(bytes) - 1, why, sizeof(why));
	assert_int_equal(use(&plan, &text), 0);
	assert_string_equal(missing,
		"projections-forward, projections-backward, scores-forward, scores-backward, experts-forward, "
		"experts-backward, output-forward, output-backward");
	assert_int_equal(read_into(&plan, HEAD ROWS), 0);
	assert_string_equal(missing, "");
	plan.cp = 2; /* a rank has half of the tokens */
	text = text_of("t.csv", HEAD ROWS, strlen(HEAD ROWS), why, sizeof(why));
	assert_int_equal(use(&plan, &text), 0);
	assert_non_null(strstr(missing, "ffn-forward"));
}

/* As without a table. */
static void operations__without_a_time_go_by_mfu(void **state)
{
	struct step_plan plan, bare = plan_of("llama3-70b", 8, 2, 4, 64);
	assert_int_equal(read_into(&plan, HEAD "scores-forward,1x8192/8,10.5\n"), 0);
	plan.recompute = bare.recompute = RECOMPUTE_NONE;
	const double by_mfu = layer_work(&bare, WORK_SCORES) / (bare.tflops * bare.mfu) / 1e6;
	assert_about(computing(&plan, 0) - computing(&bare, 0), 16 * 40 * (10.5 - by_mfu));
}

static void wrong_rows__have_their_place(void **state)
{
	static const struct {
		const char *bytes, *wanted;
	} cases[] = {
		{ "", "t.csv: it is empty" },
		{ "ffn,1,2\n", "t.csv:1:1: ffn,1,2: the first line is" },
		{ "1,2,3\n", "t.csv:1:1: 1,2,3: the first line is operation,shape,microseconds" },
		{ HEAD "ffn-forward,1x8192/8\n", "t.csv:2:1: ffn-forward,1x8192/8: a row is" },
		{ HEAD "\n  ffn,1x8192/8,1\n", "t.csv:3:3: ffn: an operation is" },
		{ HEAD "ffn-forward,1x8192,1\n", "t.csv:2:13: 1x8192: a shape is" },
		{ HEAD "ffn-forward,1x8192/8/2,1\n", "t.csv:2:13: 1x8192/8/2: a shape is" },
		{ HEAD "ffn-forward,1x99999999999999999999/8,1\n", "t.csv:2:13: " },
		{ HEAD "ffn-forward,0x8192/8,1\n", "t.csv:2:13: " },
		{ HEAD "ffn-forward,1x8192/8,-5\n", "t.csv:2:22: -5: a time is" },
		{ HEAD "ffn-forward,1x8192/8,nan\n", "t.csv:2:22: nan: a time is" },
		{ HEAD "ffn-forward,1x8192/8,inf\n", "t.csv:2:22: inf: a time is" },
		{ HEAD "ffn-forward,1x8192/8,0\n", "t.csv:2:22: 0: a time is" },
		{ HEAD "ffn-forward,1x8192/8,1e18\n", "t.csv:2:22: 1e18: a time is" },
		{ HEAD "ffn-forward,1x8192/8,1e999999999999\n", "t.csv:2:22: " },
		{ HEAD "ffn-forward,1x8192/8,1,2\n", "t.csv:2:24: 2: a row ends with its time" },
		{ HEAD ROWS "ffn-forward,1x8192/8,1\n", "t.csv:10:1: ffn-forward: the table has it before" },
		{ "{\"schemaVersion\": 1, \"traceEvents\": []}\n",
			"t.csv: the profiler's trace (Kineto), before it is" },
		{ "{\"schema\": \"1.0.2-chakra.0.0.4\", \"nodes\": []}\n", "t.csv: PyTorch's trace of the host" },
		{ "{\"mine\": []}\n", "and a Chakra trace is called PREFIX.RANK.et" },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct step_plan plan;
		if (read_into(&plan, cases[i].bytes) != -EINVAL || !strstr(why, cases[i].wanted))
			fail_msg("%s: %s instead of %s", cases[i].bytes, why, cases[i].wanted);
	}
}

/* A line without an end, and a table that is too large. */
static void long_tables__are_refused(void **state)
{
	struct step_plan plan;
	char *bytes = test_malloc((2 << 20) + 1);
	memset(bytes, 'a', 2 << 20);
	bytes[2 << 20] = 0;
	assert_int_equal(read_into(&plan, bytes), -EINVAL);
	assert_string_equal(why, "t.csv: a table has at most 1 MiB");
	memcpy(bytes, HEAD, strlen(HEAD));
	bytes[500000] = 0;
	assert_int_equal(read_into(&plan, bytes), -EINVAL);
	assert_non_null(strstr(why, "t.csv:2:1: aaaa"));
	test_free(bytes);
}

/* What is too long for a run is refused as a plan is. */
static void long_times__are_refused(void **state)
{
	struct step_plan plan;
	assert_int_equal(read_into(&plan, HEAD "projections-forward,1x8192/8,1e9\nprojections-backward,1x8192/8,1e9\n"
					       "scores-forward,1x8192/8,1e9\nscores-backward,1x8192/8,1e9\n"
					       "ffn-forward,1x8192/8,1e9\nffn-backward,1x8192/8,1e9\n"
					       "output-forward,1x8192/8,1e9\noutput-backward,1x8192/8,1e9\n"),
		0);
	assert_int_equal(plan_check(&plan, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "batch: each rank computes for"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(computing__takes_what_the_rows_say),
		cmocka_unit_test(rows_of_other_shapes__are_passed_over),
		cmocka_unit_test(rows__are_those_of_the_model),
		cmocka_unit_test(operations__without_a_time_go_by_mfu),
		cmocka_unit_test(wrong_rows__have_their_place),
		cmocka_unit_test(long_tables__are_refused),
		cmocka_unit_test(long_times__are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
