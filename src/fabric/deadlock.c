/* See deadlock.h. A class of a link that is stopped waits until packets that it has sent leave the switch at the other
 * end. It is alive if some of these are in a class that is alive, or if a resume or credit for it is due or under way,
 * which the other end knows. When all that are alive are known, the others wait only for each other: a paused class may
 * continue only when some of its own packets have left. */
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/buffer.h"
#include "fabric/credits.h"
#include "fabric/deadlock.h"

/* The index of a link's class. */
static uint32_t place_of(uint32_t link, uint8_t class)
{
	return link * FABRIC_CLASSES + class;
}
static uint32_t link_of(uint32_t place)
{
	return place / FABRIC_CLASSES;
}
static uint8_t class_of(uint32_t place)
{
	return place % FABRIC_CLASSES;
}

struct search {
	struct fabric *fabric;
	uint8_t *dead;   /* masks of classes, by link: stopped, and not known to be alive */
	uint64_t *stuck; /* by place: its packets at the other end that are in queues not known to be alive */
	uint32_t *next;  /* by dead place: one of those that it waits for */
	uint32_t *news;  /* places newly known to be alive, whose queues are not examined yet */
	uint32_t news_count;
};

static const struct shard *part_of(const struct fabric *fabric, uint32_t link)
{
	network_node from = fabric->network->links[link].from;
	return &fabric->shards[network_is_switch(from) ? fabric->switches[network_index(from)].shard
						       : fabric->endpoints[network_index(from)].shard];
}

/* ---- Which classes are stopped ----------------------------------------------------------------------------------- */

static bool has_credit(const struct shard *shard, uint32_t link, uint8_t class)
{
	const struct port_queue *queue = &shard->fabric->ports[link]->queues[class];
	const struct ingress *ingress = shard->fabric->ingresses[link];
	uint64_t wanted = credits_of(shard->packets[queue->head].wire_bytes);
	return queue->blocks_sent + wanted <= ingress->classes[class].blocks_freed;
}

/* And nothing that was sent, or is sure to happen, frees it. */
static bool is_held(const struct fabric *fabric, uint32_t link, uint8_t class)
{
	const struct shard *shard = part_of(fabric, link);
	const struct port *port = fabric->ports[link];
	const uint8_t bit = (uint8_t)(1u << class);
	if (!(port->occupied & bit) || !port_is_stopped(shard, port, class))
		return false;
	if (port->has_credits)
		return !has_credit(shard, link, class);
	bool is_watched = fabric->links[link].kind == LINK_PORT && port->profile->watchdog;
	return !is_watched && fabric->ingresses[link]->paused & bit;
}

static uint8_t held_classes(const struct fabric *fabric, uint32_t link)
{
	const struct port *port = fabric->ports[link];
	uint8_t held = 0;
	for (uint8_t class = 0; port && port->occupied >> class; class ++)
		held |= (uint8_t)(is_held(fabric, link, class) << class);
	return held;
}

static bool find_held(struct search *search)
{
	bool is_any = false;
	for (uint32_t link = 0; link < search->fabric->network->link_count; link++) {
		search->dead[link] = held_classes(search->fabric, link);
		is_any |= search->dead[link] != 0;
	}
	return is_any;
}

/* ---- Which classes are alive ------------------------------------------------------------------------------------- */

static bool is_dead(const struct search *search, uint32_t place)
{
	return search->dead[link_of(place)] & 1u << class_of(place);
}

static void say_alive(struct search *search, uint32_t place)
{
	search->dead[link_of(place)] &= (uint8_t) ~(1u << class_of(place));
	search->news[search->news_count++] = place;
}

/* The place that a packet came from, if it can be stopped. */
static bool find_sender(const struct fabric *fabric, const struct packet *packet, uint32_t *place, uint64_t *amount)
{
	const struct port *from = fabric->ports[packet->in_link];
	if (!from)
		return false;
	*place = place_of(packet->in_link, port_class(from, packet));
	*amount = from->has_credits ? credits_of(packet->wire_bytes) : packet->wire_bytes;
	return true;
}

typedef void visitor(struct search *search, uint32_t queue, uint32_t sender, uint64_t amount);

static void visit_queue(struct search *search, uint32_t place, visitor *visit)
{
	const struct fabric *fabric = search->fabric;
	const uint32_t link = link_of(place);
	const struct shard *shard = part_of(fabric, link);
	const struct port *port = fabric->ports[link];
	uint32_t sender;
	uint64_t amount;
	if (fabric->links[link].kind != LINK_PORT || !(port->occupied & 1u << class_of(place)))
		return;
	for (uint32_t i = port->queues[class_of(place)].head; i != NO_PACKET; i = shard->packets[i].next)
		if (find_sender(fabric, &shard->packets[i], &sender, &amount))
			visit(search, place, sender, amount);
}

static void visit_all(struct search *search, visitor *visit)
{
	const struct fabric *fabric = search->fabric;
	for (uint32_t link = 0; link < fabric->network->link_count; link++)
		for (uint8_t class = 0; fabric->ports[link] && fabric->ports[link]->occupied >> class; class ++)
			visit_queue(search, place_of(link, class), visit);
}

