/* See resending.h. */
#include "fabric/resending.h"

#define TIMEOUT (67 * VB_MS)

enum { RETRIES = 7 };

struct resending fabric_resending(const struct fabric_config *config)
{
	const uint32_t window = config->cc.max_window;
	return (struct resending){ .timeout = config->ack_timeout ? config->ack_timeout : TIMEOUT,
		.probe = config->probe_after,
		.window = window < VB_CC_UNLIMITED ? window : 0,
		.retries = config->retry_count ? config->retry_count : RETRIES,
		.finds_gaps = config->endpoint == FABRIC_ENGINE };
}
