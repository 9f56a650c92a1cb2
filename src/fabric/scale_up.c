/* See scale_up.h. */
#include "fabric/scale_up.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
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
	uint32_t first;   /* of its transfers, in `at_ports` */
	uint32_t count;
};

struct tight_port {
	uint64_t share; /* its share, or less than that: shares never fall while rates are found */
	uint32_t port;
};

struct domain {
	struct transfer *transfers;
	struct port_share *ports;
	uint32_t count, room;
	uint32_t *at_ports; /* transfers, port by port, in the order in which they began */
	uint32_t at_room;
	struct tight_port *heap; /* ports, the tightest first */
	uint32_t heap_count;
	uint32_t *tightest; /* ports that have the least share */
	uint32_t tightest_count;
	uint64_t *marks; /* by transfer, a bit: one of a tightest port */
	uint32_t mark_room;
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
	const uint32_t count = hosts_count(hosts, fabric->network->endpoint_count);
	fabric->domains = calloc(count + 1, sizeof(*fabric->domains));
	for (uint32_t i = 0; fabric->domains && i < count; i++) {
		struct domain *domain = &fabric->domains[i];
		domain->next = -1;
		domain->ports = calloc(ports_of(fabric) + 1, sizeof(*domain->ports));
		domain->heap = calloc(ports_of(fabric), sizeof(*domain->heap));
		domain->tightest = calloc(ports_of(fabric), sizeof(*domain->tightest));
		if (!domain->ports || !domain->heap || !domain->tightest)
			return -ENOMEM;
	}
	return fabric->domains ? 0 : -ENOMEM;
}

