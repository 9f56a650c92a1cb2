/* Links by the names that people give them. */
#include "sim/link_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/utf8.h"

/* Ends of links whose numbers begin from 0: those of the back end, or of a front end. */
struct plane {
	const char *prefix;
	uint32_t first_endpoint, endpoints; /* without storage nodes */
	uint32_t first_switch, switches;
};

static struct plane back_of(const struct network *network)
{
	return (struct plane){ "", 0, network_back_endpoints(network), 0, network_back_switches(network) };
}

static struct plane front_of(const struct network *network)
{
	return (struct plane){ "front ", network_back_endpoints(network),
		network->front_endpoint_count - network->storage_count, network_back_switches(network),
		network->front_switch_count };
}

static uint32_t first_storage(const struct network *network)
{
	return network->endpoint_count - network->storage_count;
}

/* ---- Names to links ---------------------------------------------------------------------------------------------- */

/* "WORD NUMBER": the rest of the text, or NULL. */
static const char *read_pair(const char *text, const char *word, uint32_t *number)
{
	char *end;
	size_t length = strlen(word);

	while (*text == ' ')
		text++;
	if (strncmp(text, word, length) != 0 || text[length] != ' ' || strspn(text + length, " 0123456789") == 1)
		return NULL;
	unsigned long value = strtoul(text + length, &end, 10);
	*number = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	while (*end == ' ')
		end++;
	return end;
}

static int refuse(char *why, size_t size, const char *prefix, const char *what, uint32_t count)
{
	snprintf(why, size, "there are only %u %s%s, counted from 0", count, prefix, what);
	return -EINVAL;
}

static int find_port(const struct network *network, const struct plane *plane, uint32_t at, const char *rest,
	uint32_t *link, char *why, size_t size)
{
	uint32_t port;

	if (at >= plane->switches)
		return refuse(why, size, plane->prefix, "switches", plane->switches);
	rest = read_pair(rest, "port", &port);
	if (!rest || *rest) {
		snprintf(why, size, "which port of the switch? write \"%sswitch %u port 0\"", plane->prefix, at);
		return -EINVAL;
	}
	const struct network_switch *in = &network->switches[plane->first_switch + at];
	if (port >= in->port_count)
		return refuse(why, size, "", "ports at this switch", in->port_count);
	*link = network->ports[in->first_port + port];
	return 0;
}

/* Ports of a NIC are those of its switch behind the first, which leads to the endpoint. */
static int find_port_of_nic(
	const struct network *network, uint32_t endpoint, const char *rest, uint32_t *link, char *why, size_t size)
{
	const network_node to = network->links[network->endpoints[endpoint].link].to;
	uint32_t its, port;
	char name[32];

	if (!network_is_switch(to) || !network_is_nic(network, network_index(to), &its)) {
		snprintf(why, size, "the NIC has one port: write \"%s\"%s",
			node_text(network, endpoint, name, sizeof(name)),
			endpoint < network_back_endpoints(network) ? ", or network.nic.ports" : "");
		return -EINVAL;
	}
	const struct network_switch *in = &network->switches[network_index(to)];
	rest = read_pair(rest, "port", &port);
	if (!rest || *rest || port >= in->port_count - 1)
		return refuse(why, size, "", "ports at this NIC", in->port_count - 1);
	*link = network->ports[in->first_port + 1 + port];
	return 0;
}

static int refuse_name(const char *name, char *why, size_t size)
{
	snprintf(why, size,
		"'%.*s' is no link; write \"endpoint 3 up\", \"endpoint 3 down\", \"switch 2 port 5\" or \"link 17\"",
		vb_utf8_fitting(name, 60), name);
	return -EINVAL;
}

