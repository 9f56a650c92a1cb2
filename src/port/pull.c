/* Copies by the kernel out of a peer's memory: pull.h.
 * Holds: the peer may die, be replaced by another program (exec), or take its bytes back while we copy. So the last
 * bytes that the same call reads prove that it was the same process and still lent them: the kernel copies the ranges
 * in the order in which they are given. Not here: memory of the peer that is mapped (mapped.c). */
#include "port/pull.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/copy.h"

#define STAGE  65536u
#define PROOFS 2

int vb_pull_number(pid_t pid, uint64_t address, uint64_t *number)
{
	struct iovec to = { number, sizeof(*number) };
	struct iovec from = { (void *)(uintptr_t)address, sizeof(*number) };
	ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

	if (n < 0)
		return -errno;
	return n == sizeof(*number) ? 0 : -EFAULT;
}

int vb_puller_try(const struct vb_puller *puller)
{
	uint64_t nonce = 0;
	int rc = vb_pull_number(puller->pid, puller->epochs + offsetof(struct vb_epochs, nonce), &nonce);

	return rc == 0 && nonce != puller->nonce ? -ESRCH : rc;
}

void vb_puller_close(struct vb_puller *puller)
{
	free(puller->stage);
	vb_mapped_close(puller->mapped);
	puller->stage = NULL;
	puller->mapped = NULL;
}

/* ---- One pull ---------------------------------------------------------------------------------------------------- */

struct proof {
	uint64_t nonce, value;
};

static struct iovec at(uint64_t address, size_t length)
{
	return (struct iovec){ (void *)(uintptr_t)address, length };
}

/* Reads length bytes, as they are lent, into the first count pieces of to, which has room for the proof's behind them.
 */
static enum vb_local_outcome read_proved(const struct vb_puller *puller, const struct vb_local_pull *pull,
	struct iovec *to, unsigned count, const struct vb_lent *lent, unsigned lent_count, uint32_t length)
{
	struct proof proof = { 0 };
	struct iovec from[VB_LOCAL_PULL_ITEMS + PROOFS];
	for (unsigned i = 0; i < lent_count; i++)
		from[i] = at(lent[i].address, lent[i].length);
	from[lent_count] = at(puller->epochs + offsetof(struct vb_epochs, nonce), sizeof(proof.nonce));
	from[lent_count + 1] = at(puller->epochs + pull->proof_at, pull->proof_bytes);
	to[count] = (struct iovec){ &proof.nonce, sizeof(proof.nonce) };
	to[count + 1] = (struct iovec){ &proof.value, pull->proof_bytes };
	ssize_t n = process_vm_readv(puller->pid, to, count + PROOFS, from, lent_count + PROOFS, 0);
	if (n < 0 && errno == EPERM)
		return VB_PULL_REFUSED;
	if (n < 0 && errno != EFAULT)
		return VB_PULL_STALE; /* it has ended, which will be noticed */
	if (n < (ssize_t)length)
		return VB_PULL_FAULT;
	bool is_proved = (size_t)n == length + sizeof(proof.nonce) + pull->proof_bytes &&
			 proof.nonce == puller->nonce && proof.value == pull->proof;
	return is_proved ? VB_PULLED : VB_PULL_STALE;
}

static enum vb_local_outcome pull_straight(const struct vb_puller *puller, const struct vb_local_pull *pull)
{
	struct iovec to[sizeof(pull->iov) / sizeof(pull->iov[0]) + PROOFS];

	for (unsigned i = 0; i < pull->iov_count; i++)
		to[i] = (struct iovec){ (void *)(uintptr_t)pull->iov[i].base, pull->iov[i].length };
	return read_proved(puller, pull, to, pull->iov_count, pull->lent, pull->lent_count, pull->length);
}

/* The kernel copies a page at a time by a string instruction, which is slow on some processors if the places of both
 * ends in their pages are nearly the same (base/copy.h). Then the bytes go to a stage of ours first, which is in the
 * cache. */
static bool is_near(const struct vb_local_pull *pull)
{
	return pull->length >= VB_COPY_PAGE &&
	       vb_copy_is_near(pull->iov[0].base, (const uint8_t *)(uintptr_t)pull->lent[0].address);
}

static void scatter(const struct vb_local_pull *pull, uint32_t offset, const uint8_t *bytes, uint32_t length)
{
	for (unsigned i = 0; i < pull->iov_count && length; i++) {
		uint32_t whole = pull->iov[i].length;
		if (offset >= whole) {
			offset -= whole;
			continue;
		}
		uint32_t part = whole - offset < length ? whole - offset : length;
		vb_copy((uint8_t *)pull->iov[i].base + offset, bytes, part);
		bytes += part;
		length -= part;
		offset = 0;
	}
}

/* Pulls bytes that are lent as one piece; offset: where the piece begins in all that is pulled. */
static enum vb_local_outcome pull_one_staged(
	const struct vb_puller *puller, const struct vb_local_pull *pull, const struct vb_lent *lent, uint32_t offset)
{
	uint8_t *stage = puller->stage + lent->address % VB_COPY_PAGE;

	for (uint32_t done = 0, part; done < lent->length; done += part) {
		struct iovec to[1 + PROOFS];
		part = lent->length - done < STAGE ? lent->length - done : STAGE;
		const struct vb_lent some = { lent->address + done, part, 0 };
		to[0] = (struct iovec){ stage, part };
		enum vb_local_outcome outcome = read_proved(puller, pull, to, 1, &some, 1, part);
		if (outcome != VB_PULLED)
			return outcome;
		scatter(pull, offset + done, stage, part);
	}
	return VB_PULLED;
}

static enum vb_local_outcome pull_staged(const struct vb_puller *puller, const struct vb_local_pull *pull)
{
	enum vb_local_outcome outcome = VB_PULLED;
	uint32_t offset = 0;

	for (unsigned i = 0; i < pull->lent_count && outcome == VB_PULLED; i++) {
		outcome = pull_one_staged(puller, pull, &pull->lent[i], offset);
		offset += pull->lent[i].length;
	}
	return outcome;
}

enum vb_local_outcome vb_pull(struct vb_puller *puller, const struct vb_local_pull *pull)
{
	enum vb_local_outcome outcome;
	bool is_staged = puller->stages && is_near(pull);

	if (puller->mapped && vb_mapped_pull(puller->mapped, puller->epochs, puller->nonce, pull, &outcome)) {
		puller->has_mapped = true;
		return outcome;
	}
	if (is_staged && !puller->stage)
		puller->stage = aligned_alloc(VB_COPY_PAGE, STAGE + VB_COPY_PAGE);
	return is_staged && puller->stage ? pull_staged(puller, pull) : pull_straight(puller, pull);
}
