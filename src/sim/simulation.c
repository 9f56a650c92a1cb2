/* Prepares a scenario, and runs it. */
#include "sim/simulation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/route.h"
#include "net/why.h"
#include "fabric/tcp.h"
#include "fabric/windows.h"
#include "sim/alone.h"
#include "sim/astra_network.h"
#include "sim/culprits.h"
#include "sim/flow_mode.h"
#include "sim/front_end.h"
#include "sim/ideal.h"
#include "sim/link_name.h"
#include "sim/memory_limit.h"
#include "sim/nccl_keys.h"
#include "sim/nccl_choice.h"
#include "sim/ranks.h"
#include "sim/step.h"
#include "sim/step_job.h"
#include "sim/step_workloads.h"
#include "sim/why_about.h"

static int read_network(struct simulation *simulation, char *why, size_t size)
{
	const struct topology *like = &simulation->scenario->topology;
	const char *file = simulation->scenario->topology_file;
	struct network *network = &simulation->network;

	return astra_network_is(file) ? astra_network_read(file, like, network, &simulation->hosts,
						&simulation->network_note, why, size)
				      : topology_read(file, like, network, &simulation->hosts, why, (unsigned)size);
}

/* Of hosts, too, what the file says. */
static int build_network(struct simulation *simulation, char *why, size_t size)
{
	const struct scenario *scenario = simulation->scenario;
	const char *file = scenario->topology_file;
	int rc = *file ? read_network(simulation, why, size)
		       : topology_build(&scenario->topology, &simulation->network, why, (unsigned)size);

	simulation->network.is_whole_ns = scenario->is_whole_ns;
	return rc == -EINVAL ? why_about(why, size, "network%s", *file ? ".file" : "") : rc;
}

/* Both ways. */
static int slow_down(struct simulation *simulation, uint32_t number, uint32_t link, char *why, size_t size)
{
	const uint64_t rate = simulation->scenario->faults[number].bits_per_second;
	struct network_link *links = simulation->network.links;

	if (!rate)
		return 0;
	if (rate >= links[link].bits_per_second)
		return why_not(why, (unsigned)size,
			"network.faults.%u.rate is not below the link's own: write a lower one, or leave it out",
			number);
	links[link].bits_per_second = links[links[link].reverse].bits_per_second = rate;
	return 0;
}

static int set_faults(struct simulation *simulation, char *why, size_t size)
{
	const struct scenario *scenario = simulation->scenario;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < scenario->fault_count; i++) {
		uint32_t link;
		rc = link_find(&simulation->network, scenario->faults[i].link, &link, why, size);
		if (rc)
			return why_about(why, size, "network.faults.%u.link", i);
		const struct network_fault *fault = &scenario->faults[i].fault;
		if (fault->up_at && fault->up_at <= fault->down_at) {
			snprintf(why, size,
				"network.faults.%u.up is not after down: leave it out, and the link stays down", i);
			return -EINVAL;
		}
		if (fault->flap_period && !fault->up_at) {
			snprintf(why, size,
				"network.faults.%u.flap needs up: a link that never comes back goes down only once", i);
			return -EINVAL;
		}
		rc = slow_down(simulation, i, link, why, size);
		if (!rc)
			rc = network_set_fault(&simulation->network, link, fault);
	}
	return rc;
}

struct workload simulation_workload(const struct simulation *simulation, uint32_t number)
{
	const struct network *network = &simulation->network;
	struct workload workload = simulation->scenario->workloads[number].workload;

	if (!workload.bits_per_second)
		workload.bits_per_second = network->links[network->endpoints[0].link].bits_per_second;
	if (!workload.senders && strcmp(workload.kind, "incast") == 0)
		workload.senders = (workload.endpoints ? workload.endpoints : network_back_endpoints(network)) - 1;
	return workload;
}

static const struct service_kind *service_of(const struct simulation *simulation, uint32_t workload)
{
	const struct scenario_workload *its = &simulation->scenario->workloads[workload];
	return *its->file ? NULL : service_kind_of(its->workload.kind);
}

