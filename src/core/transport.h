/* The table by which core and the engine ask whatever carries a QP's requests and answers. A QP has one row for good,
 * by its type (engine/transports.c), and a row for its requests: the same, or local's (local/local.h) while the peer is
 * a local peer. */
#ifndef VB_CORE_TRANSPORT_H
#define VB_CORE_TRANSPORT_H

#include "core/objects.h"

struct vb_send_wqe;

struct vb_transport {
	uint8_t service;        /* of its packets' opcodes: enum vb_service */
	bool is_reliable;       /* requests are acknowledged, and sent again */
	bool restarts_messages; /* go-back-0: a message of which a packet is missing begins again, at both ends */

	/* Of the row for requests. */
	void (*schedule)(struct vb_qp *qp); /* something may be sent */
	/* A work request starts: how many PSNs it takes, and in what pieces it goes. */
	void (*cut)(struct vb_qp *qp, struct vb_send_wqe *wqe);
	/* When what is under way is to be looked at again, but for the wait after "not ready". */
	struct vb_deadline (*deadline)(const struct vb_qp *qp);
	void (*on_timer)(struct vb_qp *qp, vb_time now);
	void (*go_back)(struct vb_qp *qp); /* all that is under way is to be sent again, and counts no more */

	/* Of the row by type: they concern all ways of the QP. */
	void (*choose)(struct vb_qp *qp); /* its row for requests, if nothing is under way */
	void (*stop)(struct vb_qp *qp);   /* nothing more of its requests is sent */
	void (*end)(struct vb_qp *qp);    /* it is in ERR: no responses, but the last ack */
	void (*forget_srq)(struct vb_qp *qp, const struct vb_srq *srq); /* XRC_RECV */
	bool (*has_packets)(const struct vb_qp *qp);                    /* packets of its requests are under way */
	void (*check)(const struct vb_qp *qp);

	/* Of UD, where each work request has a destination: those from the cursor to tail that do not go as packets are
	 * taken. True: that was all there is. */
	bool (*divert)(struct vb_qp *qp, uint32_t tail);
	/* It would be taken, if packets were not under way to its destination. */
	bool (*follows_packets)(struct vb_qp *qp, const struct vb_send_wqe *wqe);
};

#endif
