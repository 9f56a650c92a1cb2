/* A bottleneck: bottleneck.h. The queue is kept as the time when it will be empty.
 * Holds: the queue never exceeds its limit; the same packets at the same times with the same seed have the same fates.
 * Not here: holding packets back until they leave (faults.c). */
#include "port/bottleneck.h"
#include "base/invariant.h"

static vb_time time_of(const struct vb_bottleneck *neck, uint64_t bytes)
{
	return (vb_time)((unsigned __int128)bytes * 8 * VB_S / neck->rate);
}

static uint64_t bytes_of(const struct vb_bottleneck *neck, vb_time time)
{
	return (uint64_t)((unsigned __int128)time * neck->rate / 8 / VB_S);
}

static vb_time backlog(const struct vb_bottleneck *neck, vb_time now)
{
	return vb_time_before(now, neck->free_at) ? vb_time_diff(neck->free_at, now) : 0;
}

/* Adds the queue since it was seen last to the area: it falls at the rate, to nothing. */
static void see(struct vb_bottleneck *neck, vb_time now)
{
	if (!neck->has_begun) {
		neck->has_begun = true;
		neck->begun_at = neck->seen_at = neck->free_at = now;
	}
	vb_time before = backlog(neck, neck->seen_at), after = backlog(neck, now);
	double falls = (double)(before - after) / VB_S, mean = (double)(before + after) / VB_S / 2;
	neck->area += falls * mean * (double)neck->rate / 8;
	neck->seen_at = now;
}

static bool is_chosen(const struct vb_bottleneck *neck, uint64_t queued, struct vb_random *random)
{
	uint32_t drawn =
		vb_random_below(random, 1000000); /* drawn for any queue, so that a seed gives the same sequence */

	if (neck->kmax == 0 || queued <= neck->kmin)
		return false;
	if (queued > neck->kmax)
		return true;
	return drawn * (neck->kmax - neck->kmin) < (queued - neck->kmin) * neck->pmax_ppm;
}

enum vb_bottleneck_fate vb_bottleneck_admit(struct vb_bottleneck *neck, uint32_t bytes, bool takes_marks,
	struct vb_random *random, vb_time now, vb_time *leaves_at)
{
	assert(neck->rate > 0 && neck->kmin <= neck->kmax);
	see(neck, now);
	uint64_t queued = bytes_of(neck, backlog(neck, now));
	bool is_marked = is_chosen(neck, queued, random);

	if (queued + bytes > neck->queue || (is_marked && !takes_marks)) {
		neck->drops++;
		return VB_BOTTLENECK_DROPS;
	}
	neck->free_at = vb_time_add(now, backlog(neck, now) + time_of(neck, bytes));
	*leaves_at = neck->free_at;
	neck->most = queued + bytes > neck->most ? queued + bytes : neck->most;
	neck->marks += is_marked;
	assert(neck->most <= neck->queue && !vb_time_before(*leaves_at, now));
	return is_marked ? VB_BOTTLENECK_MARKS : VB_BOTTLENECK_PASSES;
}

uint64_t vb_bottleneck_mean(const struct vb_bottleneck *neck)
{
	double seconds = (double)(neck->seen_at - neck->begun_at) / VB_S;
	return seconds > 0 ? (uint64_t)(neck->area / seconds) : 0;
}
