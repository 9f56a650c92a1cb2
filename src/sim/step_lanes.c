/* See step_lanes.h. */
#include "sim/step_lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t divisor_of(uint32_t a, uint32_t b)
{
	return b ? divisor_of(b, a % b) : a;
}

/* Replicas, as many as exchange tokens. */
static uint32_t unit_of(const struct step_plan *plan)
{
	const uint32_t replica = plan->tp * plan->cp;

	return replica / divisor_of(replica, plan->ep) * plan->ep;
}

int lane_signs_open(struct lane_signs *signs, const struct step_plan *plan)
{
	const uint32_t unit = unit_of(plan), count = plan->tp * plan->cp * plan->dp / unit;

	*signs = (struct lane_signs){ .unit = unit, .count = count, .units = calloc(count, sizeof(*signs->units)) };
	return signs->units ? 0 : -ENOMEM;
}

void lane_signs_close(struct lane_signs *signs)
{
	free(signs->units);
	*signs = (struct lane_signs){ 0 };
}

void lane_signs_note(struct lane_signs *signs, uint32_t place, double contend)
{
	struct lane_sign *sign = &signs->units[place / signs->unit];

	sign->hash = (sign->hash ^ (uint64_t)(contend * 1024 + 0.5)) * 0x9E3779B97F4A7C15u;
	sign->hash ^= sign->hash >> 31;
	sign->slowness += contend;
}

/* ---- Dividing ---------------------------------------------------------------------------------------------------- */

/* By the first that is alike; false: there are too many. */
static bool divide_alike(const struct lane_signs *signs, struct step_lanes *lanes)
{
	uint64_t known[STEP_MOST_LANES];

	lanes->count = 0;
	for (uint32_t i = 0; i < signs->count; i++) {
		uint32_t lane = 0;
		while (lane < lanes->count && known[lane] != signs->units[i].hash)
			lane++;
		if (lane == STEP_MOST_LANES)
			return false;
		if (lane == lanes->count)
			known[lanes->count++] = signs->units[i].hash;
		lanes->of[i] = (uint8_t)lane;
	}
	return true;
}

struct ranked {
	double slowness;
	uint32_t unit;
};

static int by_slowness(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;

	if (one->slowness != other->slowness)
		return one->slowness < other->slowness ? -1 : 1;
	return one->unit < other->unit ? -1 : one->unit > other->unit;
}

/* As many in each. */
static int divide_evenly(const struct lane_signs *signs, struct step_lanes *lanes)
{
	struct ranked *ranked = calloc(signs->count, sizeof(*ranked));

	if (!ranked)
		return -ENOMEM;
	for (uint32_t i = 0; i < signs->count; i++)
		ranked[i] = (struct ranked){ signs->units[i].slowness, i };
	qsort(ranked, signs->count, sizeof(*ranked), by_slowness);
	lanes->count = STEP_MOST_LANES;
	for (uint32_t i = 0; i < signs->count; i++)
		lanes->of[ranked[i].unit] = (uint8_t)((uint64_t)i * STEP_MOST_LANES / signs->count);
	free(ranked);
	return 0;
}

int lane_signs_divide(const struct lane_signs *signs, struct step_lanes *lanes)
{
	lanes->unit = signs->unit;
	lanes->units = signs->count;
	lanes->of = calloc(signs->count, sizeof(*lanes->of));
	int error = lanes->of ? 0 : -ENOMEM;
	if (!error && !divide_alike(signs, lanes))
		error = divide_evenly(signs, lanes);
	memset(lanes->sizes, 0, sizeof(lanes->sizes));
	for (uint32_t i = 0; !error && i < signs->count; i++)
		lanes->sizes[lanes->of[i]]++;
	return error;
}
