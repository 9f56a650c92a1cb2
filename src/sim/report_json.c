/* The result of a run, as JSON. Times are integers, in picoseconds; a hash is text, as it has more digits than a
 * double. */
#include <inttypes.h>
#include <sys/resource.h>
#include "os/json.h"
#include "sim/culprits.h"
#include "sim/alone.h"
#include "sim/graph_report.h"
#include "sim/job.h"
#include "sim/link_name.h"
#include "sim/report.h"
#include "sim/step_report.h"
#include "sim/step_workloads.h"

/* The fields of the current object. */
struct object {
	FILE *out;
	const char *indent;
	bool has_any;
};

static void field(struct object *object, const char *name)
{
	fprintf(object->out, "%s\n%s  \"%s\": ", object->has_any ? "," : "", object->indent, name);
	object->has_any = true;
}

static void integer(struct object *object, const char *name, uint64_t value)
{
	field(object, name);
	fprintf(object->out, "%" PRIu64, value);
}

static void real(struct object *object, const char *name, double value)
{
	field(object, name);
	fprintf(object->out, "%.6g", value);
}

static void string(struct object *object, const char *name, const char *value)
{
	field(object, name);
	vb_json_string(object->out, value);
}

static void put_labels(struct object *object, const struct simulation *simulation)
{
	field(object, "labels");
	fputc('[', object->out);
	for (unsigned i = 0; i < simulation->label_count; i++) {
		fputs(i ? ", " : "", object->out);
		vb_json_string(object->out, simulation->labels[i]);
	}
	fputc(']', object->out);
}

static void put_warnings(struct object *object, const struct warnings *warnings)
{
	field(object, "warnings");
	fputc('[', object->out);
	for (unsigned i = 0; i < warnings->count; i++) {
		fputs(i ? ", " : "", object->out);
		vb_json_string(object->out, warnings->texts[i]);
	}
	fputc(']', object->out);
}

static void put_links(struct object *object, const char *name, const struct simulation *simulation,
	const uint32_t *links, uint32_t count)
{
	char text[64];

	field(object, name);
	fputc('[', object->out);
	for (uint32_t i = 0; i < count; i++) {
		const struct fabric_link_counts *counts = &simulation->result.links[links[i]];
		fprintf(object->out, "%s\n%s    {\"link\": %" PRIu32 ", \"name\": ", i ? "," : "", object->indent,
			links[i]);
		vb_json_string(object->out, link_text(&simulation->network, links[i], text, sizeof(text)));
		fprintf(object->out,
			", \"load\": %.4f, \"bytes\": %" PRIu64 ", \"most_queued_bytes\": %" PRIu64
			", \"drops\": %" PRIu64 ", \"pauses\": %" PRIu64 ", \"paused_ps\": %" PRId64,
			link_load(simulation, links[i]), counts->bytes, counts->most_queued, counts->drops,
			counts->pauses, counts->paused);
		if (simulation->config.tells_queues)
			fprintf(object->out, ", \"mean_queued_bytes\": %.6g", link_mean_queue(simulation, links[i]));
		fputc('}', object->out);
	}
	fputc(']', object->out);
}

static void put_front(struct object *object, const struct simulation *simulation, const struct summary *summary)
{
	const struct network *network = &simulation->network;

	integer(object, "front_endpoints", network->front_endpoint_count - network->storage_count);
	integer(object, "storage_nodes", network->storage_count);
	integer(object, "front_switches", network->front_switch_count);
	put_links(object, "busiest_front_links", simulation, summary->front_links.link, summary->front_links.count);
}

static void put_percentiles(FILE *out, const struct summary_flows *flows)
{
	fprintf(out, "{\"flows\": %" PRIu32, flows->count);
	if (flows->count)
		fprintf(out,
			", \"fct_ps\": {\"p50\": %" PRId64 ", \"p95\": %" PRId64 ", \"p99\": %" PRId64
			", \"max\": %" PRId64
			"}, \"slowdown\": {\"p50\": %.4f, \"p95\": %.4f, \"p99\": %.4f, \"max\": %.4f}",
			flows->p50, flows->p95, flows->p99, flows->most, flows->slow50, flows->slow95, flows->slow99,
			flows->slow_most);
	fputc('}', out);
}

static void put_summary(struct object *object, const struct summary *summary)
{
	bool has_any = false;

	field(object, "summary");
	put_percentiles(object->out, &summary->all);
	field(object, "summary_by_size");
	fputc('{', object->out);
	for (int i = 0; i < SUMMARY_BUCKETS; i++) {
		if (!summary->buckets[i].count)
			continue;
		fprintf(object->out, "%s\n%s    ", has_any ? "," : "", object->indent);
		vb_json_string(object->out, summary->buckets[i].name);
		fputs(": ", object->out);
		put_percentiles(object->out, &summary->buckets[i]);
		has_any = true;
	}
	fputc('}', object->out);
}

