/* Enhanced connection establishment: two ends tell each other which options of their maker they have. We have none, and
 * say so in the way of those who take part: a program that exchanges options gets on with us. */
#include "host/devices/identity.h"
#include "verbs/objects.h"

VB_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (vb_is_forked(qp->context))
		return errno = VB_FORKED_ERRNO;
	*ece = (struct ibv_ece){ .vendor_id = VB_VENDOR_ID };
	return 0;
}

/* Options of others are none of ours. What is accepted of what is asked for: nothing. */
VB_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (vb_is_forked(qp->context))
		return errno = VB_FORKED_ERRNO;
	if (ece->comp_mask || ece->vendor_id != VB_VENDOR_ID)
		return errno = EINVAL;
	ece->options = 0;
	return 0;
}
