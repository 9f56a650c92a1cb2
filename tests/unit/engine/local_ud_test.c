/* Datagrams that go as descriptors: what arrives, who is believed, and local peers that take none. That they do what
 * packets do is local_alike_test.c too. */
#include "pair.h"

enum { SOURCE = 0, PLACE = 400000, MTU = 1024, GRH = 40, BLOCKED_MS = 100 };

static struct pair *open_ud(bool is_local)
{
	struct pair *p = pair_open(VB_QP_UD, is_local, 0);
	for (uint32_t i = 0; i < 2 * MTU; i++)
		p->side[0].memory[SOURCE + i] = (uint8_t)(i * 7 + 1);
	return p;
}

static uint64_t counter(const struct pair *p, int of, enum vb_counter which)
{
	uint64_t values[VB_COUNTER_COUNT];
	vb_lane_counters(p->side[of].lane, values);
	return values[which];
}

static void assert_none(struct pair *p, int of)
{
	assert_true(vb_cq_is_empty(p->side[of].cq));
}

static unsigned completions(struct pair *p, int of, enum vb_wc_status status)
{
	struct vb_wc wc;
	unsigned count = 0;
	while (vb_cq_poll(p->side[of].cq, &wc, 1) == 1) {
		assert_int_equal(wc.status, status);
		count++;
	}
	return count;
}

static int post_to(struct pair *p, const struct vb_gid *gid, uint32_t qpn, uint32_t length)
{
	struct vb_sge sge = pair_sge(p, 0, SOURCE, length);
	struct vb_av av = { .sgid = p->side[0].gid, .dgid = *gid };
	struct vb_send_wr wr = { .opcode = VB_WR_SEND,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.av = &av,
		.remote_qpn = qpn,
		.remote_qkey = PAIR_QKEY };
	return pair_try_post(p, 0, &wr);
}

static void move_to_ipv6(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		p->side[i].gid = (struct vb_gid){ { 0xfd, [15] = (uint8_t)(i + 1) } };
	for (int i = 0; i < 4; i++)
		assert_int_equal(vb_nic_set_gid(p->side[i / 2].nic, i % 2, &p->side[i % 2].gid), 0);
	if (p->is_local)
		pair_be_local_peers(p);
}

/* ---- What arrives ------------------------------------------------------------------------------------------------ */

static void datagram__brings_its_header(void **state)
{
	static const uint32_t lengths[] = { 0, 1, VB_LOCAL_INLINE, VB_LOCAL_INLINE + 1, 500, MTU };
	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct pair *p[2] = { open_ud(false), open_ud(true) };
		uint32_t length = lengths[i / 2];
		struct vb_wc wc[2];
		for (int n = 0; n < 2; n++) {
			if (i % 2)
				move_to_ipv6(p[n]);
			pair_post_receive(p[n], 1, 5, PLACE, GRH + MTU);
			pair_post_datagram(p[n], 0, SOURCE, length);
			pair_settle(p[n]);
			wc[n] = pair_completion(p[n], 1);
			assert_int_equal(pair_completion(p[n], 0).status, VB_WC_SUCCESS);
			assert_int_equal(p[n]->descriptors, n);
		}
		assert_int_equal(wc[0].byte_len, wc[1].byte_len);
		assert_int_equal(wc[1].byte_len, GRH + length);
		assert_int_equal(wc[0].sl, wc[1].sl);
		assert_int_equal(wc[1].flags, VB_WC_GRH);
		assert_int_equal(wc[1].src_qpn, vb_qp_number(p[1]->side[0].qp));
		assert_memory_equal(p[0]->side[1].memory + PLACE, p[1]->side[1].memory + PLACE, GRH + MTU);
		pair_close(p[0]);
		pair_close(p[1]);
	}
}

static void datagram__that_is_refused_is_dropped(void **state)
{
	struct pair *p = open_ud(true);
	pair_post_datagram(p, 0, SOURCE, 8);
	pair_settle(p);
	assert_int_equal(counter(p, 1, VB_DROP_NO_RECV), 1);
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	p->side[1].qp->attr.qkey++;
	pair_post_datagram(p, 0, SOURCE, 8);
	pair_settle(p);
	assert_int_equal(counter(p, 1, VB_DROP_QKEY), 1);
	assert_int_equal(post_to(p, &p->side[1].gid, vb_qp_number(p->side[1].qp) ^ 1, 8), 0);
	pair_settle(p);
	assert_int_equal(counter(p, 1, VB_DROP_BAD_QPN), 1);
	assert_none(p, 1);
	p->side[1].qp->attr.qkey--;
	pair_post_datagram(p, 0, SOURCE, 9);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).status, VB_WC_LOC_LEN_ERR);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 4);
	pair_close(p);
}

