/* NCCL's model of its own times. Files are NCCL's, version 2.30.7, commit 5067397. */
#include "net/nccl.h"
#include <string.h>
#include "base/invariant.h"
#include "net/nccl_graph.h"

enum kind { ALLREDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, KINDS };

static const char *const kinds[KINDS] = { "allreduce", "all-gather", "reduce-scatter", "broadcast", "reduce" };

static enum kind kind_of(const char *name)
{
	uint32_t kind = 0;
	while (kind < KINDS && strcmp(kinds[kind], name) != 0)
		kind++;
	return (enum kind)kind;
}

bool nccl_has(const char *kind)
{
	return kind_of(kind) < KINDS;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* In microseconds, by protocol: LL, LL128, Simple; by algorithm: tree, ring, NVLS, NVLS tree, PAT.
 * src/graph/tuning.cc, ncclTunerConstantsDefaults: baseLatencies; hwLatencies of NVLINK and of NET. */
static const double base_latency[NCCL_ALGORITHMS][NCCL_PROTOCOLS] = { { 6.8, 14.0, 8.4 }, { 6.6, 14.0, 8.4 },
	{ 0, 0, 0 }, { 0, 0, 0 }, { 8.0, 8.0, 8.0 } };
static const double scale_up_latency[NCCL_ALGORITHMS][NCCL_PROTOCOLS] = { { 0.6, 1.25, 4.0 }, { 0.6, 1.9, 3.4 },
	{ 0, 0, 25 }, { 0, 0, 25 }, { 0, 0, 4.0 } };
static const double net_latency[NCCL_ALGORITHMS][NCCL_PROTOCOLS] = { { 5.0, 8.5, 14 }, { 2.7, 4.0, 14.0 }, { 0, 0, 18 },
	{ 0, 0, 20.9 }, { 0, 0, 14 } };

/* In GB/s, by generation (Ampere, Hopper, Blackwell) and for 1, 2 and more hosts. The same place: llMaxBws (its first
 * row, of Intel's CPUs, counts for more than one host), perChMaxRingLL128Bws, perChMaxTreeLL128Bws, perChMaxTreeBws,
 * perChMaxNVLSTreeBws, and nvlsEfficiency. */
static const double ll_most_in_host[3] = { 87.7, 141.0, 2 * 141.0 }, ll_most[3] = { 39.0, 39.0, 20.4 };
static const double ring_ll128_most[3] = { 20.0, 36.7, 40.0 };
static const double tree_ll128_most[3][3] = { { 20.0, 20.0, 20.0 }, { 36.7, 36.7, 29.0 }, { 55.6, 31.67, 20.0 } };
static const double tree_most[3][3] = { { 24.0, 23.6, 17.8 }, { 38.7, 41.4, 36.0 }, { 70.0, 42.8, 24.0 } };
static const double nvls_tree_most[3][3] = { { 24.0, 23.6, 17.8 }, { 0.0, 57.7, 45.5 }, { 0.0, 96.0, 80.0 } };
static const double nvls_efficiency[3] = { 0, 0.85, 0.74 };

/* Of an allreduce by trees, from 64 bytes on for each power of 2. src/graph/tuning.cc, treeCorrectionFactor; its last
 * element is never used there. */
static const double tree_correction[NCCL_PROTOCOLS][23] = {
	{ 1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0 },
	{ 1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0 },
	{ .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9 },
};

/* src/graph/tuning.cc, getNetOverhead, of Intel's CPUs; three times as much with Simple. */
#define NET_OVERHEAD 1.0

/* ---- The model --------------------------------------------------------------------------------------------------- */

/* One row of the model: ncclTopoTuneModel's loop over functions, algorithms and protocols. */
struct row {
	const struct nccl_machine *machine;
	enum kind kind;
	enum nccl_algorithm algorithm;
	enum nccl_protocol protocol;
	double ranks, hosts, steps;
	uint32_t generation, few; /* few: 0, 1, 2 for 1, 2 and more hosts */
};

static uint32_t hosts_of(const struct nccl_machine *machine)
{
	return (machine->ranks + machine->gpus - 1) / machine->gpus;
}

static uint32_t log2_down(uint64_t n)
{
	uint32_t bits = 0;
	while (n >>= 1)
		bits++;
	return bits;
}

static struct row row_of(
	const struct nccl_machine *machine, enum kind kind, enum nccl_algorithm algorithm, enum nccl_protocol protocol)
{
	const uint32_t hosts = hosts_of(machine);
	const double n = machine->ranks;
	return (struct row){ .machine = machine,
		.kind = kind,
		.algorithm = algorithm,
		.protocol = protocol,
		.ranks = n,
		.hosts = hosts,
		.steps = kind == ALLREDUCE                              ? 2 * (n - 1)
			 : kind == ALL_GATHER || kind == REDUCE_SCATTER ? n - 1
									: n,
		.generation = nccl_generation(machine->capability),
		.few = hosts < 3 ? hosts - 1 : 2 };
}

/* ncclTopoTuneModel, ncclPatEnable, and src/enqueue.cc, updateCollCostTable. */
static bool is_there(const struct row *row)
{
	const bool is_half = row->kind == ALL_GATHER || row->kind == REDUCE_SCATTER;
	const bool is_simple = row->protocol == NCCL_SIMPLE;
	const bool is_nvls = row->machine->reduces && row->machine->capability >= 90 && row->machine->gpus > 1;
	switch (row->algorithm) {
	case NCCL_RING:
		return true;
	case NCCL_TREE:
		return row->kind == ALLREDUCE;
	case NCCL_NVLS:
		return row->kind == ALLREDUCE && is_simple && is_nvls && row->hosts == 1;
	case NCCL_NVLS_TREE:
		return row->kind == ALLREDUCE && is_simple && is_nvls && row->hosts > 1;
	case NCCL_PAT:
	case NCCL_ALGORITHMS:
		break;
	}
	return is_half && is_simple && row->machine->gpus == 1;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* The rate of a channel of NVLS: an allreduce has two operations under way. */
static double nvls_rate(const struct row *row, const struct nccl_graph *graph)
{
	const double in_host =
		2 * graph->in_host * nvls_efficiency[row->generation] * (graph->channels - 1) / graph->channels;
	if (row->algorithm == NCCL_NVLS)
		return least(in_host, graph->between);
	return least(
		least(in_host, graph->between * (row->hosts == 2 ? 2 : 1)), nvls_tree_most[row->generation][row->few]);
}

static double ring_rate(const struct row *row, double rate, double channels)
{
	if (row->protocol == NCCL_LL)
		return least(row->hosts == 1 ? ll_most_in_host[row->generation] : ll_most[row->few], rate * .5);
	if (row->protocol == NCCL_LL128)
		return least(rate * 0.92, channels * ring_ll128_most[row->generation]);
	return rate;
}

/* Hosts of one GPU have plain trees, others balanced ones (src/graph/search.cc, ncclTopoCompute). */
static double tree_rate(const struct row *row, double rate, double channels)
{
	rate = least(rate * .92, channels * tree_most[row->generation][row->few]);
	if (row->protocol == NCCL_LL)
		rate = least(rate / 3.8, row->hosts == 1 ? ll_most_in_host[row->generation] : ll_most[row->few]);
	if (row->protocol == NCCL_LL128)
		rate = least(rate * (row->hosts == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
			channels * tree_ll128_most[row->generation][row->few]);
	return row->machine->gpus == 1 ? rate * .85 : rate;
}

/* S over this is the time without latencies, in GB/s. */
static double algorithm_rate(const struct row *row)
{
	const bool is_nvls = row->algorithm == NCCL_NVLS || row->algorithm == NCCL_NVLS_TREE;
	const struct nccl_graph graph = is_nvls ? nccl_nvls_graph(row->machine, hosts_of(row->machine))
						: nccl_ring_graph(row->machine, hosts_of(row->machine));
	const double channels = graph.channels, rate = channels * (row->hosts <= 2 ? graph.in_host : graph.between);
	switch (row->algorithm) {
	case NCCL_RING:
		return ring_rate(row, rate, channels) * row->ranks / row->steps;
	case NCCL_TREE:
		return tree_rate(row, rate, channels) * .5;
	case NCCL_NVLS:
	case NCCL_NVLS_TREE:
		return graph.channels < 2 ? 0 : channels * nvls_rate(row, &graph) * row->ranks / row->steps;
	case NCCL_PAT:
	case NCCL_ALGORITHMS:
		break;
	}
	return rate * .75;
}

/* Rings whose GPUs have one order in all channels pay a broadcast's latency once. */
static double ring_latency(const struct row *row, double in_host, double between)
{
	const bool is_same = row->hosts == 1 || row->machine->gpus == 1;
	const double overhead = row->hosts == 1 ? 0 : row->protocol == NCCL_SIMPLE ? 3 * NET_OVERHEAD : NET_OVERHEAD;
	const double hops = row->hosts == 1 ? 0 : row->kind == ALLREDUCE ? 2 * (row->hosts - 1) : row->hosts - 1;
	if (row->kind == BROADCAST || row->kind == REDUCE) {
		const enum nccl_algorithm of = !is_same && row->protocol == NCCL_SIMPLE ? NCCL_TREE : NCCL_RING;
		const double hop =
			row->hosts == 1 ? scale_up_latency[of][row->protocol] : net_latency[of][row->protocol];
		return is_same ? hop : row->steps * hop;
	}
	return (row->steps - hops) * (in_host > overhead ? in_host : overhead) + hops * between;
}

static double latency(const struct row *row)
{
	const enum nccl_algorithm of = row->machine->gpus == 1 ? NCCL_TREE : row->algorithm; /* fully exposed */
	const double base = base_latency[row->algorithm][row->protocol];
	const double in_host = scale_up_latency[row->algorithm][row->protocol],
		     between = net_latency[of][row->protocol];
	const double doublings = log2_down((uint64_t)row->hosts);
	switch (row->algorithm) {
	case NCCL_RING:
		return base + ring_latency(row, in_host, between);
	case NCCL_TREE:
		return base +
		       2 * ((double)(row->machine->ranks / (uint32_t)row->hosts - 1) * in_host + doublings * between);
	case NCCL_NVLS:
		return in_host;
	case NCCL_NVLS_TREE:
		return base + in_host + 2 * doublings * between;
	case NCCL_PAT:
	case NCCL_ALGORITHMS:
		break;
	}
	return base + doublings * (between / 3.5) + row->ranks * 2.8;
}

/* src/graph/tuning.cc, ncclTopoGetAlgoTime. */
static double time_of(const struct row *row, uint64_t bytes)
{
	const uint32_t channels = 2 * nccl_ring_graph(row->machine, hosts_of(row->machine)).channels;
	double rate = algorithm_rate(row), waits = latency(row);
	if (row->algorithm == NCCL_TREE && bytes >= 64 && log2_down(bytes >> 6) < 23)
		rate *= tree_correction[row->protocol][log2_down(bytes >> 6)];
	if (row->algorithm == NCCL_RING && row->protocol == NCCL_SIMPLE && row->hosts > 1 && row->kind == ALLREDUCE &&
		bytes / ((uint64_t)channels * row->machine->ranks) >= 64)
		waits *= 1.4; /* the plateau of rings */
	return rate > 0 ? waits + (double)bytes / (1000 * rate) : -1;
}

double nccl_time(const struct nccl_machine *machine, const char *kind, enum nccl_algorithm algorithm,
	enum nccl_protocol protocol, uint64_t bytes)
{
	const struct row row = row_of(machine, kind_of(kind), algorithm, protocol);
	assert(row.kind < KINDS && machine->ranks > 1);
	return is_there(&row) ? time_of(&row, bytes) : -1;
}

/* ---- The choice -------------------------------------------------------------------------------------------------- */

/* src/enqueue.cc, topoGetAlgoInfo: fewer channels while each would have too little. The thresholds are of
 * src/include/comm.h, the threads of src/include/device.h; NVLS has its own channels, 16 at most. */
static uint32_t channels_for(const struct nccl_machine *machine, const struct nccl_choice *choice, uint64_t bytes)
{
	static const uint64_t threads[NCCL_PROTOCOLS] = { 512, 640, 512 }, threshold[NCCL_PROTOCOLS] = { 8, 8, 64 };
	const bool is_ring_ll = choice->algorithm == NCCL_RING && choice->protocol == NCCL_LL;
	const uint64_t each =
		threads[choice->protocol] * threshold[choice->protocol] * (is_ring_ll ? machine->ranks : 1);
	uint32_t channels = 2 * nccl_ring_graph(machine, hosts_of(machine)).channels;
	if (choice->algorithm == NCCL_NVLS || choice->algorithm == NCCL_NVLS_TREE)
		return 16;
	while (channels > 1 && bytes < channels * each)
		channels--;
	return channels;
}

struct nccl_choice nccl_choose(const struct nccl_machine *machine, const char *kind, uint64_t bytes)
{
	struct nccl_choice best = { .us = -1 };
	for (uint32_t a = 0; a < NCCL_ALGORITHMS; a++)
		for (uint32_t p = 0; p < NCCL_PROTOCOLS; p++) {
			const double us =
				nccl_time(machine, kind, (enum nccl_algorithm)a, (enum nccl_protocol)p, bytes);
			if (us >= 0 && (best.us < 0 || us < best.us))
				best = (struct nccl_choice){
					.algorithm = (enum nccl_algorithm)a, .protocol = (enum nccl_protocol)p, .us = us
				};
		}
	assert(best.us >= 0);
	best.channels = channels_for(machine, &best, bytes);
	return best;
}

uint64_t nccl_wire_bytes(enum nccl_protocol protocol, uint64_t bytes)
{
	if (protocol == NCCL_LL)
		return 2 * bytes;
	return protocol == NCCL_LL128 ? (bytes + 119) / 120 * 128 : bytes;
}

const char *nccl_algorithm_of(const char *kind, enum nccl_algorithm algorithm)
{
	static const char *const names[NCCL_ALGORITHMS] = { "double-tree", "ring", "nvls", "nvls", "pat" };
	const enum kind is = kind_of(kind);
	return is == BROADCAST || is == REDUCE ? "chain" : names[algorithm];
}

const char *nccl_algorithm_name(enum nccl_algorithm algorithm)
{
	static const char *const names[NCCL_ALGORITHMS] = { "tree", "ring", "NVLS", "NVLS tree", "PAT" };
	return names[algorithm];
}

const char *nccl_protocol_name(enum nccl_protocol protocol)
{
	static const char *const names[NCCL_PROTOCOLS] = { "LL", "LL128", "Simple" };
	return names[protocol];
}
