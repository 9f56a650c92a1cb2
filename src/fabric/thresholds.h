/* The consequences of a network's thresholds before anything runs: whether they contradict each other. Values are bytes
 * in the queue before a link from a switch; UINT64_MAX: no bound, or never. */
#ifndef FABRIC_THRESHOLDS_H
#define FABRIC_THRESHOLDS_H

#include "fabric/fabric.h"

/* The queue lengths at which marking begins, and at which all packets are marked. */
uint64_t threshold_mark_min(const struct network *network, uint32_t link, uint32_t of_class);
uint64_t threshold_mark_max(const struct network *network, uint32_t link, uint32_t of_class);
/* The longest possible queue: all other ports of the switch send to it, and the buffer holds nothing else. */
uint64_t threshold_queue_most(const struct fabric_config *config, uint32_t link, uint32_t of_class);
/* The shortest queue at which a port that sends to it is paused: with as few senders as can make it grow and an
 * otherwise empty buffer; or is_busy: when every other port has its share. */
uint64_t threshold_pause(const struct fabric_config *config, uint32_t link, uint32_t of_class, bool is_busy);
/* The bytes that may still arrive by a link after a pause is due; 0: the link leads to no switch that pauses. */
uint64_t threshold_headroom(const struct fabric_config *config, uint32_t link);

#endif
