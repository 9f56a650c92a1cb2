/* Regions of other kinds than registered memory, and domains of other kinds than protection domains: on demand, null,
 * device memory, parent and thread domains. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fixture.h"
#include "loop_host.h"

#undef ibv_reg_mr

enum { PAGE = 4096 };

static void *map_pages(size_t count)
{
	void *pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	return pages;
}

/* One WRITE from left to right and how it ended. */
static enum ibv_wc_status write_status(
	struct fixture *f, uint64_t from, uint32_t lkey, uint32_t length, uint64_t to, uint32_t rkey)
{
	struct ibv_sge sge = { from, length, lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = to, .rkey = rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	return fixture_complete(f->cq).status;
}

/* ---- On demand ---- */

static void odp__says_what_it_does(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr_ex attr;
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, 0xff);
	assert_int_equal(attr.max_dm_size > 0, 1);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr(f->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(f->pd, (void *)8, SIZE_MAX, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EINVAL);
}

static void odp__memory_may_come_after_its_region(void **state)
{
	struct fixture *f = *state;
	uint8_t *pages = map_pages(2);
	munmap(pages, 2 * PAGE);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, pages, 2 * PAGE, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	void *again = mmap(pages, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(again, pages);
	memset(f->buffer, 0x5A, PAGE);
	uint64_t to = (uintptr_t)pages + 100, from = (uintptr_t)f->buffer;
	assert_int_equal(write_status(f, from, f->mr->lkey, PAGE, to, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(pages + 100, f->buffer, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(pages, 2 * PAGE);
}

static void odp__unmapped_target_is_a_remote_access_error(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *all = ibv_reg_mr(f->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	uint8_t *pages = map_pages(1);
	assert_int_equal(
		write_status(f, (uintptr_t)f->buffer, all->lkey, 64, (uintptr_t)pages, all->rkey), IBV_WC_SUCCESS);
	munmap(pages, PAGE);
	assert_int_equal(write_status(f, (uintptr_t)f->buffer, all->lkey, 64, (uintptr_t)pages, all->rkey),
		IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(all), 0);
}

static void odp__unmapped_source_is_a_local_protection_error(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *all = ibv_reg_mr(f->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	uint8_t *pages = map_pages(1);
	mprotect(pages, PAGE, PROT_NONE);
	assert_int_equal(write_status(f, (uintptr_t)pages, all->lkey, 64, (uintptr_t)f->buffer, f->mr->rkey),
		IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(all), 0);
	munmap(pages, PAGE);
}

static void odp__rereg_keeps_it_on_demand(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *other = ibv_alloc_pd(f->context);
	uint8_t *pages = map_pages(1);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, pages, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	munmap(pages, PAGE);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		IBV_REREG_MR_ERR_INPUT); /* no longer on demand, and nothing there */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, void *at, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)at, length, lkey };
	return ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int resident_pages(void *pages, size_t count)
{
	unsigned char there[16];
	int sum = 0;
	assert_int_equal(mincore(pages, count * PAGE, there), 0);
	for (size_t i = 0; i < count; i++)
		sum += there[i] & 1;
	return sum;
}

static void advise_about_region(struct fixture *f, int access)
{
	uint8_t *pages = map_pages(8);
	madvise(pages, 8 * PAGE, MADV_NOHUGEPAGE);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, pages, 8 * PAGE, IBV_ACCESS_LOCAL_WRITE | access);
	madvise(pages, 8 * PAGE, MADV_DONTNEED); /* registering touches the ends */
	assert_int_equal(advise(f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, pages, PAGE, mr->lkey), 0);
	assert_int_equal(resident_pages(pages, 8), 0);
	assert_int_equal(advise(f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, pages + PAGE + 5, PAGE, mr->lkey), 0);
	assert_int_equal(resident_pages(pages + PAGE, 2), 2);
	assert_int_equal(resident_pages(pages, 8), 2);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(pages, 8 * PAGE);
}

static void advise__brings_pages_in(void **state)
{
	advise_about_region(*state, IBV_ACCESS_ON_DEMAND);
	advise_about_region(*state, 0);
}

static void advise__refuses_as_its_manual_page_says(void **state)
{
	struct fixture *f = *state;
	const enum ibv_advise_mr_advice prefetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
	struct ibv_pd *other = ibv_alloc_pd(f->context);
	uint8_t *pages = map_pages(2);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, pages, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
	struct ibv_sge sge = { (uintptr_t)pages, 64, mr->lkey };
	assert_int_equal(ibv_advise_mr(f->pd, prefetch, 0, &sge, 1), 0);
	assert_int_equal(ibv_advise_mr(f->pd, (enum ibv_advise_mr_advice)77, 0, &sge, 1), ENOTSUP);
	assert_int_equal(ibv_advise_mr(f->pd, prefetch, 1 << 5, &sge, 1), EINVAL);
	assert_int_equal(ibv_advise_mr(f->pd, prefetch, 0, &sge, 0), EINVAL);
	assert_int_equal(advise(f->pd, prefetch, pages + 1, PAGE, mr->lkey), EFAULT);
	assert_int_equal(advise(f->pd, prefetch, pages - 1, 2, mr->lkey), EFAULT);
	assert_int_equal(advise(f->pd, prefetch, pages, 64, mr->lkey ^ 0x100), EFAULT);
	assert_int_equal(advise(f->pd, prefetch, pages, 64, mw->rkey), EINVAL);
	assert_int_equal(advise(other, prefetch, pages, 64, mr->lkey), EPERM);
	assert_int_equal(advise(f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, pages, 64, mr->lkey), EPERM);
	munmap(pages, PAGE);
	assert_int_equal(advise(f->pd, prefetch, pages, 64, mr->lkey), EFAULT);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	munmap(pages + PAGE, PAGE);
}

/* ---- Null ---- */

static void null_mr__reads_zeros_and_forgets(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
	assert_non_null(null);
	memset(f->buffer, 0xEE, 8192);
	assert_int_equal(
		write_status(f, 0x123456, null->lkey, 5000, (uintptr_t)f->buffer, f->mr->rkey), IBV_WC_SUCCESS);
	for (int i = 0; i < 8192; i++)
		assert_int_equal(f->buffer[i], i < 5000 ? 0 : 0xEE);
	struct ibv_sge sge = { 99, 5000, null->lkey };
	assert_int_equal(fixture_post_recv(f->right, 1, &sge), 0);
	struct ibv_sge from = fixture_sge(f, 0, 5000);
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1 };
	assert_int_equal(fixture_post(f->left, send), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(advise(f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, f->buffer, 64, null->lkey), EINVAL);
	assert_int_equal(write_status(f, (uintptr_t)f->buffer, f->mr->lkey, 8, 0, null->lkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* ---- Device memory ---- */

static struct ibv_dm *alloc_dm(struct fixture *f, size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = log_align };
	errno = 0;
	return ibv_alloc_dm(f->context, &attr);
}

static void dm__is_given_out_until_it_is_used_up(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr_ex attr;
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &attr), 0);
	assert_null(alloc_dm(f, 0, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(alloc_dm(f, attr.max_dm_size + 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(alloc_dm(f, 64, 40));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_alloc_dm(f->context, &(struct ibv_alloc_dm_attr){ .length = 64, .comp_mask = 4 }));
	assert_int_equal(errno, EINVAL);
	struct ibv_dm *half = alloc_dm(f, attr.max_dm_size / 2, 12), *rest = alloc_dm(f, attr.max_dm_size / 2, 0);
	assert_non_null(half);
	assert_non_null(rest);
	assert_null(alloc_dm(f, 1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_free_dm(half), 0);
	half = alloc_dm(f, attr.max_dm_size / 2, 0);
	assert_non_null(half);
	assert_int_equal(ibv_free_dm(half), 0);
	assert_int_equal(ibv_free_dm(rest), 0);
	assert_non_null(alloc_dm(f, 1, 0)); /* closing the device takes it */
}

static void dm__is_copied_by_words_within_its_bounds(void **state)
{
	struct fixture *f = *state;
	struct ibv_dm *dm = alloc_dm(f, 64, 0);
	char in[64] = "what is kept in device memory", out[64] = { 0 };
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 0, 64), 0);
	assert_memory_equal(out, (char[64]){ 0 }, 64);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, in, 56), 0);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 8, 56), 0);
	assert_memory_equal(out, in, 56);
	assert_int_equal(ibv_memcpy_to_dm(dm, 3, in, 4), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4, in, 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, in, 60), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, in, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 64, 4), EINVAL);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void dm__region_is_zero_based_and_holds_it(void **state)
{
	struct fixture *f = *state;
	const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_dm *dm = alloc_dm(f, 4096, 0);
	assert_null(ibv_reg_dm_mr(f->pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dm_mr(f->pd, dm, 64, 4096, access));
	assert_null(ibv_reg_dm_mr(f->pd, dm, UINT64_MAX, 64, access));
	assert_null(ibv_reg_dm_mr(f->pd, dm, 0, 64, access | IBV_ACCESS_ON_DEMAND));
	struct ibv_mr *mr = ibv_reg_dm_mr(f->pd, dm, 1024, 64, access);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	memset(f->buffer, 0x42, 64);
	assert_int_equal(write_status(f, (uintptr_t)f->buffer, f->mr->lkey, 16, 48, mr->rkey), IBV_WC_SUCCESS);
	uint8_t out[128];
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 1024, 128), 0);
	for (int i = 0; i < 128; i++)
		assert_int_equal(out[i], i >= 48 && i < 64 ? 0x42 : 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(write_status(f, (uintptr_t)f->buffer, f->mr->lkey, 16, 49, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void dm__large_is_shared_as_long_as_it_is_there(void **state)
{
	struct fixture *f = *state;
	const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int before = loop_shared();
	struct ibv_dm *small = alloc_dm(f, 65535, 0), *large = alloc_dm(f, 65540, 20);
	assert_int_equal(loop_shared(), before + 1);
	struct ibv_mr *mr = ibv_reg_dm_mr(f->pd, large, 4, 65536, access);
	memset(f->buffer, 0x42, 64);
	assert_int_equal(write_status(f, (uintptr_t)f->buffer, f->mr->lkey, 16, 65520, mr->rkey), IBV_WC_SUCCESS);
	uint8_t out[20];
	assert_int_equal(ibv_memcpy_from_dm(out, large, 65520, 20), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(out[i], i >= 4 ? 0x42 : 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(large), 0);
	assert_int_equal(loop_shared(), before);
	assert_int_equal(ibv_free_dm(small), 0);
}

/* What a region was given is given back once, whatever becomes of it. */
static void region__leaves_what_was_shared_for_it(void **state)
{
	struct fixture *f = *state;
	static uint8_t bytes[2][8192];
	int before = loop_shared();
	loop_set_backs_registered(true);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, bytes[0], sizeof(bytes[0]), 0);
	struct ibv_mr *other = ibv_reg_mr(f->pd, bytes[0], sizeof(bytes[0]), 0);
	struct ibv_mr *on_demand = ibv_reg_mr(f->pd, bytes[0], sizeof(bytes[0]), IBV_ACCESS_ON_DEMAND);
	assert_int_equal(loop_shared(), before + 2);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(loop_shared(), before + 2);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, bytes[1], sizeof(bytes[1]), 0), 0);
	assert_int_equal(loop_shared(), before + 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(on_demand), 0);
	assert_int_equal(loop_shared(), before + 1);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(loop_shared(), before);
	loop_set_backs_registered(false);
}

/* ---- Parent domains ---- */

struct arena {
	int given, taken;
	bool is_empty, wants_default;
};

static void *arena_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	struct arena *arena = context;
	void *memory;
	if (arena->wants_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (arena->is_empty || posix_memalign(&memory, alignment, size))
		return NULL;
	arena->given++;
	return memset(memory, 0xFF, size); /* we do not rely on zeros */
}

static void arena_free(struct ibv_pd *pd, void *context, void *memory, uint64_t type)
{
	((struct arena *)context)->taken++;
	free(memory);
}

static struct ibv_pd *make_parent(struct fixture *f, struct ibv_td *td, struct arena *arena)
{
	struct ibv_parent_domain_init_attr attr = { .pd = f->pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = arena_alloc,
		.free = arena_free,
		.pd_context = arena };
	struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &attr);
	assert_non_null(parent);
	return parent;
}

static struct ibv_qp *qp_in(struct fixture *f, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = { .send_cq = f->cq,
		.recv_cq = f->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	errno = 0;
	return ibv_create_qp(pd, &attr);
}

static void parent__objects_lie_in_the_programs_memory(void **state)
{
	struct fixture *f = *state;
	struct arena arena = { 0 };
	struct ibv_pd *parent = make_parent(f, NULL, &arena);
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 8,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &cq_attr);
	struct ibv_srq *srq = ibv_create_srq(parent, &srq_attr);
	struct ibv_qp *qp = qp_in(f, parent);
	assert_int_equal(arena.given, 3);
	arena.wants_default = true;
	struct ibv_qp *other = qp_in(f, parent);
	assert_non_null(other);
	assert_int_equal(ibv_destroy_qp(other), 0);
	arena.wants_default = false;
	arena.is_empty = true;
	assert_null(qp_in(f, parent));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(arena.taken, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(arena.taken, 3);
	cq_attr.parent_domain = f->pd; /* no parent domain */
	assert_null(ibv_create_cq_ex(f->context, &cq_attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

static void parent__is_its_domain_by_another_name(void **state)
{
	struct fixture *f = *state;
	struct arena arena = { .wants_default = true };
	struct ibv_pd *parent = make_parent(f, NULL, &arena);
	struct ibv_mr *mr = ibv_reg_mr(parent, f->buffer, 64, ALL_ACCESS);
	uint64_t at = (uintptr_t)f->buffer;
	assert_int_equal(write_status(f, at, mr->lkey, 8, at + 8, mr->rkey), IBV_WC_SUCCESS); /* QPs of the domain */
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = mr, .addr = at, .length = 8, .mw_access_flags = IBV_ACCESS_REMOTE_READ } } };
	assert_int_equal(fixture_post(f->left, bind), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* Not inlined: newer compilers suspect that the header's arithmetic meets a NULL context. */
__attribute__((noinline)) static struct ibv_td *make_td(struct ibv_context *context)
{
	return ibv_alloc_td(context, &(struct ibv_td_init_attr){ 0 });
}

static void thread_domain__is_held_by_parent_domains(void **state)
{
	struct fixture *f = *state;
	struct arena arena = { .wants_default = true };
	struct ibv_td *td = ibv_alloc_td(f->context, &(struct ibv_td_init_attr){ 0 });
	assert_non_null(td);
	assert_null(ibv_alloc_td(f->context, &(struct ibv_td_init_attr){ .comp_mask = 1 }));
	struct ibv_pd *parent = make_parent(f, td, &arena);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	struct ibv_parent_domain_init_attr wrong = { 0 };
	assert_null(ibv_alloc_parent_domain(f->context, &wrong));
	assert_int_equal(errno, EINVAL);
	wrong = (struct ibv_parent_domain_init_attr){ .pd = f->pd, .comp_mask = 1 << 7 };
	assert_null(ibv_alloc_parent_domain(f->context, &wrong));
	assert_int_equal(errno, EOPNOTSUPP);
	/* Closing takes what is left. Not volatile, gcc 14 warns that verbs.h looks into a context which is null. */
	struct ibv_context *volatile other = ibv_open_device(f->context->device);
	struct ibv_parent_domain_init_attr attr = { .pd = ibv_alloc_pd(other), .td = make_td(other) };
	assert_non_null(ibv_alloc_parent_domain(other, &attr));
	assert_null(ibv_alloc_parent_domain(f->context, &attr)); /* of another device */
	assert_int_equal(ibv_close_device(other), 0);
}

int main(void)
{
#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
#define WITH_PAIR(name)   cmocka_unit_test_setup_teardown(name, fixture_connect_rc, fixture_close)
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(odp__says_what_it_does),
		WITH_PAIR(odp__memory_may_come_after_its_region),
		WITH_PAIR(odp__unmapped_target_is_a_remote_access_error),
		WITH_PAIR(odp__unmapped_source_is_a_local_protection_error),
		WITH_DEVICE(odp__rereg_keeps_it_on_demand),
		WITH_DEVICE(advise__brings_pages_in),
		WITH_DEVICE(advise__refuses_as_its_manual_page_says),
		WITH_PAIR(null_mr__reads_zeros_and_forgets),
		WITH_DEVICE(dm__is_given_out_until_it_is_used_up),
		WITH_DEVICE(dm__is_copied_by_words_within_its_bounds),
		WITH_PAIR(dm__region_is_zero_based_and_holds_it),
		WITH_PAIR(dm__large_is_shared_as_long_as_it_is_there),
		WITH_DEVICE(region__leaves_what_was_shared_for_it),
		WITH_DEVICE(parent__objects_lie_in_the_programs_memory),
		WITH_PAIR(parent__is_its_domain_by_another_name),
		WITH_DEVICE(thread_domain__is_held_by_parent_domains),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
