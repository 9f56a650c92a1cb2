/* Enhanced connection establishment: both ends tell which vendor options they have. We have none, but take part, so
 * that programs that exchange options work. */
#include "host/devices/identity.h"
#include "verbs/objects.h"

VB_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (vb_call_fails(VB_CALL_ibv_query_ece))
		return errno;
	if (vb_refuses_forked(qp->context))
		return errno = VB_FORKED_ERRNO;
	*ece = (struct ibv_ece){ .vendor_id = VB_VENDOR_ID };
	return 0;
}

/* Other vendors' options are ignored: none of the requested options is accepted. */
VB_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (vb_call_fails(VB_CALL_ibv_set_ece))
		return errno;
	if (vb_refuses_forked(qp->context))
		return errno = VB_FORKED_ERRNO;
	if (ece->comp_mask || ece->vendor_id != VB_VENDOR_ID)
		return errno = EINVAL;
	ece->options = 0;
	return 0;
}
