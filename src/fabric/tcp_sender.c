/* What is sent, and sent again. A segment that three later ones were sacked before is lost; so is the first that is
 * missing when a recovery has repaired what was before it (RFC 6582), and all that are after a timeout. Holds: what is
 * under way, as far as is known, is next - una - sacked - lost + resent. */
#include <errno.h>
#include <stdlib.h>
#include "fabric/tcp.h"

enum { SACKED = 1, LOST = 2, RESENT = 4 };
enum { DUPLICATES = 3, MOST_TIMEOUTS = 15, FIRST_ROOM = 16 };
#define RTO_MOST (120 * VB_S) /* Linux's; RFC 6298, 2.5: 60 s at least */

static uint8_t *mark_of(const struct tcp_sender *sender, uint64_t segment)
{
	return &sender->marks[segment & (sender->room - 1)];
}

static uint64_t under_way(const struct tcp_sender *sender)
{
	return sender->next - sender->una - sender->sacked - sender->lost + sender->resent;
}

/* What the window had let out, for the algorithm. */
static uint64_t flight_of(const struct tcp_sender *sender)
{
	const uint64_t sent = sender->next - sender->una, window = sender->control.window >> TCP_POINT;
	return sent < window ? sent : window;
}

/* ---- Round trips --------------------------------------------------------------------------------------------- */

static vb_time rto_of(const struct tcp_sender *sender)
{
	vb_time rto = sender->srtt + 4 * sender->rttvar;
	if (rto < sender->rto_min)
		rto = sender->rto_min;
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

static void set_timer(struct tcp_sender *sender, vb_time now)
{
	sender->timer = (struct vb_deadline){ now + rto_of(sender), sender->una < sender->next };
}

void tcp_sender_open(struct tcp_sender *sender, uint64_t count, vb_time rtt, vb_time rto_min)
{
	sender->count = count;
	sender->rto_min = rto_min;
	sender->srtt = rtt; /* RFC 6298, 2.2 */
	sender->rttvar = rtt / 2;
}

void tcp_sender_close(struct tcp_sender *sender)
{
	free(sender->marks);
	sender->marks = NULL;
	sender->count = 0;
	sender->timer.is_set = false;
}

/* ---- Sending ------------------------------------------------------------------------------------------------- */

bool tcp_sender_may_send(const struct tcp_sender *sender)
{
	if (sender->count == 0)
		return false;
	const bool has_lost = sender->lost > sender->resent;
	if (has_lost && sender->must_resend)
		return true;
	return (has_lost || sender->next < sender->count) && under_way(sender) < sender->control.window >> TCP_POINT;
}

static int make_room(struct tcp_sender *sender)
{
	if (sender->next - sender->una < sender->room)
		return 0;
	const uint32_t room = sender->room ? 2 * sender->room : FIRST_ROOM;
	uint8_t *marks = calloc(room, 1);
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
	if (sender->resend_at < sender->una)
		sender->resend_at = sender->una;
	while (*mark_of(sender, sender->resend_at) != LOST)
		sender->resend_at++;
	const uint64_t segment = sender->resend_at++;
	*mark_of(sender, segment) |= RESENT;
	sender->resent++;
	sender->must_resend = sender->is_timed = false;
	return segment;
}

int tcp_sender_send(struct tcp_sender *sender, vb_time now, uint64_t *segment, bool *is_resent)
{
	*is_resent = sender->lost > sender->resent;
	if (*is_resent) {
		*segment = resend_one(sender);
	} else {
		int rc = make_room(sender);
		if (rc)
			return rc;
		*segment = sender->next++;
		*mark_of(sender, *segment) = 0;
		if (!sender->is_timed) {
			sender->is_timed = true;
			sender->timed = *segment;
			sender->timed_at = now;
		}
	}
	if (!sender->timer.is_set)
		set_timer(sender, now);
	if (under_way(sender) >= sender->control.window >> TCP_POINT)
		sender->limited_end = sender->next;
	return 0;
}

/* ---- What is told of ----------------------------------------------------------------------------------------- */

static void take_blocks(struct tcp_sender *sender, const struct tcp_ack *ack)
{
	for (uint8_t i = 0; i < ack->block_count; i++) {
		const struct tcp_block *block = &ack->blocks[i];
		const uint64_t first = block->first > sender->una ? block->first : sender->una;
		for (uint64_t segment = first; segment < block->end; segment++) {
			uint8_t *mark = mark_of(sender, segment);
			if (*mark & SACKED)
				continue;
			sender->lost -= *mark & LOST ? 1 : 0;
			sender->resent -= *mark & RESENT ? 1 : 0;
			sender->sacked++;
			*mark = SACKED;
		}
		if (sender->sacked_end < block->end)
			sender->sacked_end = block->end;
	}
}

/* Forgets what is before it. */
static void acknowledge(struct tcp_sender *sender, uint64_t there)
{
	for (; sender->una < there; sender->una++) {
		const uint8_t mark = *mark_of(sender, sender->una);
		sender->sacked -= mark & SACKED ? 1 : 0;
		sender->lost -= mark & LOST ? 1 : 0;
		sender->resent -= mark & RESENT ? 1 : 0;
	}
}

/* All that are not sacked, from where that was done last. */
static void lose_before(struct tcp_sender *sender, uint64_t end)
{
	uint64_t segment = sender->lost_end > sender->una ? sender->lost_end : sender->una;
	for (; segment < end; segment++) {
		uint8_t *mark = mark_of(sender, segment);
		if (*mark & SACKED)
			continue;
		*mark = LOST;
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

static void begin_recovery(struct tcp_sender *sender, const struct tcp_control_kind *kind)
{
	kind->on_loss(&sender->control, flight_of(sender));
	sender->state = TCP_RECOVERY;
	sender->recover = sender->next;
	sender->must_resend = true;
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
	acked.una = sender->una;
	acked.next = sender->next;
	acked.now = now;
	acked.rtt = sender->srtt;
	acked.may_cut = sender->state == TCP_OPEN && sender->lost == 0;
	kind->on_ack(&sender->control, &acked);
	if (sender->state == TCP_OPEN && sender->lost > 0)
		begin_recovery(sender, kind);
}

/* ---- Time ---------------------------------------------------------------------------------------------------- */

bool tcp_sender_time_out(struct tcp_sender *sender, const struct tcp_control_kind *kind, vb_time now)
{
	if (sender->timeouts == MOST_TIMEOUTS)
		return false;
	if (sender->timeouts++ == 0)
		kind->on_timeout(&sender->control, flight_of(sender));
	sender->control.window = TCP_ONE;
	for (uint64_t segment = sender->una; segment < sender->next; segment++)
		if (*mark_of(sender, segment) & RESENT)
			*mark_of(sender, segment) = LOST;
	sender->resent = 0;
	lose_before(sender, sender->next);
	sender->resend_at = sender->una;
	sender->recover = sender->next;
	sender->state = TCP_LOSS;
	sender->is_timed = false;
	set_timer(sender, now);
	return true;
}
