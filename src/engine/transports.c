/* The rows of transports by packets: what is particular to each type of QP. The row of requests as descriptors is
 * local/local.c's. */
#include "engine/transports.h"
#include "core/lane.h"
#include "core/qp.h"
#include "local/local.h"
#include "roce/echo.h"
#include "roce/raw.h"
#include "roce/recovery.h"
#include "roce/roce.h"

/* Of both ways: the QP may lend bytes, or send datagrams, as well. */
static void stop(struct vb_qp *qp)
{
	vb_roce_stop(qp);
	vb_local_stop(qp);
}

static void choose_nothing(struct vb_qp *qp) {}

/* Datagrams that are for local peers do not wait for a turn. */
static void schedule_datagrams(struct vb_qp *qp)
{
	if (!vb_local_route_datagrams(qp, atomic_load_explicit(&qp->sq.tail, memory_order_acquire)))
		vb_roce_schedule(qp);
}

static struct vb_deadline no_deadline(const struct vb_qp *qp)
{
	return (struct vb_deadline){ 0 };
}

static void go_back_nowhere(struct vb_qp *qp) {}

#define RELIABLE                                                                                                       \
	.is_reliable = true, .schedule = vb_roce_schedule, .deadline = vb_recovery_deadline,                           \
	.on_timer = vb_recovery_on_timer, .go_back = vb_roce_go_back, .choose = vb_local_choose
#define UNRELIABLE .deadline = no_deadline, .on_timer = vb_echo_on_timer, .go_back = go_back_nowhere
#define ANY                                                                                                            \
	.cut = vb_roce_cut, .check = vb_roce_check, .stop = stop, .end = vb_roce_end,                                  \
	.forget_srq = vb_roce_forget_srq, .has_packets = vb_roce_has_packets

enum row { RC, RC_THAT_RESTARTS, UC, UD, RAW, XRC, ROWS };

static const struct vb_transport rows[ROWS] = {
	[RC] = { .service = VB_RC, RELIABLE, ANY },
	[RC_THAT_RESTARTS] = { .service = VB_RC, .restarts_messages = true, RELIABLE, ANY },
	[UC] = { .service = VB_UC, .schedule = vb_roce_schedule, .choose = vb_local_choose, UNRELIABLE, ANY },
	[UD] = { .service = VB_UD,
		.schedule = schedule_datagrams,
		.choose = choose_nothing,
		.divert = vb_local_route_datagrams,
		.follows_packets = vb_local_follows_packets,
		UNRELIABLE,
		ANY },
	/* No packet is for it. */
	[RAW] = { .service = VB_UD, .schedule = vb_raw_schedule, .choose = choose_nothing, UNRELIABLE, ANY },
	[XRC] = { .service = VB_XRC, RELIABLE, ANY },
};

const struct vb_transport *vb_transport_of(enum vb_qp_type type, bool restarts)
{
	switch (type) {
	case VB_QP_RC:
		return &rows[restarts ? RC_THAT_RESTARTS : RC];
	case VB_QP_UC:
		return &rows[UC];
	case VB_QP_UD:
		return &rows[UD];
	case VB_QP_RAW:
		return &rows[RAW];
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		return &rows[XRC];
	}
	return &rows[RC];
}
