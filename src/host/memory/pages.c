/* Can the process's own memory be touched? The kernel is asked, without touching it. Also the kind of memory for which
 * it is asked so (on-demand paging), and memory that can be shared.
 * Holds: an answer is about this moment; a program must not unmap memory while it is in use. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "host/host.h"

/* The kernel reads the eight bytes around at before it looks at the request, which is invalid. It takes a null pointer
 * for no bytes at all. */
static bool is_readable(uintptr_t at)
{
	uintptr_t word = at & ~(uintptr_t)7;
	return word && (syscall(SYS_rt_sigprocmask, ~0, word, NULL, 8) == 0 || errno != EFAULT);
}

/* The kernel adds zero to the word around at, atomically. */
static bool is_writable(uintptr_t at)
{
	uint32_t here = 0;
	return syscall(SYS_futex, &here, FUTEX_WAKE_OP_PRIVATE, 0, 0, at & ~(uintptr_t)3,
		       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0 ||
	       errno != EFAULT;
}

/* valgrind checks what a system call reads, so the questions above are faults to it, though the answer is all that is
 * wanted. It preloads a library of its own; programs do not change LD_PRELOAD before they register memory. */
static bool is_under_valgrind(void)
{
	enum { UNKNOWN, NO, YES };
	static atomic_int known;
	int is_so = atomic_load_explicit(&known, memory_order_relaxed);

	if (__builtin_expect(is_so == UNKNOWN, false)) {
		const char *preloaded = getenv("LD_PRELOAD");
		is_so = preloaded && strstr(preloaded, "/vgpreload_core") ? YES : NO;
		atomic_store_explicit(&known, is_so, memory_order_relaxed);
	}
	return is_so == YES;
}

static bool is_mapped(uintptr_t start, uintptr_t page)
{
	unsigned char state;

	return mincore((void *)start, page, &state) == 0;
}

bool vb_host_memory_is_present(const void *memory, uint64_t length, bool for_writing)
{
	if (length == 0)
		return true;
	uintptr_t first = (uintptr_t)memory, last = first + length - 1;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = first & ~(page - 1);
	if (is_under_valgrind())
		return last >= first && is_mapped(start, page) && is_mapped(last & ~(page - 1), page);
	if (last < first || !is_readable(first) || !is_readable(last))
		return false;
	if (for_writing && (!is_writable(first) || !is_writable(last)))
		return false;
	if (last - start < page) /* both ends are in one page */
		return true;
	/* MS_ASYNC does nothing but find holes in the mapping. */
	return msync((void *)start, last - start + 1, MS_ASYNC) == 0 || errno != ENOMEM;
}

const struct vb_memory_kind vb_memory_pageable = {
	.access = UINT32_MAX,
	.is_present = vb_host_memory_is_present,
	.load = vb_memory_load,
	.store = vb_memory_store,
	.fetch_add = vb_memory_fetch_add,
	.compare_swap = vb_memory_compare_swap,
};

/* A limit to the size of files holds for memory files too, and a process that goes beyond it gets a signal. */
int vb_host_make_memory(size_t length)
{
	struct rlimit most;
	int file = memfd_create(VB_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (file < 0)
		return -errno;
	bool is_allowed = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur >= length;
	if (is_allowed && ftruncate(file, (off_t)length) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		return file;
	int error = is_allowed ? errno : EFBIG;
	close(file);
	return -error;
}

int vb_host_move_memory(void *first, size_t length, int file)
{
	assert((uintptr_t)first % (size_t)sysconf(_SC_PAGESIZE) == 0);
	void *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (pages == MAP_FAILED)
		return -errno;
	memcpy(pages, first, length);
	if (mremap(pages, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, first) != MAP_FAILED)
		return 0;
	int error = errno;
	munmap(pages, length);
	return -error;
}