static void datagram__with_the_qps_own_key(void **state)
{
	struct pair *p = open_ud(true);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
	struct vb_av av = pair_av(p, 0);
	struct vb_send_wr wr = { .opcode = VB_WR_SEND,
		.flags = VB_SEND_INLINE,
		.sge_count = 1,
		.av = &av,
		.remote_qpn = vb_qp_number(p->side[1].qp),
		.remote_qkey = 0x80000000 };
	sge.addr = (uintptr_t)p->side[0].memory;
	wr.sges = &sge;
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).wr_id, 5);
	assert_memory_equal(p->side[1].memory + PLACE + GRH, p->side[0].memory, 8);
	pair_close(p);
}

/* ---- Our own mistakes -------------------------------------------------------------------------------------------- */

static void mistake__stops_the_send_queue_alone(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_ud(true);
		for (unsigned n = 0; n < 3; n++)
			pair_post_receive(p, 1, n, PLACE, GRH + MTU);
		p->descriptor_room = 0;
		pair_post_datagram(p, 0, SOURCE, 8);
		struct vb_sge sge = pair_sge(p, 0, SOURCE, i ? MTU + 1 : 8);
		struct vb_av av = pair_av(p, 0);
		struct vb_send_wr wr = { .wr_id = 9,
			.opcode = VB_WR_SEND,
			.flags = VB_SEND_SIGNALED,
			.sges = &sge,
			.sge_count = 1,
			.av = &av,
			.remote_qpn = vb_qp_number(p->side[1].qp),
			.remote_qkey = PAIR_QKEY };
		if (i == 0)
			sge.lkey ^= 0x100;
		assert_int_equal(pair_try_post(p, 0, &wr), 0);
		pair_post_datagram(p, 0, SOURCE, 8);
		pair_settle(p);
		p->descriptor_room = PAIR_RING;
		pair_settle(p);
		assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
		struct vb_wc failed = pair_completion(p, 0);
		assert_int_equal(failed.wr_id, 9);
		assert_int_equal(failed.status, i ? VB_WC_LOC_LEN_ERR : VB_WC_LOC_PROT_ERR);
		assert_int_equal(completions(p, 0, VB_WC_WR_FLUSH_ERR), 1);
		assert_int_equal(vb_qp_state(p->side[0].qp), VB_QPS_SQE);
		assert_int_equal(completions(p, 1, VB_WC_SUCCESS), 1);
		pair_modify(p, 0, VB_QPS_RTS, 0);
		pair_post_datagram(p, 0, SOURCE, 8);
		pair_settle(p);
		assert_int_equal(completions(p, 1, VB_WC_SUCCESS), 1);
		pair_close(p);
	}
}

/* What is wrong is found where there is room first. What was before it goes on, what is behind it does not. */
static void mistake__is_found_at_another_local_peer(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_ud(true);
		struct vb_local_peer third;
		struct vb_descriptor descriptors[4];
		struct vb_local_room room = { .descriptors = descriptors, .descriptor_max = 4 };
		vb_local_peer_init(&third, p->side[0].lane, 3, 0);
		assert_int_equal(vb_lane_set_local_peer(p->side[0].lane, &p->side[1].gid, 3, &third), 0);
		pair_post_receive(p, 1, 5, PLACE, GRH + 8);
		p->descriptor_room = 0;
		pair_post_datagram(p, 0, SOURCE, 8);
		assert_int_equal(post_to(p, &p->side[1].gid, 3 << 16 | 7, 8), 0);
		assert_int_equal(post_to(p, &p->side[1].gid, 3 << 16 | 7, 0), 0);
		vb_send_wqe_at(&p->side[0].qp->sq, 1)->sges[0].lkey ^= 0x100;
		pair_settle(p);
		if (i) /* and some behind it at the first */
			pair_post_datagram(p, 0, SOURCE, 8);
		pair_settle(p);
		vb_local_transmit(&third, &room, p->now);
		assert_int_equal(room.descriptor_count, 0);
		assert_none(p, 0);
		p->descriptor_room = PAIR_RING;
		pair_settle(p);
		assert_int_equal(p->descriptors, 1);
		assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
		assert_int_equal(pair_completion(p, 0).status, VB_WC_LOC_PROT_ERR);
		assert_int_equal(completions(p, 0, VB_WC_WR_FLUSH_ERR), 1 + i);
		assert_true(vb_list_empty(&third.datagrams) && vb_list_empty(&p->side[0].other.datagrams));
		vb_local_lost(&third, p->now);
		pair_close(p);
	}
}

