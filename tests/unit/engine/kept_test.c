/* Datagrams whose region is closed while they wait, for room or for their peer's answer: they leave as they were
 * posted. */
#include "core/kept.h"
#include "pair.h"

enum { SOURCE = 0, PLACE = 400000, MTU = 1024, GRH = 40, COUNT = 3 };

static uint8_t byte_of(uint32_t i)
{
	return (uint8_t)(i * 7 + 1);
}

/* Nothing leaves. */
static struct pair *open_blocked(bool is_local)
{
	struct pair *p = pair_open(VB_QP_UD, is_local, 0);
	for (uint32_t i = 0; i < COUNT * MTU; i++)
		p->side[0].memory[SOURCE + i] = byte_of(i);
	for (unsigned i = 0; i < COUNT; i++)
		pair_post_receive(p, 1, i, PLACE + i * 2 * MTU, GRH + MTU);
	p->descriptor_room = 0;
	vb_lane_set_peer(p->side[0].lane, &p->side[1].gid, &(struct vb_peer_facts){ .is_asked = true });
	return p;
}

static void unblock(struct pair *p)
{
	p->descriptor_room = PAIR_RING;
	vb_lane_set_peer(p->side[0].lane, &p->side[1].gid, &(struct vb_peer_facts){ 0 });
	pair_settle(p);
}

/* And its memory is something else's. */
static void close_region(struct pair *p)
{
	vb_lane_keep_datagrams(p->side[0].lane, vb_mr_key(p->side[0].mr));
	assert_int_equal(vb_mr_invalidate(p->side[0].mr), 0);
	memset(p->side[0].memory, 0xee, COUNT * MTU);
	pair_check(p);
}

static void post_all(struct pair *p)
{
	for (uint32_t i = 0; i < COUNT; i++)
		pair_post_datagram(p, 0, SOURCE + i * MTU, MTU - i);
	pair_settle(p);
	assert_true(vb_cq_is_empty(p->side[0].cq));
}

static void assert_arrived(struct pair *p)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
		struct vb_wc wc = pair_completion(p, 1);
		assert_int_equal(wc.status, VB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, GRH + MTU - i);
		for (uint32_t n = 0; n < MTU - i; n++)
			assert_int_equal(p->side[1].memory[PLACE + i * 2 * MTU + GRH + n], byte_of(i * MTU + n));
	}
}

static void datagram__leaves_though_its_region_is_closed(void **state)
{
	for (int is_local = 0; is_local < 2; is_local++) {
		struct pair *p = open_blocked(is_local);
		post_all(p);
		close_region(p);
		assert_true(vb_kept_any(p->side[0].qp));
		unblock(p);
		assert_arrived(p);
		assert_false(vb_kept_any(p->side[0].qp));
		pair_close(p);
	}
}

/* It was posted by one who did not get the lane, and nobody has looked at it. */
static void datagram__that_only_rang_leaves(void **state)
{
	for (int is_local = 0; is_local < 2; is_local++) {
		struct pair *p = open_blocked(is_local);
		for (uint32_t i = 0; i < COUNT; i++)
			pair_post_datagram(p, 0, SOURCE + i * MTU, MTU - i);
		close_region(p);
		unblock(p);
		assert_arrived(p);
		pair_close(p);
	}
}

static void datagram__of_another_region_is_left_where_it_is(void **state)
{
	struct pair *p = open_blocked(true);
	post_all(p);
	vb_lane_keep_datagrams(p->side[0].lane, vb_mr_key(p->side[0].mr) ^ 0x100);
	assert_false(vb_kept_any(p->side[0].qp));
	unblock(p);
	assert_arrived(p);
	pair_close(p);
}

/* And what it names besides is not open either way. */
static void mistake__stays_one(void **state)
{
	for (int is_local = 0; is_local < 2; is_local++) {
		struct pair *p = open_blocked(is_local);
		struct vb_sge sges[] = { pair_sge(p, 0, SOURCE, 8), pair_sge(p, 0, SOURCE, 8) };
		struct vb_av av = pair_av(p, 0);
		struct vb_send_wr wr = { .opcode = VB_WR_SEND,
			.flags = VB_SEND_SIGNALED,
			.sges = sges,
			.sge_count = 2,
			.av = &av,
			.remote_qpn = vb_qp_number(p->side[1].qp),
			.remote_qkey = PAIR_QKEY };
		sges[1].lkey ^= 0x100;
		assert_int_equal(pair_try_post(p, 0, &wr), 0);
		close_region(p);
		unblock(p);
		assert_int_equal(pair_completion(p, 0).status, VB_WC_LOC_PROT_ERR);
		pair_close(p);
	}
}

static void qp__that_goes_keeps_nothing(void **state)
{
	static const enum vb_qp_state states[] = { VB_QPS_RESET, VB_QPS_ERR, VB_QPS_RTS };
	for (int i = 0; i < 6; i++) {
		struct pair *p = open_blocked(i % 2);
		post_all(p);
		close_region(p);
		if (states[i / 2] != VB_QPS_RTS) {
			pair_modify(p, 0, states[i / 2], 0);
			assert_false(vb_kept_any(p->side[0].qp));
			pair_check(p);
		}
		pair_close(p); /* ASan looks for what is left */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagram__leaves_though_its_region_is_closed),
		cmocka_unit_test(datagram__that_only_rang_leaves),
		cmocka_unit_test(datagram__of_another_region_is_left_where_it_is),
		cmocka_unit_test(mistake__stays_one),
		cmocka_unit_test(qp__that_goes_keeps_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
