/* A run from beginning to end: what is opened, how long it goes on, and its result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "fabric/buffer.h"
#include "fabric/closing.h"
#include "fabric/deadlock.h"
#include "fabric/endpoint.h"
#include "fabric/engine_connections.h"
#include "fabric/ns3.h"
#include "fabric/operations.h"
#include "fabric/shards.h"
#include "fabric/port.h"
#include "fabric/series.h"
#include "fabric/result.h"
#include "fabric/round_trips.h"
#include "fabric/taps.h"
#include "fabric/telemetry.h"
#include "fabric/trim.h"
#include "net/why.h"
#include "fabric/windows.h"

#define PERIOD     (10 * VB_US) /* of virtual time, after which to check whether to go on */
#define PROGRESS_S 1.0

enum { MOST_JOBS = UINT16_MAX };

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static bool has_engines(const struct fabric_config *config)
{
	return config->endpoint == FABRIC_ENGINE && !config->by_flows;
}

/* Each flow is a connection, of which an adapter has a limited number; fewer where jobs have a part of the numbers
 * (engine_connections.h). */
static int check_connections(const struct fabric_config *config, char *why, unsigned why_size)
{
	const uint32_t most = config->job_count ? CONNECTIONS_OF_LIST : VB_MAX_QP;
	uint32_t *counts = calloc(config->network->endpoint_count + 1, sizeof(*counts)), of = NETWORK_NONE;
	if (!counts) {
		why_not(why, why_size, "there is not enough memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < config->flows->count && of == NETWORK_NONE && has_engines(config); i++) {
		const struct flow *flow = &config->flows->flows[i];
		if (++counts[flow->src] > most)
			of = flow->src;
		if (++counts[flow->dst] > most)
			of = flow->dst;
	}
	free(counts);
	return of == NETWORK_NONE
		       ? 0
		       : why_not(why, why_size, "endpoint %u has more than %u flows, each a connection", of, most);
}

static int check_jobs(const struct fabric_config *config, char *why, unsigned why_size)
{
	const uint32_t endpoints = config->network->endpoint_count;
	int error = hosts_check(&config->hosts, endpoints, why, why_size);
	if (error)
		return error;
	if ((config->hosts.gpus || config->hosts.gpu_of) && config->flows->count)
		return why_not(why, why_size,
			"flows are between endpoints, and hosts with GPUs, or ranks that are placed, take jobs alone");
	const uint32_t ranks = hosts_all_ranks(&config->hosts, endpoints);
	for (uint32_t i = 0; i < config->job_count; i++)
		if (config->jobs[i]->ranks > ranks)
			return why_not(why, why_size, "job %u: it has %u ranks, and the network %u", i,
				config->jobs[i]->ranks, ranks);
	if (config->job_count > MOST_JOBS)
		return why_not(why, why_size, "more than %u jobs", MOST_JOBS);
	const uint32_t of_back = network_back_endpoints(config->network), of_front = endpoints - of_back;
	const uint32_t largest = of_back > of_front ? of_back : of_front;
	if (config->job_count && largest > CONNECTIONS_MOST_ENDPOINTS && has_engines(config))
		return why_not(why, why_size, "a job on more than %u endpoints", CONNECTIONS_MOST_ENDPOINTS);
	return 0;
}

static int check_transport(const struct fabric_config *config, char *why, unsigned why_size)
{
	if (config->endpoint == FABRIC_TCP && (config->cc.algorithm != &vb_cc_none || config->captured_count))
		return why_not(why, why_size,
			"TCP endpoints have a congestion control of their own (transport.tcp), and no packets of "
			"RoCE to be captured");
	if (config->endpoint == FABRIC_IDEAL &&
		(config->cc.algorithm != &vb_cc_none || config->probe_after || config->captured_count))
		return why_not(why, why_size,
			"ideal endpoints have no congestion control, no probes, and no packets of RoCE to "
			"be captured");
	if (config->endpoint != FABRIC_ENGINE && config->receive_buffer)
		return why_not(why, why_size, "only engines can be as they are behind sockets (transport.behind)");
	if (config->paths > 1 && config->recovery != VB_RECOVERY_SELECTIVE)
		return why_not(why, why_size,
			"many paths put packets out of order: set transport.recovery=selective (transport.paths)");
	if (config->recovery != VB_RECOVERY_GO_BACK_N && config->endpoint != FABRIC_ENGINE)
		return why_not(
			why, why_size, "go-back-0 and selective repeat (transport.recovery) are for engines alone");
	return 0;
}

/* Settings that packets alone can have. */
static int check_flows(const struct fabric_config *config, char *why, unsigned why_size)
{
	const struct network *network = config->network;
	if (config->endpoint == FABRIC_TCP || config->receive_buffer)
		return why_not(why, why_size, "messages as flows have neither TCP nor sockets at their ends");
	if (config->captured_count)
		return why_not(why, why_size, "messages as flows have no packets to be captured");
	for (uint32_t i = 0; i < network->link_count; i++)
		if (network->links[i].fault != NETWORK_NONE &&
			fault_is_of_packets(&network->faults[network->links[i].fault]))
			return why_not(why, why_size,
				"link %u: messages as flows see when a link is down, and no faults of packets", i);
	for (uint32_t i = 0; i < network->profile_count; i++)
		if (network->profiles[i].routing == ROUTING_ECMP && network->profiles[i].hash == HASH_NS3)
			return why_not(why, why_size, "messages as flows are not hashed as in ns-3");
	return 0;
}

static int check(const struct fabric_config *config, char *why, unsigned why_size)
{
	const struct network *network = config->network;
	const uint32_t largest = config->endpoint == FABRIC_TCP ? FABRIC_TCP_MAX_MTU : VB_MAX_MTU;
	if (config->mtu < 1 || config->mtu > largest)
		return why_not(why, why_size, "the MTU is %u, and must be 1 to %u bytes", config->mtu, largest);
	if (network->endpoint_count > 0xFFFFFE)
		return why_not(why, why_size, "more than 16,777,214 endpoints");
	for (uint32_t i = 0; i < network->link_count; i++) {
		const struct network_link *link = &network->links[i];
		const struct switch_profile *to = network_profile(network, link->to);
		if (network_rate(network, i) < 1000000 || link->delay < 0)
			return why_not(why, why_size, "link %u: slower than 1 Mb/s, or a delay below 0", i);
		if (link->fault != NETWORK_NONE && network->faults[link->fault].duplicate_ppm && to &&
			to->flow_control == FLOW_CREDITS)
			return why_not(why, why_size, "link %u: doubles packets, of which only one has credits", i);
	}
	int rc = config->by_flows ? check_flows(config, why, why_size) : check_transport(config, why, why_size);
	if (rc == 0)
		rc = buffer_check(config, why, why_size);
	if (rc == 0)
		rc = trim_check(config, why, why_size);
	if (rc == 0)
		rc = flow_list_check(config->flows, network_back_endpoints(network), why, why_size);
	if (rc == 0)
		rc = check_connections(config, why, why_size);
	return rc ? rc : check_jobs(config, why, why_size);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static void open_link(struct fabric *fabric, uint32_t number)
{
	const struct network *network = fabric->network;
	const struct network_link *given = &network->links[number];
	const struct switch_profile *from = network_profile(network, given->from);
	const struct switch_profile *to = network_profile(network, given->to);
	const struct network_fault *fault = given->fault == NETWORK_NONE ? NULL : &network->faults[given->fault];
	uint64_t rate = network_rate(network, number);
	fabric->links[number] =
		(struct link){ .ps_per_byte = 8000000000000u % rate == 0 && 8000000000000u / rate <= UINT32_MAX
						      ? (uint32_t)(8000000000000u / rate)
						      : 0,
			.first = NO_PACKET,
			.passed = NO_PACKET,
			.delay = link_delay(network, number),
			.to = network_index(given->to),
			.kind = from ? LINK_PLAIN : LINK_ENDPOINT,
			.leads_to_switch = to,
			.is_faulty = fault,
			.is_unordered = fault && (fault->jitter || (fault->late_ppm && fault->late_by)),
			.is_cut_through = to && to->is_cut_through,
			.is_whole_ns = network->is_whole_ns,
			.is_measured = fabric->config->tells_queues || fabric->config->tells_series,
			.to_shard = to ? fabric->switches[network_index(given->to)].shard
				       : fabric->endpoints[network_index(given->to)].shard };
}

static int open_shards(struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		struct shard *shard = &fabric->shards[i];
		shard->fabric = fabric;
		shard->index = (uint16_t)i;
		shard->free_packet = shard->free_long = NO_PACKET;
		shard->first_ended = FLOW_NONE;
		shard->flows = shard->connections = shard->timers = pool_empty_list();
		shard->batch = malloc(sizeof(*shard->batch));
		shard->out = calloc(fabric->shard_count, sizeof(*shard->out));
		if (!shard->batch || !shard->out || events_init(&shard->events, fabric->day_shift))
			return -ENOMEM;
	}
	return 0;
}

/* A holder may let links go down at any time. */
static int expect_outages(struct fabric *fabric)
{
	const struct network *network = fabric->network;
	const bool may_go_down = fabric->holder ? network->fault_count > 0 : network_has_outages(network);
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < fabric->shard_count; i++)
		rc = detours_open(&fabric->shards[i].detours, network, fabric->routes, may_go_down);
	return rc;
}

