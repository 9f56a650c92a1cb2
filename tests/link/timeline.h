/* Packets under way, by the time at which they are delivered; of one time in the order in which they came. A heap.
 * Holds: the packets given out are in the order of (due, number). At most `room` are held. */
#ifndef TESTS_LINK_TIMELINE_H
#define TESTS_LINK_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/time.h"

struct link_packet {
	vb_time due;
	uint64_t number;
	struct link_packet *next; /* among spare ones */
	uint8_t direction, path;
	uint32_t length; /* of bytes that are used */
	uint8_t bytes[]; /* the timeline's packet_bytes */
};

struct link_timeline {
	struct link_packet **heap;
	uint32_t count, room, made;
	size_t packet_bytes;
	uint64_t next_number;
	struct link_packet *spare;
};

/* 0 or -ENOMEM. packet_bytes: the longest packet. */
int link_timeline_init(struct link_timeline *timeline, uint32_t room, size_t packet_bytes);
void link_timeline_deinit(struct link_timeline *timeline);
/* A packet to be filled in and scheduled or returned; NULL: as many are held as may be. */
struct link_packet *link_timeline_new(struct link_timeline *timeline);
void link_timeline_return(struct link_timeline *timeline, struct link_packet *packet);
void link_timeline_schedule(struct link_timeline *timeline, struct link_packet *packet, vb_time due);
/* The next packet that is due by now, the caller's until it returns it; NULL: none. */
struct link_packet *link_timeline_take(struct link_timeline *timeline, vb_time now);
struct vb_deadline link_timeline_next(const struct link_timeline *timeline);

#endif
