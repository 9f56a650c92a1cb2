/* Devices and protection domains.
 * Holds: packets that arrive look up GIDs without a lock, and see the table as it was before or after a change.
 * Not here: keys and memory (keys.c, memory.c, memory_windows.c), lanes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/keys.h"
#include "core/xrc.h"

static bool is_mtu(uint32_t mtu)
{
	return mtu >= 1 && mtu <= VB_MAX_MTU;
}

int vb_nic_create(const struct vb_nic_config *config, struct vb_nic **nic)
{
	if (!is_mtu(config->mtu) || config->large_mtu > VB_LARGE_MTU)
		return -EINVAL;
	struct vb_nic *new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	int error = vb_keys_init(&new->keys, config->seed, config->seed_high);
	if (error) {
		free(new);
		return error;
	}
	new->config = *config;
	new->keys.epochs = config->epochs;
	atomic_init(&new->mtu, config->mtu);
	atomic_init(&new->large_mtu, config->large_mtu);
	vb_lock_init(&new->lock);
	vb_srq_table_init(&new->xrc_srqs);
	*nic = new;
	assert(is_mtu(vb_nic_get_mtu(new)));
	return 0;
}

void vb_nic_destroy(struct vb_nic *nic)
{
	vb_keys_deinit(&nic->keys);
	vb_srq_table_deinit(&nic->xrc_srqs);
	free(nic);
}

void vb_nic_set_mtu(struct vb_nic *nic, uint32_t mtu, uint32_t large_mtu)
{
	assert(is_mtu(mtu) && large_mtu <= VB_LARGE_MTU);
	atomic_store_explicit(&nic->large_mtu, large_mtu, memory_order_relaxed);
	atomic_store_explicit(&nic->mtu, mtu, memory_order_relaxed);
}

uint32_t vb_nic_get_mtu(const struct vb_nic *nic)
{
	return atomic_load_explicit(&nic->mtu, memory_order_relaxed);
}

uint32_t vb_nic_get_large_mtu(const struct vb_nic *nic)
{
	return atomic_load_explicit(&nic->large_mtu, memory_order_relaxed);
}

/* ---- GIDs. A GID is two words; gid_generation is odd while the table changes. Each word is stored with release and
 * loaded with acquire, so that whoever saw a word of a change also sees that the generation has moved. ---- */

struct gid_words {
	uint64_t word[2];
};

static struct gid_words to_words(const struct vb_gid *gid)
{
	struct gid_words words;
	_Static_assert(sizeof(words) == sizeof(*gid), "a GID is two words");
	memcpy(&words, gid, sizeof(words));
	return words;
}

static struct gid_words load_gid(const struct vb_nic *nic, uint32_t index)
{
	return (struct gid_words){ { atomic_load_explicit(&nic->gids[index][0], memory_order_acquire),
		atomic_load_explicit(&nic->gids[index][1], memory_order_acquire) } };
}

int vb_nic_set_gid(struct vb_nic *nic, uint32_t index, const struct vb_gid *gid)
{
	if (index >= VB_MAX_GIDS)
		return -EINVAL;
	static const struct vb_gid empty;
	struct gid_words words = to_words(gid ? gid : &empty);
	vb_lock_take(&nic->lock);
	unsigned generation = atomic_load_explicit(&nic->gid_generation, memory_order_relaxed);
	atomic_store_explicit(&nic->gid_generation, generation + 1, memory_order_relaxed);
	atomic_store_explicit(&nic->gids[index][0], words.word[0], memory_order_release);
	atomic_store_explicit(&nic->gids[index][1], words.word[1], memory_order_release);
	atomic_store_explicit(&nic->gid_generation, generation + 2, memory_order_release);
	vb_lock_release(&nic->lock);
	return 0;
}

/* The table did not change since generation was read. */
static bool is_unchanged(const struct vb_nic *nic, unsigned generation)
{
	return generation % 2 == 0 && atomic_load_explicit(&nic->gid_generation, memory_order_relaxed) == generation;
}

static void wait_for_change(const struct vb_nic *nic)
{
	struct vb_lock *lock = (struct vb_lock *)&nic->lock;
	vb_lock_take(lock);
	vb_lock_release(lock);
}

int vb_nic_get_gid(const struct vb_nic *nic, uint32_t index, struct vb_gid *gid)
{
	if (index >= VB_MAX_GIDS)
		return -EINVAL;
	for (;;) {
		unsigned generation = atomic_load_explicit(&nic->gid_generation, memory_order_acquire);
		struct gid_words words = load_gid(nic, index);
		if (is_unchanged(nic, generation)) {
			if ((words.word[0] | words.word[1]) == 0)
				return -ENODATA;
			memcpy(gid, &words, sizeof(*gid));
			return 0;
		}
		wait_for_change(nic);
	}
}

static bool holds_gid(const struct vb_nic *nic, struct gid_words wanted)
{
	for (uint32_t i = 0; i < VB_MAX_GIDS; i++) {
		struct gid_words words = load_gid(nic, i);
		if (words.word[0] == wanted.word[0] && words.word[1] == wanted.word[1])
			return true;
	}
	return false;
}

bool vb_nic_has_gid(const struct vb_nic *nic, const struct vb_gid *gid)
{
	struct gid_words wanted = to_words(gid);
	if ((wanted.word[0] | wanted.word[1]) == 0)
		return false;
	for (;;) {
		unsigned generation = atomic_load_explicit(&nic->gid_generation, memory_order_acquire);
		bool found = holds_gid(nic, wanted);
		if (is_unchanged(nic, generation))
			return found;
		wait_for_change(nic);
	}
}

void vb_nic_check(const struct vb_nic *nic)
{
	assert(atomic_load_explicit(&nic->gid_generation, memory_order_relaxed) % 2 == 0);
	assert(is_mtu(vb_nic_get_mtu(nic)));
	vb_keys_check(&nic->keys);
}

/* ---- Protection domains ------------------------------------------------------------------------------------------ */

int vb_pd_create(struct vb_nic *nic, struct vb_pd **pd)
{
	struct vb_pd *new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->nic = nic;
	*pd = new;
	return 0;
}

int vb_pd_destroy(struct vb_pd *pd)
{
	if (atomic_load_explicit(&pd->users, memory_order_acquire) > 0)
		return -EBUSY;
	free(pd);
	return 0;
}
