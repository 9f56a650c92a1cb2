/* Which peers a lane wants as local peers, and who waits until its holder has answered. */
#include "pair.h"

static struct pair *open_wanting(enum vb_qp_type type)
{
	struct pair *p = pair_open_lanes(false, 0);
	p->is_local = true;
	for (int i = 0; i < 2; i++) {
		p->side[i].lane->meets_local_peers = true;
		p->side[i].qp = pair_qp(&p->side[i], type, NULL);
	}
	return p;
}

static void assert_wanted(struct pair *p, int of)
{
	struct vb_gid gid;
	uint8_t slot;
	assert_true(vb_lane_next_wanted_peer(p->side[of].lane, &gid, &slot));
	assert_true(vb_gid_equal(&gid, &p->side[!of].gid));
	assert_int_equal(slot, 2 - of);
}

static void assert_no_wanted(struct pair *p, int of)
{
	struct vb_gid gid;
	uint8_t slot;
	assert_false(vb_lane_next_wanted_peer(p->side[of].lane, &gid, &slot));
}

static void answer(struct pair *p, int of, struct vb_local_peer *peer)
{
	assert_int_equal(vb_lane_set_local_peer(p->side[of].lane, &p->side[!of].gid, (uint8_t)(2 - of), peer), 0);
	pair_check(p);
}

static void again(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		pair_modify(p, i, VB_QPS_RESET, 0);
	pair_connect(p);
}

static void wanted__holds_back_what_is_first(void **state)
{
	static const enum vb_qp_type types[] = { VB_QP_RC, VB_QP_UC };
	for (int i = 0; i < 4; i++) {
		struct pair *p = open_wanting(types[i % 2]);
		pair_connect(p);
		pair_post_receive(p, 1, 5, 0, 8);
		pair_post(p, 0, VB_WR_SEND, 0, 8, 0);
		pair_settle(p);
		assert_true(vb_cq_is_empty(p->side[1].cq));
		for (int of = 0; of < 2; of++) {
			assert_wanted(p, of);
			assert_no_wanted(p, of);
		}
		pair_settle(p);
		assert_true(vb_cq_is_empty(p->side[1].cq));
		for (int of = 0; of < 2; of++)
			answer(p, of, i < 2 ? &p->side[of].other : NULL);
		pair_settle(p);
		assert_int_equal(pair_completion(p, 1).wr_id, 5);
		assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
		assert_int_equal(p->descriptors, i < 2);
		pair_close(p);
	}
}

static void wanted__is_made_once_at_a_time(void **state)
{
	struct pair *p = open_wanting(VB_QP_RC);
	pair_connect(p);
	again(p);
	assert_wanted(p, 0);
	again(p);
	assert_no_wanted(p, 0);
	answer(p, 0, NULL);
	again(p); /* somebody else may have the slot by now */
	assert_wanted(p, 0);
	answer(p, 0, &p->side[0].other);
	again(p);
	assert_no_wanted(p, 0);
	answer(p, 0, NULL);
	again(p);
	assert_wanted(p, 0);
	pair_close(p);
}

static void wanted__that_was_answered_before_it_was_taken_is_none(void **state)
{
	struct pair *p = open_wanting(VB_QP_RC);
	pair_connect(p);
	answer(p, 0, &p->side[0].other);
	assert_no_wanted(p, 0);
	pair_close(p);
}

