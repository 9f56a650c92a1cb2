/* Packets that a switch cuts to their headers because there is no room for them (struct switch_profile: trim_bytes).
 * The rest goes on in the highest class of the switch, which is strict and has a queue of its own beside the
 * buffer. So it passes what is queued, and tells the receiver at once that its packet was lost.
 *
 * A packet that was cut has fewer bytes on the wire than its headers say of its payload. */
#ifndef FABRIC_TRIM_H
#define FABRIC_TRIM_H

#include "fabric/state.h"

/* -EINVAL and why. */
int trim_check(const struct fabric_config *config, char *why, unsigned why_size);
bool trim_is_everywhere(const struct network *network);
/* The class that has room of its own, if the switch cuts packets. */
static inline bool trim_has_own_room(const struct switch_profile *profile, uint8_t traffic_class)
{
	return profile->trim_bytes && traffic_class + 1u == profile->class_count;
}
uint64_t trim_room(const struct switch_profile *profile); /* bytes of that class in one port */
/* Cuts the packet, and puts it into that class. False: it is nothing that is cut, and unchanged. */
bool trim_cut(struct shard *shard, const struct switch_profile *profile, uint32_t packet);
bool trim_is_cut(const struct packet *packet, const struct vb_packet *headers);

#endif
