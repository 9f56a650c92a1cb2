/* See stories.h. Runs that ask for stories pay for them: each pause costs a walk through all queues of the switch. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/pfc.h"
#include "fabric/port.h"
#include "fabric/stories.h"

enum { FLOWS = 256 }; /* that are distinguished when a link is first paused */

int stories_open(struct fabric *fabric, struct ingress *ingress, uint32_t link)
{
	if (!fabric->config->tells_pauses || ingress->profile->flow_control != FLOW_PFC)
		return 0;
	ingress->stories = calloc(ingress->profile->class_count, sizeof(*ingress->stories));
	for (uint32_t i = 0; ingress->stories && i < ingress->profile->class_count; i++)
		ingress->stories[i] = (struct story){ .told = { .link = link, .of_class = (uint8_t)i } };
	return ingress->stories ? 0 : -ENOMEM;
}

void stories_close(struct ingress *ingress)
{
	for (uint32_t i = 0; ingress->stories && i < ingress->profile->class_count; i++)
		free(ingress->stories[i].told.causes);
	free(ingress->stories);
}

static struct fabric_pause_moment moment_of(const struct shard *shard, const struct ingress *ingress, uint8_t class)
{
	const struct fabric *fabric = shard->fabric;
	const struct buffer *buffer = &fabric->buffers[ingress->at_switch];
	uint64_t threshold = buffer_threshold(fabric, ingress, class);
	return (struct fabric_pause_moment){ .at = shard->now,
		.bytes = ingress->classes[class].bytes + ingress->classes[class].headroom,
		.threshold = threshold == UINT64_MAX ? UINT64_MAX : threshold + ingress->profile->reserved_bytes,
		.used = buffer->used,
		.shared = buffer->shared };
}

static bool is_nearer(const struct fabric_pause_moment *a, const struct fabric_pause_moment *b)
{
	return !b->threshold || (unsigned __int128)a->bytes * b->threshold > (unsigned __int128)b->bytes * a->threshold;
}

/* ---- What is queued ---------------------------------------------------------------------------------------------- */

struct tally {
	struct fabric_pause_flow flows[FLOWS];
	uint32_t count;
};

static void tally_packet(struct tally *tally, const struct packet *packet)
{
	uint32_t i = 0;
	while (i < tally->count && (tally->flows[i].src != packet->src || tally->flows[i].dst != packet->dst))
		i++;
	if (i == FLOWS)
		return;
	if (i == tally->count)
		tally->flows[tally->count++] = (struct fabric_pause_flow){ packet->src, packet->dst, 0 };
	tally->flows[i].bytes += packet->wire_bytes;
}

/* The bytes that came by a link, in one queue of the switch. */
static uint64_t bytes_in(
	const struct shard *shard, uint32_t out_link, uint32_t in_link, uint8_t class, struct tally *tally)
{
	const struct port *port = shard->fabric->ports[out_link];
	uint64_t bytes = 0;
	if (!port || !(port->occupied & 1u << class))
		return 0;
	for (uint32_t i = port->queues[class].head; i != NO_PACKET; i = shard->packets[i].next) {
		const struct packet *packet = &shard->packets[i];
		if (packet->in_link != in_link)
			continue;
		bytes += packet->wire_bytes;
		if (tally)
			tally_packet(tally, packet);
	}
	return bytes;
}

/* Most bytes first; of equals the one that came first. */
static void keep_queue(struct fabric_pauses *told, struct fabric_pause_queue queue)
{
	uint32_t at = told->queue_count;
	while (at > 0 && told->queues[at - 1].bytes < queue.bytes)
		at--;
	if (at == FABRIC_PAUSE_MOST)
		return;
	told->queue_count += told->queue_count < FABRIC_PAUSE_MOST;
	for (uint32_t i = told->queue_count - 1; i > at; i--)
		told->queues[i] = told->queues[i - 1];
	told->queues[at] = queue;
	assert(told->queue_count <= FABRIC_PAUSE_MOST);
}

static void keep_flow(struct fabric_pauses *told, struct fabric_pause_flow flow)
{
	uint32_t kept = told->flow_count < FABRIC_PAUSE_MOST ? told->flow_count : FABRIC_PAUSE_MOST, at = kept;
	told->flow_count++;
	while (at > 0 && told->flows[at - 1].bytes < flow.bytes)
		at--;
	if (at == FABRIC_PAUSE_MOST)
		return;
	for (uint32_t i = kept < FABRIC_PAUSE_MOST ? kept : FABRIC_PAUSE_MOST - 1; i > at; i--)
		told->flows[i] = told->flows[i - 1];
	told->flows[at] = flow;
}

