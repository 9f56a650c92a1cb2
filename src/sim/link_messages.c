/* See link_messages.h. */
#include "sim/link_messages.h"

#include <errno.h>
#include <stdlib.h>
#include "net/route.h"

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static uint32_t path_of(const struct link_messages *messages, uint64_t number, uint32_t links[FABRIC_PATH])
{
	const struct simulation *simulation = messages->simulation;
	const struct fabric_message *its = &simulation->result.messages[number];

	if (hosts_host_of(&simulation->hosts, its->src) == hosts_host_of(&simulation->hosts, its->dst))
		return 0;
	return fabric_path(&simulation->config, messages->routes, its, links);
}

/* first[i + 2] counts those of link i; after the sums, first[i + 1] is where its next one is stored. */
static int sort_by_link(struct link_messages *messages)
{
	const uint32_t link_count = messages->simulation->network.link_count;
	const uint64_t count = messages->simulation->result.message_count;
	uint32_t links[FABRIC_PATH];

	for (uint64_t i = 0; i < count; i++)
		for (uint32_t k = path_of(messages, i, links); k-- > 0;)
			messages->first[links[k] + 2]++;
	for (uint32_t i = 2; i < link_count + 2; i++)
		messages->first[i] += messages->first[i - 1];
	messages->of = calloc(messages->first[link_count + 1] + 1, sizeof(*messages->of));
	messages->latest = calloc(messages->first[link_count + 1] + 1, sizeof(*messages->latest));
	if (!messages->of || !messages->latest)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		for (uint32_t k = path_of(messages, i, links); k-- > 0;)
			messages->of[messages->first[links[k] + 1]++] = i;
	return 0;
}

static void find_latest(struct link_messages *messages)
{
	for (uint32_t link = 0; link < messages->simulation->network.link_count; link++) {
		vb_time latest = 0;
		for (uint64_t i = messages->first[link]; i < messages->first[link + 1]; i++) {
			const vb_time end = messages->simulation->result.messages[messages->of[i]].end;
			latest = end > latest ? end : latest;
			messages->latest[i] = latest;
		}
	}
}

int link_messages_open(struct link_messages *messages, const struct simulation *simulation, const struct routes *routes)
{
	*messages = (struct link_messages){ .simulation = simulation,
		.routes = routes,
		.first = calloc((size_t)simulation->network.link_count + 2, sizeof(*messages->first)) };
	int rc = messages->first ? sort_by_link(messages) : -ENOMEM;

	if (rc) {
		link_messages_close(messages);
		return rc;
	}
	find_latest(messages);
	return 0;
}

void link_messages_close(struct link_messages *messages)
{
	free(messages->first);
	free(messages->of);
	free(messages->latest);
	*messages = (struct link_messages){ 0 };
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

/* Messages are sorted by start and source first. The graph is the last job (simulation.h). */
const struct fabric_message *link_messages_find(
	const struct link_messages *messages, uint32_t src, uint64_t tag, vb_time start)
{
	const struct fabric_result *result = &messages->simulation->result;
	const uint32_t graph = messages->simulation->config.job_count - 1;
	uint64_t low = 0, high = result->message_count;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		const struct fabric_message *its = &result->messages[middle];
		if (its->start < start || (its->start == start && its->src < src))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < result->message_count; low++) {
		const struct fabric_message *its = &result->messages[low];
		if (its->start != start || its->src != src)
			break;
		if (its->tag == tag && its->job == graph)
			return its;
	}
	return NULL;
}

/* Of the link's messages the first that may not have ended by then. */
static uint64_t first_after(const struct link_messages *messages, uint32_t link, vb_time from)
{
	uint64_t low = messages->first[link], high = messages->first[link + 1];

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (messages->latest[middle] <= from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t bytes_within(const struct fabric_message *its, vb_time from, vb_time until)
{
	const vb_time first = its->start > from ? its->start : from, last = its->end < until ? its->end : until;

	if (last <= first)
		return 0;
	return (uint64_t)((double)its->bytes * (double)(last - first) / (double)(its->end - its->start));
}

struct link_user link_messages_most(const struct link_messages *messages, uint32_t link,
	const struct fabric_message *beside, vb_time from, vb_time until, uint64_t *bytes_of)
{
	const struct fabric_message *all = messages->simulation->result.messages;
	const uint64_t begin = first_after(messages, link, from);
	struct link_user most = { 0 };
	uint64_t end = begin;

	for (; end < messages->first[link + 1] && all[messages->of[end]].start < until; end++) {
		const struct fabric_message *its = &all[messages->of[end]];
		if (its != beside)
			bytes_of[its->src] += bytes_within(its, from, until);
	}
	for (uint64_t i = begin; i < end; i++) {
		const uint32_t rank = all[messages->of[i]].src;
		if (bytes_of[rank] > most.bytes || (bytes_of[rank] == most.bytes && rank < most.rank && most.bytes))
			most = (struct link_user){ rank, bytes_of[rank] };
	}
	for (uint64_t i = begin; i < end; i++)
		bytes_of[all[messages->of[i]].src] = 0;
	return most;
}
