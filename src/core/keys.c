/* The key table: entries in chunks that come as they are needed, keys that do not return soon.
 * Holds: an entry that was freed waits until at least 512 others have gone out before it (as long as the table can
 * grow), and until then no other key gets its key's place; places are at least twice as many as entries. What
 * an entry is, and what a key tells: keys.h. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "core/keys.h"
#include "core/epochs.h"

enum { NOT_USED_SOON = 512, CACHE_LINE = 64, FIRST_CHUNK = 8, FIRST_PLACES = 2 * FIRST_CHUNK };

static struct vb_key_places *make_places(uint32_t count)
{
	struct vb_key_places *places = calloc(1, sizeof(*places) + count * sizeof(places->entries[0]));
	if (places)
		places->mask = count - 1;
	return places;
}

int vb_keys_init(struct vb_key_table *keys, uint64_t seed, uint64_t seed_high)
{
	*keys = (struct vb_key_table){ .secret.key = { seed, seed_high } };
	vb_lock_init(&keys->lock);
	vb_list_init(&keys->bound);
	struct vb_key_places *places = make_places(FIRST_PLACES);
	atomic_init(&keys->places, places);
	return places ? 0 : -ENOMEM;
}

void vb_keys_deinit(struct vb_key_table *keys)
{
	struct vb_key_places *places = atomic_load_explicit(&keys->places, memory_order_relaxed);
	for (struct vb_key_places *smaller; places; places = smaller) {
		smaller = places->smaller;
		free(places);
	}
	for (struct vb_key_entry *chunk = keys->chunks, *older; chunk; chunk = older) {
		older = chunk[-1].older_chunk;
		free(chunk[-1].allocation);
	}
}

/* Zeroed pages are touched only when entries are used. One entry more keeps the allocation's address and leaves room to
 * align the rest. */