static int open_all(struct fabric *fabric, struct flow_result *results)
{
	const struct network *network = fabric->network;
	fabric->links = aligned_alloc(64, (network->link_count + 1) * sizeof(*fabric->links));
	if (fabric->links)
		memset(fabric->links, 0, (network->link_count + 1) * sizeof(*fabric->links));
	fabric->counts = calloc(network->link_count + 1, sizeof(*fabric->counts));
	fabric->endpoints = calloc(network->endpoint_count + 1, sizeof(*fabric->endpoints));
	fabric->switches = calloc(network->switch_count + 1, sizeof(*fabric->switches));
	fabric->shards = calloc(fabric->shard_count, sizeof(*fabric->shards));
	fabric->first_closing = FLOW_NONE;
	if (!fabric->links || !fabric->counts || !fabric->endpoints || !fabric->switches || !fabric->shards)
		return -ENOMEM;
	shards_cut(fabric);
	int rc = open_shards(fabric);
	for (uint32_t i = 0; rc == 0 && i < network->switch_count; i++) {
		fabric->switches[i].seed = fabric_switch_seed(fabric->config->seed, i);
		const struct switch_profile *profile = &network->profiles[network->switches[i].profile];
		fabric->switches[i].routing = profile->routing;
		fabric->switches[i].hashes_as_ns3 =
			profile->routing == ROUTING_ECMP && profile->hash == HASH_NS3 && !fabric->holder;
	}
	for (uint32_t i = 0; rc == 0 && i < network->link_count; i++)
		open_link(fabric, i);
	if (rc == 0)
		rc = expect_outages(fabric);
	if (rc == 0)
		rc = ports_open(fabric);
	if (rc == 0)
		rc = series_open(fabric);
	if (rc == 0)
		rc = taps_open(fabric);
	if (rc == 0)
		rc = telemetry_open(fabric);
	if (rc == 0)
		rc = ns3_open(fabric);
	if (rc == 0)
		rc = round_trips_open(fabric);
	if (rc == 0)
		rc = endpoints_open(fabric);
	if (rc == 0)
		rc = operations_open(fabric, results);
	if (rc == 0 && fabric->kind && fabric->kind->open_flows)
		rc = fabric->kind->open_flows(fabric);
	if (rc == 0)
		operations_begin(fabric);
	return rc;
}

