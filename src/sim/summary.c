/* Summarises a run. */
#include "sim/summary.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
	const char *name;
	uint64_t up_to;
} buckets[SUMMARY_BUCKETS] = { { "up to 1 kB", 1000 }, { "1 to 10 kB", 10000 }, { "10 to 100 kB", 100000 },
	{ "100 kB to 1 MB", 1000000 }, { "1 to 10 MB", 10000000 }, { "above 10 MB", UINT64_MAX } };

static unsigned bucket_of(uint64_t bytes)
{
	unsigned bucket = 0;
	while (bytes > buckets[bucket].up_to)
		bucket++;
	return bucket;
}

bool flow_is_done(const struct simulation *simulation, uint32_t flow)
{
	const struct flow_result *result = &simulation->result.flows[flow];
	return result->fct >= 0 && !result->error;
}

double flow_slowdown(const struct simulation *simulation, uint32_t flow)
{
	vb_time ideal = simulation->ideals[flow], fct = simulation->result.flows[flow].fct;
	return ideal > 0 && fct > ideal ? (double)fct / (double)ideal : 1;
}

static double lasted(const struct fabric_result *result)
{
	return (double)(result->end == FABRIC_DONE ? result->last_flow : result->ended_at);
}

double link_mean_queue(const struct simulation *simulation, uint32_t link)
{
	const struct fabric_result *result = &simulation->result;
	return lasted(result) > 0 ? result->links[link].queued_area / lasted(result) : 0;
}

double link_load(const struct simulation *simulation, uint32_t link)
{
	const struct fabric_result *result = &simulation->result;
	double could = (double)network_rate(&simulation->network, link) * lasted(result) / (double)VB_S;
	double load = could > 0 ? (double)result->links[link].bytes * 8 / could : 0;
	return load < 1 ? load : 1; /* a packet counts as soon as it begins to leave, and a run may be cut short */
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double percentile(const double *sorted, uint32_t count, unsigned percent)
{
	uint64_t rank = ((uint64_t)count * percent + 99) / 100;
	return count ? sorted[rank ? rank - 1 : 0] : 0;
}

/* For the flows of a bucket, or all; scratch has room for each. */
static void fill_flows(struct summary_flows *flows, const struct simulation *simulation, int bucket, double *scratch)
{
	for (int pass = 0; pass < 2; pass++) {
		uint32_t count = 0;
		for (uint32_t i = 0; i < simulation->flows.count; i++)
			if (flow_is_done(simulation, i) &&
				(bucket < 0 || bucket_of(simulation->flows.flows[i].bytes) == (unsigned)bucket))
				scratch[count++] =
					pass ? flow_slowdown(simulation, i) : (double)simulation->result.flows[i].fct;
		qsort(scratch, count, sizeof(*scratch), by_number);
		flows->count = count;
		double p50 = percentile(scratch, count, 50), p95 = percentile(scratch, count, 95);
		double p99 = percentile(scratch, count, 99), most = percentile(scratch, count, 100);
		if (pass) {
			flows->slow50 = p50;
			flows->slow95 = p95;
			flows->slow99 = p99;
			flows->slow_most = most;
		} else {
			flows->p50 = (vb_time)p50;
			flows->p95 = (vb_time)p95;
			flows->p99 = (vb_time)p99;
			flows->most = (vb_time)most;
		}
	}
}

/* Busiest first; of equals the lower number. */
static void put_in_order(struct summary_links *links, const struct simulation *simulation, uint32_t link)
{
	const double load = link_load(simulation, link);
	uint32_t at = links->count;

	while (at > 0 && link_load(simulation, links->link[at - 1]) < load)
		at--;
	if (load <= 0 || at == SUMMARY_LINKS)
		return;
	links->count += links->count < SUMMARY_LINKS;
	for (uint32_t i = links->count - 1; i > at; i--)
		links->link[i] = links->link[i - 1];
	links->link[at] = link;
}

static void find_links(struct summary *summary, const struct simulation *simulation)
{
	const struct network *network = &simulation->network;

	for (uint32_t link = 0; link < network->link_count; link++)
		put_in_order(
			network_is_of_front(network, link) ? &summary->front_links : &summary->links, simulation, link);
}

int summary_make(struct summary *summary, const struct simulation *simulation)
{
	uint32_t count = simulation->flows.count;
	double *scratch = calloc(count ? count : 1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	*summary = (struct summary){ .all.name = "all" };
	fill_flows(&summary->all, simulation, -1, scratch);
	for (int i = 0; i < SUMMARY_BUCKETS; i++) {
		summary->buckets[i].name = buckets[i].name;
		fill_flows(&summary->buckets[i], simulation, i, scratch);
	}
	find_links(summary, simulation);
	free(scratch);
	return 0;
}
