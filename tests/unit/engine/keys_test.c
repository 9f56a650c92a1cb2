/* The key table: which keys there are, how long they stay away, and lookups against changes. */
#include <pthread.h>
#include "core/keys.h"
#include "device.h"

static char memory[64];

static struct vb_mr *any_region(struct device *device)
{
	return registered(device->pd, memory, sizeof(memory), ALL_ACCESS);
}

static int reach(const struct vb_pd *pd, uint32_t key)
{
	struct vb_reach reached;
	return vb_reach_remote(pd, 1, key, (uintptr_t)memory, 1, VB_ACCESS_REMOTE_READ, &reached);
}

static int by_value(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	return left < right ? -1 : left > right;
}

static void keys__are_all_different_and_none_is_special(void **state)
{
	enum { MANY = 5000 };
	struct device device = open_device();
	static struct vb_mr *mrs[MANY];
	static uint32_t keys[MANY];
	unsigned ones[32] = { 0 };
	for (int i = 0; i < MANY; i++) {
		mrs[i] = any_region(&device);
		keys[i] = vb_mr_key(mrs[i]);
		assert_true(keys[i] >> 8 != 0 && keys[i] >> 8 != 0xFFFFFF);
		for (int bit = 0; bit < 32; bit++)
			ones[bit] += keys[i] >> bit & 1;
	}
	for (int bit = 0; bit < 32; bit++)
		assert_in_range(ones[bit], MANY / 2 - 250, MANY / 2 + 250);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(reach(device.pd, keys[i]), 0);
	qsort(keys, MANY, sizeof(keys[0]), by_value);
	for (int i = 1; i < MANY; i++)
		assert_int_not_equal(
			keys[i - 1] >> 8, keys[i] >> 8); /* a type-2 window's may be whatever the consumer likes */
	for (int i = 0; i < MANY; i++)
		deregister(mrs[i]);
	close_device(&device);
}

/* Of two keys, one given out after the other, no eight bits agree more often than those of unknown peers. */
static void keys__local_peers_have_nothing_in_common(void **state)
{
	enum { MANY = 4096 };
	struct device device = open_device();
	static struct vb_mr *mrs[MANY];
	unsigned alike[25] = { 0 };
	for (int i = 0; i < MANY; i++) {
		mrs[i] = any_region(&device);
		for (int shift = 0; i > 0 && shift <= 24; shift++)
			alike[shift] += ((vb_mr_key(mrs[i]) ^ vb_mr_key(mrs[i - 1])) >> shift & 0xFF) == 0;
	}
	for (int shift = 0; shift <= 24; shift++)
		assert_in_range(alike[shift], 0, 40); /* 16 by chance */
	for (int i = 0; i < MANY; i++)
		deregister(mrs[i]);
	close_device(&device);
}

static void keys__every_bit_is_compared(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = any_region(&device);
	assert_int_equal(reach(device.pd, vb_mr_key(mr)), 0);
	for (int bit = 0; bit < 32; bit++)
		assert_int_equal(reach(device.pd, vb_mr_key(mr) ^ 1u << bit), -EACCES);
	deregister(mr);
	close_device(&device);
}

static void keys__zero_and_all_ones_open_nothing(void **state)
{
	struct device device = open_device();
	assert_int_equal(reach(device.pd, 0), -EACCES);
	assert_int_equal(reach(device.pd, UINT32_MAX), -EACCES);
	struct vb_mr *mrs[2 * VB_KEYS_PER_CHUNK];
	for (size_t i = 0; i < COUNT_OF(mrs); i++)
		mrs[i] = any_region(&device);
	assert_int_equal(reach(device.pd, 0), -EACCES);
	for (size_t i = 0; i < COUNT_OF(mrs); i++)
		deregister(mrs[i]);
	assert_int_equal(reach(device.pd, 0), -EACCES);
	close_device(&device);
}

