/* Intrusive doubly linked lists. A node that is in no list points at itself, so removing twice is harmless. */
#ifndef VB_BASE_LIST_H
#define VB_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct vb_list {
	struct vb_list *next, *prev;
};

#define vb_container_of(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

#define vb_list_for_each(node, head) for (struct vb_list *node = (head)->next; node != (head); node = node->next)

/* The body may remove node. */
#define vb_list_for_each_safe(node, head)                                                                              \
	for (struct vb_list *node = (head)->next, *node##_next = node->next; node != (head);                           \
		node = node##_next, node##_next = node->next)

static inline void vb_list_init(struct vb_list *list)
{
	list->next = list->prev = list;
}

static inline bool vb_list_empty(const struct vb_list *list)
{
	return list->next == list;
}

static inline bool vb_list_linked(const struct vb_list *node)
{
	return node->next != node;
}

static inline void vb_list_add_tail(struct vb_list *list, struct vb_list *node)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

static inline void vb_list_add_head(struct vb_list *list, struct vb_list *node)
{
	vb_list_add_tail(list->next, node);
}

static inline void vb_list_remove(struct vb_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	vb_list_init(node);
}

/* Moves all nodes of `from`, in their order, to the end of `list`. */
static inline void vb_list_splice_tail(struct vb_list *list, struct vb_list *from)
{
	if (vb_list_empty(from))
		return;
	from->next->prev = list->prev;
	list->prev->next = from->next;
	from->prev->next = list;
	list->prev = from->prev;
	vb_list_init(from);
}

/* Takes the first node out and returns it; NULL when the list is empty. */
static inline struct vb_list *vb_list_pop(struct vb_list *list)
{
	if (vb_list_empty(list))
		return NULL;
	struct vb_list *node = list->next;
	vb_list_remove(node);
	return node;
}

#endif