static int add_part(struct simulation *simulation, uint32_t workload, const struct collective *part)
{
	struct collective_job *added = &simulation->collectives[simulation->collective_count];
	int rc = collective_job_open(added, part, &simulation->groups[workload]);

	simulation->workload_of[simulation->collective_count] = workload;
	if (!rc) {
		simulation->jobs[simulation->job_count++] = &added->job;
		simulation->collective_count++;
	}
	return rc;
}

static int add_parts(
	struct simulation *simulation, uint32_t workload, const struct collective *of, char *why, size_t size)
{
	const uint32_t parts = collective_parts(of, &simulation->hosts), qps = of->nccl.qps ? of->nccl.qps : 1;
	int rc = 0;

	if (parts + qps > MESSAGE_MOST_CHANNEL) {
		snprintf(why, size,
			"it is %" PRIu32 " parts, one for each port of a host's NICs, with %" PRIu32
			" QPs each: write fewer NICs or QPs, or nccl.channels",
			parts, qps);
		return -EINVAL;
	}
	for (uint32_t i = 0; !rc && i < parts; i++) {
		const struct collective part = collective_part_of(of, &simulation->hosts, i);
		rc = add_part(simulation, workload, &part);
	}
	return rc;
}

static int add_collective(
	struct simulation *simulation, uint32_t workload, const struct collective *given, char *why, size_t size)
{
	struct collective of = *given;
	int rc = ranks_group(simulation, workload, of.ranks, why, size);

	of.ranks = simulation->groups[workload].size;
	of.gpus = simulation->groups[workload].gpus;
	of.reduces = simulation->hosts.reduces;
	of.kind = collective_kind_name(given->kind); /* it outlives this function, as the algorithm's does */
	if (!rc)
		rc = nccl_choice_apply(simulation, workload, &of, why, (unsigned)size);
	if (!rc)
		rc = collective_check(&of, why, (unsigned)size);
	if (rc)
		return rc;
	of.algorithm = collective_find(&of)->name;
	simulation->given = of;
	return add_parts(simulation, workload, &of, why, size);
}

static int add_services(struct simulation *simulation, char *why, size_t size)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->scenario->workload_count; i++) {
		struct service *service = &simulation->services[simulation->service_count];
		*service = (struct service){ .kind = service_of(simulation, i), .workload = i };
		if (!service->kind)
			continue;
		rc = service->kind->open(service, simulation, why, (unsigned)size);
		if (rc)
			return rc == -EINVAL ? why_about(why, size, "workload.%u", i) : rc;
		simulation->workload_of[simulation->job_count] = i;
		simulation->jobs[simulation->job_count++] = service->job;
		simulation->service_count++;
	}
	return 0;
}

/* Each workload may be as many parts as a host's NICs have ports. */
static int make_room_for_jobs(struct simulation *simulation)
{
	const uint32_t parts = (simulation->hosts.gpus ? simulation->hosts.nics : 1) * simulation->hosts.ports;
	const size_t most = (size_t)simulation->scenario->workload_count * parts + 1;

	simulation->groups = calloc(simulation->scenario->workload_count + 1, sizeof(*simulation->groups));
	simulation->collectives = calloc(most, sizeof(*simulation->collectives));
	simulation->services = calloc(simulation->scenario->workload_count + 1, sizeof(*simulation->services));
	simulation->jobs = calloc(most, sizeof(struct job *));
	simulation->workload_of = calloc(most, sizeof(*simulation->workload_of));
	const bool has_room = simulation->groups && simulation->collectives && simulation->services &&
			      simulation->jobs && simulation->workload_of;
	return has_room ? 0 : -ENOMEM;
}

