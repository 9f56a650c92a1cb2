/* What is shown: the directories, files and links that the devices have in /sys and /dev, as the kernel's own have
 * them. Nothing of it lies anywhere: names and contents are made when they are asked for.
 *
 * Paths are canonical here: absolute, without "." and "..", no link on the way. */
#ifndef VB_PRELOAD_TREE_H
#define VB_PRELOAD_TREE_H

#include <stddef.h>
#include <stdint.h>
#include "host/host.h"

enum vb_kind { VB_ABSENT, VB_DIRECTORY, VB_FILE, VB_LINK, VB_CHARACTER_DEVICE };

#define VB_NODE_TEXT 512

struct vb_node {
	enum vb_kind kind;
	bool is_live;            /* a counter: reading it again may say something else */
	char text[VB_NODE_TEXT]; /* a file's content, a link's target */
};

struct vb_tree {
	struct vb_device_info *devices;
	size_t count;
	/* The n-th live counter of an open device, as "hw_counters/sent_pkts"; NULL: no more, or none is known. */
	const char *(*counter)(const char *device, unsigned n, uint64_t *value);
	/* Where a device's interface lies on a bus, into text: false when it does not (loopback, veth). */
	bool (*hardware)(const struct vb_device_info *device, char *text, size_t size);
};

/* node->kind is VB_ABSENT when there is no such path. */
void vb_tree_find(const struct vb_tree *tree, const char *path, struct vb_node *node);

/* Calls each for every name in the directory. */
void vb_tree_list(const struct vb_tree *tree, const char *path,
	void (*each)(void *user, const char *name, enum vb_kind kind), void *user);

#endif
