/* Priority flow control (IEEE 802.1Qbb): a sender whose class has too much here is told to stop, by frames that take
 * time to arrive. */
#ifndef FABRIC_PFC_H
#define FABRIC_PFC_H

#include "fabric/port.h"

static inline bool pfc_is_lossless(const struct switch_profile *profile, uint32_t of_class)
{
	return profile->flow_control == FLOW_PFC && profile->classes[of_class].is_lossless;
}

/* The bytes that may still arrive by the link after its class was found to have too much: what is sent until the pause
 * arrives, which first waits for a packet that is leaving, and the packet that is leaving at the other end then. A
 * packet that is cut through occupies the wire from when it was chosen until its end has come in, which takes long by a
 * slow link. */
uint64_t pfc_headroom(const struct fabric_config *config, uint32_t link);

void pfc_on_admitted(struct shard *shard, uint32_t in_link, uint8_t of_class);
void pfc_on_released(struct shard *shard, uint32_t in_link, uint8_t of_class);
void pfc_on_renewal(struct shard *shard, uint32_t in_link);

/* For the port that is paused. */
void pfc_on_frame(struct shard *shard, uint32_t link, const struct frame *frame);
void pfc_end_pauses(struct shard *shard, uint32_t link); /* those whose time is over */
void pfc_on_watch(struct shard *shard, uint32_t link);

#endif
