/* Trains: which packets of a batch leave as one message.
 * Holds: the packets of a train are of equal wire size, but for the last, which may be shorter; of one source and
 * destination, one slot there, one traffic class and hop limit, and of flows that have one source port. None but the
 * last says that it ends a train, and an ack that rides behind that one.
 * Not here: the bytes (frame_send.c). */
#include "port/framing.h"

#include <string.h>
#include "base/invariant.h"

static bool is_refused_from(const struct vb_frame_sender *sender, const struct vb_gid *address)
{
	for (unsigned i = 0; i < sender->refused_count && i < VB_REFUSED_MAX; i++)
		if (vb_gid_equal(&sender->refused[i], address))
			return true;
	return false;
}

void vb_train_note_refusal(struct vb_framing *framing, const struct vb_gid *address, int error)
{
	struct vb_frame_sender *sender = &framing->sender;

	assert(error > 0);
	if (is_refused_from(sender, address))
		return;
	sender->refused[sender->refused_count++ % VB_REFUSED_MAX] = *address;
	framing->port.trains_refused = error;
	assert(is_refused_from(sender, address));
}

static bool same_route(const struct vb_carrier *carrier, const struct vb_outgoing *a, const struct vb_outgoing *b)
{
	if (vb_frame_slot(a) != vb_frame_slot(b) || ((a->flow ^ b->flow) & carrier->flow_mask))
		return false;
	return a->av == b->av ||
	       (vb_gid_equal(&a->av->dgid, &b->av->dgid) && vb_gid_equal(&a->av->sgid, &b->av->sgid) &&
		       a->av->traffic_class == b->av->traffic_class && vb_frame_hops(a->av) == vb_frame_hops(b->av));
}

/* A datagram or train in the making. */
struct cut {
	unsigned count, iov;
	uint32_t size, bytes; /* of all packets but the last; of all together */
	bool is_ended;        /* by a shorter one */
	bool is_marked;       /* by one that says so; an ack may still ride behind it */
};

static bool joins(const struct vb_framing *framing, struct cut *cut, const struct vb_outgoing *head,
	const struct vb_outgoing *next)
{
	uint32_t size = vb_packet_wire_length(&next->packet);

	if (cut->is_ended || cut->count == VB_CARRIER_SEGMENTS || size > cut->size ||
		cut->bytes + size > framing->port.largest_segment || cut->iov + next->iov_count + 1u > VB_CARRIER_IOV ||
		!next->to_trains || !same_route(framing->carrier, head, next))
		return false;
	cut->count++;
	cut->iov += next->iov_count + 1u;
	cut->bytes += size;
	cut->is_ended = size < cut->size;
	cut->is_marked = next->ends_train;
	return true;
}

/* The packets from first on that make one datagram or train. */
static struct cut cut_from(const struct vb_framing *framing, const struct vb_batch *batch, unsigned first)
{
	const struct vb_frame_sender *sender = &framing->sender;
	const struct vb_outgoing *head = &batch->out[first];
	uint32_t size = vb_packet_wire_length(&head->packet);
	struct cut cut = {
		.count = 1, .iov = head->iov_count + 1u, .size = size, .bytes = size, .is_marked = head->ends_train
	};

	if (!head->to_trains || !framing->port.largest_segment ||
		(sender->refused_count && is_refused_from(sender, &head->av->sgid))) {
		cut.is_ended = true;
		return cut;
	}
	while (!cut.is_marked && first + cut.count < batch->count &&
		joins(framing, &cut, head, &batch->out[first + cut.count]))
		;
	return cut;
}

static bool are_requests(const struct vb_batch *batch, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (vb_packet_row(&batch->out[first + i].packet)->is_response)
			return false;
	return true;
}

static void move_behind(struct vb_batch *batch, unsigned first, unsigned count)
{
	struct vb_outgoing out = batch->out[first];
	struct vb_tx_completion completion = batch->completions[first];

	assert(first + count < batch->count);
	memmove(&batch->out[first], &batch->out[first + 1], count * sizeof(out));
	memmove(&batch->completions[first], &batch->completions[first + 1], count * sizeof(completion));
	batch->out[first + count] = out;
	batch->completions[first + count] = completion;
}

/* An ack is shorter than the requests that leave behind it, and in front of them would travel alone. So it is made the
 * last of their train, and the peer, which is one of ours, takes it first (roce/receive.c). */
unsigned vb_train_cut(const struct vb_framing *framing, struct vb_batch *batch, unsigned first)
{
	const struct vb_outgoing *ack = &batch->out[first];

	assert(first < batch->count);
	if (ack->packet.opcode == (VB_RC | VB_ACKNOWLEDGE) && first + 1 < batch->count) {
		struct cut behind = cut_from(framing, batch, first + 1);
		unsigned count = behind.count;
		if (are_requests(batch, first + 1, count) && joins(framing, &behind, &batch->out[first + 1], ack)) {
			move_behind(batch, first, count);
			return behind.count;
		}
	}
	return cut_from(framing, batch, first).count;
}