static int add_workloads(struct simulation *simulation, char *why, size_t size)
{
	const struct scenario *scenario = simulation->scenario;
	uint32_t endpoints = network_back_endpoints(&simulation->network);
	int rc = make_room_for_jobs(simulation);

	for (uint32_t i = 0; !rc && i < scenario->workload_count; i++) {
		const struct scenario_workload *given = &scenario->workloads[i];
		struct workload workload = simulation_workload(simulation, i);
		struct collective collective;
		if (scenario_has_step(scenario, i))
			simulation->step_count++;
		else if (service_of(simulation, i))
			continue;
		else if (*given->file)
			rc = flow_list_read(&simulation->flows, given->file, endpoints, why, (unsigned)size);
		else if (workload_collective(&workload, simulation_ranks(simulation), &collective))
			rc = add_collective(simulation, i, &collective, why, size);
		else if (*workload.kind)
			rc = workload_add(
				&simulation->flows, &workload, endpoints, scenario->seed + i, why, (unsigned)size);
		else {
			snprintf(why, size, "it needs a kind or a file");
			rc = -EINVAL;
		}
		if (rc == -EINVAL)
			return why_about(why, size, "workload.%u", i);
	}
	return rc ? rc : add_services(simulation, why, size);
}

/* Before flows are listed: a list alone may exceed the memory. */
static int check_flow_memory(const struct simulation *simulation, char *why, size_t size)
{
	const struct scenario *scenario = simulation->scenario;
	struct estimate estimate;
	uint64_t flows = 0;

	for (uint32_t i = 0; i < scenario->workload_count; i++) {
		struct workload workload = simulation_workload(simulation, i);
		flows += *scenario->workloads[i].file
				 ? 0
				 : workload_flows(&workload, network_back_endpoints(&simulation->network));
	}
	estimate_memory(simulation, flows, &estimate);
	return estimate_check(simulation, &estimate, memory_limit(""), why, size);
}

static int open_graph(struct simulation *simulation)
{
	int rc = graph_job_open(&simulation->graph_job, &simulation->job_file.graph, &simulation->hosts,
		&simulation->scenario->job_nccl);

	if (rc)
		return rc;
	simulation->has_graph = true;
	if (!simulation->jobs) /* of a job from a file, which no workload runs beside */
		simulation->jobs = calloc(1, sizeof(struct job *));
	if (!simulation->jobs)
		return -ENOMEM;
	simulation->jobs[simulation->job_count++] = &simulation->graph_job.job;
	return 0;
}

static int read_job(struct simulation *simulation, const struct simulation_files *files, char *why, size_t size)
{
	const uint32_t ranks = simulation_ranks(simulation);
	const struct job_file_options options = { .gpus = ranks,
		.streams = simulation->scenario->job_streams,
		.heeds_priorities = simulation->scenario->job_heeds_priorities,
		.groups = files->groups };
	int rc = job_file_read(&simulation->job_file, files->job, &options, why, (unsigned)size);

	if (!rc && simulation->job_file.graph.ranks > ranks) {
		snprintf(why, size, "%s has %" PRIu32 " ranks, and the network %" PRIu32, files->job,
			simulation->job_file.graph.ranks, ranks);
		rc = -EINVAL;
	}
	if (rc)
		return rc;
	if (simulation->job_file.graph.ranks < ranks)
		job_file_note(&simulation->job_file, "%" PRIu32 " ranks take the first of the network's %" PRIu32,
			simulation->job_file.graph.ranks, ranks);
	return open_graph(simulation);
}

/* All that the scenario has, beside each other. */
static int add_steps(struct simulation *simulation, char *why, size_t size)
{
	int rc = steps_make_graph(simulation, why, size);
	return rc ? rc : open_graph(simulation);
}