static void add_cause(struct shard *shard, struct story *story, uint32_t out_link, bool is_stopped)
{
	struct fabric_pauses *told = &story->told;
	for (uint32_t i = 0; i < told->cause_count; i++)
		if (told->causes[i].link == out_link && told->causes[i].is_stopped == is_stopped) {
			told->causes[i].count++;
			return;
		}
	if (told->cause_count == story->cause_room) {
		uint32_t room = story->cause_room ? 2 * story->cause_room : 4;
		struct fabric_pause_cause *grown = realloc(told->causes, room * sizeof(*grown));
		if (!grown) {
			shard->is_out_of_memory = true;
			return;
		}
		told->causes = grown;
		story->cause_room = room;
	}
	told->causes[told->cause_count++] = (struct fabric_pause_cause){ out_link, 1, is_stopped };
}

/* Which queue holds most of the bytes, and whether it is paused itself; at the first pause also which flows they are
 * of. */
static void look_at_queues(struct shard *shard, struct story *story, const struct ingress *ingress, uint32_t in_link)
{
	const struct network *network = shard->fabric->network;
	const struct network_switch *its = &network->switches[ingress->at_switch];
	const uint8_t class = story->told.of_class;
	struct tally tally = { .count = 0 };
	struct fabric_pause_queue most = { .link = NETWORK_NONE };
	for (uint32_t i = 0; i < its->port_count; i++) {
		uint32_t out = network->ports[its->first_port + i];
		uint64_t bytes = bytes_in(shard, out, in_link, class, story->told.count ? NULL : &tally);
		if (bytes == 0)
			continue;
		struct fabric_pause_queue queue = { out, bytes, shard->fabric->ports[out]->paused >> class & 1 };
		if (!story->told.count)
			keep_queue(&story->told, queue);
		if (bytes > most.bytes)
			most = queue;
	}
	for (uint32_t i = 0; i < tally.count; i++)
		keep_flow(&story->told, tally.flows[i]);
	if (most.link != NETWORK_NONE)
		add_cause(shard, story, most.link, most.is_stopped);
}

/* ---- What happens ------------------------------------------------------------------------------------------------ */

static bool is_open(const struct story *story)
{
	return story->told.until < story->began;
}

void story_on_queued(struct shard *shard, uint32_t in_link, uint8_t class)
{
	const struct ingress *ingress = shard->fabric->ingresses[in_link];
	if (!ingress || !ingress->stories || !pfc_is_lossless(ingress->profile, class))
		return;
	struct story *story = &ingress->stories[class];
	const struct fabric_pause_moment now = moment_of(shard, ingress, class);
	if (is_nearer(&now, &story->told.nearest))
		story->told.nearest = now;
	if (!(ingress->paused & 1u << class) || is_open(story))
		return;
	look_at_queues(shard, story, ingress, in_link);
	if (story->told.count++ == 0)
		story->told.first = now;
	story->began = shard->now;
	story->told.until = shard->now - 1;
}

static void end(struct story *story, vb_time now)
{
	assert(story->began <= now);
	vb_time lasted = now - story->began;
	story->told.lasted += lasted;
	if (lasted > story->told.longest)
		story->told.longest = lasted;
	story->told.until = now;
}

void story_on_resume(struct shard *shard, struct ingress *ingress, uint8_t class)
{
	if (ingress->stories)
		end(&ingress->stories[class], shard->now);
}

/* ---- The result -------------------------------------------------------------------------------------------------- */

static bool has_something(const struct ingress *ingress, uint32_t class)
{
	return ingress && ingress->stories && ingress->stories[class].told.nearest.bytes;
}

static uint32_t count_stories(const struct fabric *fabric)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < fabric->network->link_count; i++)
		for (uint32_t class = 0; class < FABRIC_CLASSES; class ++)
			count += fabric->ingresses[i] && class < fabric->ingresses[i]->profile->class_count &&
				 has_something(fabric->ingresses[i], class);
	return count;
}

int stories_say(struct fabric *fabric, struct fabric_result *result)
{
	if (!fabric->config->tells_pauses || !fabric->ingresses)
		return 0;
	result->pauses_told = calloc(count_stories(fabric) + 1, sizeof(*result->pauses_told));
	if (!result->pauses_told)
		return -ENOMEM;
	for (uint32_t i = 0; i < fabric->network->link_count; i++) {
		struct ingress *ingress = fabric->ingresses[i];
		for (uint32_t class = 0; ingress && class < ingress->profile->class_count; class ++) {
			if (!has_something(ingress, class))
				continue;
			struct story *story = &ingress->stories[class];
			if (is_open(story))
				end(story, result->ended_at);
			result->pauses_told[result->pauses_told_count++] = story->told;
			story->told.causes = NULL; /* the result owns them */
		}
	}
	return 0;
}
