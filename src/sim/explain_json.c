/* Why PAUSE did or did not fire, as JSON: {"fired": ...}. No bound is -1. */
#include <inttypes.h>
#include "os/json.h"
#include "sim/explain.h"
#include "sim/link_name.h"

static void put_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, ", \"%s\": ", key);
	vb_json_string(out, text);
}

static void put_link(FILE *out, const struct simulation *simulation, uint32_t link)
{
	char name[64];

	fprintf(out, "\"link\": %" PRIu32, link);
	put_text(out, "name", link_text(&simulation->network, link, name, sizeof(name)));
}

static int64_t bounded(uint64_t bytes)
{
	return bytes == UINT64_MAX ? -1 : (int64_t)bytes;
}

static void put_moment(FILE *out, const char *key, const struct fabric_pause_moment *moment)
{
	fprintf(out,
		", \"%s\": {\"at_ps\": %" PRId64 ", \"bytes\": %" PRIu64 ", \"threshold_bytes\": %" PRId64
		", \"buffer_used\": %" PRIu64 ", \"buffer_shared\": %" PRId64 "}",
		key, moment->at, moment->bytes, bounded(moment->threshold), moment->used, bounded(moment->shared));
}

static void put_queued(FILE *out, const struct simulation *simulation, const struct fabric_pauses *told)
{
	fprintf(out, ", \"queues\": [");
	for (uint32_t i = 0; i < told->queue_count; i++) {
		fprintf(out, "%s{", i ? ", " : "");
		put_link(out, simulation, told->queues[i].link);
		fprintf(out, ", \"bytes\": %" PRIu64 ", \"paused\": %s}", told->queues[i].bytes,
			told->queues[i].is_stopped ? "true" : "false");
	}
	fprintf(out, "], \"flow_count\": %" PRIu32 ", \"flows\": [", told->flow_count);
	for (uint32_t i = 0; i < told->flow_count && i < FABRIC_PAUSE_MOST; i++)
		fprintf(out, "%s{\"src\": %" PRIu32 ", \"dst\": %" PRIu32 ", \"bytes\": %" PRIu64 "}", i ? ", " : "",
			told->flows[i].src, told->flows[i].dst, told->flows[i].bytes);
	fputc(']', out);
}

static void put_explained(FILE *out, const struct simulation *simulation, const struct explained *explained)
{
	const struct fabric_pauses *told = explained->told;
	const char *comma = "";

	fputc('{', out);
	put_link(out, simulation, told->link);
	fprintf(out, ", \"class\": %u, \"pauses\": %" PRIu32 ", \"paused_ps\": %" PRId64 ", \"longest_ps\": %" PRId64,
		told->of_class, told->count, told->lasted, told->longest);
	put_moment(out, "first", &told->first);
	put_queued(out, simulation, told);
	fprintf(out, ", \"began_before\": ");
	if (explained->root == NETWORK_NONE) {
		fprintf(out, "null");
	} else {
		fputc('{', out);
		put_link(out, simulation, explained->root);
		fputc('}', out);
	}
	fprintf(out, ", \"stopped\": [");
	for (uint32_t i = 0; i < simulation->network.endpoint_count; i++)
		if (explained->are_stopped[i]) {
			fprintf(out, "%s%" PRIu32, comma, i);
			comma = ", ";
		}
	fprintf(out, "], \"victim_count\": %" PRIu32 ", \"victims\": [", explained->victim_count);
	for (uint32_t i = 0; i < explained->victim_count && i < EXPLAIN_VICTIMS; i++)
		fprintf(out, "%s%" PRIu32, i ? ", " : "", explained->victims[i]);
	fprintf(out, "]}");
}

void explanation_json(
	FILE *out, const char *indent, const struct explanation *explanation, const struct simulation *simulation)
{
	fprintf(out,
		"{\"fired\": %s, \"pauses\": %" PRIu64 ", \"paused_links\": %" PRIu32 ", \"paused_ps\": %" PRId64
		", \"off\": ",
		explanation->pauses ? "true" : "false", explanation->pauses, explanation->paused_links,
		explanation->lasted);
	if (explanation->off)
		vb_json_string(out, explanation->off);
	else
		fprintf(out, "null");
	fprintf(out, ", \"nearest\": ");
	if (explanation->nearest) {
		fputc('{', out);
		put_link(out, simulation, explanation->nearest->link);
		fprintf(out, ", \"class\": %u", explanation->nearest->of_class);
		put_moment(out, "moment", &explanation->nearest->nearest);
		fputc('}', out);
	} else {
		fprintf(out, "null");
	}
	fprintf(out, ", \"worst\": [");
	for (unsigned i = 0; i < explanation->worst_count; i++) {
		fprintf(out, "%s\n%s    ", i ? "," : "", indent);
		put_explained(out, simulation, &explanation->worst[i]);
	}
	fprintf(out, "]}");
}
