/* The RDMA transport as a pure library: packets and time go in, packets and completions come out.
 *
 * It makes no system call, starts no thread, reads no clock and allocates nothing on its hot path. Whoever holds it
 * (a live process, the simulator, a test) runs the same few lines:
 *
 *   vb_lane_receive(lane, &path, packets, n, now);           whatever arrived
 *   vb_lane_advance(lane, now);                              timers due by now
 *   while (vb_lane_transmit(lane, batch, budget, now)) {     what is to be sent, as much as the holder has room for
 *           ... send; now or later, in any order:
 *           vb_lane_transmit_done(lane, completions, n, now);
 *   }
 *   while (vb_lane_next_event(lane, &event)) ...             completion notices, asynchronous events, causes of death
 *   vb_lane_next_deadline(lane)                              when to call again
 *
 * Objects. A vb_nic is a device: protection domains, memory regions and windows, limits, GIDs. A vb_lane is a
 * run-to-completion worker: QPs, timers, scheduler, counters. CQs and SRQs stand alone, since QPs of several lanes may
 * share them.
 *
 * Threads. Functions marked [lane] need the lane to themselves: the holder serialises them (one mutex a lane).
 * Functions marked [any] may be called by any thread at any time. Posting is [any]: it takes the queue's own short
 * lock, rings a doorbell bit, and the lane looks at its doorbells in advance and transmit; who has the lane may do
 * without the bell. The rest is [setup]: the holder sees to it that an object is not used while it is created or
 * destroyed.
 *
 * Errors. 0 or a negative errno; outputs are written only on success. Enumerations whose values the public verbs ABI
 * also knows have the ABI's values (asserted in verbs/).
 *
 * Source: InfiniBand Architecture Specification vol. 1, chapters 9 to 11; RoCEv2 annex A17. */
#ifndef VB_ENGINE_NIC_H
#define VB_ENGINE_NIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"
#include "base/time.h"
#include "base/timers.h"
#include "core/objects.h"
#include "roce/holder.h"
#include "roce/lane_config.h"
#include "wire/packet.h"

/* ---- Queue pairs ------------------------------------------------------------------------------------------------- */

/* A new QP in RESET. config's capacities are raised to what was given. -ENOSPC: the lane has no number left;
 * -EADDRINUSE: another QP has that number. [lane] */
int vb_qp_create(struct vb_lane *lane, struct vb_qp_config *config, struct vb_qp **qp);
/* The QP leaves the lane. What is at the port stays valid until it has come back. [lane] */
int vb_qp_destroy(struct vb_qp *qp);
/* It is about to be destroyed, reset or to fail: what it has executed is acknowledged once more in the next batch, if
 * packets of it were lost. False: there is no need. */
bool vb_qp_takes_leave(struct vb_qp *qp, vb_time now);
/* Checks the transition and its attributes against the specification's table, then applies them. -EINVAL. [lane] */
int vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask, vb_time now);
void vb_qp_query(struct vb_qp *qp, struct vb_qp_attr *attr, struct vb_qp_config *config); /* [lane] */
/* Before it is destroyed: heir takes its timer's place, so that its lane advances, and its other QPs' timers expire,
 * when and in the order that they would if it stayed. heir is the caller's until the lane is destroyed. [lane] */
void vb_qp_leave_timer(struct vb_qp *qp, struct vb_timer *heir);
/* True when transmit would hand out nothing of this QP, and its congestion control wants nothing, without anything more
 * happening to it. [lane] */
bool vb_qp_is_quiet(const struct vb_qp *qp);

/* Another congestion control than the lane's, from RTS on, where it begins afresh. config is borrowed as long as the
 * QP has it; NULL: the lane's. -EINVAL: the QP is in RTS already, or beyond. [lane] */
int vb_qp_set_congestion_control(struct vb_qp *qp, const struct vb_cc_config *config);

/* As end(true), for a poster who has got the lane: it looks at the queue now, and nobody rings. The local peer
 * (local.h) for whom that is, and nothing else is to be done; or NULL. [lane] */
struct vb_local_peer *vb_sq_serve(struct vb_qp *qp, vb_time now);
/* True when what was posted last may wait for more to leave with: it is small, and others are under way, whose
 * acknowledgement brings whoever drives the lane. False once all that waits makes a train. [lane] */
bool vb_sq_may_wait(const struct vb_qp *qp);

/* ---- Lanes ------------------------------------------------------------------------------------------------------- */

int vb_lane_create(const struct vb_lane_config *config, struct vb_lane **lane); /* [setup] */
void vb_lane_destroy(struct vb_lane *lane);                                     /* [setup] all its QPs are gone */

void vb_lane_advance(struct vb_lane *lane, vb_time now); /* [lane] */
/* A packet of that QP comes, or leaves, soon: what it looks at is fetched meanwhile. A hint, of a QP that may be gone.
 * It reads the lane's first line, for which a holder of many asks before (vb_lane_prefetch_own). [lane] */
void vb_lane_prefetch(const struct vb_lane *lane, uint32_t qpn);
void vb_lane_prefetch_own(const struct vb_lane *lane); /* what packets look at of the lane itself [any] */

/* Fills batch with at most budget packets (<= VB_BATCH_PACKETS), consecutive ones of one QP together, and returns how
 * many; 0 when there is nothing to send now. The batch and every av are the holder's until it next calls the lane: a
 * port that sends later has encoded the headers by then. The bytes that iov names are lent until transmit_done; of a
 * reliable QP they may change before, for an answer to an earlier copy makes them the program's again, and so may
 * those of a QP that was reset, has failed or is gone. [lane] */
unsigned vb_lane_transmit(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now);
/* From now on QPs whose address has one of these traffic classes (bit c: class selector c, the top bits of a DSCP)
 * send no requests and responses, and if `replies`, none of acks, NAKs and CNPs leaves, whosever they are: a wire on
 * which classes are paused each for itself (IEEE 802.1Qbb). A QP that was held goes on where it was.
 * O(1) in QPs. Where replies_first, and of QPs that are connected. [lane] */
void vb_lane_hold(struct vb_lane *lane, uint8_t classes, bool replies);
/* The port is done with these packets: completions of any batches, in any order, each once. EFAULT fails the work
 * request (LOC_PROT_ERR); any other error counts as a lost packet. [lane] */
void vb_lane_transmit_done(
	struct vb_lane *lane, const struct vb_tx_completion *completions, unsigned count, vb_time now);
/* When advance or transmit is to be called next, at the latest; O(1). Acks held back count too. [lane] */
struct vb_deadline vb_lane_next_deadline(const struct vb_lane *lane);
/* True when transmit would hand out packets without anything more happening (posted, received, or ack due). [lane] */
bool vb_lane_wants_transmit(const struct vb_lane *lane, vb_time now);
/* True when transmit, the next event and the next wanted peer (local.h) would give nothing, now or later, without
 * anything more happening. Then nothing has to be asked. [lane] */
bool vb_lane_is_quiet(const struct vb_lane *lane);
/* Forget ack delays until the next receive: whoever drives is about to sleep. [lane] */
void vb_lane_flush_acks(struct vb_lane *lane);

#endif
