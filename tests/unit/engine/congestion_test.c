/* Congestion control by configuration, the lane's or a QP's: what an algorithm is told, its timer, and its rate: that
 * packets leave when they may, to the picosecond, and not a deadline too many. */
#include <errno.h>
#include "roce/peers.h"
#include "rig.h"
#include "../../paced.h"

/* A full SEND packet takes so long: BTH, payload and ICRC. */
enum { PACKET = 12 + RIG_MTU + 4, PACKET_US = 10 };

static const struct paced slow = { .rate = PACKET * 1000000ull / PACKET_US };
static const struct vb_cc_config slow_cc = { .algorithm = &paced_algorithm,
	.parameters = &slow,
	.first_window = VB_CC_UNLIMITED,
	.max_window = VB_CC_UNLIMITED };

static struct rig *open_with(const struct vb_cc_config *cc)
{
	struct vb_lane_config lane = { .seed = 1, .slot = 1, .unknown_peer_allowance = VB_UNLIMITED, .cc = *cc };
	return rig_open_lane(64, &lane);
}

static const struct paced_state *state_of(struct vb_qp *qp)
{
	return vb_cc_state(&vb_roce(qp)->congestion.cc);
}

static void post_send(struct rig *rig, struct vb_qp *qp, unsigned packets)
{
	struct vb_sge sge = rig_sge(rig, 0, packets * RIG_MTU);
	rig_post(qp,
		&(struct vb_send_wr){ .opcode = VB_WR_SEND, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
}

/* The lane asks for a call at the very time, and nothing leaves before. */
static void go_on_at(struct rig *rig, vb_time at)
{
	struct vb_deadline deadline = vb_lane_next_deadline(rig->lane);
	assert_true(deadline.is_set);
	assert_int_equal(deadline.at, at);
	rig->now = at - 1;
	assert_false(vb_lane_wants_transmit(rig->lane, rig->now));
	assert_int_equal(rig_transmit(rig), 0);
	rig->now = at;
	assert_true(vb_lane_wants_transmit(rig->lane, rig->now));
}

static void ack(struct rig *rig, struct vb_qp *qp, uint32_t psn)
{
	rig_receive(rig, qp,
		(struct vb_packet){
			.opcode = VB_ACKNOWLEDGE, .psn = psn, .syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS });
}

/* ---- Which, and how large ---------------------------------------------------------------------------------------- */

static void lane__without_configuration_has_the_plain_window(void **state)
{
	struct rig *rig = rig_open(64);
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_ptr_equal(vb_roce(qp)->congestion.cc.algorithm, &vb_cc_window);
	assert_int_equal(vb_roce(qp)->congestion.cc.window_bytes, 65536);
	assert_int_equal(vb_roce(qp)->congestion.cc.max_window, 2621440);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void lane__first_and_largest_window_are_configured(void **state)
{
	struct rig *rig = open_with(&(struct vb_cc_config){ .first_window = 20000, .max_window = 30000 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_int_equal(vb_roce(qp)->congestion.cc.window_bytes, 20000);
	for (int i = 0; i < 4; i++)
		vb_congestion_tell(qp, &(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = 20000, .flight = 20000 });
	assert_int_equal(vb_roce(qp)->congestion.cc.window_bytes, 30000);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* At least a packet, and no more than the sequence numbers bear. */
static void window__that_makes_no_sense_is_made_to(void **state)
{
	static const struct {
		uint32_t wanted, had;
	} cases[] = { { 1, RIG_MTU + VB_PACKET_OVERHEAD }, { UINT32_MAX, VB_CC_UNLIMITED } };
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint32_t wanted = cases[i].wanted, had = cases[i].had;
		struct rig *rig = open_with(&(struct vb_cc_config){ .first_window = wanted, .max_window = wanted });
		struct vb_qp *qp = rig_connected(rig, NULL);
		assert_int_equal(vb_roce(qp)->congestion.cc.window_bytes, had);
		vb_congestion_tell(qp, &(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = had, .flight = had });
		assert_int_equal(vb_roce(qp)->congestion.cc.window_bytes, had);
		assert_int_equal(vb_qp_destroy(qp), 0);
		rig_close(rig);
	}
}

static void qp__has_another_than_its_lane(void **state)
{
	static const struct vb_cc_config none = { .algorithm = &vb_cc_none };
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *others = rig_connected(rig, NULL), *own = rig_qp(rig, NULL);
	assert_int_equal(vb_qp_set_congestion_control(own, &none), 0);
	rig_connect(rig, own);
	assert_ptr_equal(vb_roce(others)->congestion.cc.algorithm, &paced_algorithm);
	assert_ptr_equal(vb_roce(own)->congestion.cc.algorithm, &vb_cc_none);
	assert_int_equal(vb_qp_set_congestion_control(own, NULL), -EINVAL); /* too late */
	rig_modify(rig, own, VB_QPS_RESET, 0);
	rig_connect(rig, own);
	assert_ptr_equal(vb_roce(own)->congestion.cc.algorithm, &vb_cc_none);
	rig_modify(rig, own, VB_QPS_RESET, 0);
	assert_int_equal(vb_qp_set_congestion_control(own, NULL), 0);
	rig_connect(rig, own);
	assert_ptr_equal(vb_roce(own)->congestion.cc.algorithm, &paced_algorithm);
	assert_int_equal(vb_qp_destroy(own), 0);
	assert_int_equal(vb_qp_destroy(others), 0);
	rig_close(rig);
}

/* Neither a window nor an allowance, and no object for a peer of whom nothing is known. */
static void none__sends_all_that_is_posted(void **state)
{
	struct vb_lane_config lane = {
		.seed = 1, .slot = 1, .unknown_peer_allowance = VB_UNLIMITED, .cc.algorithm = &vb_cc_none
	};
	struct rig *rig = rig_open_lane(64, &lane);
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_null(qp->peer);
	for (int i = 0; i < 5; i++)
		post_send(rig, qp, 60);
	unsigned sent = 0;
	for (unsigned n; (n = rig_transmit(rig)) > 0; sent += n)
		;
	assert_int_equal(sent, 300); /* 384,000 bytes as windows count them */
	ack(rig, qp, RIG_SQ_PSN + 299);
	assert_int_equal(vb_roce(qp)->flight.out, 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	assert_int_equal(rig->lane->peer_count, 0);
	rig_close(rig);
}

static void peer__that_is_known_bounds_although_strangers_do_not(void **state)
{
	struct vb_lane_config lane = {
		.seed = 1, .slot = 1, .unknown_peer_allowance = VB_UNLIMITED, .cc.algorithm = &vb_cc_none
	};
	struct rig *rig = rig_open_lane(64, &lane);
	struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 2);
	vb_lane_set_peer(rig->lane, &gid, &(struct vb_peer_facts){ .is_verbena = true, .receive_buffer = 20480 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_send(rig, qp, 60);
	assert_int_equal(rig_transmit(rig), 10240 / (RIG_MTU + VB_PACKET_OVERHEAD));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* ---- What it is told --------------------------------------------------------------------------------------------- */

static void algorithm__is_told_what_happened(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	const struct paced_state *told = state_of(qp);
	post_send(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, PACKET_US * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(told->packets, 2);
	assert_int_equal(told->sent, 2 * PACKET);

	struct vb_packet packet = { .opcode = VB_RC | VB_ACKNOWLEDGE,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(qp),
		.psn = RIG_SQ_PSN,
		.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS,
		.holder = 42 };
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid, .traffic_class = 3 };
	rig->now += 7 * VB_US;
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	assert_int_equal(told->acked, RIG_MTU);
	assert_int_equal(told->rtt, (PACKET_US + 7) * VB_US);
	assert_int_equal(told->marked, 0); /* what is marked is the ack, on the other way */
	assert_int_equal(told->telemetry, 42);

	packet = (struct vb_packet){
		.opcode = VB_CNP, .pkey = VB_PKEY_DEFAULT, .dest_qpn = vb_qp_number(qp), .becn = true
	};
	path.traffic_class = 0;
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	assert_int_equal(told->cnps, 1);
	assert_int_equal(told->flight, vb_roce(qp)->flight.out);
	assert_int_not_equal(told->flight, 0);
	assert_int_equal(told->losses, 0);
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN + 1, .syndrome = VB_NAK_PSN_SEQUENCE });
	assert_int_equal(told->losses, 1);
	assert_int_equal(told->marked, 0);
	rig->now += PACKET_US * VB_US;
	assert_int_equal(rig_transmit(rig), 2); /* and a CNP, of what was marked before */
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_ACKNOWLEDGE,
			.psn = RIG_SQ_PSN + 1,
			.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS,
			.becn = true });
	assert_int_equal(told->marked, 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void timer__comes_when_it_was_asked_for(void **state)
{
	static const struct paced ticking = { .rate = 1000000000, .period = 3 * VB_US };
	struct rig *rig = open_with(&(struct vb_cc_config){ .algorithm = &paced_algorithm, .parameters = &ticking });
	struct vb_qp *qp = rig_connected(rig, NULL);
	rig_transmit(rig);
	for (uint64_t i = 1; i <= 5; i++) {
		struct vb_deadline deadline = vb_lane_next_deadline(rig->lane);
		assert_true(deadline.is_set);
		assert_int_equal(deadline.at, (vb_time)i * 3 * VB_US);
		vb_lane_advance(rig->lane, deadline.at - 1);
		assert_int_equal(state_of(qp)->ticks, i - 1);
		vb_lane_advance(rig->lane, deadline.at);
		assert_int_equal(state_of(qp)->ticks, i);
		vb_lane_check(rig->lane);
	}
	rig_modify(rig, qp, VB_QPS_ERR, 0);
	assert_false(vb_lane_next_deadline(rig->lane).is_set);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* ---- Its rate ---------------------------------------------------------------------------------------------------- */

static void packets__leave_at_the_rate(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_send(rig, qp, 5);
	assert_int_equal(rig_transmit(rig), 1);
	for (int i = 1; i < 5; i++) {
		go_on_at(rig, i * PACKET_US * VB_US);
		assert_int_equal(rig_transmit(rig), 1);
	}
	assert_false(vb_list_linked(&qp->ready_link));
	ack(rig, qp, RIG_SQ_PSN + 4);
	rig_transmit(rig);
	rig->now += VB_S;
	vb_lane_advance(rig->lane, rig->now);
	assert_false(
		vb_lane_next_deadline(rig->lane).is_set); /* nothing waits for a time at which nothing is to be sent */
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* A packet takes 346,666,666 and two thirds of a picosecond: three make a whole number. */
static void packets__leave_at_a_rate_that_does_not_divide(void **state)
{
	static const struct paced thirds = { .rate = 3000000 };
	struct rig *rig = open_with(&(struct vb_cc_config){ .algorithm = &paced_algorithm, .parameters = &thirds });
	struct vb_qp *qp = rig_connected(rig, NULL);
	qp->attr.timeout = 0;
	post_send(rig, qp, 61);
	assert_int_equal(rig_transmit(rig), 1);
	for (int i = 1; i < 61; i++) {
		vb_time at = i * (vb_time)PACKET * VB_S / 3000000;
		rig->now = at - 1;
		vb_lane_advance(rig->lane, rig->now);
		assert_int_equal(rig_transmit(rig), 0);
		rig->now = at;
		vb_lane_advance(rig->lane, rig->now);
		assert_int_equal(rig_transmit(rig), 1);
		if (i % 2)
			ack(rig, qp, RIG_SQ_PSN + (uint32_t)i);
	}
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* A QP that had nothing to send gets no credit for it; one that was called late makes that up. */
static void packets__are_made_up_for_when_the_holder_is_late(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	rig->now = 500 * VB_US;
	post_send(rig, qp, 6);
	assert_int_equal(rig_transmit(rig), 1);
	rig->now += 35 * VB_US;
	assert_int_equal(rig_transmit(rig), 3);
	go_on_at(rig, 540 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, 550 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	ack(rig, qp, RIG_SQ_PSN + 5);
	rig->now = 600 * VB_US;
	post_send(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, 610 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* NICs count what is on the wire, are never late themselves, and a simulator that they are held against counts whole
 * nanoseconds. */
static void rate__is_kept_as_the_lane_has_it(void **state)
{
	struct vb_lane_config lane = { .seed = 1,
		.slot = 1,
		.unknown_peer_allowance = VB_UNLIMITED,
		.cc = slow_cc,
		.rate_overhead = 16 + PACKET / 10,
		.rate_is_strict = true };
	struct rig *rig = rig_open_lane(64, &lane);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_send(rig, qp, 4);
	assert_int_equal(rig_transmit(rig), 1);
	vb_time each = (vb_time)((RIG_MTU + 16 + PACKET / 10) * (uint64_t)VB_S / slow.rate);
	go_on_at(rig, each);
	rig->now += 35 * VB_US;
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(rig_transmit(rig), 0); /* what was late is not made up for */
	go_on_at(rig, 35 * VB_US + 2 * each);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);

	static const struct paced odd = { .rate = 3000000000 };
	lane = (struct vb_lane_config){ .seed = 1,
		.slot = 1,
		.unknown_peer_allowance = VB_UNLIMITED,
		.rate_in_whole_ns = true,
		.cc = { .algorithm = &paced_algorithm,
			.parameters = &odd,
			.first_window = VB_CC_UNLIMITED,
			.max_window = VB_CC_UNLIMITED } };
	rig = rig_open_lane(64, &lane);
	qp = rig_connected(rig, NULL);
	post_send(rig, qp, 5);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(rig_transmit(rig), 1);
		go_on_at(rig, (i + 1) * (PACKET / 3 * VB_NS));
	}
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void packets__posted_too_soon_wait_outside_the_ready_list(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_send(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 1);
	rig->now = 4 * VB_US;
	post_send(rig, qp, 1);
	vb_lane_advance(rig->lane, rig->now);
	assert_false(vb_list_linked(&qp->ready_link));
	assert_false(vb_lane_wants_transmit(rig->lane, rig->now));
	go_on_at(rig, 10 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void acks__do_not_wait(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 1024);
	assert_int_equal(vb_rq_post(qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
	post_send(rig, qp, 3);
	assert_int_equal(rig_transmit(rig), 1);
	rig_receive(rig, qp, (struct vb_packet){ .opcode = VB_SEND_ONLY, .psn = RIG_RQ_PSN, .ackreq = true });
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(rig->batch.out[0].packet.opcode, VB_RC | VB_ACKNOWLEDGE);
	go_on_at(rig, 10 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* An ack that leaves ahead of data is none itself. */
static void acks__cost_nothing_of_the_rate(void **state)
{
	struct vb_lane_config lane = { .seed = 1, .slot = 1, .cc = slow_cc, .ack_delay = 20 * VB_US };
	struct rig *rig = rig_open_lane(64, &lane);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 1024);
	assert_int_equal(vb_rq_post(qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
	rig_receive(rig, qp, (struct vb_packet){ .opcode = VB_SEND_ONLY, .psn = RIG_RQ_PSN, .ackreq = true });
	post_send(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 2);
	assert_int_equal(rig->batch.out[0].packet.opcode, VB_RC | VB_ACKNOWLEDGE);
	assert_int_equal(state_of(qp)->packets, 1);
	go_on_at(rig, 10 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void responses__keep_the_rate_too(void **state)
{
	static const struct paced fast = { .rate = 1000000000 };
	struct rig *rig = open_with(&(struct vb_cc_config){ .algorithm = &paced_algorithm, .parameters = &fast });
	struct vb_qp *qp = rig_connected(rig, NULL);
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_READ_REQUEST,
			.psn = RIG_RQ_PSN,
			.va = (uintptr_t)rig->memory,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = 3 * RIG_MTU });
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, (PACKET + 4) * VB_NS); /* the first has an AETH */
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, (2 * PACKET + 4) * VB_NS);
	assert_int_equal(rig_transmit(rig), 1);
	assert_false(vb_lane_next_deadline(rig->lane).is_set);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void qps__of_one_rate_send_alike(void **state)
{
	enum { QPS = 5, ROUNDS = 20 };
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qps[QPS];
	for (int i = 0; i < QPS; i++) {
		qps[i] = rig_connected(rig, NULL);
		post_send(rig, qps[i], ROUNDS);
	}
	assert_int_equal(rig_transmit(rig), QPS);
	for (int round = 1; round < ROUNDS; round++) {
		go_on_at(rig, round * PACKET_US * VB_US);
		assert_int_equal(rig_transmit(rig), QPS);
		for (int i = 0; i < QPS; i++)
			assert_int_equal(state_of(qps[i])->packets, round + 1);
	}
	for (int i = 0; i < QPS; i++)
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
	rig_close(rig);
}

/* What was left of the wait at the old rate takes twice as long at half of it. */
static void wait__follows_the_rate(void **state)
{
	static const struct paced moody = { .rate = PACKET * 1000000ull / PACKET_US, .is_moody = true };
	struct rig *rig = open_with(&(struct vb_cc_config){ .algorithm = &paced_algorithm, .parameters = &moody });
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_send(rig, qp, 3);
	assert_int_equal(rig_transmit(rig), 1);
	rig->now = 4 * VB_US;
	struct vb_packet packet = {
		.opcode = VB_CNP, .pkey = VB_PKEY_DEFAULT, .dest_qpn = vb_qp_number(qp), .becn = true
	};
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	rig->now = 16 * VB_US - 1;
	vb_lane_advance(rig->lane, rig->now);
	assert_int_equal(rig_transmit(rig), 0);
	go_on_at(rig, 16 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, 36 * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void cnp__that_is_marked_is_not_answered_by_another(void **state)
{
	struct rig *rig = open_with(&(struct vb_cc_config){ .max_window = 30000 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_packet packet = {
		.opcode = VB_CNP, .pkey = VB_PKEY_DEFAULT, .dest_qpn = vb_qp_number(qp), .becn = true
	};
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid, .traffic_class = 3 };
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	assert_int_equal(rig_transmit(rig), 0);
	packet = (struct vb_packet){ .opcode = VB_RC | VB_WRITE_ONLY,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(qp),
		.psn = RIG_RQ_PSN };
	vb_lane_receive(rig->lane, &path, &packet, 1, rig->now);
	assert_int_equal(rig_transmit(rig), 1); /* of what else is marked the sender hears */
	assert_int_equal(rig->batch.out[0].packet.opcode, VB_CNP);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void unpaced_init(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = VB_CC_UNLIMITED;
}

static void take_a_rate(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	cc->rate = slow.rate;
}

/* When it was begun has come round, and lies ahead. */
static void rate__that_comes_after_months_lets_nobody_wait(void **state)
{
	static const struct vb_cc_algorithm algorithm = { .init = unpaced_init, .on_signal = take_a_rate };
	struct rig *rig = open_with(&(struct vb_cc_config){ .algorithm = &algorithm });
	rig->now = 2 * 3600 * VB_S;
	struct vb_qp *qp = rig_connected(rig, NULL);
	rig_transmit(rig);
	rig->now = 0;
	vb_congestion_tell(qp, &(struct vb_cc_signal){ .event = VB_CC_CNP, .now = rig->now });
	post_send(rig, qp, 2);
	assert_int_equal(rig_transmit(rig), 1);
	go_on_at(rig, PACKET_US * VB_US);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* What is left of the allowance is too little for the other, and enough for this one, which is not asked before its
 * time: its last packet is to be acknowledged, or both would wait for a probe. */
static void packet__after_which_there_is_no_room_for_anybodys_asks_for_an_ack(void **state)
{
	static const uint32_t rooms[] = { 4 * (RIG_MTU + VB_PACKET_OVERHEAD), 64 * (RIG_MTU + VB_PACKET_OVERHEAD) };
	for (size_t i = 0; i < COUNT_OF(rooms); i++) {
		struct vb_lane_config lane = {
			.seed = 1, .slot = 1, .cc = slow_cc, .unknown_peer_allowance = rooms[i]
		};
		struct rig *rig = rig_open_lane(64, &lane);
		struct vb_qp *qp = rig_connected(rig, NULL);
		post_send(rig, qp, 8);
		assert_int_equal(rig_transmit(rig), 1);
		assert_int_equal(rig->batch.out[0].packet.ackreq, i == 0);
		assert_int_equal(vb_qp_destroy(qp), 0);
		rig_close(rig);
	}
}

static void qp__that_goes_away_waits_no_longer(void **state)
{
	static const enum vb_qp_state ways[] = { VB_QPS_ERR, VB_QPS_RESET, VB_QPS_COUNT };
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		struct rig *rig = open_with(&slow_cc);
		struct vb_qp *qp = rig_connected(rig, NULL), *other = rig_connected(rig, NULL);
		post_send(rig, qp, 3);
		assert_int_equal(rig_transmit(rig), 1);
		rig->now = 5 * VB_US;
		post_send(rig, other, 2);
		assert_int_equal(rig_transmit(rig), 1);
		if (ways[i] == VB_QPS_COUNT)
			assert_int_equal(vb_qp_destroy(qp), 0);
		else
			rig_modify(rig, qp, ways[i], 0);
		vb_lane_check(rig->lane);
		go_on_at(rig, 15 * VB_US);
		assert_int_equal(rig_transmit(rig), 1);
		assert_ptr_equal(rig->batch.out[0].qp, other);
		if (ways[i] == VB_QPS_RESET) {
			rig_connect(rig, qp);
			post_send(rig, qp, 1);
			assert_int_equal(rig_transmit(rig), 1);
		}
		if (ways[i] != VB_QPS_COUNT)
			assert_int_equal(vb_qp_destroy(qp), 0);
		assert_int_equal(vb_qp_destroy(other), 0);
		rig_close(rig);
	}
}

/* ---- What it came to --------------------------------------------------------------------------------------------- */

static void account__is_of_what_a_qp_is_held_to_and_came_to(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_qp(rig, NULL);
	struct vb_qp_account account;
	assert_false(vb_qp_account(qp, &account)); /* it has no peer yet */
	rig_connect(rig, qp);
	rig->now = 5 * VB_S; /* connected long before there is something to do */
	post_send(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 1);
	rig_receive(rig, qp, (struct vb_packet){ .opcode = VB_CNP, .becn = true });
	rig->now += 2 * VB_MS;
	ack(rig, qp, RIG_SQ_PSN);
	assert_true(vb_qp_account(qp, &account));
	assert_int_equal(account.qpn, vb_qp_number(qp));
	assert_int_equal(account.dest_qpn, 0x020002);
	assert_true(vb_gid_equal(&account.peer, &qp->attr.av.dgid));
	assert_string_equal(account.algorithm, paced_algorithm.name);
	assert_int_equal(account.rate, slow.rate);
	assert_int_equal(account.window_bytes, VB_CC_UNLIMITED);
	assert_int_equal(account.acked, RIG_MTU);
	assert_int_equal(account.acked_in, 2 * VB_MS);
	assert_int_equal(account.cnps_received, 1);
	assert_int_equal(account.sent_again, 0);
	assert_false(account.is_local);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* A peer that has gone is no reason to forget how fast it went: most connections end so. */
static void account__stays_when_a_qp_fails(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_qp_account account;
	post_send(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 1);
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN, .syndrome = VB_NAK_PSN_SEQUENCE });
	rig->now += VB_MS;
	assert_int_equal(rig_transmit(rig), 1);
	rig_modify(rig, qp, VB_QPS_ERR, 0);
	assert_true(vb_qp_account(qp, &account));
	assert_int_equal(account.rate, slow.rate);
	assert_int_equal(account.sent_again, 1);
	assert_int_equal(account.acked_in, 0);
	rig_modify(rig, qp, VB_QPS_RESET, 0);
	rig_connect(rig, qp);
	assert_true(vb_qp_account(qp, &account));
	assert_int_equal(account.sent_again, 0); /* it begins anew */
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* After a silence the newest packet goes once more, to hear whether it was lost: that is no packet sent again. */
static void account__tells_probes_from_packets_sent_again(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_qp_account account;
	post_send(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 1);
	for (unsigned sent = 0; sent == 0; sent = rig_transmit(rig)) {
		rig->now += VB_MS;
		vb_lane_advance(rig->lane, rig->now);
	}
	assert_true(vb_qp_account(qp, &account));
	assert_int_equal(account.probes, 1);
	assert_int_equal(account.sent_again, 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* What it achieved is from its first packet on, though that was lost and it is another that is timed. */
static void account__begins_with_the_first_packet(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_qp_account account;
	const vb_time begun = rig->now;
	post_send(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 1);
	post_send(rig, qp, 1);
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN, .syndrome = VB_NAK_PSN_SEQUENCE });
	for (unsigned sent = 0; sent < 2; sent += rig_transmit(rig))
		rig->now += VB_MS;
	ack(rig, qp, RIG_SQ_PSN + 1);
	assert_true(vb_qp_account(qp, &account));
	assert_int_equal(account.sent_again, 1);
	assert_int_equal(account.acked, 2 * RIG_MTU);
	assert_int_equal(account.acked_in, rig->now - begun);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void lane__shows_each_of_its_qps_once(void **state)
{
	struct rig *rig = open_with(&slow_cc);
	struct vb_qp *qps[7];
	unsigned seen = 0, count = 0;
	uint32_t place = 0;
	for (unsigned i = 0; i < COUNT_OF(qps); i++)
		qps[i] = rig_qp(rig, NULL);
	for (struct vb_qp *qp; (qp = vb_lane_next_qp(rig->lane, &place)); count++)
		for (unsigned i = 0; i < COUNT_OF(qps); i++)
			seen |= (qps[i] == qp) << i;
	assert_int_equal(count, COUNT_OF(qps));
	assert_int_equal(seen, (1 << COUNT_OF(qps)) - 1);
	for (unsigned i = 0; i < COUNT_OF(qps); i++)
		assert_int_equal(vb_qp_destroy(qps[i]), 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lane__without_configuration_has_the_plain_window),
		cmocka_unit_test(lane__first_and_largest_window_are_configured),
		cmocka_unit_test(window__that_makes_no_sense_is_made_to),
		cmocka_unit_test(qp__has_another_than_its_lane),
		cmocka_unit_test(none__sends_all_that_is_posted),
		cmocka_unit_test(peer__that_is_known_bounds_although_strangers_do_not),
		cmocka_unit_test(algorithm__is_told_what_happened),
		cmocka_unit_test(timer__comes_when_it_was_asked_for),
		cmocka_unit_test(packets__leave_at_the_rate),
		cmocka_unit_test(packets__leave_at_a_rate_that_does_not_divide),
		cmocka_unit_test(packets__are_made_up_for_when_the_holder_is_late),
		cmocka_unit_test(rate__is_kept_as_the_lane_has_it),
		cmocka_unit_test(packets__posted_too_soon_wait_outside_the_ready_list),
		cmocka_unit_test(acks__do_not_wait),
		cmocka_unit_test(acks__cost_nothing_of_the_rate),
		cmocka_unit_test(responses__keep_the_rate_too),
		cmocka_unit_test(qps__of_one_rate_send_alike),
		cmocka_unit_test(wait__follows_the_rate),
		cmocka_unit_test(rate__that_comes_after_months_lets_nobody_wait),
		cmocka_unit_test(packet__after_which_there_is_no_room_for_anybodys_asks_for_an_ack),
		cmocka_unit_test(qp__that_goes_away_waits_no_longer),
		cmocka_unit_test(account__is_of_what_a_qp_is_held_to_and_came_to),
		cmocka_unit_test(account__stays_when_a_qp_fails),
		cmocka_unit_test(account__tells_probes_from_packets_sent_again),
		cmocka_unit_test(account__begins_with_the_first_packet),
		cmocka_unit_test(cnp__that_is_marked_is_not_answered_by_another),
		cmocka_unit_test(lane__shows_each_of_its_qps_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
