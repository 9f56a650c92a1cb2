/* See flow_stalls.h. */
#include "fabric/flow_stalls.h"
#include "fabric/fluids.h"

#define TIMEOUT    (67 * VB_MS)
#define MOST_PROBE (8 * VB_MS) /* between two (roce/recovery.c) */

enum { RETRIES = 7 };

static bool is_engine(const struct fabric_config *config)
{
	return config->endpoint == FABRIC_ENGINE;
}

/* Between two times at which the sender begins again. */
static vb_time period_of(const struct fabric_config *config, const struct flow_stall *stall)
{
	const vb_time timeout = config->ack_timeout ? config->ack_timeout : TIMEOUT;
	return is_engine(config) ? timeout : timeout + stall->left;
}

/* How long the sender sends until it has sent all, or its window is full. */
static vb_time sends_for(const struct fabric_config *config, const struct flow_stall *stall, uint64_t behind)
{
	const uint32_t window = config->cc.max_window;
	const vb_time all = stall->left + fluid_time(behind, stall->rate);
	const vb_time full = window && window < VB_CC_UNLIMITED ? fluid_time(window, stall->rate) : all;
	return full < all ? full : all;
}

/* At intervals that double, from when it last sent. */
static vb_time next_probe(const struct fabric_config *config, vb_time sent, vb_time up)
{
	vb_time interval = config->probe_after, at = sent + interval;
	while (at < up && interval < MOST_PROBE) {
		interval = 2 * interval < MOST_PROBE ? 2 * interval : MOST_PROBE;
		at += interval;
	}
	return at < up ? at + (up - at + interval - 1) / interval * interval : at;
}

vb_time flow_stall_again(
	const struct fabric_config *config, const struct flow_stall *stall, uint64_t behind, vb_time up)
{
	const vb_time period = period_of(config, stall), begun = up - (up - stall->since) % period;
	const vb_time sends = sends_for(config, stall, behind);
	if (up == stall->since || (is_engine(config) && !stall->is_deaf && up - begun < sends))
		return up;
	if (!is_engine(config) && up - begun < sends) /* what it still sends arrives: what is left is what was lost */
		return up + period - stall->left;
	const bool probes = is_engine(config) && config->probe_after;
	const vb_time again = begun + period, probe = probes ? next_probe(config, stall->since + sends, up) : again;
	return probe < again ? probe : again;
}

vb_time flow_stall_end(const struct fabric_config *config, const struct flow_stall *stall)
{
	return stall->since + period_of(config, stall) * (1 + (config->retry_count ? config->retry_count : RETRIES));
}