static void keys__a_freed_entry_does_not_return_soon_nor_does_its_key(void **state)
{
	struct device device = open_device();
	struct vb_mr *first = any_region(&device);
	uint32_t key = vb_mr_key(first);
	deregister(first);
	for (int i = 0; i < VB_KEYS_PER_CHUNK / 2; i++) {
		struct vb_mr *mr = any_region(&device);
		assert_ptr_not_equal(mr, first);
		assert_int_not_equal(vb_mr_key(mr), key);
		assert_ptr_equal(vb_key_find(&device.nic->keys, key), vb_key_of_mr(first)); /* nobody has its place */
		deregister(mr);
	}
	close_device(&device);
}

static void keys__an_entry_returns_with_another_key(void **state)
{
	struct device device = open_device();
	static struct {
		const struct vb_mr *mr;
		uint32_t key;
	} last[VB_KEYS_PER_CHUNK];
	int returned = 0;
	for (int i = 0; i < 20000; i++) {
		struct vb_mr *mr = any_region(&device);
		uint32_t key = vb_mr_key(mr);
		assert_in_range(
			device.nic->keys.room, 1, VB_KEYS_PER_CHUNK); /* it does not grow for one region at a time */
		size_t index = 0;
		while (last[index].mr && last[index].mr != mr)
			index++;
		assert_int_not_equal(key, last[index].key);
		returned += last[index].mr != NULL;
		last[index].mr = mr;
		last[index].key = key;
		deregister(mr);
	}
	assert_true(returned > 18000);
	close_device(&device);
}

static void keys__differ_with_either_half_of_the_seed(void **state)
{
	static const uint64_t seeds[3][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 } };
	uint32_t keys[3][8];
	for (int i = 0; i < 3; i++) {
		struct vb_key_table table;
		assert_int_equal(vb_keys_init(&table, seeds[i][0], seeds[i][1]), 0);
		for (int k = 0; k < 8; k++)
			assert_non_null(vb_keys_take(&table, VB_KEY_REGION, &keys[i][k]));
		vb_keys_deinit(&table);
	}
	assert_memory_not_equal(keys[0], keys[1], sizeof(keys[0]));
	assert_memory_not_equal(keys[0], keys[2], sizeof(keys[0]));
}

static void keys__a_hundred_thousand_regions_come_and_go(void **state)
{
	enum { MANY = 100000 };
	struct device device = open_device();
	struct vb_mr **mrs = calloc(MANY, sizeof(struct vb_mr *));
	for (int i = 0; i < MANY; i++)
		mrs[i] = any_region(&device);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(reach(device.pd, vb_mr_key(mrs[i])), 0);
	for (int i = 0; i < MANY; i++) {
		uint32_t key = vb_mr_key(mrs[i]);
		deregister(mrs[i]);
		assert_int_equal(reach(device.pd, key), -EACCES);
	}
	free(mrs);
	close_device(&device);
}

/* The table itself, without its objects: a million closed entries. */
static void keys__table_is_full_at_its_limit_and_recovers(void **state)
{
	struct vb_key_table table;
	uint32_t key, before;
	assert_int_equal(vb_keys_init(&table, 3, 3), 0);
	struct vb_key_entry *first = vb_keys_take(&table, VB_KEY_REGION, &before);
	for (uint32_t i = 1; i < VB_MAX_KEYS; i++)
		assert_non_null(vb_keys_take(&table, VB_KEY_REGION, &key));
	assert_null(vb_keys_take(&table, VB_KEY_REGION, &key));
	for (int i = 0; i < 200; i++) {
		vb_keys_give(&table, first);
		assert_ptr_equal(vb_keys_take(&table, VB_KEY_REGION, &key), first);
		assert_int_not_equal(key, before);
		before = key;
		assert_null(vb_keys_take(&table, VB_KEY_REGION, &key));
	}
	vb_keys_deinit(&table);
}

/* ---- Lookups against changes. Regions lie at addresses that name their memory and length, so that terms of two
 * regions mixed up are seen. ---- */

enum { SLOTS = 64, READERS = 3, CHANGES = 30000, SPAN = 4096 };

