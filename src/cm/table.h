/* The connection manager's hash table, with intrusive nodes. Adding a node never fails: a table that cannot grow gets
 * longer chains. */
#ifndef VB_CM_TABLE_H
#define VB_CM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

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
/* The first node with this hash, and the next one after a node; the caller compares the keys. */
struct vb_cm_node *vb_cm_table_find(const struct vb_cm_table *table, uint64_t hash);
struct vb_cm_node *vb_cm_table_next(const struct vb_cm_node *node);

#endif
