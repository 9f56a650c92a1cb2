/* Memory regions: who may reach what of application memory.
 * Holds: a range that is handed out lay wholly inside an open region or window of the right domain, which granted the
 * access, at one moment during the lookup; after vb_mr_invalidate no lookup finds the region.
 * Not here: memory windows (memory_windows.c), the table itself (keys.c), how bytes land (memory_access.c). IBA vol. 1,
 * 10.6 and 9.4.1. */
#include <errno.h>
#include "base/invariant.h"
#include "core/keys.h"

#define REGION_ACCESS                                                                                                  \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC |            \
		VB_ACCESS_MW_BIND | VB_ACCESS_ZERO_BASED | VB_ACCESS_FLUSH_GLOBAL)

/* ---- Regions ----------------------------------------------------------------------------------------------------- */

static bool wraps(uint64_t start, uint64_t length)
{
	return length > 0 && start + (length - 1) < start;
}

static int check_config(const struct vb_mr_config *config)
{
	if (config->access & ~(uint32_t)REGION_ACCESS)
		return -EINVAL;
	if ((config->access & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC)) &&
		!(config->access & VB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (wraps(config->iova, config->length))
		return -EINVAL;
	if (config->kind ? config->access & ~config->kind->access : !config->memory && config->length > 0)
		return -EINVAL;
	return wraps((uintptr_t)config->memory, config->length) ? -EINVAL : 0;
}

static void open_region(struct vb_mr *mr, const struct vb_mr_config *config)
{
	struct vb_key_terms terms = {
		.pd = mr->pd,
		.start = config->iova,
		.length = config->length,
		.memory = config->memory,
		.kind = config->kind,
		.granted = config->access | VB_GRANT_LKEY,
		.segment = config->segment,
	};
	assert(!mr->is_valid);
	vb_key_open(vb_key_of_mr(mr), mr->key, &terms);
	mr->is_valid = true;
}

int vb_mr_register(struct vb_pd *pd, const struct vb_mr_config *config, struct vb_mr **mr)
{
	int error = check_config(config);
	if (error)
		return error;
	struct vb_key_table *keys = &pd->nic->keys;
	uint32_t key;
	vb_lock_take(&keys->lock);
	struct vb_key_entry *entry = vb_keys_take(keys, VB_KEY_REGION, &key);
	if (entry) {
		entry->mr = (struct vb_mr){ .pd = pd, .key = key };
		open_region(&entry->mr, config);
	}
	vb_lock_release(&keys->lock);
	if (!entry)
		return -ENOMEM;
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	*mr = &entry->mr;
	return 0;
}

uint32_t vb_mr_key(const struct vb_mr *mr)
{
	return mr->key;
}

int vb_mr_invalidate(struct vb_mr *mr)
{
	struct vb_key_table *keys = &mr->pd->nic->keys;
	vb_lock_take(&keys->lock);
	bool is_bound = mr->windows > 0;
	if (!is_bound && mr->is_valid) {
		vb_key_close(keys, vb_key_of_mr(mr));
		mr->is_valid = false;
	}
	vb_lock_release(&keys->lock);
	return is_bound ? -EBUSY : 0;
}

void vb_mr_free(struct vb_mr *mr)
{
	struct vb_pd *pd = mr->pd;
	struct vb_key_table *keys = &pd->nic->keys;
	vb_lock_take(&keys->lock);
	assert(!mr->is_valid && mr->windows == 0);
	vb_keys_give(keys, vb_key_of_mr(mr));
	vb_lock_release(&keys->lock);
	atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
}

int vb_mr_revalidate(struct vb_mr *mr, struct vb_pd *pd, const struct vb_mr_config *config)
{
	int error = check_config(config);
	if (error)
		return error;
	struct vb_pd *old = mr->pd;
	if (pd && pd != old) {
		atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
		mr->pd = pd;
		atomic_fetch_sub_explicit(&old->users, 1, memory_order_release);
	}
	struct vb_key_table *keys = &mr->pd->nic->keys;
	vb_lock_take(&keys->lock);
	assert(!mr->is_valid);
	open_region(mr, config);
	vb_lock_release(&keys->lock);
	assert(mr->is_valid);
	return 0;
}

/* ---- Lookups ----------------------------------------------------------------------------------------------------- */

/* Beside enum vb_access and VB_GRANT_*: whether it is present is asked later. */
#define PRESENT_OR_NOT (1u << 31)

static bool is_present(const struct vb_memory_kind *kind, const uint8_t *bytes, uint32_t length, uint32_t needed)
{
	const uint32_t writing = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC;
	return length == 0 || (needed & PRESENT_OR_NOT) || kind->is_present(bytes, length, needed & writing);
}

/* [va, va + length) under key, with every bit of needed granted, through the QP of that number. */
static int reach_through(const struct vb_pd *pd, uint32_t qpn, uint32_t key, uint64_t va, uint32_t length,
	uint32_t needed, struct vb_reach *reach)
{
	const struct vb_key_entry *entry = vb_key_find(&pd->nic->keys, key);
	if (!entry || key == 0)
		return -EACCES;
	uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire);
	if ((uint32_t)stamp != key)
		return -EACCES;
	/* Refused by terms that were changing means refused: at that moment the key opened nothing. */
	uint64_t offset = va - atomic_load_explicit(&entry->start, memory_order_acquire);
	uint64_t size = atomic_load_explicit(&entry->length, memory_order_acquire);
	if (offset > size || length > size - offset)
		return -EACCES;
	uint32_t granted = atomic_load_explicit(&entry->granted, memory_order_acquire);
	uint32_t only_qpn = atomic_load_explicit(&entry->qpn, memory_order_acquire);
	if (needed & ~granted & ~PRESENT_OR_NOT || (only_qpn != 0 && only_qpn != qpn))
		return -EACCES;
	if (atomic_load_explicit(&entry->pd, memory_order_acquire) != pd)
		return -EACCES;
	uint8_t *memory = atomic_load_explicit(&entry->memory, memory_order_acquire);
	const struct vb_memory_kind *kind = atomic_load_explicit(&entry->kind, memory_order_acquire);
	if (atomic_load_explicit(&entry->stamp, memory_order_relaxed) != stamp)
		return -EACCES;
	uint8_t *bytes = length > 0 ? vb_memory_at(memory, offset) : NULL;
	if (__builtin_expect(kind != NULL, false) && !is_present(kind, bytes, length, needed))
		return -EACCES;
	reach->bytes = bytes;
	reach->kind = kind;
	reach->stamp = length > 0 ? &entry->stamp : NULL;
	reach->seen = stamp;
	return 0;
}

