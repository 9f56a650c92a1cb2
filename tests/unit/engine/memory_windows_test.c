#include <pthread.h>
#include "device.h"

enum { BYTES = 256, QPN = 0x010007, OTHER_QPN = 0x010008 };

static uint8_t memory[BYTES];
#define START ((uint64_t)(uintptr_t)memory)

struct scene {
	struct device device;
	struct vb_mr *mr;
	struct vb_mw *mw;
};

static struct scene set_up(int type, uint32_t mr_access)
{
	struct scene scene = { .device = open_device() };
	scene.mr = registered(scene.device.pd, memory, BYTES, mr_access);
	assert_int_equal(vb_mw_create(scene.device.pd, type, &scene.mw), 0);
	return scene;
}

static void tear_down(struct scene *scene)
{
	assert_int_equal(vb_mw_destroy(scene->mw), 0);
	deregister(scene->mr);
	close_device(&scene->device);
}

static int bind(struct scene *scene, uint64_t addr, uint64_t length, uint32_t access, uint32_t new_key)
{
	return vb_mw_bind(scene->mw, scene->mr, scene->device.pd, QPN, addr, length, access, new_key);
}

/* The key after the present one, as a consumer makes it. */
static uint32_t consumers_key(const struct vb_mw *mw)
{
	uint32_t key = vb_mw_key(mw);
	return (key & ~0xFFu) | ((key + 1) & 0xFF);
}

static int reach(struct scene *scene, uint32_t key, uint64_t va, uint32_t length, uint32_t access)
{
	struct vb_reach reached;
	return vb_reach_remote(scene->device.pd, QPN, key, va, length, access, &reached);
}

static void window__of_an_unknown_type_is_refused(void **state)
{
	struct device device = open_device();
	struct vb_mw *mw = NULL;
	assert_int_equal(vb_mw_create(device.pd, 0, &mw), -EINVAL);
	assert_int_equal(vb_mw_create(device.pd, 3, &mw), -EINVAL);
	assert_null(mw);
	close_device(&device);
}

static void window__opens_nothing_until_bound(void **state)
{
	for (int type = 1; type <= 2; type++) {
		struct scene scene = set_up(type, ALL_ACCESS);
		assert_int_equal(reach(&scene, vb_mw_key(scene.mw), START, 1, VB_ACCESS_REMOTE_READ), -EACCES);
		assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, vb_mw_key(scene.mw)), -EACCES);
		tear_down(&scene);
	}
}

static void window__opens_its_part_of_the_region_alone(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	struct vb_reach reached;
	assert_int_equal(bind(&scene, START + 10, 20, VB_ACCESS_REMOTE_READ, key), 0);
	assert_int_equal(vb_mw_key(scene.mw), key);
	assert_int_equal(
		vb_reach_remote(scene.device.pd, QPN, key, START + 12, 18, VB_ACCESS_REMOTE_READ, &reached), 0);
	assert_ptr_equal(reached.bytes, memory + 12);
	assert_int_equal(reach(&scene, key, START + 9, 2, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach(&scene, key, START + 29, 2, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach(&scene, key, START + 12, 2, VB_ACCESS_REMOTE_WRITE), -EACCES);
	assert_int_equal(reach(&scene, vb_mr_key(scene.mr), START, BYTES, ALL_REMOTE), 0);
	tear_down(&scene);
}

static void window__has_no_lkey(void **state)
{
	for (int type = 1; type <= 2; type++) {
		struct scene scene = set_up(type, ALL_ACCESS);
		uint32_t key = vb_mw_next_key(scene.mw);
		struct vb_reach reached;
		assert_int_equal(bind(&scene, START, BYTES, ALL_REMOTE, key), 0);
		struct vb_sge sge = { .addr = START, .length = 8, .lkey = key };
		assert_int_equal(vb_reach_local(scene.device.pd, &sge, 0, 8, 0, &reached), -EACCES);
		tear_down(&scene);
	}
}

static void window__bind_checks_the_range(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START - 1, 2, ALL_REMOTE, key), -EACCES);
	assert_int_equal(bind(&scene, START, BYTES + 1, ALL_REMOTE, key), -EACCES);
	assert_int_equal(bind(&scene, START + BYTES, 1, ALL_REMOTE, key), -EACCES);
	assert_int_equal(bind(&scene, START + 1, UINT64_MAX, ALL_REMOTE, key), -EACCES);
	assert_int_equal(reach(&scene, key, START, 1, 0), -EACCES);
	assert_int_equal(bind(&scene, START, BYTES, ALL_REMOTE, key), 0);
	tear_down(&scene);
}

