/* Regions: what may be registered, who may reach what. */
#include "device.h"

enum { BYTES = 256 };

static _Alignas(64) uint8_t memory[BYTES];

static int reach_remote(const struct vb_pd *pd, const struct vb_mr *mr, uint64_t va, uint32_t length, uint32_t access)
{
	struct vb_reach reach;
	return vb_reach_remote(pd, 5, vb_mr_key(mr), va, length, access, &reach);
}

static int reach_local(
	const struct vb_pd *pd, const struct vb_mr *mr, uint64_t va, uint32_t offset, uint32_t length, uint32_t access)
{
	struct vb_reach reach;
	struct vb_sge sge = { .addr = va, .length = UINT32_MAX, .lkey = vb_mr_key(mr) };
	return vb_reach_local(pd, &sge, offset, length, access, &reach);
}

/* ---- Registration ---- */

static void register__remote_write_and_atomic_need_local_write(void **state)
{
	struct device device = open_device();
	for (uint32_t access = 0; access < 64; access++) {
		struct vb_mr *mr = NULL;
		struct vb_mr_config config = region_of(memory, BYTES, access);
		bool is_bad = (access & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC)) &&
			      !(access & VB_ACCESS_LOCAL_WRITE);
		assert_int_equal(vb_mr_register(device.pd, &config, &mr), is_bad ? -EINVAL : 0);
		if (mr)
			deregister(mr);
	}
	close_device(&device);
}

static void register__refuses_what_wraps_and_unknown_access(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = NULL;
	struct vb_mr_config bad[] = {
		{ .memory = memory, .iova = UINT64_MAX, .length = 2 },
		{ .memory = memory, .iova = 1, .length = UINT64_MAX },
		{ .memory = (void *)UINTPTR_MAX, .iova = 0, .length = 2 },
		{ .memory = NULL, .iova = 0, .length = 1 },
		{ .memory = memory, .iova = 0, .length = 1, .access = 64 },
		{ .iova = UINT64_MAX, .length = 2, .kind = &vb_memory_phantom },
	};
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(vb_mr_register(device.pd, &bad[i], &mr), -EINVAL);
	assert_null(mr);
	struct vb_mr_config last_byte = { .memory = memory, .iova = UINT64_MAX, .length = 1 };
	assert_int_equal(vb_mr_register(device.pd, &last_byte, &mr), 0);
	assert_int_equal(reach_remote(device.pd, mr, UINT64_MAX, 1, 0), 0);
	assert_int_equal(reach_remote(device.pd, mr, UINT64_MAX, 2, 0), -EACCES);
	deregister(mr);
	close_device(&device);
}

static void register__zero_length_reaches_nothing(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = registered(device.pd, memory, 0, ALL_ACCESS);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 1, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach_local(device.pd, mr, (uintptr_t)memory, 0, 1, 0), -EACCES);
	deregister(mr);
	struct vb_mr_config nowhere = { .access = ALL_ACCESS };
	assert_int_equal(vb_mr_register(device.pd, &nowhere, &mr), 0);
	assert_int_equal(reach_remote(device.pd, mr, 0, 1, VB_ACCESS_REMOTE_READ), -EACCES);
	deregister(mr);
	close_device(&device);
}

/* ---- Reach ---- */

static void reach__ends_exactly_where_the_region_ends(void **state)
{
	struct device device = open_device();
	uint64_t start = (uintptr_t)memory + 16;
	struct vb_mr *mr = registered(device.pd, memory + 16, 100, ALL_ACCESS);
	for (int first = -3; first <= 103; first++) {
		for (uint32_t length = 1; length <= 104; length++) {
			bool is_inside = first >= 0 && first + (int)length <= 100;
			int expected = is_inside ? 0 : -EACCES;
			uint64_t va = start + (uint64_t)(int64_t)first;
			assert_int_equal(reach_remote(device.pd, mr, va, length, VB_ACCESS_REMOTE_WRITE), expected);
			assert_int_equal(reach_local(device.pd, mr, va, 0, length, VB_ACCESS_LOCAL_WRITE), expected);
			if (first >= 0)
				assert_int_equal(reach_local(device.pd, mr, start, first, length, 0), expected);
		}
	}
	assert_int_equal(reach_remote(device.pd, mr, start, UINT32_MAX, VB_ACCESS_REMOTE_WRITE), -EACCES);
	deregister(mr);
	close_device(&device);
}

