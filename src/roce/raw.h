/* Raw packet QPs: whole Ethernet frames, past the transport. The engine holds their queues as it does any QP's, and
 * says who receives a frame; frames themselves are moved by the holder. A raw QP may lack halves: a receive work queue
 * of an indirection table is one without a send queue, and a QP that spreads what it receives over such a table has
 * neither.
 *
 * Holds: a frame is what work requests say or the wire brought, byte for byte; nothing is added, nothing checked beyond
 * its length. A frame reaches a QP once at most, and only through a flow.
 * Threads and errors as in nic.h. */
#ifndef VB_ROCE_RAW_H
#define VB_ROCE_RAW_H

#include "base/list.h"
#include "core/objects.h"
#include "wire/frame.h"

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

struct vb_frame {
	struct vb_qp *qp;
	uint32_t length;
	unsigned iov_count;
	struct vb_iov iov[VB_MAX_SGE];
};

/* The next frame to send; its bytes are the application's. False: none. One at a time: then _sent or _wait. [lane] */
bool vb_lane_next_frame(struct vb_lane *lane, struct vb_frame *frame, vb_time now);
/* It has left. error, a positive errno: EMSGSIZE and EFAULT fail the work request; by any other the frame is lost, as
 * frames may be. [lane] */
void vb_lane_frame_sent(struct vb_lane *lane, const struct vb_frame *frame, int error, vb_time now);
/* There is no room to send it now: it comes again. [lane] */
void vb_lane_frame_waits(const struct vb_frame *frame);
/* The device that the QP belongs to. [any] */
const struct vb_nic *vb_qp_nic(const struct vb_qp *qp);

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

enum vb_rx_hash_field { /* ibv_rx_hash_fields */
	VB_RX_HASH_SRC_IPV4 = 1,
	VB_RX_HASH_DST_IPV4 = 2,
	VB_RX_HASH_SRC_IPV6 = 4,
	VB_RX_HASH_DST_IPV6 = 8,
	VB_RX_HASH_SRC_PORT_TCP = 16,
	VB_RX_HASH_DST_PORT_TCP = 32,
	VB_RX_HASH_SRC_PORT_UDP = 64,
	VB_RX_HASH_DST_PORT_UDP = 128,
};

#define VB_RX_HASH_FIELDS 255
#define VB_TOEPLITZ_KEY   40
#define VB_MAX_SPREAD     4096 /* queues of an indirection table */

struct vb_spread {
	uint8_t key[VB_TOEPLITZ_KEY];
	uint32_t fields; /* enum vb_rx_hash_field */
	uint32_t count;  /* of queues; a power of two */
	struct vb_qp *const *queues;
};

/* Frames for qp go to one of these queues, chosen by the Toeplitz hash of the fields that a frame has; one without any
 * goes to the first. The QP itself is receiving whatever its state is: its queues have states. They outlive it.
 * -EINVAL, -ENOMEM. [lane] */
int vb_qp_spread(struct vb_qp *qp, const struct vb_spread *spread);
/* The hash that chooses: of source and destination address, then source and destination port. */
uint32_t vb_toeplitz(const struct vb_spread *spread, const struct vb_frame_headers *headers, uint32_t protocols);

enum vb_flow_kind { /* ibv_flow_attr_type */
	VB_FLOW_NORMAL = 0,
	VB_FLOW_ALL_DEFAULT = 1, /* whatever no normal flow took */
	VB_FLOW_MC_DEFAULT = 2,  /* the multicast of it */
	VB_FLOW_SNIFFER = 3,     /* a copy of everything */
};

/* Frames that flows took. [lane] */
struct vb_flow_tally {
	uint64_t frames, bytes;
};

struct vb_frame_flow {
	enum vb_flow_kind kind;
	uint16_t priority;   /* of normal flows: the smallest number is asked first */
	bool is_transparent; /* what it takes is offered to flows behind it too */
	uint32_t protocols;  /* enum vb_frame_protocol: what a frame must have */
	struct vb_frame_headers value, mask;
	struct vb_qp *qp;
	struct vb_flow_tally *tally; /* or NULL */
	struct vb_list link;         /* the engine's */
};

/* The flows of an interface, in the order in which they are asked. */
struct vb_steering {
	struct vb_lane *lane;
	struct vb_list flows;
};

void vb_steering_init(struct vb_steering *steering, struct vb_lane *lane);
void vb_steering_add(struct vb_steering *steering, struct vb_frame_flow *flow); /* [lane] */
void vb_steering_remove(struct vb_frame_flow *flow);                            /* [lane] */
bool vb_frame_flow_matches(
	const struct vb_frame_flow *flow, const struct vb_frame_headers *headers, uint32_t protocols);
/* A frame came: every QP that is to have it gets it. One that goes out only: sniffers alone. [lane] */
void vb_steering_receive(
	struct vb_steering *steering, const uint8_t *frame, uint32_t length, bool only_sniffers, vb_time now);

void vb_steering_check(const struct vb_steering *steering);

/* The engine's own: a frame for qp came, or it has one to send. */
void vb_raw_schedule(struct vb_qp *qp);
void vb_raw_receive(struct vb_qp *qp, const uint8_t *frame, uint32_t length);

#endif