static int make_flows(struct simulation *simulation, const struct simulation_files *files, char *why, size_t size)
{
	uint32_t endpoints = network_back_endpoints(&simulation->network);

	if (simulation->scenario->mode == MODE_FORMULA && !step_workloads_are_run(simulation->scenario, files)) {
		snprintf(why, size, "run.mode: only steps of training have a formula: flows, or packets");
		return -EINVAL;
	}
	bool is_graph = step_workloads_are_run(simulation->scenario, files) || (files && files->job);
	int rc = is_graph ? nccl_keys_heed(simulation, why, size) : 0;
	if (rc)
		return rc;
	if (files && files->job)
		return read_job(simulation, files, why, size);
	if (files && files->flows) {
		rc = flow_list_read(&simulation->flows, files->flows, endpoints, why, (unsigned)size);
		if (!rc && simulation->flows.count == 0) {
			snprintf(why, size, "%s: nothing is sent", files->flows);
			rc = -EINVAL;
		}
		return rc;
	}
	rc = check_flow_memory(simulation, why, size);
	if (!rc)
		rc = add_workloads(simulation, why, size);
	if (!rc && simulation->step_count)
		rc = step_workloads_check(simulation->scenario, why, size);
	if (!rc && simulation->step_count && simulation->scenario->mode == MODE_PACKETS && !files->are_for_a_plan)
		return add_steps(simulation, why, size);
	if (!rc && simulation->flows.count == 0 && simulation->job_count == 0 && simulation->step_count == 0) {
		snprintf(why, size, "nothing is sent: the scenario needs a workload, or --flows, or --job");
		rc = -EINVAL;
	}
	return rc;
}

static int refuse_class(uint32_t class, uint32_t count, char *why, size_t size)
{
	snprintf(why, size, "there is no class %" PRIu32 ": network.switch.class-count is %" PRIu32 ", counted from 0",
		class, count);
	return -EINVAL;
}

/* Every packet's class exists in all switches. */
static int check_classes(const struct simulation *simulation, char *why, size_t size)
{
	const struct scenario *scenario = simulation->scenario;
	uint32_t count = FABRIC_CLASSES;

	for (uint32_t i = 0; i < simulation->network.profile_count; i++)
		if (simulation->network.profiles[i].class_count < count)
			count = simulation->network.profiles[i].class_count;
	if (scenario->ack_class >= count) {
		refuse_class(scenario->ack_class, count, why, size);
		return why_about(why, size, "transport.ack-class");
	}
	for (uint32_t i = 0; i < scenario->workload_count; i++)
		if (scenario->workloads[i].workload.traffic_class >= count) {
			refuse_class(scenario->workloads[i].workload.traffic_class, count, why, size);
			return why_about(why, size, "workload.%u.class", i);
		}
	for (uint32_t i = 0; i < simulation->flows.count; i++)
		if (simulation->flows.flows[i].traffic_class >= count) {
			refuse_class(simulation->flows.flows[i].traffic_class, count, why, size);
			return why_about(why, size, "flow %u of the list", i);
		}
	return 0;
}

static int find_captured(struct simulation *simulation, char *why, size_t size)
{
	char names[sizeof(simulation->scenario->captured)], *rest = names, *name;

	snprintf(names, sizeof(names), "%s", simulation->scenario->captured);
	simulation->captured =
		calloc(strlen(names) + 1, sizeof(*simulation->captured)); /* each name has at least one letter */
	if (!simulation->captured)
		return -ENOMEM;
	while ((name = strsep(&rest, ","))) {
		name += strspn(name, " ");
		if (*name && link_find(&simulation->network, name, &simulation->captured[simulation->captured_count],
				     why, size))
			return why_about(why, size, "capture.links");
		simulation->captured_count += *name != 0;
	}
	return 0;
}

const char *simulation_control(const struct simulation *simulation)
{
	return simulation->config.endpoint == FABRIC_TCP ? tcp_controls[simulation->config.tcp.control].name
							 : simulation->scenario->cc_text;
}

bool simulation_heeds_marks(const struct simulation *simulation)
{
	switch (simulation->config.endpoint) {
	case FABRIC_ENGINE:
		return simulation->config.receive_buffer ? vb_cc_takes_marks_live(simulation->config.cc.algorithm)
							 : simulation->config.cc.algorithm->goes_by & VB_CC_BY_MARKS;
	case FABRIC_TCP:
		return tcp_controls[simulation->config.tcp.control].takes_marks;
	case FABRIC_IDEAL:
		break;
	}
	return false;
}

