/* See flow_ports.h. */
#include "fabric/flow_ports.h"
#include <errno.h>
#include <stdlib.h>
#include "base/random.h"
#include "fabric/qp_numbers.h"

struct numbers {
	uint16_t next;          /* number of a connection */
	struct number_map used; /* by peer: a bit for each place that is taken */
};

struct flow_ports {
	const struct fabric *fabric;
	struct qp_plane back, front; /* sources 0: there is a list alone */
	struct numbers *of;
	uint16_t *listed; /* by flow of the list */
};

/* Where lanes give numbers themselves, they begin with one by chance, and leave out those that are reserved. */
static uint16_t first_number(const struct fabric *fabric, uint32_t endpoint)
{
	struct vb_random random;
	vb_random_seed(&random, fabric_chance(fabric->config->seed, endpoint, 2));
	return (uint16_t)vb_random_below(&random, 1 << 15);
}

static uint16_t next_listed(struct flow_ports *ports, uint32_t endpoint)
{
	struct numbers *its = &ports->of[endpoint];
	if (ports->back.sources)
		return (uint16_t)(CONNECTIONS_FIRST_LISTED + its->next++);
	while (its->next < CONNECTIONS_FIRST_LISTED || its->next == UINT16_MAX)
		its->next++;
	return its->next++;
}

static void number_list(struct flow_ports *ports)
{
	const struct flow_list *list = ports->fabric->config->flows;
	for (uint32_t i = 0; i < ports->fabric->network->endpoint_count && ports->back.sources == 0; i++)
		ports->of[i].next = first_number(ports->fabric, i);
	for (uint32_t i = 0; i < list->count; i++) {
		const uint16_t requester = next_listed(ports, list->flows[i].src);
		ports->listed[i] = qp_port(requester, next_listed(ports, list->flows[i].dst));
	}
}

struct flow_ports *flow_ports_open(const struct fabric *fabric)
{
	struct flow_ports *ports = calloc(1, sizeof(*ports));
	if (!ports)
		return NULL;
	*ports = (struct flow_ports){ .fabric = fabric,
		.of = calloc(fabric->network->endpoint_count + 1, sizeof(*ports->of)),
		.listed = calloc((size_t)fabric->config->flows->count + 1, sizeof(*ports->listed)) };
	if (fabric->config->job_count) {
		ports->back = qp_back_plane(fabric->network);
		ports->front = qp_front_plane(fabric->network);
	}
	if (ports->of && ports->listed) {
		number_list(ports);
		return ports;
	}
	flow_ports_close(ports);
	return NULL;
}

void flow_ports_close(struct flow_ports *ports)
{
	if (!ports)
		return;
	for (uint32_t i = 0; ports->of && i < ports->fabric->network->endpoint_count; i++)
		number_map_free(&ports->of[i].used);
	free(ports->of);
	free(ports->listed);
	free(ports);
}

int flow_ports_take(struct flow_ports *ports, const struct flow_state *flow, struct flow_port *port)
{
	const struct qp_plane *plane =
		flow->src < network_back_endpoints(ports->fabric->network) ? &ports->back : &ports->front;
	struct numbers *its = &ports->of[flow->src];
	port->place = CONNECTIONS_NO_PLACE;
	port->port = flow->entropy;
	if (ports->fabric->config->endpoint != FABRIC_ENGINE)
		return 0;
	if (ports->fabric->has_list && flow->job == 0) {
		port->port = ports->listed[flow->tag];
		return 0;
	}
	uint32_t *used = number_map_make(&its->used, flow->dst);
	if (!used)
		return -ENOMEM;
	const uint32_t requester =
		qp_index_of_turn(plane->sources, CONNECTIONS_FIRST_REQUESTER, its->next++ % CONNECTION_TURNS);
	port->place = (uint8_t)qp_take_place(plane->sources, used);
	port->port = qp_port(requester, port->place == CONNECTIONS_NO_PLACE
						? qp_responder_without_place(requester)
						: qp_responder_index(plane, flow->src, port->place));
	return 0;
}

void flow_ports_give_back(struct flow_ports *ports, const struct flow_state *flow, struct flow_port port)
{
	struct number_map *map = &ports->of[flow->src].used;
	uint32_t *used = port.place == CONNECTIONS_NO_PLACE ? NULL : number_map_find(map, flow->dst);
	if (!used)
		return;
	*used &= ~(1u << port.place);
	if (*used == 0)
		number_map_remove(map, flow->dst);
}
