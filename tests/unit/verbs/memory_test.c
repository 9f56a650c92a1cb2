/* Domains, regions, windows, address handles: what may be made of which memory, and in which order it goes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "fixture.h"
#include "loop_host.h"

#undef ibv_reg_mr

static struct ibv_mr *try_register(struct fixture *f, void *addr, size_t length, int access)
{
	errno = 0;
	return ibv_reg_mr(f->pd, addr, length, access);
}

static void expect_registered(struct fixture *f, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = try_register(f, addr, length, access);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, addr);
	assert_int_equal(mr->length, length);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void expect_refused(struct fixture *f, void *addr, size_t length, int access, int error)
{
	assert_null(try_register(f, addr, length, access));
	assert_int_equal(errno, error);
}

static void mr__access_flags_are_checked(void **state)
{
	struct fixture *f = *state;
	expect_registered(f, f->buffer, 64, 0);
	expect_registered(f, f->buffer, 64, ALL_ACCESS);
	expect_registered(f, f->buffer, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	expect_registered(f, f->buffer, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB);
	/* optional bits mean nothing here, known or not */
	expect_registered(f, f->buffer, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING | 1 << 29);
	expect_refused(f, f->buffer, 64, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	expect_refused(f, f->buffer, 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	expect_registered(f, f->buffer, 64, IBV_ACCESS_ON_DEMAND);
	expect_refused(f, f->buffer, 64, 1 << 10, EINVAL);
}

static void mr__memory_must_be_there(void **state)
{
	struct fixture *f = *state;
	size_t page = 4096;
	uint8_t *area = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	expect_registered(f, area, 5 * page, ALL_ACCESS);
	munmap(area + 2 * page, page); /* a hole in the middle */
	mprotect(area + 4 * page, page, PROT_READ);
	expect_registered(f, area + 1, 2 * page - 1, ALL_ACCESS);
	expect_refused(f, area, 5 * page, 0, EFAULT);
	expect_refused(f, area + 2 * page, 8, 0, EFAULT);
	expect_refused(f, area, 2 * page + 1, 0, EFAULT);
	expect_registered(f, area + 4 * page, page, IBV_ACCESS_REMOTE_READ);
	expect_refused(f, area + 4 * page, page, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	expect_refused(f, NULL, 64, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	expect_refused(f, (void *)(UINTPTR_MAX - 8), 64, IBV_ACCESS_LOCAL_WRITE, EINVAL);
	munmap(area, 5 * page);
}

static void mr__of_no_bytes_is_a_region(void **state)
{
	struct fixture *f = *state;
	expect_registered(f, f->buffer, 0, ALL_ACCESS);
	expect_registered(f, NULL, 0, 0);
}

static void mr__by_the_hundred_thousand(void **state)
{
	struct fixture *f = *state;
	enum { COUNT = 100000 };
	struct ibv_mr **mrs = calloc(COUNT, sizeof(struct ibv_mr *));
	for (int i = 0; i < COUNT; i++) {
		mrs[i] = ibv_reg_mr(f->pd, f->buffer, 64, ALL_ACCESS);
		assert_non_null(mrs[i]);
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
	free(mrs);
}

static void mr__rereg_changes_what_its_flags_name(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *mr = ibv_reg_mr(f->pd, f->buffer, 64, ALL_ACCESS);
	struct ibv_pd *other = ibv_alloc_pd(f->context);
	uint32_t lkey = mr->lkey;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, f->buffer + 128, 256, 0), 0);
	assert_ptr_equal(mr->addr, f->buffer + 128);
	assert_int_equal(mr->length, 256);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, other);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	/* What is refused leaves the region as it was. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, 1 << 7, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 64, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(mr->length, 256);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

static void pd__is_busy_while_used(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_ah_attr attr = fixture_ah_attr();
	assert_non_null(mw);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_null(ibv_alloc_mw(f->pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
}

static void expect_no_ah(struct fixture *f, struct ibv_ah_attr attr)
{
	errno = 0;
	assert_null(ibv_create_ah(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
}

static void ah__must_be_reachable_from_here(void **state)
{
	struct fixture *f = *state;
	struct ibv_ah_attr attr = fixture_ah_attr(), wrong;
	wrong = attr, wrong.is_global = 0;
	expect_no_ah(f, wrong);
	wrong = attr, wrong.port_num = 2;
	expect_no_ah(f, wrong);
	wrong = attr, wrong.grh.sgid_index = 9;
	expect_no_ah(f, wrong);
	wrong = attr, wrong.grh.sgid_index = LOOP_IPV6_GID_INDEX;
	expect_no_ah(f, wrong);
	wrong = attr, memset(&wrong.grh.dgid, 0, sizeof(wrong.grh.dgid));
	expect_no_ah(f, wrong);
	/* IPv4 multicast, wrapped as rdma_cm does */
	static const uint8_t group[16] = { 0xff, 0x0e, [10] = 0xff, 0xff, 224, 1, 2, 3 };
	memcpy(attr.grh.dgid.raw, group, sizeof(group));
	struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void ah__from_a_completion_goes_back_to_the_sender(void **state)
{
	struct fixture *f = *state;
	/* 20 undefined bytes that look like IPv6, then an IPv4 header with its checksum: 10.0.0.9 to 10.0.0.1 */
	static const uint8_t header[20] = { 0x45, 0x03, 0x00, 0x54, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x8d, 10,
		0, 0, 9, 10, 0, 0, 1 };
	struct ibv_grh grh;
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .sl = 0xA };
	struct ibv_ah_attr attr;
	struct vb_gid sender = vb_gid_from_ipv4(10, 0, 0, 9);
	memset(&grh, 0x60, sizeof(grh));
	memcpy((uint8_t *)&grh + 20, header, sizeof(header));
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_memory_equal(attr.grh.dgid.raw, sender.raw, 16);
	assert_int_equal(attr.grh.sgid_index, LOOP_IPV4_GID_INDEX);
	assert_int_equal(attr.grh.hop_limit, 64);
	assert_int_equal(attr.grh.traffic_class, 0); /* the congestion mark stays behind */
	struct ibv_ah *ah = ibv_create_ah_from_wc(f->pd, &wc, &grh, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	memset(&grh, 0, sizeof(grh));
	memcpy(&grh, (uint8_t[]){ 0x68, 0x01, 0x23, 0x45 }, 4); /* version 6, class 0x80, flow 0x12345 */
	grh.next_hdr = 17;
	grh.hop_limit = 3;
	grh.sgid.raw[0] = 0xfe, grh.sgid.raw[1] = 0x80, grh.sgid.raw[15] = 9;
	grh.dgid.raw[0] = 0xfe, grh.dgid.raw[1] = 0x80, grh.dgid.raw[15] = 1;
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, LOOP_IPV6_GID_INDEX);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.grh.traffic_class, 0x80);
	assert_memory_equal(attr.grh.dgid.raw, grh.sgid.raw, 16);
	grh.dgid.raw[15] = 77; /* came to an address that is not ours */
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), -1);
}