/* The text behind the endpoint's name says which of its links. */
static int find_of_endpoint(const struct network *network, const char *name, uint32_t endpoint, const char *rest,
	uint32_t *link, char *why, size_t size)
{
	if (strncmp(rest, "port", 4) == 0)
		return find_port_of_nic(network, endpoint, rest, link, why, size);
	*link = network->endpoints[endpoint].link;
	if (strcmp(rest, "down") == 0)
		*link = network->links[*link].reverse;
	return !*rest || strcmp(rest, "up") == 0 || strcmp(rest, "down") == 0 ? 0 : refuse_name(name, why, size);
}

static int find_in_plane(const struct network *network, const struct plane *plane, const char *name, const char *text,
	uint32_t *link, char *why, size_t size)
{
	uint32_t number;
	const char *rest = read_pair(text, "endpoint", &number);

	if (rest && number >= plane->endpoints)
		return refuse(why, size, plane->prefix, "endpoints", plane->endpoints);
	if (rest)
		return find_of_endpoint(network, name, plane->first_endpoint + number, rest, link, why, size);
	rest = read_pair(text, "switch", &number);
	return rest ? find_port(network, plane, number, rest, link, why, size) : refuse_name(name, why, size);
}

int link_find(const struct network *network, const char *name, uint32_t *link, char *why, size_t size)
{
	const char *text = name + strspn(name, " ");
	const bool is_front = strncmp(text, "front ", 6) == 0;
	const struct plane plane = is_front ? front_of(network) : back_of(network);
	uint32_t number;
	const char *rest = read_pair(text, "storage", &number);

	if ((is_front || rest) && !network->storage_count) {
		snprintf(why, size, "the network has no front end: write hosts.front-end.storage, or another link");
		return -EINVAL;
	}
	if (rest && number >= network->storage_count)
		return refuse(why, size, "", "storage nodes", network->storage_count);
	if (rest)
		return find_of_endpoint(network, name, first_storage(network) + number, rest, link, why, size);
	rest = read_pair(text, "link", &number);
	if (rest && !*rest) {
		*link = number;
		return number < network->link_count ? 0 : refuse(why, size, "", "links", network->link_count);
	}
	return find_in_plane(network, &plane, name, is_front ? text + 6 : text, link, why, size);
}

/* ---- Links to names ---------------------------------------------------------------------------------------------- */

const char *node_text(const struct network *network, network_node node, char *text, size_t size)
{
	const uint32_t number = network_index(node);
	const bool is_switch = network_is_switch(node);
	const uint32_t of_back = is_switch ? network_back_switches(network) : network_back_endpoints(network);
	const bool is_front = number >= of_back;

	assert(number < (is_switch ? network->switch_count : network->endpoint_count));
	if (!is_switch && network->storage_count && number >= first_storage(network))
		snprintf(text, size, "storage %u", number - first_storage(network));
	else
		snprintf(text, size, "%s%s %u", is_front ? "front " : "", is_switch ? "switch" : "endpoint",
			is_front ? number - of_back : number);
	return text;
}

static uint32_t port_of(const struct network *network, uint32_t link)
{
	const struct network_switch *at = &network->switches[network_index(network->links[link].from)];

	for (uint32_t port = 0; port < at->port_count; port++)
		if (network->ports[at->first_port + port] == link)
			return port;
	return NETWORK_NONE;
}

const char *link_text(const struct network *network, uint32_t link, char *text, size_t size)
{
	const struct network_link *is = &network->links[link];
	char name[32];
	uint32_t endpoint;

	if (!network_is_switch(is->from))
		snprintf(text, size, "%s up", node_text(network, is->from, name, sizeof(name)));
	else if (!network_is_switch(is->to))
		snprintf(text, size, "%s down", node_text(network, is->to, name, sizeof(name)));
	else if (network_is_nic(network, network_index(is->from), &endpoint))
		snprintf(text, size, "endpoint %u port %u", endpoint, port_of(network, link) - 1);
	else
		snprintf(text, size, "%s port %u", node_text(network, is->from, name, sizeof(name)),
			port_of(network, link));
	return text;
}
