/* How long riders had to wait, and who may be one. */
#include "host/lanes/riders.h"

#define RIDERS_MOST 64 /* in a batch */
#define BAR_LEAST   64
#define BAR_MOST    65536

/* So long after the newest came the program must have been doing something else: who posts many has the next one ready,
 * and who polls is back after a microsecond, unless another has its core. In its absence they leave when the
 * acknowledgement of what went ahead has come, which may be soon, and with it somebody may wait for a flag that rides
 * behind its data. */
#define LATE_BY_PROGRAM (20 * VB_US)
#define LATE_IN_ABSENCE (5 * VB_US)

bool vb_riders_board(struct vb_riders *riders, vb_time now)
{
	if (riders->barred > 0) {
		riders->barred--;
		return false;
	}
	if (riders->count >= RIDERS_MOST)
		return false;
	riders->count++;
	riders->newest_at = now;
	riders->were_there = true;
	return true;
}

void vb_riders_leave(struct vb_riders *riders, bool by_program, vb_time now)
{
	if (riders->count == 0)
		return;
	riders->count = 0;
	if (vb_time_since(riders->newest_at, now) <= (by_program ? LATE_BY_PROGRAM : LATE_IN_ABSENCE)) {
		riders->bar /= 2;
		return;
	}
	riders->bar = riders->bar ? 2 * riders->bar : BAR_LEAST;
	if (riders->bar > BAR_MOST)
		riders->bar = BAR_MOST;
	riders->barred = riders->bar;
}
