/* The result of a run, for people and as CSV. */
#include "sim/report.h"

#include <inttypes.h>
#include <string.h>
#include "sim/alone.h"
#include "sim/culprits.h"
#include "sim/job.h"
#include "sim/link_name.h"
#include "sim/nccl_choice.h"
#include "sim/traffic.h"

enum { FAILURES_TOLD = 8 };

const char *report_end_name(enum fabric_end end)
{
	static const char *const names[] = {
		[FABRIC_DONE] = "done",
		[FABRIC_LIMIT] = "limit",
		[FABRIC_DEADLOCK] = "deadlock",
		[FABRIC_LIVELOCK] = "livelock",
		[FABRIC_IDLE] = "idle",
		[FABRIC_STOPPED] = "stopped",
		[FABRIC_MEMORY] = "memory",
		[FABRIC_NUMBERS] = "numbers",
	};
	return names[end];
}

enum fabric_end report_end(const struct simulation *simulation)
{
	uint32_t unfinished;

	if (simulation->result.end != FABRIC_DONE || !simulation->has_graph)
		return simulation->result.end;
	return graph_job_unfinished(&simulation->graph_job, &unfinished) == GRAPH_NONE ? FABRIC_DONE : FABRIC_IDLE;
}

enum unit { FLOWS, MESSAGES, OPERATIONS, UNITS };

/* Of a job from a file computations count, too. */
static enum unit unit_of(const struct simulation *simulation)
{
	return simulation->has_graph ? OPERATIONS : simulation->job_count ? MESSAGES : FLOWS;
}

const char *report_unit(const struct simulation *simulation)
{
	static const char *const names[UNITS] = { "flow", "message", "operation" };
	return names[unit_of(simulation)];
}

const char *report_end_text(const struct simulation *simulation, enum fabric_end end)
{
	static const char *const done[UNITS] = { "every flow ended", "every message ended", "every operation ended" };
	static const char *const livelock[UNITS] = { "livelock: packets move, but no flow makes progress",
		"livelock: packets move, but no message makes progress",
		"livelock: packets move, but no message makes progress" };
	static const char *const idle[UNITS] = { "no events are left, and flows are open",
		"no events are left, and messages are open", "no events are left, and operations wait for ever" };
	const enum unit unit = unit_of(simulation);
	const char *const texts[] = {
		[FABRIC_DONE] = done[unit],
		[FABRIC_LIMIT] = "the limit of virtual time was reached",
		[FABRIC_DEADLOCK] = "deadlock: ports wait for each other in a cycle",
		[FABRIC_LIVELOCK] = livelock[unit],
		[FABRIC_IDLE] = idle[unit],
		[FABRIC_STOPPED] = "interrupted",
		[FABRIC_MEMORY] = "out of memory",
		[FABRIC_NUMBERS] = "an endpoint has no number left for the QP of another connection",
	};

	return texts[end];
}

double report_hops_per_cpu_s(const struct fabric_result *result)
{
	return result->cpu_s > 0 ? (double)result->packet_hops / result->cpu_s : 0;
}

double report_payload_gb_per_cpu_s(const struct fabric_result *result)
{
	return result->cpu_s > 0 ? (double)result->payload_bytes / 1e9 / result->cpu_s : 0;
}

/* What was left to NCCL. */
static void put_choices(FILE *out, const struct simulation *simulation)
{
	struct nccl_choice choice;
	char text[64], bytes[32];

	for (uint32_t i = 0;
		simulation->job_count && !simulation->has_graph && i < simulation->scenario->workload_count; i++)
		if (nccl_choice_of(simulation, i, &choice)) {
			const struct workload *of = &simulation->scenario->workloads[i].workload;
			fprintf(out, "NCCL takes %s for %s of %s: its model says %.1f us\n",
				nccl_choice_text(&choice, text, sizeof(text)), of->kind,
				value_bytes_text(of->bytes, bytes, sizeof(bytes)), choice.us);
		}
}

