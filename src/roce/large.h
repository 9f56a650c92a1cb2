/* Large packets: SENDs and WRITEs between two ends that have agreed on it go in packets that carry as much as their
 * links do, where InfiniBand's path MTUs, powers of two up to 4,096, are less. A message of 8,256 bytes is then one
 * packet over jumbo frames, and six instead of nine over Ethernet's 1,500 bytes. READs keep the path MTU, for both ends
 * count PSNs by it.
 *
 *   offered   a hello says the most that its sender takes: its link carries that. The path MTU that the program has
 *             chosen does not matter: many take 1,024 without a look at what they were offered
 *   agreed    the lesser of both
 *   proved    a hello as long as the longest such packet has come through: messages that begin thereafter are cut so
 *
 * The receiver takes both sizes from when it has seen that hello, and knows a message's by its First. [lane] */
#ifndef VB_ROCE_LARGE_H
#define VB_ROCE_LARGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct vb_batch;
struct vb_outgoing;
struct vb_packet;
struct vb_qp;

/* A QP that recovers selectively has one. vb_qp.large_mtu says how the QP cuts its own messages. */
struct vb_large {
	uint16_t agreed; /* payload; 0: nothing beyond the path MTU */
	bool is_proved;  /* one of ours has come through */
	bool is_taken;   /* the peer has shown that such packets come through, and sends them */
	bool is_due;     /* a hello as long as that */
	uint8_t asked;   /* so many left */
	vb_time asked_at;
};

uint16_t vb_large_offer(const struct vb_qp *qp); /* 0: none */
void vb_large_agree(struct vb_qp *qp, uint16_t offered);
/* A message that gains by it is to be cut so. If not, the peer is asked, unless it was just now, or too often. */
bool vb_large_may_go(struct vb_qp *qp);
/* Packets go another way from now on: the peer is asked once more. Messages that were cut so stay as they are. */
void vb_large_readdress(struct vb_qp *qp);
/* Bytes of a full packet of a message that the peer begins with that one. */
uint32_t vb_large_taken(const struct vb_qp *qp, uint32_t payload_length);
/* The packet is as long as a large one from now on, and travels alone. */
void vb_large_pad(struct vb_batch *batch, struct vb_outgoing *out, uint16_t length);
/* Of a hello that has come: its length, and whether it says that one of ours has arrived. True: its messages are cut so
 * from now on. */
bool vb_large_note_hello(struct vb_qp *qp, const struct vb_packet *hello);

#endif
