/* Middles that come as a run: whatever is particular about one of them, it is treated as if it had come by itself. And
 * packets whose payload was cut off. */
#include "rig.h"

enum { PACKETS = 8, LENGTH = PACKETS * RIG_MTU };

struct scene {
	struct rig *rig;
	struct vb_qp *qp;
	struct vb_path path;
	struct vb_packet train[PACKETS];
	uint8_t payload[LENGTH];
};

/* A WRITE of eight packets to the first half of the rig's memory, as a train that has not come yet. */
static struct scene *open_scene(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	s->rig = rig_open(16);
	s->qp = rig_connected(s->rig, NULL);
	s->path = (struct vb_path){ .src = s->qp->attr.av.dgid, .dst = s->qp->attr.av.sgid };
	for (uint32_t i = 0; i < LENGTH; i++)
		s->payload[i] = (uint8_t)(i / RIG_MTU + 1);
	for (uint32_t i = 0; i < PACKETS; i++) {
		s->train[i] = (struct vb_packet){
			.opcode = i == 0            ? VB_WRITE_FIRST
				  : i + 1 < PACKETS ? VB_WRITE_MIDDLE
						    : VB_WRITE_LAST,
			.psn = RIG_RQ_PSN + i,
			.dest_qpn = vb_qp_number(s->qp),
			.pkey = VB_PKEY_DEFAULT,
			.payload = s->payload + i * RIG_MTU,
			.payload_length = RIG_MTU,
			.ackreq = i + 1 == PACKETS,
		};
	}
	s->train[0].va = (uintptr_t)s->rig->memory;
	s->train[0].rkey = vb_mr_key(s->rig->mr);
	s->train[0].dma_length = LENGTH;
	return s;
}

static void close_scene(struct scene *s)
{
	assert_int_equal(vb_qp_destroy(s->qp), 0);
	rig_close(s->rig);
	free(s);
}

static void receive(struct scene *s, unsigned from, unsigned to)
{
	vb_lane_receive(s->rig->lane, &s->path, s->train + from, to - from, s->rig->now);
	vb_lane_check(s->rig->lane);
}

/* Of the message's packets the first ones lie in memory, and no others; the next is awaited. */
static void assert_landed(const struct scene *s, unsigned packets)
{
	static const uint8_t nothing[LENGTH];
	assert_memory_equal(s->rig->memory, s->payload, packets * RIG_MTU);
	assert_memory_equal(s->rig->memory + packets * RIG_MTU, nothing, LENGTH - packets * RIG_MTU);
	assert_int_equal(s->qp->responder.expected_psn, RIG_RQ_PSN + packets);
}

static const struct vb_packet *answer(struct scene *s)
{
	assert_int_equal(rig_transmit(s->rig), 1);
	return &s->rig->batch.out[0].packet;
}

static void run__train_lands_and_is_counted(void **state)
{
	struct scene *s = open_scene();
	receive(s, 0, PACKETS);
	assert_landed(s, PACKETS);
	const struct vb_packet *ack = answer(s);
	assert_int_equal(ack->psn, RIG_RQ_PSN + PACKETS - 1);
	assert_int_equal(ack->syndrome & VB_AETH_TYPE_MASK, VB_AETH_ACK);
	assert_int_equal(rig_counter(s->rig, VB_RX_PACKETS), PACKETS);
	assert_int_equal(rig_counter(s->rig, VB_RX_BYTES), LENGTH);
	close_scene(s);
}

static void run__gap_ends_it_with_a_nak(void **state)
{
	struct scene *s = open_scene();
	s->train[4].psn++;
	receive(s, 0, 5);
	assert_landed(s, 4);
	const struct vb_packet *nak = answer(s);
	assert_int_equal(nak->psn, RIG_RQ_PSN + 4);
	assert_int_equal(nak->syndrome, VB_NAK_PSN_SEQUENCE);
	close_scene(s);
}

static void run__another_partition_or_qp_ends_it(void **state)
{
	struct scene *s = open_scene();
	s->train[3].pkey = 1;
	receive(s, 0, 4);
	assert_landed(s, 3);
	assert_int_equal(rig_counter(s->rig, VB_DROP_PKEY), 1);
	s->train[3].pkey = VB_PKEY_DEFAULT;
	s->train[5].dest_qpn++;
	receive(s, 3, 6);
	assert_landed(s, 5);
	assert_int_equal(rig_counter(s->rig, VB_DROP_BAD_QPN), 1);
	close_scene(s);
}

static void run__stranger_behind_a_duplicate_is_refused(void **state)
{
	struct scene *s = open_scene();
	receive(s, 0, 3);
	s->path.src = vb_gid_from_ipv4(10, 0, 0, 99);
	receive(s, 2, 6);
	assert_landed(s, 3);
	assert_int_equal(rig_counter(s->rig, VB_DROP_ADDRESS), 4);
	close_scene(s);
}

static void run__packet_that_asks_is_answered(void **state)
{
	struct scene *s = open_scene();
	s->train[3].ackreq = true;
	receive(s, 0, 6);
	assert_landed(s, 6);
	assert_int_equal(answer(s)->psn, RIG_RQ_PSN + 3);
	close_scene(s);
}

