/* Links by the names that people give them. */
#include "sim/link_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"

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

static int refuse(char *why, size_t size, const char *what, uint32_t count)
{
	snprintf(why, size, "there are only %u %s, counted from 0", count, what);
	return -EINVAL;
}

static int find_port(
	const struct network *network, uint32_t at, const char *rest, uint32_t *link, char *why, size_t size)
{
	uint32_t port;

	rest = read_pair(rest, "port", &port);
	if (!rest || *rest) {
		snprintf(why, size, "which port of the switch? write \"switch %u port 0\"", at);
		return -EINVAL;
	}
	const struct network_switch *in = &network->switches[at];
	if (port >= in->port_count)
		return refuse(why, size, "ports at this switch", in->port_count);
	*link = network->ports[in->first_port + port];
	return 0;
}

/* Ports of a NIC are those of its switch behind the first, which leads to the endpoint. */
static int find_port_of_nic(
	const struct network *network, uint32_t endpoint, const char *rest, uint32_t *link, char *why, size_t size)
{
	const network_node to = network->links[network->endpoints[endpoint].link].to;
	uint32_t its, port;

	if (!network_is_switch(to) || !network_is_nic(network, network_index(to), &its)) {
		snprintf(why, size, "the NIC has one port: write \"endpoint %u\", or network.nic.ports", endpoint);
		return -EINVAL;
	}
	const struct network_switch *in = &network->switches[network_index(to)];
	rest = read_pair(rest, "port", &port);
	if (!rest || *rest || port >= in->port_count - 1)
		return refuse(why, size, "ports at this NIC", in->port_count - 1);
	*link = network->ports[in->first_port + 1 + port];
	return 0;
}

int link_find(const struct network *network, const char *name, uint32_t *link, char *why, size_t size)
{
	uint32_t number;
	const char *rest = read_pair(name, "endpoint", &number);

	if (rest) {
		if (number >= network->endpoint_count)
			return refuse(why, size, "endpoints", network->endpoint_count);
		*link = network->endpoints[number].link;
		if (strncmp(rest, "port", 4) == 0)
			return find_port_of_nic(network, number, rest, link, why, size);
		if (strcmp(rest, "down") == 0)
			*link = network->links[*link].reverse;
		if (!*rest || strcmp(rest, "up") == 0 || strcmp(rest, "down") == 0)
			return 0;
	}
	rest = read_pair(name, "switch", &number);
	if (rest)
		return number < network->switch_count ? find_port(network, number, rest, link, why, size)
						      : refuse(why, size, "switches", network->switch_count);
	rest = read_pair(name, "link", &number);
	if (rest && !*rest) {
		*link = number;
		return number < network->link_count ? 0 : refuse(why, size, "links", network->link_count);
	}
	snprintf(why, size,
		"'%.*s' is no link; write \"endpoint 3 up\", \"endpoint 3 down\", \"switch 2 port 5\" or \"link 17\"",
		vb_utf8_fitting(name, 60), name);
	return -EINVAL;
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
	uint32_t endpoint;

	if (!network_is_switch(is->from))
		snprintf(text, size, "endpoint %u up", network_index(is->from));
	else if (!network_is_switch(is->to))
		snprintf(text, size, "endpoint %u down", network_index(is->to));
	else if (network_is_nic(network, network_index(is->from), &endpoint))
		snprintf(text, size, "endpoint %u port %u", endpoint, port_of(network, link) - 1);
	else
		snprintf(text, size, "switch %u port %u", network_index(is->from), port_of(network, link));
	return text;
}
