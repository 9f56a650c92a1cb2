/* Which messages went by a link, and by which links a message went; of runs that tell messages. Where the path is not
 * known, none is told. */
#ifndef SIM_LINK_MESSAGES_H
#define SIM_LINK_MESSAGES_H

#include "sim/simulation.h"

struct routes;

struct link_messages {
	const struct simulation *simulation; /* borrowed */
	const struct routes *routes;         /* borrowed */
	uint64_t *first; /* by link: its messages are of[first[link]] to of[first[link + 1] - 1], by their start */
	uint64_t *of;    /* of result.messages */
	vb_time *latest; /* the latest end of this one and those of its link before it */
};

int link_messages_open(
	struct link_messages *messages, const struct simulation *simulation, const struct routes *routes); /* -ENOMEM */
void link_messages_close(struct link_messages *messages);

/* The message of this rank and tag that began then; NULL: it has not ended. */
const struct fabric_message *link_messages_find(
	const struct link_messages *messages, uint32_t src, uint64_t tag, vb_time start);
/* Bytes of other messages by this link in this time, by the rank that sent most of them; none: 0. A message counts by
 * the part of its time. bytes_of: scratch, by rank, zeroed before and after. */
struct link_user {
	uint32_t rank;
	uint64_t bytes;
};
struct link_user link_messages_most(const struct link_messages *messages, uint32_t link,
	const struct fabric_message *beside, vb_time from, vb_time until, uint64_t *bytes_of);

#endif