static void label(struct simulation *simulation, const char *text)
{
	simulation->labels[simulation->label_count++] = text;
}

static void add_flow_labels(struct simulation *simulation)
{
	const char *text;

	while ((text = flow_mode_label(simulation, simulation->label_count)))
		label(simulation, text);
}

static void add_labels(struct simulation *simulation)
{
	enum routing routing = simulation->scenario->topology.profile.routing;
	static const struct {
		const char *is, *sprayed, *adaptive;
	} endpoints[] = {
		[FABRIC_ENGINE] = { NULL, "sprayed over go-back-N", "adaptive routing over go-back-N" },
		[FABRIC_IDEAL] = { "no engines: not RoCE", "sprayed, to an ideal that ignores order",
			"adaptive routing, to an ideal that ignores order" },
		[FABRIC_TCP] = { "TCP: not RoCE", "sprayed, over TCP, which takes reordering for loss",
			"adaptive routing, over TCP, which takes reordering for loss" },
	};
	const struct fabric_config *config = &simulation->config;

	if (config->by_flows) {
		add_flow_labels(simulation);
		return;
	}
	if (endpoints[config->endpoint].is)
		label(simulation, endpoints[config->endpoint].is);
	if (config->endpoint == FABRIC_TCP && !config->tcp.cpu_packet && !config->tcp.cpu_byte)
		label(simulation, "TCP's hosts take no CPU time (transport.cpu-packet, cpu-byte)");
	if (config->receive_buffer)
		label(simulation, "engines as in processes behind sockets");
	if (config->recovery == VB_RECOVERY_GO_BACK_0)
		label(simulation, "go-back-0: messages start over when a packet is lost, as on no adapter today");
	if (config->recovery == VB_RECOVERY_SELECTIVE) /* it puts packets in order */
		return;
	if (routing == ROUTING_SPRAY)
		label(simulation, endpoints[config->endpoint].sprayed);
	if (routing == ROUTING_ADAPTIVE)
		label(simulation, endpoints[config->endpoint].adaptive);
}

static void configure(struct simulation *simulation)
{
	const struct scenario *scenario = simulation->scenario;
	uint32_t largest = scenario->largest_window;
	bool is_tcp = scenario->endpoint == FABRIC_TCP, is_process = scenario->behind == BEHIND_SOCKETS;
	uint32_t overhead = is_tcp ? FABRIC_TCP_OVERHEAD : 0, every = is_tcp ? 2 : is_process ? 0 : 1;

	simulation->cc = (struct vb_cc_config){
		.algorithm = scenario->cc.algorithm,
		.parameters = scenario->cc.values,
		.first_window = scenario->first_window,
		.max_window = largest || is_process ? largest : VB_CC_UNLIMITED,
	};
	simulation->config = (struct fabric_config){
		.network = &simulation->network,
		.flows = &simulation->flows,
		.hosts = simulation->hosts,
		.jobs = simulation->jobs,
		.job_count = simulation->job_count,
		.seed = scenario->seed,
		.threads = scenario->threads,
		.endpoint = scenario->endpoint,
		.by_flows = scenario->mode == MODE_FLOWS,
		.tcp = scenario->tcp,
		.cc = simulation->cc,
		.mtu = scenario->mtu,
		.data_overhead = scenario->data_overhead ? scenario->data_overhead : overhead,
		.ack_overhead = scenario->ack_overhead ? scenario->ack_overhead : overhead,
		.ack_every = scenario->ack_every ? scenario->ack_every : every,
		.ack_timeout = scenario->timeout,
		.retry_count = scenario->retries,
		.probe_after = scenario->probe,
		.ack_class = scenario->ack_class,
		.cnps = { .scope = scenario->cnp_scope, .interval = scenario->cnp_interval },
		.acks_tell_marks = scenario->marks == MARKS_BY_ACKS,
		.receive_buffer = is_process ? scenario->receive_buffer : 0,
		.tells_queues = scenario->tells_queues,
		.recovery = (enum vb_recovery_kind)scenario->recovery,
		.paths = scenario->paths,
		.limit = scenario->limit,
		.stall = scenario->stall,
		.captured_links = simulation->captured,
		.captured_count = simulation->captured_count,
	};
}