void scale_up_close(struct fabric *fabric)
{
	const struct hosts *hosts = &fabric->config->hosts;
	for (uint32_t i = 0; fabric->domains && i < hosts_count(hosts, fabric->network->endpoint_count); i++) {
		free(fabric->domains[i].transfers);
		free(fabric->domains[i].ports);
		free(fabric->domains[i].at_ports);
		free(fabric->domains[i].heap);
		free(fabric->domains[i].tightest);
		free(fabric->domains[i].marks);
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

/* ---- The tightest ports ------------------------------------------------------------------------------------------ */

/* Of each transfer without a rate. It is never 0, or the transfer would have no end. */
static uint64_t share_of(const struct port_share *port)
{
	const uint64_t share = port->free / port->waiting;
	return share ? share : 1;
}

/* Whether its share is this one; it is not less. */
static bool is_tight(const struct port_share *port, uint64_t share)
{
	return port->free < (unsigned __int128)(share + 1) * port->waiting;
}

static void sink_down(struct domain *domain, uint32_t at)
{
	const struct tight_port moved = domain->heap[at];
	for (uint32_t child; (child = 2 * at + 1) < domain->heap_count; at = child) {
		if (child + 1 < domain->heap_count && domain->heap[child + 1].share < domain->heap[child].share)
			child++;
		if (domain->heap[child].share >= moved.share)
			break;
		domain->heap[at] = domain->heap[child];
	}
	domain->heap[at] = moved;
}

static void heap_ports(struct domain *domain, uint32_t ports)
{
	domain->heap_count = 0;
	for (uint32_t i = 0; i < ports; i++)
		if (domain->ports[i].waiting > 0)
			domain->heap[domain->heap_count++] = (struct tight_port){ share_of(&domain->ports[i]), i };
	for (uint32_t i = domain->heap_count / 2; i-- > 0;)
		sink_down(domain, i);
}

/* The least share of a transfer in a port, and all ports that have it; false: no port has a transfer that waits. */
static bool find_tightest(struct domain *domain, uint64_t *share)
{
	struct tight_port *first = domain->heap;
	domain->tightest_count = 0;
	while (domain->heap_count && (domain->tightest_count == 0 || first->share <= *share)) {
		const struct port_share *port = &domain->ports[first->port];
		if (port->waiting == 0) {
			*first = domain->heap[--domain->heap_count];
		} else if (share_of(port) > first->share) {
			first->share = share_of(port);
		} else {
			*share = first->share;
			domain->tightest[domain->tightest_count++] = first->port;
			first->share++; /* what its transfers do not get now has more */
		}
		sink_down(domain, 0);
	}
	return domain->tightest_count > 0;
}

/* ---- Rates ------------------------------------------------------------------------------------------------------- */

static void begin_rates(const struct fabric *fabric, struct domain *domain)
{
	for (uint32_t i = 0; i < ports_of(fabric); i++)
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
}

static void list_at(struct domain *domain, uint32_t number, uint32_t transfer)
{
	struct port_share *port = &domain->ports[number];
	domain->at_ports[port->first + port->count++] = transfer;
}

static void list_transfers(const struct fabric *fabric, struct domain *domain)
{
	uint32_t first = 0;
	for (uint32_t i = 0; i <= switch_of(fabric); i++) {
		domain->ports[i].first = first;
		first += domain->ports[i].waiting;
	}
	for (uint32_t i = 0; i < domain->count; i++) {
		if (domain->transfers[i].is_behind)
			continue;
		list_at(domain, domain->transfers[i].from, i);
		list_at(domain, domain->transfers[i].to, i);
	}
}

/* Rounding makes the share of what is left of a port's transfers grow, so the last of them may get more. */
static void give(struct domain *domain, struct transfer *its, uint64_t share)
{
	struct port_share *from = &domain->ports[its->from], *to = &domain->ports[its->to];
	if (its->rate > 0 || (!is_tight(from, share) && !is_tight(to, share)))
		return;
	its->rate = share;
	from->free -= share < from->free ? share : from->free;
	to->free -= share < to->free ? share : to->free;
	from->waiting--;
	to->waiting--;
}

static void give_at(struct domain *domain, const struct port_share *port, uint64_t share)
{
	for (uint32_t i = 0; i < port->count; i++)
		give(domain, &domain->transfers[domain->at_ports[port->first + i]], share);
}

/* Transfers of several ports get theirs in the order in which they began, whichever port they are of. */
static void give_in_order(struct domain *domain, uint64_t share)
{
	for (uint32_t i = 0; i < domain->tightest_count; i++) {
		const struct port_share *port = &domain->ports[domain->tightest[i]];
		for (uint32_t k = 0; k < port->count; k++) {
			const uint32_t transfer = domain->at_ports[port->first + k];
			domain->marks[transfer / 64] |= (uint64_t)1 << transfer % 64;
		}
	}
	for (uint32_t word = 0; word <= domain->count / 64; word++) {
		for (uint64_t left = domain->marks[word]; left; left &= left - 1)
			give(domain, &domain->transfers[word * 64 + (uint32_t)__builtin_ctzll(left)], share);
		domain->marks[word] = 0;
	}
}

/* Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): transfers of the tightest ports get their
 * share, and the others share what is left. O(n + p log p) for n transfers and p ports where few ports tie. */
static void find_rates(const struct fabric *fabric, struct domain *domain)
{
	uint64_t share = 0;
	begin_rates(fabric, domain);
	list_transfers(fabric, domain);
	heap_ports(domain, ports_of(fabric));
	while (find_tightest(domain, &share)) {
		if (domain->tightest_count == 1)
			give_at(domain, &domain->ports[domain->tightest[0]], share);
		else
			give_in_order(domain, share);
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
	uint64_t takes = FABRIC_HORIZON + VB_S; /* a transfer that would end beyond the horizon never ends */
	for (uint32_t i = 0; i < domain->count; i++) {
		const struct transfer *its = &domain->transfers[i];
		assert(its->is_behind || its->rate > 0);
		/* A division costs far more than this product, and few transfers are sooner than all before them. */
		if (!its->is_behind && its->left <= (unsigned __int128)its->rate * (takes - 1))
			takes = (uint64_t)((its->left + its->rate - 1) / its->rate);
	}
	await(shard, host, domain->count ? domain->at + (vb_time)takes : -1);
}

/* Room for one more. */
static bool make_room(struct domain *domain)
{
	const uint32_t words = domain->mark_room;
	if (!grow_by_one(&domain->transfers, &domain->room, domain->count, sizeof(*domain->transfers)) ||
		!grow_by_one(&domain->at_ports, &domain->at_room, 2 * domain->count + 1, sizeof(*domain->at_ports)) ||
		!grow_by_one(&domain->marks, &domain->mark_room, (domain->count + 1) / 64, sizeof(*domain->marks)))
		return false;
	if (domain->mark_room > words)
		memset(domain->marks + words, 0, (domain->mark_room - words) * sizeof(*domain->marks));
	return true;
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
	if (!make_room(domain) || !find_line(domain, flow, &transfer)) {
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
