/* How long held posts had to wait, and which request may be one. */
#include "host/lanes/held_posts.h"

#include "base/invariant.h"
#include "host/lanes/timeouts.h"

#define HELD_MOST 64 /* in a batch */
#define BAR_LEAST 64
#define BAR_MOST  65536

bool vb_held_posts_add(struct vb_held_posts *held_posts, vb_time now)
{
	if (held_posts->barred > 0) {
		held_posts->barred--;
		return false;
	}
	if (held_posts->count >= HELD_MOST)
		return false;
	assert(held_posts->count == 0 || !vb_time_before(now, held_posts->newest_at));
	held_posts->count++;
	held_posts->newest_at = now;
	held_posts->were_there = true;
	assert(held_posts->count <= HELD_MOST && held_posts->barred == 0);
	return true;
}

void vb_held_posts_release(struct vb_held_posts *held_posts, bool by_program, vb_time now)
{
	if (held_posts->count == 0)
		return;
	held_posts->count = 0;
	if (vb_time_since(held_posts->newest_at, now) <= (by_program ? VB_HELD_LATE : VB_HELD_LATE_ABSENT)) {
		held_posts->bar /= 2;
		return;
	}
	held_posts->bar = held_posts->bar ? 2 * held_posts->bar : BAR_LEAST;
	if (held_posts->bar > BAR_MOST)
		held_posts->bar = BAR_MOST;
	held_posts->barred = held_posts->bar;
	assert(held_posts->bar > 0 && held_posts->bar <= BAR_MOST);
}
