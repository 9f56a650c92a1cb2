/* What the thresholds of a network come to before anything runs: whether they contradict each other.
 * Bytes of a queue before a link from a switch; UINT64_MAX: no bound, or never. */
#ifndef FABRIC_THRESHOLDS_H
#define FABRIC_THRESHOLDS_H

#include "fabric/fabric.h"

/* The queue from which some packets are marked, and all. */
uint64_t threshold_mark_min(const struct network *network, uint32_t link, uint32_t of_class);
uint64_t threshold_mark_max(const struct network *network, uint32_t link, uint32_t of_class);
/* What the queue can hold at all: every other port of the switch sends to it, and nothing else is in the buffer. */
uint64_t threshold_queue_most(const struct fabric_config *config, uint32_t link, uint32_t of_class);
/* The shortest queue at which a port that sends to it is paused: by as few ports as can make it grow, and when nothing
 * else is in the buffer, or is_busy: when every other port has its share. */
uint64_t threshold_pause(const struct fabric_config *config, uint32_t link, uint32_t of_class, bool is_busy);
/* What may still come by a link after a pause for it is due; 0: it leads to no switch that pauses anybody. */
uint64_t threshold_headroom(const struct fabric_config *config, uint32_t link);

#endif
