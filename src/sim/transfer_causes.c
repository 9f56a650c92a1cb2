/* See transfer_causes.h. */
#include "sim/transfer_causes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "sim/explain.h"
#include "sim/link_messages.h"
#include "sim/link_name.h"
#include "sim/value.h"
#include "sim/ways.h"

/* A wait that is told is at least this part of the transfer's time, and a link that is busy sends for this part of it.
 */
#define WORTH_TELLING 0.1
#define BUSY          0.5

struct finding {
	const struct simulation *simulation;
	struct ways ways;
	struct link_messages messages;
	uint64_t *bytes_of; /* scratch, by rank */
	/* Of the transfer: the link that has most of each. */
	vb_time from, until;
	struct transfer_cause lost, paused, queued, loaded;
};

/* ---- What a link did --------------------------------------------------------------------------------------------- */

/* A sample counts by the part of it that is in this time. */
static struct transfer_cause look_at_link(const struct finding *finding, uint32_t link)
{
	const struct fabric_result *result = &finding->simulation->result;
	const struct fabric_sample *samples = result->samples[link];
	const vb_time width = result->sample_width;
	const double lasted = (double)(finding->until - finding->from);
	const double ps_per_byte = 8e12 / (double)network_rate(&finding->simulation->network, link);
	double bytes = 0, area = 0, paused = 0, missing = 0;

	for (vb_time i = finding->from / width; samples && i < FABRIC_SAMPLES && i * width < finding->until; i++) {
		const vb_time from = i * width > finding->from ? i * width : finding->from;
		const vb_time until = (i + 1) * width < finding->until ? (i + 1) * width : finding->until;
		const double part = (double)(until - from) / (double)width;
		bytes += part * (double)samples[i].bytes;
		area += part * samples[i].queued_area;
		paused += part * (double)samples[i].paused;
		missing += part * (double)samples[i].missing;
	}
	const double load = bytes * ps_per_byte / lasted;
	return (struct transfer_cause){ .link = link,
		.queueing = (vb_time)(area / lasted * ps_per_byte),
		.paused = (vb_time)paused,
		.missing = (uint64_t)(missing + 0.5),
		.load = load < 1 ? load : 1 };
}

static bool look(void *user, uint32_t link)
{
	struct finding *finding = user;
	const struct transfer_cause is = look_at_link(finding, link);

	if (finding->lost.link == NETWORK_NONE || is.missing > finding->lost.missing)
		finding->lost = is;
	if (finding->paused.link == NETWORK_NONE || is.paused > finding->paused.paused)
		finding->paused = is;
	if (finding->queued.link == NETWORK_NONE || is.queueing > finding->queued.queueing)
		finding->queued = is;
	if (finding->loaded.link == NETWORK_NONE || is.load > finding->loaded.load)
		finding->loaded = is;
	return true;
}

/* By its own path, or by all that its packets may have taken. */
static bool look_along(struct finding *finding, const struct fabric_message *message)
{
	const struct transfer_cause none = { .link = NETWORK_NONE };
	uint32_t links[FABRIC_PATH];
	const uint32_t count = fabric_path(&finding->simulation->config, finding->ways.routes, message, links);

	finding->lost = finding->paused = finding->queued = finding->loaded = none;
	for (uint32_t i = 0; i < count; i++)
		look(finding, links[i]);
	if (count == 0)
		ways_walk(&finding->ways, message->from, message->to, look, finding);
	return count > 0;
}

/* ---- What that means --------------------------------------------------------------------------------------------- */

/* A packet that is sent again delays more than a pause or a queue; a pause makes queues. */
static struct transfer_cause choose(const struct finding *finding)
{
	const double worth = WORTH_TELLING * (double)(finding->until - finding->from);
	struct transfer_cause cause;

	if (finding->lost.missing > 0 && finding->simulation->result.resent_packets > 0) {
		cause = finding->lost;
		cause.kind = TRANSFER_LOSS;
	} else if ((double)finding->paused.paused > worth) {
		cause = finding->paused;
		cause.kind = TRANSFER_PAUSE;
	} else if ((double)finding->queued.queueing > worth) {
		cause = finding->queued;
		cause.kind = TRANSFER_QUEUE;
	} else {
		cause = finding->loaded;
		cause.kind = cause.load > BUSY ? TRANSFER_LOAD : TRANSFER_DISTANCE;
	}
	return cause;
}

static bool is_in_host(const struct simulation *simulation, const struct graph_transfer *of)
{
	return hosts_host_of(&simulation->hosts, of->from) == hosts_host_of(&simulation->hosts, of->to);
}

static struct transfer_cause cause_of(struct finding *finding, const struct graph_transfer *of, uint8_t traffic_class)
{
	const struct simulation *simulation = finding->simulation;
	const struct fabric_message *message = link_messages_find(&finding->messages, of->from, of->tag, of->sent);
	struct transfer_cause cause = { .link = NETWORK_NONE, .stopper = NETWORK_NONE };

