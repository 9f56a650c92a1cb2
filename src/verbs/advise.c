/* Advice about regions: pages can be brought in before they are needed, which saves the engine the page faults.
 * Hardware takes advice about on-demand regions alone, since it pins the others. We pin none, so it helps all. */
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/objects.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Finds the region of a key; EINVAL if it is a window's. With the context's objects_lock. */
static int find_region(struct context_object *context, uint32_t lkey, struct mr_object **found)
{
	vb_list_for_each (node, &context->objects[OBJECT_MR]) {
		struct mr_object *mr = vb_container_of(node, struct mr_object, link);
		if (mr->ibv.lkey == lkey) {
			*found = mr;
			return 0;
		}
	}
	vb_list_for_each (node, &context->objects[OBJECT_MW]) {
		if (vb_container_of(node, struct mw_object, link)->ibv.rkey == lkey)
			return EINVAL;
	}
	return EFAULT;
}

/* Finds the memory of an entry, and checks that this advice may be given about it. */
static int check_entry(struct ibv_pd *pd, const struct ibv_sge *sge, bool for_writing, void **memory)
{
	struct context_object *context = vb_context_of(pd->context);
	struct mr_object *mr;
	pthread_mutex_lock(&context->objects_lock);
	int err = find_region(context, sge->lkey, &mr);
	struct vb_mr_config config = err ? (struct vb_mr_config){ 0 } : mr->config;
	bool is_other_domain = !err && ((struct pd_object *)mr->ibv.pd)->pd != ((struct pd_object *)pd)->pd;
	pthread_mutex_unlock(&context->objects_lock);
	if (err)
		return err;
	if (is_other_domain || (for_writing && !(config.access & VB_ACCESS_LOCAL_WRITE)))
		return EPERM;
	if (config.kind == &vb_memory_null)
		return EINVAL;
	uint64_t offset = sge->addr - config.iova;
	if (offset > config.length || sge->length > config.length - offset)
		return EFAULT;
	*memory = (void *)((uintptr_t)config.memory + offset);
	return 0;
}

/* For older kernels: takes the page faults one by one. */
static int populate_slowly(uintptr_t start, uintptr_t end, uintptr_t page, bool for_writing)
{
	for (; start < end; start += page) {
		if (!vb_host_memory_is_present((void *)start, 1, for_writing))
			return EFAULT;
	}
	return 0;
}

static int populate(void *memory, uint32_t length, bool for_writing)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)memory & ~(page - 1), end = ((uintptr_t)memory + length + page - 1) & ~(page - 1);
	if (length == 0)
		return 0;
	if (end < start)
		return EFAULT;
	if (madvise((void *)start, end - start, for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return 0;
	if (errno == EINVAL)
		return populate_slowly(start, end, page, for_writing);
	return errno == EAGAIN || errno == EINTR ? 0 : EFAULT; /* the operation is best effort; a hole is not */
}

/* The advice is carried out on return, so the flush flag adds nothing. All entries are checked before any is used. */
int vb_mr_ops_advise(
	struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sges)
{
	if (vb_refuses_forked(pd->context))
		return VB_FORKED_ERRNO;
	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
		advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return ENOTSUP;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || num_sges == 0)
		return EINVAL;
	bool for_writing = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	void *memory;
	for (uint32_t i = 0; i < num_sges; i++) {
		int err = check_entry(pd, &sg_list[i], for_writing, &memory);
		if (err)
			return err;
	}
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) /* pages that the CPU has, we have */
		return 0;
	for (uint32_t i = 0; i < num_sges; i++) {
		int err = check_entry(pd, &sg_list[i], for_writing, &memory);
		if (!err)
			err = populate(memory, sg_list[i].length, for_writing);
		if (err)
			return err;
	}
	return 0;
}
