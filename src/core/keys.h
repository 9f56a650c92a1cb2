/* The table behind lkeys and rkeys, shared by keys.c, memory.c and memory_windows.c; nobody else looks inside.
 *
 * An entry is a lookup's cache line and, behind it, the object that the key names. Entries never move and are never
 * given back before the device goes, so a pointer to a dead region or window is stale, not wild.
 *
 * A key is 32 bits of a secret sequence (base/secret.h), of which the low 8 are the consumer's for a type-2 window, and
 * counted up for a type-1 window; so nothing but the key itself says what another one is. The low bits of the upper 24
 * are its place in an array that leads to the entry. A key whose place is taken is not given out: another one is drawn.
 * The array is never more than half full, and no search ever looks at a second place. One that doubles leaves every key
 * a place of its own; the old array stays for lookups that still read it.
 *
 * Lookups take no lock. The stamp holds the key (0: closed) and a count that moves with every opening and closing.
 * Terms are stored with release between two changes of the stamp and loaded with acquire between two looks at it: who
 * saw one word of new terms also sees that the stamp has moved. A changed stamp needs no second try: at some moment
 * between the two looks the key opened nothing, and that is the answer. */
#ifndef VB_CORE_KEYS_H
#define VB_CORE_KEYS_H

#include "core/memory.h"

/* Beside enum vb_access in an entry's granted bits. */
#define VB_GRANT_LKEY (1u << 30) /* a region's: work requests may name it too */

struct vb_mr {
	struct vb_pd *pd;
	uint32_t key;
	uint32_t windows; /* bound to it; under keys.lock */
	bool is_valid;    /* under keys.lock */
};

struct vb_mw {
	struct vb_pd *pd;
	struct vb_mr *mr;     /* bound to; NULL: unbound */
	struct vb_list link;  /* in keys.bound while a type-2 window is bound */
	_Atomic uint32_t key; /* as last bound, or as created */
	uint32_t qpn;         /* bound by; type 2 */
	uint8_t announced;    /* low byte of the last key that vb_mw_next_key gave out; type 1 */
	uint8_t type;
};

/* A work request may name a region or window that is gone, and whose entry is another's by now. */
enum vb_key_use { VB_KEY_FREE, VB_KEY_REGION, VB_KEY_WINDOW };

struct vb_key_entry {
	_Alignas(64) _Atomic uint64_t stamp; /* count << 32 | key */
	_Atomic uint64_t start;              /* the first byte's address in requests */
	_Atomic uint64_t length;
	uint8_t *_Atomic memory;
	const struct vb_memory_kind *_Atomic kind;
	const struct vb_pd *_Atomic pd;
	_Atomic uint32_t granted; /* enum vb_access, VB_GRANT_LKEY */
	_Atomic uint32_t qpn;     /* only through this QP; 0: any of the domain */
	uint32_t last_key; /* whose place leads here, also after it was closed; under keys.lock, as all that follows */
	enum vb_key_use use;
	union {
		struct vb_mr mr;
		struct vb_mw mw;
		struct { /* of the entry before a chunk's first */
			void *allocation;
			struct vb_key_entry *older_chunk;
			uint32_t count; /* of its entries */
		};
	};
	struct vb_key_entry *next_freed;
	_Atomic uint32_t segment; /* vb_mr_config's; read only when lending, so outside the first cache line */
};

_Static_assert(sizeof(struct vb_key_entry) == 128, "two cache lines an entry");

/* The access that an open key gives. */
struct vb_key_terms {
	const struct vb_pd *pd;
	uint64_t start, length;
	uint8_t *memory;
	const struct vb_memory_kind *kind;
	uint32_t granted, qpn, segment;
};

/* The functions of keys.c want the lock held. */

/* A closed entry, and a key for it that is not 0 or all ones, whatever becomes of its low byte. NULL: table full, or no
 * memory. */
struct vb_key_entry *vb_keys_take(struct vb_key_table *keys, enum vb_key_use use, uint32_t *key);
/* Back to the table, closed. */
void vb_keys_give(struct vb_key_table *keys, struct vb_key_entry *entry);
void vb_key_open(struct vb_key_entry *entry, uint32_t key, const struct vb_key_terms *terms);
void vb_key_close(struct vb_key_table *keys, struct vb_key_entry *entry);

void vb_keys_check(const struct vb_key_table *keys);

/* A region may begin at address zero, which is no array's: pageable memory, and what has no bytes. */
static inline uint8_t *vb_memory_at(uint8_t *memory, uint64_t offset)
{
	return (uint8_t *)((uintptr_t)memory + offset);
}

struct vb_key_places {
	uint32_t mask;
	struct vb_key_places *smaller; /* that it took the place of */
	struct vb_key_entry *_Atomic entries[];
};

/* The entry that the key would be of; NULL: of none. */
static inline struct vb_key_entry *vb_key_find(const struct vb_key_table *keys, uint32_t key)
{
	const struct vb_key_places *places = atomic_load_explicit(&keys->places, memory_order_acquire);
	return atomic_load_explicit(&places->entries[key >> 8 & places->mask], memory_order_acquire);
}

static inline struct vb_key_entry *vb_key_of_mr(struct vb_mr *mr)
{
	return vb_container_of(mr, struct vb_key_entry, mr);
}

static inline struct vb_key_entry *vb_key_of_mw(struct vb_mw *mw)
{
	return vb_container_of(mw, struct vb_key_entry, mw);
}

#endif
