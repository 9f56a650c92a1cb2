/* Memory windows: keys of their own onto a part of a region.
 * Holds: mw->mr is set exactly while the window is bound, and is counted in mr->windows, so a region outlives its
 * windows' bindings. All changes happen under keys.lock. IBA vol. 1, 10.6.7.
 *
 *            bind (new key announced)                     bind (low byte the consumer's)
 *   type 1:  unbound <--------------> bound               unbound ----> bound      :type 2B
 *            bind of zero length, or bind again                   <----
 *                                          invalidated by its QP or peer, or its QP is gone */
#include <errno.h>
#include "base/invariant.h"
#include "core/keys.h"

#define WINDOW_ACCESS (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_ZERO_BASED)

int vb_mw_create(struct vb_pd *pd, int type, struct vb_mw **mw)
{
	if (type != 1 && type != 2)
		return -EINVAL;
	struct vb_key_table *keys = &pd->nic->keys;
	uint32_t key;
	vb_lock_take(&keys->lock);
	struct vb_key_entry *entry = vb_keys_take(keys, VB_KEY_WINDOW, &key);
	if (entry) {
		entry->mw = (struct vb_mw){ .pd = pd, .type = (uint8_t)type, .announced = (uint8_t)key };
		atomic_init(&entry->mw.key, key);
		vb_list_init(&entry->mw.link);
	}
	vb_lock_release(&keys->lock);
	if (!entry)
		return -ENOMEM;
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	*mw = &entry->mw;
	assert(!entry->mw.mr);
	return 0;
}

static void unbind_locked(struct vb_mw *mw)
{
	assert(!mw->mr || mw->mr->windows > 0);
	if (!mw->mr)
		return;
	vb_key_close(&mw->pd->nic->keys, vb_key_of_mw(mw));
	mw->mr->windows--;
	mw->mr = NULL;
	vb_list_remove(&mw->link);
	assert(!vb_list_linked(&mw->link));
}

int vb_mw_destroy(struct vb_mw *mw)
{
	struct vb_pd *pd = mw->pd;
	struct vb_key_table *keys = &pd->nic->keys;
	vb_lock_take(&keys->lock);
	unbind_locked(mw);
	vb_keys_give(keys, vb_key_of_mw(mw));
	vb_lock_release(&keys->lock);
	atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
	return 0;
}

uint32_t vb_mw_key(const struct vb_mw *mw)
{
	return atomic_load_explicit(&mw->key, memory_order_relaxed);
}

static uint32_t with_low_byte(uint32_t key, uint8_t low)
{
	return (key & ~0xFFu) | low;
}

uint32_t vb_mw_next_key(struct vb_mw *mw)
{
	struct vb_key_table *keys = &mw->pd->nic->keys;
	vb_lock_take(&keys->lock);
	uint32_t next = 0;
	if ((uint8_t)(mw->announced + 1) != (uint8_t)vb_mw_key(mw))
		next = with_low_byte(vb_mw_key(mw), ++mw->announced);
	vb_lock_release(&keys->lock);
	assert(next == 0 || next >> 8 == vb_mw_key(mw) >> 8);
	return next;
}

void vb_mw_forget_key(struct vb_mw *mw, uint32_t key)
{
	struct vb_key_table *keys = &mw->pd->nic->keys;
	vb_lock_take(&keys->lock);
	if (mw->announced == (uint8_t)key)
		mw->announced--;
	vb_lock_release(&keys->lock);
}

/* Several binds of a type-1 window may be posted before the first is executed, each with the key announced for it. */
static bool is_announced(const struct vb_mw *mw, uint32_t new_key)
{
	uint8_t now = (uint8_t)vb_mw_key(mw), steps = (uint8_t)((uint8_t)new_key - now);
	return steps > 0 && steps <= (uint8_t)(mw->announced - now);
}

static int check_window(struct vb_mw *mw, const struct vb_pd *pd, uint64_t length, uint32_t access, uint32_t new_key)
{
	if (vb_key_of_mw(mw)->use != VB_KEY_WINDOW || mw->pd != pd)
		return -EACCES;
	if ((new_key ^ vb_mw_key(mw)) >> 8 != 0 || (access & ~(uint32_t)WINDOW_ACCESS))
		return -EINVAL;
	if (mw->type == 1)
		return is_announced(mw, new_key) && !(access & VB_ACCESS_ZERO_BASED) ? 0 : -EINVAL;
	return mw->mr || length == 0 ? -EINVAL : 0;
}