void fabric_end(struct fabric *fabric)
{
	windows_close(fabric);
	taps_close(fabric);
	series_close(fabric);
	telemetry_close(fabric);
	endpoints_close(fabric);
	operations_close(fabric);
	round_trips_close(fabric);
	ns3_close(fabric);
	for (uint32_t i = 0; fabric->shards && i < fabric->shard_count; i++) {
		struct shard *shard = &fabric->shards[i];
		for (uint32_t k = 0; shard->out && k < fabric->shard_count; k++) {
			free(shard->out[k].entries);
			free(shard->out[k].records);
			free(shard->out[k].news);
		}
		free(shard->out);
		detours_close(&shard->detours);
		free(shard->messages);
		free(shard->job_ends);
		free(shard->batch);
		free(shard->packets);
		free(shard->headers);
		free(shard->long_headers);
		events_deinit(&shard->events);
	}
	ports_close(fabric);
	routes_free(fabric->routes);
	free(fabric->cycle);
	free(fabric->links);
	free(fabric->counts);
	free(fabric->endpoints);
	free(fabric->switches);
	free(fabric->shards);
}

/* A network may be split, but not between a flow's endpoints, nor between a job's. */
static int find_routes(struct fabric *fabric, char *why, unsigned why_size)
{
	const struct flow_list *list = fabric->config->flows;
	fabric->routes = routes_make(fabric->network);
	if (!fabric->routes) {
		why_not(why, why_size, "there is not enough memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const struct flow *flow = &list->flows[i];
		if (routes_lead(fabric->routes, fabric->network, flow->src, flow->dst))
			continue;
		routes_free(fabric->routes);
		return why_not(why, why_size, "flow %u: no path leads from endpoint %u to endpoint %u", i, flow->src,
			flow->dst);
	}
	for (uint32_t i = 0; i < fabric->config->job_count; i++) {
		const struct job *job = fabric->config->jobs[i];
		const struct hosts hosts = hosts_to(&fabric->config->hosts, job->rails);
		uint32_t from, to;
		if (routes_join(fabric->routes, fabric->network, &hosts, job->ranks, &from, &to))
			continue;
		routes_free(fabric->routes);
		return why_not(why, why_size, "job %u: no path leads between endpoints %u and %u", i, from, to);
	}
	return 0;
}

int fabric_begin(struct fabric *fabric, struct flow_result *results, char *why, unsigned why_size)
{
	const struct fabric_config *config = fabric->config;
	int rc = check(config, why, why_size);
	if (rc)
		return rc;
	fabric->network = config->network;
	fabric->data_overhead = config->data_overhead;
	fabric->ack_overhead = config->ack_overhead;
	fabric->largest_packet = buffer_largest_packet(config);
	fabric->shard_count = shards_count(config);
	assert(fabric->shard_count > 0);
	rc = find_routes(fabric, why, why_size);
	if (rc)
		return rc;
	rc = open_all(fabric, results);
	if (rc == 0 && windows_open(fabric))
		rc = -EAGAIN;
	if (rc) {
		fabric_end(fabric);
		why_not(why, why_size, "%s",
			rc == -EAGAIN   ? "not so many threads can be made"
			: rc == -EINVAL ? "a flow of more than 32 TiB"
					: "there is not enough memory");
	}
	return rc;
}

/* ---- Progress ---------------------------------------------------------------------------------------------------- */

struct going {
	struct fabric *fabric;
	vb_time asked_at, got_on_at; /* virtual times of the last check for progress, and of the last progress */
	uint64_t executed;
	double begun, told; /* in real time */
};

static struct fabric_progress progress_of(const struct fabric *fabric, vb_time now)
{
	struct fabric_progress progress = { .now = now, .operations = fabric->operations };
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		const struct shard *shard = &fabric->shards[i];
		progress.packet_hops += shard->packet_hops;
		progress.events += shard->event_count;
		progress.data_packets += shard->data_packets;
		progress.operations_done += shard->flows_done;
	}
	return progress;
}

