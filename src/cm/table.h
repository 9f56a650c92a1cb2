/* Two small structures of the connection manager: a hash table with intrusive nodes, and a heap of timers. Neither ever
 * fails to take what its holder has reserved or, for the table, what it is given: a table that cannot grow gets longer
 * chains. */
#ifndef VB_CM_TABLE_H
#define VB_CM_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct vb_cm_node {
	struct vb_cm_node *next;
	uint64_t hash;
	bool is_linked;
};

struct vb_cm_table {
	struct vb_cm_node **buckets;
	uint32_t room, count;
};

int vb_cm_table_init(struct vb_cm_table *table); /* -ENOMEM */
void vb_cm_table_deinit(struct vb_cm_table *table);
void vb_cm_table_add(struct vb_cm_table *table, struct vb_cm_node *node, uint64_t hash);
/* Harmless when the node is not in it. */
void vb_cm_table_remove(struct vb_cm_table *table, struct vb_cm_node *node);
/* The first node of this hash, and the next one after a node; whether it is the one, the caller compares. */
struct vb_cm_node *vb_cm_table_find(const struct vb_cm_table *table, uint64_t hash);
struct vb_cm_node *vb_cm_table_next(const struct vb_cm_node *node);

struct vb_cm_timer {
	vb_time at;
	int32_t index; /* in the heap; -1: not armed */
};

struct vb_cm_timers {
	struct vb_cm_timer **heap;
	uint32_t count, room;
};

void vb_cm_timers_deinit(struct vb_cm_timers *timers);
/* Room for so many timers in all; -ENOMEM. */
int vb_cm_timers_reserve(struct vb_cm_timers *timers, uint32_t room);
void vb_cm_timer_init(struct vb_cm_timer *timer);
void vb_cm_timer_set(struct vb_cm_timers *timers, struct vb_cm_timer *timer, vb_time at);
void vb_cm_timer_cancel(struct vb_cm_timers *timers, struct vb_cm_timer *timer);
/* One that is due by now, no longer armed; NULL when none is. */
struct vb_cm_timer *vb_cm_timers_expire(struct vb_cm_timers *timers, vb_time now);
struct vb_deadline vb_cm_timers_next(const struct vb_cm_timers *timers);

#endif
