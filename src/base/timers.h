/* Timers: a heap of the armed ones, for owners of many (QPs, connections). Moving a deadline later costs nothing: the
 * entry keeps its earlier key and goes back down when it comes up too soon. All other operations are O(log n). The
 * heap's room is reserved when its owners are made, so setting a timer never fails. */
#ifndef VB_BASE_TIMERS_H
#define VB_BASE_TIMERS_H

#include <stdint.h>
#include "base/time.h"

struct vb_timer {
	struct vb_deadline deadline; /* the true deadline; not set: idle */
	vb_time key;                 /* sorts the heap; never later than the deadline while that is set */
	int32_t index;               /* in the heap; -1: not in it */
};

struct vb_timers {
	struct vb_timer **heap;
	uint32_t count, room;
	vb_time first; /* the key at the top of the heap */
};

void vb_timers_init(struct vb_timers *timers);
void vb_timers_deinit(struct vb_timers *timers);
/* Makes room for this many timers in all; 0 or -ENOMEM. Setup only. */
int vb_timers_reserve(struct vb_timers *timers, uint32_t room);
void vb_timer_init(struct vb_timer *timer);
void vb_timer_set(struct vb_timers *timers, struct vb_timer *timer, vb_time at);
void vb_timer_cancel(struct vb_timer *timer);                           /* lazily: leaves the heap when it comes up */
void vb_timer_remove(struct vb_timers *timers, struct vb_timer *timer); /* at once */
/* heir takes timer's deadline and place in the heap; timer becomes idle. */
void vb_timer_replace(struct vb_timers *timers, struct vb_timer *timer, struct vb_timer *heir);
/* Takes out a timer that is due by now and returns it; NULL when none is. */
struct vb_timer *vb_timers_expire(struct vb_timers *timers, vb_time now);
/* When to look again; may be early, never late. O(1). */
static inline struct vb_deadline vb_timers_next(const struct vb_timers *timers)
{
	return (struct vb_deadline){ .at = timers->first, .is_set = timers->count > 0 };
}
void vb_timers_check(const struct vb_timers *timers); /* not valid after months without a call */

#endif