int vb_reach_local(const struct vb_pd *pd, const struct vb_sge *sge, uint32_t offset, uint32_t length, uint32_t access,
	struct vb_reach *reach)
{
	if (length == 0) {
		*reach = (struct vb_reach){ .bytes = NULL };
		return 0;
	}
	if (sge->addr + offset < sge->addr)
		return -EACCES;
	return reach_through(pd, 0, sge->lkey, sge->addr + offset, length, access | VB_GRANT_LKEY, reach);
}

int vb_reach_whole(const struct vb_pd *pd, const struct vb_sge *sge, struct vb_reach *reach)
{
	return reach_through(pd, 0, sge->lkey, sge->addr, sge->length, VB_GRANT_LKEY | PRESENT_OR_NOT, reach);
}

int vb_reach_remote(const struct vb_pd *pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint32_t length, uint32_t access,
	struct vb_reach *reach)
{
	return reach_through(pd, qpn, rkey, va, length, access, reach);
}

uint32_t vb_reach_segment(const struct vb_reach *reach)
{
	if (!reach->stamp)
		return 0;
	const struct vb_key_entry *entry = vb_container_of(reach->stamp, struct vb_key_entry, stamp);
	return atomic_load_explicit(&entry->segment, memory_order_acquire);
}

/* ---- Keys that are named again and again ------------------------------------------------------------------------- */

static inline bool reach_known(const struct vb_known_key *known, const struct vb_pd *pd, uint32_t key, uint64_t va,
	uint32_t length, uint32_t needed, struct vb_reach *reach)
{
	uint64_t offset = va - known->start;
	if ((uint32_t)known->seen != key || !known->stamp || known->pd != pd || (needed & ~known->granted) ||
		offset > known->length || length > known->length - offset ||
		atomic_load_explicit(known->stamp, memory_order_acquire) != known->seen)
		return false;
	reach->bytes = known->memory + offset;
	reach->kind = NULL;
	reach->stamp = known->stamp;
	reach->seen = known->seen;
	return true;
}

/* Under a stamp that was there before and after all of it was read. */
static void learn(struct vb_known_key *known, const struct vb_pd *pd, uint32_t key)
{
	const struct vb_key_entry *entry = vb_key_find(&pd->nic->keys, key);
	if (known->asked != key || !entry) {
		known->asked = key;
		return;
	}
	known->seen = atomic_load_explicit(&entry->stamp, memory_order_acquire);
	known->start = atomic_load_explicit(&entry->start, memory_order_acquire);
	known->length = atomic_load_explicit(&entry->length, memory_order_acquire);
	known->memory = atomic_load_explicit(&entry->memory, memory_order_acquire);
	known->granted = atomic_load_explicit(&entry->granted, memory_order_acquire);
	known->pd = atomic_load_explicit(&entry->pd, memory_order_acquire);
	bool is_plain = !atomic_load_explicit(&entry->kind, memory_order_acquire) &&
			atomic_load_explicit(&entry->qpn, memory_order_acquire) == 0 && known->memory;
	bool has_stayed = atomic_load_explicit(&entry->stamp, memory_order_relaxed) == known->seen;
	known->stamp = is_plain && has_stayed && (uint32_t)known->seen == key ? &entry->stamp : NULL;
}

int vb_reach_local_known(const struct vb_pd *pd, struct vb_known_key *known, const struct vb_sge *sge, uint32_t offset,
	uint32_t length, uint32_t access, struct vb_reach *reach)
{
	if (length > 0 && sge->addr + offset >= sge->addr &&
		reach_known(known, pd, sge->lkey, sge->addr + offset, length, access | VB_GRANT_LKEY, reach))
		return 0;
	int error = vb_reach_local(pd, sge, offset, length, access, reach);
	if (!error && length > 0)
		learn(known, pd, sge->lkey);
	return error;
}

int vb_reach_remote_known(const struct vb_pd *pd, struct vb_known_key *known, uint32_t qpn, uint32_t rkey, uint64_t va,
	uint32_t length, uint32_t access, struct vb_reach *reach)
{
	if (length > 0 && reach_known(known, pd, rkey, va, length, access, reach))
		return 0;
	int error = vb_reach_remote(pd, qpn, rkey, va, length, access, reach);
	if (!error && length > 0)
		learn(known, pd, rkey);
	return error;
}
