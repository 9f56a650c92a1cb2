/* dma-bufs as regions. The kernel makes them of a memfd (/dev/udmabuf) or of its own pages (/dev/dma_heap); where it
 * has neither, or not for us, those tests are skipped. */
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fixture.h"
#include "loop_host.h"

enum { PAGE = 4096, PAGES = 4, SIZE = PAGES * PAGE };

static int fd_of_memfd(void)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -1;
	int memory = memfd_create("udmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(memory, SIZE), 0);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	struct udmabuf_create create = { .memfd = (uint32_t)memory, .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE };
	int fd = ioctl(device, UDMABUF_CREATE, &create);
	assert_true(fd >= 0);
	close(memory);
	close(device);
	return fd;
}

static int fd_of_heap(void)
{
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	if (heap < 0)
		return -1;
	struct dma_heap_allocation_data data = { .len = SIZE, .fd_flags = O_RDWR | O_CLOEXEC };
	assert_int_equal(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data), 0);
	close(heap);
	return (int)data.fd;
}

static enum ibv_wc_status post(
	struct fixture *f, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t to, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = to, .rkey = rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	return fixture_complete(f->cq).status;
}

/* The buffer's second page on, at an address of our choice: what is written there is what its other users see, and what
 * they write is read. Beyond it nothing may be touched. */
static void is_memory(struct fixture *f, int fd)
{
	const uint64_t iova = 0x7000000000;
	const uint32_t length = SIZE - PAGE;
	uint8_t *seen = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(seen != MAP_FAILED);
	memset(seen, 0x11, SIZE);
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(f->pd, PAGE, length, iova, fd,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	for (uint32_t i = 0; i < length; i++)
		f->buffer[i] = (uint8_t)(i * 7);
	struct ibv_sge all = fixture_sge(f, 0, length);
	assert_int_equal(post(f, IBV_WR_RDMA_WRITE, all, iova, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(seen + PAGE, f->buffer, length);
	assert_int_equal(seen[PAGE - 1], 0x11);
	memset(seen + PAGE, 0x22, length);
	assert_int_equal(post(f, IBV_WR_RDMA_READ, all, iova, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(seen + PAGE, f->buffer, length);
	struct ibv_sge from = { iova + 100, 8, mr->lkey };
	assert_int_equal(post(f, IBV_WR_RDMA_WRITE, from, (uintptr_t)f->buffer + 64, f->mr->rkey), IBV_WC_SUCCESS);
	close(fd); /* the region keeps the buffer */
	assert_int_equal(post(f, IBV_WR_RDMA_WRITE, all, iova + 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(seen, SIZE);
}

static void dmabuf__of_a_memfd_is_memory(void **state)
{
	int fd = fd_of_memfd();
	if (fd < 0)
		skip();
	is_memory(*state, fd);
}

static void dmabuf__of_a_heap_is_memory(void **state)
{
	int fd = fd_of_heap();
	if (fd < 0)
		skip();
	is_memory(*state, fd);
}

static void dmabuf__of_less_than_was_said_is_refused(void **state)
{
	struct fixture *f = *state;
	int fd = fd_of_memfd();
	if (fd < 0)
		skip();
	assert_null(ibv_reg_dmabuf_mr(f->pd, 0, SIZE + 1, 0, fd, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(
		ibv_reg_dmabuf_mr(f->pd, 0, PAGE, 1, fd, 0)); /* offset and address lie differently in their pages */
	assert_int_equal(errno, EINVAL);
	close(fd);
}

static void dmabuf__that_is_none_is_refused(void **state)
{
	struct fixture *f = *state;
	int file = memfd_create("no dma-buf", MFD_CLOEXEC);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(f->pd, 0, 4096, 0, 12345, 0));
	assert_int_equal(errno, EBADF);
	assert_null(ibv_reg_dmabuf_mr(f->pd, 0, 4096, 0, file, 0));
	assert_int_equal(errno, EINVAL);
	close(file);
}

/* NCCL and UCX take EOPNOTSUPP for "no", UCX EBADF alone for "yes". */
static void dmabuf__probe_is_answered_as_set(void **state)
{
	struct fixture *f = *state;
	assert_null(ibv_reg_dmabuf_mr(f->pd, 0, 4096, 0, -1, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	loop_set_dmabuf_on(true);
	assert_null(ibv_reg_dmabuf_mr(f->pd, 0, 4096, 0, -1, 0));
	assert_int_equal(errno, EBADF);
	loop_set_dmabuf_on(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dmabuf__of_a_memfd_is_memory, fixture_connect_rc, fixture_close),
		cmocka_unit_test_setup_teardown(dmabuf__of_a_heap_is_memory, fixture_connect_rc, fixture_close),
		cmocka_unit_test_setup_teardown(dmabuf__of_less_than_was_said_is_refused, fixture_open, fixture_close),
		cmocka_unit_test_setup_teardown(dmabuf__that_is_none_is_refused, fixture_open, fixture_close),
		cmocka_unit_test_setup_teardown(dmabuf__probe_is_answered_as_set, fixture_open, fixture_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
