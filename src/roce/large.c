/* Two ends agree on large packets, and a hello proves that the way between them carries these:
 * large.h. A way that drops them costs four hellos, and nothing else.
 * Holds: nothing is cut large that the peer has not said to have received.
 * Not here: how messages are cut (core/qp.h, transport.c), when hellos leave (turn.c). */
#include "roce/large.h"
#include "base/invariant.h"
#include "core/memory.h"
#include "roce/batch.h"
#include "roce/roce.h"
#include "roce/selective.h"

enum { ASKED_MOST = 4 };

#define ASKED_AGAIN_AFTER (10 * VB_MS) /* four times as long each time */

static struct vb_large *large_of(const struct vb_qp *qp)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	return s ? &s->large : NULL;
}

/* Where no more goes into a packet than by the largest path MTU, that one. */
static uint32_t carried_by_link(const struct vb_qp *qp)
{
	const uint32_t large = vb_nic_get_large_mtu(qp->pd->nic);
	return large ? large : vb_nic_get_mtu(qp->pd->nic);
}

/* A connection that may go over to another link must find one there that carries as much. */
uint16_t vb_large_offer(const struct vb_qp *qp)
{
	const struct vb_roce_lane *lane = vb_roce_lane_of(qp);
	uint32_t most = carried_by_link(qp);
	if (!lane->config.goes_by_large)
		return 0;
	for (unsigned i = 0; lane->config.fails_over && i < lane->address_count; i++)
		if (lane->addresses[i].mtu >= qp->mtu && lane->addresses[i].mtu < most)
			most = lane->addresses[i].mtu;
	return most > qp->mtu ? (uint16_t)most : 0;
}

void vb_large_agree(struct vb_qp *qp, uint16_t offered)
{
	struct vb_large *large = large_of(qp);
	uint16_t ours = vb_large_offer(qp), lesser = offered < ours ? offered : ours;
	if (large->agreed == 0 && lesser > qp->mtu)
		large->agreed = lesser;
	assert(large->agreed <= VB_LARGE_MTU);
}

static void ask(struct vb_qp *qp)
{
	struct vb_large *large = large_of(qp);
	if (!large || !large->agreed || large->is_due || large->asked == ASKED_MOST)
		return;
	if (large->asked > 0 && vb_time_since(large->asked_at, qp->lane->now) < ASKED_AGAIN_AFTER
											<< 2 * (large->asked - 1))
		return;
	large->is_due = true;
	large->asked++;
	large->asked_at = qp->lane->now;
	assert(large->asked <= ASKED_MOST);
}

static bool is_as_long(const struct vb_large *large, const struct vb_packet *hello)
{
	return large->agreed && hello->payload_length == (uint32_t)large->agreed + VB_LARGE_HEADERS;
}

bool vb_large_ask_in_turn(struct vb_qp *qp, const struct vb_packet *hello)
{
	struct vb_large *large = large_of(qp);
	bool peer_lacks_one = is_as_long(large, hello) && !(hello->hello & VB_HELLO_HEARD_LARGE);
	if (peer_lacks_one || (large->is_heard && !large->is_proved))
		ask(qp);
	return large->is_due;
}

bool vb_large_may_go(struct vb_qp *qp)
{
	const struct vb_large *large = large_of(qp);
	if (large && large->is_proved)
		return qp->large_mtu <= carried_by_link(qp); /* its link may carry less by now */
	ask(qp);
	return false;
}

bool vb_large_may_come(struct vb_qp *qp)
{
	const struct vb_large *large = large_of(qp);
	if (large && large->is_heard)
		return vb_large_may_go(qp);
	ask(qp);
	return false;
}

void vb_large_readdress(struct vb_qp *qp)
{
	struct vb_large *large = large_of(qp);
	if (!large)
		return;
	large->is_proved = large->is_heard = false;
	large->asked = 0;
}

bool vb_large_is_taken(const struct vb_qp *qp)
{
	const struct vb_large *large = large_of(qp);
	return large && large->is_taken;
}

static uint16_t size_of(const struct vb_qp *qp, bool is_large)
{
	return is_large && vb_large_is_taken(qp) ? large_of(qp)->agreed : qp->mtu;
}

uint16_t vb_large_taken(const struct vb_qp *qp, uint32_t payload_length)
{
	return size_of(qp, payload_length > qp->mtu);
}

uint16_t vb_large_of_read(const struct vb_qp *qp, const struct vb_packet *request)
{
	return size_of(qp, request->opcode == VB_READ_LARGE);
}

uint32_t vb_large_span(const struct vb_qp *qp, const struct vb_packet *request)
{
	return vb_packets_of(request->dma_length, vb_large_of_read(qp, request));
}

void vb_large_pad(struct vb_batch *batch, struct vb_outgoing *out, uint16_t length)
{
	static const uint8_t zeros[VB_MAX_PAYLOAD];
	assert(length <= sizeof(zeros) && out->iov_count == 0);
	out->packet.payload_length = length;
	vb_batch_add_iov(batch, out, zeros, length);
	out->to_trains = false; /* where it is too long, it alone is lost */
}

bool vb_large_note_hello(struct vb_qp *qp, const struct vb_packet *hello)
{
	struct vb_large *large = large_of(qp);
	assert(large);
	if (is_as_long(large, hello))
		large->is_taken = large->is_heard = true;
	if (!large->agreed || large->asked == 0 || !(hello->hello & VB_HELLO_HEARD_LARGE))
		return false;
	if (large->is_heard)
		large->asked = 1; /* both ways carry them, so that later questions count anew */
	if (large->is_proved)
		return false;
	large->is_proved = true;
	qp->large_mtu = large->agreed;
	return true;
}
