/* Priority flow control (IEEE 802.1Qbb): who sends a class that has too much here is told to stop, by frames that take
 * their time. */
#ifndef FABRIC_PFC_H
#define FABRIC_PFC_H

#include "fabric/port.h"

static inline bool pfc_is_lossless(const struct switch_profile *profile, uint32_t of_class)
{
	return profile->flow_control == FLOW_PFC && profile->classes[of_class].is_lossless;
}

/* What may still come by the link after its class was found to have too much: what is sent until the pause is there,
 * which waits for a packet that is leaving, and the packet that is leaving there then. A packet that is cut through has
 * the wire from when it was chosen until its end has come in, which by a slow link takes long. */
uint64_t pfc_headroom(const struct fabric_config *config, uint32_t link);

void pfc_on_admitted(struct shard *shard, uint32_t in_link, uint8_t of_class);
void pfc_on_released(struct shard *shard, uint32_t in_link, uint8_t of_class);
void pfc_on_renewal(struct shard *shard, uint32_t in_link);

/* Of the port that is paused. */
void pfc_on_frame(struct shard *shard, uint32_t link, const struct frame *frame);
void pfc_end_pauses(struct shard *shard, uint32_t link); /* whose time is over */
void pfc_on_watch(struct shard *shard, uint32_t link);

#endif