static void put_front_end(FILE *out, const struct simulation *simulation)
{
	const struct front_end *of = &simulation->scenario->front_end;
	const struct network *network = &simulation->network;
	const uint32_t switches = network->front_switch_count, nodes = network->storage_count;
	char rate[32];

	if (nodes)
		fprintf(out,
			"; front end: %s of %" PRIu32 " NICs and %" PRIu32 " storage node%s (%s), %" PRIu32 " switch%s",
			of->topology.kind, network->front_endpoint_count - nodes, nodes, nodes == 1 ? "" : "s",
			value_rate_text(of->topology.host_bits_per_second, rate, sizeof(rate)), switches,
			switches == 1 ? "" : "es");
}

void report_network(FILE *out, const struct simulation *simulation)
{
	const struct scenario *scenario = simulation->scenario;
	const struct network *network = &simulation->network;
	const uint32_t switches = network_back_switches(network) - network->nic_switch_count;
	char rate[32];

	if (*scenario->name)
		fprintf(out, "%s\n", scenario->name);
	fprintf(out, "%s of %" PRIu32 " endpoints (%s), %" PRIu32 " switch%s",
		*scenario->topology_file ? "network" : scenario->topology.kind, network_back_endpoints(network),
		value_rate_text(network->links[network->endpoints[0].link].bits_per_second, rate, sizeof(rate)),
		switches, switches == 1 ? "" : "es");
	put_front_end(out, simulation);
}

void report_notes(FILE *out, const struct simulation *simulation)
{
	for (unsigned i = 0; i < simulation->label_count; i++)
		fprintf(out, "NOTE: %s\n", simulation->labels[i]);
}

void report_head(FILE *out, const struct simulation *simulation)
{
	const struct scenario *scenario = simulation->scenario;
	char bytes[32];
	const struct traffic traffic = traffic_of(simulation);
	const char *what = simulation->job_count ? "message" : "flow";

	report_network(out, simulation);
	fprintf(out, "; %.0f %s%s, %s; MTU %" PRIu32 ", cc %s%s%s, seed %" PRIu64 "\n", traffic.messages, what,
		traffic.messages == 1 ? "" : "s", value_bytes_text((uint64_t)traffic.bytes, bytes, sizeof(bytes)),
		scenario->mtu, simulation_control(simulation), *scenario->variant ? ", variant " : "",
		scenario->variant, scenario->seed);
	put_choices(out, simulation);
	report_notes(out, simulation);
}

static void put_cycle(FILE *out, const struct simulation *simulation)
{
	char name[64];

	for (uint32_t i = 0; i < simulation->result.cycle_count; i++)
		fprintf(out, "  %s waits for\n",
			link_text(&simulation->network, simulation->result.cycle[i], name, sizeof(name)));
	if (simulation->result.cycle_count)
		fprintf(out, "  the first of these\n");
}

/* The first few failures, each with its reason. */
static void put_failures(FILE *out, const struct simulation *simulation)
{
	uint64_t told = 0;
	char why[200], from[32], to[32];

	for (uint32_t i = 0; i < simulation->flows.count && told < FAILURES_TOLD && !simulation->job_count; i++) {
		const struct flow *flow = &simulation->flows.flows[i];
		if (!simulation->result.flows[i].error)
			continue;
		fprintf(out, "  flow %" PRIu32 " from endpoint %" PRIu32 " to endpoint %" PRIu32 ": %s\n", i, flow->src,
			flow->dst, culprit_text(simulation, i, why, sizeof(why)));
		told++;
	}
	for (uint32_t i = 0; i < simulation->result.failure_count && simulation->job_count; i++) {
		const struct fabric_failure *its = &simulation->result.failures[i];
		fprintf(out, "  a message from %s to %s: %s\n",
			node_text(&simulation->network, its->src, from, sizeof(from)),
			node_text(&simulation->network, its->dst, to, sizeof(to)),
			failure_text(simulation, i, why, sizeof(why)));
		told++;
	}
	if (simulation->result.flows_failed > told)
		fprintf(out, "  and %" PRIu64 " more%s\n", simulation->result.flows_failed - told,
			simulation->job_count ? "" : "; --csv and --json have all");
}

static void put_job(FILE *out, const struct simulation *simulation)
{
	struct job_bandwidth of;
	char time[32], bytes[32], groups[40] = "";

	if (!job_bandwidth(simulation, &of))
		return;
	if (of.groups > 1)
		snprintf(groups, sizeof(groups), "%" PRIu32 " groups of ", of.groups);
	fprintf(out, "%s (%s) of %s, %s%" PRIu32 " ranks: %s until the last byte; algbw %.2f, busbw %.2f GB/s\n",
		of.kind, of.algorithm, value_bytes_text(of.bytes, bytes, sizeof(bytes)), groups, of.ranks,
		value_time_text(of.time, time, sizeof(time)), of.algbw, of.busbw);
}