/* Long enough by default for a flow to fail, as it does if a link is down for good: with all its retries, of which the
 * first may be four times as long behind sockets. */
static vb_time patience(const struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;
	const vb_time retries = (config->retry_count ? config->retry_count : 7) + 5,
		      all = retries * config->ack_timeout;
	if (config->stall)
		return config->stall;
	return all > fabric->kind->patience ? all : fabric->kind->patience;
}

/* No flow has made progress since the last check, for as long as the slowest may need for its next packet. */
static bool stands_still(struct going *going, vb_time now, uint64_t executed)
{
	if (executed != going->executed)
		going->got_on_at = now;
	going->executed = executed;
	going->asked_at = now;
	return now > going->got_on_at && now - going->got_on_at >= endpoints_slowest(going->fabric);
}

static vb_time limit_of(const struct fabric_config *config)
{
	return config->limit && config->limit < FABRIC_HORIZON ? config->limit : FABRIC_HORIZON;
}

static bool is_stopped(struct going *going, vb_time now)
{
	const struct fabric_config *config = going->fabric->config;
	if (!config->on_progress)
		return false;
	const double real = windows_wall_s();
	if (real - going->told < PROGRESS_S)
		return false;
	going->told = real;
	struct fabric_progress progress = progress_of(going->fabric, now);
	progress.wall_s = real - going->begun;
	return !config->on_progress(config->user, &progress);
}

static vb_time latest_event(const struct fabric *fabric)
{
	vb_time latest = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		if (fabric->shards[i].now > latest)
			latest = fabric->shards[i].now;
	return latest;
}

