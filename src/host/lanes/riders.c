/* How long riders had to wait, and which request may be one. */
#include "host/lanes/riders.h"

#include "base/invariant.h"
#include "host/lanes/timeouts.h"

#define RIDERS_MOST 64 /* in a batch */
#define BAR_LEAST   64
#define BAR_MOST    65536

bool vb_riders_board(struct vb_riders *riders, vb_time now)
{
	if (riders->barred > 0) {
		riders->barred--;
		return false;
	}
	if (riders->count >= RIDERS_MOST)
		return false;
	assert(riders->count == 0 || !vb_time_before(now, riders->newest_at));
	riders->count++;
	riders->newest_at = now;
	riders->were_there = true;
	assert(riders->count <= RIDERS_MOST && riders->barred == 0);
	return true;
}

void vb_riders_leave(struct vb_riders *riders, bool by_program, vb_time now)
{
	if (riders->count == 0)
		return;
	riders->count = 0;
	if (vb_time_since(riders->newest_at, now) <= (by_program ? VB_RIDER_LATE : VB_RIDER_LATE_ABSENT)) {
		riders->bar /= 2;
		return;
	}
	riders->bar = riders->bar ? 2 * riders->bar : BAR_LEAST;
	if (riders->bar > BAR_MOST)
		riders->bar = BAR_MOST;
	riders->barred = riders->bar;
	assert(riders->bar > 0 && riders->bar <= BAR_MOST);
}
