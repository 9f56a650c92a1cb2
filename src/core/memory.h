/* Keys and the memory they open: protection domains, regions, windows. Lookups take no lock (see vb_mr_invalidate). */
#ifndef VB_CORE_MEMORY_H
#define VB_CORE_MEMORY_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/lock.h"
#include "base/secret.h"
#include "core/memory_kind.h"
#include "core/objects.h"

#define VB_KEYS_PER_CHUNK 1024 /* at most: the first chunks are small */

/* The object that a key names: keys.h. */
struct vb_key_entry;
struct vb_key_places;

struct vb_key_table {
	struct vb_key_places *_Atomic places; /* by key; what follows is for who holds the lock, as no lookup does */
	struct vb_lock lock;
	struct vb_secret secret;
	struct vb_key_entry *chunks; /* the newest first; of its entries the first fresh ones were never used */
	uint32_t fresh, room;        /* room: entries that there are */
	uint32_t freed;
	struct vb_key_entry *freed_head, *freed_tail; /* a FIFO: the longest free is used again first */
	struct vb_list bound;                         /* type-2 windows that are bound */
	struct vb_epochs *epochs;                     /* where removals are counted; or NULL */
};

/* XRC SRQs by number: 8 bits that change with every use of an entry, 16 of index. xrc.c */
#define VB_SRQS_PER_CHUNK 256
#define VB_SRQ_CHUNKS     256

struct vb_srq_slot {
	struct vb_srq *_Atomic srq;
	uint8_t generation; /* under the table's lock */
};

struct vb_srq_table {
	struct vb_lock lock;                         /* coming and going; never a lookup */
	struct vb_srq_slot *_Atomic *_Atomic chunks; /* VB_SRQ_CHUNKS of them, from the first SRQ on */
	uint32_t next, used;
};

struct vb_nic {
	struct vb_nic_config config;
	_Atomic uint32_t mtu, large_mtu;
	struct vb_key_table keys;
	struct vb_lock lock;                   /* gids */
	_Atomic uint64_t gids[VB_MAX_GIDS][2]; /* read without the lock: nic.c */
	atomic_uint gid_generation;            /* odd while one changes */
	struct vb_srq_table xrc_srqs;
};

void vb_nic_check(const struct vb_nic *nic); /* O(keys ever used) */
/* Is this an address of the device? [any] */
bool vb_nic_has_gid(const struct vb_nic *nic, const struct vb_gid *gid);

struct vb_pd {
	struct vb_nic *nic;
	atomic_uint users; /* MRs, MWs, QPs, SRQs */
};

struct vb_xrcd {
	struct vb_pd nowhere; /* no key opens anything in it: the domain of a QP whose SRQ is not named, or is gone */
	atomic_uint srqs;
	struct vb_lock lock; /* qps */
	struct vb_list qps;
};

/* Where a checked range of memory lies, in its kind's terms. bytes is NULL for zero length. */
struct vb_reach {
	uint8_t *bytes;
	const struct vb_memory_kind *kind; /* NULL: ordinary memory */
	const _Atomic uint64_t *stamp;     /* moves when its key is closed or opened (keys.h); NULL for zero length */
	uint64_t seen;                     /* of it */
};

/* The ordinary memory that a key was found to open, remembered for programs that name one key again and again, as most
 * programs do; worth as long as the key's stamp stays. Zeroed: nothing is known. */
struct vb_known_key {
	const _Atomic uint64_t *stamp;
	uint64_t seen; /* of it: the key is in there */
	const struct vb_pd *pd;
	uint64_t start, length;
	uint8_t *memory;
	uint32_t granted;
	uint32_t asked; /* the key that was asked for last: one that is asked for twice is worth knowing */
};

int vb_keys_init(struct vb_key_table *keys, uint64_t seed, uint64_t seed_high); /* -ENOMEM */
void vb_keys_deinit(struct vb_key_table *keys);

/* A work request's scatter/gather entry: lkey of pd, [addr, addr + length) inside, every bit of access granted (reading
 * needs none). Zero length reaches nothing and needs no key. Windows have no lkey. -EACCES otherwise. */
int vb_reach_local(const struct vb_pd *pd, const struct vb_sge *sge, uint32_t offset, uint32_t length, uint32_t access,
	struct vb_reach *reach);
/* The same with what is known of its key. */
int vb_reach_local_known(const struct vb_pd *pd, struct vb_known_key *known, const struct vb_sge *sge, uint32_t offset,
	uint32_t length, uint32_t access, struct vb_reach *reach);
