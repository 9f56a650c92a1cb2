/* See scale_up.h. */
#include "fabric/scale_up.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/operations.h"
#include "net/grow.h"

struct transfer {
	uint32_t flow;
	uint32_t from, to; /* ports: those of GPUs out, then those in */
	uint64_t rate;     /* bytes per second; 0 while rates are found */
	uint32_t channel;
	bool is_behind; /* an earlier one of its connection is under way */
	unsigned __int128 left;
};

struct port_share {
	uint64_t free;    /* bytes per second that no transfer has yet */
	uint32_t waiting; /* transfers without a rate */
};

struct domain {
	struct transfer *transfers;
	struct port_share *ports;
	uint32_t count, room;
	vb_time at;   /* up to when `left` is right */
	vb_time next; /* the event that counts; -1: none */
};

static uint32_t ports_of(const struct fabric *fabric)
{
	return 2 * fabric->config->hosts.gpus;
}

/* The switch itself, which has room for all: where a copy comes from, and where what is of a sum goes. */
static uint32_t switch_of(const struct fabric *fabric)
{
	return ports_of(fabric);
}

int scale_up_open(struct fabric *fabric)
{
	const struct hosts *hosts = &fabric->config->hosts;
	if (!hosts->gpus)
		return 0;
	const uint32_t count = fabric->network->endpoint_count / hosts->nics;
	fabric->domains = calloc(count + 1, sizeof(*fabric->domains));
	for (uint32_t i = 0; fabric->domains && i < count; i++) {
		fabric->domains[i].next = -1;
		fabric->domains[i].ports = calloc(ports_of(fabric) + 1, sizeof(struct port_share));
		if (!fabric->domains[i].ports)
			return -ENOMEM;
	}
	return fabric->domains ? 0 : -ENOMEM;
}

void scale_up_close(struct fabric *fabric)
{
	const struct hosts *hosts = &fabric->config->hosts;
	for (uint32_t i = 0; fabric->domains && i < fabric->network->endpoint_count / hosts->nics; i++) {
		free(fabric->domains[i].transfers);
		free(fabric->domains[i].ports);
	}
	free(fabric->domains);
}

/* ---- Rates ------------------------------------------------------------------------------------------------------- */

/* The share of a transfer in the port that has least for each; false: no port has a transfer that waits. */
static bool find_tightest(const struct domain *domain, uint32_t ports, uint64_t *share)
{
	bool is_any = false;
	for (uint32_t i = 0; i < ports; i++) {
		const struct port_share *port = &domain->ports[i];
		if (port->waiting == 0)
			continue;
		const uint64_t its = port->free / port->waiting;
		if (!is_any || its < *share)
			*share = its;
		is_any = true;
	}
	return is_any;
}

static bool is_tight(const struct port_share *port, uint64_t share)
{
	return port->waiting > 0 && port->free / port->waiting == share;
}

/* Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): transfers of the tightest ports get their
 * share, and the others share what is left. */