struct shared {
	struct vb_pd *pd;
	atomic_uint keys[SLOTS];
	atomic_bool is_done;
	atomic_uint found, mixed;
	uint8_t arena[SLOTS][SPAN];
};

/* Region n of a slot: n bytes and more from iova n * 2^32 on. */
static struct vb_mr_config nth(struct shared *shared, unsigned slot, uint32_t n)
{
	return (struct vb_mr_config){
		.memory = shared->arena[slot] + n % 64,
		.iova = (uint64_t)n << 32,
		.length = 64 + n % 64,
		.access = ALL_ACCESS,
	};
}

static void *look_up(void *arg)
{
	struct shared *shared = arg;
	for (uint32_t i = 0; !atomic_load_explicit(&shared->is_done, memory_order_relaxed); i++) {
		uint32_t key = atomic_load_explicit(&shared->keys[i % SLOTS], memory_order_relaxed);
		struct vb_reach reached;
		for (uint32_t n = 0; n < 4; n++) {
			if (vb_reach_remote(shared->pd, 1, key, (uint64_t)n << 32, 64 + n % 64, ALL_REMOTE, &reached))
				continue;
			atomic_fetch_add_explicit(&shared->found, 1, memory_order_relaxed);
			if ((reached.bytes - shared->arena[0]) % SPAN != n)
				atomic_fetch_add_explicit(&shared->mixed, 1, memory_order_relaxed);
			/* one byte beyond this region's end, which another may have */
			if (vb_reach_remote(shared->pd, 1, key, (uint64_t)n << 32, 65 + n % 64, ALL_REMOTE, &reached) ==
				0)
				atomic_fetch_add_explicit(&shared->mixed, 1, memory_order_relaxed);
		}
	}
	return NULL;
}

static void run_against_readers(struct shared *shared, void (*change)(struct shared *))
{
	pthread_t threads[READERS];
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_up, shared), 0);
	change(shared);
	atomic_store(&shared->is_done, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared->mixed, 0);
}

/* On a busy machine the readers may start late. */
static bool is_enough(const struct shared *shared, uint32_t changes)
{
	return changes >= CHANGES && atomic_load(&shared->found) > 1000;
}

static void come_and_go(struct shared *shared)
{
	struct vb_mr *mrs[SLOTS] = { NULL };
	for (uint32_t i = 0; !is_enough(shared, i); i++) {
		unsigned slot = i * 7 % SLOTS;
		if (mrs[slot])
			deregister(mrs[slot]); /* no grace: a stale answer must still be a whole one */
		struct vb_mr_config config = nth(shared, slot, i / SLOTS % 4);
		assert_int_equal(vb_mr_register(shared->pd, &config, &mrs[slot]), 0);
		atomic_store_explicit(&shared->keys[slot], vb_mr_key(mrs[slot]), memory_order_relaxed);
		if (i % 256 == 0)
			sched_yield();
	}
	for (int i = 0; i < SLOTS; i++)
		deregister(mrs[i]);
}

static void change_in_place(struct shared *shared)
{
	struct vb_mr *mrs[SLOTS];
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		struct vb_mr_config config = nth(shared, slot, 0);
		assert_int_equal(vb_mr_register(shared->pd, &config, &mrs[slot]), 0);
		atomic_store_explicit(&shared->keys[slot], vb_mr_key(mrs[slot]), memory_order_relaxed);
	}
	for (uint32_t i = 0; !is_enough(shared, i); i++) {
		unsigned slot = i * 7 % SLOTS;
		struct vb_mr_config config = nth(shared, slot, i / SLOTS % 4);
		assert_int_equal(vb_mr_invalidate(mrs[slot]), 0);
		assert_int_equal(vb_mr_revalidate(mrs[slot], NULL, &config), 0);
		if (i % 256 == 0)
			sched_yield();
	}
	for (int i = 0; i < SLOTS; i++)
		deregister(mrs[i]);
}