int simulation_prepare(struct simulation *simulation, const struct scenario *scenario,
	const struct simulation_files *files, char *why, size_t size)
{
	double begun = windows_cpu_s();

	*simulation = (struct simulation){ .scenario = scenario };
	int rc = scenario->mode == MODE_FLOWS ? flow_mode_check(scenario, why, size) : 0;
	if (!rc)
		rc = build_network(simulation, why, size);
	if (!rc)
		rc = ranks_set_hosts(simulation, why, size);
	if (!rc)
		rc = simulation_add_front_end(simulation, why, size);
	if (!rc)
		rc = set_faults(simulation, why, size);
	if (!rc)
		rc = ranks_place(simulation, why, size);
	if (!rc && step_workloads_are_run(scenario, files))
		rc = step_times_read_traces(simulation, why, size);
	if (!rc)
		rc = make_flows(simulation, files, why, size);
	if (!rc)
		rc = check_classes(simulation, why, size);
	if (!rc)
		rc = find_captured(simulation, why, size);
	if (rc)
		return rc;
	configure(simulation);
	estimate_run(simulation, &simulation->estimate);
	rc = estimate_check(simulation, &simulation->estimate, memory_limit(""), why, size);
	if (rc)
		return rc;
	add_labels(simulation);
	warnings_find(simulation);
	simulation->prepare_cpu_s = windows_cpu_s() - begun;
	return 0;
}

int simulation_plan_step(struct simulation *simulation, char *why, size_t size)
{
	int rc = add_steps(simulation, why, size);

	if (rc)
		return rc;
	configure(simulation);
	estimate_run(simulation, &simulation->estimate);
	return estimate_check(simulation, &simulation->estimate, memory_limit(""), why, size);
}

int simulation_run(struct simulation *simulation, char *why, size_t size)
{
	int rc = fabric_run(&simulation->config, &simulation->result, why, (unsigned)size);

	simulation->result.setup_cpu_s += simulation->prepare_cpu_s;
	if (!rc)
		rc = ideals_find(simulation);
	if (!rc)
		rc = culprits_find(simulation);
	const bool is_beside = simulation->step_count && simulation->step_count + simulation->service_count > 1;
	if (!rc && simulation->tries_alone && is_beside)
		rc = step_job_run_alone(simulation, why, size);
	else if (!rc && simulation->tries_alone && alone_is_wanted(simulation))
		rc = alone_run(simulation, why, size);
	simulation->is_checking = !rc && simulation->is_checked && simulation->result.end == FABRIC_DONE;
	if (simulation->is_checking)
		rc = flow_check_run(simulation, &simulation->check_limit, &simulation->check, why, size);
	return rc;
}

void simulation_free(struct simulation *simulation)
{
	fabric_result_free(&simulation->result);
	if (simulation->has_graph)
		graph_job_close(&simulation->graph_job);
	for (uint32_t i = 0; i < simulation->collective_count; i++)
		collective_job_close(&simulation->collectives[i]);
	for (uint32_t i = 0; i < simulation->service_count; i++)
		simulation->services[i].kind->close(&simulation->services[i]);
	job_file_free(&simulation->job_file);
	for (uint32_t i = 0; simulation->groups && i < simulation->scenario->workload_count; i++)
		rank_groups_close(&simulation->groups[i]);
	free(simulation->groups);
	free(simulation->collectives);
	free(simulation->services);
	free(simulation->jobs);
	free(simulation->workload_of);
	free(simulation->alone);
	free(simulation->traces);
	free(simulation->gpu_of);
	flow_list_free(&simulation->flows);
	network_free(&simulation->network);
	free(simulation->captured);
	free(simulation->ideals);
	free(simulation->culprits);
	*simulation = (struct simulation){ 0 };
}
