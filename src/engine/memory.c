/* Memory regions, and every access to application memory: who may reach what, and how payload lands.
 * Holds: a range that is handed out lay wholly inside an open region or window of the right domain, which granted the
 * access, at one moment during the lookup; after vb_mr_invalidate no lookup finds the region.
 * Not here: memory windows (memory_windows.c), the table itself (keys.c). IBA vol. 1, 10.6 and 9.4.1. */
#include <errno.h>
#include <string.h>
#include "base/copy.h"
#include "base/invariant.h"
#include "engine/keys.h"

#define REGION_ACCESS                                                                                                  \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC |            \
		VB_ACCESS_MW_BIND | VB_ACCESS_ZERO_BASED | VB_ACCESS_FLUSH_GLOBAL)

#define VB_ZEROS 4096 /* the largest payload */

/* ---- Regions --------------------------------------------------------------------------------------------------- */

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
	switch (config->kind) {
	case VB_MEMORY_PHANTOM:
		return 0;
	case VB_MEMORY_NULL:
		return config->access & ~(uint32_t)VB_ACCESS_LOCAL_WRITE ? -EINVAL : 0;
	case VB_MEMORY_PAGEABLE:
		return wraps((uintptr_t)config->memory, config->length) ? -EINVAL : 0;
	case VB_MEMORY_HOST:
		if (wraps((uintptr_t)config->memory, config->length) || (!config->memory && config->length > 0))
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

static uint32_t grant_of_kind(enum vb_memory_kind kind)
{
	switch (kind) {
	case VB_MEMORY_PHANTOM:
		return VB_GRANT_PHANTOM;
	case VB_MEMORY_NULL:
		return VB_GRANT_NULL;
	case VB_MEMORY_PAGEABLE:
		return VB_GRANT_PAGEABLE;
	case VB_MEMORY_HOST:
		break;
	}
	return 0;
}

static void open_region(struct vb_mr *mr, const struct vb_mr_config *config)
{
	bool has_bytes = config->kind == VB_MEMORY_HOST || config->kind == VB_MEMORY_PAGEABLE;
	struct vb_key_terms terms = {
		.pd = mr->pd,
		.start = config->iova,
		.length = config->length,
		.memory = has_bytes ? config->memory : NULL,
		.granted = config->access | VB_GRANT_LKEY | grant_of_kind(config->kind),
	};
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
		vb_key_close(vb_key_of_mr(mr));
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
	return 0;
}

void vb_mr_check(const struct vb_mr *mr)
{
	const struct vb_key_entry *entry = vb_key_of_mr((struct vb_mr *)mr);
	uint32_t key = (uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed);
	assert(key == (mr->is_valid ? mr->key : 0));
	assert(mr->is_valid || mr->windows == 0);
}

/* ---- Lookups --------------------------------------------------------------------------------------------------- */

/* Memory that is not simply there: null memory has nothing to write to and zeros to read, of which no packet takes more
 * than its payload; pageable memory is looked at before it is touched. */
static int reach_special(
	const struct vb_nic *nic, uint32_t granted, uint32_t needed, uint32_t length, struct vb_reach *reach)
{
	static uint8_t zeros[VB_ZEROS];
	const uint32_t writing = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC;
	if (granted & VB_GRANT_PAGEABLE)
		return !nic->config.is_present || nic->config.is_present(reach->bytes, length, needed & writing)
			       ? 0
			       : -EACCES;
	reach->bytes = needed & writing ? NULL : zeros;
	return length <= sizeof(zeros) || !reach->bytes ? 0 : -EACCES;
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
	uint64_t offset = va - atomic_load_explicit(&entry->start, memory_order_acquire);
	uint64_t size = atomic_load_explicit(&entry->length, memory_order_acquire);
	uint8_t *memory = atomic_load_explicit(&entry->memory, memory_order_acquire);
	const struct vb_pd *owner = atomic_load_explicit(&entry->pd, memory_order_acquire);
	uint32_t granted = atomic_load_explicit(&entry->granted, memory_order_acquire);
	uint32_t only_qpn = atomic_load_explicit(&entry->qpn, memory_order_acquire);
	if (atomic_load_explicit(&entry->stamp, memory_order_relaxed) != stamp)
		return -EACCES;
	if (owner != pd || (granted & needed) != needed || (only_qpn != 0 && only_qpn != qpn))
		return -EACCES;
	if (offset > size || length > size - offset)
		return -EACCES;
	struct vb_reach found = { .is_phantom = granted & VB_GRANT_PHANTOM };
	if (!found.is_phantom && length > 0)
		found.bytes = vb_memory_at(memory, offset);
	if (__builtin_expect(granted & (VB_GRANT_NULL | VB_GRANT_PAGEABLE), 0) && length > 0 &&
		reach_special(pd->nic, granted, needed, length, &found))
		return -EACCES;
	*reach = found;
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

int vb_reach_remote(const struct vb_pd *pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint32_t length, uint32_t access,
	struct vb_reach *reach)
{
	return reach_through(pd, qpn, rkey, va, length, access, reach);
}

/* ---- Accesses -------------------------------------------------------------------------------------------------- */

typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

/* One store of size bytes to an address that is aligned to size, after all earlier stores. */
static void store_released(uint8_t *to, const uint8_t *from, uint32_t size)
{
	word16 two;
	word32 four;
	word64 eight;
	switch (size) {
	case 1:
		__atomic_store_n(to, *from, __ATOMIC_RELEASE);
		break;
	case 2:
		memcpy(&two, from, sizeof(two));
		__atomic_store_n((word16 *)(void *)to, two, __ATOMIC_RELEASE);
		break;
	case 4:
		memcpy(&four, from, sizeof(four));
		__atomic_store_n((word32 *)(void *)to, four, __ATOMIC_RELEASE);
		break;
	case 8:
		memcpy(&eight, from, sizeof(eight));
		__atomic_store_n((word64 *)(void *)to, eight, __ATOMIC_RELEASE);
		break;
	default:
		assert(false);
	}
}

/* The largest single store that ends where these bytes end: 8, 4, 2 or 1. */
static uint32_t last_store_size(const uint8_t *to, uint32_t length)
{
	uint32_t size = 8;
	while (size > length || ((uintptr_t)to + length) % size != 0)
		size /= 2;
	return size;
}

void vb_place(const struct vb_reach *reach, const uint8_t *payload, uint32_t length, bool ends_message)
{
	if (!payload || !reach->bytes || length == 0)
		return;
	uint32_t last = last_store_size(reach->bytes, length);
	if (!ends_message && last != length) {
		vb_copy(reach->bytes, payload, length);
		return;
	}
	vb_copy(reach->bytes, payload, length - last);
	store_released(reach->bytes + length - last, payload + length - last, last);
}

static bool is_aligned(const struct vb_reach *reach)
{
	return (uintptr_t)reach->bytes % sizeof(uint64_t) == 0;
}

/* Aligned for the peer but not here (a region or window whose addresses are shifted): no instruction is atomic for the
 * application then, but QPs of a lane still exclude each other. */
static uint64_t swap_unaligned(
	const struct vb_reach *reach, uint64_t (*change)(uint64_t, uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	uint64_t before, after;
	memcpy(&before, reach->bytes, sizeof(before));
	after = change(before, a, b);
	memcpy(reach->bytes, &after, sizeof(after));
	return before;
}

static uint64_t sum(uint64_t before, uint64_t add, uint64_t unused)
{
	return before + add;
}

static uint64_t swap_if_equal(uint64_t before, uint64_t compare, uint64_t swap)
{
	return before == compare ? swap : before;
}

uint64_t vb_atomic_fetch_add(const struct vb_reach *reach, uint64_t add)
{
	if (!reach->bytes)
		return 0;
	if (!is_aligned(reach))
		return swap_unaligned(reach, sum, add, 0);
	return __atomic_fetch_add((word64 *)(void *)reach->bytes, add, __ATOMIC_SEQ_CST);
}

uint64_t vb_atomic_cmp_swap(const struct vb_reach *reach, uint64_t compare, uint64_t swap)
{
	if (!reach->bytes)
		return 0;
	if (!is_aligned(reach))
		return swap_unaligned(reach, swap_if_equal, compare, swap);
	word64 before = compare; /* the value before, whether or not it was equal */
	__atomic_compare_exchange_n(
		(word64 *)(void *)reach->bytes, &before, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return before;
}
