/* Switches: where a packet goes next, and plain ports, which have one queue and are never stopped. There a packet's
 * departure is known when it arrives, so it is put onto the wire at once, and the queue is the time until then. */
#include "base/invariant.h"
#include "fabric/ns3.h"
#include "fabric/port.h"
#include "fabric/series.h"

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

static vb_time busy_until(const struct shard *shard, uint32_t number)
{
	const struct link *link = &shard->fabric->links[number];
	vb_time until = link->free_at > shard->now ? link->free_at : shard->now;
	if (link->kind == LINK_PORT)
		until += link_time(shard->fabric, link, shard->fabric->ports[number]->bytes);
	return until;
}

static uint32_t first_up(struct shard *shard, struct route_choice choice, uint32_t first, uint32_t dst)
{
	assert(first < choice.count);
	return shard->detours.network ? detours_first_up(&shard->detours, choice, first, dst, shard->now)
				      : choice.links[first];
}

static uint32_t least_busy(struct shard *shard, struct route_choice choice, uint32_t first, uint32_t dst)
{
	uint32_t best = first_up(shard, choice, first, dst);
	for (uint32_t i = 0; i < choice.count; i++) {
		uint32_t link = choice.links[(first + i) % choice.count];
		if (busy_until(shard, link) < busy_until(shard, best) &&
			(!shard->detours.network || detours_lead(&shard->detours, link, dst, shard->now)))
			best = link;
	}
	return best;
}

static uint32_t drawn_choice(uint64_t seed, uint32_t in_link, vb_time now, uint32_t count)
{
	return (uint32_t)((fabric_chance(seed, in_link, (uint64_t)now) >> 32) * count >> 32);
}

static uint32_t choose(struct shard *shard, uint32_t at_switch, const struct packet *packet)
{
	const struct fabric *fabric = shard->fabric;
	const struct switch_state *state = &fabric->switches[at_switch];
	struct route_choice choice = routes_towards(fabric->routes, at_switch, packet->dst);
	assert(choice.count > 0);
	if (choice.count == 1)
		return choice.links[0];
	/* Packets of a link arrive one at a time. */
	uint32_t first = state->routing == ROUTING_ECMP
				 ? ecmp_choice(state->seed, packet->src, packet->dst, packet->flow, choice.count)
				 : drawn_choice(state->seed, packet->in_link, shard->now, choice.count);
	if (state->hashes_as_ns3)
		first = ns3_choose(shard, at_switch, (uint32_t)(packet - shard->packets), choice);
	detours_look(&shard->detours);
	return state->routing == ROUTING_ADAPTIVE ? least_busy(shard, choice, first, packet->dst)
						  : first_up(shard, choice, first, packet->dst);
}

/* ---- A plain port ------------------------------------------------------------------------------------------------ */

/* RED: no packet below mark_min, all beyond mark_max, and a random share between. */
static bool is_marked(struct shard *shard, uint32_t number, const struct switch_profile *profile, vb_time queued)
{
	const struct fabric *fabric = shard->fabric;
	const struct class_profile *class = &profile->classes[0];
	const uint64_t rate = fabric->network->links[number].bits_per_second;
	const vb_time min = link_time(fabric, &fabric->links[number], port_mark_bytes(profile, rate, class->mark_min));
	const vb_time max = link_time(fabric, &fabric->links[number], port_mark_bytes(profile, rate, class->mark_max));
	if (queued <= min)
		return false;
	if (queued > max)
		return true;
	uint64_t drawn =
		fabric_chance(shard->fabric->config->seed ^ 0xECE, number, shard->fabric->links[number].packets);
	return (double)(uint32_t)drawn * (double)(max - min) < (double)(queued - min) * class->mark_ppm * 4294.967296;
}

static void send_plain(struct shard *shard, uint32_t at_switch, uint32_t number, uint32_t index)
{
	struct fabric *fabric = shard->fabric;
	struct link *link = &fabric->links[number];
	struct packet *packet = &shard->packets[index];
	const struct switch_profile *whole = &fabric->network->profiles[fabric->network->switches[at_switch].profile];
	const struct class_profile *profile = &whole->classes[0];
	const vb_time time = link_time(fabric, link, packet->wire_bytes);
	vb_time queued = link->free_at > shard->now ? link->free_at - shard->now : 0;
	if (whole->port_bytes && queued + time > link_time(fabric, link, whole->port_bytes)) {
		fabric->counts[number].drops++;
		series_on_missing(shard, number);
		shard->drops++;
		packet_put(shard, index);
		return;
	}
	if (queued > (vb_time)link->most_queued * 1024)
		link->most_queued = (uint32_t)(queued / 1024);
	if (profile->mark_max && packet->takes_marks && is_marked(shard, number, whole, queued)) {
		packet->is_marked = true;
		fabric->counts[number].marks++;
	}
	vb_time at = shard->now + queued;
	const struct link *from = &fabric->links[packet->in_link];
	if (from->is_cut_through) { /* the wire must not overtake the packet's end */
		uint32_t behind = packet->wire_bytes > LINK_HEADER_BYTES ? packet->wire_bytes - LINK_HEADER_BYTES : 0;
		vb_time end = shard->now + link_time(fabric, from, behind);
		if (end - time > at)
			at = end - time;
	}
	link_send(shard, number, index, at);
}

void switch_expect(struct shard *shard, uint32_t at_switch, uint32_t index)
{
	struct packet *packet = &shard->packets[index];
	if (shard->fabric->switches[at_switch].routing != ROUTING_ECMP || shard->detours.network || packet->is_frame)
		return;
	packet->in_link = choose(shard, at_switch, packet);
	packet->is_routed = true;
	__builtin_prefetch(&shard->fabric->links[packet->in_link], 1);
}

void switch_receive(struct shard *shard, uint32_t in_link, uint32_t index)
{
	const uint32_t at_switch = shard->fabric->links[in_link].to;
	struct packet *packet = &shard->packets[index];
	uint32_t out = packet->in_link;
	packet->in_link = in_link;
	if (!packet->is_routed)
		out = choose(shard, at_switch, packet);
	packet->is_routed = false;
	packet->hops++;
	if (shard->fabric->links[out].kind == LINK_PLAIN)
		send_plain(shard, at_switch, out, index);
	else
		port_receive(shard, out, index);
}