static void stress(void (*change)(struct shared *))
{
	struct device device = open_device();
	struct shared *shared = calloc(1, sizeof(*shared));
	shared->pd = device.pd;
	run_against_readers(shared, change);
	free(shared);
	close_device(&device);
}

static void keys__lookups_see_whole_regions_while_they_come_and_go(void **state)
{
	stress(come_and_go);
}

static void keys__lookups_see_whole_regions_while_one_key_changes_its_terms(void **state)
{
	stress(change_in_place);
}

/* The places double under the readers' hands: the keys that there are lead on to their regions. */
static void grow_under(struct shared *shared)
{
	enum { MANY = 40000 };
	struct vb_mr *mrs[SLOTS], **others = calloc(MANY, sizeof(struct vb_mr *));
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		struct vb_mr_config config = nth(shared, slot, 0);
		assert_int_equal(vb_mr_register(shared->pd, &config, &mrs[slot]), 0);
		atomic_store_explicit(&shared->keys[slot], vb_mr_key(mrs[slot]), memory_order_relaxed);
	}
	for (int i = 0; i < MANY; i++) {
		struct vb_mr_config config = nth(shared, 0, 1);
		struct vb_reach reached;
		assert_int_equal(vb_mr_register(shared->pd, &config, &others[i]), 0);
		assert_int_equal(
			vb_reach_remote(shared->pd, 1, vb_mr_key(mrs[i % SLOTS]), 0, 64, ALL_REMOTE, &reached), 0);
		if (i % 256 == 0)
			sched_yield();
	}
	for (int i = 0; i < MANY; i++)
		deregister(others[i]);
	for (int i = 0; i < SLOTS; i++)
		deregister(mrs[i]);
	free(others);
}

static void keys__lookups_go_on_while_the_table_grows(void **state)
{
	stress(grow_under);
}

struct once {
	struct vb_pd *pd;
	atomic_uint key, is_invalid, late;
	atomic_bool is_done;
};

static void *look_for_late(void *arg)
{
	struct once *once = arg;
	while (!atomic_load(&once->is_done)) {
		uint32_t key = atomic_load(&once->key);
		bool was_invalid = atomic_load(&once->is_invalid) == key;
		if (key && reach(once->pd, key) == 0 && was_invalid)
			atomic_fetch_add(&once->late, 1);
	}
	return NULL;
}

static void keys__no_lookup_that_begins_after_invalidate_succeeds(void **state)
{
	struct device device = open_device();
	struct once once = { .pd = device.pd };
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_for_late, &once), 0);
	for (int i = 0; i < 30000; i++) {
		struct vb_mr *mr = any_region(&device);
		atomic_store(&once.key, vb_mr_key(mr));
		assert_int_equal(vb_mr_invalidate(mr), 0);
		atomic_store(&once.is_invalid, vb_mr_key(mr));
		if (i % 64 == 0)
			sched_yield();
		atomic_store(&once.key, 0);
		vb_mr_free(mr);
	}
	atomic_store(&once.is_done, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(once.late, 0);
	close_device(&device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys__are_all_different_and_none_is_special),
		cmocka_unit_test(keys__every_bit_is_compared),
		cmocka_unit_test(keys__zero_and_all_ones_open_nothing),
		cmocka_unit_test(keys__local_peers_have_nothing_in_common),
		cmocka_unit_test(keys__a_freed_entry_does_not_return_soon_nor_does_its_key),
		cmocka_unit_test(keys__an_entry_returns_with_another_key),
		cmocka_unit_test(keys__differ_with_either_half_of_the_seed),
		cmocka_unit_test(keys__a_hundred_thousand_regions_come_and_go),
		cmocka_unit_test(keys__table_is_full_at_its_limit_and_recovers),
		cmocka_unit_test(keys__lookups_see_whole_regions_while_they_come_and_go),
		cmocka_unit_test(keys__lookups_see_whole_regions_while_one_key_changes_its_terms),
		cmocka_unit_test(keys__lookups_go_on_while_the_table_grows),
		cmocka_unit_test(keys__no_lookup_that_begins_after_invalidate_succeeds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
