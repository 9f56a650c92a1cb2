/* No congestion control: as many bytes under way as the sequence numbers allow, for networks that bound their senders
 * themselves, and to see what happens where nobody does. */
#include "cc/cc.h"

static void init(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = VB_CC_UNLIMITED;
}

const struct vb_cc_algorithm vb_cc_none = {
	.name = "none", .help = "nothing: whoever bounds what is under way, it is not congestion control", .init = init
};
