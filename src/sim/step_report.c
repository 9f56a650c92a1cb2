/* See step_report.h. */
#include "sim/step_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "os/json.h"
#include "sim/report.h"
#include "sim/step_gpus.h"
#include "sim/table_checks.h"
#include "sim/value.h"

#define GB      1e9
#define NO_GAIN 0.001 /* of a step */

#define UPPER_BOUND "each stage computes as long as its slowest rank, and these are in several replicas"

static const char *const recomputes[] = { "none", "selective", "full" };
static const char *const schedules[] = { "1f1b", "interleaved", "zero-bubble" };

/* What is told of communication, and of which dimensions it is: a bit each. */
static const struct {
	const char *name;
	unsigned of;
} told[] = { { "tp", 1u << STEP_TP }, { "cp", 1u << STEP_CP }, { "ep", 1u << STEP_EP }, { "pp", 1u << STEP_PP },
	{ "dp", 1u << STEP_DP | 1u << STEP_EXPERTS_DP | 1u << STEP_ENDS | 1u << STEP_ALL } };
enum { TOLD = sizeof(told) / sizeof(*told) };

static double sum_of(const double values[STEP_DIMENSIONS], unsigned number)
{
	double sum = 0;

	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		if (told[number].of >> i & 1)
			sum += values[i];
	return sum;
}

static double idle_share(const struct step_times *times)
{
	return 1 - times->compute / (double)times->step;
}

static double mfu_of(const struct step *step)
{
	const double seconds = (double)step->times.step / VB_S;
	return plan_work(&step->plan) / (seconds * plan_ranks(&step->plan) * step_gpus_tflops(step) * 1e12);
}

static double tokens_a_second(const struct step *step)
{
	return plan_tokens(&step->plan) / ((double)step->times.step / VB_S);
}

