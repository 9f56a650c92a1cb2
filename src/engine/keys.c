/* The key table: entries in chunks that come as they are needed, keys that do not return soon.
 * Holds: an index that was freed waits until at least half a chunk of others has gone out before it (as long as the
 * table can grow), and its next key differs from its last. What an entry is: keys.h. */
#include <errno.h>
#include <stdlib.h>
#include "engine/keys.h"

enum { NOT_USED_SOON = VB_KEYS_PER_CHUNK / 2, CACHE_LINE = 64 };

int vb_keys_init(struct vb_key_table *keys, uint64_t seed)
{
	*keys = (struct vb_key_table){ 0 };
	vb_lock_init(&keys->lock);
	vb_list_init(&keys->bound);
	vb_random_seed(&keys->random, seed);
	keys->scramble = vb_random_below(&keys->random, VB_KEYS_PER_CHUNK);
	return 0;
}

void vb_keys_deinit(struct vb_key_table *keys)
{
	for (uint32_t i = 0; i < VB_KEY_CHUNKS; i++) {
		struct vb_key_entry *chunk = atomic_load_explicit(&keys->chunks[i], memory_order_relaxed);
		if (chunk)
			free(chunk[-1].allocation);
	}
}

/* Zeroed pages are touched only when entries are used. One entry more keeps the allocation's address and leaves room to
 * align the rest. */
static struct vb_key_entry *allocate_chunk(void)
{
	void *allocation = calloc(VB_KEYS_PER_CHUNK + 2, sizeof(struct vb_key_entry));
	if (!allocation)
		return NULL;
	uintptr_t first = (uintptr_t)allocation + sizeof(struct vb_key_entry);
	struct vb_key_entry *chunk = (void *)((first + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
	chunk[-1].allocation = allocation;
	return chunk;
}

static bool grow(struct vb_key_table *keys)
{
	if (keys->room == VB_MAX_KEYS)
		return false;
	struct vb_key_entry *chunk = allocate_chunk();
	if (!chunk)
		return false;
	atomic_store_explicit(&keys->chunks[keys->room / VB_KEYS_PER_CHUNK], chunk, memory_order_release);
	keys->room += VB_KEYS_PER_CHUNK;
	return true;
}

static struct vb_key_entry *entry_at(const struct vb_key_table *keys, uint32_t index)
{
	return vb_key_find(keys, index << 8);
}

static struct vb_key_entry *take_fresh(struct vb_key_table *keys)
{
	uint32_t index = keys->fresh++ ^ keys->scramble;
	struct vb_key_entry *entry = entry_at(keys, index);
	entry->index = index;
	return entry;
}

static struct vb_key_entry *take_freed(struct vb_key_table *keys)
{
	struct vb_key_entry *entry = entry_at(keys, keys->freed_head);
	keys->freed_head = entry->next_freed;
	keys->freed--;
	return entry;
}

static struct vb_key_entry *take_entry(struct vb_key_table *keys)
{
	if (keys->freed > NOT_USED_SOON)
		return take_freed(keys);
	if (keys->fresh < keys->room || grow(keys))
		return take_fresh(keys);
	return keys->freed > 0 ? take_freed(keys) : NULL;
}

static uint32_t draw_key(struct vb_key_table *keys, const struct vb_key_entry *entry)
{
	for (;;) {
		uint32_t bits = (uint32_t)vb_random_u64(&keys->random);
		uint32_t key = (bits & 0xF00000FF) | entry->index << 8, upper = key >> 8;
		if (upper != 0 && upper != 0xFFFFFF && key != entry->last_key)
			return key;
	}
}

struct vb_key_entry *vb_keys_take(struct vb_key_table *keys, enum vb_key_use use, uint32_t *key)
{
	struct vb_key_entry *entry = take_entry(keys);
	if (!entry)
		return NULL;
	entry->use = use;
	*key = entry->last_key = draw_key(keys, entry);
	return entry;
}

void vb_keys_give(struct vb_key_table *keys, struct vb_key_entry *entry)
{
	entry->use = VB_KEY_FREE;
	if (keys->freed++ == 0)
		keys->freed_head = entry->index;
	else
		entry_at(keys, keys->freed_tail)->next_freed = entry->index;
	keys->freed_tail = entry->index;
}

static uint64_t next_stamp(const struct vb_key_entry *entry, uint32_t key)
{
	uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_relaxed);
	return ((stamp >> 32) + 1) << 32 | key;
}

void vb_key_open(struct vb_key_entry *entry, uint32_t key, const struct vb_key_terms *terms)
{
	atomic_store_explicit(&entry->start, terms->start, memory_order_release);
	atomic_store_explicit(&entry->length, terms->length, memory_order_release);
	atomic_store_explicit(&entry->memory, terms->memory, memory_order_release);
	atomic_store_explicit(&entry->pd, terms->pd, memory_order_release);
	atomic_store_explicit(&entry->granted, terms->granted, memory_order_release);
	atomic_store_explicit(&entry->qpn, terms->qpn, memory_order_release);
	atomic_store_explicit(&entry->stamp, next_stamp(entry, key), memory_order_release);
}

void vb_key_close(struct vb_key_entry *entry)
{
	atomic_store_explicit(&entry->stamp, next_stamp(entry, 0), memory_order_release);
}
