/* See result.h. */
#include "fabric/result.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "fabric/port.h"
#include "fabric/series.h"
#include "fabric/stories.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return fabric_chance(hash, value, 0);
}

static uint64_t hash_of(const struct fabric_result *result, uint32_t flows, uint32_t links)
{
	uint64_t hash = mix(mix(0, (uint64_t)result->end), flows);
	for (uint32_t i = 0; i < flows; i++)
		hash = mix(mix(mix(hash, (uint64_t)result->flows[i].start), (uint64_t)result->flows[i].fct),
			result->flows[i].error);
	for (uint32_t i = 0; i < links; i++) {
		const struct fabric_link_counts *counts = &result->links[i];
		hash = mix(mix(mix(hash, counts->packets), counts->bytes), counts->drops);
		hash = mix(mix(mix(hash, counts->marks), counts->lost), counts->pauses);
	}
	return hash;
}

static void say_links(struct fabric *fabric, vb_time now)
{
	for (uint32_t i = 0; i < fabric->network->link_count; i++) {
		const struct link *link = &fabric->links[i];
		fabric->counts[i].packets = link->packets;
		fabric->counts[i].bytes = link->bytes;
		if (link->kind == LINK_PLAIN)
			fabric->counts[i].most_queued = (uint64_t)link->most_queued * 1024 *
							(network_rate(fabric->network, i) / 1000000) / 8000000;
		else if (fabric->ports && fabric->ports[i])
			port_say(fabric, i, now);
	}
}

static bool is_before(const struct fabric_failure *one, const struct fabric_failure *other)
{
	if (one->at != other->at)
		return one->at < other->at;
	return one->src != other->src ? one->src < other->src : one->dst < other->dst;
}

/* Those of all shards, sorted in. */
static void say_failures(const struct fabric *fabric, struct fabric_result *result)
{
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		for (uint32_t k = 0; k < fabric->shards[i].failure_count; k++) {
			const struct fabric_failure *its = &fabric->shards[i].failures[k];
			uint32_t at = result->failure_count;
			while (at > 0 && is_before(its, &result->failures[at - 1]))
				at--;
			if (at == FABRIC_FAILURES)
				continue;
			result->failure_count += result->failure_count < FABRIC_FAILURES;
			for (uint32_t to = result->failure_count - 1; to > at; to--)
				result->failures[to] = result->failures[to - 1];
			result->failures[at] = *its;
		}
}

static int by_number(uint64_t one, uint64_t other)
{
	return one < other ? -1 : one > other;
}

/* Only messages that are the same in all that is told compare as equal: qsort may put equal ones in any order. */
static int by_start(const void *a, const void *b)
{
	const struct fabric_message *one = a, *other = b;
	const uint64_t pairs[][2] = {
		{ (uint64_t)one->start, (uint64_t)other->start },
		{ one->src, other->src },
		{ one->job, other->job },
		{ one->tag, other->tag },
		{ one->dst, other->dst },
		{ (uint64_t)one->end, (uint64_t)other->end },
		{ one->bytes, other->bytes },
		{ one->error, other->error },
		{ one->cause, other->cause },
	};
	int order = 0;
	for (size_t i = 0; order == 0 && i < sizeof(pairs) / sizeof(pairs[0]); i++)
		order = by_number(pairs[i][0], pairs[i][1]);
	return order;
}

static int say_job_ends(const struct fabric *fabric, struct fabric_result *result)
{
	result->job_ends = calloc(fabric->config->job_count + 1, sizeof(*result->job_ends));
	if (!result->job_ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		for (uint32_t job = 0; job < fabric->config->job_count; job++) {
			const vb_time its = fabric->shards[i].job_ends[job + fabric->has_list];
			if (result->job_ends[job] < its)
				result->job_ends[job] = its;
		}
	return 0;
}

static int say_messages(const struct fabric *fabric, struct fabric_result *result)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		count += fabric->shards[i].message_count;
	if (!fabric->config->tells_messages)
		return 0;
	result->messages = calloc(count + 1, sizeof(*result->messages));
	if (!result->messages)
		return -ENOMEM;
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		const struct shard *shard = &fabric->shards[i];
		if (shard->message_count)
			memcpy(result->messages + result->message_count, shard->messages,
				shard->message_count * sizeof(*shard->messages));
		result->message_count += shard->message_count;
	}
	qsort(result->messages, count, sizeof(*result->messages), by_start);
	return 0;
}

static void say(struct fabric *fabric, struct fabric_result *result)
{
	const uint32_t flows = fabric->config->flows->count, links = fabric->network->link_count;
	uint64_t jobs_hash = 0;
	say_links(fabric, result->ended_at);
	if (result->end == FABRIC_DEADLOCK) {
		result->cycle = fabric->cycle;
		result->cycle_count = fabric->cycle_count;
		fabric->cycle = NULL;
	}
	result->links = fabric->counts;
	fabric->counts = NULL;
	result->out_of_numbers = NETWORK_NONE;
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		const struct shard *shard = &fabric->shards[i];
		result->events += shard->event_count;
		result->packet_hops += shard->packet_hops;
		result->data_packets += shard->data_packets;
		result->acks += shard->acks;
		result->drops += shard->drops;
		result->lossless_drops += shard->lossless_drops;
		result->lost += shard->lost;
		result->payload_bytes += shard->payload_bytes;
		result->scale_up_bytes += shard->scale_up_bytes;
		result->flows_done += shard->flows_done;
		result->flows_failed += shard->flows_failed;
		if (shard->last_flow > result->last_flow)
			result->last_flow = shard->last_flow;
		if (shard->is_out_of_numbers && shard->out_of_numbers < result->out_of_numbers)
			result->out_of_numbers = shard->out_of_numbers;
		jobs_hash += shard->job_hash;
	}
	for (uint32_t i = 0; i < links; i++) {
		result->marked_packets += result->links[i].marks;
		result->pauses += result->links[i].pauses;
		result->trims += result->links[i].trims;
	}
	endpoints_say(fabric, result);
	result->threads = fabric->shard_count;
	assert(result->flows_done <= fabric->operations);
	assert(result->flows_failed <= result->flows_done);
	result->operations = fabric->operations;
	say_failures(fabric, result);
	result->hash = hash_of(result, flows, links);
	if (fabric->config->job_count)
		result->hash = mix(result->hash, jobs_hash);
}

int result_say(struct fabric *fabric, struct fabric_result *result)
{
	say(fabric, result);
	int rc = stories_say(fabric, result);
	if (rc == 0)
		rc = series_say(fabric, result);
	if (rc == 0)
		rc = say_job_ends(fabric, result);
	return rc ? rc : say_messages(fabric, result);
}

void fabric_result_free(struct fabric_result *result)
{
	free(result->flows);
	free(result->messages);
	free(result->job_ends);
	free(result->links);
	free(result->cycle);
	for (uint32_t i = 0; result->samples && i < result->sampled_links; i++)
		free(result->samples[i]);
	free(result->samples);
	for (uint32_t i = 0; i < result->pauses_told_count; i++)
		free(result->pauses_told[i].causes);
	free(result->pauses_told);
	*result = (struct fabric_result){ 0 };
}
