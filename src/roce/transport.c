/* The wire transport's part of QPs and lanes, from their beginning to their end, and its rows' functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/message.h"
#include "roce/echo.h"
#include "roce/failover.h"
#include "roce/large.h"
#include "roce/peers.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "roce/roce.h"
#include "roce/ud.h"

/* ---- A QP -------------------------------------------------------------------------------------------------------- */

int vb_roce_qp_init(struct vb_qp *qp)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	vb_list_init(&roce->ack_link);
	vb_list_init(&roce->mcast);
	vb_congestion_init(qp);
	/* Timers that were left may be in the heap beside those of QPs. */
	int error = vb_timers_reserve(&qp->lane->timers, qp->lane->timers.count + qp->lane->qp_count + 1);
	return error ? error : vb_timers_reserve(&vb_roce_lane_of(qp)->congestion_timers, qp->lane->qp_count + 1);
}

void vb_roce_qp_deinit(struct vb_qp *qp)
{
	free(vb_roce(qp)->responses.resources);
	free(vb_roce(qp)->echo);
	free(vb_roce(qp)->spread);
	vb_selective_end(qp);
}

static void forget_requests(struct vb_roce_qp *roce)
{
	free(roce->echo);
	roce->echo = NULL;
	roce->since_ackreq = 0;
	memset(&roce->recovery, 0, sizeof(roce->recovery));
}

int vb_roce_requests_reset(struct vb_qp *qp, vb_time now)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	vb_flight_stop(qp);
	int error = vb_congestion_start(qp, now);
	if (error)
		return error;
	forget_requests(roce);
	vb_selective_begin_requests(qp);
	return 0;
}

/* All packets of a message but the last are full, and the last asks for an ack in any case: so many packets are so many
 * bytes. */
void vb_roce_set_mtu(struct vb_qp *qp, uint32_t mtu)
{
	const struct vb_lane_config *config = &vb_roce_lane_of(qp)->config;
	uint64_t packets = (uint64_t)config->acks.every_packets * (mtu + config->packet_overhead);
	uint64_t bytes =
		config->acks.every_bytes < VB_MAX_MESSAGE_BYTES ? config->acks.every_bytes : VB_MAX_MESSAGE_BYTES;
	assert(mtu > 0);
	qp->mtu = (uint16_t)mtu;
	vb_roce(qp)->overhead = (uint16_t)config->packet_overhead;
	vb_roce(qp)->ask_every = (uint32_t)(packets < bytes ? packets : bytes);
}

void vb_roce_leave(struct vb_qp *qp)
{
	vb_flight_stop(qp);
	vb_congestion_end(qp);
}

void vb_roce_unschedule(struct vb_qp *qp)
{
	vb_list_remove(&qp->ready_link);
	vb_list_remove(&vb_roce(qp)->ack_link);
	vb_roce(qp)->responses.is_first = false;
	assert(!vb_list_linked(&qp->ready_link));
}

void vb_roce_forget(struct vb_qp *qp)
{
	while (!vb_list_empty(&vb_roce(qp)->mcast)) {
		struct vb_mcast_attachment *attachment =
			vb_container_of(vb_roce(qp)->mcast.next, struct vb_mcast_attachment, qp_link);
		struct vb_gid gid = attachment->gid;
		vb_qp_detach_mcast(qp, &gid);
	}
	vb_echo_forget(qp);
	vb_failover_stop(qp);
	vb_early_stop(qp); /* what it has at the port may outlive its domain */
	vb_roce_unschedule(qp);
}

void vb_roce_clear(struct vb_qp *qp)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	forget_requests(roce);
	vb_responses_reset(qp);
	vb_selective_end(qp);
	qp->large_mtu = 0;
	roce->hellos = 0;
	roce->hello_is_due = roce->hello_answer_is_due = false;
}

bool vb_roce_is_quiet(const struct vb_qp *qp)
{
	return !vb_list_linked(&qp->ready_link) && !vb_list_linked(&vb_roce(qp)->ack_link) &&
	       vb_roce(qp)->congestion.timer.index < 0 && !atomic_load(&qp->doorbell_rung);
}