static void find_rates(const struct fabric *fabric, struct domain *domain)
{
	const uint32_t ports = ports_of(fabric);
	uint64_t share = 0;
	for (uint32_t i = 0; i < ports; i++)
		domain->ports[i] = (struct port_share){ .free = fabric->config->hosts.scale_up / 8 };
	domain->ports[switch_of(fabric)] = (struct port_share){ .free = UINT64_MAX };
	for (uint32_t i = 0; i < domain->count; i++) {
		domain->transfers[i].rate = 0;
		if (domain->transfers[i].is_behind)
			continue;
		domain->ports[domain->transfers[i].from].waiting++;
		domain->ports[domain->transfers[i].to].waiting++;
	}
	while (find_tightest(domain, ports, &share)) {
		share = share ? share : 1;
		for (uint32_t i = 0; i < domain->count; i++) {
			struct transfer *its = &domain->transfers[i];
			struct port_share *from = &domain->ports[its->from], *to = &domain->ports[its->to];
			if (its->rate > 0 || its->is_behind || (!is_tight(from, share) && !is_tight(to, share)))
				continue;
			its->rate = share;
			from->free -= share < from->free ? share : from->free;
			to->free -= share < to->free ? share : to->free;
			from->waiting--;
			to->waiting--;
		}
	}
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void advance(struct domain *domain, vb_time now)
{
	const uint64_t passed = (uint64_t)(now - domain->at);
	for (uint32_t i = 0; i < domain->count; i++) {
		struct transfer *its = &domain->transfers[i];
		const unsigned __int128 gone = (unsigned __int128)its->rate * passed;
		its->left = gone < its->left ? its->left - gone : 0;
	}
	domain->at = now;
}

static void await_next(struct shard *shard, uint32_t host)
{
	struct domain *domain = &shard->fabric->domains[host];
	vb_time next = -1;
	for (uint32_t i = 0; i < domain->count; i++) {
		const struct transfer *its = &domain->transfers[i];
		if (its->is_behind)
			continue;
		assert(its->rate > 0);
		const unsigned __int128 takes = (its->left + its->rate - 1) / its->rate;
		/* What is beyond the horizon never happens. */
		const vb_time at = domain->at + (takes > FABRIC_HORIZON ? FABRIC_HORIZON + VB_S : (vb_time)takes);
		if (next < 0 || at < next)
			next = at;
	}
	if (next >= 0 && next != domain->next)
		events_add(&shard->events, next, event_key(EVENT_SCALE_UP, 0, host));
	domain->next = next;
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

/* What goes through a switch that reduces is in order: pieces that share a port would all end at one time, and the port
 * idle until the next are there. */
static bool is_one_connection(const struct fabric *fabric, const struct transfer *a, const struct transfer *b)
{
	return a->from == b->from && a->to == b->to && a->channel == b->channel &&
	       (a->from == switch_of(fabric) || a->to == switch_of(fabric));
}

static bool is_behind_another(const struct fabric *fabric, const struct domain *domain, const struct transfer *transfer)
{
	for (uint32_t i = 0; i < domain->count; i++)
		if (is_one_connection(fabric, &domain->transfers[i], transfer))
			return true;
	return false;
}

static void let_next_go(const struct fabric *fabric, struct domain *domain, uint32_t ended)
{
	uint32_t next = ended + 1;
	while (next < domain->count && !is_one_connection(fabric, &domain->transfers[next], &domain->transfers[ended]))
		next++;
	if (next < domain->count)
		domain->transfers[next].is_behind = false;
}

/* ---- Transfers --------------------------------------------------------------------------------------------------- */

void scale_up_send(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	const struct hosts *hosts = &fabric->config->hosts;
	const struct flow_state *flow = flow_at(fabric, number);
	const uint32_t host = hosts_host_of(hosts, flow->from);
	struct domain *domain = &fabric->domains[host];
	assert(host == hosts_host_of(hosts, flow->to));
	if (!grow_by_one(&domain->transfers, &domain->room, domain->count, sizeof(*domain->transfers))) {
		shard->is_out_of_memory = true;
		return;
	}
	advance(domain, shard->now);
	struct transfer transfer = { .flow = number,
		.channel = flow->channel,
		.from = flow->is_copy ? switch_of(fabric) : flow->from % hosts->gpus,
		.to = flow->is_of_sum ? switch_of(fabric) : hosts->gpus + flow->to % hosts->gpus,
		.left = (unsigned __int128)flow->bytes * (unsigned __int128)VB_S };
	transfer.is_behind = is_behind_another(fabric, domain, &transfer);
	domain->transfers[domain->count++] = transfer;
	find_rates(fabric, domain);
	await_next(shard, host);
}

/* In the order in which they began, so that it is the same on every machine. */
void scale_up_on_event(struct shard *shard, uint32_t host)
{
	struct fabric *fabric = shard->fabric;
	struct domain *domain = &fabric->domains[host];
	uint32_t kept = 0;
	if (domain->next != shard->now)
		return; /* rates have changed since */
	domain->next = -1;
	advance(domain, shard->now);
	for (uint32_t i = 0; i < domain->count; i++) {
		const struct transfer its = domain->transfers[i];
		if (its.left > 0) {
			domain->transfers[kept++] = its;
			continue;
		}
		let_next_go(fabric, domain, i);
		operation_deliver(shard, its.flow, shard->now + fabric->config->hosts.scale_up_time);
	}
	assert(kept < domain->count);
	domain->count = kept;
	find_rates(fabric, domain);
	await_next(shard, host);
}
