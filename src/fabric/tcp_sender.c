/* Sends, and sends again. A segment is lost if three later ones were sacked; so is the first one missing after a
 * recovery has repaired what was before it (RFC 6582), those before a probe that arrived, and all after a timeout.
 * Holds: as far as is known, next - una - sacked - lost + resent segments are under way. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/tcp.h"

enum { SACKED = 1, LOST = 2, RESENT = 4, FLAGS = 7, ORDER_SHIFT = 3 };
enum { DUPLICATES = 3, MOST_TIMEOUTS = 15, FIRST_ROOM = 16 };
#define RTO_MOST (120 * VB_S) /* Linux's; RFC 6298, 2.5: 60 s at least */

static uint64_t *mark_of(const struct tcp_sender *sender, uint64_t segment)
{
	return &sender->marks[segment & (sender->room - 1)];
}

static void set_flags(uint64_t *mark, uint64_t flags)
{
	*mark = (*mark & ~(uint64_t)FLAGS) | flags;
}

static void transmit(struct tcp_sender *sender, uint64_t segment, uint64_t flags)
{
	assert(segment >= sender->una);
	assert(segment < sender->next);
	*mark_of(sender, segment) = sender->transmissions++ << ORDER_SHIFT | flags;
}

static void arrive(struct tcp_sender *sender, uint64_t mark)
{
	assert(!(mark & RESENT) || mark & LOST);
	sender->lost -= mark & LOST ? 1 : 0;
	sender->resent -= mark & RESENT ? 1 : 0;
	if (sender->newest < mark >> ORDER_SHIFT)
		sender->newest = mark >> ORDER_SHIFT;
}

static uint64_t under_way(const struct tcp_sender *sender)
{
	return sender->next - sender->una - sender->sacked - sender->lost + sender->resent;
}

/* The segments that the window had let out, for the algorithm. */
static uint64_t flight_of(const struct tcp_sender *sender)
{
	const uint64_t sent = sender->next - sender->una, window = sender->control.window >> TCP_POINT;
	return sent < window ? sent : window;
}

bool tcp_sender_check(const struct tcp_sender *sender)
{
	uint64_t sacked = 0, lost = 0, resent = 0;
	for (uint64_t segment = sender->una; segment < sender->next; segment++) {
		const uint64_t flags = *mark_of(sender, segment) & FLAGS;
		sacked += flags == SACKED;
		lost += flags == LOST || flags == (LOST | RESENT);
		resent += flags == (LOST | RESENT);
		if ((segment < sender->lost_end && flags == 0) || (flags == LOST && segment < sender->resend_at))
			return false;
	}
	return sacked == sender->sacked && lost == sender->lost && resent == sender->resent;
}

/* ---- Round trips ------------------------------------------------------------------------------------------------- */

static vb_time rto_of(const struct tcp_sender *sender)
{
	vb_time rto = sender->srtt + 4 * sender->rttvar;
	if (rto < sender->times.rto_min)
		rto = sender->times.rto_min;
	for (uint8_t i = 0; i < sender->timeouts && rto < RTO_MOST; i++)
		rto *= 2;
	return rto < RTO_MOST ? rto : RTO_MOST;
}

static void take_rtt(struct tcp_sender *sender, vb_time rtt)
{
	const vb_time error = rtt > sender->srtt ? rtt - sender->srtt : sender->srtt - rtt;
	sender->rttvar += (error - sender->rttvar) / 4;
	sender->srtt += (rtt - sender->srtt) / 8;
}

/* While nothing indicates a loss, a probe precedes a timeout: once. */
static bool may_probe(const struct tcp_sender *sender)
{
	return sender->times.probe && sender->state == TCP_OPEN && sender->sacked == 0 && sender->timeouts == 0 &&
	       !sender->has_probed;
}

static vb_time probe_time_of(const struct tcp_sender *sender)
{
	const vb_time time = 2 * sender->srtt > sender->times.probe ? 2 * sender->srtt : sender->times.probe;
	return time + (sender->next - sender->una == 1 ? sender->times.ack_delay : 0);
}

static void set_timer(struct tcp_sender *sender, vb_time now)
{
	vb_time after = rto_of(sender);
	sender->is_probe_timer = may_probe(sender);
	if (sender->is_probe_timer && probe_time_of(sender) < after)
		after = probe_time_of(sender);
	sender->timer = (struct vb_deadline){ now + after, sender->una < sender->next };
}

void tcp_sender_open(struct tcp_sender *sender, uint64_t count, struct tcp_times times)
{
	assert(sender->count == 0);
	assert(count > 0);
	sender->count = count;
	sender->times = times;
	sender->srtt = times.rtt; /* RFC 6298, 2.2 */
	sender->rttvar = times.rtt / 2;
}