/* ---- Rows of struct vb_transport --------------------------------------------------------------------------------- */

void vb_roce_cut(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	wqe->is_large = wqe->length > qp->mtu && (is_read(wqe) ? vb_large_may_come(qp) : vb_large_may_go(qp));
	wqe->psn_count = vb_packets_of(wqe->length, vb_mtu_of(qp, wqe));
	if (is_read(wqe)) {
		wqe->read.piece = vb_flight_read_piece(qp, vb_mtu_of(qp, wqe));
		wqe->read.changed_at = 0;
	} else if (wqe->psn_count > 1) {
		wqe->whole.stamp = NULL;
	}
	assert(wqe->psn_count > 0);
}

void vb_roce_stop(struct vb_qp *qp)
{
	struct vb_roce_qp *roce = vb_roce(qp);
	vb_echo_give_up(qp);
	vb_selective_stop_requests(qp);
	vb_flight_stop(qp);
	vb_congestion_stop(qp);
	roce->recovery.probe = VB_PROBE_NONE;
	if (roce->echo)
		roce->echo->is_blocked = false;
	assert(roce->flight.out == 0 && roce->flight.in == 0);
}

/* Requests that were executed before are acknowledged all the same. */
void vb_roce_end(struct vb_qp *qp)
{
	vb_congestion_end(qp);
	vb_responder_drop_resources(qp);
	vb_early_stop(qp);
	vb_failover_stop(qp);
	if (!vb_roce(qp)->responses.ack.is_wanted)
		return;
	vb_schedule_no_ack(qp);
	vb_roce(qp)->responses.ack.is_urgent = true;
	vb_schedule_reply(qp);
	assert(vb_roce(qp)->responses.active_resources == 0);
}

/* Access to its domain for READs that are still to be answered goes with an SRQ. */
void vb_roce_forget_srq(struct vb_qp *qp, const struct vb_srq *srq)
{
	struct vb_responses *rs = &vb_roce(qp)->responses;
	for (uint8_t i = 0; i < rs->resource_count; i++) {
		if (rs->resources[i].srq == srq) {
			rs->resources[i].srq = NULL;
			rs->resources[i].pd = qp->pd;
		}
	}
}

bool vb_roce_has_packets(const struct vb_qp *qp)
{
	return vb_roce(qp)->flight.out > 0;
}

void vb_roce_check(const struct vb_qp *qp)
{
	vb_responses_check(qp);
	vb_selective_check(qp);
	vb_failover_check(qp);
	if (vb_roce(qp)->selective && vb_roce(qp)->selective->paths)
		vb_rails_check(vb_roce(qp)->selective->paths);
	vb_flight_check(qp);
	vb_congestion_check(qp);
	if (qp->local_peer)
		assert(vb_roce(qp)->flight.out == 0 && vb_roce(qp)->flight.in == 0);
}

/* ---- A lane ------------------------------------------------------------------------------------------------------ */

void vb_roce_lane_init(struct vb_roce_lane *roce)
{
	uint32_t buffer = roce->config.receive_buffer;
	vb_allowance_init(&roce->reads, buffer ? buffer / 2 : UINT64_MAX);
	vb_timers_init(&roce->congestion_timers);
	vb_list_init(&roce->raw_ready);
	for (unsigned i = 0; i < VB_LANE_CLASSES; i++)
		vb_list_init(&roce->held[i]);
	vb_list_init(&roce->acks);
	vb_list_init(&roce->early);
	vb_list_init(&roce->away);
	vb_list_init(&roce->replies);
	vb_list_init(&roce->mcast);
	roce->hold = (struct vb_hold_pool){ .of_qp = roce->config.hold_bytes, .of_lane = roce->config.hold_lane_bytes };
}

void vb_roce_lane_deinit(struct vb_roce_lane *roce)
{
	assert(vb_list_empty(&roce->acks) && vb_list_empty(&roce->mcast) && vb_list_empty(&roce->away));
	assert(vb_list_empty(&roce->early));
	vb_hold_pool_deinit(&roce->hold);
	free(roce->echo_replies);
	vb_timers_deinit(&roce->congestion_timers);
}
