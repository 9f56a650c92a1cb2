/* Ids, their numbers and how listeners are chosen: cm.c. */
#include "cm/id.h"
#include "rig.h"

enum { MANY = 200000 };

static void numbers__have_the_slot_above_and_do_not_come_again_soon(void **state)
{
	static uint8_t seen[1 << 24];
	for (unsigned i = 0; i < MANY; i++) {
		struct vb_cm_id *id = vb_cm_id_create(cms[A], NULL);
		vb_cm_id_number(id);
		assert_int_equal(id->local_id >> 24, 5);
		assert_int_equal(seen[id->local_id & 0xFFFFFF]++, 0);
		assert_ptr_equal(vb_cm_find_local(cms[A], id->local_id), id);
		vb_cm_id_destroy(id, now);
	}
}

static struct vb_cm_id *listen_at(const struct vb_gid *address)
{
	struct vb_cm_id *id = vb_cm_id_create(cms[A], NULL);
	assert_int_equal(vb_cm_listen(id, SERVICE, address), 0);
	return id;
}

static void listener__closest_to_the_address_is_found(void **state)
{
	struct vb_gid any = { { 0 } }, any_ipv4 = vb_gid_from_ipv4(0, 0, 0, 0), here = vb_gid_from_ipv4(10, 0, 0, 1);
	struct vb_gid elsewhere = vb_gid_from_ipv4(10, 0, 0, 9), ipv6 = { { 0xfe, 0x80, [15] = 1 } };
	struct vb_cm_id *at_ipv4 = listen_at(&any_ipv4);
	assert_null(vb_cm_find_listener(cms[A], SERVICE, &ipv6));
	struct vb_cm_id *at_any = listen_at(&any), *at_here = listen_at(&here);
	assert_ptr_equal(vb_cm_find_listener(cms[A], SERVICE, &here), at_here);
	assert_ptr_equal(vb_cm_find_listener(cms[A], SERVICE, &elsewhere), at_ipv4);
	assert_ptr_equal(vb_cm_find_listener(cms[A], SERVICE, &ipv6), at_any);
	assert_null(vb_cm_find_listener(cms[A], SERVICE + 1, &here));
	vb_cm_id_destroy(at_here, now);
	assert_ptr_equal(vb_cm_find_listener(cms[A], SERVICE, &here), at_ipv4);
}

/* A QP says which adapter it is of: the same number may be another's. */
static void peer__is_found_by_all_three_that_name_its_qp(void **state)
{
	struct vb_cm_id *id = vb_cm_id_create(cms[A], NULL);
	id->remote_qpn = 7;
	id->remote_guid = 0xB;
	id->path = path_from(A);
	vb_cm_id_link_qp(id);
	assert_ptr_equal(vb_cm_find_qp(cms[A], &gids[B], 0xB, 7), id);
	assert_null(vb_cm_find_qp(cms[A], &gids[B], 0xC, 7));
	assert_null(vb_cm_find_qp(cms[A], &gids[A], 0xB, 7));
	assert_null(vb_cm_find_qp(cms[A], &gids[B], 0xB, 8));
	assert_null(vb_cm_find_qp(cms[A], &gids[B], 0xB, 0));
	vb_cm_id_destroy(id, now);
	assert_null(vb_cm_find_qp(cms[A], &gids[B], 0xB, 7));
}

static void spans__are_bounded_whatever_a_peer_says(void **state)
{
	assert_true(vb_cm_span(0) == 4096 * VB_NS);
	assert_true(vb_cm_span(14) == (vb_time)4096 * VB_NS << 14);
	assert_true(vb_cm_span(31) == vb_cm_span(25) && vb_cm_span(255) == vb_cm_span(25));
	assert_true(vb_cm_span(31) < 140 * VB_S);
	assert_true(vb_cm_period(0, 0) == 5 * VB_MS);
	assert_true(vb_cm_period(14, 20) == vb_cm_span(14) + vb_cm_span(20));
}

/* 12.6.7.2: who gives up says whose he is, for the peer may know him by nothing else. */
static void rejection__for_want_of_time_names_the_adapter(void **state)
{
	struct vb_cm_id *id = vb_cm_id_create(cms[A], NULL);
	id->local_guid = 0x0102030405060708;
	struct vb_cm_message late = vb_cm_rejection(id, VB_CM_REJ_TIMEOUT),
			     other = vb_cm_rejection(id, VB_CM_REJ_CONSUMER);
	const uint8_t guid[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	assert_int_equal(late.rej.ari_length, 8);
	assert_memory_equal(late.rej.ari, guid, 8);
	assert_int_equal(other.rej.ari_length, 0);
	vb_cm_id_destroy(id, now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers__have_the_slot_above_and_do_not_come_again_soon),
		TEST(listener__closest_to_the_address_is_found),
		TEST(peer__is_found_by_all_three_that_name_its_qp),
		TEST(spans__are_bounded_whatever_a_peer_says),
		TEST(rejection__for_want_of_time_names_the_adapter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