void tcp_sender_close(struct tcp_sender *sender)
{
	free(sender->marks);
	sender->marks = NULL;
	sender->count = 0;
	sender->timer.is_set = false;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

bool tcp_sender_may_send(const struct tcp_sender *sender)
{
	if (sender->count == 0)
		return false;
	const bool has_lost = sender->lost > sender->resent;
	if ((has_lost && sender->must_resend) || sender->must_probe)
		return true;
	return (has_lost || sender->next < sender->count) && under_way(sender) < sender->control.window >> TCP_POINT;
}

static int make_room(struct tcp_sender *sender)
{
	if (sender->next - sender->una < sender->room)
		return 0;
	const uint32_t room = sender->room ? 2 * sender->room : FIRST_ROOM;
	uint64_t *marks = calloc(room, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	for (uint64_t segment = sender->una; segment < sender->next; segment++)
		marks[segment & (room - 1)] = *mark_of(sender, segment);
	free(sender->marks);
	sender->marks = marks;
	sender->room = room;
	return 0;
}

static uint64_t resend_one(struct tcp_sender *sender)
{
	assert(sender->lost > sender->resent);
	if (sender->resend_at < sender->una)
		sender->resend_at = sender->una;
	while ((*mark_of(sender, sender->resend_at) & FLAGS) != LOST)
		sender->resend_at++;
	const uint64_t segment = sender->resend_at++;
	if (sender->resent++ == 0)
		sender->oldest = sender->transmissions;
	transmit(sender, segment, LOST | RESENT);
	sender->must_resend = false;
	return segment;
}

static int send_new(struct tcp_sender *sender, vb_time now)
{
	assert(sender->next < sender->count);
	int rc = make_room(sender);
	if (rc)
		return rc;
	const uint64_t segment = sender->next++;
	transmit(sender, segment, 0);
	if (!sender->is_timed) {
		sender->is_timed = true;
		sender->timed = segment;
		sender->timed_at = now;
	}
	return 0;
}

int tcp_sender_send(struct tcp_sender *sender, vb_time now, uint64_t *segment, bool *is_resent)
{
	const bool is_lost = sender->lost > sender->resent, is_probe = sender->must_probe && !is_lost;
	const bool is_last_again = is_probe && sender->next == sender->count;
	*is_resent = is_lost || is_last_again;
	*segment = is_lost ? resend_one(sender) : is_last_again ? sender->next - 1 : sender->next;
	if (*is_resent)
		sender->is_timed = false;
	else if (send_new(sender, now))
		return -ENOMEM;
	if (is_last_again)
		transmit(sender, *segment, *mark_of(sender, *segment) & FLAGS);
	if (is_probe)
		sender->probe = *segment;
	sender->must_probe = false;
	if (!sender->timer.is_set || sender->is_probe_timer)
		set_timer(sender, now);
	if (under_way(sender) >= sender->control.window >> TCP_POINT)
		sender->limited_end = sender->next;
	return 0;
}

/* ---- Acks -------------------------------------------------------------------------------------------------------- */

static void take_blocks(struct tcp_sender *sender, const struct tcp_ack *ack)
{
	for (uint8_t i = 0; i < ack->block_count; i++) {
		const struct tcp_block *block = &ack->blocks[i];
		assert(block->end <= sender->next);
		const uint64_t first = block->first > sender->una ? block->first : sender->una;
		for (uint64_t segment = first; segment < block->end; segment++) {
			uint64_t *mark = mark_of(sender, segment);
			if (*mark & SACKED)
				continue;
			arrive(sender, *mark);
			sender->sacked++;
			set_flags(mark, SACKED);
		}
		if (sender->sacked_end < block->end)
			sender->sacked_end = block->end;
	}
}

/* Forgets the segments before it. */
static void acknowledge(struct tcp_sender *sender, uint64_t there)
{
	assert(there <= sender->next);
	for (; sender->una < there; sender->una++) {
		const uint64_t mark = *mark_of(sender, sender->una);
		arrive(sender, mark);
		sender->sacked -= mark & SACKED ? 1 : 0;
	}
}

/* All that are not sacked, from where the last call ended. */
static void lose_before(struct tcp_sender *sender, uint64_t end)
{
	assert(end <= sender->next);
	uint64_t segment = sender->lost_end > sender->una ? sender->lost_end : sender->una;
	for (; segment < end; segment++) {
		uint64_t *mark = mark_of(sender, segment);
		if (*mark & SACKED)
			continue;
		set_flags(mark, LOST);
		sender->lost++;
	}
	if (sender->lost_end < end)
		sender->lost_end = end;
}

/* RFC 6675, IsLost: those before the third last that was sacked. */
static void find_losses(struct tcp_sender *sender)
{
	const uint64_t begin = sender->lost_end > sender->una ? sender->lost_end : sender->una;
	uint64_t segment = sender->sacked_end, seen = 0;
	if (sender->sacked < DUPLICATES)
		return;
	while (segment > begin && seen < DUPLICATES)
		seen += *mark_of(sender, --segment) & SACKED;
	if (seen == DUPLICATES)
		lose_before(sender, segment);
}

/* A segment that was sent again is sent once more if three later transmissions have arrived. */
static void find_lost_again(struct tcp_sender *sender)
{
	if (sender->resent == 0 || sender->newest < sender->oldest + DUPLICATES)
		return;
	sender->oldest = UINT64_MAX - DUPLICATES;
	for (uint64_t segment = sender->una; segment < sender->lost_end; segment++) {
		uint64_t *mark = mark_of(sender, segment), order = *mark >> ORDER_SHIFT;
		if (!(*mark & RESENT))
			continue;
		if (sender->newest < order + DUPLICATES) {
			sender->oldest = order < sender->oldest ? order : sender->oldest;
			continue;
		}
		set_flags(mark, LOST);
		sender->resent--;
		if (segment < sender->resend_at)
			sender->resend_at = segment;
	}
}

/* Segments sent before a probe that has arrived were sent two round trips earlier. */
static void heed_probe(struct tcp_sender *sender)
{
	if (!sender->has_probed || (sender->una <= sender->probe && sender->sacked_end <= sender->probe))
		return;
	sender->has_probed = false;
	if (sender->una <= sender->probe)
		lose_before(sender, sender->probe);
}

static void begin_recovery(struct tcp_sender *sender, const struct tcp_control_kind *kind)
{
	assert(sender->state == TCP_OPEN);
	kind->on_loss(&sender->control, flight_of(sender));
	sender->state = TCP_RECOVERY;
	sender->recover = sender->next;
	sender->must_resend = true;
	sender->must_probe = sender->has_probed = false;
}

static void go_on(struct tcp_sender *sender, uint64_t there, vb_time now)
{
	if (sender->is_timed && there > sender->timed) {
		take_rtt(sender, now - sender->timed_at);
		sender->is_timed = false;
	}
	acknowledge(sender, there);
	sender->timeouts = 0;
	set_timer(sender, now);
	if (sender->state != TCP_OPEN && there >= sender->recover)
		sender->state = TCP_OPEN;
	else if (sender->state == TCP_RECOVERY)
		lose_before(sender, there + 1);
}

void tcp_sender_take_ack(
	struct tcp_sender *sender, const struct tcp_control_kind *kind, const struct tcp_ack *ack, vb_time now)
{
	if (sender->count == 0 || ack->there < sender->una)
		return;
	struct tcp_acked acked = { .segments = ack->there - sender->una,
		.is_echo = ack->is_echo,
		.may_grow = ack->there > sender->una && sender->una < sender->limited_end &&
			    sender->state != TCP_RECOVERY };
	if (acked.segments > 0)
		go_on(sender, ack->there, now);
	take_blocks(sender, ack);
	find_losses(sender);
	find_lost_again(sender);
	heed_probe(sender);
	acked.una = sender->una;
	assert(sender->resent <= sender->lost);
	acked.next = sender->next;
	acked.now = now;
	acked.rtt = sender->srtt;
	acked.may_cut = sender->state == TCP_OPEN && sender->lost == 0;
	kind->on_ack(&sender->control, &acked);
	if (sender->state == TCP_OPEN && sender->lost > 0)
		begin_recovery(sender, kind);
	if (sender->timer.is_set && sender->is_probe_timer && !may_probe(sender))
		set_timer(sender, now);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

enum tcp_time_out tcp_sender_time_out(struct tcp_sender *sender, const struct tcp_control_kind *kind, vb_time now)
{
	assert(sender->count > 0);
	if (sender->is_probe_timer) {
		sender->must_probe = sender->has_probed = true;
		sender->probe = UINT64_MAX; /* known when it leaves */
		set_timer(sender, now);
		return TCP_PROBES;
	}
	if (sender->timeouts == MOST_TIMEOUTS)
		return TCP_GAVE_UP;
	if (sender->timeouts++ == 0)
		kind->on_timeout(&sender->control, flight_of(sender));
	sender->control.window = TCP_ONE;
	for (uint64_t segment = sender->una; segment < sender->next; segment++)
		if (*mark_of(sender, segment) & RESENT)
			set_flags(mark_of(sender, segment), LOST);
	sender->resent = 0;
	lose_before(sender, sender->next);
	sender->resend_at = sender->una;
	assert(sender->lost + sender->sacked == sender->next - sender->una);
	sender->recover = sender->next;
	sender->state = TCP_LOSS;
	sender->is_timed = sender->must_probe = sender->has_probed = false;
	set_timer(sender, now);
	return TCP_TIMED_OUT;
}
