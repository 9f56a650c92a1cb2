/* A QP's congestion control at work: congestion.h.
 * Holds: the timer is set while the QP waits for its time, or its algorithm wants to be asked, and not later than
 * either.
 * Not here: what the algorithms do (cc/), what is done with their windows (flight.c), which packets are of data
 * (scheduler.c). */
#include "roce/failover.h"
#include "roce/peers.h"
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/selective.h"

#define ARREARS_MAX (1 * VB_MS) /* of a QP with a rate, made up for: more would be a burst */

static void arm(struct vb_qp *qp)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	struct vb_deadline next = c->cc.timer;
	if (c->is_waiting)
		next = vb_deadline_earlier(next, (struct vb_deadline){ c->next_send_at, true });
	if (next.is_set)
		vb_timer_set(&vb_roce_lane_of(qp)->congestion_timers, &c->timer, next.at);
	else
		vb_timer_remove(&vb_roce_lane_of(qp)->congestion_timers, &c->timer);
}

/* One that moves later costs nothing: it comes up early and is put back. */
static void heed_timer(struct vb_qp *qp)
{
	const struct vb_deadline *wanted = &vb_roce(qp)->congestion.cc.timer,
				 *armed = &vb_roce(qp)->congestion.timer.deadline;
	if (wanted->is_set && (!armed->is_set || vb_time_before(wanted->at, armed->at)))
		arm(qp);
}

void vb_congestion_init(struct vb_qp *qp)
{
	vb_timer_init(&vb_roce(qp)->congestion.timer);
}

/* One packet. */
static uint32_t least_window(const struct vb_qp *qp)
{
	return vb_largest_payload(qp) + vb_roce(qp)->overhead;
}

/* Between that and what the sequence numbers bear, whatever is asked for. */
static uint32_t largest_window(const struct vb_qp *qp, uint32_t wanted)
{
	if (wanted == 0)
		return VB_MAX_WINDOW;
	if (wanted > VB_CC_UNLIMITED)
		return VB_CC_UNLIMITED;
	return wanted < least_window(qp) ? least_window(qp) : wanted;
}

/* Where nobody has chosen one: with go-back-N a lost packet costs all behind it, whatever the cause; where it alone is
 * sent again, it counts as congestion only if there is a queue. */
static struct vb_cc_config default_of(const struct vb_qp *qp)
{
	bool has_agreed = vb_roce(qp)->selective && vb_roce_lane_of(qp)->config.recovery == VB_RECOVERY_AGREED;
	struct vb_cc_config of_queue = { .algorithm = &vb_cc_queue, .parameters = vb_cc_queue_of_hosts };
	return has_agreed ? of_queue : (struct vb_cc_config){ .algorithm = &vb_cc_window };
}

/* The QP's own, or the lane's. */
static const struct vb_cc_config *config_of(const struct vb_qp *qp)
{
	const struct vb_cc_config *own = vb_roce(qp)->congestion.config;
	return own ? own : &vb_roce_lane_of(qp)->config.cc;
}

static bool was_chosen(const struct vb_qp *qp)
{
	return vb_roce(qp)->congestion.config || vb_roce_lane_of(qp)->config.cc.algorithm;
}

static int start(struct vb_qp *qp, vb_time now)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	struct vb_cc_config config = *config_of(qp);
	if (!was_chosen(qp)) {
		struct vb_cc_config of = default_of(qp);
		config.algorithm = of.algorithm;
		config.parameters = of.parameters;
	}
	config.max_window = largest_window(qp, config.max_window);
	int error = vb_cc_start(&c->cc, &config, least_window(qp), now);
	if (!error)
		c->wants_packets = config.algorithm->on_send != NULL;
	return error;
}

int vb_congestion_start(struct vb_qp *qp, vb_time now)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	int error = start(qp, now);
	if (error)
		return error;
	c->next_send_at = now;
	c->rest = 0;
	c->tally = (struct vb_tally){ 0 };
	vb_congestion_stop(qp);
	assert(c->cc.algorithm && c->cc.window_bytes > 0);
	return 0;
}

void vb_congestion_note_agreement(struct vb_qp *qp, vb_time now)
{
	const struct vb_congestion *c = &vb_roce(qp)->congestion;
	if (was_chosen(qp) || !c->cc.algorithm || c->cc.algorithm == default_of(qp).algorithm)
		return;
	start(qp, now); /* without memory it goes on as it did */
	assert(c->cc.algorithm && c->cc.rate == 0);
}

