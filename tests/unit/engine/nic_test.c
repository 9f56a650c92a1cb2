#include <errno.h>
#include <pthread.h>
#include "core/memory.h"
#include "../unit.h"

static struct vb_nic *created(void)
{
	struct vb_nic *nic;
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = 1, .mtu = 1024 }, &nic), 0);
	return nic;
}

static void nic__refuses_an_mtu_that_does_not_exist(void **state)
{
	struct vb_nic *nic = NULL;
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .mtu = 4097 }, &nic), -EINVAL);
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .mtu = 0 }, &nic), -EINVAL);
	assert_null(nic);
}

static void nic__gids_are_set_emptied_and_found(void **state)
{
	struct vb_nic *nic = created();
	struct vb_gid a = vb_gid_from_ipv4(10, 0, 0, 1), b = vb_gid_from_ipv4(10, 0, 0, 2), got = { 0 }, zero = { 0 };
	assert_int_equal(vb_nic_get_gid(nic, 0, &got), -ENODATA);
	assert_false(vb_nic_has_gid(nic, &zero));
	assert_int_equal(vb_nic_set_gid(nic, 0, &a), 0);
	assert_int_equal(vb_nic_set_gid(nic, VB_MAX_GIDS - 1, &b), 0);
	assert_int_equal(vb_nic_get_gid(nic, 0, &got), 0);
	assert_true(vb_gid_equal(&got, &a));
	assert_int_equal(vb_nic_get_gid(nic, VB_MAX_GIDS - 1, &got), 0);
	assert_true(vb_gid_equal(&got, &b));
	assert_true(vb_nic_has_gid(nic, &a) && vb_nic_has_gid(nic, &b));
	assert_int_equal(vb_nic_set_gid(nic, 0, NULL), 0);
	assert_int_equal(vb_nic_get_gid(nic, 0, &got), -ENODATA);
	assert_false(vb_nic_has_gid(nic, &a));
	assert_true(vb_gid_equal(&got, &b)); /* outputs are written only on success */
	vb_nic_destroy(nic);
}

static void nic__gid_table_ends_where_it_says(void **state)
{
	struct vb_nic *nic = created();
	struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 1);
	assert_int_equal(vb_nic_set_gid(nic, VB_MAX_GIDS, &gid), -EINVAL);
	assert_int_equal(vb_nic_get_gid(nic, VB_MAX_GIDS, &gid), -EINVAL);
	vb_nic_destroy(nic);
}

/* A GID whose halves agree; readers must never see two halves of different ones. */
static struct vb_gid twin(uint64_t n)
{
	struct vb_gid gid;
	memcpy(gid.raw, &n, 8);
	memcpy(gid.raw + 8, &n, 8);
	return gid;
}

struct shared {
	struct vb_nic *nic;
	atomic_bool is_done;
	atomic_uint torn, lost;
};

static void *read_gids(void *arg)
{
	struct shared *shared = arg;
	struct vb_gid constant = vb_gid_from_ipv4(10, 0, 0, 9);
	while (!atomic_load(&shared->is_done)) {
		struct vb_gid gid;
		if (vb_nic_get_gid(shared->nic, 3, &gid) || memcmp(gid.raw, gid.raw + 8, 8) != 0)
			atomic_fetch_add(&shared->torn, 1);
		if (!vb_nic_has_gid(shared->nic, &constant))
			atomic_fetch_add(&shared->lost, 1);
	}
	return NULL;
}

static void nic__gids_are_read_whole_while_they_change(void **state)
{
	struct shared shared = { .nic = created() };
	struct vb_gid constant = vb_gid_from_ipv4(10, 0, 0, 9), changing = twin(1);
	pthread_t threads[2];
	vb_nic_set_gid(shared.nic, 5, &constant);
	vb_nic_set_gid(shared.nic, 3, &changing);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_gids, &shared), 0);
	for (uint64_t n = 1; n < 20000; n++) {
		changing = twin(n * 0x0123456789ABCDEF);
		vb_nic_set_gid(shared.nic, 3, &changing);
		if (n % 64 == 0)
			sched_yield();
	}
	atomic_store(&shared.is_done, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.torn, 0);
	assert_int_equal(shared.lost, 0);
	vb_nic_destroy(shared.nic);
}

static void pd__is_busy_while_anything_uses_it(void **state)
{
	struct vb_nic *nic = created();
	struct vb_pd *pd;
	struct vb_mr *mr;
	struct vb_mw *mw;
	struct vb_srq *srq;
	char memory[8];
	struct vb_mr_config config = { .memory = memory, .iova = (uintptr_t)memory, .length = sizeof(memory) };
	assert_int_equal(vb_pd_create(nic, &pd), 0);
	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	assert_int_equal(vb_mw_create(pd, 2, &mw), 0);
	assert_int_equal(vb_srq_create(pd, &(struct vb_srq_config){ .max_wr = 1, .max_sge = 1 }, &srq), 0);
	assert_int_equal(vb_pd_destroy(pd), -EBUSY);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	assert_int_equal(vb_pd_destroy(pd), -EBUSY);
	vb_mr_free(mr);
	assert_int_equal(vb_pd_destroy(pd), -EBUSY);
	assert_int_equal(vb_mw_destroy(mw), 0);
	assert_int_equal(vb_pd_destroy(pd), -EBUSY);
	assert_int_equal(vb_srq_destroy(srq), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_nic_destroy(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nic__refuses_an_mtu_that_does_not_exist),
		cmocka_unit_test(nic__gids_are_set_emptied_and_found),
		cmocka_unit_test(nic__gid_table_ends_where_it_says),
		cmocka_unit_test(nic__gids_are_read_whole_while_they_change),
		cmocka_unit_test(pd__is_busy_while_anything_uses_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
