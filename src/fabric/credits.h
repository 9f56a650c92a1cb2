/* InfiniBand's flow control (InfiniBand, 7.9): a lane sends when the receiver has room, and is told when room is freed.
 * Room is counted in blocks since the beginning, so each message includes all that earlier ones said. */
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

void credits_return(struct fabric *fabric, uint32_t link,
	const struct packet *packet);                    /* the packet was lost, so it took no room */
void credits_open(struct fabric *fabric, uint32_t link); /* what a port may send at first */
void credits_give(struct shard *shard, uint32_t in_link, uint8_t lane, uint32_t wire_bytes); /* room was freed */
uint64_t credits_granted(
	const struct fabric *fabric, uint32_t link, uint8_t lane); /* for the sender to this port's switch */
void credits_on_frame(struct shard *shard, uint32_t link, const struct frame *frame);

#endif
