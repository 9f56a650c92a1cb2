/* The rails of a QP that has many paths (multipath.h): its own pair of addresses, and beside it a pair that shares no
 * link with that and has been proved (failover.h). Each path goes by one of them. Both have half of the paths, or one
 * has all, where the other loses what it is given or takes far longer. Acknowledgements go by the QP's own pair always,
 * so that its silence tells that it is dead. While a QP has moved it has one rail. [lane] */
#ifndef VB_ROCE_RAILS_H
#define VB_ROCE_RAILS_H

#include "core/objects.h"
#include "roce/seen.h"

struct vb_moves;
struct vb_multipath;
struct vb_outgoing;

struct vb_rail {
	uint16_t paths; /* that go by it */
	uint16_t lost;  /* requests, since one has arrived: */
	vb_time lost_since;
	uint16_t responses_sent, responses_lost; /* those of long ago less */
	uint8_t bars;                            /* how often it was left in a row */
	uint32_t rtts;                           /* measured, and their sum */
	vb_time rtt_sum;
	uint64_t barred_until;
};

struct vb_rails {
	struct vb_rail rail[2];
	bool is_open;  /* there are two */
	uint64_t sent; /* packets of data while there were */
	uint64_t by_second;
	uint64_t both_since;     /* of sent */
	struct vb_seen seen;     /* of the second */
	uint8_t newest;          /* that a packet has left by */
	struct vb_deadline deaf; /* what is lost until then may have been sent by the rail that was left */
};

/* Account is kept from now on, of what was sent once until now. */
void vb_rails_begin_account(struct vb_qp *qp);
/* Account is kept of it; is_again: it is the newest that was sent. */
void vb_rails_note_sent(struct vb_qp *qp, uint32_t psn, uint32_t span, bool is_again);
/* The arrivals by the rail of the packet at psn, or by the other. */
struct vb_seen *vb_rails_seen(const struct vb_qp *qp, uint32_t psn, bool is_other);
/* By so much longer one may take than the other. */
vb_time vb_rails_slack(const struct vb_qp *qp);
/* The same for READ responses, of which the peer alone knows by which rail they come; 0: by one. */
vb_time vb_rails_slack_of_responses(const struct vb_qp *qp);
/* The QP may have two: it has several paths, and knows each. */
bool vb_rails_are_of_use(const struct vb_qp *qp);
/* The failover's second pair is proved; or it is gone. */
void vb_rails_open(struct vb_qp *qp);
void vb_rails_close(struct vb_qp *qp);
/* A READ response leaves: who sends nothing else has no timer by which to look for a second rail. */
void vb_rails_respond(struct vb_qp *qp);
/* The packet is about to leave by that path. */
void vb_rails_take(const struct vb_qp *qp, struct vb_multipath *paths, unsigned path, struct vb_outgoing *out);
/* It leaves by another instead. */
void vb_rails_undo(const struct vb_qp *qp, struct vb_multipath *paths, const struct vb_outgoing *out);
/* The packet at psn is lost: a request, of which account is kept, or a response that is sent again. */
void vb_rails_note_loss(struct vb_qp *qp, uint32_t psn, bool is_response);
/* The request, of which account is kept, has arrived. */
void vb_rails_note_arrival(struct vb_qp *qp, uint32_t psn);
void vb_rails_note_rtt(struct vb_multipath *paths, unsigned path, vb_time rtt);
void vb_rails_account(const struct vb_qp *qp, struct vb_moves *moves); /* how much went by which */
void vb_rails_check(const struct vb_multipath *paths);

#endif