static void qp__that_goes_takes_what_waits_with_it(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct pair *p = open_ud(true);
		p->descriptor_room = 0;
		for (int n = 0; n < 3; n++)
			pair_post_datagram(p, 0, SOURCE, 8);
		pair_settle(p);
		assert_none(p, 0);
		if (i == 2)
			assert_int_equal(vb_qp_destroy(p->side[0].qp), 0);
		else
			pair_modify(p, 0, i ? VB_QPS_ERR : VB_QPS_RESET, 0);
		assert_int_equal(completions(p, 0, VB_WC_WR_FLUSH_ERR), i == 1 ? 3 : 0);
		p->descriptor_room = PAIR_RING;
		pair_check(p);
		pair_run(p, 2);
		assert_int_equal(p->descriptors, 0);
		if (i == 2)
			p->side[0].qp = pair_qp(&p->side[0], VB_QP_UD, NULL);
		pair_close(p);
	}
}

/* ---- Local peers that take none ---------------------------------------------------------------------------------- */

static void room__holds_the_sender_back(void **state)
{
	struct pair *p = open_ud(true);
	for (unsigned i = 0; i < 3; i++)
		pair_post_receive(p, 1, i, PLACE + i * 64, GRH + 8);
	p->descriptor_room = 0;
	for (uint32_t i = 0; i < 3; i++)
		pair_post_datagram(p, 0, SOURCE + i * 8, 8);
	pair_run(p, BLOCKED_MS / 2);
	assert_none(p, 0);
	p->descriptor_room = 1;
	pair_settle(p);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 3);
	for (uint32_t i = 0; i < 3; i++) { /* in order */
		assert_int_equal(pair_completion(p, 1).wr_id, i);
		assert_memory_equal(p->side[1].memory + PLACE + i * 64 + GRH, p->side[0].memory + SOURCE + i * 8, 8);
	}
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 0);
	pair_close(p);
}

static void blocked__local_peer_holds_up_nobody(void **state)
{
	struct vb_gid elsewhere = vb_gid_from_ipv4(10, 0, 0, 9);
	struct pair *p = open_ud(true);
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	p->descriptor_room = 0;
	pair_post_datagram(p, 0, SOURCE, 8);
	assert_int_equal(post_to(p, &elsewhere, 0x30005, 8), 0);
	pair_settle(p);
	assert_int_equal(counter(p, 0, VB_TX_PACKETS), 1); /* though the first waits */
	assert_none(p, 0);
	pair_run(p, BLOCKED_MS + 5);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 2);
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 1);
	for (int i = 0; i < 3; i++) { /* and the next at once */
		pair_post_datagram(p, 0, SOURCE, 8);
		pair_settle(p);
		assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 1);
	}
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 4);
	p->descriptor_room = 1;
	pair_post_datagram(p, 0, SOURCE, 8);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).wr_id, 5);
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 4);
	p->descriptor_room = 0; /* it has its time again */
	pair_post_datagram(p, 0, SOURCE, 8);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 1);
	pair_run(p, BLOCKED_MS / 2);
	assert_none(p, 0);
	pair_close(p);
}

/* Without being asked to transmit: a holder may know that there is no room. */
static void blocked__is_noticed_by_the_lanes_own_time(void **state)
{
	struct pair *p = open_ud(true);
	pair_post_datagram(p, 0, SOURCE, 8);
	vb_lane_transmit(p->side[0].lane, &p->batch, VB_BATCH_PACKETS, p->now);
	assert_true(vb_local_is_urgent(&p->side[0].other));
	unsigned turns = 0;
	for (; vb_local_is_urgent(&p->side[0].other); turns++) {
		struct vb_deadline deadline = vb_lane_next_deadline(p->side[0].lane);
		assert_true(deadline.is_set);
		p->now = deadline.at;
		pair_advance(p);
	}
	assert_int_equal(turns, 2);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 1);
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 1);
	assert_false(vb_lane_next_deadline(p->side[0].lane).is_set);
	pair_close(p);
}

/* Who stood still himself looks for room first. */
static void blocked__is_not_who_was_not_asked(void **state)
{
	struct pair *p = open_ud(true);
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	pair_post_datagram(p, 0, SOURCE, 8);
	vb_lane_transmit(p->side[0].lane, &p->batch, VB_BATCH_PACKETS, p->now);
	p->now = vb_time_add(p->now, VB_S);
	pair_advance(p);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).wr_id, 5);
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 0);
	pair_close(p);
}