static void reach__gives_the_place_in_memory(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = { .memory = memory, .iova = 0x123456000, .length = BYTES, .access = ALL_ACCESS };
	struct vb_mr *mr;
	struct vb_reach reach;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 0x123456007, 3, ALL_REMOTE, &reach), 0);
	assert_ptr_equal(reach.bytes, memory + 7);
	assert_null(reach.kind);
	struct vb_sge sge = { .addr = 0x123456007, .length = 100, .lkey = vb_mr_key(mr) };
	assert_int_equal(vb_reach_local(device.pd, &sge, 13, 3, VB_ACCESS_LOCAL_WRITE, &reach), 0);
	assert_ptr_equal(reach.bytes, memory + 20);
	deregister(mr);
	close_device(&device);
}

static void reach__parts_hold_while_the_key_stays_as_it_was(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = { .memory = memory, .iova = 4096, .length = BYTES, .access = ALL_ACCESS };
	struct vb_mr *mr;
	struct vb_reach whole, part;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	struct vb_sge sge = { .addr = 4096 + 8, .length = BYTES - 8, .lkey = vb_mr_key(mr) };
	assert_int_equal(vb_reach_whole(device.pd, &sge, &whole), 0);
	assert_true(vb_reach_part(&whole, 5, 3, false, &part));
	assert_ptr_equal(part.bytes, memory + 13);
	vb_mr_invalidate(mr);
	assert_false(vb_reach_part(&whole, 5, 3, false, &part));
	assert_int_equal(vb_mr_revalidate(mr, NULL, &config), 0); /* the same key, but who knows of what */
	assert_false(vb_reach_part(&whole, 5, 3, false, &part));
	assert_int_equal(vb_reach_whole(device.pd, &sge, &whole), 0);
	assert_true(vb_reach_part(&whole, 0, 1, true, &part));
	sge.length++;
	assert_int_equal(vb_reach_whole(device.pd, &sge, &whole), -EACCES);
	deregister(mr);
	close_device(&device);
}

static void reach__known_key_opens_what_it_opens_and_no_longer_than_that(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = {
		.memory = memory, .iova = 4096, .length = BYTES, .access = VB_ACCESS_REMOTE_READ
	};
	struct vb_known_key known = { 0 };
	struct vb_mr *mr;
	struct vb_reach reach;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	uint32_t key = vb_mr_key(mr);
	for (int i = 0; i < 4; i++) { /* known from the third time on */
		assert_int_equal(
			vb_reach_remote_known(device.pd, &known, 5, key, 4096 + 3, 5, VB_ACCESS_REMOTE_READ, &reach),
			0);
		assert_ptr_equal(reach.bytes, memory + 3);
		assert_int_equal(known.stamp != NULL, i > 0);
		assert_int_equal(vb_reach_remote_known(
					 device.pd, &known, 5, key, 4096 + BYTES - 4, 5, VB_ACCESS_REMOTE_READ, &reach),
			-EACCES);
		assert_int_equal(
			vb_reach_remote_known(device.pd, &known, 5, key, 4095, 5, VB_ACCESS_REMOTE_READ, &reach),
			-EACCES);
		assert_int_equal(
			vb_reach_remote_known(device.pd, &known, 5, key, 4096, 5, VB_ACCESS_REMOTE_WRITE, &reach),
			-EACCES);
	}
	struct vb_pd *other;
	assert_int_equal(vb_pd_create(device.nic, &other), 0);
	assert_int_equal(vb_reach_remote_known(other, &known, 5, key, 4096, 5, VB_ACCESS_REMOTE_READ, &reach), -EACCES);
	assert_int_equal(vb_pd_destroy(other), 0);
	vb_mr_invalidate(mr);
	assert_int_equal(
		vb_reach_remote_known(device.pd, &known, 5, key, 4096, 5, VB_ACCESS_REMOTE_READ, &reach), -EACCES);
	deregister(mr);
	close_device(&device);
}

static void reach__zero_based_begins_at_zero(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = { .memory = memory, .length = BYTES, .access = ALL_ACCESS | VB_ACCESS_ZERO_BASED };
	struct vb_mr *mr;
	struct vb_reach reach;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 0, BYTES, ALL_REMOTE, &reach), 0);
	assert_ptr_equal(reach.bytes, memory);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 1, ALL_REMOTE), -EACCES);
	assert_int_equal(reach_local(device.pd, mr, UINT64_MAX, 2, 1, 0), -EACCES); /* wraps to 1 */
	deregister(mr);
	close_device(&device);
}

