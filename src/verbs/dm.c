/* Device memory. A software device's memory is the process's: what programs put there to keep it off the bus is at
 * least as close to the engine as anything else. Holds: a piece outlives the regions registered on it. In a forked
 * child the parent's pieces are private copies, and new ones are the child's own: neither needs the device. */
#include <stdlib.h>
#include <string.h>
#include "verbs/objects.h"

#define DM_ALIGNMENT 64 /* of the start: enough for atomics, and a cache line */
#define DM_MAX_ALIGN 21 /* log2 of the largest that may be asked for */
#define DM_WORD      4  /* copies are of whole words, as with adapters that have such memory */
#define ACCESS_KNOWN                                                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
		IBV_ACCESS_ZERO_BASED)

static bool is_inside(const struct dm_object *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int check_copy(const struct dm_object *dm, uint64_t offset, size_t length)
{
	return is_inside(dm, offset, length) && offset % DM_WORD == 0 && length % DM_WORD == 0 ? 0 : EINVAL;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	struct dm_object *dm = (struct dm_object *)ibv;
	int err = check_copy(dm, offset, length);
	if (!err)
		memcpy(dm->bytes + offset, from, length);
	return err;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	struct dm_object *dm = (struct dm_object *)ibv;
	int err = check_copy(dm, offset, length);
	if (!err)
		memcpy(to, dm->bytes + offset, length);
	return err;
}

/* length of the device's memory is this piece's from now on, if there is as much. */
static bool take_share(struct context_object *context, size_t length)
{
	size_t used = atomic_load(&context->dm_bytes);
	do {
		if (length > VB_MAX_DM_BYTES - used)
			return false;
	} while (!atomic_compare_exchange_weak(&context->dm_bytes, &used, used + length));
	return true;
}

static uint8_t *make_bytes(size_t length, uint32_t log_align)
{
	size_t alignment = log_align < 6 ? DM_ALIGNMENT : (size_t)1 << log_align;
	size_t rounded = (length + alignment - 1) & ~(alignment - 1);
	uint8_t *bytes = aligned_alloc(alignment, rounded);
	if (bytes)
		memset(bytes, 0, rounded);
	return bytes;
}

struct ibv_dm *vb_dm_ops_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct context_object *owner = vb_context_of(context);
	if (attr->comp_mask || attr->length == 0 || attr->length > VB_MAX_DM_BYTES ||
		attr->log_align_req > DM_MAX_ALIGN)
		return vb_fail(EINVAL);
	if (!take_share(owner, attr->length))
		return vb_fail(ENOMEM);
	struct dm_object *dm = calloc(1, sizeof(*dm));
	if (dm)
		dm->bytes = make_bytes(attr->length, attr->log_align_req);
	if (!dm || !dm->bytes) {
		atomic_fetch_sub(&owner->dm_bytes, attr->length);
		free(dm);
		return vb_fail(ENOMEM);
	}
	dm->length = attr->length;
	dm->ibv = (struct ibv_dm){
		.context = context,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.handle = vb_object_handle(),
	};
	vb_list_init(&dm->link);
	if (!vb_is_forked(context)) /* the list's lock may have had a holder who stayed in the parent */
		vb_object_add(context, OBJECT_DM, &dm->link);
	return &dm->ibv;
}

int vb_dm_ops_free(struct ibv_dm *ibv)
{
	struct dm_object *dm = (struct dm_object *)ibv;
	if (atomic_load(&dm->regions))
		return EBUSY;
	if (!vb_is_forked(ibv->context))
		vb_object_remove(ibv->context, &dm->link);
	atomic_fetch_sub(&vb_context_of(ibv->context)->dm_bytes, dm->length);
	free(dm->bytes);
	free(dm);
	return 0;
}

struct ibv_mr *vb_dm_ops_reg_mr(
	struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length, unsigned int access)
{
	struct dm_object *dm = (struct dm_object *)ibv;
	struct vb_mr_config config = { .length = length };
	if (ibv->context != pd->context || !(access & IBV_ACCESS_ZERO_BASED) || !is_inside(dm, offset, length) ||
		vb_mr_access(access, ACCESS_KNOWN, &config.access))
		return vb_fail(EINVAL);
	config.memory = dm->bytes + offset;
	struct mr_object *mr = vb_mr_object_create(pd, &config, NULL);
	if (!mr)
		return NULL;
	mr->is_fixed = true;
	mr->dm = dm;
	atomic_fetch_add(&dm->regions, 1);
	return &mr->ibv;
}
