/* Workloads of kind inference: requests, their times from the model and the GPU, and what became of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "net/why.h"
#include "sim/services.h"
#include "sim/simulation.h"
#include "sim/why_about.h"
#include "steps/model.h"

enum { WEIGHT_BYTES = 2 }; /* of a parameter */

#define MOST_OF_A_PREFILL ((double)VB_S * 86400 * 40)

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static const char *model_name(uint32_t number)
{
	return model_of(number) ? model_of(number)->name : NULL;
}

static const char *gpu_name(uint32_t number)
{
	return gpu_of(number) ? gpu_of(number)->name : NULL;
}

static int find_parts(const struct simulation *simulation, const struct scenario_workload *given,
	const struct model **model, const struct gpu **gpu, char *why, unsigned why_size)
{
	*model = model_find(given->step.model);
	*gpu = *given->step.gpu ? gpu_find(given->step.gpu) : simulation->scenario->gpu;
	if (!*model)
		return why_not_among(why, why_size, model_name, "model: there is no such model; write one of these");
	if (!*gpu)
		return why_not_among(why, why_size, gpu_name, "gpu: there is no such GPU; write one of these");
	return 0;
}

/* From a file, or at random. */
static int get_requests(struct service *service, const struct simulation *simulation, char *why, unsigned why_size)
{
	const struct scenario_service *given = &simulation->scenario->workloads[service->workload].service;

	if (*given->trace) {
		const int rc =
			inference_requests_read(&service->requests, given->trace, given->requests, why, why_size);
		return rc == -EINVAL ? why_about(why, why_size, "trace") : rc;
	}
	if (!given->requests || given->request_rate <= 0)
		return why_not(
			why, why_size, "requests: none; write trace: FILE, or requests and request-rate above 0");
	const double gap = (double)VB_S / given->request_rate;
	return inference_requests_make(&service->requests, given->requests, (vb_time)(gap + 0.5), given->input_tokens,
		given->output_tokens, simulation->scenario->seed + service->workload);
}

/* A token's work grows with those before it. */
static int set_prefills(struct service *service, const struct scenario_workload *given, const struct model *model,
	const struct gpu *gpu, char *why, unsigned why_size)
{
	const double rate = (double)given->step.plan.tp * gpu->tflops * 1e12 * given->step.plan.mfu;

	for (uint32_t i = 0; i < service->requests.count; i++) {
		struct inference_request *its = &service->requests.list[i];
		const double ps = (double)its->input * model_work(model, its->input, true) / rate * (double)VB_S;
		if (ps > MOST_OF_A_PREFILL)
			return why_not(why, why_size, "gpu: a prefill takes more than 40 days; write a larger tp");
		its->prefill = (vb_time)(ps + 0.5);
	}
	return 0;
}

static int set_up(struct service *service, const struct simulation *simulation, struct inference *of, char *why,
	unsigned why_size)
{
	const struct scenario_workload *given = &simulation->scenario->workloads[service->workload];
	const double bytes_ps = (double)VB_S / ((double)given->service.memory_bandwidth * given->step.plan.tp);
	const struct model *model;
	const struct gpu *gpu;
	int rc = find_parts(simulation, given, &model, &gpu, why, why_size);

	if (!rc)
		rc = inference_check(of, &service->requests, why, why_size); /* there are none yet */
	if (!rc)
		rc = service_check_ranks(simulation, of->first, inference_ranks(of), "decode", why, why_size);
	if (!rc)
		rc = get_requests(service, simulation, why, why_size);
	if (rc)
		return rc;
	of->kv_bytes = model_kv_bytes(model);
	of->kv_ps = (double)of->kv_bytes * bytes_ps;
	of->one_ps = (double)WEIGHT_BYTES * (double)model_active_parameters(model) * bytes_ps;
	of->all_ps = (double)WEIGHT_BYTES * (double)model_parameters(model) * bytes_ps;
	rc = set_prefills(service, given, model, gpu, why, why_size);
	if (!rc)
		rc = inference_check(of, &service->requests, why, why_size);
	return rc ? rc : inference_job_open(&service->inference, of, &service->requests);
}

static int open_inference(struct service *service, const struct simulation *simulation, char *why, unsigned why_size)
{
	const struct scenario_workload *given = &simulation->scenario->workloads[service->workload];
	struct inference of = { .first = given->workload.first,
		.prefill = given->service.prefill,
		.decode = given->service.decode,
		.tp = given->step.plan.tp,
		.batch = given->step.plan.batch ? (uint32_t)given->step.plan.batch : INFERENCE_BATCH,
		.start = given->workload.start,
		.traffic_class = given->workload.traffic_class };
	const int rc = set_up(service, simulation, &of, why, why_size);

	service->job = &service->inference.job;
	if (rc)
		inference_requests_free(&service->requests);
	return rc;
}

static uint64_t kv_bytes_of(const struct service *service)
{
	uint64_t tokens = 0;
	for (uint32_t i = 0; i < service->requests.count; i++)
		tokens += service->requests.list[i].input;
	return tokens * service->inference.of.kv_bytes;
}