/* A period may have more events than anyone waits for. */
static bool stops_within_period(void *user)
{
	struct going *going = user;
	return is_stopped(going, latest_event(going->fabric));
}

/* True: the run is over, and why. */
static bool is_over(struct going *going, vb_time now, enum fabric_end *end)
{
	struct fabric *fabric = going->fabric;
	const struct fabric_config *config = fabric->config;
	const struct fabric_progress progress = progress_of(fabric, now);
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		if (fabric->shards[i].is_out_of_memory || fabric->shards[i].events.is_out_of_memory) {
			*end = FABRIC_MEMORY;
			return true;
		} else if (fabric->shards[i].is_out_of_numbers) {
			*end = FABRIC_NUMBERS;
			return true;
		}
	if (progress.operations_done == progress.operations) {
		*end = FABRIC_DONE;
		return true;
	}
	if (deadlock_is_found(fabric, now, false)) {
		*end = FABRIC_DEADLOCK;
		return true;
	}
	if (now >= limit_of(config)) {
		*end = FABRIC_LIMIT;
		return true;
	}
	if (now - going->asked_at >= patience(fabric)) {
		*end = FABRIC_LIVELOCK;
		if (stands_still(going, now, endpoints_executed(fabric) + progress.operations_done))
			return true;
	}
	*end = FABRIC_STOPPED;
	return is_stopped(going, now);
}

static bool is_any_flow_open(const struct fabric *fabric)
{
	uint64_t begun = 0, done = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		begun += fabric->shards[i].flows_begun;
		done += fabric->shards[i].flows_done;
	}
	return begun > done;
}

static enum fabric_end go(struct fabric *fabric, vb_time *ended_at)
{
	struct going going = {
		.fabric = fabric, .executed = UINT64_MAX, .begun = windows_wall_s(), .told = windows_wall_s()
	};
	const struct watch watch = { stops_within_period, &going };
	enum fabric_end end = FABRIC_IDLE;
	vb_time limit = limit_of(fabric->config), next;
	*ended_at = 0;
	while (!is_over(&going, *ended_at, &end)) {
		if (!windows_peek(fabric, &next)) {
			end = deadlock_is_found(fabric, *ended_at, true) ? FABRIC_DEADLOCK : FABRIC_IDLE;
			break;
		}
		if (next - *ended_at > DEADLOCK_PATIENCE && deadlock_is_found(fabric, *ended_at, true)) {
			end = FABRIC_DEADLOCK;
			break;
		}
		if (!is_any_flow_open(fabric)) { /* nothing can stand still */
			going.asked_at = next;
			going.executed = UINT64_MAX;
		}
		vb_time until = (next / PERIOD + 1) * PERIOD;
		if (until > limit)
			until = limit;
		assert(until > *ended_at || until == limit);
		if (!windows_advance(fabric, until, &watch)) {
			end = FABRIC_STOPPED;
			*ended_at = latest_event(fabric);
			break;
		}
		closing_advance(fabric);
		taps_tell(fabric, until);
		*ended_at = until;
	}
	taps_tell(fabric, INT64_MAX);
	return end;
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

int fabric_run(const struct fabric_config *config, struct fabric_result *result, char *why, unsigned why_size)
{
	struct fabric fabric = { .config = config, .day_shift = 8 };
	*result = (struct fabric_result){ .flows = calloc(config->flows->count + 1, sizeof(*result->flows)) };
	double set_up = windows_cpu_s();
	int rc = -ENOMEM;
	if (result->flows)
		rc = fabric_begin(&fabric, result->flows, why, why_size);
	else
		why_not(why, why_size, "there is not enough memory");
	if (rc) {
		fabric_result_free(result);
		return rc;
	}
	double begun = windows_wall_s(), cpu = windows_cpu_s();
	result->setup_cpu_s = cpu - set_up;
	result->end = go(&fabric, &result->ended_at);
	result->wall_s = windows_wall_s() - begun;
	result->cpu_s = windows_cpu_s() - cpu;
	result->critical_cpu_s = fabric.windows ? (double)fabric.critical_ns * 1e-9 : result->cpu_s;
	rc = result_say(&fabric, result);
	fabric_end(&fabric);
	if (rc) {
		why_not(why, why_size, "there is not enough memory");
		fabric_result_free(result);
	}
	return rc;
}