static void window__bind_needs_the_regions_permission(void **state)
{
	struct scene scene = set_up(2, ALL_REMOTE | VB_ACCESS_LOCAL_WRITE);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_READ, consumers_key(scene.mw)), -EACCES);
	tear_down(&scene);

	scene = set_up(2, VB_ACCESS_MW_BIND);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_WRITE, key), -EACCES);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_ATOMIC, key), -EACCES);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_LOCAL_WRITE, key), -EINVAL);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_READ, key), 0);
	assert_int_equal(reach(&scene, key, START, 8, VB_ACCESS_REMOTE_READ), 0); /* not granted by the region itself */
	tear_down(&scene);
}

static void window__bind_refuses_a_zero_based_region(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS | VB_ACCESS_ZERO_BASED);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_READ, consumers_key(scene.mw)), -EACCES);
	tear_down(&scene);
}

static void window__bind_stays_in_its_domain(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	struct vb_mr *foreign = registered(scene.device.other_pd, memory, BYTES, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(vb_mw_bind(scene.mw, foreign, scene.device.pd, QPN, START, 8, ALL_REMOTE, key), -EACCES);
	assert_int_equal(
		vb_mw_bind(scene.mw, scene.mr, scene.device.other_pd, QPN, START, 8, ALL_REMOTE, key), -EACCES);
	assert_int_equal(vb_mw_bind(scene.mw, foreign, scene.device.other_pd, QPN, START, 8, ALL_REMOTE, key), -EACCES);
	assert_int_equal(vb_mw_bind(scene.mw, NULL, scene.device.pd, QPN, START, 8, ALL_REMOTE, key), -EACCES);
	deregister(foreign);
	tear_down(&scene);
}

static void window__bind_to_a_dead_region_is_refused(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	struct vb_mr *dead = registered(scene.device.pd, memory, BYTES, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(vb_mr_invalidate(dead), 0);
	assert_int_equal(vb_mw_bind(scene.mw, dead, scene.device.pd, QPN, START, 8, ALL_REMOTE, key), -EACCES);
	vb_mr_free(dead); /* a work request may still name it */
	assert_int_equal(vb_mw_bind(scene.mw, dead, scene.device.pd, QPN, START, 8, ALL_REMOTE, key), -EACCES);
	tear_down(&scene);
}

/* So many come and go that the longest dead are used again: by regions, then by windows. */
enum { CROWD = VB_KEYS_PER_CHUNK };

static void window__bind_survives_objects_that_became_something_else(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	struct vb_pd *pd = scene.device.pd;
	static struct vb_mr *mrs[CROWD];
	static struct vb_mw *mws[CROWD];
	int became_region = 0, became_window = 0;
	for (int i = 0; i < CROWD; i++) {
		mrs[i] = registered(pd, memory, BYTES, ALL_ACCESS);
		assert_int_equal(vb_mw_create(pd, 2, &mws[i]), 0);
	}
	for (int i = 0; i < CROWD; i++) {
		deregister(mrs[i]);
		assert_int_equal(vb_mw_destroy(mws[i]), 0);
	}
	for (int i = 0; i < CROWD / 2; i++) { /* in the other order: each takes a dead one of the other kind */
		struct vb_mw *dead_mw = mws[i];
		struct vb_mr *dead_mr = mrs[i];
		assert_int_equal(vb_mw_create(pd, 2, &mws[i]), 0);
		mrs[i] = registered(pd, memory, BYTES, ALL_ACCESS);
		became_window += (void *)mws[i] == (void *)dead_mr;
		became_region += (void *)mrs[i] == (void *)dead_mw;
		assert_int_equal(
			vb_mw_bind(scene.mw, dead_mr, pd, QPN, START, 8, ALL_REMOTE, consumers_key(scene.mw)), -EACCES);
		for (uint32_t key = 0; key < 256; key++)
			assert_int_equal(vb_mw_bind(dead_mw, scene.mr, pd, QPN, START, 8, ALL_REMOTE,
						 (vb_mr_key(mrs[i]) & ~0xFFu) | key),
				-EACCES);
	}
	assert_int_equal(became_window, CROWD / 2);
	assert_int_equal(became_region, CROWD / 2);
	for (int i = 0; i < CROWD / 2; i++) {
		deregister(mrs[i]);
		assert_int_equal(vb_mw_destroy(mws[i]), 0);
	}
	tear_down(&scene);
}

static void window__holds_its_region(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(vb_mr_invalidate(scene.mr), -EBUSY);
	assert_int_equal(reach(&scene, vb_mr_key(scene.mr), START, 8, ALL_REMOTE), 0);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key), 0);
	assert_int_equal(vb_mr_invalidate(scene.mr), 0);
	tear_down(&scene);
}

