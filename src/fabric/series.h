/* Counts of each link over time, for runs that ask for it (fabric_config.tells_series): a fixed number of samples a
 * link. When time goes beyond the last, two become one of twice the width, so that a run may last as long as it likes.
 *
 * Holds: a link's samples are written by its sender's shard alone. */
#ifndef FABRIC_SERIES_H
#define FABRIC_SERIES_H

#include "fabric/state.h"

int series_open(struct fabric *fabric); /* -ENOMEM */
void series_close(struct fabric *fabric);

/* A packet that is in no port's queue, arrives now and leaves on this link at `at`. */
void series_on_sent(struct shard *shard, uint32_t link, uint32_t bytes, vb_time at);
/* So many bytes waited in the link's port. */
void series_on_queue(struct shard *shard, uint32_t link, uint64_t bytes, vb_time from, vb_time until);
/* A class was paused. */
void series_on_pause(struct shard *shard, uint32_t link, vb_time from, vb_time until);
/* A packet was dropped before the link, or lost on it. */
void series_on_missing(struct shard *shard, uint32_t link);

/* Moves all into the result, with samples of one width. */
int series_say(struct fabric *fabric, struct fabric_result *result); /* -ENOMEM */

#endif