static void put_jobs(struct object *object, const struct simulation *simulation)
{
	bool has_any = false;

	field(object, "jobs");
	fputc('[', object->out);
	for (uint32_t i = 0; i < simulation->collective_count; i++) {
		const struct collective *of = &simulation->collectives[i].of;
		const uint32_t workload = simulation->workload_of[i];
		if (i > 0 && simulation->workload_of[i - 1] == workload)
			continue;
		fprintf(object->out,
			"%s\n%s    {\"workload\": %" PRIu32 ", \"kind\": \"%s\", \"first\": %" PRIu32
			", \"ranks\": %" PRIu32 ", \"groups\": %" PRIu32 ", \"jct_ps\": %" PRId64,
			has_any ? "," : "", object->indent, workload, of->kind,
			simulation->collectives[i].groups->rank_at[0], of->ranks,
			simulation->collectives[i].groups->count, alone_job_time(simulation, workload));
		if (simulation->alone)
			fprintf(object->out, ", \"alone_ps\": %" PRId64, simulation->alone[workload]);
		fputc('}', object->out);
		has_any = true;
	}
	fputc(']', object->out);
}

static void put_flows(struct object *object, const struct simulation *simulation)
{
	char why[200];

	field(object, "flows");
	fputc('[', object->out);
	for (uint32_t i = 0; i < simulation->flows.count; i++) {
		const struct flow *flow = &simulation->flows.flows[i];
		const struct flow_result *result = &simulation->result.flows[i];
		fprintf(object->out,
			"%s\n%s    {\"src\": %" PRIu32 ", \"dst\": %" PRIu32 ", \"bytes\": %" PRIu64
			", \"start_ps\": %" PRId64 ", \"fct_ps\": %" PRId64 ", \"ideal_ps\": %" PRId64,
			i ? "," : "", object->indent, flow->src, flow->dst, flow->bytes, result->start, result->fct,
			simulation->ideals[i]);
		if (result->error) {
			fputs(", \"error\": ", object->out);
			vb_json_string(object->out, culprit_text(simulation, i, why, sizeof(why)));
		}
		fputc('}', object->out);
	}
	fputc(']', object->out);
}