static void window__destroyed_while_bound_lets_its_region_go(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(vb_mw_destroy(scene.mw), 0);
	assert_int_equal(reach(&scene, key, START, 8, 0), -EACCES);
	assert_int_equal(vb_mr_invalidate(scene.mr), 0);
	vb_mr_free(scene.mr);
	close_device(&scene.device);
}

static void window__of_phantom_memory_is_phantom(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = { .iova = 4096, .length = 4096, .access = ALL_ACCESS, .kind = &vb_memory_phantom };
	struct vb_mr *mr;
	struct vb_mw *mw;
	struct vb_reach reached;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	assert_int_equal(vb_mw_create(device.pd, 2, &mw), 0);
	uint32_t key = consumers_key(mw);
	assert_int_equal(vb_mw_bind(mw, mr, device.pd, QPN, 5000, 100, ALL_REMOTE, key), 0);
	assert_int_equal(vb_reach_remote(device.pd, QPN, key, 5000, 100, ALL_REMOTE, &reached), 0);
	assert_ptr_equal(reached.kind, &vb_memory_phantom);
	assert_int_equal(vb_mw_destroy(mw), 0);
	deregister(mr);
	close_device(&device);
}

/* ---- Type 2 ---- */

static void type2__serves_only_the_qp_that_bound_it(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	struct vb_reach reached;
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(vb_reach_remote(scene.device.pd, QPN, key, START, 8, ALL_REMOTE, &reached), 0);
	assert_int_equal(vb_reach_remote(scene.device.pd, OTHER_QPN, key, START, 8, ALL_REMOTE, &reached), -EACCES);
	assert_int_equal(vb_reach_remote(scene.device.other_pd, QPN, key, START, 8, ALL_REMOTE, &reached), -EACCES);
	tear_down(&scene);
}

static void type2__binds_only_while_unbound(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, consumers_key(scene.mw)), -EINVAL);
	assert_int_equal(reach(&scene, key, START, 8, ALL_REMOTE), 0);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key), 0);
	assert_int_equal(reach(&scene, key, START, 8, 0), -EACCES);
	uint32_t next = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, next), 0);
	assert_int_equal(reach(&scene, key, START, 8, 0), -EACCES);
	assert_int_equal(reach(&scene, next, START, 8, 0), 0);
	tear_down(&scene);
}

static void type2__new_key_must_be_the_windows_own(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	for (int bit = 8; bit < 32; bit++)
		assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, vb_mw_key(scene.mw) ^ 1u << bit), -EINVAL);
	for (uint32_t low = 0; low < 256; low++) {
		uint32_t key = (vb_mw_key(scene.mw) & ~0xFFu) | low;
		assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
		assert_int_equal(reach(&scene, key, START, 8, ALL_REMOTE), 0);
		assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key), 0);
	}
	tear_down(&scene);
}

static void type2__zero_length_is_refused(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	assert_int_equal(bind(&scene, START, 0, ALL_REMOTE, consumers_key(scene.mw)), -EINVAL);
	tear_down(&scene);
}