static void death__completes_what_waits(void **state)
{
	struct pair *p = open_ud(true);
	p->descriptor_room = 0;
	for (int i = 0; i < 3; i++)
		pair_post_datagram(p, 0, SOURCE, 8);
	pair_settle(p);
	vb_local_lost(&p->side[0].other, p->now);
	pair_check(p);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 3);
	assert_int_equal(counter(p, 0, VB_DROP_LOCAL_PEER), 3);
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	pair_post_datagram(p, 0, SOURCE, 8); /* whoever has the slot then */
	pair_settle(p);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 1);
	assert_int_equal(p->descriptors, 0);
	pair_close(p);
}

/* ---- Ways -------------------------------------------------------------------------------------------------------- */

/* What went as packets, and may lie in the peer's socket yet, is not overtaken. */
static void way__changes_once_packets_have_arrived(void **state)
{
	struct pair *p = open_ud(false);
	struct vb_peer_facts facts = { .is_verbena = true, .receive_buffer = 1 << 20 };
	vb_lane_set_peer(p->side[0].lane, &p->side[1].gid, &facts);
	for (unsigned i = 0; i < 4; i++)
		pair_post_receive(p, 1, i, PLACE, GRH + 8);
	pair_post_datagram(p, 0, SOURCE, 8);
	pair_settle(p);
	pair_be_local_peers(p);
	p->is_local = true;
	for (unsigned i = 0; i < 3; i++)
		pair_post_datagram(p, 0, SOURCE, 8);
	pair_step_wire(p, 0);
	assert_int_equal(counter(p, 0, VB_TX_PACKETS), 2); /* the first, and the question whether it has arrived */
	pair_settle(p);
	assert_int_equal(p->descriptors, 3);
	assert_int_equal(completions(p, 0, VB_WC_SUCCESS), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pair_completion(p, 1).wr_id, i);
	pair_close(p);
}

/* One that is posted while the queue is looked through has not been looked at: the next look finds its way. */
static void way__of_what_is_posted_meanwhile_is_looked_for_later(void **state)
{
	struct pair *p = open_ud(true);
	const struct vb_qp *qp = p->side[0].qp;
	for (unsigned i = 0; i < 2; i++)
		pair_post_datagram(p, 0, SOURCE, 8);
	for (uint32_t tail = 0; tail <= 2; tail++) {
		vb_local_route_datagrams(p->side[0].qp, tail);
		assert_int_equal(qp->requester.cursor, tail);
	}
	pair_settle(p);
	assert_int_equal(p->descriptors, 2);
	pair_close(p);
}

static void way__to_another_device_is_the_wire(void **state)
{
	struct pair *p = open_ud(true);
	assert_int_equal(vb_nic_set_gid(p->side[0].nic, 1, NULL), 0);
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	pair_post_datagram(p, 0, SOURCE, 8);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).wr_id, 5);
	assert_int_equal(p->descriptors, 0);
	pair_close(p);
}

/* ---- Local peers that lie ---------------------------------------------------------------------------------------- */

static struct vb_descriptor forged(const struct pair *p)
{
	struct vb_descriptor d = { .opcode = VB_UD_SEND_ONLY,
		.place = VB_LOCAL_INLINED,
		.dest_qpn = vb_qp_number(p->side[1].qp),
		.src_qpn = 1 << 16 | 77,
		.qkey = PAIR_QKEY,
		.length = 8 };
	memcpy(d.ipv4.source, p->side[0].gid.raw + 12, 4);
	memcpy(d.ipv4.destination, p->side[1].gid.raw + 12, 4);
	return d;
}

static void hand_over(struct pair *p, const struct vb_descriptor *d)
{
	struct vb_answer answers[4];
	struct vb_descriptor descriptors[4];
	struct vb_local_room room = pair_room(p, &p->side[1].out, descriptors, answers);
	struct vb_local_heap heap = { p->side[0].out.heap, PAIR_HEAP };
	assert_int_equal(vb_local_receive(&p->side[1].other, d, 1, &heap, &room, p->now), 1);
	assert_int_equal(room.answer_count, 0);
	pair_check(p);
}

static void lie(struct pair *p, const struct vb_descriptor *d, enum vb_counter counted)
{
	uint64_t before = counter(p, 1, counted);
	hand_over(p, d);
	assert_int_equal(counter(p, 1, counted), before + 1);
	assert_none(p, 1);
}