void vb_congestion_note_large(struct vb_qp *qp)
{
	struct vb_cc *cc = &vb_roce(qp)->congestion.cc;
	const uint32_t least = least_window(qp);
	if (cc->min_window < least)
		cc->min_window = least;
	if (cc->window_bytes < least)
		cc->window_bytes = least;
	assert(cc->window_bytes >= qp->large_mtu);
}

/* Its largest window goes by the way, unless somebody has chosen another. */
static bool goes_by_way(const struct vb_qp *qp)
{
	const struct vb_cc_algorithm *algorithm = vb_roce(qp)->congestion.cc.algorithm;
	return vb_roce(qp)->selective && algorithm == &vb_cc_queue && config_of(qp)->max_window == 0;
}

static void set_largest_window(struct vb_qp *qp)
{
	struct vb_cc *cc = &vb_roce(qp)->congestion.cc;
	const struct vb_selective *s = vb_roce(qp)->selective;
	uint64_t of_way = (uint64_t)VB_MAX_WINDOW * vb_flight_ways(s->least_rtt);
	uint64_t of_psns = (uint64_t)qp->mtu * VB_HOLD_PSNS, most = s->peer_hold;
	most = of_psns < most ? of_psns : most;
	most = of_way < most ? of_way : most;
	cc->max_window = most > VB_MAX_WINDOW ? (uint32_t)most : VB_MAX_WINDOW;
	if (cc->window_bytes > cc->max_window)
		cc->window_bytes = cc->max_window;
	vb_peer_note_way(qp->lane, qp->peer, s->least_rtt);
	assert(cc->max_window >= VB_MAX_WINDOW);
	assert(cc->window_bytes > 0 && cc->window_bytes <= cc->max_window);
}

void vb_congestion_note_shorter_way(struct vb_qp *qp)
{
	if (vb_roce(qp)->congestion.cc.max_window > VB_MAX_WINDOW && goes_by_way(qp))
		set_largest_window(qp);
}

/* One that wants more has seen the way often: a first round trip alone may be that of a process that waited. */
static void note_full(struct vb_qp *qp)
{
	const struct vb_cc *cc = &vb_roce(qp)->congestion.cc;
	if (cc->window_bytes == cc->max_window && goes_by_way(qp) &&
		vb_roce(qp)->selective->least_rtt >= 2 * VB_LONG_WAY)
		set_largest_window(qp);
}

void vb_congestion_stop(struct vb_qp *qp)
{
	vb_roce(qp)->congestion.is_waiting = vb_roce(qp)->congestion.is_behind = false;
	arm(qp);
}

static void note_end(struct vb_qp *qp)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	if (!c->cc.algorithm)
		return;
	c->tally.algorithm = c->cc.algorithm;
	c->tally.rate = c->cc.rate;
	c->tally.window_bytes = c->cc.window_bytes;
	c->tally.is_local = qp->local_peer != NULL;
}

void vb_congestion_end(struct vb_qp *qp)
{
	note_end(qp);
	vb_cc_stop(&vb_roce(qp)->congestion.cc);
	vb_roce(qp)->congestion.wants_packets = false;
	vb_congestion_stop(qp);
	assert(!vb_roce(qp)->congestion.is_waiting);
}

/* A wait at the old rate becomes one for as many bytes at the new one. A QP without a rate waits for nothing, and its
 * next_send_at may be months old, of which is_due would be mistaken. */
static void heed_rate(struct vb_qp *qp, uint64_t before, vb_time now)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	uint64_t rate = c->cc.rate;
	if (rate == before)
		return;
	c->rest = 0;
	if (before == 0)
		c->next_send_at = now;
	if (vb_time_is_due(c->next_send_at, now))
		return;
	uint64_t left = (uint64_t)vb_time_diff(c->next_send_at, now) * before; /* of one packet, so it fits */
	c->next_send_at = rate ? vb_time_add(now, (vb_time)(left / rate)) : now;
	if (c->is_waiting)
		arm(qp);
}

void vb_congestion_tell(struct vb_qp *qp, const struct vb_cc_signal *signal)
{
	struct vb_cc *cc = &vb_roce(qp)->congestion.cc;
	if (!cc->algorithm || !cc->algorithm->on_signal)
		return;
	uint64_t before = cc->rate;
	cc->algorithm->on_signal(cc, signal);
	note_full(qp);
	heed_rate(qp, before, signal->now);
	heed_timer(qp);
}

