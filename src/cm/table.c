/* See table.h. A table doubles when it holds as many nodes as buckets, so that chains stay about one long. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "cm/table.h"

enum { FIRST_BUCKETS = 64, MAX_BUCKETS = 1 << 24 };

int vb_cm_table_init(struct vb_cm_table *table)
{
	*table = (struct vb_cm_table){ .room = FIRST_BUCKETS };
	table->buckets = calloc(FIRST_BUCKETS, sizeof(*table->buckets));
	return table->buckets ? 0 : -ENOMEM;
}

void vb_cm_table_deinit(struct vb_cm_table *table)
{
	free(table->buckets);
	*table = (struct vb_cm_table){ 0 };
}

static struct vb_cm_node **bucket_of(const struct vb_cm_table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->room - 1)];
}

static void put(struct vb_cm_table *table, struct vb_cm_node *node)
{
	struct vb_cm_node **bucket = bucket_of(table, node->hash);
	node->next = *bucket;
	*bucket = node;
}

static void grow(struct vb_cm_table *table)
{
	struct vb_cm_table old = *table;
	struct vb_cm_node **buckets = calloc((size_t)old.room * 2, sizeof(*buckets));
	if (!buckets)
		return;
	table->buckets = buckets;
	table->room *= 2;
	for (uint32_t i = 0; i < old.room; i++) {
		for (struct vb_cm_node *node = old.buckets[i], *next; node; node = next) {
			next = node->next;
			put(table, node);
		}
	}
	free(old.buckets);
}

void vb_cm_table_add(struct vb_cm_table *table, struct vb_cm_node *node, uint64_t hash)
{
	assert(!node->is_linked);
	if (table->count >= table->room && table->room < MAX_BUCKETS)
		grow(table);
	node->hash = hash;
	node->is_linked = true;
	put(table, node);
	table->count++;
}

void vb_cm_table_remove(struct vb_cm_table *table, struct vb_cm_node *node)
{
	if (!node->is_linked)
		return;
	assert(table->count > 0);
	struct vb_cm_node **at = bucket_of(table, node->hash);
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->is_linked = false;
	table->count--;
}

static struct vb_cm_node *first_of(struct vb_cm_node *node, uint64_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct vb_cm_node *vb_cm_table_find(const struct vb_cm_table *table, uint64_t hash)
{
	return first_of(*bucket_of(table, hash), hash);
}

struct vb_cm_node *vb_cm_table_next(const struct vb_cm_node *node)
{
	return first_of(node->next, node->hash);
}