static void lie__about_who_he_is(void **state)
{
	struct pair *p = open_ud(true);
	pair_post_receive(p, 1, 5, PLACE, GRH + MTU);
	struct vb_descriptor d = forged(p);
	d.src_qpn = 2 << 16 | 77;
	lie(p, &d, VB_DROP_ADDRESS);
	d.src_qpn = 0xff010000u | 77;
	lie(p, &d, VB_DROP_ADDRESS);
	d = forged(p);
	d.ipv4.source[3] = 9;
	lie(p, &d, VB_DROP_ADDRESS);
	d = forged(p);
	d.ipv4.destination[3] = 9;
	lie(p, &d, VB_DROP_ADDRESS);
	d = forged(p);
	hand_over(p, &d);
	assert_int_equal(pair_completion(p, 1).src_qpn, 1 << 16 | 77);
	pair_close(p);
}

/* An address that our device has not, but that the holder knows him by. */
static void truth__of_another_device_is_believed(void **state)
{
	struct pair *p = open_ud(true);
	struct vb_descriptor d = forged(p);
	assert_int_equal(vb_nic_set_gid(p->side[1].nic, 1, NULL), 0);
	pair_post_receive(p, 1, 5, PLACE, GRH + 8);
	hand_over(p, &d);
	assert_int_equal(completions(p, 1, VB_WC_SUCCESS), 1);
	assert_int_equal(vb_lane_set_local_peer(p->side[1].lane, &p->side[0].gid, 1, NULL), 0);
	lie(p, &d, VB_DROP_ADDRESS);
	pair_close(p);
}

static void lie__about_where_it_is(void **state)
{
	struct pair *p = open_ud(true);
	pair_post_receive(p, 1, 5, PLACE, GRH + MTU);
	for (int i = 0; i < 6; i++) {
		struct vb_descriptor d = forged(p);
		d.length = i == 0 ? VB_LOCAL_INLINE + 1 : i == 1 ? VB_MAX_MTU + 1 : 100;
		d.place = i == 0 ? VB_LOCAL_INLINED : i == 5 ? VB_LOCAL_LENT : VB_LOCAL_HEAPED;
		d.heap.at = i == 2 ? PAIR_HEAP - 99 : i == 3 ? PAIR_HEAP - 131 : i == 4 ? UINT32_MAX : 0;
		d.flags = i == 3 ? VB_LOCAL_LONG_ADDRESSES : 0;
		lie(p, &d, VB_DROP_LENGTH);
	}
	struct vb_descriptor d = forged(p);
	d.flags = VB_LOCAL_LONG_ADDRESSES;
	lie(p, &d, VB_DROP_LENGTH);
	d.place = VB_LOCAL_NOWHERE;
	d.heap.at = PAIR_HEAP - 31;
	lie(p, &d, VB_DROP_LENGTH);
	pair_close(p);
}

static void lie__about_what_it_is(void **state)
{
	struct pair *p = open_ud(true);
	struct vb_descriptor d = forged(p);
	d.opcode = VB_UD | VB_WRITE_ONLY;
	lie(p, &d, VB_DROP_TRANSPORT);
	d = forged(p);
	d.dest_qpn = VB_QPN_MULTICAST;
	lie(p, &d, VB_DROP_BAD_QPN);
	struct vb_qp *connected = pair_qp(&p->side[1], VB_QP_RC, NULL);
	d.dest_qpn = vb_qp_number(connected);
	lie(p, &d, VB_DROP_TRANSPORT);
	assert_int_equal(vb_qp_destroy(connected), 0);
	pair_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagram__brings_its_header),
		cmocka_unit_test(datagram__that_is_refused_is_dropped),
		cmocka_unit_test(datagram__with_the_qps_own_key),
		cmocka_unit_test(mistake__stops_the_send_queue_alone),
		cmocka_unit_test(mistake__is_found_at_another_local_peer),
		cmocka_unit_test(qp__that_goes_takes_what_waits_with_it),
		cmocka_unit_test(room__holds_the_sender_back),
		cmocka_unit_test(blocked__local_peer_holds_up_nobody),
		cmocka_unit_test(blocked__is_noticed_by_the_lanes_own_time),
		cmocka_unit_test(blocked__is_not_who_was_not_asked),
		cmocka_unit_test(death__completes_what_waits),
		cmocka_unit_test(way__changes_once_packets_have_arrived),
		cmocka_unit_test(way__of_what_is_posted_meanwhile_is_looked_for_later),
		cmocka_unit_test(way__to_another_device_is_the_wire),
		cmocka_unit_test(lie__about_who_he_is),
		cmocka_unit_test(truth__of_another_device_is_believed),
		cmocka_unit_test(lie__about_where_it_is),
		cmocka_unit_test(lie__about_what_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
