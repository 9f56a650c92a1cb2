/* Requests as packets: the Middles of a message leave as a run, and as if each had left by itself. */
#include <errno.h>
#include "rig.h"

enum { PACKETS = 8, LENGTH = PACKETS * RIG_MTU };

/* What leaves is a First, Middles one behind the other, and a Last that asks for the ack. */
static void requester__message_leaves_packet_by_packet(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, LENGTH);
	rig_post(qp,
		&(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1, .remote_addr = 4096 });
	assert_int_equal(rig_transmit(rig), PACKETS);
	for (uint32_t i = 0; i < PACKETS; i++) {
		const struct vb_outgoing *out = &rig->batch.out[i];
		assert_int_equal(out->packet.opcode, i == 0            ? VB_WRITE_FIRST
						     : i + 1 < PACKETS ? VB_WRITE_MIDDLE
								       : VB_WRITE_LAST);
		assert_int_equal(out->packet.psn, RIG_SQ_PSN + i);
		assert_int_equal(out->packet.ackreq, i + 1 == PACKETS);
		assert_int_equal(out->packet.payload_length, RIG_MTU);
		assert_int_equal(out->iov_count, 1);
		assert_ptr_equal(rig->batch.iov[out->iov_first].base, rig->memory + i * RIG_MTU);
	}
	assert_int_equal(vb_roce(qp)->flight.out, PACKETS * (RIG_MTU + VB_PACKET_OVERHEAD));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

/* The second request is to fail, and nothing behind it goes on, though the third has Middles left and its newest packet
 * leaves again. */
static void probe__of_the_newest_packet_begins_no_run(void **state)
{
	struct rig *rig = rig_open(16);
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 4 * RIG_MTU);
	for (int i = 0; i < 3; i++)
		rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1 });
	assert_int_equal(vb_lane_transmit(rig->lane, &rig->batch, 10, rig->now), 10);
	rig->batch.completions[5].error = EFAULT;
	vb_lane_transmit_done(rig->lane, rig->batch.completions, 10, rig->now);
	assert_int_equal(rig_transmit(rig), 0);
	rig->now += 2 * VB_MS;
	vb_lane_advance(rig->lane, rig->now);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(rig->batch.out[0].packet.psn, RIG_SQ_PSN + 9);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe__of_the_newest_packet_begins_no_run),
		cmocka_unit_test(requester__message_leaves_packet_by_packet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
