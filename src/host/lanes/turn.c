/* One turn of a lane: receive, serve what is due, transmit, and tell. It is bounded, and so is one hold of the mutex.
 *
 * A turn looks at a descriptor only where something may be: a look is a system call, which costs more than all that
 * there is between local peers.
 *
 * Not here: the mutex (host_lane.c), and which thread runs the next turn (ownership.c). Threads: under the mutex. */
#include "host/lanes/host_lane_state.h"

#include "base/invariant.h"

#define FAREWELLS       2  /* acknowledgements of a QP that goes, beside the one before */
#define TRANSMIT_ROUNDS 4  /* batches of VB_BATCH_PACKETS in one hold of the mutex */
#define PACKETS_OF_NOTE 16 /* so many take long enough to look at the clock again */
#define CLOCK_RARELY    4  /* turns among local peers, between two looks at the clock */

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

static unsigned receive(struct vb_host_lane *d, vb_time now)
{
	unsigned packets = 0;

	while (vb_port_next_train(d->port, d->train)) {
		if (!d->train->count)
			continue;
		vb_lane_note_overflow(d->lane, d->train->overflow);
		vb_lane_receive(d->lane, &d->train->path, d->train->packets, d->train->count, now);
		packets += d->train->count;
		if (d->paths)
			vb_paths_received(d->paths, d->train);
	}
	return packets;
}

/* The port says what it is done with, now or since the last time. */
static void finish(struct vb_host_lane *d, vb_time now)
{
	unsigned count;
	const struct vb_tx_completion *completions = vb_port_finished(d->port, &count);

	if (count)
		vb_lane_transmit_done(d->lane, completions, count, now);
}

void vb_turn_receive(struct vb_host_lane *d)
{
	vb_time now = vb_host_now();

	vb_port_receive(d->port, now);
	receive(d, now);
	finish(d, now);
}

/* The peer's acknowledgement of a request comes alone, and its answer right behind it: one poll takes both. */
static vb_time await_answer(struct vb_host_lane_state *s, vb_time now)
{
	struct vb_host_lane *d = &s->host_lane;

	if (!vb_lane_awaits_answer(d->lane, now))
		return now;
	while (vb_lane_awaits_answer(d->lane, now) && !vb_lane_has_doorbells(d->lane)) {
		now = vb_host_now();
		if (vb_port_receive(d->port, now) > 0)
			receive(d, now);
		if (vb_lane_wants_transmit(d->lane, now)) /* the peer may need the acknowledgement to go on */
			vb_turn_transmit(d, now);
	}
	s->awaited_in_vain = vb_lane_misses_answer(d->lane, now) || vb_lane_awaits_answer(d->lane, now);
	return now;
}

static bool receive_packets(struct vb_host_lane_state *s, vb_time *now)
{
	struct vb_host_lane *d = &s->host_lane;

	s->port_seen_at = *now;
	s->port_has_more = vb_port_receive(d->port, *now) > 0;
	if (!s->port_has_more)
		return false;
	s->port_quiet = 0;
	if (receive(d, *now) >= PACKETS_OF_NOTE)
		s->worked_until = *now = vb_host_now();
	if (vb_ownership_owner(&s->ownership) == VB_OWNER_POLLERS)
		*now = await_answer(s, *now);
	return true;
}

static bool look_at_port(struct vb_host_lane_state *s, vb_time *now)
{
	bool is_busy = receive_packets(s, now);

	if (s->host_lane.frames)
		is_busy |= vb_frames_receive(&s->host_lane, *now);
	return is_busy;
}

/* ---- Transmitting ------------------------------------------------------------------------------------------------ */

static void say_trains_refused(struct vb_host_lane_state *s)
{
	int error = s->host_lane.port->trains_refused;

	if (!error || s->said_trains_refused)
		return;
	s->said_trains_refused = true;
	vb_log(VB_LOG_INFO, "the kernel refuses UDP_SEGMENT on an interface (errno %d): single datagrams there", error);
}

static unsigned send_batches(struct vb_host_lane *d, vb_time now)
{
	unsigned rounds = 0;

	for (; rounds < TRANSMIT_ROUNDS; rounds++) {
		if (!vb_lane_transmit(d->lane, d->batch, d->port->room, now))
			break;
		vb_port_send(d->port, d->batch, now);
		if (d->paths)
			vb_paths_sent(d->paths, d->batch);
		finish(d, now);
	}
	return rounds;
}

bool vb_turn_transmit(struct vb_host_lane *d, vb_time now)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	vb_host_peers_take_wanted(d);
	bool has_local_peers = vb_host_peers_transmit(d, now);
	d->has_more = vb_host_peers_have_more(d);
	if (!d->frames && !vb_lane_wants_transmit(d->lane, now))
		return has_local_peers;
	now = vb_host_now();
	vb_held_posts_release(&s->held_posts, !vb_is_progress_thread, now);
	unsigned rounds = send_batches(d, now);
	vb_host_peers_take_wanted(d);
	d->has_more |= rounds == TRANSMIT_ROUNDS;
	if (rounds) {
		s->worked_until = vb_host_now();
		say_trains_refused(s);
	}
	bool has_frames = d->frames && vb_frames_transmit(d, now);
	return rounds > 0 || has_local_peers || has_frames;
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

