/* Device memory. A software device has none of its own, so it is memory of the process. It is as close to the engine as
 * any other.
 * Holds: a piece outlives the regions registered on it, and has pages of its own. Pieces of SHARED_MIN bytes and more
 * are in a file from the start, which local peers map (host/peers/segments.h).
 * Fork: a child cannot use the parent's pieces. It can allocate and use pieces of its own, which needs no device. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "verbs/objects.h"

#define DM_MAX_ALIGN 21 /* log2 of the largest that may be asked for */
#define SHARED_MIN   65536
#define DM_WORD      4 /* as with adapters that have such memory, copies are of whole words */
#define ACCESS_KNOWN                                                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
		IBV_ACCESS_ZERO_BASED)

static bool is_inside(const struct dm_object *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int check_copy(const struct dm_object *dm, uint64_t offset, size_t length)
{
	/* Before the lock: a thread of the parent may have held it. */
	if (!dm->is_of_child && vb_refuses_forked(dm->ibv.context))
		return VB_FORKED_ERRNO;
	return is_inside(dm, offset, length) && offset % DM_WORD == 0 && length % DM_WORD == 0 ? 0 : EINVAL;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	if (vb_call_fails(VB_CALL_ibv_memcpy_to_dm))
		return errno;
	struct dm_object *dm = (struct dm_object *)ibv;
	int err = check_copy(dm, offset, length);
	if (err)
		return err;
	vb_lock_take(&dm->lock);
	memcpy(dm->bytes + offset, from, length);
	vb_lock_release(&dm->lock);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	if (vb_call_fails(VB_CALL_ibv_memcpy_from_dm))
		return errno;
	struct dm_object *dm = (struct dm_object *)ibv;
	int err = check_copy(dm, offset, length);
	if (!err)
		memcpy(to, dm->bytes + offset, length);
	return err;
}

/* Reserves length bytes of the device's memory, if there are so many. */
static bool take_share(struct context_object *context, size_t length)
{
	size_t used = atomic_load(&context->dm_bytes);
	do {
		if (length > VB_MAX_DM_BYTES - used)
			return false;
	} while (!atomic_compare_exchange_weak(&context->dm_bytes, &used, used + length));
	return true;
}

/* Whole pages, so that they can be exported, and enough of them for the alignment. */
static bool make_bytes(struct dm_object *dm, size_t length, uint32_t log_align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), alignment = (size_t)1 << log_align;
	dm->rounded = (length + page - 1) & ~(page - 1);
	dm->mapping_length = dm->rounded + (alignment > page ? alignment - page : 0);
	dm->mapping = mmap(NULL, dm->mapping_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (dm->mapping == MAP_FAILED)
		return false;
	dm->bytes = (uint8_t *)(((uintptr_t)dm->mapping + alignment - 1) & ~(alignment - 1));
	return true;
}

/* Has the pages lie in a file. If that fails, the piece is still usable. No pages but those of the fresh reservation
 * are replaced. */
static void keep_file(struct dm_object *dm, int file)
{
	dm->file = file;
	dm->losses = vb_host_losses();
}

static void share(struct dm_object *dm)
{
	int file = vb_host_make_memory(dm->rounded);
	if (file < 0)
		return;
	if (mmap(dm->bytes, dm->rounded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
		close(file);
		return;
	}
	keep_file(dm, file);
	dm->segment = vb_host_share_memory(vb_host_lane_of(dm->ibv.context), dm->bytes, dm->rounded, file);
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
	if (!dm || !make_bytes(dm, attr->length, attr->log_align_req)) {
		atomic_fetch_sub(&owner->dm_bytes, attr->length);
		free(dm);
		return vb_fail(ENOMEM);
	}
	dm->length = attr->length;
	dm->file = -1;
	vb_lock_init(&dm->lock);
	dm->ibv = (struct ibv_dm){
		.context = context,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.handle = vb_object_handle(),
	};
	dm->is_of_child = vb_is_forked(context);
	if (dm->is_of_child) /* a thread of the parent may have held the list's lock */
		return &dm->ibv;
	if (attr->length >= SHARED_MIN)
		share(dm);
	vb_object_add(context, OBJECT_DM, &dm->link);
	return &dm->ibv;
}

int vb_dm_ops_free(struct ibv_dm *ibv)
{
	struct dm_object *dm = (struct dm_object *)ibv;
	if (!dm->is_of_child && vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&dm->regions))
		return EBUSY;
	if (!dm->is_of_child) {
		vb_object_remove(ibv->context, &dm->link);
		vb_host_unshare_memory(vb_host_lane_of(ibv->context), dm->segment);
	}
	atomic_fetch_sub(&vb_context_of(ibv->context)->dm_bytes, dm->length);
	munmap(dm->mapping, dm->mapping_length);
	vb_close_unless_lost(dm->file, dm->losses);
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
	config.segment = dm->segment;
	struct mr_object *mr = vb_mr_object_create(pd, &config, NULL);
	if (!mr)
		return NULL;
	mr->is_fixed = true;
	mr->dm = dm;
	vb_users_add(&dm->regions, 1);
	return &mr->ibv;
}

/* ---- Exporting: the piece's pages become those of a file, which the kernel makes a dma-buf of -------------------- */

/* Once and for all: later exports give the same file. */
static int share_bytes(struct dm_object *dm)
{
	if (dm->file >= 0)
		return 0;
	int file = vb_host_make_memory(dm->rounded);
	if (file < 0)
		return file;
	int err = vb_device_lock_quiet(vb_host_of(dm->ibv.context));
	if (!err) {
		vb_lock_take(&dm->lock);
		err = vb_host_move_memory(dm->bytes, dm->rounded, file);
		vb_lock_release(&dm->lock);
		vb_device_unlock(vb_host_of(dm->ibv.context), VB_ALL_LANES);
	}
	if (err)
		close(file);
	else
		keep_file(dm, file);
	return err;
}

static int export_locked(struct dm_object *dm)
{
	int err = vb_host_can_make_dmabufs();
	if (!err)
		err = share_bytes(dm);
	return err ? err : vb_host_make_dmabuf(dm->file, dm->rounded);
}

/* The export has whole pages: the bytes behind the piece, in the last page, are zeros. */
VB_EXPORT int later_dm_export_dmabuf_fd(struct ibv_dm *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_dm_export_dmabuf_fd))
		return -1;
	pthread_mutex_t *lock = &vb_context_of(ibv->context)->rereg_lock;
	int fd = -VB_FORKED_ERRNO;
	if (!vb_refuses_forked(ibv->context)) {
		pthread_mutex_lock(lock);
		fd = export_locked((struct dm_object *)ibv);
		pthread_mutex_unlock(lock);
	}
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}