static double gpu_hours_idle(const struct step *step, uint32_t steps)
{
	const double hours = (double)step->times.step / VB_S / 3600 * steps;
	return hours * plan_ranks(&step->plan) * idle_share(&step->times);
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void put_kinds(FILE *out, const struct step *step)
{
	const char *before = "\nranks   ";
	const struct gpu *kind;
	uint32_t place = 0, ranks;

	while ((kind = step_gpus_next(step, &place, &ranks))) {
		fprintf(out, "%s%" PRIu32 " %s", before, ranks, kind->name);
		before = " and ";
	}
	if (step->plan.first)
		fprintf(out, " from rank %" PRIu32 " on", step->plan.first);
}

void step_report_plan(FILE *out, const struct step *step)
{
	const struct step_plan *plan = &step->plan;
	const struct gpu *smallest = step_gpus_smallest(step);
	char tokens[32], work[32], missing[300];

	fprintf(out, "model   %s: %" PRIu64 " parameters", plan->model.name, model_parameters(&plan->model));
	if (plan->model.experts)
		fprintf(out, ", of which a token meets %" PRIu64, model_active_parameters(&plan->model));
	put_kinds(out, step);
	fprintf(out, ": tp %" PRIu32 "%s, cp %" PRIu32 ", pp %" PRIu32 ", dp %" PRIu32, plan->tp,
		plan->is_sequence_parallel ? " with sp" : "", plan->cp, plan->pp, plan->dp);
	if (plan->model.experts)
		fprintf(out, ", ep %" PRIu32, plan->ep);
	fprintf(out, "; ZeRO-%u, recompute %s, schedule %s", plan->zero, recomputes[plan->recompute],
		schedules[plan->schedule]);
	if (plan->chunks > 1)
		fprintf(out, " of %" PRIu32 " parts a stage", plan->chunks);
	fprintf(out, "\noverlap %s%s%s\n", plan->overlaps_gradients ? "of gradients" : "",
		plan->overlaps_gradients && plan->overlaps_parameters ? " and " : "",
		plan->overlaps_parameters  ? "of parameters"
		: plan->overlaps_gradients ? ""
					   : "none, Megatron-LM's default");
	fprintf(out,
		"batch   %" PRIu32 " sequences of %" PRIu32 " tokens: %s tokens in %" PRIu32
		" micro-batches of %" PRIu32 " for each replica\n",
		plan->batch, plan->sequence, value_count_text(plan_tokens(plan), tokens, sizeof(tokens)),
		plan_micro_batches(plan), plan->micro_batch);
	fprintf(out, "memory  %.1f GB of %s's %" PRIu32 ": state %.1f, activations %.1f, embedding and output %.1f\n",
		step->memory.sum / GB, plan->kinds.count ? smallest->name : "a GPU", smallest->memory_gb,
		step->memory.state / GB, step->memory.activations / GB, step->memory.ends / GB);
	fprintf(out, "work    %sFLOP, ", value_count_text(plan_work(plan), work, sizeof(work)));
	if (step->compute_times)
		fprintf(out, "in the kernels' times of %s%s\n", step->compute_times,
			step_times_by_mfu(plan, missing, sizeof(missing)) ? ", what it has not by mfu" : "");
	else
		fprintf(out, "at %.4g%% of %.4g TFLOP/s%s while kernels run\n", plan->mfu * 100, step_gpus_tflops(step),
			plan->kinds.count ? ", a mean," : "");
	if (step->slow)
		fprintf(out, "slow    %s: their computing takes so many times as long\n", step->slow);
	fprintf(out, "bubble  %.2f%% of computing, from the schedule alone\n", plan_bubble(plan) * 100);
}

static void put_part(FILE *out, const struct step *step, const char *name, double part)
{
	char time[32];

	fprintf(out, "  %-18s %12s  %6.2f%%\n", name, value_time_text((vb_time)part, time, sizeof(time)),
		100 * part / (double)step->times.step);
}

static void put_exposed(FILE *out, const struct step *step)
{
	char name[32], bytes[32];

	for (unsigned i = 0; i < TOLD; i++) {
		const double moved = sum_of(step->times.bytes, i);
		if (moved == 0)
			continue;
		snprintf(name, sizeof(name), "%s exposed", told[i].name);
		put_part(out, step, name, sum_of(step->times.exposed, i));
		fprintf(out, "  %-18s %12s\n", "  a rank sends",
			value_bytes_text((uint64_t)moved, bytes, sizeof(bytes)));
	}
}

/* A network that took no time would save that much, with what stages wait for each other because of it. */
static void put_bound(FILE *out, const struct step *step)
{
	if (step->bound == 0)
		fprintf(out, "no network between hosts makes it faster");
	else
		fprintf(out, "no network between hosts gains more than %.2f%%", 100 * step->bound);
	if (step->bound < NO_GAIN)
		fprintf(out, ": exposed communication between hosts %.2f%%, bound by %s",
			100 * step_exposed_between_hosts(step), step_bound_by(step));
	fputc('\n', out);
}

const char *step_report_why_same(const struct step *step, bool is_by_formula, char *text, size_t size)
{
	const double part = 100 * step_exposed_between_hosts(step);

	if (step->bound < NO_GAIN)
		snprintf(text, size, "exposed communication between hosts %.2f%%, bound by %s", part,
			step_bound_by(step));
	else if (is_by_formula)
		snprintf(text, size,
			"by formula only rates and delays of the links between hosts count, and by these the exposed "
			"%.2f%% take as long",
			part);
	else
		snprintf(text, size, "the exposed %.2f%% of communication between hosts take as long", part);
	return text;
}

void step_report_times(FILE *out, const struct step *step, const char *how, uint32_t steps)
{
	const struct step_times *times = &step->times;
	char time[32], tokens[32];

	fprintf(out, "\nstep %s %s; means of all ranks\n", value_time_text(times->step, time, sizeof(time)), how);
	if (step->alone > 0)
		fprintf(out, "alone %s: beside the others %.2f times as long\n",
			value_time_text(step->alone, time, sizeof(time)), (double)times->step / (double)step->alone);
	put_part(out, step, "computing", times->compute);
	put_exposed(out, step);
	put_part(out, step, "bubble", times->bubble);
	fprintf(out, "%s tokens/s, MFU %.1f%%, GPUs idle %.1f%%\n",
		value_count_text(tokens_a_second(step), tokens, sizeof(tokens)), 100 * mfu_of(step),
		100 * idle_share(times));
	if (steps)
		fprintf(out, "%" PRIu32 " steps take %.1f hours, in which GPUs idle for %.0f GPU hours\n", steps,
			(double)times->step / VB_S / 3600 * steps, gpu_hours_idle(step, steps));
	if (step->is_upper_bound)
		fprintf(out, "at most: " UPPER_BOUND "\n");
	put_bound(out, step);
}

/* ---- The check --------------------------------------------------------------------------------------------------- */

static double step_error(const struct step_check *check)
{
	return (double)check->ours.step / (double)check->packets.step - 1;
}

/* What takes less of the step has no error to tell: a dimension may be one message of eight bytes. */
#define LEAST_PHASE 0.01

static bool has_phase(const struct step_check *check, unsigned number)
{
	return sum_of(check->packets.took, number) > LEAST_PHASE * (double)check->packets.step;
}

/* Of all of its communication, hidden or not. */
static double phase_error(const struct step_check *check, unsigned number)
{
	return sum_of(check->ours.took, number) / sum_of(check->packets.took, number) - 1;
}

/* -1: nothing is sent. */
static int worst_phase(const struct step_check *check)
{
	int worst = -1;

	for (unsigned i = 0; i < TOLD; i++)
		if (has_phase(check, i) &&
			(worst < 0 || fabs(phase_error(check, i)) > fabs(phase_error(check, (unsigned)worst))))
			worst = (int)i;
	return worst;
}

void step_report_check(FILE *out, const struct step_check *check)
{
	char hops[32];

	if (!check->is_made) {
		fprintf(out, "error   not known: %s\n", check->why_not);
		return;
	}
	fprintf(out, "error   %+.2f%% of the step", 100 * step_error(check));
	for (unsigned i = 0; i < TOLD; i++)
		if (has_phase(check, i))
			fprintf(out, ", %+.2f%% of %s", 100 * phase_error(check, i), told[i].name);
	fprintf(out,
		"\n  in a piece that ran by packets, too: %" PRIu32 " layer%s, %" PRIu32
		" micro-batch%s, %.3g%% of each message's bytes, %s packet-hops\n",
		check->layers, check->layers == 1 ? "" : "s", check->micro_batches,
		check->micro_batches == 1 ? "" : "es", 100 * check->bytes_part,
		value_count_text((double)check->packet_hops, hops, sizeof(hops)));
	report_unseen(out, check->drops, check->resent, check->pauses);
}

/* ---- A table ----------------------------------------------------------------------------------------------------- */

static double all_exposed(const struct step *step)
{
	double sum = 0;

	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		sum += step->times.exposed[i];
	return sum;
}

void step_report_heading(FILE *out, bool with_errors)
{
	fprintf(out, "%-34s %10s %10s %10s %10s %7s %10s %9s", "", "step", "computing", "exposed", "bubble", "MFU",
		"tokens/s", "net gains");
	fprintf(out, with_errors ? " %8s %12s\n" : "\n", "error", "worst phase");
}

/* Two columns; and below them why a check was not made, or what it met. */
static void put_errors(FILE *out, const struct step_check *check)
{
	const bool is_known = !check || check->is_made;
	const int worst = check && is_known ? worst_phase(check) : -1;
	char error[32], phase[32] = "-";

	if (worst >= 0)
		snprintf(phase, sizeof(phase), "%s %+.2f%%", told[worst].name,
			100 * phase_error(check, (unsigned)worst));
	fprintf(out, " %8s %12s\n",
		check ? table_error_text(is_known, is_known ? step_error(check) : 0, error, sizeof(error)) : "0",
		phase);
	if (!is_known)
		fprintf(out, "  error not known: %s\n", check->why_not);
	else if (check)
		report_unseen(out, check->drops, check->resent, check->pauses);
}

void step_report_line(
	FILE *out, const char *name, const struct step *step, const struct step_check *check, bool with_errors)
{
	const struct step_times *times = &step->times;
	char whole[32], compute[32], exposed[32], bubble[32], tokens[32];

	fprintf(out, "%-34s %10s %10s %10s %10s %6.1f%% %10s %8.2f%%", name,
		value_time_text(times->step, whole, sizeof(whole)),
		value_time_text((vb_time)times->compute, compute, sizeof(compute)),
		value_time_text((vb_time)all_exposed(step), exposed, sizeof(exposed)),
		value_time_text((vb_time)times->bubble, bubble, sizeof(bubble)), 100 * mfu_of(step),
		value_count_text(tokens_a_second(step), tokens, sizeof(tokens)), 100 * step->bound);
	if (with_errors)
		put_errors(out, check);
	else
		fputc('\n', out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_by_dimension(FILE *out, const char *name, const double values[STEP_DIMENSIONS])
{
	fprintf(out, ", \"%s\": {", name);
	for (unsigned i = 0; i < TOLD; i++)
		fprintf(out, "%s\"%s\": %.0f", i ? ", " : "", told[i].name, sum_of(values, i));
	fputc('}', out);
}

static void put_error(FILE *out, const struct step_check *check)
{
	const int worst = worst_phase(check);

	if (!check->is_made) {
		fprintf(out, ", \"error\": null, \"unchecked_because\": ");
		vb_json_string(out, check->why_not);
		return;
	}
	fprintf(out, ", \"error\": {\"step\": %.6f", step_error(check));
	if (worst >= 0)
		fprintf(out, ", \"worst_phase\": {\"name\": \"%s\", \"error\": %.6f}", told[worst].name,
			phase_error(check, (unsigned)worst));
	fprintf(out,
		"}, \"check\": {\"layers\": %" PRIu32 ", \"micro_batches\": %" PRIu32
		", \"bytes_part\": %.6g, \"packet_hops\": %" PRIu64 ", \"cpu_s\": %.3f, \"drops\": %" PRIu64
		", \"pauses\": %" PRIu64 ", \"resent_packets\": %" PRIu64 "}",
		check->layers, check->micro_batches, check->bytes_part, check->packet_hops, check->cpu_s, check->drops,
		check->pauses, check->resent);
}

static void put_times(
	FILE *out, const struct step *step, const char *mode, uint32_t steps, const struct step_check *check)
{
	const struct step_times *times = &step->times;

	fprintf(out, ", \"mode\": \"%s\", \"step\": {\"time_ps\": %" PRId64 ", \"compute_ps\": %.0f", mode,
		(int64_t)times->step, times->compute);
	if (step->alone)
		fprintf(out, ", \"alone_ps\": %" PRId64, (int64_t)step->alone);
	put_by_dimension(out, "exposed_ps", times->exposed);
	fprintf(out, ", \"bubble_ps\": %.0f}", times->bubble);
	put_by_dimension(out, "bytes_a_rank", times->bytes);
	fprintf(out,
		", \"tokens_a_second\": %.6g, \"mfu\": %.6g, \"gpu_idle_share\": %.6g, \"network_bound\": %.6g, "
		"\"exposed_between_hosts_share\": %.6g, \"bound_by\": \"%s\"",
		tokens_a_second(step), mfu_of(step), idle_share(times), step->bound, step_exposed_between_hosts(step),
		step_bound_by(step));
	if (strcmp(mode, "packets") == 0) /* by which other modes are judged */
		fprintf(out, ", \"error\": {\"step\": 0}");
	else if (check)
		put_error(out, check);
	if (steps)
		fprintf(out, ", \"training_steps\": %" PRIu32 ", \"training_s\": %.6g, \"gpu_hours_idle\": %.6g", steps,
			(double)times->step / VB_S * steps, gpu_hours_idle(step, steps));
}

/* If GPUs differ, or reach another speed than a part of their peak. */
static void put_gpus_json(FILE *out, const struct step *step)
{
	const struct gpu *kind;
	uint32_t place = 0, ranks;

	if (step->compute_times) {
		fprintf(out, ", \"compute_times\": ");
		vb_json_string(out, step->compute_times);
	}
	if (step->slow) {
		fprintf(out, ", \"slow\": ");
		vb_json_string(out, step->slow);
	}
	for (const char *before = ", \"gpus\": {";
		step->plan.kinds.count && (kind = step_gpus_next(step, &place, &ranks)); before = ", ")
		fprintf(out, "%s\"%s\": %" PRIu32, before, kind->name, ranks);
	if (step->plan.kinds.count)
		fputc('}', out);
	if (step->is_upper_bound)
		fprintf(out, ", \"label\": \"at most: " UPPER_BOUND "\"");
}

void step_report_json(
	FILE *out, const struct step *step, const char *mode, uint32_t steps, const struct step_check *check)
{
	const struct step_plan *plan = &step->plan;

	fprintf(out, "{\"workload\": %" PRIu32 ", \"model\": ", step->workload);
	vb_json_string(out, plan->model.name);
	fprintf(out,
		", \"parameters\": %" PRIu64 ", \"active_parameters\": %" PRIu64
		", \"gpu\": \"%s\", \"first\": %" PRIu32 ", \"ranks\": %" PRIu32 ", \"tp\": %" PRIu32
		", \"cp\": %" PRIu32 ", \"pp\": %" PRIu32 ", \"dp\": %" PRIu32 ", \"ep\": %" PRIu32,
		model_parameters(&plan->model), model_active_parameters(&plan->model), step->gpu->name, plan->first,
		plan_ranks(plan), plan->tp, plan->cp, plan->pp, plan->dp, plan->ep);
	fprintf(out,
		", \"batch\": %" PRIu32 ", \"sequence\": %" PRIu32 ", \"micro_batches\": %" PRIu32
		", \"flop\": %.6g, \"memory_bytes\": {\"state\": %.0f, \"activations\": %.0f, \"ends\": %.0f, \"sum\": "
		"%.0f}"
		", \"bubble_share\": %.6g",
		plan->batch, plan->sequence, plan_micro_batches(plan), plan_work(plan), step->memory.state,
		step->memory.activations, step->memory.ends, step->memory.sum, plan_bubble(plan));
	put_gpus_json(out, step);
	put_times(out, step, mode, steps, check);
	fputc('}', out);
}
