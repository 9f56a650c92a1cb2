/* Payload goes to its place: once, through the scatter list of a receive or READ work request. */
#include "core/memory.h"

static inline bool place_in(const struct vb_pd *pd, struct vb_known_key *known, const struct vb_sge *sge,
	uint32_t offset, const uint8_t *payload, uint32_t length, bool ends_message)
{
	struct vb_reach reach;
	if (vb_reach_local_known(pd, known, sge, offset, length, VB_ACCESS_LOCAL_WRITE, &reach))
		return false;
	vb_place(&reach, payload, length, ends_message);
	return true;
}

bool vb_scatter(const struct vb_pd *pd, struct vb_known_key *known, const struct vb_sge *sges, uint32_t count,
	uint32_t offset, const uint8_t *payload, uint32_t length, bool ends_message)
{
	if (length == 0)
		return true;
	if (count == 1) /* as most have */
		return (uint64_t)offset + length <= sges->length &&
		       place_in(pd, known, sges, offset, payload, length, ends_message);
	for (uint32_t i = 0; i < count && length > 0; i++) {
		if (offset >= sges[i].length) {
			offset -= sges[i].length;
			continue;
		}
		uint32_t part = sges[i].length - offset < length ? sges[i].length - offset : length;
		if (!place_in(pd, known, &sges[i], offset, payload, part, ends_message && part == length))
			return false;
		payload = payload ? payload + part : NULL;
		length -= part;
		offset = 0;
	}
	return length == 0;
}

bool vb_scatter_places(const struct vb_pd *pd, const struct vb_sge *sges, uint32_t count, uint32_t offset,
	uint32_t length, struct vb_iov *iov, unsigned *iov_count)
{
	for (uint32_t i = 0; i < count && length > 0; i++) {
		if (offset >= sges[i].length) {
			offset -= sges[i].length;
			continue;
		}
		uint32_t part = sges[i].length - offset < length ? sges[i].length - offset : length;
		struct vb_reach reach;
		if (vb_reach_local(pd, &sges[i], offset, part, VB_ACCESS_LOCAL_WRITE, &reach) || reach.kind)
			return false;
		iov[(*iov_count)++] = (struct vb_iov){ reach.bytes, part };
		length -= part;
		offset = 0;
	}
	return length == 0;
}
