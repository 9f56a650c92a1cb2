/* See step_network.h. */
#include "sim/step_network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "net/rank_groups.h"
#include "net/why.h"
#include "sim/ideal.h"
#include "sim/simulation.h"

struct looking {
	const struct simulation *simulation;
	const struct step_plan *plan;
	struct routes *routes;
	uint32_t *ranks, *order; /* of a group */
};

/* ---- Links ------------------------------------------------------------------------------------------------------- */

/* Payload of a GPU's share of its host's NICs. */
static double nic_bytes_a_second(const struct simulation *simulation)
{
	const struct hosts *hosts = &simulation->hosts;
	const double share = hosts->gpus ? (double)hosts->nics / hosts->gpus : 1;

	return ideal_payload_rate(simulation, simulation->network.endpoints[0].link) * share;
}

static struct step_link near_link(const struct simulation *simulation)
{
	const struct hosts *hosts = &simulation->hosts;

	return (struct step_link){ (double)hosts->scale_up_time,
		hosts->scale_up ? (double)hosts->scale_up / 8 : nic_bytes_a_second(simulation) };
}

/* A byte from a rank to one of another host. */
static double far_alpha(const struct looking *looking, uint32_t from, uint32_t to)
{
	const struct hosts *hosts = &looking->simulation->hosts;

	return (double)ideal_message(looking->simulation, looking->routes, hosts_sends_by(hosts, from, to, 0),
		hosts_receives_by(hosts, from, to, 0), 1);
}

static void slower(struct step_link *link, const struct step_link *other)
{
	link->alpha = other->alpha > link->alpha ? other->alpha : link->alpha;
	if (other->bytes_a_second < link->bytes_a_second)
		link->bytes_a_second = other->bytes_a_second;
}