static void type2__zero_based_counts_from_its_start(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	struct vb_reach reached;
	assert_int_equal(bind(&scene, START + 100, 20, VB_ACCESS_REMOTE_READ | VB_ACCESS_ZERO_BASED, key), 0);
	assert_int_equal(vb_reach_remote(scene.device.pd, QPN, key, 5, 15, VB_ACCESS_REMOTE_READ, &reached), 0);
	assert_ptr_equal(reached.bytes, memory + 105);
	assert_int_equal(reach(&scene, key, 5, 16, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach(&scene, key, START + 100, 1, VB_ACCESS_REMOTE_READ), -EACCES);
	tear_down(&scene);
}

static void type2__invalidate_is_for_its_qp_and_domain_alone(void **state)
{
	struct scene scene = set_up(2, ALL_ACCESS);
	uint32_t key = consumers_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(vb_key_invalidate(scene.device.pd, OTHER_QPN, key), -EACCES);
	assert_int_equal(vb_key_invalidate(scene.device.other_pd, QPN, key), -EACCES);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key ^ 1), -EACCES);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, 0), -EACCES);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, UINT32_MAX), -EACCES);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, vb_mr_key(scene.mr)), -EACCES);
	assert_int_equal(reach(&scene, key, START, 8, ALL_REMOTE), 0);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key), 0);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key), -EACCES);
	tear_down(&scene);
}

static void type2__goes_with_its_qp(void **state)
{
	enum { WINDOWS = 20 };
	struct scene scene = set_up(2, ALL_ACCESS);
	struct vb_mw *mws[WINDOWS];
	for (int i = 0; i < WINDOWS; i++) {
		assert_int_equal(vb_mw_create(scene.device.pd, 2, &mws[i]), 0);
		assert_int_equal(vb_mw_bind(mws[i], scene.mr, scene.device.pd, i % 2 ? QPN : OTHER_QPN, START, 8,
					 ALL_REMOTE, consumers_key(mws[i])),
			0);
	}
	vb_mw_unbind_qp(scene.device.nic, OTHER_QPN);
	for (int i = 0; i < WINDOWS; i++)
		assert_int_equal(reach(&scene, vb_mw_key(mws[i]), START, 8, ALL_REMOTE), i % 2 ? 0 : -EACCES);
	assert_int_equal(vb_mr_invalidate(scene.mr), -EBUSY);
	vb_mw_unbind_qp(scene.device.nic, QPN);
	assert_int_equal(vb_mr_invalidate(scene.mr), 0);
	for (int i = 0; i < WINDOWS; i++)
		assert_int_equal(vb_mw_destroy(mws[i]), 0);
	tear_down(&scene);
}

static void type2__may_be_bound_again_and_again_by_one_qp_after_another(void **state)
{
	enum { WINDOWS = 3 };
	struct scene scene = set_up(2, ALL_ACCESS);
	struct vb_mw *mws[WINDOWS];
	for (int i = 0; i < WINDOWS; i++)
		assert_int_equal(vb_mw_create(scene.device.pd, 2, &mws[i]), 0);
	for (uint32_t round = 0; round < 30; round++) {
		for (uint32_t i = 0; i < WINDOWS; i++) {
			struct vb_mw *mw = mws[(i + round) % WINDOWS];
			assert_int_equal(vb_mw_bind(mw, scene.mr, scene.device.pd, QPN + i, START, 8, ALL_REMOTE,
						 consumers_key(mw)),
				0);
		}
		uint32_t middle = vb_mw_key(mws[(1 + round) % WINDOWS]);
		assert_int_equal(vb_key_invalidate(scene.device.pd, QPN + 1, middle), 0);
		for (uint32_t qpn = QPN; qpn < QPN + 3; qpn++)
			vb_mw_unbind_qp(scene.device.nic, qpn);
		for (int i = 0; i < WINDOWS; i++)
			assert_int_equal(reach(&scene, vb_mw_key(mws[i]), START, 8, 0), -EACCES);
	}
	for (int i = 0; i < WINDOWS; i++)
		assert_int_equal(vb_mw_destroy(mws[i]), 0);
	tear_down(&scene);
}

/* ---- Type 1 ---- */

static void type1__serves_every_qp_of_its_domain(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	uint32_t key = vb_mw_next_key(scene.mw);
	struct vb_reach reached;
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(vb_reach_remote(scene.device.pd, QPN, key, START, 8, ALL_REMOTE, &reached), 0);
	assert_int_equal(vb_reach_remote(scene.device.pd, OTHER_QPN, key, START, 8, ALL_REMOTE, &reached), 0);
	assert_int_equal(vb_reach_remote(scene.device.other_pd, QPN, key, START, 8, ALL_REMOTE, &reached), -EACCES);
	vb_mw_unbind_qp(scene.device.nic, QPN);
	assert_int_equal(reach(&scene, key, START, 8, ALL_REMOTE), 0);
	tear_down(&scene);
}