static struct service_load load(const struct service *service)
{
	const struct inference *of = &service->inference.of;
	return (struct service_load){ .messages = (double)service->job->operations,
		.bytes = (double)kv_bytes_of(service),
		.open = 2 * of->prefill * of->tp,
		.from = of->first,
		.to = of->first + of->prefill * of->tp };
}

/* ---- The result -------------------------------------------------------------------------------------------------- */

struct figures {
	uint32_t done, with_steps; /* requests; of these, that had more than one token */
	vb_time ttft[2], tpot[2];  /* p50, p99 */
	double ttft_mean, per_second;
};

static int by_time(const void *a, const void *b)
{
	const vb_time *one = a, *other = b;
	return (*one > *other) - (*one < *other);
}

/* The nearest rank; of none 0. */
static void put_percentiles(vb_time *list, uint32_t count, vb_time of[2])
{
	qsort(list, count, sizeof(*list), by_time);
	of[0] = count ? list[(count + 1) / 2 - 1] : 0;
	of[1] = count ? list[((uint64_t)count * 99 + 99) / 100 - 1] : 0;
}

static void figure(const struct service *service, const struct inference_times *times, vb_time *ttft, vb_time *tpot,
	struct figures *figures)
{
	vb_time last = 0;
	for (uint32_t i = 0; i < service->requests.count; i++) {
		const struct inference_request *its = &service->requests.list[i];
		if (times[i].last < 0)
			continue;
		ttft[figures->done] = times[i].first - service->inference.of.start - its->arrival;
		figures->ttft_mean += (double)ttft[figures->done++];
		if (its->output > 1)
			tpot[figures->with_steps++] = (times[i].last - times[i].first) / (its->output - 1);
		last = times[i].last > last ? times[i].last : last;
	}
	last -= service->inference.of.start;
	figures->ttft_mean /= figures->done ? figures->done : 1;
	figures->per_second = last > 0 ? figures->done / ((double)last / VB_S) : 0;
	put_percentiles(ttft, figures->done, figures->ttft);
	put_percentiles(tpot, figures->with_steps, figures->tpot);
}

static bool find_figures(const struct service *service, struct figures *figures)
{
	const uint32_t count = service->requests.count;
	struct inference_times *times = calloc(count, sizeof(*times));
	vb_time *ttft = calloc(count, sizeof(*ttft)), *tpot = calloc(count, sizeof(*tpot));

	*figures = (struct figures){ 0 };
	const bool has_all = times && ttft && tpot && !inference_job_times(&service->inference, times);
	if (has_all)
		figure(service, times, ttft, tpot, figures);
	free(times);
	free(ttft);
	free(tpot);
	return has_all;
}

static void put_times(FILE *out, const char *what, const vb_time of[2])
{
	char p50[32], p99[32];
	fprintf(out, "  %s p50 %s, p99 %s\n", what, value_time_text(of[0], p50, sizeof(p50)),
		value_time_text(of[1], p99, sizeof(p99)));
}

static void tell(const struct service *service, const struct simulation *simulation, FILE *out)
{
	const struct inference *of = &service->inference.of;
	struct figures is;
	char bytes[32];

	(void)simulation;
	fprintf(out,
		"inference %" PRIu32 ": %" PRIu32 " prefill and %" PRIu32 " decode groups of %" PRIu32
		" ranks; no prefix cache, memory is not bounded\n",
		service->workload, of->prefill, of->decode, of->tp);
	if (!find_figures(service, &is)) {
		fputs("  no memory for its times\n", out);
		return;
	}
	fprintf(out, "  %" PRIu32 " of %" PRIu32 " requests are done, %.4g a second; %s of keys and values\n", is.done,
		service->requests.count, is.per_second, value_bytes_text(kv_bytes_of(service), bytes, sizeof(bytes)));
	if (is.done)
		put_times(out, "time to the first token:", is.ttft);
	if (is.with_steps)
		put_times(out, "time per output token:  ", is.tpot);
}

static void tell_json(const struct service *service, const struct simulation *simulation, FILE *out)
{
	struct figures is;

	(void)simulation;
	if (!find_figures(service, &is))
		return;
	fprintf(out,
		", \"requests\": %" PRIu32 ", \"done\": %" PRIu32 ", \"requests_per_s\": %.6g, \"kv_bytes\": %" PRIu64
		", \"ttft_ps\": {\"mean\": %.6g, \"p50\": %" PRId64 ", \"p99\": %" PRId64
		"}, \"tpot_ps\": {\"p50\": %" PRId64 ", \"p99\": %" PRId64 "}, \"prefix_cache\": false",
		service->requests.count, is.done, is.per_second, kv_bytes_of(service), is.ttft_mean, is.ttft[0],
		is.ttft[1], is.tpot[0], is.tpot[1]);
}

static void close_inference(struct service *service)
{
	inference_job_close(&service->inference);
	inference_requests_free(&service->requests);
}

const struct service_kind service_inference = { "inference", open_inference, load, tell, tell_json, close_inference };
