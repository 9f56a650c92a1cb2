/* What NCCL's search finds on hosts whose GPUs all reach each other through one switch. Files are NCCL's, version
 * 2.30.7, commit 5067397: the search is ncclTopoCompute of src/graph/search.cc. */
#include "net/nccl_graph.h"

enum { MOST_SPEEDS = 21, MOST_CHANNELS = 32, MOST_HEADS = 32 };

/* Those that the search tries, in GB/s: speedArrayIntra, speedArrayInter, and those of sm90 and sm100. */
static const double in_host_speeds[3][MOST_SPEEDS] = {
	{ 40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0 },
	{ 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0 },
	{ 90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0 },
};
static const double between_speeds[3][MOST_SPEEDS] = {
	{ 48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12 },
	{ 48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12 },
	{ 96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24,
		0.12 },
};

/* What NCCL counts for NVLink beside the data sheet: src/graph/topo.h, SM80_NVLINK_BW 20 of 25 GB/s,
 * SM90_NVLINK_BW 20.6 of 25, SM100_NVLINK_BW 40.1 of 50. */
static const double of_data_sheet[3] = { 20.0 / 25, 20.6 / 25, 40.1 / 50 };

uint32_t nccl_generation(uint32_t capability)
{
	return capability >= 100 ? 2 : capability >= 90 ? 1 : 0;
}

static double scale_up_of(const struct nccl_machine *machine)
{
	return machine->scale_up_gb_s * of_data_sheet[nccl_generation(machine->capability)];
}

static uint32_t whole(double n)
{
	return n > MOST_CHANNELS ? MOST_CHANNELS : (uint32_t)(n + 1e-9);
}

/* As many channels of this speed as all ports take. Between hosts a ring leaves one of its GPUs by a NIC and not by the
 * scale-up domain; if each GPU has a NIC, they take turns. */
static uint32_t channels_at(const struct nccl_machine *machine, uint32_t hosts, double speed)
{
	uint32_t of_domain = machine->gpus > 1 ? whole(scale_up_of(machine) / speed) : MOST_CHANNELS;
	if (hosts == 1)
		return of_domain;
	const uint32_t of_nics = whole((double)machine->nics * whole(machine->nic_gb_s / speed));
	if (machine->gpus > 1 && machine->nics >= machine->gpus)
		of_domain = (of_domain * machine->gpus) / (machine->gpus - 1);
	return of_nics < of_domain ? of_nics : of_domain;
}

/* The first pass: what has most in all, of the speeds that are not below half of the best. */
static struct nccl_graph best_of(const struct nccl_machine *machine, uint32_t hosts, const double *speeds)
{
	struct nccl_graph best = { .channels = 0 };
	for (uint32_t i = 0; i < MOST_SPEEDS && speeds[i] > 0 && (!best.channels || speeds[i] / best.between > .49);
		i++) {
		const uint32_t channels = channels_at(machine, hosts, speeds[i]);
		if (channels * speeds[i] > best.channels * best.between)
			best = (struct nccl_graph){ channels, speeds[i], speeds[i] };
	}
	return best;
}

/* ncclTopoDupChannels; and a fallback of the search if nothing has been found: one channel of 0.1 GB/s. */
struct nccl_graph nccl_ring_graph(const struct nccl_machine *machine, uint32_t hosts)
{
	const uint32_t generation = nccl_generation(machine->capability);
	struct nccl_graph graph =
		best_of(machine, hosts, hosts == 1 ? in_host_speeds[generation] : between_speeds[generation]);
	if (!graph.channels)
		return (struct nccl_graph){ 1, 0.1, 0.1 };
	if (graph.in_host < 25 || (generation > 0 && graph.in_host < 50 && graph.channels > 4) ||
		2 * graph.channels > MOST_CHANNELS)
		return graph;
	return (struct nccl_graph){ 2 * graph.channels, graph.in_host / 2, graph.between / 2 };
}

/* A channel for each GPU that is a head: all in one host, those with a NIC between hosts. The second pass raises the
 * rate between hosts to the next that NICs have, up to twice that in the host. */
struct nccl_graph nccl_nvls_graph(const struct nccl_machine *machine, uint32_t hosts)
{
	const uint32_t generation = nccl_generation(machine->capability);
	const double *speeds = hosts == 1 ? in_host_speeds[generation] : between_speeds[generation];
	const uint32_t most = hosts > 1 && machine->nics < machine->gpus ? machine->nics : machine->gpus;
	const uint32_t heads = most < MOST_HEADS ? most : MOST_HEADS;
	uint32_t i = 0;
	while (speeds[i] > 0 &&
		(heads * speeds[i] > scale_up_of(machine) || (hosts > 1 && speeds[i] > machine->nic_gb_s)))
		i++;
	struct nccl_graph graph = { heads, speeds[i], speeds[i] };
	while (i > 0 && graph.between < 2 * graph.in_host && (hosts == 1 || speeds[i - 1] <= machine->nic_gb_s))
		graph.between = speeds[--i];
	return graph.in_host > 0 ? graph : (struct nccl_graph){ .channels = 0 };
}