/* All of an entry, for reading: its parts are for vb_reach_part, which asks whether they are present. */
int vb_reach_whole(const struct vb_pd *pd, const struct vb_sge *sge, struct vb_reach *reach);
/* The peer's rkey through a QP: region of the QP's domain, or a bound window (type 1: of the domain; type 2B: of the
 * domain and bound by this very QP). -EACCES otherwise. */
int vb_reach_remote(const struct vb_pd *pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint32_t length, uint32_t access,
	struct vb_reach *reach);
int vb_reach_remote_known(const struct vb_pd *pd, struct vb_known_key *known, uint32_t qpn, uint32_t rkey, uint64_t va,
	uint32_t length, uint32_t access, struct vb_reach *reach);

/* The segment in which it lies, or 0. If the key was closed meanwhile it may be a wrong one: its user checks that the
 * range lies in the segment. */
uint32_t vb_reach_segment(const struct vb_reach *reach);

/* A part of a range that was reached before, at the price of one look at its key. False: the key, or the memory, is
 * not what it was then, and the part is to be reached by itself. */
static inline bool vb_reach_part(
	const struct vb_reach *whole, uint32_t offset, uint32_t length, bool for_writing, struct vb_reach *part)
{
	if (!whole->stamp || atomic_load_explicit(whole->stamp, memory_order_acquire) != whole->seen)
		return false;
	part->bytes = (uint8_t *)((uintptr_t)whole->bytes + offset); /* as vb_memory_at */
	part->kind = whole->kind;
	part->stamp = NULL;
	return !whole->kind || whole->kind->is_present(part->bytes, length, for_writing);
}

/* Puts payload in its place: vb_memory_store. payload NULL (phantom) puts nothing. */
static inline void vb_place(const struct vb_reach *reach, const uint8_t *payload, uint32_t length, bool ends_message)
{
	if (!payload || length == 0)
		return;
	if (__builtin_expect(reach->kind != NULL, false))
		reach->kind->store(reach->bytes, payload, length, ends_message);
	else
		vb_memory_store(reach->bytes, payload, length, ends_message);
}

/* Where a port may read the length bytes until it is done with the packet; NULL: of memory without bytes. */
static inline const void *vb_load(const struct vb_reach *reach, uint32_t length)
{
	return __builtin_expect(reach->kind != NULL, false) ? reach->kind->load(reach->bytes, length) : reach->bytes;
}

/* On 8 aligned bytes; the value before. */
static inline uint64_t vb_fetch_add(const struct vb_reach *reach, uint64_t add)
{
	return (reach->kind ? reach->kind->fetch_add : vb_memory_fetch_add)(reach->bytes, add);
}

static inline uint64_t vb_compare_swap(const struct vb_reach *reach, uint64_t compare, uint64_t swap)
{
	return (reach->kind ? reach->kind->compare_swap : vb_memory_compare_swap)(reach->bytes, compare, swap);
}

/* scatter.c: copies payload to [offset ..) of what the SGEs name, by what is known of their keys. False: one of them
 * does not allow it. */
bool vb_scatter(const struct vb_pd *pd, struct vb_known_key *known, const struct vb_sge *sges, uint32_t count,
	uint32_t offset, const uint8_t *payload, uint32_t length, bool ends_message);
/* Where they would go, for a caller that puts them there itself: adds to iov, at most an entry for each SGE. False: one
 * of them does not allow it, or is no ordinary memory. */
bool vb_scatter_places(const struct vb_pd *pd, const struct vb_sge *sges, uint32_t count, uint32_t offset,
	uint32_t length, struct vb_iov *iov, unsigned *iov_count);

/* BIND_MW of a send queue. type-1 windows: only when is_type1_verb allowed by their type; rules in nic.h and IBA vol.
 * 1, 10.6.7. length 0 unbinds (type 1). -EINVAL or -EACCES: refused (MW_BIND_ERR). */
int vb_mw_bind(struct vb_mw *mw, struct vb_mr *mr, const struct vb_pd *pd, uint32_t qpn, uint64_t addr, uint64_t length,
	uint32_t access, uint32_t new_key);
/* LOCAL_INV and SEND with invalidate: only a bound type-2 window of this domain and QP. -EACCES otherwise. */
int vb_key_invalidate(const struct vb_pd *pd, uint32_t qpn, uint32_t rkey);
/* A QP is gone: its type-2 windows are unbound. O(windows of the device), setup only. */
void vb_mw_unbind_qp(struct vb_nic *nic, uint32_t qpn);

#endif