/* Of this program: getrusage() includes the program before exec(), such as a large script that runs many. */
static uint64_t peak_memory(void)
{
	struct rusage usage = { 0 };
	unsigned long long kilobytes = 0;
	char line[128];
	FILE *status = fopen("/proc/self/status", "re");

	while (status && kilobytes == 0 && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %llu kB", &kilobytes) != 1)
			kilobytes = 0;
	if (status)
		fclose(status);
	if (kilobytes > 0)
		return kilobytes * 1024;
	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

static void put_cost(struct object *object, const struct fabric_result *result)
{
	integer(object, "packet_hops", result->packet_hops);
	integer(object, "events", result->events);
	real(object, "setup_cpu_s", result->setup_cpu_s);
	real(object, "cpu_s", result->cpu_s);
	real(object, "critical_cpu_s", result->critical_cpu_s);
	real(object, "wall_s", result->wall_s);
	real(object, "packet_hops_per_cpu_s", report_hops_per_cpu_s(result));
	real(object, "payload_gb_per_cpu_s", report_payload_gb_per_cpu_s(result));
	integer(object, "max_rss_bytes", peak_memory());
}

/* The estimate from before the run. */
static void put_estimate(struct object *object, const struct estimate *estimate)
{
	field(object, "estimate");
	fprintf(object->out,
		"{\"memory_bytes\": %" PRIu64 ", \"waiting_bytes\": %" PRIu64
		", \"packet_hops\": %.6g, \"payload_bytes\": %.6g, "
		"\"cpu_s\": %.4g}",
		estimate->network_bytes + estimate->flow_bytes, estimate->waiting_bytes, estimate->packet_hops,
		estimate->payload_bytes, estimate->cpu_s);
}

static void put_counts(struct object *object, const struct fabric_result *result)
{
	integer(object, "operations", result->operations);
	integer(object, "flows_done", result->flows_done);
	integer(object, "flows_failed", result->flows_failed);
	integer(object, "payload_bytes", result->payload_bytes);
	if (result->scale_up_bytes)
		integer(object, "scale_up_bytes", result->scale_up_bytes);
	integer(object, "data_packets", result->data_packets);
	integer(object, "acks", result->acks);
	integer(object, "resent_packets", result->resent_packets);
	integer(object, "probes", result->probes);
	integer(object, "timeouts", result->timeouts);
	integer(object, "naks", result->naks);
	integer(object, "cnps", result->cnps);
	integer(object, "marked_packets", result->marked_packets);
	integer(object, "drops", result->drops);
	integer(object, "trimmed_packets", result->trims);
	integer(object, "lossless_drops", result->lossless_drops);
	integer(object, "lost", result->lost);
	integer(object, "pauses", result->pauses);
}

/* Of the switches that cut any. */
static void put_trims(struct object *object, const struct simulation *simulation)
{
	bool has_any = false;

	field(object, "trimmed_by_switch");
	fputc('[', object->out);
	for (uint32_t i = 0; i < simulation->network.switch_count; i++) {
		const uint64_t count = report_trims(simulation, i);
		if (count == 0)
			continue;
		fprintf(object->out, "%s\n%s    {\"switch\": %" PRIu32 ", \"packets\": %" PRIu64 "}",
			has_any ? "," : "", object->indent, i, count);
		has_any = true;
	}
	fputc(']', object->out);
}

static void put_steps(struct object *object, const struct simulation *simulation)
{
	struct step step;

	field(object, "steps");
	fputc('[', object->out);
	for (uint32_t i = 0; i < simulation->step_count; i++) {
		fputs(i ? ",\n  " : "", object->out);
		const uint32_t workload = step_workload(simulation, i);
		if (!step_take_times(simulation, workload, &step))
			step_report_json(object->out, &step, "packets",
				simulation->scenario->workloads[workload].step.steps, NULL);
		step_close(&step);
	}
	fputc(']', object->out);
}

void report_error_json(FILE *out, const struct simulation *simulation)
{
	const struct flow_check *check = &simulation->check;

	if (!report_has_error(simulation))
		return;
	if (simulation->config.by_flows && !check->is_made) {
		fputs(", \"error\": null, \"unchecked_because\": ", out);
		vb_json_string(out, report_why_unchecked(simulation));
		return;
	}
	fprintf(out, ", \"error\": {\"step\": %.6g", check->error);
	if (check->has_phases)
		fprintf(out, ", \"worst_phase\": {\"name\": \"workload.%" PRIu32 "\", \"error\": %.6f}", check->worst,
			check->worst_error);
	fputc('}', out);
	if (simulation->config.by_flows)
		fprintf(out,
			", \"check\": {\"bytes_part\": %.6g, \"packet_hops\": %" PRIu64 ", \"drops\": %" PRIu64
			", \"pauses\": %" PRIu64 ", \"resent_packets\": %" PRIu64 "}",
			check->bytes_part, check->packet_hops, check->drops, check->pauses, check->resent);
}

void report_json(FILE *out, const struct simulation *simulation, const struct summary *summary,
	const struct explanation *explanation, const char *indent, bool with_flows)
{
	static const char *const endpoints[] = {
		[FABRIC_ENGINE] = "engine", [FABRIC_IDEAL] = "ideal", [FABRIC_TCP] = "tcp"
	};
	const struct fabric_result *result = &simulation->result;
	struct object object = { .out = out, .indent = indent };
	struct job_bandwidth bandwidth;
	char hash[24];

	fputc('{', out);
	string(&object, "name", simulation->scenario->name);
	string(&object, "mode", simulation->config.by_flows ? "flows" : "packets");
	report_error_json(out, simulation);
	string(&object, "endpoint", endpoints[simulation->config.endpoint]);
	string(&object, "variant", simulation->scenario->variant);
	string(&object, "cc", simulation_control(simulation));
	integer(&object, "seed", simulation->scenario->seed);
	integer(&object, "threads", result->threads);
	integer(&object, "endpoints", network_back_endpoints(&simulation->network));
	integer(&object, "mtu", simulation->config.mtu);
	integer(&object, "ack_every", simulation->config.ack_every);
	put_labels(&object, simulation);
	put_warnings(&object, &simulation->warnings);
	string(&object, "end", report_end_name(report_end(simulation)));
	string(&object, "end_text", report_end_text(simulation, report_end(simulation)));
	integer(&object, "ended_at_ps", (uint64_t)result->ended_at);
	if (result->flows_done) {
		integer(&object, "jct_ps", (uint64_t)result->last_flow);
	} else {
		field(&object, "jct_ps");
		fputs("null", out);
	}
	if (job_bandwidth(simulation, &bandwidth))
		real(&object, "busbw_gb_s", bandwidth.busbw);
	put_estimate(&object, &simulation->estimate);
	put_cost(&object, result);
	put_counts(&object, result);
	if (result->trims)
		put_trims(&object, simulation);
	snprintf(hash, sizeof(hash), "%016" PRIx64, result->hash);
	string(&object, "result_hash", hash);
	put_links(&object, "cycle", simulation, result->cycle, result->cycle_count);
	put_links(&object, "busiest_links", simulation, summary->links.link, summary->links.count);
	if (simulation->network.storage_count)
		put_front(&object, simulation, summary);
	put_summary(&object, summary);
	if (explanation) {
		field(&object, "explain");
		explanation_json(out, indent, explanation, simulation);
	}
	if (alone_is_wanted(simulation))
		put_jobs(&object, simulation);
	if (simulation->service_count) {
		field(&object, "services");
		services_json(simulation, out, indent);
	}
	if (simulation->alone)
		string(&object, "alone_end", report_end_name(simulation->alone_end));
	if (simulation->has_graph)
		graph_report_json(out, simulation, indent);
	if (simulation->step_count && report_end(simulation) == FABRIC_DONE)
		put_steps(&object, simulation);
	if (with_flows)
		put_flows(&object, simulation);
	fprintf(out, "\n%s}", indent);
}