	finding->from = of->sent;
	finding->until = of->sent + of->took;
	if (is_in_host(simulation, of)) {
		cause.kind = TRANSFER_IN_HOST;
	} else if (message && of->took > 0) {
		const bool is_sure = look_along(finding, message);
		cause = choose(finding);
		cause.is_sure = is_sure;
		const struct link_user most = link_messages_most(
			&finding->messages, cause.link, message, finding->from, finding->until, finding->bytes_of);
		cause.beside = most.rank;
		cause.beside_bytes = most.bytes;
		cause.stopper = cause.kind == TRANSFER_PAUSE
					? explain_stopper(&simulation->result, cause.link, traffic_class)
					: NETWORK_NONE;
	}
	cause.of = *of;
	return cause;
}

int transfer_causes_find(
	const struct simulation *simulation, const struct critical_path *path, struct transfer_cause **causes)
{
	struct finding finding = { .simulation = simulation,
		.bytes_of = calloc((size_t)hosts_all_ranks(&simulation->hosts, simulation->network.endpoint_count) + 1,
			sizeof(*finding.bytes_of)) };
	int rc;

	*causes = calloc((size_t)path->count + 1, sizeof(**causes));
	rc = *causes && finding.bytes_of ? ways_open(&finding.ways, &simulation->network) : -ENOMEM;
	if (!rc)
		rc = link_messages_open(&finding.messages, simulation, finding.ways.routes);
	for (uint32_t i = 0; !rc && i < path->count; i++) {
		const uint32_t operation = path->steps[i].operation;
		struct graph_transfer transfer;
		if (critical_transfer(&simulation->graph_job, &path->steps[i], &transfer))
			(*causes)[i] = cause_of(
				&finding, &transfer, simulation->job_file.graph.operations[operation].traffic_class);
	}
	link_messages_close(&finding.messages);
	ways_close(&finding.ways);
	free(finding.bytes_of);
	if (rc) {
		free(*causes);
		*causes = NULL;
	}
	return rc;
}

/* ---- For people -------------------------------------------------------------------------------------------------- */

const char *transfer_kind_name(enum transfer_cause_kind kind)
{
	static const char *const names[] = { [TRANSFER_NONE] = "none",
		[TRANSFER_LOSS] = "loss",
		[TRANSFER_PAUSE] = "pause",
		[TRANSFER_QUEUE] = "queue",
		[TRANSFER_LOAD] = "load",
		[TRANSFER_DISTANCE] = "distance",
		[TRANSFER_IN_HOST] = "scale-up" };
	return names[kind];
}

static int say_link(const struct simulation *simulation, const struct transfer_cause *cause, char *text, size_t size)
{
	char name[64], lasted[32], stopper[64];

	link_text(&simulation->network, cause->link, name, sizeof(name));
	switch (cause->kind) {
	case TRANSFER_LOSS:
		return snprintf(text, size, "%s lost or dropped %" PRIu64 " packets", name, cause->missing);
	case TRANSFER_PAUSE:
		value_time_text(cause->paused, lasted, sizeof(lasted));
		if (cause->stopper == NETWORK_NONE)
			return snprintf(text, size, "%s was paused for %s", name, lasted);
		link_text(&simulation->network, cause->stopper, stopper, sizeof(stopper));
		return snprintf(text, size, "%s was paused for %s, by the queue before %s", name, lasted, stopper);
	case TRANSFER_QUEUE:
		value_time_text(cause->queueing, lasted, sizeof(lasted));
		return snprintf(text, size, "packets waited %s before %s", lasted, name);
	case TRANSFER_LOAD:
		return snprintf(text, size, "%s was busy", name);
	case TRANSFER_DISTANCE:
	case TRANSFER_IN_HOST:
	case TRANSFER_NONE:
		break;
	}
	return snprintf(text, size, "no link was busy");
}

const char *transfer_cause_text(
	const struct simulation *simulation, const struct transfer_cause *cause, char *text, size_t size)
{
	if (cause->kind == TRANSFER_IN_HOST) {
		snprintf(text, size, "within a host");
		return text;
	}
	const int length = say_link(simulation, cause, text, size);
	if (length < 0 || (size_t)length >= size || cause->kind == TRANSFER_DISTANCE)
		return text;
	char beside[64] = "", bytes[32];
	if (cause->beside_bytes)
		snprintf(beside, sizeof(beside), ", beside %s of rank %" PRIu32,
			value_bytes_text(cause->beside_bytes, bytes, sizeof(bytes)), cause->beside);
	snprintf(text + length, size - (size_t)length, "%s, which sent %.0f%% of the time%s",
		cause->is_sure ? "" : ", one of several ways", 100 * cause->load, beside);
	return text;
}