bool vb_qp_account(struct vb_qp *qp, struct vb_qp_account *account)
{
	const struct vb_tally *tally = &vb_roce(qp)->congestion.tally;
	bool has_peer = qp->type != VB_QP_UD && qp->type != VB_QP_RAW;
	note_end(qp);
	if (!has_peer || !tally->algorithm)
		return false;
	*account = (struct vb_qp_account){
		.qpn = qp->qpn,
		.type = qp->type,
		.peer = vb_failover_own_av(qp).dgid,
		.dest_qpn = qp->attr.dest_qpn,
		.is_local = tally->is_local,
		.algorithm = tally->algorithm->name,
		.rate = tally->rate,
		.window_bytes = qp->is_reliable ? tally->window_bytes : 0,
		.acked = tally->acked,
		.acked_in = tally->acked ? vb_time_since(tally->since, tally->acked_at) : 0,
		.cnps_sent = tally->cnps_sent,
		.cnps_received = tally->cnps_received,
		.sent_again = tally->sent_again,
		.probes = tally->probes,
		.least_rtt = tally->least_rtt,
		.rtt = vb_roce(qp)->recovery.srtt,
		.recovers = vb_hello_outcome(qp),
		.large_mtu = qp->large_mtu,
		.paths = vb_multipath_account(qp),
		.moves = vb_failover_moves(qp),
	};
	return true;
}

static void pace(struct vb_congestion *c, const struct vb_lane_config *config, uint32_t bytes, vb_time now)
{
	vb_time latest = c->is_behind && !config->rate_is_strict ? vb_time_add(now, -ARREARS_MAX) : now;
	assert(c->cc.rate > 0);
	if (vb_time_is_due(c->next_send_at, latest)) {
		c->next_send_at = latest;
		c->rest = 0;
	}
	uint64_t span = bytes * (uint64_t)VB_S + c->rest;
	vb_time wait = (vb_time)(span / c->cc.rate);
	c->rest = span % c->cc.rate;
	if (config->rate_in_whole_ns) {
		wait -= wait % VB_NS;
		c->rest = 0;
	}
	c->next_send_at = vb_time_add(c->next_send_at, wait);
	c->is_behind = true;
	assert(c->is_behind);
}

void vb_congestion_count_packet(struct vb_qp *qp, uint32_t bytes, vb_time now)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	if (c->wants_packets) {
		uint64_t before = c->cc.rate;
		c->cc.algorithm->on_send(&c->cc, bytes, now);
		heed_rate(qp, before, now);
		heed_timer(qp);
	}
	if (c->cc.rate)
		pace(c, &vb_roce_lane_of(qp)->config, bytes, now);
}

void vb_congestion_wait(struct vb_qp *qp)
{
	vb_roce(qp)->congestion.is_waiting = true;
	arm(qp);
	assert(vb_roce(qp)->congestion.timer.deadline.is_set);
}

static void ask(struct vb_qp *qp, vb_time now)
{
	struct vb_cc *cc = &vb_roce(qp)->congestion.cc;
	uint64_t rate = cc->rate;
	uint32_t window = cc->window_bytes;
	assert(vb_roce(qp)->congestion.cc.algorithm->on_timer);
	cc->timer.is_set = false;
	cc->algorithm->on_timer(cc, now);
	assert(!vb_deadline_due(cc->timer, now));
	heed_rate(qp, rate, now);
	if (cc->window_bytes > window) /* no acknowledgement comes to wake who waits for that */
		qp->transport->schedule(qp);
}

static void on_time(struct vb_qp *qp, vb_time now)
{
	struct vb_congestion *c = &vb_roce(qp)->congestion;
	if (vb_deadline_due(c->cc.timer, now))
		ask(qp, now);
	if (c->is_waiting && vb_time_is_due(c->next_send_at, now)) {
		c->is_waiting = false;
		qp->transport->schedule(qp);
	}
	arm(qp);
}

void vb_congestion_advance(struct vb_lane *lane, vb_time now)
{
	struct vb_timer *timer;
	while ((timer = vb_timers_expire(&vb_roce_lane(lane)->congestion_timers, now)))
		on_time(&vb_container_of(timer, struct vb_roce_qp, congestion.timer)->qp, now);
}

void vb_congestion_check(const struct vb_qp *qp)
{
	const struct vb_congestion *c = &vb_roce(qp)->congestion;
	const struct vb_deadline *armed = &c->timer.deadline;
	assert(!c->is_waiting || (armed->is_set && !vb_time_before(c->next_send_at, armed->at)));
	assert(!c->cc.timer.is_set || (armed->is_set && !vb_time_before(c->cc.timer.at, armed->at)));
}
