/* See credits.h. */
#include "base/invariant.h"
#include "fabric/buffer.h"
#include "fabric/credits.h"

void credits_open(struct fabric *fabric, uint32_t number)
{
	const struct switch_profile *to = network_profile(fabric->network, fabric->network->links[number].to);
	struct port *port = fabric->ports[number];
	port->has_credits = to && to->flow_control == FLOW_CREDITS;
	for (uint32_t lane = 0; port->has_credits && lane < port->profile->class_count; lane++)
		port->queues[lane].blocks_granted = to->credit_bytes / CREDIT_BLOCK;
}

/* A sender repeats in each of its messages how much it has sent, so the receiver's count becomes right again. */
void credits_return(struct fabric *fabric, uint32_t number, const struct packet *packet)
{
	struct port *port = fabric->ports ? fabric->ports[number] : NULL;
	if (port)
		port->queues[port_class(port, packet)].blocks_sent -= credits_of(packet->wire_bytes);
}

void credits_give(struct shard *shard, uint32_t in_link, uint8_t lane, uint32_t wire_bytes)
{
	assert(shard->fabric->ingresses[in_link]->profile->flow_control == FLOW_CREDITS);
	uint32_t back = shard->fabric->network->links[in_link].reverse;
	shard->fabric->ingresses[in_link]->classes[lane].blocks_freed += credits_of(wire_bytes);
	shard->fabric->ports[back]->credits_due |= (uint8_t)(1u << lane);
	port_run(shard, back);
}

uint64_t credits_granted(const struct fabric *fabric, uint32_t number, uint8_t lane)
{
	return fabric->ingresses[fabric->network->links[number].reverse]->classes[lane].blocks_freed;
}

void credits_on_frame(struct shard *shard, uint32_t number, const struct frame *frame)
{
	struct port_queue *queue = &shard->fabric->ports[number]->queues[__builtin_ctz(frame->classes)];
	assert(frame->kind == FRAME_CREDIT);
	assert(shard->fabric->ports[number]->has_credits);
	if (frame->value > queue->blocks_granted)
		queue->blocks_granted = frame->value;
	port_wake(shard, number);
}