static void type1__rebinding_changes_key_and_range(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	uint32_t last = vb_mw_key(scene.mw);
	for (int i = 0; i < 600; i++) {
		uint32_t key = vb_mw_next_key(scene.mw);
		assert_int_not_equal(key, last);
		assert_int_equal(bind(&scene, START + i % 100, 8, ALL_REMOTE, key), 0);
		assert_int_equal(vb_mw_key(scene.mw), key);
		assert_int_equal(reach(&scene, last, START + i % 100, 8, 0), -EACCES);
		assert_int_equal(reach(&scene, key, START + i % 100, 8, 0), 0);
		last = key;
	}
	tear_down(&scene);
}

static void type1__keys_that_were_not_posted_are_announced_again(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	uint32_t keys[255];
	for (unsigned i = 0; i < 1000; i++)
		vb_mw_forget_key(scene.mw, vb_mw_next_key(scene.mw));
	for (unsigned i = 0; i < 255; i++)
		assert_int_not_equal(keys[i] = vb_mw_next_key(scene.mw), 0);
	assert_int_equal(vb_mw_next_key(scene.mw), 0);
	vb_mw_forget_key(scene.mw, keys[0]); /* not the last: nothing happens */
	for (unsigned i = 0; i < 255; i++)
		assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, keys[i]), 0);
	assert_int_not_equal(vb_mw_next_key(scene.mw), 0);
	tear_down(&scene);
}

static void type1__key_must_have_been_announced(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, consumers_key(scene.mw)), -EINVAL);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, vb_mw_key(scene.mw)), -EINVAL);
	uint32_t first = vb_mw_next_key(scene.mw), second = vb_mw_next_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, first ^ 0x100), -EINVAL);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, first), 0); /* both were posted before one was executed */
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, second), 0);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, second), -EINVAL);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, first), -EINVAL);
	assert_int_equal(reach(&scene, second, START, 8, ALL_REMOTE), 0);
	tear_down(&scene);
}

static void type1__zero_length_unbinds(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	uint32_t key = vb_mw_next_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	uint32_t next = vb_mw_next_key(scene.mw);
	assert_int_equal(vb_mw_bind(scene.mw, NULL, scene.device.pd, QPN, 0, 0, 0, next), 0);
	assert_int_equal(reach(&scene, key, START, 8, 0), -EACCES);
	assert_int_equal(reach(&scene, next, START, 8, 0), -EACCES);
	assert_int_equal(vb_mw_key(scene.mw), next);
	assert_int_equal(vb_mr_invalidate(scene.mr), 0);
	tear_down(&scene);
}

static void type1__a_refused_rebind_leaves_the_old_binding(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	uint32_t key = vb_mw_next_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, ALL_REMOTE, key), 0);
	assert_int_equal(bind(&scene, START, BYTES + 1, ALL_REMOTE, vb_mw_next_key(scene.mw)), -EACCES);
	assert_int_equal(reach(&scene, key, START, 8, ALL_REMOTE), 0);
	assert_int_equal(vb_mr_invalidate(scene.mr), -EBUSY);
	tear_down(&scene);
}

static void type1__is_not_zero_based_and_not_invalidated(void **state)
{
	struct scene scene = set_up(1, ALL_ACCESS);
	uint32_t key = vb_mw_next_key(scene.mw);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_READ | VB_ACCESS_ZERO_BASED, key), -EINVAL);
	assert_int_equal(bind(&scene, START, 8, VB_ACCESS_REMOTE_READ, key), 0);
	assert_int_equal(vb_key_invalidate(scene.device.pd, QPN, key), -EACCES);
	assert_int_equal(reach(&scene, key, START, 8, VB_ACCESS_REMOTE_READ), 0);
	tear_down(&scene);
}

/* ---- Binding on one lane while another looks up and a third thread deregisters ---- */

struct shared {
	struct scene scene;
	atomic_uint key, found, wrong;
	atomic_bool is_done;
};

