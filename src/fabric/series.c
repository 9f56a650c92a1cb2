/* See series.h. */
#include "fabric/series.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

enum { FIRST_WIDTH = 1 << 17 }; /* about 131 ns: some packets at 100 Gb/s */

struct link_series {
	struct fabric_sample *samples; /* FABRIC_SAMPLES; NULL: nothing has happened */
	vb_time width;
};

int series_open(struct fabric *fabric)
{
	if (!fabric->config->tells_series)
		return 0;
	fabric->series = calloc(fabric->network->link_count + 1, sizeof(*fabric->series));
	return fabric->series ? 0 : -ENOMEM;
}

void series_close(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->series && i < fabric->network->link_count; i++)
		free(fabric->series[i].samples);
	free(fabric->series);
}

static void add(struct fabric_sample *to, const struct fabric_sample *from)
{
	to->bytes += from->bytes;
	to->queued_area += from->queued_area;
	to->paused += from->paused;
	to->missing += from->missing;
}

static void widen(struct link_series *series)
{
	for (uint32_t i = 0; i < FABRIC_SAMPLES; i++) {
		const struct fabric_sample was = series->samples[i];
		series->samples[i] = (struct fabric_sample){ 0 };
		add(&series->samples[i / 2], &was);
	}
	series->width *= 2;
}

/* Of this link, with room up to `until`; NULL: no memory, or none are kept. */
static struct link_series *series_of(struct shard *shard, uint32_t link, vb_time until)
{
	if (!shard->fabric->series)
		return NULL;
	struct link_series *series = &shard->fabric->series[link];
	if (!series->samples) {
		series->width = FIRST_WIDTH;
		series->samples = calloc(FABRIC_SAMPLES, sizeof(*series->samples));
		shard->is_out_of_memory |= !series->samples;
	}
	while (series->samples && until / series->width >= FABRIC_SAMPLES)
		widen(series);
	return series->samples ? series : NULL;
}

/* The part of each sample's time that is within these. */
static void spread(struct link_series *series, vb_time from, vb_time until, double bytes, bool is_pause)
{
	for (vb_time at = from, next; at < until; at = next) {
		struct fabric_sample *sample = &series->samples[at / series->width];
		next = (at / series->width + 1) * series->width;
		next = next < until ? next : until;
		if (is_pause)
			sample->paused += next - at;
		else
			sample->queued_area += bytes * (double)(next - at);
	}
}

void series_on_sent(struct shard *shard, uint32_t link, uint32_t bytes, vb_time at)
{
	struct link_series *series = series_of(shard, link, at);
	if (!series)
		return;
	series->samples[at / series->width].bytes += bytes;
	spread(series, shard->now, at, bytes, false);
}

void series_on_queue(struct shard *shard, uint32_t link, uint64_t bytes, vb_time from, vb_time until)
{
	struct link_series *series = bytes > 0 ? series_of(shard, link, until) : NULL;
	if (series)
		spread(series, from, until, (double)bytes, false);
}

void series_on_pause(struct shard *shard, uint32_t link, vb_time from, vb_time until)
{
	struct link_series *series = series_of(shard, link, until);
	if (series)
		spread(series, from, until, 0, true);
}

void series_on_missing(struct shard *shard, uint32_t link)
{
	struct link_series *series = series_of(shard, link, shard->now);
	if (series)
		series->samples[shard->now / series->width].missing++;
}

static vb_time widest(const struct fabric *fabric)
{
	vb_time width = FIRST_WIDTH;
	for (uint32_t i = 0; i < fabric->network->link_count; i++)
		if (fabric->series[i].width > width)
			width = fabric->series[i].width;
	return width;
}

int series_say(struct fabric *fabric, struct fabric_result *result)
{
	const uint32_t links = fabric->network->link_count;
	if (!fabric->series)
		return 0;
	result->samples = calloc(links + 1, sizeof(*result->samples));
	result->sampled_links = links;
	result->sample_width = widest(fabric);
	for (uint32_t i = 0; result->samples && i < links; i++) {
		struct link_series *series = &fabric->series[i];
		while (series->samples && series->width < result->sample_width)
			widen(series);
		result->samples[i] = series->samples;
		series->samples = NULL;
	}
	return result->samples ? 0 : -ENOMEM;
}
