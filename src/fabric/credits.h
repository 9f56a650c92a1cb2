/* InfiniBand's flow control: a lane sends what there is room for, and is told as room is made. InfiniBand, 7.9.
 * Room is counted in blocks since the beginning, so that a message says all that those before it said. */
#ifndef FABRIC_CREDITS_H
#define FABRIC_CREDITS_H

#include "fabric/port.h"

#define CREDIT_BLOCK 64u

static inline uint32_t credits_of(uint32_t wire_bytes)
{
	return (wire_bytes + CREDIT_BLOCK - 1) / CREDIT_BLOCK;
}

static inline bool credits_are_there(const struct port_queue *queue, const struct packet *packet)
{
	return queue->blocks_sent + credits_of(packet->wire_bytes) <= queue->blocks_granted;
}

static inline void credits_take(struct port_queue *queue, const struct packet *packet)
{
	queue->blocks_sent += credits_of(packet->wire_bytes);
}

void credits_return(
	struct fabric *fabric, uint32_t link, const struct packet *packet); /* it took no room: it was lost */
void credits_open(struct fabric *fabric, uint32_t link);                    /* of a port: what it is granted at first */
void credits_give(struct shard *shard, uint32_t in_link, uint8_t lane, uint32_t wire_bytes); /* there is room again */
uint64_t credits_granted(
	const struct fabric *fabric, uint32_t link, uint8_t lane); /* to who sends to this port's switch */
void credits_on_frame(struct shard *shard, uint32_t link, const struct frame *frame);

#endif
