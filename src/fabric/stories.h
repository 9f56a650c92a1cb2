/* The causes of pauses, for runs that ask for them (fabric_config.tells_pauses): for each lossless class at the
 * receiving end of a link, how near it came to its threshold, and what was queued when its sender was paused. */
#ifndef FABRIC_STORIES_H
#define FABRIC_STORIES_H

#include "fabric/buffer.h"

/* For one class of an ingress. */
struct story {
	struct fabric_pauses told;
	vb_time began; /* the current pause; told.until < began: there is one */
	uint32_t cause_room;
};

int stories_open(struct fabric *fabric, struct ingress *ingress, uint32_t link); /* -ENOMEM */
void stories_close(struct ingress *ingress);

/* A packet that came by this link is queued; a pause may have become due. */
void story_on_queued(struct shard *shard, uint32_t in_link, uint8_t of_class);
void story_on_resume(struct shard *shard, struct ingress *ingress, uint8_t of_class);
int stories_say(struct fabric *fabric, struct fabric_result *result); /* -ENOMEM */

#endif