static void reach__grants_what_was_registered_and_no_more(void **state)
{
	struct device device = open_device();
	for (uint32_t granted = 0; granted < 16; granted++) {
		if (granted & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC))
			granted |= VB_ACCESS_LOCAL_WRITE;
		struct vb_mr *mr = registered(device.pd, memory, BYTES, granted);
		for (uint32_t wanted = 0; wanted < 16; wanted++) {
			int expected = (granted & wanted) == wanted ? 0 : -EACCES;
			assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 8, wanted), expected);
			assert_int_equal(reach_local(device.pd, mr, (uintptr_t)memory, 0, 8, wanted), expected);
		}
		deregister(mr);
	}
	close_device(&device);
}

static void reach__another_domain_is_refused(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = registered(device.pd, memory, BYTES, ALL_ACCESS);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 8, 0), 0);
	assert_int_equal(reach_remote(device.other_pd, mr, (uintptr_t)memory, 8, 0), -EACCES);
	assert_int_equal(reach_local(device.other_pd, mr, (uintptr_t)memory, 0, 8, 0), -EACCES);
	deregister(mr);
	close_device(&device);
}

static void reach__zero_length_local_needs_no_key(void **state)
{
	struct device device = open_device();
	struct vb_reach reach = { .bytes = memory, .kind = &vb_memory_null };
	struct vb_sge sge = { .addr = UINT64_MAX, .length = 0, .lkey = 0xABCDEF };
	assert_int_equal(vb_reach_local(device.pd, &sge, 0, 0, VB_ACCESS_LOCAL_WRITE, &reach), 0);
	assert_null(reach.bytes);
	assert_null(reach.kind);
	close_device(&device);
}

static void reach__output_is_untouched_on_refusal(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = registered(device.pd, memory, BYTES, ALL_ACCESS);
	struct vb_reach reach = { .bytes = memory + 3 };
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 0, 8, 0, &reach), -EACCES);
	assert_ptr_equal(reach.bytes, memory + 3);
	deregister(mr);
	close_device(&device);
}

/* Of the address space only memory[64 .. 128) is there, and of that the second half cannot be written. */
static bool is_present(const void *at, uint64_t length, bool for_writing)
{
	uintptr_t start = (uintptr_t)memory + 64, end = start + (for_writing ? 32 : 64);
	return (uintptr_t)at >= start && (uintptr_t)at < end && length <= end - (uintptr_t)at;
}

static const struct vb_memory_kind pageable = { .access = UINT32_MAX, .is_present = is_present };

static void reach__pageable_memory_is_looked_at_each_time(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = { .length = UINT64_MAX, .access = ALL_ACCESS, .kind = &pageable };
	struct vb_mr *mr;
	struct vb_mw *mw;
	uint64_t va = (uintptr_t)memory;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	assert_int_equal(reach_remote(device.pd, mr, va + 64, 64, VB_ACCESS_REMOTE_READ), 0);
	assert_int_equal(reach_remote(device.pd, mr, va + 64, 65, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach_remote(device.pd, mr, va + 64, 64, VB_ACCESS_REMOTE_WRITE), -EACCES);
	assert_int_equal(reach_remote(device.pd, mr, va + 64, 32, VB_ACCESS_REMOTE_WRITE), 0);
	assert_int_equal(reach_remote(device.pd, mr, va + 88, 8, VB_ACCESS_REMOTE_ATOMIC), 0);
	assert_int_equal(reach_remote(device.pd, mr, va + 96, 8, VB_ACCESS_REMOTE_ATOMIC), -EACCES);
	assert_int_equal(reach_local(device.pd, mr, va + 32, 32, 64, 0), 0);
	assert_int_equal(reach_local(device.pd, mr, va + 32, 31, 64, 0), -EACCES);
	assert_int_equal(reach_local(device.pd, mr, va + 32, 32, 64, VB_ACCESS_LOCAL_WRITE), -EACCES);
	assert_int_equal(reach_local(device.pd, mr, 0, 0, 0, 0), 0);
	/* A window onto it is no way around. */
	assert_int_equal(vb_mw_create(device.pd, 1, &mw), 0);
	uint32_t key = vb_mw_next_key(mw);
	assert_int_equal(vb_mw_bind(mw, mr, device.pd, 5, va, BYTES, VB_ACCESS_REMOTE_READ, key), 0);
	struct vb_reach reach;
	assert_int_equal(vb_reach_remote(device.pd, 5, key, va + 64, 64, VB_ACCESS_REMOTE_READ, &reach), 0);
	assert_ptr_equal(reach.bytes, memory + 64);
	assert_int_equal(vb_reach_remote(device.pd, 5, key, va + 63, 8, VB_ACCESS_REMOTE_READ, &reach), -EACCES);
	assert_int_equal(vb_mw_destroy(mw), 0);
	deregister(mr);
	close_device(&device);
}

/* ---- Invalidation and change ---- */

static void invalidate__ends_all_access_and_may_be_repeated(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = registered(device.pd, memory, BYTES, ALL_ACCESS);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 8, 0), -EACCES);
	assert_int_equal(reach_local(device.pd, mr, (uintptr_t)memory, 0, 8, 0), -EACCES);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	close_device(&device);
}