/* Fills in what the window will open, if the region allows it. */
static int check_region(struct vb_mr *mr, const struct vb_pd *pd, uint64_t addr, uint64_t length, uint32_t access,
	struct vb_key_terms *terms)
{
	if (!mr || vb_key_of_mr(mr)->use != VB_KEY_REGION || !mr->is_valid || mr->pd != pd)
		return -EACCES;
	const struct vb_key_entry *region = vb_key_of_mr(mr);
	uint32_t granted = atomic_load_explicit(&region->granted, memory_order_relaxed);
	if (!(granted & VB_ACCESS_MW_BIND) || (granted & VB_ACCESS_ZERO_BASED))
		return -EACCES;
	if ((access & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC)) && !(granted & VB_ACCESS_LOCAL_WRITE))
		return -EACCES;
	uint64_t offset = addr - atomic_load_explicit(&region->start, memory_order_relaxed);
	uint64_t size = atomic_load_explicit(&region->length, memory_order_relaxed);
	if (offset > size || length > size - offset)
		return -EACCES;
	uint8_t *memory = atomic_load_explicit(&region->memory, memory_order_relaxed);
	*terms = (struct vb_key_terms){
		.pd = pd,
		.start = access & VB_ACCESS_ZERO_BASED ? 0 : addr,
		.length = length,
		.memory = vb_memory_at(memory, offset),
		.kind = atomic_load_explicit(&region->kind, memory_order_relaxed),
		.granted = access,
		.segment = atomic_load_explicit(&region->segment, memory_order_relaxed),
	};
	return 0;
}

static int bind_locked(struct vb_mw *mw, struct vb_mr *mr, const struct vb_pd *pd, uint32_t qpn, uint64_t addr,
	uint64_t length, uint32_t access, uint32_t new_key)
{
	struct vb_key_terms terms;
	int error = check_window(mw, pd, length, access, new_key);
	if (!error && length > 0)
		error = check_region(mr, pd, addr, length, access, &terms);
	if (error)
		return error;
	unbind_locked(mw);
	atomic_store_explicit(&mw->key, new_key, memory_order_relaxed);
	if (length == 0)
		return 0;
	mr->windows++;
	mw->mr = mr;
	mw->qpn = qpn;
	if (mw->type == 2) {
		terms.qpn = qpn;
		vb_list_add_tail(&pd->nic->keys.bound, &mw->link);
	}
	vb_key_open(vb_key_of_mw(mw), new_key, &terms);
	assert(mw->mr && vb_mw_key(mw) == new_key);
	return 0;
}

int vb_mw_bind(struct vb_mw *mw, struct vb_mr *mr, const struct vb_pd *pd, uint32_t qpn, uint64_t addr, uint64_t length,
	uint32_t access, uint32_t new_key)
{
	struct vb_lock *lock = &pd->nic->keys.lock;
	vb_lock_take(lock);
	int error = bind_locked(mw, mr, pd, qpn, addr, length, access, new_key);
	vb_lock_release(lock);
	return error;
}

static struct vb_mw *bound_type2(struct vb_key_table *keys, const struct vb_pd *pd, uint32_t qpn, uint32_t rkey)
{
	struct vb_key_entry *entry = vb_key_find(keys, rkey);
	if (!entry || rkey == 0 || (uint32_t)atomic_load_explicit(&entry->stamp, memory_order_relaxed) != rkey)
		return NULL;
	if (entry->use != VB_KEY_WINDOW)
		return NULL;
	struct vb_mw *mw = &entry->mw;
	return mw->type == 2 && mw->pd == pd && mw->qpn == qpn ? mw : NULL;
}

int vb_key_invalidate(const struct vb_pd *pd, uint32_t qpn, uint32_t rkey)
{
	struct vb_key_table *keys = &pd->nic->keys;
	vb_lock_take(&keys->lock);
	struct vb_mw *mw = bound_type2(keys, pd, qpn, rkey);
	if (mw)
		unbind_locked(mw);
	vb_lock_release(&keys->lock);
	return mw ? 0 : -EACCES;
}

void vb_mw_unbind_qp(struct vb_nic *nic, uint32_t qpn)
{
	vb_lock_take(&nic->keys.lock);
	vb_list_for_each_safe (node, &nic->keys.bound) {
		struct vb_mw *mw = vb_container_of(node, struct vb_mw, link);
		if (mw->qpn == qpn)
			unbind_locked(mw);
	}
	vb_lock_release(&nic->keys.lock);
}
