/* Regions as later releases register them: one call for every kind of memory, DMA handles, and buffers that the library
 * allocates. A DMA handle holds hints for a bus, which is not used here: it is counted and has no effect. Buffers are
 * plain memory, as with every device that need not share them with a hypervisor. */
#include <stdlib.h>
#include <unistd.h>
#include "host/lanes/cpus.h"
#include "verbs/later.h"
#include "verbs/objects.h"

/* ---- DMA handles ------------------------------------------------------------------------------------------------- */

VB_EXPORT struct later_dmah *later_alloc_dmah(struct ibv_context *context, struct later_dmah_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_alloc_dmah))
		return NULL;
	enum { KNOWN = LATER_DMAH_CPU_ID | LATER_DMAH_PH | LATER_DMAH_TPH_MEM_TYPE, PH_BITS = 3 };
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	uint32_t mask = attr->comp_mask;
	if ((mask & ~(uint32_t)KNOWN) || ((mask & LATER_DMAH_CPU_ID) && attr->cpu_id >= vb_cpus_possible()) ||
		((mask & LATER_DMAH_PH) && (attr->ph & ~PH_BITS)) ||
		((mask & LATER_DMAH_TPH_MEM_TYPE) && attr->tph_mem_type > LATER_TPH_MEM_TYPE_PM))
		return vb_fail(EINVAL);
	struct dmah_object *dmah = calloc(1, sizeof(*dmah));
	if (!dmah)
		return vb_fail(ENOMEM);
	dmah->ibv.context = context;
	vb_object_add(context, OBJECT_DMAH, &dmah->link);
	return &dmah->ibv;
}

VB_EXPORT int later_dealloc_dmah(struct later_dmah *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_dealloc_dmah))
		return errno;
	struct dmah_object *dmah = vb_container_of(ibv, struct dmah_object, ibv);
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&dmah->regions))
		return EBUSY;
	vb_object_remove(ibv->context, &dmah->link);
	free(dmah);
	return 0;
}

/* ---- Registering ------------------------------------------------------------------------------------------------- */

/* True if attr is part of a buffer that was allocated in pd. */
static bool is_of_buffer(const struct ibv_pd *pd, const struct later_mr_init_attr *attr)
{
	const struct later_buf *buf = attr->buf;
	if (buf->pd != pd || !(attr->comp_mask & LATER_MR_ADDR) ||
		(attr->comp_mask & (LATER_MR_FD | LATER_MR_FD_OFFSET)))
		return false;
	uintptr_t offset = (uintptr_t)attr->addr - (uintptr_t)buf->addr;
	return offset <= buf->size && attr->length <= buf->size - offset;
}

static int check_init_attr(const struct ibv_pd *pd, const struct later_mr_init_attr *attr)
{
	const uint64_t dmabuf = LATER_MR_FD | LATER_MR_FD_OFFSET | LATER_MR_IOVA;
	const uint64_t known = dmabuf | LATER_MR_ADDR | LATER_MR_DMAH | LATER_MR_BUF;
	uint64_t mask = attr->comp_mask;
	if (mask & ~known)
		return EOPNOTSUPP;
	if ((mask & LATER_MR_BUF) && (!attr->buf || !is_of_buffer(pd, attr)))
		return EINVAL;
	if ((mask & LATER_MR_DMAH) &&
		(!attr->dmah || attr->dmah->context != pd->context || (attr->access & IBV_ACCESS_ON_DEMAND)))
		return EINVAL;
	if (mask & LATER_MR_ADDR)
		return mask & (LATER_MR_FD | LATER_MR_FD_OFFSET) ? EINVAL : 0;
	return (mask & dmabuf) == dmabuf ? 0 : EINVAL;
}

VB_EXPORT struct ibv_mr *later_reg_mr_ex(struct ibv_pd *pd, struct later_mr_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_reg_mr_ex))
		return NULL;
	int err = check_init_attr(pd, attr);
	if (err)
		return vb_fail(err);
	struct ibv_mr *mr;
	if (attr->comp_mask & LATER_MR_ADDR) {
		uint64_t iova = attr->comp_mask & LATER_MR_IOVA ? attr->iova : (uintptr_t)attr->addr;
		mr = ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned int)attr->access);
	} else {
		mr = ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd, attr->access);
	}
	if (mr && (attr->comp_mask & LATER_MR_DMAH)) {
		struct dmah_object *dmah = vb_container_of(attr->dmah, struct dmah_object, ibv);
		((struct mr_object *)mr)->dmah = dmah;
		vb_users_add(&dmah->regions, 1);
	}
	return mr;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

VB_EXPORT void *later_alloc_buf(struct ibv_pd *pd, size_t size, struct later_buf **result)
{
	if (vb_call_fails(VB_CALL_ibv_alloc_buf))
		return NULL;
	if (vb_refuses_forked(pd->context))
		return vb_fail(VB_FORKED_ERRNO);
	if (size == 0)
		return vb_fail(EINVAL);
	struct later_buf *buf = calloc(1, sizeof(*buf));
	if (!buf)
		return vb_fail(ENOMEM);
	int err = posix_memalign(&buf->addr, (size_t)sysconf(_SC_PAGESIZE), size);
	if (err) {
		free(buf);
		return vb_fail(err);
	}
	buf->pd = pd;
	buf->size = size;
	vb_pd_hold(pd, 1);
	*result = buf;
	return buf->addr;
}

VB_EXPORT void later_free_buf(struct later_buf *buf)
{
	if (!buf)
		return;
	vb_pd_hold(buf->pd, -1);
	free(buf->addr);
	free(buf);
}

VB_EXPORT struct ibv_mr *later_reg_buf_mr(
	struct ibv_pd *pd, struct later_buf *buf, void *addr, size_t length, int access)
{
	if (vb_call_fails(VB_CALL_ibv_reg_buf_mr))
		return NULL;
	struct later_mr_init_attr attr = {
		.length = length,
		.access = access,
		.comp_mask = LATER_MR_BUF | LATER_MR_ADDR,
		.addr = addr,
		.buf = buf,
	};
	return later_reg_mr_ex(pd, &attr);
}

/* Plain memory has no dma-buf. */
VB_EXPORT int later_export_buf_dmabuf_fd(struct later_buf *buf)
{
	errno = ENODATA;
	return -1;
}
