/* Memory regions. Memory is not pinned: the engine copies with the process's own rights. So registering asks the kernel
 * only whether the range is mapped and its ends may be touched as the access says.
 * Holds: when dereg or rereg returns, no access under the old terms is in flight. */
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "verbs/objects.h"

/* Host access that the engine knows; HUGETLB is a hint about the memory. */
#define ACCESS_ENGINE                                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
		IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)
#define ACCESS_KNOWN (ACCESS_ENGINE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)

/* Optional bits may be anything; on-demand paging is not offered (the capabilities say so). */
static int check_access(unsigned int access, uint32_t *engine_access)
{
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~(unsigned int)ACCESS_KNOWN)
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	*engine_access = access & ACCESS_ENGINE;
	return 0;
}

/* The kernel reads the eight bytes around at before it looks at the nonsensical request. */
static bool is_readable(uintptr_t at)
{
	return syscall(SYS_rt_sigprocmask, ~0, at & ~(uintptr_t)7, NULL, 8) == 0 || errno != EFAULT;
}

/* The kernel adds zero to the word around at, atomically. */
static bool is_writable(uintptr_t at)
{
	uint32_t here = 0;
	return syscall(SYS_futex, &here, FUTEX_WAKE_OP_PRIVATE, 0, 0, at & ~(uintptr_t)3,
		       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0 ||
	       errno != EFAULT;
}

static int check_memory(const void *addr, size_t length, uint32_t access)
{
	if (length == 0)
		return 0;
	uintptr_t first = (uintptr_t)addr, last = first + length - 1;
	if (last < first)
		return EINVAL;
	if (!is_readable(first) || !is_readable(last))
		return EFAULT;
	if ((access & VB_ACCESS_LOCAL_WRITE) && (!is_writable(first) || !is_writable(last)))
		return EFAULT;
	/* MS_ASYNC does nothing but find holes in the mapping. */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = first & ~(page - 1);
	if (msync((void *)start, last - start + 1, MS_ASYNC) && errno == ENOMEM)
		return EFAULT;
	return 0;
}

static int make_config(void *addr, size_t length, uint64_t iova, unsigned int access, struct vb_mr_config *config)
{
	uint32_t engine_access;
	int err = check_access(access, &engine_access);
	if (!err)
		err = check_memory(addr, length, engine_access);
	if (err)
		return err;
	*config = (struct vb_mr_config){
		.memory = addr,
		.iova = engine_access & VB_ACCESS_ZERO_BASED ? 0 : iova,
		.length = length,
		.access = engine_access,
		.kind = VB_MEMORY_HOST,
	};
	return 0;
}

static struct ibv_mr *mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (vb_host_is_forked_child())
		return vb_fail(VB_FORKED_ERRNO);
	struct vb_mr_config config;
	int err = make_config(addr, length, iova, access, &config);
	if (err)
		return vb_fail(err);
	struct mr_object *mr = malloc(sizeof(*mr));
	if (!mr)
		return vb_fail(ENOMEM);
	err = vb_mr_register(((struct pd_object *)pd)->pd, &config, &mr->mr);
	if (err) {
		free(mr);
		return vb_fail(-err);
	}
	uint32_t key = vb_mr_key(mr->mr);
	mr->config = config;
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = vb_object_handle(),
		.lkey = key,
		.rkey = key,
	};
	vb_object_add(pd->context, OBJECT_MR, &mr->link);
	return &mr->ibv;
}

VB_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return mr_register(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return mr_register(pd, addr, length, iova, (unsigned int)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return mr_register(pd, addr, length, iova, access);
}

/* Programs probe with fd -1 and take any other errno as "supported". */
VB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	return vb_fail(EOPNOTSUPP);
}

/* What the region will be, from what it is and what flags change. */
static int rereg_config(
	const struct mr_object *mr, int flags, void *addr, size_t length, int access, struct vb_mr_config *config)
{
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	unsigned int new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access : mr->config.access;
	void *new_addr = moves ? addr : mr->config.memory;
	size_t new_length = moves ? length : mr->config.length;
	uint64_t iova = moves ? (uintptr_t)addr : mr->config.iova;
	return make_config(new_addr, new_length, iova, new_access, config);
}

VB_EXPORT int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr_object *mr = (struct mr_object *)ibv;
	struct vb_mr_config config;
	int err = vb_host_is_forked_child() ? VB_FORKED_ERRNO : 0;
	if (!err && ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) || !flags ||
			    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!length || !addr)) ||
			    ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != ibv->context)) ||
			    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))))
		err = EINVAL;
	if (!err)
		err = rereg_config(mr, flags, addr, length, access, &config);
	if (!err)
		err = -vb_mr_invalidate(mr->mr);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	vb_lane_grace(vb_host_of(ibv->context));
	struct pd_object *domain = flags & IBV_REREG_MR_CHANGE_PD ? (struct pd_object *)pd : NULL;
	err = -vb_mr_revalidate(mr->mr, domain ? domain->pd : NULL, &config);
	if (err) {
		bool is_restored = vb_mr_revalidate(mr->mr, NULL, &mr->config) == 0;
		errno = err;
		return is_restored ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
	}
	mr->config = config;
	ibv->addr = config.memory;
	ibv->length = config.length;
	if (domain)
		ibv->pd = pd;
	return 0;
}

VB_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct mr_object *mr = (struct mr_object *)ibv;
	if (vb_host_is_forked_child())
		return VB_FORKED_ERRNO;
	int err = vb_mr_invalidate(mr->mr);
	if (err)
		return -err;
	vb_lane_grace(vb_host_of(ibv->context));
	vb_mr_free(mr->mr);
	vb_object_remove(ibv->context, &mr->link);
	free(mr);
	return 0;
}