/* Several jobs, each beside the time that it takes alone. */
static void put_jobs(FILE *out, const struct simulation *simulation)
{
	char time[32], alone[32], bytes[32];

	for (uint32_t i = 0; alone_is_wanted(simulation) && i < simulation->collective_count; i++) {
		const struct collective *of = &simulation->collectives[i].of;
		const uint32_t workload = simulation->workload_of[i];
		const vb_time took = alone_job_time(simulation, workload);
		if (i > 0 && simulation->workload_of[i - 1] == workload)
			continue;
		fprintf(out, "job %" PRIu32 ": %s of %s, ranks %" PRIu32 " to %" PRIu32 ": %s", workload, of->kind,
			value_bytes_text(
				simulation->scenario->workloads[workload].workload.bytes, bytes, sizeof(bytes)),
			simulation->collectives[i].groups->rank_at[0], simulation->collectives[i].groups->ranks - 1,
			took < 0 ? "-" : value_time_text(took, time, sizeof(time)));
		if (simulation->alone && simulation->alone[workload] > 0)
			fprintf(out, ", alone %s: %.2f times as long",
				value_time_text(simulation->alone[workload], alone, sizeof(alone)),
				(double)took / (double)simulation->alone[workload]);
		fputc('\n', out);
	}
	if (simulation->alone_end != FABRIC_DONE)
		fprintf(out, "times alone are missing: %s\n", report_end_text(simulation, simulation->alone_end));
}

/* Of operations the job's own part says which never ended. */
static void put_open(FILE *out, const struct simulation *simulation)
{
	const uint64_t open = simulation->result.operations - simulation->result.flows_done;
	const char *what = report_unit(simulation);

	if (open == 1 && !simulation->has_graph)
		fprintf(out, "1 %s is open\n", what);
	else if (open && !simulation->has_graph)
		fprintf(out, "%" PRIu64 " %ss are open\n", open, what);
}

static void put_failed(FILE *out, const struct simulation *simulation)
{
	const struct fabric_result *result = &simulation->result;

	if (!result->flows_failed)
		return;
	if (simulation->has_graph)
		fprintf(out, "%" PRIu64 " message%s FAILED\n", result->flows_failed,
			result->flows_failed == 1 ? "" : "s");
	else
		fprintf(out, "%" PRIu64 " of %" PRIu64 " %ss that ended FAILED\n", result->flows_failed,
			result->flows_done, report_unit(simulation));
	put_failures(out, simulation);
}

static void put_end(FILE *out, const struct simulation *simulation)
{
	const struct fabric_result *result = &simulation->result;
	const enum fabric_end end = report_end(simulation);
	char ended[32], last[32];
	const char *what = report_unit(simulation);

	fprintf(out, "\nended: %s", report_end_text(simulation, end));
	if (end == FABRIC_NUMBERS)
		fprintf(out, ": %s; open fewer messages at a time, or use more NICs",
			node_text(&simulation->network, result->out_of_numbers, last, sizeof(last)));
	if (end != FABRIC_DONE)
		fprintf(out, ", at %s", value_time_text(result->ended_at, ended, sizeof(ended)));
	if (result->flows_done)
		fprintf(out, "; the last %s at %s\n", what, value_time_text(result->last_flow, last, sizeof(last)));
	else
		fprintf(out, "; no %s has ended\n", what);
	put_job(out, simulation);
	put_jobs(out, simulation);
	services_text(simulation, out);
	put_cycle(out, simulation);
	put_open(out, simulation);
	put_failed(out, simulation);
}

static void put_row(FILE *out, const struct summary_flows *flows)
{
	char p50[32], p95[32], p99[32], most[32];

	if (!flows->count)
		return;
	fprintf(out, "%-15s %8" PRIu32 " %10s %10s %10s %10s %9.2f %8.2f %8.2f\n", flows->name, flows->count,
		value_time_text(flows->p50, p50, sizeof(p50)), value_time_text(flows->p95, p95, sizeof(p95)),
		value_time_text(flows->p99, p99, sizeof(p99)), value_time_text(flows->most, most, sizeof(most)),
		flows->slow50, flows->slow95, flows->slow99);
}

