/* How long riders had to wait, and who may be one. */
#include "host/riders.h"

#define RIDERS_MOST 64 /* in a batch */
#define BAR_LEAST   64
#define BAR_MOST    65536

/* A program that polls is back after a microsecond, unless another has its core. Whoever leaves in its absence was overtaken by the
 * acknowledgement, which takes that long without a program being slow. */
#define LATE_BY_PROGRAM (100 * VB_US)
#define LATE_IN_ABSENCE (20 * VB_US)

bool vb_riders_board(struct vb_riders *riders, vb_time now)
{
	if (riders->barred > 0) {
		riders->barred--;
		return false;
	}
	if (riders->count >= RIDERS_MOST)
		return false;
	if (riders->count++ == 0)
		riders->since = now;
	riders->were_there = true;
	return true;
}

void vb_riders_leave(struct vb_riders *riders, bool by_program, vb_time now)
{
	if (riders->count == 0)
		return;
	riders->count = 0;
	if (vb_time_since(riders->since, now) <= (by_program ? LATE_BY_PROGRAM : LATE_IN_ABSENCE)) {
		riders->bar /= 2;
		return;
	}
	riders->bar = riders->bar ? 2 * riders->bar : BAR_LEAST;
	if (riders->bar > BAR_MOST)
		riders->bar = BAR_MOST;
	riders->barred = riders->bar;
}
