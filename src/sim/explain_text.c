/* Why PAUSE did or did not fire, for people. */
#include <inttypes.h>
#include "fabric/thresholds.h"
#include "sim/explain.h"
#include "sim/link_name.h"

const char *endpoints_text(const bool *are_in, uint32_t count, char *text, size_t size)
{
	size_t used = 0;

	*text = 0;
	for (uint32_t first = 0, last; first < count && used + 1 < size; first = last + 1) {
		last = first;
		if (!are_in[first])
			continue;
		while (last + 1 < count && are_in[last + 1])
			last++;
		int length = first == last ? snprintf(text + used, size - used, "%s%" PRIu32, used ? ", " : "", first)
					   : snprintf(text + used, size - used, "%s%" PRIu32 "-%" PRIu32,
						     used ? ", " : "", first, last);
		if (used + (size_t)length >= size) { /* the last one that fits is whole */
			snprintf(text + used, size - used, "%s", size - used > 4 ? "..." : "");
			break;
		}
		used += (size_t)length;
	}
	return text;
}

static const char *bytes(uint64_t value, char text[static 32])
{
	if (value == UINT64_MAX)
		return "unbounded";
	return value_bytes_text(value, text, 32);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((100 * part + whole / 2) / whole) : 0;
}

static void put_moment(FILE *out, const struct simulation *simulation, const struct fabric_pauses *told,
	const struct fabric_pause_moment *moment)
{
	char at[32], has[32], most[32], used[32], shared[32], name[32];

	fprintf(out, "at %s %s from this link were queued in %s, threshold %s",
		value_time_text(moment->at, at, sizeof(at)), bytes(moment->bytes, has),
		node_text(&simulation->network, simulation->network.links[told->link].to, name, sizeof(name)),
		bytes(moment->threshold, most));
	if (moment->shared != UINT64_MAX)
		fprintf(out, " (%s of the shared %s were in use)", bytes(moment->used, used),
			bytes(moment->shared, shared));
	fputc('\n', out);
}

static void put_queues(FILE *out, const struct simulation *simulation, const struct fabric_pauses *told)
{
	char name[64];
	uint64_t whole = told->first.bytes;

	fprintf(out, "   they waited for");
	for (uint32_t i = 0; i < told->queue_count; i++)
		fprintf(out, "%s %s (%u%%%s)", i ? "," : "",
			link_text(&simulation->network, told->queues[i].link, name, sizeof(name)),
			percent(told->queues[i].bytes, whole),
			told->queues[i].is_stopped ? ", which was paused itself" : "");
	fprintf(out, "\n   traffic of");
	for (uint32_t i = 0; i < told->flow_count && i < FABRIC_PAUSE_MOST; i++)
		fprintf(out, "%s %" PRIu32 " -> %" PRIu32 " (%u%%)", i ? "," : "", told->flows[i].src,
			told->flows[i].dst, percent(told->flows[i].bytes, whole));
	if (told->flow_count > FABRIC_PAUSE_MOST)
		fprintf(out, " and %" PRIu32 " more", told->flow_count - FABRIC_PAUSE_MOST);
	fputc('\n', out);
}

/* Whether marks came before pauses there, and any congestion control used them. */
static void put_marks(FILE *out, const struct simulation *simulation, uint32_t link, uint32_t class)
{
	const struct switch_profile *profile =
		network_profile(&simulation->network, simulation->network.links[link].from);
	uint64_t pause = threshold_pause(&simulation->config, link, class, false);
	uint64_t min = threshold_mark_min(&simulation->network, link, class);
	char marks[32], paused[32];

	if (!profile->classes[class].mark_max) {
		fprintf(out, "no marks are made there\n");
		return;
	}
	fprintf(out, "marks begin there at %s, ", bytes(min, marks));
	if (pause != UINT64_MAX)
		fprintf(out, "pauses at %s when nothing else is queued, ", bytes(pause, paused));
	fprintf(out, "and %" PRIu64 " packets were marked%s\n", simulation->result.links[link].marks,
		simulation_heeds_marks(simulation) ? "" : ", but the congestion control ignores marks");
}

static void put_root(FILE *out, const struct simulation *simulation, const struct explained *explained)
{
	char name[64];

	if (explained->root == NETWORK_NONE) {
		fprintf(out, "   each queue was paused itself: pauses wait for each other in a ring\n");
		return;
	}
	fprintf(out, "   it began in the queue before %s: ",
		link_text(&simulation->network, explained->root, name, sizeof(name)));
	put_marks(out, simulation, explained->root, explained->told->of_class);
}