/* Even keys open the first half, odd keys the second. */
static void *look_up(void *arg)
{
	struct shared *shared = arg;
	while (!atomic_load(&shared->is_done)) {
		uint32_t key = atomic_load(&shared->key);
		struct vb_reach reached;
		if (vb_reach_remote(shared->scene.device.pd, QPN, key, 0, BYTES / 2, VB_ACCESS_REMOTE_READ, &reached))
			continue;
		atomic_fetch_add(&shared->found, 1);
		if (reached.bytes != memory + (key & 1 ? BYTES / 2 : 0))
			atomic_fetch_add(&shared->wrong, 1);
	}
	return NULL;
}

static void *deregister_now_and_then(void *arg)
{
	struct shared *shared = arg;
	struct vb_mr_config config = region_of(memory, BYTES, ALL_ACCESS);
	while (!atomic_load(&shared->is_done)) {
		if (vb_mr_invalidate(shared->scene.mr) == 0)
			vb_mr_revalidate(shared->scene.mr, NULL, &config);
		sched_yield();
	}
	return NULL;
}

static void windows__are_seen_whole_while_they_are_bound_and_invalidated(void **state)
{
	struct shared shared = { .scene = set_up(2, ALL_ACCESS) };
	struct scene *scene = &shared.scene;
	pthread_t threads[3];
	int bound = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < 2 ? look_up : deregister_now_and_then, &shared), 0);
	for (int i = 0; i < 30000 || bound < 1000 || atomic_load(&shared.found) < 100; i++) {
		uint32_t key = consumers_key(scene->mw);
		uint64_t addr = START + (key & 1 ? BYTES / 2 : 0);
		atomic_store(&shared.key, key);
		if (bind(scene, addr, BYTES / 2, VB_ACCESS_REMOTE_READ | VB_ACCESS_ZERO_BASED, key))
			continue; /* the region was invalid just then */
		bound++;
		if (i % 64 == 0)
			sched_yield();
		assert_int_equal(vb_key_invalidate(scene->device.pd, QPN, key), 0);
	}
	atomic_store(&shared.is_done, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.wrong, 0);
	tear_down(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__of_an_unknown_type_is_refused),
		cmocka_unit_test(window__opens_nothing_until_bound),
		cmocka_unit_test(window__opens_its_part_of_the_region_alone),
		cmocka_unit_test(window__has_no_lkey),
		cmocka_unit_test(window__bind_checks_the_range),
		cmocka_unit_test(window__bind_needs_the_regions_permission),
		cmocka_unit_test(window__bind_refuses_a_zero_based_region),
		cmocka_unit_test(window__bind_stays_in_its_domain),
		cmocka_unit_test(window__bind_to_a_dead_region_is_refused),
		cmocka_unit_test(window__bind_survives_objects_that_became_something_else),
		cmocka_unit_test(window__holds_its_region),
		cmocka_unit_test(window__destroyed_while_bound_lets_its_region_go),
		cmocka_unit_test(window__of_phantom_memory_is_phantom),
		cmocka_unit_test(type2__serves_only_the_qp_that_bound_it),
		cmocka_unit_test(type2__binds_only_while_unbound),
		cmocka_unit_test(type2__new_key_must_be_the_windows_own),
		cmocka_unit_test(type2__zero_length_is_refused),
		cmocka_unit_test(type2__zero_based_counts_from_its_start),
		cmocka_unit_test(type2__invalidate_is_for_its_qp_and_domain_alone),
		cmocka_unit_test(type2__goes_with_its_qp),
		cmocka_unit_test(type2__may_be_bound_again_and_again_by_one_qp_after_another),
		cmocka_unit_test(type1__serves_every_qp_of_its_domain),
		cmocka_unit_test(type1__rebinding_changes_key_and_range),
		cmocka_unit_test(type1__keys_that_were_not_posted_are_announced_again),
		cmocka_unit_test(type1__key_must_have_been_announced),
		cmocka_unit_test(type1__zero_length_unbinds),
		cmocka_unit_test(type1__a_refused_rebind_leaves_the_old_binding),
		cmocka_unit_test(type1__is_not_zero_based_and_not_invalidated),
		cmocka_unit_test(windows__are_seen_whole_while_they_are_bound_and_invalidated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
