/* When a packet is sent again, and when nobody answers any more. */
#ifndef VB_ROCE_RECOVERY_H
#define VB_ROCE_RECOVERY_H

#include "cc/cc.h"
#include "core/objects.h"

enum vb_probe { VB_PROBE_NONE, VB_PROBE_NEWEST, VB_PROBE_OLDEST };

struct vb_recovery {
	bool is_recovering : 1; /* went back from una_psn already: further NAKs for it say nothing new */
	bool is_timing : 1;
	bool was_probed : 1;        /* since progress: the newest went already, the oldest is next */
	bool is_probe_in_doubt : 1; /* it was answered; was that it, or what it repeated? */
	uint8_t probe : 4;          /* enum vb_probe: to be sent now */
	uint8_t probed;             /* enum vb_probe: last one sent since progress */
	uint8_t stale_acks;         /* heeded since progress */
	bool had_lone_answer;       /* the last progress was the answer to a probe for the oldest, and nothing else */
	uint32_t rtt_psn;           /* being timed */
	vb_time srtt;               /* 0: unknown */
	vb_time rtt_sent_at;
	vb_time patience_before; /* the answer that is in doubt */
	uint32_t doubt_end;      /* no second answer to the probe can come after one to this packet, which left later */
	uint32_t probed_psn;
};

/* Packets do get lost on the way to the peer. */
void vb_recovery_note_loss(struct vb_qp *qp);
/* To congestion control. packets: 0: not known; is_overflow: a receive buffer was full. */
void vb_recovery_tell_loss(struct vb_qp *qp, uint32_t packets, bool is_overflow, vb_time now);
void vb_recovery_measure(struct vb_qp *qp, uint32_t psn, vb_time rtt); /* of the packet that was sent at psn */
void vb_recovery_check(const struct vb_qp *qp);
void vb_recovery_on_sent(struct vb_qp *qp, uint32_t psn, bool is_new, vb_time now);
/* psn and what is before it is acknowledged, which congestion control is told, with the round trip if that was
 * measured.
 * may_answer_probe: what said so can be the answer to a probe. */
void vb_recovery_on_progress(
	struct vb_qp *qp, uint32_t psn, struct vb_cc_signal *acked, bool may_answer_probe, vb_time now);
/* An answer to something old: the peer is there and works off our duplicates. */
void vb_recovery_on_stale_ack(struct vb_qp *qp, vb_time now);
/* A NAK, or what amounts to one, for una_psn: resend, unless that was done already. */
void vb_recovery_on_gap(struct vb_qp *qp, vb_time now);
struct vb_deadline vb_recovery_deadline(const struct vb_qp *qp);
void vb_recovery_on_timer(struct vb_qp *qp, vb_time now);

#endif