static void wanted__does_not_hold_back_who_goes_on(void **state)
{
	struct pair *p = open_wanting(VB_QP_RC);
	pair_connect(p);
	for (int of = 0; of < 2; of++)
		answer(p, of, NULL);
	pair_post(p, 0, VB_WR_RDMA_WRITE, 0, 8, 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
	struct vb_qp *first = p->side[0].qp;
	p->side[0].qp = pair_qp(&p->side[0], VB_QP_RC, NULL);
	pair_to_rtr(p, 0);
	assert_wanted(p, 0);
	struct vb_qp *second = p->side[0].qp;
	p->side[0].qp = first;
	pair_post(p, 0, VB_WR_RDMA_WRITE, 0, 8, 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
	assert_int_equal(vb_qp_destroy(second), 0);
	pair_close(p);
}

static void wanted__of_a_qp_that_goes_holds_nobody(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_wanting(VB_QP_RC);
		pair_connect(p);
		pair_post(p, 0, VB_WR_RDMA_WRITE, 0, 8, 0);
		pair_settle(p);
		pair_modify(p, 0, i ? VB_QPS_ERR : VB_QPS_RESET, 0);
		answer(p, 0, &p->side[0].other);
		pair_settle(p);
		assert_int_equal(p->descriptors, 0);
		pair_close(p);
	}
}

static void wanted__of_a_datagram_is_made_once(void **state)
{
	struct pair *p = open_wanting(VB_QP_UD);
	pair_connect(p);
	assert_no_wanted(p, 0);
	pair_post_receive(p, 1, 5, 0, 48);
	pair_post_receive(p, 1, 6, 0, 48);
	pair_post_datagram(p, 0, 0, 8);
	pair_settle(p);
	assert_true(vb_cq_is_empty(p->side[1].cq));
	assert_wanted(p, 0);
	answer(p, 0, NULL);
	pair_post_datagram(p, 0, 0, 8);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).wr_id, 5);
	assert_int_equal(pair_completion(p, 1).wr_id, 6);
	assert_no_wanted(p, 0);
	pair_close(p);
}

static void wanted__that_is_put_off_holds_back_who_is_connected(void **state)
{
	struct pair *p = open_wanting(VB_QP_RC);
	pair_connect(p);
	pair_post(p, 0, VB_WR_RDMA_WRITE, 0, 8, 0);
	pair_settle(p);
	for (int of = 0; of < 2; of++) {
		assert_wanted(p, of);
		for (int i = 0; i < 2; i++)
			vb_lane_put_off_local_peer(p->side[of].lane, &p->side[!of].gid, (uint8_t)(2 - of));
	}
	assert_no_wanted(p, 0);
	pair_settle(p);
	assert_true(vb_cq_is_empty(p->side[0].cq));
	for (int of = 0; of < 2; of++)
		answer(p, of, &p->side[of].other);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
	assert_int_equal(p->descriptors, 1);
	pair_close(p);
}

static void wanted__that_is_put_off_lets_datagrams_go_as_packets(void **state)
{
	struct pair *p = open_wanting(VB_QP_UD);
	pair_connect(p);
	for (unsigned i = 0; i < 3; i++)
		pair_post_receive(p, 1, i, 0, 48);
	pair_post_datagram(p, 0, 0, 8);
	pair_settle(p);
	assert_wanted(p, 0);
	vb_lane_put_off_local_peer(p->side[0].lane, &p->side[1].gid, 2);
	pair_settle(p);
	pair_post_datagram(p, 0, 0, 8);
	pair_settle(p);
	assert_no_wanted(p, 0);
	assert_int_equal(p->descriptors, 0);
	answer(p, 0, &p->side[0].other);
	pair_post_datagram(p, 0, 0, 8);
	pair_settle(p);
	assert_int_equal(p->descriptors, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pair_completion(p, 1).wr_id, i);
	pair_close(p);
}

static void wanted__is_not_made_for_a_holder_who_does_not_ask(void **state)
{
	struct pair *p = open_wanting(VB_QP_RC);
	p->side[0].lane->meets_local_peers = false;
	pair_connect(p);
	assert_no_wanted(p, 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, 0, 8, 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
	pair_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wanted__holds_back_what_is_first),
		cmocka_unit_test(wanted__is_made_once_at_a_time),
		cmocka_unit_test(wanted__that_was_answered_before_it_was_taken_is_none),
		cmocka_unit_test(wanted__does_not_hold_back_who_goes_on),
		cmocka_unit_test(wanted__of_a_qp_that_goes_holds_nobody),
		cmocka_unit_test(wanted__of_a_datagram_is_made_once),
		cmocka_unit_test(wanted__that_is_put_off_holds_back_who_is_connected),
		cmocka_unit_test(wanted__that_is_put_off_lets_datagrams_go_as_packets),
		cmocka_unit_test(wanted__is_not_made_for_a_holder_who_does_not_ask),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
