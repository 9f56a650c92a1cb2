/* For tests: two connection managers, A (10.0.0.1) and B (10.0.0.2), a clock, and every MAD between them in the test's
 * hands. */
#ifndef VB_TESTS_CM_RIG_H
#define VB_TESTS_CM_RIG_H

#include "cm/cm.h"
#include "../unit.h"

#define SERVICE vb_cm_service_id(VB_CM_PS_TCP, 7174)

/* What a REQ of ours says: 4.096 us * 2^17 of path, 4.096 us * 2^20 of response. */
#define PATH    ((vb_time)4096 * VB_NS << 17)
#define PERIOD  (PATH + ((vb_time)4096 * VB_NS << 20))
#define RETRIES 3
#define PAUSE   (100 * VB_MS) /* before the first repetition */

enum { A, B };

struct mad {
	struct vb_cm_outgoing out;
	struct vb_cm_message message;
};

static struct vb_cm *cms[2];
static struct vb_gid gids[2];
static vb_time now;
static struct vb_cm_event event; /* the last one */
static struct vb_cm_id *listener;

static struct vb_cm_path path_from(int side)
{
	return (struct vb_cm_path){ .local = gids[side], .remote = gids[!side] };
}

static int rig_open(void **state)
{
	gids[A] = vb_gid_from_ipv4(10, 0, 0, 1);
	gids[B] = vb_gid_from_ipv4(10, 0, 0, 2);
	now = INT64_MAX - VB_S; /* wraps on the way */
	for (int side = A; side <= B; side++) {
		struct vb_cm_config config = {
			.seed = 1 + (uint64_t)side, .slot = (uint8_t)(5 + side), .max_half_open = 8
		};
		assert_int_equal(vb_cm_create(&config, &cms[side]), 0);
	}
	struct vb_gid any = { { 0 } };
	listener = vb_cm_id_create(cms[B], NULL);
	assert_int_equal(vb_cm_listen(listener, SERVICE, &any), 0);
	return 0;
}

static int rig_close(void **state)
{
	vb_cm_destroy(cms[A]);
	vb_cm_destroy(cms[B]);
	return 0;
}

static inline struct vb_cm_req make_req(uint32_t qpn)
{
	return (struct vb_cm_req){ .service_id = SERVICE,
		.ca_guid = 0xA,
		.qpn = qpn,
		.psn = 7,
		.remote_timeout = 20,
		.local_timeout = 20,
		.retry_count = 7,
		.rnr_retry = 7,
		.max_cm_retries = RETRIES,
		.path_mtu = 3,
		.pkey = 0xFFFF,
		.primary = { .local = gids[A], .remote = gids[B], .ack_timeout = 17, .hop_limit = 64 } };
}

static inline struct vb_cm_id *connect_qp(uint32_t qpn)
{
	struct vb_cm_id *id = vb_cm_id_create(cms[A], NULL);
	struct vb_cm_req req = make_req(qpn);
	struct vb_cm_path path = path_from(A);
	assert_int_equal(vb_cm_connect(id, &path, &req, now), 0);
	return id;
}

static inline void accept_qp(struct vb_cm_id *id, uint32_t qpn)
{
	struct vb_cm_rep rep = { .ca_guid = 0xB, .qpn = qpn, .psn = 9 };
	assert_int_equal(vb_cm_accept(id, &rep, now), 0);
}

/* What a side sends next. */
static inline struct mad take(int side, enum vb_cm_kind kind)
{
	struct mad mad;
	if (!vb_cm_next_outgoing(cms[side], &mad.out))
		fail_msg("%c sends nothing, not 0x%x", 'A' + side, kind);
	assert_true(vb_cm_decode(&mad.message, mad.out.mad));
	assert_int_equal(mad.message.kind, kind);
	return mad;
}

