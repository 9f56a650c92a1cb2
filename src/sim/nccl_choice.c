/* See nccl_choice.h. */
#include "sim/nccl_choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "net/why.h"
#include "sim/ranks.h"

/* Without another word a GPU is like H100. */
enum { USUAL_CAPABILITY = 90 };

/* What a group of the workload has of its hosts. */
static struct nccl_machine machine_of(const struct simulation *simulation, uint32_t workload)
{
	const struct hosts *hosts = &simulation->hosts;
	const struct network *network = &simulation->network;
	const struct rank_groups *groups = &simulation->groups[workload];
	const uint32_t of_host = hosts->gpus ? hosts->gpus : 1;
	const uint32_t most = of_host < groups->size ? of_host : groups->size;
	const uint32_t gpus = groups->gpus ? groups->gpus : most;
	const uint32_t nics = gpus * hosts_nics_of_gpu(hosts);

	return (struct nccl_machine){ .ranks = groups->size,
		.gpus = gpus,
		.nics = hosts->gpus && hosts->nics < nics ? hosts->nics : nics,
		.scale_up_gb_s = (double)hosts->scale_up / 8e9,
		.nic_gb_s = (double)network->links[network->endpoints[0].link].bits_per_second / 8e9,
		.capability = hosts->capability ? hosts->capability : USUAL_CAPABILITY,
		.reduces = hosts->reduces && groups->gpus > 1 };
}

static bool leaves_it_to_nccl(const struct collective *of)
{
	return of->algorithm && strcmp(of->algorithm, "nccl") == 0;
}

/* NCCL_MAX_NCHANNELS bounds what is used, and not what the model counts on. */
static struct nccl_choice choose(const struct simulation *simulation, uint32_t workload, const struct collective *of)
{
	const struct nccl_machine machine = machine_of(simulation, workload);
	struct nccl_choice choice = nccl_choose(&machine, of->kind, of->bytes);

	if (of->nccl.channels && of->nccl.channels < choice.channels)
		choice.channels = of->nccl.channels;
	return choice;
}

bool nccl_choice_of(const struct simulation *simulation, uint32_t workload, struct nccl_choice *choice)
{
	const struct workload given = simulation_workload(simulation, workload);
	struct collective of;

	if (!workload_collective(&given, simulation_ranks(simulation), &of) || !leaves_it_to_nccl(&of))
		return false;
	*choice = choose(simulation, workload, &of);
	return true;
}

int nccl_choice_apply(
	const struct simulation *simulation, uint32_t workload, struct collective *of, char *why, unsigned why_size)
{
	if (!leaves_it_to_nccl(of))
		return 0;
	if (!nccl_has(of->kind))
		return why_not(why, why_size, "NCCL has no choice of algorithms for %s: leave out algorithm", of->kind);
	const struct nccl_choice choice = choose(simulation, workload, of);
	of->algorithm = nccl_algorithm_of(of->kind, choice.algorithm);
	of->wire = nccl_wire_bytes(choice.protocol, of->bytes);
	of->nccl.channels = choice.channels;
	return 0;
}

const char *nccl_choice_text(const struct nccl_choice *choice, char *text, size_t size)
{
	snprintf(text, size, "%s %s, %" PRIu32 " channel%s", nccl_algorithm_name(choice->algorithm),
		nccl_protocol_name(choice->protocol), choice->channels, choice->channels > 1 ? "s" : "");
	return text;
}