static void count_stuck(struct search *search, uint32_t queue, uint32_t sender, uint64_t amount)
{
	(void)queue;
	search->stuck[sender] += amount;
}

static void free_sender(struct search *search, uint32_t queue, uint32_t sender, uint64_t amount)
{
	(void)queue;
	assert(search->stuck[sender] >= amount);
	search->stuck[sender] -= amount;
	if (is_dead(search, sender))
		say_alive(search, sender);
}

/* Blocks on the wire: their credits return if they can leave. */
static bool is_under_way(const struct search *search, uint32_t place)
{
	const struct fabric *fabric = search->fabric;
	const struct port *port = fabric->ports[link_of(place)];
	const struct ingress *ingress = fabric->ingresses[link_of(place)];
	const uint64_t room = ingress->profile->credit_bytes / CREDIT_BLOCK;
	const uint64_t not_back =
		port->queues[class_of(place)].blocks_sent + room - ingress->classes[class_of(place)].blocks_freed;
	return not_back > search->stuck[place];
}

/* Starts with queues that nothing stops, and with classes none of whose packets are at the other end. */
static void find_alive(struct search *search)
{
	const struct fabric *fabric = search->fabric;
	for (uint32_t link = 0; link < fabric->network->link_count; link++)
		for (uint8_t class = 0; fabric->ports[link] && fabric->ports[link]->occupied >> class; class ++) {
			uint32_t place = place_of(link, class);
			if (!is_dead(search, place) || search->stuck[place] == 0 ||
				(fabric->ports[link]->has_credits && is_under_way(search, place)))
				say_alive(search, place);
		}
}

static void find_dead(struct search *search)
{
	visit_all(search, count_stuck);
	assert(search->news_count == 0);
	find_alive(search);
	while (search->news_count > 0)
		visit_queue(search, search->news[--search->news_count], free_sender);
}

/* ---- Cycles ------------------------------------------------------------------------------------------------------ */

static void link_sender(struct search *search, uint32_t queue, uint32_t sender, uint64_t amount)
{
	(void)amount;
	if (is_dead(search, sender))
		search->next[sender] = queue;
}

/* Returns a hash of the cycle's places and of how much has left them. */
static uint64_t take_cycle(struct search *search, uint32_t first)
{
	struct fabric *fabric = search->fabric;
	uint64_t hash = 1;
	uint32_t place = first;
	fabric->cycle_count = 0;
	do {
		const uint32_t link = link_of(place);
		assert(is_dead(search, place));
		fabric->cycle[fabric->cycle_count++] = link;
		hash = fabric_chance(hash, place, fabric->ports[link]->queues[class_of(place)].blocks_sent);
		hash = fabric_chance(hash, link, fabric->counts[link].lost);
		place = search->next[place];
	} while (place != first && fabric->cycle_count < fabric->network->link_count);
	return hash ? hash : 1;
}

/* A dead place waits for another dead place, so following them leads to a cycle. */
static uint64_t follow(struct search *search)
{
	const struct fabric *fabric = search->fabric;
	visit_all(search, link_sender);
	for (uint32_t link = 0; link < fabric->network->link_count; link++) {
		if (!search->dead[link])
			continue;
		uint32_t place = place_of(link, (uint8_t)__builtin_ctz(search->dead[link]));
		while (search->stuck[place]) { /* from here on it says which walk has visited the place */
			search->stuck[place] = 0;
			place = search->next[place];
		}
		return take_cycle(search, place);
	}
	return 0;
}

static bool allocate(struct search *search)
{
	const size_t links = search->fabric->network->link_count, places = links * FABRIC_CLASSES;
	search->stuck = calloc(places, sizeof(*search->stuck));
	search->next = calloc(places, sizeof(*search->next));
	search->news = calloc(places, sizeof(*search->news));
	if (!search->fabric->cycle)
		search->fabric->cycle = calloc(links, sizeof(*search->fabric->cycle));
	return search->stuck && search->next && search->news && search->fabric->cycle;
}

/* A hash of a cycle; 0: there is none, or no memory to search. */
static uint64_t find_cycle(struct fabric *fabric)
{
	struct search search = { .fabric = fabric, .dead = calloc(fabric->network->link_count, 1) };
	uint64_t hash = 0;
	if (search.dead && find_held(&search) && allocate(&search)) {
		find_dead(&search);
		hash = follow(&search);
	}
	free(search.dead);
	free(search.stuck);
	free(search.next);
	free(search.news);
	return hash;
}

bool deadlock_is_found(struct fabric *fabric, vb_time now, bool is_still)
{
	if (!fabric->ports || (!is_still && now < fabric->cycle_sought_at + DEADLOCK_PATIENCE))
		return false;
	uint64_t hash = find_cycle(fabric);
	bool is_found = hash != 0 && (is_still || hash == fabric->cycle_hash);
	fabric->cycle_sought_at = now;
	fabric->cycle_hash = hash;
	assert(!is_found || fabric->cycle_count > 0);
	return is_found;
}
