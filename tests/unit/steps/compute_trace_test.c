/* Times of a model's operations from traces. */
#include "steps/compute_trace.h"
#include <errno.h>
#include "../net/trace_writing.h"

static char why[300], path[120];

/* A computation of the GPU, which the CPU op `caller` launched; NOTHING: none. */
static void kernel(uint64_t id, const char *name, uint64_t us, uint64_t caller)
{
	begin_node(id, name, COMP);
	if (caller != NOTHING)
		put_number(&node, CTRL_DEPS, caller);
	if (us)
		put_number(&node, 7, us);
	put_attribute("is_cpu_op", BOOL, 0);
	end_node();
}

static void call(uint64_t id, const char *name, uint64_t caller)
{
	begin_node(id, name, COMP);
	if (caller != NOTHING)
		put_number(&node, CTRL_DEPS, caller);
	put_number(&node, 7, 1000000);
	put_attribute("is_cpu_op", BOOL, 1);
	end_node();
}

static int read_trace(struct compute_trace *is)
{
	end_trace(0);
	snprintf(path, sizeof(path), "%s.0.et", prefix);
	return compute_trace_read(path, is, why, sizeof(why));
}

static void assert_time(const struct compute_trace *from, unsigned work, unsigned pass, double us)
{
	const double is = (double)from->times.of[work][pass] / 1e6;
	if (is < us - 1e-6 || is > us + 1e-6)
		fail_msg("operation %u, pass %u: %g us instead of %g", work, pass, is, us);
}

/* As Chakra's converter of texts calls them: two layers in two micro-batches, and gradients apart. */
static void names__of_generators_say_operation_and_pass(void **state)
{
	struct compute_trace is;
	uint64_t id = 1;
	begin_trace();
	for (unsigned micro_batch = 0; micro_batch < 2; micro_batch++)
		for (unsigned layer = 0; layer < 2; layer++) {
			static const struct {
				const char *name;
				unsigned us;
			} each[] = { { "attention_FWD", 100 }, { "scores_FWD", 10 }, { "mlp_FWD", 300 },
				{ "mlp_BWD_IG", 310 }, { "mlp_BWD_WG", 290 }, { "attention_BWD_IG", 205 },
				{ "scores_BWD_IG", 31 } };
			for (unsigned i = 0; i < sizeof(each) / sizeof(*each); i++) {
				char name[60];
				snprintf(name, sizeof(name), "COMP_NODE_layer%u.%s", layer, each[i].name);
				kernel(id++, name, each[i].us + 2 * layer, NOTHING);
			}
		}
	kernel(id++, "COMP_NODE_output_FWD", 50, NOTHING);
	kernel(id++, "COMP_NODE_output_FWD", 52, NOTHING);
	kernel(id++, "COMP_NODE_lm_head_BWD", 90, NOTHING);
	assert_int_equal(read_trace(&is), 0);
	assert_time(&is, WORK_PROJECTIONS, 0, 101);
	assert_time(&is, WORK_SCORES, 0, 11);
	assert_time(&is, WORK_FFN, 0, 301);
	assert_time(&is, WORK_FFN, 1, 311 + 291);
	assert_time(&is, WORK_PROJECTIONS, 1, 206);
	assert_time(&is, WORK_SCORES, 1, 32);
	assert_time(&is, WORK_OUTPUT, 0, 51);
	assert_time(&is, WORK_OUTPUT, 1, 90);
	assert_time(&is, WORK_EXPERTS, 0, 0);
	assert_int_equal(is.computations, 31);
	assert_int_equal(is.unmatched, 0);
}

/* As of a linked PyTorch trace: kernels say little, and the CPU ops above them have the names. */
static void kernels__belong_to_what_called_them(void **state)
{
	struct compute_trace is;
	begin_trace();
	call(1, "[pytorch|profiler|execution_trace|thread]", NOTHING);
	for (uint64_t layer = 0; layer < 2; layer++) {
		const uint64_t at = 100 * (layer + 1);
		call(at, layer ? "layers.1.self_attn" : "layers.0.self_attn", 1);
		kernel(at + 1, "rms_norm_kernel", 2, at);
		call(at + 2, "q_proj", at);
		call(at + 3, "aten::mm", at + 2);
		kernel(at + 4, "sm90_gemm_128x64", 40 + layer, at + 3);
		kernel(at + 5, "splitKreduce_kernel", 6, at + 3);
		call(at + 6, "o_proj", at);
		kernel(at + 7, "sm90_gemm_128x64", 20, at + 6);
		kernel(at + 8, "void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", 33, at);
		call(at + 9, "MLP", 1);
		kernel(at + 10, "sm90_gemm_256x64", 70, at + 9);
		call(at + 20, "autograd::engine::evaluate_function: MmBackward0", 1);
		call(at + 21, "mlp", at + 20);
		kernel(at + 22, "sm90_gemm_256x64", 150, at + 21);
		kernel(at + 23, "flash_bwd_kernel", 80, at + 20);
		kernel(at + 24, "sm90_gemm_64x64", 15 - layer, at + 20); /* whose, nobody says */
	}
	/* A wait for another computation is no call. */
	kernel(900, "vectorized_elementwise_kernel", 1, 110);
	assert_int_equal(read_trace(&is), 0);
	assert_time(&is, WORK_PROJECTIONS, 0, 2 + 46.5 + 20);
	assert_time(&is, WORK_SCORES, 0, 33);
	assert_time(&is, WORK_FFN, 0, 70);
	assert_time(&is, WORK_FFN, 1, 150);
	assert_time(&is, WORK_SCORES, 1, 80);
	assert_time(&is, WORK_PROJECTIONS, 1, 0);
	assert_int_equal(is.unmatched, 3);
	assert_float_equal(is.unmatched_us, 15 + 14 + 1, 0.001);
	assert_string_equal(is.such_as, "sm90_gemm_64x64");
}

