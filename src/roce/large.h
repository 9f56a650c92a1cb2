/* Large packets: messages between two ends that have agreed on it go in packets that carry as much as their links do,
 * where InfiniBand's path MTUs, powers of two up to 4,096, are less. A message of 8,256 bytes is then one packet over
 * jumbo frames, and six instead of nine over Ethernet's 1,500 bytes.
 *
 *   offered   a hello says the most that its sender takes: its link carries that. The path MTU that the program has
 *             chosen does not matter: many take 1,024 without a look at what they were offered
 *   agreed    the lesser of both
 *   proved    a hello as long as the longest such packet has come through: messages that begin thereafter are cut so
 *   heard     such a hello of the peer's has come: READs that begin when one is heard and one proved are answered so.
 *             An end that has heard one and proved nothing sends one, for it may have nothing to send but answers.
 *             So does an end whose peer says by a large one that it has heard none
 *
 * The receiver takes both sizes from when it has heard the first, and knows a message's by its First, a READ's by an
 * opcode of its own: both ends count the PSNs of its responses by it. [lane] */
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
	bool is_heard;   /* one of the peer's has, on the way that packets go now */
	bool is_taken;   /* or on one before: it may send such packets */
	bool is_due;     /* a hello as long as that */
	uint8_t asked;   /* questions since the way changed; one once both ways carry them */
	vb_time asked_at;
};

uint16_t vb_large_offer(const struct vb_qp *qp); /* 0: none */
void vb_large_agree(struct vb_qp *qp, uint16_t offered);
/* A message that gains by it is to be cut so. If not, the peer is asked, unless it was just now, or too often. */
bool vb_large_may_go(struct vb_qp *qp);
bool vb_large_may_come(struct vb_qp *qp); /* the same of a READ's responses */
/* Packets go another way from now on: the peer is asked once more. Messages that were cut so stay as they are. */
void vb_large_readdress(struct vb_qp *qp);
/* Bytes of a full packet of a message that the peer begins with that one. */
uint16_t vb_large_taken(const struct vb_qp *qp, uint32_t payload_length);
bool vb_large_is_taken(const struct vb_qp *qp);
/* Bytes of each response but the last to a READ request of the peer's, and how many there are. */
uint16_t vb_large_of_read(const struct vb_qp *qp, const struct vb_packet *request);
uint32_t vb_large_span(const struct vb_qp *qp, const struct vb_packet *request);
/* The packet is as long as a large one from now on, and travels alone. */
void vb_large_pad(struct vb_batch *batch, struct vb_outgoing *out, uint16_t length);
/* Of a hello that has come: its length, and whether it says that one of ours has arrived. True: its messages are cut so
 * from now on. */
bool vb_large_note_hello(struct vb_qp *qp, const struct vb_packet *hello);
/* Behind the peer's hello: true if a large one of ours is to leave. Either nothing is proved, and this end may send
 * nothing but its READs' responses. Or the peer's packets go another way now, and it has heard none since. */
bool vb_large_ask_in_turn(struct vb_qp *qp, const struct vb_packet *hello);

#endif