/* The checksum tells, whose sum overflows with most addresses, whether what looks like both is IPv4. */
static void ah__from_a_completion_knows_ipv4_by_its_checksum(void **state)
{
	struct fixture *f = *state;
	/* 192.168.1.9 to 10.0.0.1 */
	static const uint8_t header[20] = { 0x45, 0x00, 0x00, 0x54, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x6e, 0xe7, 192,
		168, 1, 9, 10, 0, 0, 1 };
	struct ibv_grh grh;
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;
	uint8_t *ipv4 = (uint8_t *)&grh + 20;

	memset(&grh, 0x60, sizeof(grh));
	memcpy(ipv4, header, sizeof(header));
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.grh.dgid.raw[15], 9);
	ipv4[8]++;
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), -1); /* IPv6, and not to us */
	assert_int_equal(errno, EINVAL);
	memset(&grh, 0, 20);
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), 0); /* it can be nothing else */
	memset(&grh, 0, sizeof(grh));
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	wc.wc_flags = 0;
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.is_global, 0);
}

static void *rereg_often(void *argument)
{
	struct ibv_mr *mr = argument;
	intptr_t failed = 0;
	for (int i = 0; i < 5000; i++)
		failed |= ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
	return (void *)failed;
}

static void mr__is_changed_by_one_thread_after_another(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *mr = ibv_reg_mr(f->pd, f->buffer, 64, ALL_ACCESS);
	pthread_t thread;
	void *failed;
	pthread_create(&thread, NULL, rereg_often, mr);
	assert_null(rereg_often(mr));
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(mr__access_flags_are_checked),
		WITH_DEVICE(mr__memory_must_be_there),
		WITH_DEVICE(mr__of_no_bytes_is_a_region),
		WITH_DEVICE(mr__by_the_hundred_thousand),
		WITH_DEVICE(mr__rereg_changes_what_its_flags_name),
		WITH_DEVICE(mr__is_changed_by_one_thread_after_another),
		WITH_DEVICE(pd__is_busy_while_used),
		WITH_DEVICE(ah__must_be_reachable_from_here),
		WITH_DEVICE(ah__from_a_completion_goes_back_to_the_sender),
		WITH_DEVICE(ah__from_a_completion_knows_ipv4_by_its_checksum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
