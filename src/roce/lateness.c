/* How late a packet may be without being lost: a part of the round trip, by what the network may do to the order of
 * packets, and the lateness that packets of this QP have shown. A packet that was sent again and came twice had only
 * been late; losses in earnest make less be allowed for. Not here: which packet is lost by that (selective.c). */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/selective.h"

#define LATENESS_MAX (2 * VB_MS) /* what is later counts as lost */
#define TOLD_WAITS   4           /* round trips, where switches tell of what they drop */
#define IN_EARNEST   64          /* losses, without one that was only late, before less lateness is allowed for */

static struct vb_selective *selective_of(const struct vb_qp *qp)
{
	return vb_roce(qp)->selective;
}

/* By one path packets keep their order, nearly (RFC 8985, section 6.2, step 4). Many paths have queues of their own,
 * each of up to about a round trip; and where switches tell of what they drop, the clock finds only what links lose and
 * what is too short to be cut, so that it can wait until each queue on the way would be empty. */
static vb_time least_lateness(const struct vb_qp *qp)
{
	const vb_time known = vb_roce(qp)->recovery.srtt, srtt = known ? known : selective_of(qp)->guessed_rtt;
	if (!vb_multipath_of(qp))
		return srtt / 4;
	return vb_roce_lane_of(qp)->config.drops_are_told ? TOLD_WAITS * srtt : srtt;
}

static void allow_for(struct vb_qp *qp, vb_time late)
{
	struct vb_selective *s = selective_of(qp);
	vb_time lateness = late - least_lateness(qp);
	if (lateness > LATENESS_MAX)
		lateness = LATENESS_MAX;
	if (lateness > s->lateness)
		s->lateness = lateness;
	s->in_earnest = 0;
	assert(s->lateness <= LATENESS_MAX);
}

vb_time vb_lateness_window(const struct vb_qp *qp)
{
	return least_lateness(qp) + selective_of(qp)->lateness;
}

static struct vb_resent *resent_of(struct vb_selective *s, uint32_t psn)
{
	for (unsigned i = 0; i < VB_RESENT; i++)
		if (s->resent[i].sent_at && s->resent[i].psn == psn)
			return &s->resent[i];
	return NULL;
}

void vb_lateness_note_resent(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	struct vb_resent *resent = resent_of(s, psn);
	if (!resent)
		resent = &s->resent[s->resent_next++ % VB_RESENT];
	*resent = (struct vb_resent){
		.psn = psn, .after_ns = (uint32_t)(vb_lateness_window(qp) / VB_NS), .sent_at = now
	};
}

/* A packet that was taken for lost has arrived, by itself or sent again. */
void vb_lateness_note_arrival(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (vb_psn_bit(s->sent.lost, s->sent.mask, psn)) {
		allow_for(qp, 2 * vb_lateness_window(qp) + VB_US);
		return;
	}
	if (!vb_psn_bit(s->sent.again, s->sent.mask, psn))
		return;
	struct vb_resent *resent = resent_of(s, psn);
	if (resent && resent->took == 0)
		resent->took = vb_time_since(resent->sent_at, now);
	if (++s->in_earnest == IN_EARNEST) {
		s->lateness -= s->lateness / 4;
		s->in_earnest = 0;
	}
}

void vb_lateness_note_duplicate(struct vb_qp *qp, uint32_t psn)
{
	struct vb_selective *s = selective_of(qp);
	struct vb_resent *resent = resent_of(s, psn);
	s->shorter_rtt = s->believed_rtt = 0;
	if (!resent) /* a probe, or what the network has doubled */
		return;
	resent->sent_at = 0;
	vb_count(qp->lane, VB_SENT_IN_VAIN, 1);
	if (resent->took)
		allow_for(qp, resent->after_ns * VB_NS + resent->took);
}
