/* Held posts: small requests that were posted while others are under way, and wait for the program's next poll to leave
 * together, as one datagram instead of one each. They leave sooner where they are enough for a train, and at the latest
 * when a thread drives the lane for another reason: because an acknowledgement of what is under way has come, or
 * because the progress thread looks whether the program still polls.
 *
 * A program that posts and then does something else would have its requests wait for nothing. So the time that the
 * newest had to wait is looked at: where it was too long, the next ones leave at once, and ever more of them while it
 * goes on like that.
 *
 * Source: J. Nagle, RFC 896, whose rule it is to let the first go and collect the rest. Threads: the lane's mutex. */
#ifndef VB_HOST_HELD_POSTS_H
#define VB_HOST_HELD_POSTS_H

#include <stdbool.h>
#include "base/time.h"

struct vb_held_posts {
	unsigned count; /* that wait */
	vb_time newest_at;
	bool were_there; /* since the progress thread looked for pollers */
	unsigned barred; /* so many more leave at once */
	unsigned bar;    /* so many were the last time, less for each since that went well */
};

/* True: one more may wait. False: it leaves at once, with all that wait. */
bool vb_held_posts_add(struct vb_held_posts *held_posts, vb_time now);
/* All leave. by_program: because the program polls or posts, else in its absence. */
void vb_held_posts_release(struct vb_held_posts *held_posts, bool by_program, vb_time now);

#endif
