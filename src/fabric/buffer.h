/* What is in a switch, by where it came in: for whom there is room, and who has too much.
 * Bytes of a packet count from its being there until it begins to leave. */
#ifndef FABRIC_BUFFER_H
#define FABRIC_BUFFER_H

#include "fabric/state.h"

struct ingress_class {
	uint32_t alpha;        /* of the dynamic threshold, in 1/1024; 0: no bound but what is free */
	uint64_t bytes;        /* reserved and shared */
	uint64_t headroom;     /* that came after a pause */
	uint64_t blocks_freed; /* credits.c */
};

/* The receiving end of a link. */
struct ingress {
	const struct switch_profile *profile;
	uint64_t headroom_bytes; /* of each lossless class */
	struct story *stories;   /* of each class; NULL: nobody has asked for any */
	uint32_t at_switch;
	uint8_t paused;   /* a mask of classes */
	bool is_renewing; /* an event renews pauses */
	struct ingress_class classes[];
};
_Static_assert(sizeof(struct ingress) + sizeof(struct ingress_class) == 64, "with one class a cache line");

/* Of a switch. */
struct buffer {
	uint64_t shared; /* what is neither headroom nor reserved; UINT64_MAX: no bound */
	uint64_t used;
};

/* Dynamic threshold's factor of a port, in 1/1024. */
uint32_t buffer_alpha(
	const struct network *network, uint32_t link, const struct switch_profile *profile, uint32_t of_class);
/* -EINVAL and why: a buffer has no room for what its ports need. */
int buffer_check(const struct fabric_config *config, char *why, unsigned why_size);
uint32_t buffer_largest_packet(const struct fabric_config *config); /* bytes on the wire */
/* Of a link to a switch: for what still comes after a pause is due, of each lossless class. */
uint64_t buffer_headroom(const struct fabric_config *config, uint32_t link);
/* What is neither headroom nor reserved; UINT64_MAX: no bound. */
uint64_t buffer_shared(const struct fabric_config *config, uint32_t at_switch);
int buffers_open(struct fabric *fabric); /* -ENOMEM */
void buffers_close(struct fabric *fabric);

bool buffer_admit(struct shard *shard, uint32_t out_link, const struct packet *packet);
void buffer_release(struct shard *shard, const struct packet *packet, uint8_t of_class);
/* PFC: it has its share, or more. */
bool buffer_is_over(const struct fabric *fabric, const struct ingress *ingress, uint8_t of_class);
uint64_t buffer_threshold(const struct fabric *fabric, const struct ingress *ingress, uint8_t of_class);
/* And so much less that it may go on. */
bool buffer_is_under(const struct fabric *fabric, const struct ingress *ingress, uint8_t of_class);

#endif