static void run__message_longer_than_it_said_is_refused(void **state)
{
	struct scene *s = open_scene();
	s->train[0].dma_length = 4 * RIG_MTU;
	receive(s, 0, 6);
	assert_landed(s, 3);
	assert_int_equal(answer(s)->syndrome, VB_NAK_INVALID_REQUEST);
	close_scene(s);
}

static void run__key_closed_between_trains_is_refused(void **state)
{
	struct scene *s = open_scene();
	receive(s, 0, 3);
	assert_int_equal(vb_mr_invalidate(s->rig->mr), 0);
	receive(s, 3, 6);
	assert_landed(s, 3);
	assert_int_equal(answer(s)->syndrome, VB_NAK_REMOTE_ACCESS);
	close_scene(s);
}

static void receive_trimmed(struct scene *s, unsigned number)
{
	vb_lane_receive_trimmed(s->rig->lane, &s->path, &s->train[number], s->rig->now);
	vb_lane_check(s->rig->lane);
}

static void assert_asks_for(struct scene *s, unsigned number)
{
	const struct vb_packet *nak = answer(s);
	assert_int_equal(nak->psn, RIG_RQ_PSN + number);
	assert_int_equal(nak->syndrome, VB_NAK_PSN_SEQUENCE);
}

static void trimmed__packet_is_asked_for_at_once(void **state)
{
	struct scene *s = open_scene();
	receive(s, 0, 3);
	receive_trimmed(s, 3);
	assert_landed(s, 3); /* its payload is not there */
	assert_asks_for(s, 3);
	receive(s, 3, PACKETS);
	assert_landed(s, PACKETS);
	assert_int_equal(answer(s)->psn, RIG_RQ_PSN + PACKETS - 1);
	close_scene(s);
}

static void trimmed__packet_ahead_of_others_asks_for_the_expected_one(void **state)
{
	struct scene *s = open_scene();
	receive(s, 0, 3);
	receive_trimmed(s, 5);
	assert_asks_for(s, 3);
	receive_trimmed(s, 6); /* which the same answer tells */
	assert_int_equal(rig_transmit(s->rig), 0);
	assert_int_equal(rig_counter(s->rig, VB_NAK_SENT), 1);
	close_scene(s);
}

static void trimmed__duplicate_says_nothing(void **state)
{
	struct scene *s = open_scene();
	receive(s, 0, 3);
	receive_trimmed(s, 2);
	assert_int_equal(rig_transmit(s->rig), 0);
	assert_int_equal(rig_counter(s->rig, VB_DUPLICATES), 1);
	assert_landed(s, 3);
	close_scene(s);
}

static void trimmed__packet_of_a_stranger_is_refused(void **state)
{
	struct scene *s = open_scene();
	s->path.src = vb_gid_from_ipv4(10, 0, 0, 99);
	receive_trimmed(s, 0);
	assert_int_equal(rig_counter(s->rig, VB_DROP_ADDRESS), 1);
	s->path.src = s->qp->attr.av.dgid;
	s->train[0].pkey = 1;
	receive_trimmed(s, 0);
	assert_int_equal(rig_counter(s->rig, VB_DROP_PKEY), 1);
	s->train[0].pkey = VB_PKEY_DEFAULT;
	s->train[0].opcode = VB_ACKNOWLEDGE;
	receive_trimmed(s, 0);
	s->train[0].opcode = VB_UC | VB_WRITE_FIRST;
	receive_trimmed(s, 0);
	assert_int_equal(rig_counter(s->rig, VB_DROP_TRANSPORT), 2);
	s->train[0].dest_qpn = VB_QPN_MULTICAST;
	receive_trimmed(s, 0);
	s->train[0].dest_qpn = vb_qp_number(s->qp) + 1;
	receive_trimmed(s, 0);
	assert_int_equal(rig_counter(s->rig, VB_DROP_BAD_QPN), 2);
	assert_int_equal(rig_transmit(s->rig), 0);
	close_scene(s);
}

static void trimmed__packet_of_a_qp_that_failed_is_dropped(void **state)
{
	struct scene *s = open_scene();
	rig_modify(s->rig, s->qp, VB_QPS_ERR, 0);
	receive_trimmed(s, 0);
	assert_int_equal(rig_counter(s->rig, VB_DROP_QP_STATE), 1);
	assert_int_equal(rig_transmit(s->rig), 0);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__train_lands_and_is_counted),
		cmocka_unit_test(run__gap_ends_it_with_a_nak),
		cmocka_unit_test(run__another_partition_or_qp_ends_it),
		cmocka_unit_test(run__stranger_behind_a_duplicate_is_refused),
		cmocka_unit_test(run__packet_that_asks_is_answered),
		cmocka_unit_test(run__message_longer_than_it_said_is_refused),
		cmocka_unit_test(run__key_closed_between_trains_is_refused),
		cmocka_unit_test(trimmed__packet_is_asked_for_at_once),
		cmocka_unit_test(trimmed__packet_ahead_of_others_asks_for_the_expected_one),
		cmocka_unit_test(trimmed__duplicate_says_nothing),
		cmocka_unit_test(trimmed__packet_of_a_stranger_is_refused),
		cmocka_unit_test(trimmed__packet_of_a_qp_that_failed_is_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
