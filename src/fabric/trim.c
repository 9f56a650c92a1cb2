/* See trim.h. */
#include <errno.h>
#include "base/invariant.h"
#include "fabric/trim.h"
#include "net/why.h"

#define LEAST_BYTES 64u /* UET 1.0: what is left is at least a frame of Ethernet */
#define ROOM        (64u << 10)

static const char *fault_of(const struct fabric_config *config, const struct switch_profile *profile)
{
	const struct class_profile *highest = &profile->classes[profile->class_count - 1];
	if (profile->trim_bytes < LEAST_BYTES)
		return "cut packets to less than 64 bytes";
	if (profile->flow_control == FLOW_CREDITS)
		return "cut packets without room, and with credits there are none";
	if (config->endpoint == FABRIC_TCP)
		return "cut packets, and TCP does not know of such";
	if (profile->class_count < 2 || !highest->is_strict)
		return "cut packets, for which their highest class must be strict, above another";
	if (profile->flow_control == FLOW_PFC && highest->is_lossless)
		return "cut packets, for which their highest class must not be lossless";
	return NULL;
}

int trim_check(const struct fabric_config *config, char *why, unsigned why_size)
{
	const struct network *network = config->network;
	for (uint32_t i = 0; i < network->switch_count; i++) {
		const struct switch_profile *profile = &network->profiles[network->switches[i].profile];
		const char *fault = profile->trim_bytes ? fault_of(config, profile) : NULL;
		if (fault)
			return why_not(why, why_size, "switches \"%s\" %s", profile->name, fault);
	}
	return 0;
}

bool trim_is_everywhere(const struct network *network)
{
	for (uint32_t i = 0; i < network->switch_count; i++)
		if (!network->profiles[network->switches[i].profile].trim_bytes)
			return false;
	return network->switch_count > 0;
}

uint64_t trim_room(const struct switch_profile *profile)
{
	const uint64_t limit = profile->classes[profile->class_count - 1].limit_bytes;
	assert(profile->trim_bytes);
	return limit ? limit : ROOM;
}

bool trim_is_cut(const struct packet *packet, const struct vb_packet *headers)
{
	return packet->wire_bytes < headers->payload_length;
}

bool trim_cut(struct shard *shard, const struct switch_profile *profile, uint32_t index)
{
	struct packet *packet = &shard->packets[index];
	const uint8_t highest = (uint8_t)(profile->class_count - 1);
	if (!profile->trim_bytes || packet->has_cargo || packet->traffic_class == highest)
		return false;
	const struct vb_packet headers = packet_headers(shard, index);
	if (trim_is_cut(packet, &headers) || headers.payload_length <= profile->trim_bytes)
		return false;
	packet->wire_bytes = (uint16_t)profile->trim_bytes;
	packet->traffic_class = highest & (FABRIC_CLASSES - 1);
	packet->takes_marks = false;
	assert(trim_is_cut(packet, &headers));
	return true;
}
