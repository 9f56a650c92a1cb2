/* Timers, for whoever has many: a heap of those that are armed, a QP's or a connection's. Moving a deadline later costs
 * nothing: the entry keeps its old, earlier key and is put back when it comes up too soon. All else is O(log n). The
 * heap's room is made when its owners are, so that setting a timer never fails. */
#ifndef VB_BASE_TIMERS_H
#define VB_BASE_TIMERS_H

#include <stdint.h>
#include "base/time.h"

struct vb_timer {
	struct vb_deadline deadline; /* when it is really due; not set: idle */
	vb_time key;                 /* what the heap is sorted by; never later than the deadline while it is set */
	int32_t index;               /* in the heap; -1: not in it */
};

struct vb_timers {
	struct vb_timer **heap;
	uint32_t count, room;
	vb_time first; /* the key at the top of the heap */
};

void vb_timers_init(struct vb_timers *timers);
void vb_timers_deinit(struct vb_timers *timers);
/* Room for so many timers in all; -ENOMEM. Setup only. */
int vb_timers_reserve(struct vb_timers *timers, uint32_t room);
void vb_timer_init(struct vb_timer *timer);
void vb_timer_set(struct vb_timers *timers, struct vb_timer *timer, vb_time at);
void vb_timer_cancel(struct vb_timer *timer);                           /* lazily: leaves the heap when it comes up */
void vb_timer_remove(struct vb_timers *timers, struct vb_timer *timer); /* at once */
/* heir is what timer was, and is where it was; timer is idle. */
void vb_timer_replace(struct vb_timers *timers, struct vb_timer *timer, struct vb_timer *heir);
/* A timer that is due by now, taken out; NULL when none is. */
struct vb_timer *vb_timers_expire(struct vb_timers *timers, vb_time now);
/* When to look again; may be early, never late. O(1). */
static inline struct vb_deadline vb_timers_next(const struct vb_timers *timers)
{
	return (struct vb_deadline){ .at = timers->first, .is_set = timers->count > 0 };
}
void vb_timers_check(const struct vb_timers *timers); /* unless nobody has called for months */

#endif
