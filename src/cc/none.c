/* No congestion control: as many bytes in flight as the sequence numbers allow. For networks that limit senders
 * themselves, and to see what happens without limits. */
#include "cc/cc.h"

static void init(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = VB_CC_UNLIMITED;
}

const struct vb_cc_algorithm vb_cc_none = {
	.name = "none", .help = "nothing: whoever bounds what is under way, it is not congestion control", .init = init
};
