/* The directories, files and links that are shown for the devices in /sys and /dev, in the kernel's layout. They are
 * stored nowhere: names and contents are made for each question. All paths here are canonical: absolute, without "."
 * and "..", and without links. */
#ifndef VB_PRELOAD_TREE_H
#define VB_PRELOAD_TREE_H

#include <stddef.h>
#include <stdint.h>
#include "host/host.h"

enum vb_kind { VB_ABSENT, VB_DIRECTORY, VB_FILE, VB_LINK, VB_CHARACTER_DEVICE };

#define VB_NODE_TEXT 512

struct vb_node {
	enum vb_kind kind;
	bool is_live;            /* a counter, whose value may change */
	char text[VB_NODE_TEXT]; /* the content of a file, the target of a link */
};

struct vb_tree {
	struct vb_device_info *devices;
	size_t count;
	/* The n-th live counter of an open device, as "hw_counters/sent_pkts"; NULL: there is none. */
	const char *(*counter)(const char *device, unsigned n, uint64_t *value);
	/* Writes the place of a device's interface on a bus; false: it is on none (loopback, veth). */
	bool (*hardware)(const struct vb_device_info *device, char *text, size_t size);
};

/* node->kind is VB_ABSENT if there is no such path. */
void vb_tree_find(const struct vb_tree *tree, const char *path, struct vb_node *node);

/* Calls each for every name in the directory. */
void vb_tree_list(const struct vb_tree *tree, const char *path,
	void (*each)(void *user, const char *name, enum vb_kind kind), void *user);

#endif
