/* Memory regions. Memory is not pinned: the engine copies with the process's own rights. So registering only asks the
 * kernel whether the range is mapped and its ends allow the access. An on-demand region may be mapped later, or
 * anywhere: the kernel is asked at each access.
 * Holds: when dereg or rereg returns, no access under the old terms is in flight.
 * Not here: device memory (dm.c), advice (advise.c). */
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "host/settings.h"
#include "verbs/later.h"
#include "verbs/objects.h"

/* Host access that the engine knows; HUGETLB is a hint about the memory. */
#define ACCESS_ENGINE                                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
		IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | LATER_ACCESS_FLUSH_GLOBAL)
#define ACCESS_KNOWN (ACCESS_ENGINE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)
#define ACCESS_DMABUF                                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Optional bits may be anything. */
int vb_mr_access(unsigned int access, unsigned int known, uint32_t *engine_access)
{
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~known)
		return EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	*engine_access = access & ACCESS_ENGINE;
	return 0;
}

/* The whole address space, with the mappings at the time of each access. */
static bool is_implicit(const void *addr, size_t length)
{
	return !addr && length == SIZE_MAX;
}

static int check_memory(const void *addr, size_t length, unsigned int access)
{
	uintptr_t first = (uintptr_t)addr;
	if (length && first + (length - 1) < first)
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return is_implicit(addr, length) && (access & IBV_ACCESS_HUGETLB) ? EINVAL : 0;
	return vb_host_memory_is_present(addr, length, access & IBV_ACCESS_LOCAL_WRITE) ? 0 : EFAULT;
}

static int make_config(void *addr, size_t length, uint64_t iova, unsigned int access, struct vb_mr_config *config)
{
	uint32_t engine_access;
	int err = vb_mr_access(access, ACCESS_KNOWN, &engine_access);
	if (!err)
		err = check_memory(addr, length, access);
	if (err)
		return err;
	*config = (struct vb_mr_config){
		.memory = addr,
		.iova = engine_access & VB_ACCESS_ZERO_BASED ? 0 : iova,
		.length = length,
		.access = engine_access,
		.kind = access & IBV_ACCESS_ON_DEMAND ? &vb_memory_pageable : NULL,
	};
	return 0;
}

struct mr_object *vb_mr_object_create(struct ibv_pd *pd, const struct vb_mr_config *config, void *addr)
{
	if (vb_refuses_forked(pd->context))
		return vb_fail(VB_FORKED_ERRNO);
	struct mr_object *mr = calloc(1, sizeof(*mr));
	if (!mr)
		return vb_fail(ENOMEM);
	int err = vb_mr_register(((struct pd_object *)pd)->pd, config, &mr->mr);
	if (err) {
		free(mr);
		return vb_fail(-err);
	}
	uint32_t key = vb_mr_key(mr->mr);
	mr->config = *config;
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = config->length,
		.handle = vb_object_handle(),
		.lkey = key,
		.rkey = key,
	};
	vb_pd_hold(pd, 1);
	vb_object_add(pd->context, OBJECT_MR, &mr->link);
	return mr;
}

static struct ibv_mr *mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct vb_mr_config config;
	int err = vb_refuses_forked(pd->context) ? VB_FORKED_ERRNO : make_config(addr, length, iova, access, &config);
	if (err)
		return vb_fail(err);
	if (!config.kind)
		config.segment = vb_host_back_registered(vb_host_lane_of(pd->context), addr, length);
	struct mr_object *mr = vb_mr_object_create(pd, &config, addr);
	if (!mr)
		vb_host_leave_registered(vb_host_lane_of(pd->context), config.segment);
	return mr ? &mr->ibv : NULL;
}

VB_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (vb_call_fails(VB_CALL_ibv_reg_mr))
		return NULL;
	return mr_register(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (vb_call_fails(VB_CALL_ibv_reg_mr_iova))
		return NULL;
	return mr_register(pd, addr, length, iova, (unsigned int)access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (vb_call_fails(iova == (uintptr_t)addr ? VB_CALL_ibv_reg_mr : VB_CALL_ibv_reg_mr_iova))
		return NULL;
	return mr_register(pd, addr, length, iova, access);
}

/* At all addresses, writes are dropped and reads give zeros. The key is for work requests alone. */
struct ibv_mr *vb_mr_ops_alloc_null(struct ibv_pd *pd)
{
	struct vb_mr_config config = { .length = UINT64_MAX, .access = VB_ACCESS_LOCAL_WRITE, .kind = &vb_memory_null };
	struct mr_object *mr = vb_mr_object_create(pd, &config, NULL);
	if (!mr)
		return NULL;
	mr->is_fixed = true;
	mr->ibv.rkey = 0;
	return &mr->ibv;
}

/* ---- dma-bufs ---------------------------------------------------------------------------------------------------- */

/* A dma-buf that can be mapped is memory like any other. Most of those on other devices cannot, and are refused. The
 * kernel's exporters of host memory need no synchronisation between processors. */

static int check_dmabuf(int fd, uint64_t offset, size_t length, uint64_t iova)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct statfs about;
	if (fd == -1) /* programs use this as a probe: any other errno means "supported" */
		return vb_settings_get()->dmabuf_on ? EBADF : EOPNOTSUPP;
	if (fstatfs(fd, &about))
		return errno;
	if (about.f_type != DMA_BUF_MAGIC || length == 0 || (offset ^ iova) % page != 0)
		return EINVAL;
	off_t size = lseek(fd, 0, SEEK_END);
	return size < 0 || offset > (uint64_t)size || length > (uint64_t)size - offset ? EINVAL : 0;
}