static void put_endpoints(FILE *out, const char *whose, const bool *are_in, uint32_t count)
{
	char list[200];

	endpoints_text(are_in, count, list, sizeof(list));
	if (*list)
		fprintf(out, "%s %s", whose, list);
}

static void put_stopped(FILE *out, const struct simulation *simulation, const struct explained *explained)
{
	const struct network *network = &simulation->network;
	const uint32_t of_back = network_back_endpoints(network);
	const uint32_t of_front = network->front_endpoint_count - network->storage_count;
	const bool *are_stopped = explained->are_stopped;

	if (!explained->stopped_count) {
		fprintf(out, "   it stopped no endpoint\n");
		return;
	}
	fprintf(out, "   in the end it stopped %" PRIu32 " endpoint%s:", explained->stopped_count,
		explained->stopped_count == 1 ? "" : "s");
	put_endpoints(out, "", are_stopped, of_back);
	put_endpoints(out, " front", are_stopped + of_back, of_front);
	put_endpoints(out, " storage", are_stopped + of_back + of_front, network->storage_count);
	if (explained->victim_count)
		fprintf(out, "\n   VICTIMS: %" PRIu32 " of their flows do not go there:", explained->victim_count);
	for (uint32_t i = 0; i < explained->victim_count && i < EXPLAIN_VICTIMS; i++) {
		const struct flow *flow = &simulation->flows.flows[explained->victims[i]];
		fprintf(out, "%s %" PRIu32 " -> %" PRIu32, i ? "," : "", flow->src, flow->dst);
	}
	fputs(explained->victim_count > EXPLAIN_VICTIMS ? ", ...\n" : "\n", out);
}

static void put_explained(
	FILE *out, const struct simulation *simulation, const struct explained *explained, unsigned number)
{
	const struct fabric_pauses *told = explained->told;
	char name[64], lasted[32], longest[32];

	fprintf(out, "%u. %s, class %u: paused %" PRIu32 " time%s, for %s in total, at most %s at a time\n   first ",
		number, link_text(&simulation->network, told->link, name, sizeof(name)), told->of_class, told->count,
		told->count == 1 ? "" : "s", value_time_text(told->lasted, lasted, sizeof(lasted)),
		value_time_text(told->longest, longest, sizeof(longest)));
	put_moment(out, simulation, told, &told->first);
	put_queues(out, simulation, told);
	put_root(out, simulation, explained);
	put_stopped(out, simulation, explained);
}

static void put_why_not(FILE *out, const struct explanation *explanation, const struct simulation *simulation)
{
	const struct fabric_pauses *told = explanation->nearest;
	const struct fabric_result *result = &simulation->result;
	char name[64], queued[32];

	if (explanation->off) {
		fprintf(out, "PFC is off: %s\n", explanation->off);
		return;
	}
	if (!told) {
		fprintf(out, "no packet arrived in a lossless class of a switch that pauses\n");
		return;
	}
	fprintf(out, "nearest to a pause was %s, class %u, at %u%% of its threshold:\n   ",
		link_text(&simulation->network, told->link, name, sizeof(name)), told->of_class,
		percent(told->nearest.bytes, told->nearest.threshold));
	put_moment(out, simulation, told, &told->nearest);
	fprintf(out, "the longest queue was %s, before %s: ",
		bytes(result->links[explanation->longest_queue].most_queued, queued),
		link_text(&simulation->network, explanation->longest_queue, name, sizeof(name)));
	put_marks(out, simulation, explanation->longest_queue, told->of_class);
	if (result->marked_packets && simulation_heeds_marks(simulation))
		fprintf(out, "so marks slowed senders down before any had to be paused\n");
	else
		fprintf(out, "so the buffer is large enough for this traffic\n");
}

void explanation_print(FILE *out, const struct explanation *explanation, const struct simulation *simulation)
{
	char lasted[32];

	if (!explanation->pauses) {
		fprintf(out, "\nwhy PAUSE did not fire\n");
		put_why_not(out, explanation, simulation);
		return;
	}
	fprintf(out,
		"\nwhy PAUSE fired: %" PRIu64 " time%s, on %" PRIu32 " link%s, which stood still for %s in total\n",
		explanation->pauses, explanation->pauses == 1 ? "" : "s", explanation->paused_links,
		explanation->paused_links == 1 ? "" : "s",
		value_time_text(explanation->lasted, lasted, sizeof(lasted)));
	for (unsigned i = 0; i < explanation->worst_count; i++)
		put_explained(out, simulation, &explanation->worst[i], i + 1);
}
