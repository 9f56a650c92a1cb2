/* Copies out of mapped segments of a peer: mapped.h.
 * Holds: a mapping is of memory that cannot shrink, so that neither the peer's doing nor its end kills a reader. A
 * forked child has no mapping. The proof is read after the bytes. Not here: memory of the peer that is not mapped
 * (pull.c). */
#include "port/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "base/copy.h"

struct place {
	struct vb_segment segment;
	const uint8_t *bytes;
};

struct vb_mapped {
	struct place places[VB_SEGMENTS];
};

static struct place *place_of(struct vb_mapped *mapped, uint32_t id)
{
	return &mapped->places[id % VB_SEGMENTS];
}

/* Only memory of the page cache, whose seals cannot be taken back: huge pages may be missing when they are touched. */
static bool is_safe(int file, uint64_t length)
{
	struct stat status;
	struct statfs system;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
	       (uint64_t)status.st_size >= length && fstatfs(file, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

static int map(struct place *place, const struct vb_segment *segment, int file)
{
	void *bytes = mmap(NULL, segment->length, PROT_READ, MAP_SHARED, file, 0);

	if (bytes == MAP_FAILED)
		return -errno;
	if (madvise(bytes, segment->length, MADV_DONTFORK) < 0) {
		int error = errno;
		munmap(bytes, segment->length);
		return -error;
	}
	*place = (struct place){ *segment, bytes };
	return 0;
}

int vb_mapped_take(struct vb_mapped **mapped, const struct vb_segment *segment, int file)
{
	if (segment->id == 0 || segment->length == 0 || segment->length > SIZE_MAX / 2 ||
		segment->address + segment->length < segment->address || !is_safe(file, segment->length))
		return -EINVAL;
	if (!*mapped)
		*mapped = calloc(1, sizeof(**mapped));
	if (!*mapped)
		return -ENOMEM;
	struct place *place = place_of(*mapped, segment->id);
	return place->bytes ? -EINVAL : map(place, segment, file);
}

static void unmap(struct place *place)
{
	if (place->bytes)
		munmap((void *)place->bytes, place->segment.length);
	*place = (struct place){ 0 };
}

void vb_mapped_drop(struct vb_mapped *mapped, uint32_t id)
{
	if (mapped && place_of(mapped, id)->segment.id == id)
		unmap(place_of(mapped, id));
}

void vb_mapped_close(struct vb_mapped *mapped)
{
	for (unsigned i = 0; mapped && i < VB_SEGMENTS; i++)
		unmap(&mapped->places[i]);
	free(mapped);
}

/* ---- Pulling ----------------------------------------------------------------------------------------------------- */

/* NULL: not all bytes lie there. */
static const uint8_t *find(const struct place *place, uint64_t address, uint64_t length)
{
	uint64_t offset = address - place->segment.address;

	if (!place->bytes || offset > place->segment.length || length > place->segment.length - offset)
		return NULL;
	return place->bytes + offset;
}

static const struct vb_epochs *find_epochs(const struct vb_mapped *mapped, uint64_t address, uint64_t nonce)
{
	for (unsigned i = 0; i < VB_SEGMENTS; i++) {
		const uint8_t *found = find(&mapped->places[i], address, sizeof(struct vb_epochs));
		const struct vb_epochs *epochs = (const struct vb_epochs *)(const void *)found;
		if (epochs && address % _Alignof(struct vb_epochs) == 0 && epochs->nonce == nonce)
			return epochs;
	}
	return NULL;
}

static uint64_t proof_of(const struct vb_epochs *epochs, const struct vb_local_pull *pull)
{
	const uint8_t *at = (const uint8_t *)epochs + pull->proof_at;
	uint64_t proof = 0;

	atomic_thread_fence(memory_order_seq_cst); /* behind the bytes */
	memcpy(&proof, at, pull->proof_bytes);
	return proof;
}

/* The place where the pulled bytes lie here. NULL: they are in no segment, or in one that we do not know. */
static const uint8_t *find_lent(const struct vb_mapped *mapped, const struct vb_lent *lent)
{
	const struct place *place = &mapped->places[lent->segment % VB_SEGMENTS];

	if (lent->segment == 0 || place->segment.id != lent->segment)
		return NULL;
	return find(place, lent->address, lent->length);
}

static void copy(const struct vb_local_pull *pull, const uint8_t *const *from)
{
	const struct vb_iov *to = pull->iov;
	size_t filled = 0;

	for (unsigned i = 0; i < pull->lent_count; i++)
		for (uint32_t done = 0, part; done < pull->lent[i].length; done += part) {
			uint32_t left = pull->lent[i].length - done;
			part = to->length - filled < left ? (uint32_t)(to->length - filled) : left;
			vb_copy((uint8_t *)to->base + filled, from[i] + done, part);
			filled += part;
			if (filled < to->length)
				continue;
			to++;
			filled = 0;
		}
}

bool vb_mapped_pull(const struct vb_mapped *mapped, uint64_t epochs_at, uint64_t nonce,
	const struct vb_local_pull *pull, enum vb_local_outcome *outcome)
{
	const uint8_t *from[VB_LOCAL_PULL_ITEMS];

	for (unsigned i = 0; i < pull->lent_count; i++)
		if (!(from[i] = find_lent(mapped, &pull->lent[i])))
			return false;
	const struct vb_epochs *epochs = find_epochs(mapped, epochs_at, nonce);
	if (!epochs)
		return false;
	copy(pull, from);
	*outcome = proof_of(epochs, pull) == pull->proof ? VB_PULLED : VB_PULL_STALE;
	return true;
}