static void put_table(FILE *out, const struct summary *summary)
{
	fprintf(out, "\n%-15s %8s %10s %10s %10s %10s %9s %8s %8s\n", "completion", "flows", "p50", "p95", "p99", "max",
		"slowdown", "p95", "p99");
	put_row(out, &summary->all);
	for (int i = 0; i < SUMMARY_BUCKETS; i++)
		if (summary->buckets[i].count != summary->all.count)
			put_row(out, &summary->buckets[i]);
}

static void put_links(
	FILE *out, const struct simulation *simulation, const char *whose, const struct summary_links *links)
{
	char name[64], bytes[32], queued[32], mean[32];

	if (links->count)
		fprintf(out, "\nbusiest links%s\n", whose);
	for (uint32_t i = 0; i < links->count; i++) {
		uint32_t link = links->link[i];
		const struct fabric_link_counts *counts = &simulation->result.links[link];
		fprintf(out, "  %-22s %5.1f%%  %10s", link_text(&simulation->network, link, name, sizeof(name)),
			100 * link_load(simulation, link), value_bytes_text(counts->bytes, bytes, sizeof(bytes)));
		if (!simulation->config.by_flows)
			fprintf(out, ", peak queue %s", value_bytes_text(counts->most_queued, queued, sizeof(queued)));
		if (simulation->config.tells_queues && !simulation->config.by_flows)
			fprintf(out, ", mean %s",
				value_bytes_text((uint64_t)link_mean_queue(simulation, link), mean, sizeof(mean)));
		fputc('\n', out);
	}
}

uint64_t report_trims(const struct simulation *simulation, uint32_t at_switch)
{
	const struct network *network = &simulation->network;
	const struct network_switch *its = &network->switches[at_switch];
	uint64_t count = 0;

	for (uint32_t i = 0; i < its->port_count; i++)
		count += simulation->result.links[network->ports[its->first_port + i]].trims;
	return count;
}

static void put_trims(FILE *out, const struct simulation *simulation)
{
	uint32_t switches = 0, worst = 0;
	char name[32];

	if (!simulation->result.trims)
		return;
	for (uint32_t i = 0; i < simulation->network.switch_count; i++) {
		switches += report_trims(simulation, i) > 0;
		if (report_trims(simulation, i) > report_trims(simulation, worst))
			worst = i;
	}
	fprintf(out, "trimmed %" PRIu64 " at %" PRIu32 " switch%s, most at %s: %" PRIu64 "\n", simulation->result.trims,
		switches, switches == 1 ? "" : "es",
		node_text(&simulation->network, network_switch_node(worst), name, sizeof(name)),
		report_trims(simulation, worst));
}

static void put_counts(FILE *out, const struct fabric_result *result)
{
	fprintf(out,
		"\ndrops %" PRIu64 ", lost on links %" PRIu64 ", marked %" PRIu64 ", pauses %" PRIu64
		"; sent again %" PRIu64 ", NAKs %" PRIu64 ", timeouts %" PRIu64 ", CNPs %" PRIu64 "\n",
		result->drops, result->lost, result->marked_packets, result->pauses, result->resent_packets,
		result->naks, result->timeouts, result->cnps);
	if (result->lossless_drops)
		fprintf(out,
			"DROPS IN A LOSSLESS CLASS: %" PRIu64
			". Its headroom is too small for its links, or a watchdog fired.\n",
			result->lossless_drops);
}

static void put_cost_of_flows(FILE *out, const struct fabric_result *result)
{
	char flows[32];

	fprintf(out,
		"\n%s messages as flows in %.2f s of CPU time, after %.2f s to set up (%.2f s): %.2f GB of payload/s\n",
		value_count_text((double)result->flows_done, flows, sizeof(flows)), result->cpu_s, result->setup_cpu_s,
		result->wall_s, report_payload_gb_per_cpu_s(result));
}