/* Slower than neither: it may be of no group, where one has the longest latency and another the lowest rate. */
static void take_slower(struct step_way *way, const struct step_way *other)
{
	if (way->link.bytes_a_second == 0) { /* the first */
		*way = *other;
		return;
	}
	slower(&way->link, &other->link);
	slower(&way->near, &other->near);
	way->near_part = other->near_part < way->near_part ? other->near_part : way->near_part;
	way->leaves_hosts |= other->leaves_hosts;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* A group in a ring's order: hosts, the fewest members that one of them has, and as many that each has, or 0. */
struct spread {
	uint32_t hosts, fewest, each;
	double mean_alpha, longest_alpha; /* from a host to the next, and from the first to another */
};

static struct spread spread_of(const struct looking *looking, uint32_t members, uint32_t each)
{
	const struct hosts *hosts = &looking->simulation->hosts;
	const uint32_t first = looking->ranks[looking->order[0]];
	struct spread spread = { .fewest = members, .each = each };
	double sum = 0;

	for (uint32_t from = 0, to = 0; from < members; from = to) {
		const uint32_t rank = looking->ranks[looking->order[from]];
		while (to < members &&
			hosts_host_of(hosts, looking->ranks[looking->order[to]]) == hosts_host_of(hosts, rank))
			to++;
		spread.hosts++;
		spread.fewest = to - from < spread.fewest ? to - from : spread.fewest;
		if (to - from == members)
			return spread;
		sum += far_alpha(
			looking, looking->ranks[looking->order[to - 1]], looking->ranks[looking->order[to % members]]);
		const double from_first = from > 0 ? far_alpha(looking, first, rank) : 0;
		spread.longest_alpha = from_first > spread.longest_alpha ? from_first : spread.longest_alpha;
	}
	spread.mean_alpha = sum / spread.hosts;
	return spread;
}

/* Members that are equally many on each host use the NICs of all, by a ring for each; else there is one ring. */
static void set_ring(const struct simulation *simulation, const struct spread *spread, struct step_way *way)
{
	const struct hosts *hosts = &simulation->hosts;
	const double nic = nic_bytes_a_second(simulation), share = hosts->gpus ? (double)hosts->nics / hosts->gpus : 1;
	const double of_one = share < 1 ? 1 / share : 1; /* of shares, a NIC */

	way->link.alpha = spread->mean_alpha;
	way->link.bytes_a_second = nic * (spread->each || spread->fewest < of_one ? spread->fewest : of_one);
	/* By its port a GPU sends the shares of all rings but that which leaves the host at it. */
	if (spread->each > 1 && spread->each <= hosts->nics) {
		way->near_rings = spread->each - 1.0;
		way->near.bytes_a_second *= spread->each / way->near_rings;
	}
}

static int way_of_group(const struct looking *looking, enum step_dimension dimension, uint32_t place, uint32_t stage,
	struct step_way *way)
{
	const struct simulation *simulation = looking->simulation;
	const uint32_t members = step_members(looking->plan, dimension);
	uint32_t each;

	step_group_ranks(looking->plan, dimension, place, stage, looking->ranks);
	if (rank_groups_gather(&simulation->hosts, looking->ranks, members, looking->order, &each))
		return -ENOMEM;
	const struct spread spread = spread_of(looking, members, each);
	const struct step_link near = near_link(simulation);
	*way = (struct step_way){ .link = near, .near = near, .near_part = 1, .leaves_hosts = spread.hosts > 1 };
	if (spread.hosts == 1)
		return 0;
	way->near_part = (double)(members - spread.hosts) / members;
	set_ring(simulation, &spread, way);
	if (dimension == STEP_EP || dimension == STEP_ALL)
		way->link.alpha = spread.longest_alpha;
	if (dimension == STEP_EP &&
		looking->plan->dispatcher == DISPATCH_ALL_TO_ALL) /* only what leaves the host needs NICs */
		way->link.bytes_a_second = nic_bytes_a_second(simulation) * (members - 1.0) / (members - spread.fewest);
	return 0;
}

static int find_way(const struct looking *looking, enum step_dimension dimension, struct step_way *slowest)
{
	const struct step_plan *plan = looking->plan;
	const uint32_t places = plan->tp * plan->cp * plan->dp;
	const uint32_t stages = dimension == STEP_ALL || dimension == STEP_ENDS ? 1 : plan->pp;
	struct step_way way = { .link = near_link(looking->simulation), .near_part = 1 };
	int rc = 0;

	way.near = way.link;
	if (step_members(plan, dimension) == 1)
		*slowest = way;
	for (uint32_t stage = 0; !rc && step_members(plan, dimension) > 1 && stage < stages; stage++)
		for (uint32_t place = 0; !rc && place < (dimension == STEP_ALL ? 1 : places); place++) {
			const uint32_t rank = dimension == STEP_ALL ? plan->first : plan_rank(plan, place, stage);
			if (rank != step_group_first(plan, dimension, place, stage))
				continue;
			rc = way_of_group(looking, dimension, place, stage, &way);
			if (!rc)
				take_slower(slowest, &way);
		}
	return rc;
}

/* ---- Boundaries -------------------------------------------------------------------------------------------------- */

static struct step_way way_of_message(const struct looking *looking, uint32_t from, uint32_t to)
{
	const struct hosts *hosts = &looking->simulation->hosts;
	struct step_way way = { .link = near_link(looking->simulation), .near_part = 0 };

	way.near = way.link;
	way.leaves_hosts = hosts_host_of(hosts, from) != hosts_host_of(hosts, to);
	if (way.leaves_hosts)
		way.link = (struct step_link){ far_alpha(looking, from, to), nic_bytes_a_second(looking->simulation) };
	return way;
}

static struct step_way boundary_of(const struct looking *looking, uint32_t stage)
{
	const struct step_plan *plan = looking->plan;
	struct step_way slowest = { 0 };

	for (uint32_t place = 0; place < plan->tp * plan->cp * plan->dp; place++) {
		const struct step_way way = way_of_message(
			looking, plan_rank(plan, place, stage), plan_rank(plan, place, (stage + 1) % plan->pp));
		take_slower(&slowest, &way);
	}
	return slowest;
}

/* ---- The network ------------------------------------------------------------------------------------------------- */

static int find(const struct looking *looking, struct step_network *network)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < STEP_DIMENSIONS; i++)
		if (i != STEP_PP)
			rc = find_way(looking, (enum step_dimension)i, &network->ways[i]);
	for (uint32_t i = 0; !rc && i < looking->plan->pp; i++)
		network->boundaries[i] = boundary_of(looking, i);
	return rc;
}

int step_network_find(const struct simulation *simulation, const struct step_plan *plan, struct step_network *network)
{
	const uint32_t ranks = plan_ranks(plan);
	struct looking looking = { .simulation = simulation,
		.plan = plan,
		.routes = routes_make(&simulation->network),
		.ranks = malloc(ranks * sizeof(*looking.ranks)),
		.order = malloc(ranks * sizeof(*looking.order)) };

	*network = (struct step_network){ .boundaries = calloc(plan->pp, sizeof(*network->boundaries)) };
	int rc = looking.routes && looking.ranks && looking.order && network->boundaries ? find(&looking, network)
											 : -ENOMEM;
	routes_free(looking.routes);
	free(looking.ranks);
	free(looking.order);
	return rc;
}

int step_network_check(const struct simulation *simulation, char *why, size_t size)
{
	struct routes *routes = routes_make(&simulation->network);
	uint32_t from, to;

	if (!routes)
		return -ENOMEM;
	const bool are_joined =
		routes_join(routes, &simulation->network, &simulation->hosts, simulation_ranks(simulation), &from, &to);
	routes_free(routes);
	if (are_joined)
		return 0;
	return why_not(why, (unsigned)size,
		"network.topology: no path leads between endpoints %" PRIu32 " and %" PRIu32
		", which ranks send by: hosts.keeps-rails: yes, or another topology",
		from, to);
}