void vb_turn_dispatch(struct vb_host_lane *d)
{
	struct vb_event event;

	while (vb_lane_next_event(d->lane, &event)) {
		struct vb_device *device = vb_process_device_of(d->process, event.nic);
		if (!device)
			continue;
		if (event.kind == VB_EVENT_QP_DIED)
			vb_host_lane_explain_death(d, &device->info, event.qp);
		else if (event.kind == VB_EVENT_QP_SILENT)
			vb_host_lane_ask_after(d, event.qp);
		else if (event.kind == VB_EVENT_QP_MOVED)
			vb_host_lane_explain_move(d, event.qp);
		else
			device->sink.on_event(&event);
	}
}

/* ---- Among local peers ------------------------------------------------------------------------------------------- */

/* True for pollers that have local peers, while nothing has come by the port for a while. */
static bool is_among_local_peers(struct vb_host_lane_state *s)
{
	if (!vb_ownership_is_left_to_pollers(&s->ownership) || !vb_host_peers_are_awake(&s->host_lane))
		return false;
	vb_time every = vb_ownership_owner(&s->ownership) == VB_OWNER_POLLERS ? VB_PORT_EVERY : VB_PORT_SELDOM;
	s->port_quiet++;
	return s->port_quiet >= VB_PORT_QUIET && vb_time_since(s->port_seen_at, s->turned_at) < every;
}

static bool exchange(struct vb_host_lane *d, vb_time now)
{
	bool is_busy = vb_host_peers_receive(d, now);
	is_busy |= vb_host_peers_transmit(d, now);
	return is_busy;
}

bool vb_host_lane_turn_to_local_peers(struct vb_host_lane *d)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	s->turned_at = vb_host_now();
	return exchange(d, s->turned_at);
}

/* It does nothing that may be in vain, and looks at the clock now and then only, unless somebody reads when things
 * completed: a look at the clock takes as long as to execute a request. */
static bool turn_among_local_peers(struct vb_host_lane_state *s)
{
	struct vb_host_lane *d = &s->host_lane;

	assert(s->port_quiet >= VB_PORT_QUIET);
	if (s->port_quiet % CLOCK_RARELY == 0)
		return vb_host_lane_turn_to_local_peers(d);
	if (!vb_host_peers_have_news(d))
		return false;
	if (atomic_load_explicit(&s->keeps_time, memory_order_relaxed))
		s->turned_at = vb_host_now();
	return exchange(d, s->turned_at);
}

/* ---- The turn ---------------------------------------------------------------------------------------------------- */

unsigned vb_host_lane_looks_next(const struct vb_host_lane *d, bool sleeps)
{
	const struct vb_host_lane_state *s = vb_state_of_const(d);
	bool is_time = !sleeps && vb_time_since(s->port_seen_at, vb_host_now()) >= VB_PORT_SELDOM;

	return s->port_has_more || is_time ? VB_LOOKS_AT_PORT : 0;
}

/* The port's own deadlines are not among what its descriptors tell. */
bool vb_host_lane_turn(struct vb_host_lane *d, unsigned looks)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	assert(!((looks & VB_LOOKS_AT_PORT) && (looks & VB_PORT_IS_QUIET)));
	if (is_among_local_peers(s))
		return turn_among_local_peers(s);
	vb_time now = vb_host_now();
	s->turned_at = now;
	if (looks & VB_PORT_IS_QUIET)
		s->port_seen_at = now;
	if (vb_deadline_due(vb_port_next_deadline(d->port), now))
		looks |= VB_LOOKS_AT_PORT;
	if (looks & VB_LOOKS_AT_BELLS)
		vb_host_peers_hear(d);
	vb_host_peers_be_patient(d, now);
	bool is_busy = vb_host_peers_receive(d, now);
	if (looks & VB_LOOKS_AT_PORT)
		is_busy |= look_at_port(s, &now);
	finish(d, now);
	vb_lane_advance(d->lane, now);
	is_busy |= vb_turn_transmit(d, now);
	vb_ownership_served(&s->ownership, s->turned_at);
	vb_turn_dispatch(d);
	assert(s->ownership.alarm != VB_ALARM_LANE || vb_time_before(s->turned_at, s->ownership.alarm_at));
	return is_busy;
}

void vb_host_lane_settle(struct vb_host_lane *d)
{
	vb_time now = vb_host_now();

	vb_lane_flush_acks(d->lane);
	vb_host_peers_settle(d, now);
	vb_turn_transmit(d, now);
}

/* Its peer may have answered in memory, and woken nobody for it. */
void vb_host_lane_settle_qp(struct vb_host_lane *d, struct vb_qp *qp)
{
	struct vb_qp_config config;
	struct vb_qp_attr attr;

	vb_qp_query(qp, &attr, &config);
	vb_host_peers_take_answers(d, (uint8_t)(attr.dest_qpn >> 16), vb_host_now());
	vb_host_lane_settle(d);
}

void vb_host_lane_take_leave(struct vb_host_lane *d, struct vb_qp *qp)
{
	vb_local_take_leave(qp);
	vb_host_lane_settle_qp(d, qp);
	for (unsigned i = 0; i < FAREWELLS && vb_qp_takes_leave(qp, vb_host_now()); i++)
		vb_turn_transmit(d, vb_host_now());
}

void vb_host_lane_catch_up(struct vb_host_lane *d, uint32_t qpn)
{
	vb_host_peers_catch_up(d, (uint8_t)(qpn >> 16), vb_host_now());
}