static void put_cost(FILE *out, const struct fabric_result *result)
{
	char hops[32], rate[32];

	fprintf(out,
		"\n%s packet-hops in %.2f s of CPU time, after %.2f s to set up (%.2f s, %" PRIu32
		" thread%s): %s/s, %.2f GB of payload/s\n",
		value_count_text((double)result->packet_hops, hops, sizeof(hops)), result->cpu_s, result->setup_cpu_s,
		result->wall_s, result->threads, result->threads == 1 ? "" : "s",
		value_count_text(report_hops_per_cpu_s(result), rate, sizeof(rate)),
		report_payload_gb_per_cpu_s(result));
}

void report_unseen(FILE *out, uint64_t drops, uint64_t resent, uint64_t pauses)
{
	if (drops || resent || pauses)
		fprintf(out,
			"  packets meet what this mode does not see: %" PRIu64 " dropped, %" PRIu64
			" sent again, %" PRIu64 " pauses\n",
			drops, resent, pauses);
}

bool report_has_error(const struct simulation *simulation)
{
	return simulation->is_checked || !simulation->config.by_flows;
}

const char *report_why_unchecked(const struct simulation *simulation)
{
	const char *why_not = simulation->check.why_not;
	return *why_not ? why_not : "the run did not come to its end";
}

static void put_check(FILE *out, const struct simulation *simulation)
{
	const struct flow_check *check = &simulation->check;
	char hops[32];

	if (!check->is_made) {
		fprintf(out, "error   not known: %s\n", report_why_unchecked(simulation));
		return;
	}
	fprintf(out, "error   %+.2f%% of the time", 100 * check->error);
	if (check->has_phases)
		fprintf(out, ", at most %+.2f%% of a workload: workload.%" PRIu32, 100 * check->worst_error,
			check->worst);
	fprintf(out, "\n  beside packets, with %.3g%% of each message's bytes, %s packet-hops\n",
		100 * check->bytes_part, value_count_text((double)check->packet_hops, hops, sizeof(hops)));
	report_unseen(out, check->drops, check->resent, check->pauses);
}

void report_text(FILE *out, const struct simulation *simulation, const struct summary *summary)
{
	report_head(out, simulation);
	put_end(out, simulation);
	if (simulation->flows.count)
		put_table(out, summary);
	put_links(out, simulation, "", &summary->links);
	put_links(out, simulation, " of the front end", &summary->front_links);
	if (simulation->is_checked)
		put_check(out, simulation);
	if (simulation->config.by_flows) {
		put_cost_of_flows(out, &simulation->result);
	} else {
		put_counts(out, &simulation->result);
		put_trims(out, simulation);
		put_cost(out, &simulation->result);
	}
	fprintf(out, "result %016" PRIx64 "\n", simulation->result.hash);
}

static void put_note(FILE *out, const struct simulation *simulation)
{
	for (unsigned i = 0; i < simulation->label_count; i++)
		fprintf(out, "%s%s", i ? "; " : "\"", simulation->labels[i]);
	fputs(simulation->label_count ? "\"\n" : "\n", out);
}

/* A message's ideal is not computed: it has none of its own, for it waits for others. */
static void put_messages(FILE *out, const struct simulation *simulation)
{
	for (uint64_t i = 0; i < simulation->result.message_count; i++) {
		const struct fabric_message *its = &simulation->result.messages[i];
		fprintf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",,,", its->src, its->dst,
			its->bytes, its->start, its->error ? -1 : its->end - its->start);
		fprintf(out, its->error ? "\"%s\"," : "%s,", its->error ? vb_cause_text(its->cause) : "");
		put_note(out, simulation);
	}
}

void report_csv(FILE *out, const struct simulation *simulation)
{
	char why[200];

	fprintf(out, "src,dst,bytes,start_ps,fct_ps,ideal_ps,slowdown,error,note\n");
	for (uint32_t i = 0; i < simulation->flows.count; i++) {
		const struct flow *flow = &simulation->flows.flows[i];
		const struct flow_result *result = &simulation->result.flows[i];
		fprintf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", flow->src,
			flow->dst, flow->bytes, result->start, result->fct, simulation->ideals[i]);
		if (flow_is_done(simulation, i))
			fprintf(out, "%.4f", flow_slowdown(simulation, i));
		fprintf(out, result->error ? ",\"%s\"," : ",%s,",
			result->error ? culprit_text(simulation, i, why, sizeof(why)) : "");
		put_note(out, simulation);
	}
	put_messages(out, simulation);
}