/* Maps whole pages around [offset, offset + length). */
static int map_dmabuf(int fd, uint64_t offset, size_t length, bool for_writing, struct mr_object *into, void **addr)
{
	uint64_t skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	int protection = for_writing ? PROT_READ | PROT_WRITE : PROT_READ;
	void *mapping = mmap(NULL, length + skip, protection, MAP_SHARED, fd, (off_t)(offset - skip));
	if (mapping == MAP_FAILED)
		return errno == EACCES || errno == ENOMEM ? errno : EOPNOTSUPP;
	into->mapping = mapping;
	into->mapping_length = length + skip;
	*addr = (uint8_t *)mapping + skip;
	return 0;
}

VB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	if (vb_call_fails(VB_CALL_ibv_reg_dmabuf_mr))
		return NULL;
	struct vb_mr_config config = { .iova = iova, .length = length };
	struct mr_object mapped;
	int err = vb_refuses_forked(pd->context) ? VB_FORKED_ERRNO : check_dmabuf(fd, offset, length, iova);
	if (!err)
		err = vb_mr_access((unsigned int)access, ACCESS_DMABUF, &config.access);
	if (!err)
		err = map_dmabuf(fd, offset, length, config.access & VB_ACCESS_LOCAL_WRITE, &mapped, &config.memory);
	if (err)
		return vb_fail(err);
	struct mr_object *mr = vb_mr_object_create(pd, &config, NULL);
	if (!mr) {
		err = errno;
		munmap(mapped.mapping, mapped.mapping_length);
		return vb_fail(err);
	}
	mr->is_fixed = true;
	mr->mapping = mapped.mapping;
	mr->mapping_length = mapped.mapping_length;
	return &mr->ibv;
}

/* ---- Changing and ending ----------------------------------------------------------------------------------------- */

/* Requests posted before that do not need the region any more go on. */
static int close_region(struct ibv_mr *ibv)
{
	struct vb_device *host = vb_host_of(ibv->context);
	vb_device_keep_datagrams(host, ibv->lkey);
	int err = -vb_mr_invalidate(((struct mr_object *)ibv)->mr);
	if (!err)
		vb_device_grace(host);
	return err;
}

/* The new configuration: the present one with the changes of flags. */
static int rereg_config(
	const struct mr_object *mr, int flags, void *addr, size_t length, int access, struct vb_mr_config *config)
{
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	unsigned int on_demand = mr->config.kind == &vb_memory_pageable ? IBV_ACCESS_ON_DEMAND : 0;
	unsigned int new_access =
		flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access : mr->config.access | on_demand;
	void *new_addr = moves ? addr : mr->config.memory;
	size_t new_length = moves ? length : mr->config.length;
	uint64_t iova = moves ? (uintptr_t)addr : mr->config.iova;
	int err = make_config(new_addr, new_length, iova, new_access, config);
	if (!err && !moves)
		config->segment = mr->config.segment;
	return err;
}

/* By one thread at a time. The region is closed between the old configuration and the new one. */
static int rereg_locked(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr_object *mr = (struct mr_object *)ibv;
	struct vb_mr_config config;
	int err = 0;
	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) || !flags || mr->is_fixed ||
		((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!length || !addr)) ||
		((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != ibv->context)) ||
		(access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)))
		err = EINVAL;
	if (!err)
		err = rereg_config(mr, flags, addr, length, access, &config);
	if (!err)
		err = close_region(ibv);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	struct pd_object *domain = flags & IBV_REREG_MR_CHANGE_PD ? (struct pd_object *)pd : NULL;
	err = -vb_mr_revalidate(mr->mr, domain ? domain->pd : NULL, &config);
	if (err) {
		bool is_restored = vb_mr_revalidate(mr->mr, NULL, &mr->config) == 0;
		errno = err;
		return is_restored ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
	}
	if (config.segment != mr->config.segment)
		vb_host_leave_registered(vb_host_lane_of(ibv->context), mr->config.segment);
	mr->config = config;
	ibv->addr = config.memory;
	ibv->length = config.length;
	if (domain) {
		vb_pd_hold(pd, 1);
		vb_pd_hold(ibv->pd, -1);
		ibv->pd = pd;
	}
	return 0;
}

VB_EXPORT int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (vb_call_fails(VB_CALL_ibv_rereg_mr))
		return IBV_REREG_MR_ERR_CMD;
	pthread_mutex_t *lock = &vb_context_of(ibv->context)->rereg_lock;
	if (vb_refuses_forked(ibv->context)) {
		errno = VB_FORKED_ERRNO;
		return IBV_REREG_MR_ERR_INPUT;
	}
	pthread_mutex_lock(lock);
	int err = rereg_locked(ibv, flags, pd, addr, length, access);
	pthread_mutex_unlock(lock);
	return err;
}

VB_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_dereg_mr))
		return errno;
	struct mr_object *mr = (struct mr_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	int err = close_region(ibv);
	if (err)
		return err;
	vb_mr_free(mr->mr);
	vb_object_remove(ibv->context, &mr->link);
	vb_pd_hold(ibv->pd, -1);
	if (mr->dm)
		vb_users_add(&mr->dm->regions, -1);
	else
		vb_host_leave_registered(vb_host_lane_of(ibv->context), mr->config.segment);
	if (mr->dmah)
		vb_users_add(&mr->dmah->regions, -1);
	if (mr->mapping)
		munmap(mr->mapping, mr->mapping_length);
	free(mr);
	return 0;
}
