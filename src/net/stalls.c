/* See stalls.h. */
#include "net/stalls.h"

#define MOST_PROBE (8 * VB_MS) /* between two (roce/recovery.c) */

/* Between two times at which the sender begins again. */
static vb_time period_of(const struct resending *resending, const struct stall *stall)
{
	return resending->timeout + (resending->finds_gaps ? 0 : stall->left);
}

static vb_time time_of(uint64_t bytes, uint64_t rate)
{
	return (vb_time)((unsigned __int128)bytes * (uint64_t)VB_S / rate);
}

/* How long the sender sends until it has sent all, or its window is full. */
static vb_time sends_for(const struct resending *resending, const struct stall *stall, uint64_t behind)
{
	const vb_time all = stall->left + time_of(behind, stall->rate);
	const vb_time full = resending->window ? time_of(resending->window, stall->rate) : all;
	return full < all ? full : all;
}

/* At intervals that double, from when it last sent. */
static vb_time next_probe(vb_time interval, vb_time sent, vb_time up)
{
	vb_time at = sent + interval;
	while (at < up && interval < MOST_PROBE) {
		interval = 2 * interval < MOST_PROBE ? 2 * interval : MOST_PROBE;
		at += interval;
	}
	return at < up ? at + (up - at + interval - 1) / interval * interval : at;
}

vb_time stall_again(const struct resending *resending, const struct stall *stall, uint64_t behind, vb_time up)
{
	const vb_time period = period_of(resending, stall), begun = up - (up - stall->since) % period;
	const vb_time sends = sends_for(resending, stall, behind);
	const bool is_sending = up - begun < sends;
	if (up == stall->since || (resending->finds_gaps && !stall->is_deaf && is_sending))
		return up;
	if (!resending->finds_gaps && is_sending) /* what it still sends arrives: what is left is what was lost */
		return up + resending->timeout;
	const vb_time again = begun + period;
	const vb_time probe = resending->finds_gaps && resending->probe
				      ? next_probe(resending->probe, stall->since + sends, up)
				      : again;
	return probe < again ? probe : again;
}

vb_time stall_end(const struct resending *resending, const struct stall *stall)
{
	return stall->since + period_of(resending, stall) * (1 + (vb_time)resending->retries);
}
