/* The packets in a switch, by the link that they came by: which may enter, and which classes have too much. A packet's
 * bytes count from its arrival until it begins to leave. */
#ifndef FABRIC_BUFFER_H
#define FABRIC_BUFFER_H

#include "fabric/state.h"

struct ingress_class {
	uint32_t alpha;        /* of the dynamic threshold, in 1/1024; 0: only the free room is a bound */
	uint64_t bytes;        /* in the reserve and the shared room */
	uint64_t headroom;     /* that arrived after a pause was due */
	uint64_t blocks_freed; /* credits.c */
};

/* The receiving end of a link. */
struct ingress {
	const struct switch_profile *profile;
	uint64_t headroom_bytes; /* of each lossless class */
	struct story *stories;   /* of each class; NULL: no stories are asked for */
	uint32_t at_switch;
	uint8_t paused;   /* a mask of classes */
	bool is_renewing; /* an event is due that renews its pauses */
	struct ingress_class classes[];
};
_Static_assert(sizeof(struct ingress) + sizeof(struct ingress_class) == 64, "with one class a cache line");

/* Of a switch. */
struct buffer {
	uint64_t shared; /* the room that is neither headroom nor reserve; UINT64_MAX: no bound */
	uint64_t used;
};

/* The factor of a port's dynamic threshold, in 1/1024. */
uint32_t buffer_alpha(
	const struct network *network, uint32_t link, const struct switch_profile *profile, uint32_t of_class);
/* -EINVAL and why: a buffer is too small for what its ports set aside. */
int buffer_check(const struct fabric_config *config, char *why, unsigned why_size);
uint32_t buffer_largest_packet(const struct fabric_config *config); /* bytes on the wire */
/* Of a link to a switch: room for what still arrives after a pause is due, for each lossless class. */
uint64_t buffer_headroom(const struct fabric_config *config, uint32_t link);
/* The room that is neither headroom nor reserve; UINT64_MAX: no bound. */
uint64_t buffer_shared(const struct fabric_config *config, uint32_t at_switch);
int buffers_open(struct fabric *fabric); /* -ENOMEM */
void buffers_close(struct fabric *fabric);

bool buffer_admit(struct shard *shard, uint32_t out_link, const struct packet *packet);
void buffer_release(struct shard *shard, const struct packet *packet, uint8_t of_class);
/* PFC: the class has reached its threshold. */
bool buffer_is_over(const struct fabric *fabric, const struct ingress *ingress, uint8_t of_class);
uint64_t buffer_threshold(const struct fabric *fabric, const struct ingress *ingress, uint8_t of_class);
/* PFC: the class is so far below it that its sender may continue. */
bool buffer_is_under(const struct fabric *fabric, const struct ingress *ingress, uint8_t of_class);

#endif