static struct vb_key_entry *allocate_chunk(uint32_t count)
{
	void *allocation = calloc(count + 2, sizeof(struct vb_key_entry));
	if (!allocation)
		return NULL;
	uintptr_t first = (uintptr_t)allocation + sizeof(struct vb_key_entry);
	struct vb_key_entry *chunk = (void *)((first + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
	chunk[-1].allocation = allocation;
	chunk[-1].count = count;
	return chunk;
}

/* Twice the places. Two keys that had different places have different ones again. */
static bool double_places(struct vb_key_table *keys)
{
	struct vb_key_places *old = atomic_load_explicit(&keys->places, memory_order_relaxed);
	struct vb_key_places *new = make_places(2 * (old->mask + 1));
	if (!new)
		return false;
	new->smaller = old;
	for (uint32_t i = 0; i <= old->mask; i++) {
		struct vb_key_entry *entry = atomic_load_explicit(&old->entries[i], memory_order_relaxed);
		if (entry)
			atomic_init(&new->entries[entry->last_key >> 8 & new->mask], entry);
	}
	atomic_store_explicit(&keys->places, new, memory_order_release);
	return true;
}

/* As many as there are, within bounds. */
static uint32_t next_chunk(const struct vb_key_table *keys)
{
	uint32_t count = keys->room > FIRST_CHUNK ? keys->room : FIRST_CHUNK;
	return count < VB_KEYS_PER_CHUNK ? count : VB_KEYS_PER_CHUNK;
}

static bool grow(struct vb_key_table *keys)
{
	const struct vb_key_places *places = atomic_load_explicit(&keys->places, memory_order_relaxed);
	uint32_t count = next_chunk(keys);
	if (keys->room == VB_MAX_KEYS)
		return false;
	if (2 * (keys->room + count) > places->mask + 1 && !double_places(keys))
		return false;
	struct vb_key_entry *chunk = allocate_chunk(count);
	if (!chunk)
		return false;
	chunk[-1].older_chunk = keys->chunks;
	keys->chunks = chunk;
	keys->fresh = count;
	keys->room += count;
	return true;
}

static struct vb_key_entry *_Atomic *place_of(const struct vb_key_table *keys, uint32_t key)
{
	struct vb_key_places *places = atomic_load_explicit(&keys->places, memory_order_relaxed);
	return &places->entries[key >> 8 & places->mask];
}

static struct vb_key_entry *take_fresh(struct vb_key_table *keys)
{
	return &keys->chunks[--keys->fresh];
}

/* Its last key's place is free from now on. */
static struct vb_key_entry *take_freed(struct vb_key_table *keys)
{
	struct vb_key_entry *entry = keys->freed_head;
	keys->freed_head = entry->next_freed;
	keys->freed--;
	struct vb_key_entry *_Atomic *place = place_of(keys, entry->last_key);
	assert(entry->use == VB_KEY_FREE && atomic_load_explicit(place, memory_order_relaxed) == entry);
	atomic_store_explicit(place, NULL, memory_order_relaxed);
	return entry;
}

static struct vb_key_entry *take_entry(struct vb_key_table *keys)
{
	if (keys->freed > NOT_USED_SOON)
		return take_freed(keys);
	if (keys->fresh > 0 || grow(keys))
		return take_fresh(keys);
	return keys->freed > 0 ? take_freed(keys) : NULL;
}

static uint32_t draw_key(struct vb_key_table *keys, uint32_t last_key)
{
	for (;;) {
		uint32_t key = (uint32_t)vb_secret_next(&keys->secret), upper = key >> 8;
		if (upper != 0 && upper != 0xFFFFFF && key != last_key &&
			!atomic_load_explicit(place_of(keys, key), memory_order_relaxed))
			return key;
	}
}

struct vb_key_entry *vb_keys_take(struct vb_key_table *keys, enum vb_key_use use, uint32_t *key)
{
	struct vb_key_entry *entry = take_entry(keys);
	if (!entry)
		return NULL;
	entry->use = use;
	*key = entry->last_key = draw_key(keys, entry->last_key);
	atomic_store_explicit(place_of(keys, *key), entry, memory_order_release);
	assert(vb_key_find(keys, *key) == entry);
	return entry;
}

void vb_keys_give(struct vb_key_table *keys, struct vb_key_entry *entry)
{
	assert(entry->use != VB_KEY_FREE);
	entry->use = VB_KEY_FREE;
	if (keys->freed++ == 0)
		keys->freed_head = entry;
	else
		keys->freed_tail->next_freed = entry;
	keys->freed_tail = entry;
}

static uint64_t next_stamp(const struct vb_key_entry *entry, uint32_t key)
{
	uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_relaxed);
	return ((stamp >> 32) + 1) << 32 | key;
}

void vb_key_open(struct vb_key_entry *entry, uint32_t key, const struct vb_key_terms *terms)
{
	assert(key != 0);
	atomic_store_explicit(&entry->start, terms->start, memory_order_release);
	atomic_store_explicit(&entry->length, terms->length, memory_order_release);
	atomic_store_explicit(&entry->memory, terms->memory, memory_order_release);
	atomic_store_explicit(&entry->kind, terms->kind, memory_order_release);
	atomic_store_explicit(&entry->pd, terms->pd, memory_order_release);
	atomic_store_explicit(&entry->granted, terms->granted, memory_order_release);
	atomic_store_explicit(&entry->qpn, terms->qpn, memory_order_release);
	atomic_store_explicit(&entry->segment, terms->segment, memory_order_release);
	atomic_store_explicit(&entry->stamp, next_stamp(entry, key), memory_order_release);
}

/* First it opens nothing, then that is counted: whoever finds it open has read a count that this one is not in. */
void vb_key_close(struct vb_key_table *keys, struct vb_key_entry *entry)
{
	uint32_t key = (uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed);
	atomic_store_explicit(&entry->stamp, next_stamp(entry, 0), memory_order_release);
	if (keys->epochs) {
		atomic_fetch_add(&keys->epochs->removals[vb_epochs_place(key)], 1);
		atomic_thread_fence(memory_order_seq_cst); /* before any byte of it is another */
	}
	assert((uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed) == 0);
}

static void check_region(const struct vb_mr *mr)
{
	const struct vb_key_entry *entry = vb_key_of_mr((struct vb_mr *)mr);
	uint32_t key = (uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed);
	assert(key == (mr->is_valid ? mr->key : 0));
	assert(mr->is_valid || mr->windows == 0);
}

static void check_window(const struct vb_mw *mw)
{
	const struct vb_key_entry *entry = vb_key_of_mw((struct vb_mw *)mw);
	uint32_t key = (uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed);
	assert(key == (mw->mr ? atomic_load_explicit(&mw->key, memory_order_relaxed) : 0));
	assert(!mw->mr || (mw->mr->is_valid && mw->mr->windows > 0 && mw->mr->pd == mw->pd));
	assert(vb_list_linked(&mw->link) == (mw->type == 2 && mw->mr));
}

static uint32_t check_chunk(const struct vb_key_table *keys, const struct vb_key_entry *chunk, uint32_t from)
{
	uint32_t freed = 0;
	for (uint32_t i = from; i < chunk[-1].count; i++) {
		const struct vb_key_entry *entry = &chunk[i];
		uint32_t key = (uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed);
		assert(vb_key_find(keys, entry->last_key) == entry);
		assert(key == 0 || (entry->use != VB_KEY_FREE && key >> 8 == entry->last_key >> 8));
		freed += entry->use == VB_KEY_FREE;
		if (entry->use == VB_KEY_WINDOW)
			check_window(&entry->mw);
		else if (entry->use == VB_KEY_REGION)
			check_region(&entry->mr);
	}
	return freed;
}

void vb_keys_check(const struct vb_key_table *keys)
{
	uint32_t freed = 0, room = 0, bound = 0, windows = 0;
	for (const struct vb_key_entry *chunk = keys->chunks; chunk; chunk = chunk[-1].older_chunk) {
		freed += check_chunk(keys, chunk, room == 0 ? keys->fresh : 0);
		room += chunk[-1].count;
	}
	assert(room == keys->room && freed == keys->freed);
	assert(2 * room <= atomic_load_explicit(&keys->places, memory_order_relaxed)->mask + 1);
	for (const struct vb_key_entry *entry = keys->freed_head; freed > 0; entry = entry->next_freed, freed--)
		assert(entry->use == VB_KEY_FREE);
	vb_list_for_each (node, &keys->bound)
		bound++;
	for (const struct vb_key_entry *chunk = keys->chunks; chunk; chunk = chunk[-1].older_chunk)
		for (uint32_t i = 0; i < chunk[-1].count; i++)
			windows += chunk[i].use == VB_KEY_WINDOW && chunk[i].mw.type == 2 && chunk[i].mw.mr;
	assert(bound == windows);
}