static inline void expect_silence(int side)
{
	struct vb_cm_outgoing out;
	if (vb_cm_next_outgoing(cms[side], &out))
		fail_msg("%c sends 0x%x", 'A' + side, out.mad[17]);
}

static inline void give(int side, const struct mad *mad)
{
	struct vb_cm_path path = path_from(side);
	vb_cm_receive(cms[side], &path, mad->out.mad, now);
}

static inline void give_message(int side, const struct vb_cm_message *message)
{
	struct mad mad;
	vb_cm_encode(message, mad.out.mad);
	give(side, &mad);
}

/* The network says that a MAD of this side's cannot be delivered. */
static inline void undelivered(int side, const struct mad *mad, int error)
{
	vb_cm_undelivered(cms[side], &gids[!side], mad->out.mad, error, now);
}

/* From one side to the other. */
static inline struct mad pass(int from, enum vb_cm_kind kind)
{
	struct mad mad = take(from, kind);
	give(!from, &mad);
	return mad;
}

static inline struct vb_cm_id *expect_event(int side, enum vb_cm_event_kind kind)
{
	if (!vb_cm_next_event(cms[side], &event))
		fail_msg("%c has no event, not %d", 'A' + side, kind);
	assert_int_equal(event.kind, kind);
	return event.id;
}

static inline void expect_no_event(int side)
{
	if (vb_cm_next_event(cms[side], &event))
		fail_msg("%c has event %d", 'A' + side, event.kind);
}

static inline void expect_state(const struct vb_cm_id *id, enum vb_cm_state state)
{
	assert_int_equal(vb_cm_id_state(id), state);
}

/* Time passes until just before, and then until, span from now; nothing may be due earlier. */
static inline void wait_exactly(int side, vb_time span)
{
	struct vb_deadline next = vb_cm_next_deadline(cms[side]);
	assert_true(next.is_set);
	assert_true(vb_time_diff(next.at, now) == span);
	now = vb_time_add(now, span - 1);
	vb_cm_advance(cms[side], now);
	expect_silence(side);
	expect_no_event(side);
	now = vb_time_add(now, 1);
	vb_cm_advance(cms[side], now);
}

/* What this side has just sent goes again, ever later, all of it lost, until its period is over. */
static inline void wait_first(int side, enum vb_cm_kind kind, vb_time period)
{
	vb_time passed = 0;
	for (vb_time pause = PAUSE; passed + pause < period; passed += pause, pause *= 2) {
		wait_exactly(side, pause);
		take(side, kind);
	}
	wait_exactly(side, period - passed);
}

static inline void expect_no_deadline(int side)
{
	assert_false(vb_cm_next_deadline(cms[side]).is_set);
}

static inline uint64_t counted(int side, enum vb_cm_counter counter)
{
	uint64_t values[VB_CM_COUNTER_COUNT];
	vb_cm_counters(cms[side], values);
	return values[counter];
}

struct ends {
	struct vb_cm_id *a, *b;
};

static inline struct ends requested(uint32_t qpn)
{
	struct ends ends = { .a = connect_qp(qpn) };
	pass(A, VB_CM_REQ);
	ends.b = expect_event(B, VB_CM_EVENT_REQUEST);
	return ends;
}

static inline struct ends replied(uint32_t qpn)
{
	struct ends ends = requested(qpn);
	accept_qp(ends.b, qpn + 100);
	pass(B, VB_CM_REP);
	assert_ptr_equal(expect_event(A, VB_CM_EVENT_REPLY), ends.a);
	return ends;
}

static inline struct ends established(uint32_t qpn)
{
	struct ends ends = replied(qpn);
	assert_int_equal(vb_cm_confirm(ends.a, NULL, 0, now), 0);
	pass(A, VB_CM_RTU);
	assert_ptr_equal(expect_event(B, VB_CM_EVENT_ESTABLISHED), ends.b);
	expect_no_deadline(A);
	expect_no_deadline(B);
	return ends;
}

#endif