static void revalidate__changes_everything_but_the_key(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = registered(device.pd, memory, BYTES, ALL_ACCESS);
	uint32_t key = vb_mr_key(mr);
	struct vb_mr_config config = region_of(memory + 64, 32, VB_ACCESS_REMOTE_READ);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	assert_int_equal(vb_mr_revalidate(mr, device.other_pd, &config), 0);
	assert_int_equal(vb_mr_key(mr), key);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory + 64, 8, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach_remote(device.other_pd, mr, (uintptr_t)memory + 64, 32, VB_ACCESS_REMOTE_READ), 0);
	assert_int_equal(reach_remote(device.other_pd, mr, (uintptr_t)memory + 64, 33, VB_ACCESS_REMOTE_READ), -EACCES);
	assert_int_equal(reach_remote(device.other_pd, mr, (uintptr_t)memory + 64, 8, VB_ACCESS_REMOTE_WRITE), -EACCES);
	assert_int_equal(device.pd->users, 0);
	assert_int_equal(device.other_pd->users, 1);
	deregister(mr);
	close_device(&device);
}

static void revalidate__that_fails_leaves_it_invalid_and_may_be_tried_again(void **state)
{
	struct device device = open_device();
	struct vb_mr *mr = registered(device.pd, memory, BYTES, ALL_ACCESS);
	struct vb_mr_config good = region_of(memory, BYTES, ALL_ACCESS), bad = region_of(memory, BYTES, ALL_REMOTE);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	assert_int_equal(vb_mr_revalidate(mr, device.other_pd, &bad), -EINVAL);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 8, 0), -EACCES);
	assert_int_equal(device.pd->users, 1);
	assert_int_equal(vb_mr_revalidate(mr, NULL, &good), 0);
	assert_int_equal(reach_remote(device.pd, mr, (uintptr_t)memory, 8, 0), 0);
	deregister(mr);
	close_device(&device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(register__remote_write_and_atomic_need_local_write),
		cmocka_unit_test(register__refuses_what_wraps_and_unknown_access),
		cmocka_unit_test(register__zero_length_reaches_nothing),
		cmocka_unit_test(reach__ends_exactly_where_the_region_ends),
		cmocka_unit_test(reach__gives_the_place_in_memory),
		cmocka_unit_test(reach__parts_hold_while_the_key_stays_as_it_was),
		cmocka_unit_test(reach__known_key_opens_what_it_opens_and_no_longer_than_that),
		cmocka_unit_test(reach__zero_based_begins_at_zero),
		cmocka_unit_test(reach__grants_what_was_registered_and_no_more),
		cmocka_unit_test(reach__another_domain_is_refused),
		cmocka_unit_test(reach__zero_length_local_needs_no_key),
		cmocka_unit_test(reach__output_is_untouched_on_refusal),
		cmocka_unit_test(reach__pageable_memory_is_looked_at_each_time),
		cmocka_unit_test(invalidate__ends_all_access_and_may_be_repeated),
		cmocka_unit_test(revalidate__changes_everything_but_the_key),
		cmocka_unit_test(revalidate__that_fails_leaves_it_invalid_and_may_be_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
