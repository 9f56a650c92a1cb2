/* Where pauses come from, for runs that are to tell (fabric_config.tells_pauses): of each lossless class at the
 * receiving end of a link, how near to its threshold it came, and what was queued when who sends on it was paused. */
#ifndef FABRIC_STORIES_H
#define FABRIC_STORIES_H

#include "fabric/buffer.h"

/* Of a class of an ingress. */
struct story {
	struct fabric_pauses told;
	vb_time began; /* the pause that holds; told.until < began: one does */
	uint32_t cause_room;
};

int stories_open(struct fabric *fabric, struct ingress *ingress, uint32_t link); /* -ENOMEM */
void stories_close(struct ingress *ingress);

/* A packet that came by this link is queued; a pause for it may have become due. */
void story_on_queued(struct shard *shard, uint32_t in_link, uint8_t of_class);
void story_on_resume(struct shard *shard, struct ingress *ingress, uint8_t of_class);
int stories_say(struct fabric *fabric, struct fabric_result *result); /* -ENOMEM */

#endif
