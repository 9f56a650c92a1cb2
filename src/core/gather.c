/* A message's bytes, copied together. */
#include "core/gather.h"
#include "base/copy.h"
#include "base/invariant.h"
#include "core/message.h"
#include "core/qp.h"

/* Some memory is there a page at a time only. */
static int reach_some(
	struct vb_qp *qp, const struct vb_sge *sge, uint32_t offset, uint32_t *length, struct vb_reach *reach)
{
	if (!vb_reach_local_known(qp->pd, &qp->known_lkey, sge, offset, *length, 0, reach))
		return 0;
	if (*length <= VB_MAX_MTU)
		return -1;
	*length = VB_MAX_MTU;
	return vb_reach_local(qp->pd, sge, offset, *length, 0, reach);
}

static enum vb_gathered gather_entries(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length, uint8_t *to)
{
	enum vb_gathered result = VB_GATHERED;
	for (uint32_t i = 0; i < wqe->sge_count && length > 0;) {
		const struct vb_sge *sge = &wqe->sges[i];
		if (offset >= sge->length) {
			offset -= sge->length;
			i++;
			continue;
		}
		uint32_t part = sge->length - offset < length ? sge->length - offset : length;
		struct vb_reach reach;
		if (reach_some(qp, sge, offset, &part, &reach))
			return VB_NO_ACCESS;
		const void *bytes = vb_load(&reach, part);
		if (bytes)
			vb_copy(to, bytes, part);
		else
			result = VB_NO_BYTES;
		to += part;
		length -= part;
		offset += part;
	}
	return length == 0 ? result : VB_NO_ACCESS;
}

enum vb_gathered vb_gather(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length, uint8_t *to)
{
	const uint8_t *own = own_bytes(wqe);
	assert((uint64_t)offset + length <= wqe->length);
	if (!own)
		return gather_entries(qp, wqe, offset, length, to);
	vb_copy(to, own + offset, length);
	return VB_GATHERED;
}
