/* Kinds of memory: how the bytes of a region are reached. Ordinary memory of this process is touched where it lies and
 * has no kind, so that it costs one branch; each other kind is a constant of operations, in a file of its own. Who
 * registers a region says which it is (vb_mr_config), so a kind need not live in the engine. */
#ifndef VB_CORE_MEMORY_KIND_H
#define VB_CORE_MEMORY_KIND_H

#include <stdbool.h>
#include <stdint.h>

/* at is the region's memory and an offset, whatever that means to the kind; the range lies inside the region, and is
 * not empty. Every operation is there. They are called with the lane, and must not wait. */
struct vb_memory_kind {
	uint32_t access; /* enum vb_access that a region of it may grant */
	/* Asked before every access: can these bytes be read, or written, now? */
	bool (*is_present)(const void *at, uint64_t length, bool for_writing);
	/* Where a port may read them until it is done with the packet. NULL: there are no bytes, only their number. */
	const void *(*load)(const void *at, uint32_t length);
	/* As vb_memory_store. */
	void (*store)(void *at, const uint8_t *from, uint32_t length, bool ends_message);
	/* On 8 aligned bytes; the value before. */
	uint64_t (*fetch_add)(void *at, uint64_t add);
	uint64_t (*compare_swap)(void *at, uint64_t compare, uint64_t swap);
};

extern const struct vb_memory_kind
	vb_memory_phantom; /* lengths only: what is stored is forgotten, and nothing is loaded */
/* Stores are forgotten, loads are zeros; no access but LOCAL_WRITE. */
extern const struct vb_memory_kind vb_memory_null;

/* Ordinary memory (memory_access.c), and for kinds that are it in part. */

/* An aligned 1, 2, 4 or 8 bytes are one store; when ends_message, the last bytes are stored last, with release:
 * programs poll them. */
void vb_memory_store(void *at, const uint8_t *from, uint32_t length, bool ends_message);
const void *vb_memory_load(const void *at, uint32_t length);
uint64_t vb_memory_fetch_add(void *at, uint64_t add);
uint64_t vb_memory_compare_swap(void *at, uint64_t compare, uint64_t swap);

#endif
