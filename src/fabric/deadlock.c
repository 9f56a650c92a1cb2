/* See deadlock.h. A class of a port that is stopped waits for what it has sent to leave the switch at the other end. It is
 * alive if some of that is in a class that may leave, or is alive itself; what is left when all that are alive are known
 * waits only for its like. A stopped class of which nothing is at the other end is alive: word is on its way. */
#include <stdlib.h>
#include "fabric/deadlock.h"
#include "fabric/port.h"

#define PATIENCE VB_MS

struct search {
	struct fabric *fabric;
	/* Masks of classes, by link. */
	uint8_t *stopped, *behind, *alive; /* behind: something of it is in the switch at the other end */
};

static const struct part *part_of(const struct fabric *fabric, uint32_t link)
{
	network_node from = fabric->network->links[link].from;
	return &fabric->parts[network_is_switch(from) ? fabric->switches[network_index(from)].part
						      : fabric->endpoints[network_index(from)].part];
}

static void find_stopped(struct search *search, uint32_t link)
{
	const struct port *port = search->fabric->ports[link];
	const struct part *part = part_of(search->fabric, link);
	for (uint8_t class = 0; port->occupied >> class; class++)
		if (port->occupied & 1u << class && port_is_stopped(part, port, class))
			search->stopped[link] |= (uint8_t)(1u << class);
}

/* True: somebody is alive who was not known to be. */
static bool look_at_queue(struct search *search, uint32_t link, uint8_t class)
{
	const struct fabric *fabric = search->fabric;
	const struct part *part = part_of(fabric, link);
	const uint8_t bit = (uint8_t)(1u << class);
	bool leaves = !(search->stopped[link] & bit) || search->alive[link] & bit, is_news = false;
	for (uint32_t index = fabric->ports[link]->queues[class].head; index != NO_PACKET; index = part->packets[index].next) {
		const struct packet *packet = &part->packets[index];
		const struct port *from = fabric->ports[packet->in_link];
		if (!from)
			continue;
		uint8_t its = (uint8_t)(1u << port_class(from, packet));
		search->behind[packet->in_link] |= its;
		is_news |= leaves && !(search->alive[packet->in_link] & its);
		if (leaves)
			search->alive[packet->in_link] |= its;
	}
	return is_news;
}

static bool look_at_all(struct search *search)
{
	const struct fabric *fabric = search->fabric;
	bool is_news = false;
	for (uint32_t link = 0; link < fabric->network->link_count; link++) {
		const struct port *port = fabric->links[link].kind == LINK_PORT ? fabric->ports[link] : NULL;
		for (uint8_t class = 0; port && port->occupied >> class; class++)
			if (port->occupied & 1u << class)
				is_news |= look_at_queue(search, link, class);
	}
	return is_news;
}

/* Whom the class of a dead link waits for: the first such class of the switch at the other end. */
static bool next_dead(const struct search *search, uint32_t *link, uint8_t *class)
{
	const struct fabric *fabric = search->fabric;
	const struct network_switch *at = &fabric->network->switches[fabric->links[*link].to];
	for (uint32_t i = 0; i < at->port_count; i++) {
		uint32_t out = fabric->network->ports[at->first_port + i];
		const struct part *part = part_of(fabric, out);
		const struct port *port = fabric->ports[out];
		for (uint8_t its = 0; port && port->occupied >> its; its++) {
			if (!(port->occupied & 1u << its))
				continue;
			for (uint32_t index = port->queues[its].head; index != NO_PACKET; index = part->packets[index].next) {
				const struct packet *packet = &part->packets[index];
				if (packet->in_link != *link || port_class(fabric->ports[*link], packet) != *class)
					continue;
				*link = out;
				*class = its;
				return true;
			}
		}
	}
	return false;
}

/* Whoever follows waits long enough is in the cycle. Gives a hash of who is in it and of what has left there. */
static uint64_t follow(const struct search *search, uint32_t first, uint8_t class)
{
	struct fabric *fabric = search->fabric;
	uint32_t link = first, count = 0;
	const uint32_t many = fabric->network->link_count * FABRIC_CLASSES;
	for (uint32_t i = 0; i < many; i++)
		if (!next_dead(search, &link, &class))
			return 0;
	const uint32_t begin = link;
	const uint8_t begin_class = class;
	uint64_t hash = 1;
	bool is_watched = false;
	do {
		fabric->cycle[count++] = link;
		hash = fabric_chance(hash, link, fabric->links[link].packets);
		is_watched |= fabric->links[link].kind == LINK_PORT && fabric->ports[link]->profile->watchdog;
		if (!next_dead(search, &link, &class))
			return 0;
	} while ((link != begin || class != begin_class) && count < fabric->network->link_count);
	fabric->cycle_count = count;
	return is_watched ? 0 : hash;
}

/* A hash of a cycle; 0: there is none. */
static uint64_t find_cycle(struct search *search)
{
	const struct fabric *fabric = search->fabric;
	const uint32_t count = fabric->network->link_count;
	bool is_any = false;
	for (uint32_t link = 0; link < count; link++)
		if (fabric->ports[link]) {
			find_stopped(search, link);
			is_any |= search->stopped[link];
		}
	if (!is_any)
		return 0;
	look_at_all(search);
	for (uint32_t link = 0; link < count; link++)
		search->alive[link] |= (uint8_t)~search->behind[link];
	while (look_at_all(search))
		;
	for (uint32_t link = 0; link < count; link++) {
		uint8_t dead = search->stopped[link] & (uint8_t)~search->alive[link];
		if (dead)
			return follow(search, link, (uint8_t)__builtin_ctz(dead));
	}
	return 0;
}

bool deadlock_is_found(struct fabric *fabric, vb_time now, bool is_idle)
{
	const uint32_t count = fabric->network->link_count;
	if (!fabric->ports || (!is_idle && now < fabric->cycle_sought_at + PATIENCE))
		return false;
	fabric->cycle_sought_at = now;
	if (!fabric->cycle)
		fabric->cycle = calloc(count, sizeof(*fabric->cycle));
	uint8_t *masks = calloc(count, 3);
	uint64_t hash = 0;
	if (fabric->cycle && masks) {
		struct search search = { fabric, masks, masks + count, masks + 2 * count };
		hash = find_cycle(&search);
	}
	free(masks);
	bool is_found = hash != 0 && (is_idle || hash == fabric->cycle_hash);
	fabric->cycle_hash = hash;
	return is_found;
}