/* Numbers that stand alone count layers; those of a name are a part of it. */
static void names__that_differ_add_up(void **state)
{
	struct compute_trace is;
	begin_trace();
	kernel(1, "mlp.0.linear_fc1", 10, NOTHING);
	kernel(2, "mlp.0.linear_fc2", 20, NOTHING);
	kernel(3, "mlp.17.linear_fc1", 12, NOTHING);
	kernel(4, "mlp.17.linear_fc2", 22, NOTHING);
	kernel(5, "block7_experts", 5, NOTHING);
	kernel(6, "block12_experts", 7, NOTHING);
	kernel(7, "feed_forward.w3", 1, NOTHING); /* forward because nothing says otherwise */
	kernel(8, "feed_forward.backward", 3, NOTHING);
	assert_int_equal(read_trace(&is), 0);
	assert_time(&is, WORK_FFN, 0, 11 + 21 + 1);
	assert_time(&is, WORK_FFN, 1, 3);
	assert_time(&is, WORK_EXPERTS, 0, 6);
}

/* Files of several stages, and an operation that only the last has. */
static void prefix__is_all_ranks(void **state)
{
	struct compute_trace is;
	begin_trace();
	kernel(1, "mlp-forward", 10, NOTHING);
	end_trace(0);
	begin_trace();
	kernel(1, "mlp-forward", 20, NOTHING);
	kernel(2, "output-forward", 7, NOTHING);
	end_trace(1);
	assert_true(compute_trace_is(prefix));
	assert_false(compute_trace_is("times.csv"));
	assert_true(compute_trace_is("absent.et.gz"));
	assert_int_equal(compute_trace_read(prefix, &is, why, sizeof(why)), 0);
	assert_time(&is, WORK_FFN, 0, 15);
	assert_time(&is, WORK_OUTPUT, 0, 7);
}

static void assert_refused(const char *wanted)
{
	struct compute_trace is;
	*why = 0;
	assert_int_equal(read_trace(&is), -EINVAL);
	if (!strstr(why, wanted))
		fail_msg("%s: instead of %s", why, wanted);
	remove_traces();
}

static void bad_traces__say_what_and_where(void **state)
{
	begin_trace();
	assert_refused("it has no computation of a GPU");
	begin_trace();
	call(1, "mlp", NOTHING);
	assert_refused("chakra_trace_link");
	begin_trace();
	kernel(3, "mlp", 1000000001, NOTHING);
	assert_refused("node 3 takes 1000000001 microseconds");
	begin_trace();
	kernel(3, "mlp", 1, NOTHING);
	kernel(3, "mlp", 1, NOTHING);
	assert_refused("two nodes have the id 3");
	begin_trace();
	kernel(3, "mlp", 1, NOTHING);
	trace.length -= 2;
	assert_refused("byte 8 of 34, message 2: the file ends early");
	begin_trace();
	for (uint64_t i = 0; i < 1001; i++) {
		char name[20];
		snprintf(name, sizeof(name), "mlp%u", (unsigned)i);
		kernel(i, name, 1, NOTHING);
	}
	assert_refused("more than 1000 different names");
	begin_trace();
	kernel(1, "mlp_a", 900000000, NOTHING);
	kernel(2, "mlp_b", 900000000, NOTHING);
	assert_refused("longer than a quarter of an hour");
	struct compute_trace is;
	assert_int_equal(compute_trace_read("/absent.0.et", &is, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "/absent.0.et: No such file"));
}

/* A circle of calls, and a call of what is not there. */
static void calls__without_an_end_are_followed_so_far(void **state)
{
	struct compute_trace is;
	begin_trace();
	call(1, "a", 2);
	call(2, "b", 1);
	kernel(3, "gemm", 5, 1);
	kernel(4, "gemm", 7, 99);
	assert_int_equal(read_trace(&is), 0);
	assert_int_equal(is.unmatched, 2);
}

static int remove_after(void **state)
{
	remove_traces();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(names__of_generators_say_operation_and_pass, remove_after),
		cmocka_unit_test_teardown(kernels__belong_to_what_called_them, remove_after),
		cmocka_unit_test_teardown(names__that_differ_add_up, remove_after),
		cmocka_unit_test_teardown(prefix__is_all_ranks, remove_after),
		cmocka_unit_test_teardown(bad_traces__say_what_and_where, remove_after),
		cmocka_unit_test_teardown(calls__without_an_end_are_followed_so_far, remove_after),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
