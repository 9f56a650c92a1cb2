/* Acknowledges segments: in order by count, out of order or filling a gap at once.
 * Holds: each segment beyond a gap is marked in `seen`, and the first missing one never is. */
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/tcp.h"

static bool is_seen(const struct tcp_receiver *receiver, uint64_t segment)
{
	assert(receiver->seen);
	return receiver->seen[segment / 64] >> segment % 64 & 1;
}

/* The range of segments around this one, which has arrived. */
static struct tcp_block block_around(const struct tcp_receiver *receiver, uint64_t segment)
{
	struct tcp_block block = { segment, segment + 1 };
	while (is_seen(receiver, block.first - 1))
		block.first -= block.first % 64 == 0 && receiver->seen[block.first / 64 - 1] == UINT64_MAX ? 64 : 1;
	while (block.end < receiver->end && is_seen(receiver, block.end))
		block.end += block.end % 64 == 0 && receiver->seen[block.end / 64] == UINT64_MAX ? 64 : 1;
	return block;
}

/* The newest block, then those that were reported before (RFC 2018, 4). */
static void add_blocks(struct tcp_receiver *receiver, struct tcp_ack *ack)
{
	uint8_t kept = 0;
	for (uint8_t i = 0; i < receiver->recent_count; i++) {
		const uint64_t segment = receiver->recent[i];
		bool is_told = segment < receiver->there;
		for (uint8_t k = 0; k < ack->block_count; k++)
			is_told |= segment >= ack->blocks[k].first && segment < ack->blocks[k].end;
		if (is_told)
			continue;
		receiver->recent[kept++] = segment;
		ack->blocks[ack->block_count++] = block_around(receiver, segment);
	}
	receiver->recent_count = kept;
}

struct tcp_ack tcp_receiver_ack(struct tcp_receiver *receiver)
{
	struct tcp_ack ack = { .there = receiver->there, .is_echo = receiver->is_marked };
	receiver->owed = 0;
	add_blocks(receiver, &ack);
	return ack;
}

static void note_recent(struct tcp_receiver *receiver, uint64_t segment)
{
	const uint8_t kept = receiver->recent_count < TCP_BLOCKS ? receiver->recent_count : TCP_BLOCKS - 1;
	for (uint8_t i = kept; i > 0; i--)
		receiver->recent[i] = receiver->recent[i - 1];
	receiver->recent[0] = segment;
	receiver->recent_count = (uint8_t)(kept + 1);
}

static void note(struct tcp_receiver *receiver, uint64_t segment)
{
	if (receiver->seen)
		receiver->seen[segment / 64] |= (uint64_t)1 << segment % 64;
	if (receiver->end <= segment)
		receiver->end = segment + 1;
	assert(receiver->there < receiver->end);
	if (segment != receiver->there) {
		note_recent(receiver, segment);
		return;
	}
	receiver->there++;
	while (receiver->seen && receiver->there < receiver->end && is_seen(receiver, receiver->there))
		receiver->there++;
}

struct tcp_taken tcp_receiver_take(
	struct tcp_receiver *receiver, uint64_t segment, bool is_marked, uint32_t every, bool echoes)
{
	struct tcp_taken taken = { 0 };
	assert(segment < receiver->count);
	if (echoes && is_marked != receiver->is_marked) {
		if (receiver->owed > 0) /* which had another mark: RFC 8257, figure 1 */
			taken.acks[taken.ack_count++] = tcp_receiver_ack(receiver);
		receiver->is_marked = is_marked;
	}
	const bool is_in_turn = segment == receiver->there, has_gap = receiver->end > receiver->there;
	if (segment < receiver->there || (receiver->seen && is_seen(receiver, segment))) {
		taken.acks[taken.ack_count++] = tcp_receiver_ack(receiver);
		return taken;
	}
	if (!is_in_turn && !receiver->seen) {
		receiver->seen = calloc(receiver->count / 64 + 1, sizeof(*receiver->seen));
		taken.is_out_of_memory = !receiver->seen;
		if (!receiver->seen)
			return taken;
	}
	taken.is_new = true;
	note(receiver, segment);
	receiver->owed++;
	if (!is_in_turn || has_gap || receiver->owed >= every || receiver->there == receiver->count)
		taken.acks[taken.ack_count++] = tcp_receiver_ack(receiver);
	return taken;
}
