/* What later releases of rdma-core brought to memory: registration by one call, DMA handles, buffers of the library's,
 * device memory as a dma-buf; and to ports, their speed. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fixture.h"
#include "loop_host.h"
#include "verbs/later.h"

#undef ibv_query_port

enum { PAGE = 4096 };

/* One WRITE of the buffer's first bytes from left to right and how it ended. */
static enum ibv_wc_status write_status(struct fixture *f, uint32_t length, uint64_t to, uint32_t rkey)
{
	struct ibv_sge sge = fixture_sge(f, 0, length);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = to, .rkey = rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	return fixture_complete(f->cq).status;
}

static void assert_refused(struct fixture *f, struct later_mr_init_attr attr, int error)
{
	errno = 0;
	assert_null(later_reg_mr_ex(f->pd, &attr));
	assert_int_equal(errno, error);
}

/* ---- ibv_reg_mr_ex ---- */

static void reg_mr_ex__registers_memory_at_an_address_of_choice(void **state)
{
	struct fixture *f = *state;
	uint8_t memory[256] = { 0 };
	struct later_mr_init_attr attr = { .length = sizeof(memory),
		.access = ALL_ACCESS,
		.comp_mask = LATER_MR_ADDR | LATER_MR_IOVA,
		.addr = memory,
		.iova = 0x10000 };
	struct ibv_mr *mr = later_reg_mr_ex(f->pd, &attr);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, memory);
	assert_int_equal(mr->length, sizeof(memory));
	memset(f->buffer, 0x77, 64);
	assert_int_equal(write_status(f, 64, 0x10000 + 8, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(memory + 8, f->buffer, 64);
	assert_int_equal(memory[7], 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.comp_mask = LATER_MR_ADDR; /* iova is not read */
	mr = later_reg_mr_ex(f->pd, &attr);
	assert_int_equal(write_status(f, 64, (uintptr_t)memory + 64, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(memory + 64, f->buffer, 64);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void reg_mr_ex__needs_memory_of_one_kind(void **state)
{
	struct fixture *f = *state;
	struct later_mr_init_attr attr = { .length = 64, .addr = f->buffer, .fd = -1 };
	assert_refused(f, attr, EINVAL);
	attr.comp_mask = LATER_MR_ADDR | LATER_MR_FD;
	assert_refused(f, attr, EINVAL);
	attr.comp_mask = LATER_MR_ADDR | LATER_MR_FD_OFFSET;
	assert_refused(f, attr, EINVAL);
	attr.comp_mask = LATER_MR_FD | LATER_MR_IOVA;
	assert_refused(f, attr, EINVAL);
	attr.comp_mask = LATER_MR_FD | LATER_MR_FD_OFFSET | LATER_MR_IOVA;
	assert_refused(f, attr, EOPNOTSUPP); /* as ibv_reg_dmabuf_mr with that descriptor */
	attr.comp_mask = LATER_MR_ADDR | 1 << 6;
	assert_refused(f, attr, EOPNOTSUPP);
	attr.comp_mask = LATER_MR_ADDR | LATER_MR_DMAH;
	assert_refused(f, attr, EINVAL);
	attr.comp_mask = LATER_MR_ADDR;
	attr.access = IBV_ACCESS_REMOTE_WRITE; /* without the right to write locally */
	assert_refused(f, attr, EINVAL);
}

/* ---- DMA handles ---- */

static void dmah__is_held_by_its_regions(void **state)
{
	struct fixture *f = *state;
	struct later_dmah_init_attr hints = { .comp_mask = LATER_DMAH_CPU_ID | LATER_DMAH_PH | LATER_DMAH_TPH_MEM_TYPE,
		.ph = 3,
		.tph_mem_type = LATER_TPH_MEM_TYPE_PM };
	struct later_dmah *dmah = later_alloc_dmah(f->context, &hints);
	assert_non_null(dmah);
	assert_ptr_equal(dmah->context, f->context);
	struct later_mr_init_attr attr = { .length = 64,
		.access = ALL_ACCESS,
		.comp_mask = LATER_MR_ADDR | LATER_MR_DMAH,
		.addr = f->buffer + 64,
		.dmah = dmah };
	struct ibv_mr *mr = later_reg_mr_ex(f->pd, &attr);
	assert_non_null(mr);
	attr.access |= IBV_ACCESS_ON_DEMAND; /* whose pages come and go, and with them what the hints are about */
	assert_refused(f, attr, EINVAL);
	assert_int_equal(later_dealloc_dmah(dmah), EBUSY);
	assert_int_equal(write_status(f, 64, (uintptr_t)f->buffer + 64, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(later_dealloc_dmah(dmah), 0);
	assert_non_null(later_alloc_dmah(f->context, &hints)); /* closing the device takes it */
}

static void dmah__nonsense_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct later_dmah_init_attr wrong[] = {
		{ .comp_mask = 1 << 3 },
		{ .comp_mask = LATER_DMAH_PH, .ph = 4 },
		{ .comp_mask = LATER_DMAH_TPH_MEM_TYPE, .tph_mem_type = 2 },
		{ .comp_mask = LATER_DMAH_CPU_ID, .cpu_id = 1 << 20 },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct later_dmah_init_attr attr = wrong[i];
		errno = 0;
		assert_null(later_alloc_dmah(f->context, &attr));
		assert_int_equal(errno, EINVAL);
	}
}

/* ---- Buffers ---- */

static void buf__is_page_aligned_and_registered_within_its_bounds(void **state)
{
	struct fixture *f = *state;
	struct later_buf *buf;
	uint8_t *memory = later_alloc_buf(f->pd, PAGE + 100, &buf);
	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % PAGE, 0);
	memset(memory, 0, PAGE + 100);
	assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);

	struct ibv_mr *mr = later_reg_buf_mr(f->pd, buf, memory + 100, PAGE, ALL_ACCESS);
	assert_non_null(mr);
	memset(f->buffer, 0x31, 64);
	assert_int_equal(write_status(f, 64, (uintptr_t)memory + 200, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(memory + 200, f->buffer, 64);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	struct ibv_pd *other = ibv_alloc_pd(f->context);
	assert_null(later_reg_buf_mr(other, buf, memory, PAGE, ALL_ACCESS));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_null(later_reg_buf_mr(f->pd, buf, memory - 1, PAGE, ALL_ACCESS));
	assert_null(later_reg_buf_mr(f->pd, buf, memory + 101, PAGE, ALL_ACCESS));
	assert_null(later_reg_buf_mr(f->pd, buf, memory, SIZE_MAX, ALL_ACCESS));
	struct later_mr_init_attr attr = { .length = PAGE, .comp_mask = LATER_MR_BUF, .addr = memory, .buf = buf };
	assert_refused(f, attr, EINVAL); /* the address is not named */
	errno = 0;
	assert_int_equal(later_export_buf_dmabuf_fd(buf), -1);
	assert_int_equal(errno, ENODATA);
	later_free_buf(buf);
	later_free_buf(NULL);
}

static void buf__parent_domain_may_allow_unprotected_memory(void **state)
{
	struct fixture *f = *state;
	struct ibv_parent_domain_init_attr attr = { .pd = f->pd,
		.comp_mask = LATER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED };
	struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &attr);
	assert_non_null(parent);
	struct later_buf *buf;
	uint8_t *memory = later_alloc_buf(parent, PAGE, &buf);
	assert_non_null(memory);
	struct ibv_mr *mr = later_reg_buf_mr(parent, buf, memory, PAGE, ALL_ACCESS);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	later_free_buf(buf);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* ---- Device memory as a dma-buf ---- */

static void dm_export__says_when_no_dmabuf_can_be_made(void **state)
{
	struct fixture *f = *state;
	struct ibv_dm *dm = ibv_alloc_dm(f->context, &(struct ibv_alloc_dm_attr){ .length = 64 });
	errno = 0;
	assert_int_equal(later_dm_export_dmabuf_fd(dm), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	loop_set_forked(true);
	assert_int_equal(later_dm_export_dmabuf_fd(dm), -1);
	assert_int_equal(errno, EPERM);
	loop_set_forked(false);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* The loop's dma-buf is the file that the kernel would make one of. */
static void dm_export__shares_the_memory_from_then_on(void **state)
{
	struct fixture *f = *state;
	const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_dm *dm =
		ibv_alloc_dm(f->context, &(struct ibv_alloc_dm_attr){ .length = PAGE + 64, .log_align_req = 14 });
	struct ibv_mr *mr = ibv_reg_dm_mr(f->pd, dm, 0, PAGE + 64, access);
	char early[64] = "written before";
	assert_int_equal(ibv_memcpy_to_dm(dm, PAGE, early, 64), 0);

	loop_set_makes_dmabufs(true);
	int fd = later_dm_export_dmabuf_fd(dm), again = later_dm_export_dmabuf_fd(dm);
	loop_set_makes_dmabufs(false);
	assert_true(fd >= 0 && again >= 0 && fd != again);
	struct stat about;
	fstat(fd, &about);
	assert_int_equal(about.st_size, 2 * PAGE);
	uint8_t *seen = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(seen != MAP_FAILED);
	assert_memory_equal(seen + PAGE, early, 64);

	memset(f->buffer, 0x66, 64);
	assert_int_equal(write_status(f, 64, 128, mr->rkey), IBV_WC_SUCCESS); /* by the device */
	assert_memory_equal(seen + 128, f->buffer, 64);
	memset(seen + 256, 0x99, 64); /* by who has the dma-buf */
	uint8_t out[64];
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 256, 64), 0);
	assert_memory_equal(out, seen + 256, 64);
	munmap(seen, 2 * PAGE);
	close(fd);
	close(again);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* ---- Ports ---- */

static void port__speed_is_in_hundreds_of_megabits(void **state)
{
	struct fixture *f = *state;
	uint64_t speed = 0;
	assert_int_equal(later_query_port_speed(f->context, 1, &speed), 0);
	assert_int_equal(speed, LOOP_SPEED_MBPS / 100);
	assert_int_equal(later_query_port_speed(f->context, 2, &speed), EINVAL);
}

/* What inline code of a header passes as the size of its structure: before port_cap_flags2, of 44, of 61, of tomorrow.
 */
static void port__attributes_fit_every_size(void **state)
{
	struct fixture *f = *state;
	struct verbs_context *verbs = verbs_get_ctx(f->context);
	const size_t sizes[] = { 48, 52, 56, 80 };
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_Alignas(8) uint8_t bytes[96];
		uint32_t speed_ex;
		memset(bytes, 0xEE, sizeof(bytes));
		assert_int_equal(verbs->query_port(f->context, 1, (struct ibv_port_attr *)bytes, sizes[i]), 0);
		const struct ibv_port_attr *attr = (const struct ibv_port_attr *)bytes;
		assert_int_equal(attr->state, IBV_PORT_ACTIVE);
		assert_int_equal(bytes[sizes[i]], 0xEE); /* not a byte more */
		memcpy(&speed_ex, bytes + LATER_PORT_ATTR_SPEED_EX, sizeof(speed_ex));
		if (sizes[i] >= LATER_PORT_ATTR_BYTES)
			assert_int_equal(speed_ex, attr->active_speed);
		if (sizes[i] > LATER_PORT_ATTR_BYTES)
			assert_int_equal(bytes[LATER_PORT_ATTR_BYTES], 0);
	}
}

int main(void)
{
#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
#define WITH_PAIR(test)   cmocka_unit_test_setup_teardown(test, fixture_connect_rc, fixture_close)
	const struct CMUnitTest tests[] = {
		WITH_PAIR(reg_mr_ex__registers_memory_at_an_address_of_choice),
		WITH_DEVICE(reg_mr_ex__needs_memory_of_one_kind),
		WITH_PAIR(dmah__is_held_by_its_regions),
		WITH_DEVICE(dmah__nonsense_is_refused),
		WITH_PAIR(buf__is_page_aligned_and_registered_within_its_bounds),
		WITH_DEVICE(buf__parent_domain_may_allow_unprotected_memory),
		WITH_DEVICE(dm_export__says_when_no_dmabuf_can_be_made),
		WITH_PAIR(dm_export__shares_the_memory_from_then_on),
		WITH_DEVICE(port__speed_is_in_hundreds_of_megabits),
		WITH_DEVICE(port__attributes_fit_every_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
