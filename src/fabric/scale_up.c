/* See scale_up.h. */
#include "fabric/scale_up.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "base/number_map.h"
#include "fabric/operations.h"
#include "net/grow.h"

struct transfer {
	uint32_t flow;
	uint32_t from, to; /* ports: those of GPUs out, then those in */
	uint32_t line;     /* number in its domain */
	bool is_behind;    /* an earlier one of its line is under way, so this has no rate */
	uint64_t rate;     /* bytes per second; 0: not found yet */
	unsigned __int128 left;
};

/* Pieces that go by one connection are in order, a line: if they shared a port they would all end at one time, and the
 * port idle until the next are there. */
enum { NO_LINE = 0 };

struct port_share {
	uint64_t free;    /* bytes per second that no transfer has yet */
	uint32_t waiting; /* transfers without a rate */
};

struct domain {
	struct transfer *transfers;
	struct port_share *ports;
	uint32_t count, room;
	struct number_map line_of;      /* by connection */
	uint32_t line_count, line_room; /* the last line has the number line_count */
	uint64_t *went_in;              /* by line: the last turn in which one of its transfers went */
	uint64_t turn;                  /* how often rates were found */
	vb_time at;                     /* up to when `left` is right */
	vb_time next;                   /* the event that counts; -1: none */
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
		free(fabric->domains[i].went_in);
		number_map_free(&fabric->domains[i].line_of);
	}
	free(fabric->domains);
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

/* A connection as engines have them, but between ports of the domain. */
static uint64_t connection_key(const struct transfer *transfer, const struct flow_state *flow)
{
	assert(transfer->from < 1u << 12 && transfer->to < 1u << 12);
	assert(flow->channel <= MESSAGE_MOST_CHANNEL && flow->traffic_class < 1u << 3);
	return (uint64_t)transfer->from << 52 | (uint64_t)transfer->to << 40 | (uint64_t)flow->channel << 19 |
	       flow->traffic_class << 16 | flow->job;
}

/* Of a message that is no piece none. False: no memory. */
static bool find_line(struct domain *domain, const struct flow_state *flow, struct transfer *transfer)
{
	transfer->line = NO_LINE;
	if (!flow->is_piece)
		return true;
	uint32_t *line = number_map_make(&domain->line_of, connection_key(transfer, flow));
	if (!line)
		return false;
	if (*line == NO_LINE) {
		if (!grow_by_one(
			    &domain->went_in, &domain->line_room, domain->line_count + 1, sizeof(*domain->went_in)))
			return false;
		*line = ++domain->line_count;
		domain->went_in[*line] = 0;
	}
	transfer->line = *line;
	return true;
}

/* The first of each line goes: transfers are in the order in which they began. */
static void let_first_go(struct domain *domain)
{
	domain->turn++;
	for (uint32_t i = 0; i < domain->count; i++) {
		struct transfer *its = &domain->transfers[i];
		if (its->line == NO_LINE)
			continue;
		its->is_behind = domain->went_in[its->line] == domain->turn;
		domain->went_in[its->line] = domain->turn;
	}
}

/* ---- Rates ------------------------------------------------------------------------------------------------------- */

/* Of each transfer without a rate. It is never 0, or the transfer would have no end. */
static uint64_t share_of(const struct port_share *port)
{
	const uint64_t share = port->free / port->waiting;
	return share ? share : 1;
}

/* The share of a transfer in the port that has least for each; false: no port has a transfer that waits. */
static bool find_tightest(const struct domain *domain, uint32_t ports, uint64_t *share)
{
	bool is_any = false;
	for (uint32_t i = 0; i < ports; i++) {
		const struct port_share *port = &domain->ports[i];
		if (port->waiting == 0)
			continue;
		if (!is_any || share_of(port) < *share)
			*share = share_of(port);
		is_any = true;
	}
	return is_any;
}

static bool is_tight(const struct port_share *port, uint64_t share)
{
	return port->waiting > 0 && share_of(port) == share;
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
	let_first_go(domain);
	for (uint32_t i = 0; i < domain->count; i++) {
		domain->transfers[i].rate = 0;
		if (domain->transfers[i].is_behind)
			continue;
		domain->ports[domain->transfers[i].from].waiting++;
		domain->ports[domain->transfers[i].to].waiting++;
	}
	while (find_tightest(domain, ports, &share)) {
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

static void await(struct shard *shard, uint32_t host, vb_time next)
{
	struct domain *domain = &shard->fabric->domains[host];
	if (next >= 0 && next != domain->next)
		events_add(&shard->events, next, event_key(EVENT_SCALE_UP, 0, host));
	domain->next = next;
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
		/* A transfer that would end beyond the horizon never ends. */
		const vb_time at = domain->at + (takes > FABRIC_HORIZON ? FABRIC_HORIZON + VB_S : (vb_time)takes);
		if (next < 0 || at < next)
			next = at;
	}
	await(shard, host, next);
}

/* Rates are found once for all that begins now: by this moment's last event, which comes behind all others. */
void scale_up_send(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	const struct hosts *hosts = &fabric->config->hosts;
	const struct flow_state *flow = flow_at(fabric, number);
	const uint32_t host = hosts_host_of(hosts, flow->from);
	struct domain *domain = &fabric->domains[host];
	assert(host == hosts_host_of(hosts, flow->to));
	struct transfer transfer = { .flow = number,
		.from = flow->is_copy ? switch_of(fabric) : hosts_gpu_in_host(hosts, flow->from),
		.to = flow->is_of_sum ? switch_of(fabric) : hosts->gpus + hosts_gpu_in_host(hosts, flow->to),
		.left = (unsigned __int128)flow->bytes * (unsigned __int128)VB_S };
	if (!grow_by_one(&domain->transfers, &domain->room, domain->count, sizeof(*domain->transfers)) ||
		!find_line(domain, flow, &transfer)) {
		shard->is_out_of_memory = true;
		return;
	}
	domain->transfers[domain->count++] = transfer;
	await(shard, host, shard->now);
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
		if (its.left > 0)
			domain->transfers[kept++] = its;
		else
			operation_deliver(shard, its.flow, shard->now + fabric->config->hosts.scale_up_time);
	}
	domain->count = kept;
	find_rates(fabric, domain);
	await_next(shard, host);
}
