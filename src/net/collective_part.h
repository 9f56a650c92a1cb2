/* A rank's part in a collective: which messages it sends when, by what has arrived. It remembers a few numbers, however
 * many messages there are. Ranks are places of the algorithm here, 0 to n - 1. */
#ifndef NET_COLLECTIVE_PART_H
#define NET_COLLECTIVE_PART_H

#include "net/collective_qps.h"
#include "net/collective_slots.h"

struct collective_part {
	uint64_t arrived;               /* of steps: as its algorithm waits */
	uint32_t sent, received, ended; /* messages */
	/* Of pipelines, by edge: pieces. */
	uint32_t edge_sent[COLLECTIVE_EDGES], edge_ended[COLLECTIVE_EDGES], edge_arrived[COLLECTIVE_EDGES];
	/* Slots of those that come that it has opened, and of those that it sends that were opened for it. */
	uint32_t edge_opens[COLLECTIVE_EDGES], edge_opened[COLLECTIVE_EDGES];
	/* Of each tree's sums in a switch: how many parts of the next few pieces have come. */
	uint16_t parts[2][COLLECTIVE_SLOTS];
	struct collective_cut_parts cut;
};

/* Sends all that may be sent. Called at the beginning, and after each arrival and end. */
void collective_part_go_on(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	struct collective_part *part, const struct collective_out *out);
/* A message has arrived, with the tag and `cut` of its sender. 1: all of its request is there; 0: it is not; -ENOMEM.
 */
int collective_part_arrived(const struct collective *of, const struct collective_algorithm *algorithm,
	struct collective_part *part, uint32_t tag, uint32_t cut);
/* One of its messages has ended at its sender. 1: others waited for that, perhaps; 0: none did; -ENOMEM. */
int collective_part_ended(const struct collective *of, const struct collective_algorithm *algorithm,
	struct collective_part *part, uint32_t tag, uint32_t cut);
/* It has sent and received all of its messages. */
bool collective_part_is_done(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place,
	const struct collective_part *part);
/* A part begins as zeros. */
void collective_part_close(struct collective_part *part);

#endif
