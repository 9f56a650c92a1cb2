/* Two ends with two links between them, one for each subnet. */
#ifndef VB_TESTS_TWO_H
#define VB_TESTS_TWO_H

#include "rig.h"
#include "roce/failover.h"
#include "roce/multipath.h"
#include "roce/selective.h"

enum { STEP_US = 50, MESSAGE = 4 * RIG_MTU };
#define STEP (STEP_US * VB_US)

struct end {
	struct rig *rig;
	struct vb_qp *qp;
	bool hears[3];         /* what comes by that link */
	unsigned deaf_to;      /* so many further addresses that come next are lost */
	unsigned deaf_to_data; /* and so many requests and responses, each second one */
	unsigned done, posted;
	unsigned left[256]; /* packets of each opcode, ever */
	unsigned data[3];   /* and with a payload, by each link */
	uint32_t longest;   /* payload that has left */
};

struct two {
	struct end end[2];
	vb_time now;
	unsigned steps, slowness; /* the second end has a turn each so many steps */
	uint32_t carried;         /* on each link, behind the longest headers; longer packets are lost */
	uint32_t carried_from[2]; /* the same, of what an end sends; 0: no less */
};

static inline struct vb_gid address(unsigned end, unsigned link)
{
	return vb_gid_from_ipv4(10, (uint8_t)(link + 1), 0, (uint8_t)(end + 1));
}

static inline void connect_end(struct end *end, unsigned self, uint32_t dest_qpn)
{
	struct vb_qp_attr attr = rig_attr(VB_QPS_RTR);
	attr.dest_qpn = dest_qpn;
	attr.rq_psn = RIG_SQ_PSN;
	attr.av = (struct vb_av){ .sgid = address(self, 0), .dgid = address(1 - self, 0) };
	rig_modify(end->rig, end->qp, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	assert_int_equal(vb_qp_modify(end->qp, &attr,
				 VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
					 VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER,
				 end->rig->now),
		0);
	attr.state = VB_QPS_RTS;
	assert_int_equal(vb_qp_modify(end->qp, &attr,
				 VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
					 VB_QP_MAX_QP_RD_ATOMIC,
				 end->rig->now),
		0);
}

/* addresses: of each end, how many it may use; 0: it does not fail over. */
static inline struct two *open_paths(unsigned first, unsigned second, uint16_t paths)
{
	const unsigned addresses[] = { first, second };
	struct two *two = calloc(1, sizeof(*two));
	two->now = VB_S;
	two->slowness = 1;
	two->carried = VB_LARGE_MTU;
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = &two->end[i];
		struct vb_gid other = address(1 - i, 0);
		struct vb_address all[] = { { address(i, 0), 4096 }, { address(i, 1), 4096 }, { address(i, 2), 4096 } };
		end->rig = rig_open_lane(256, &(struct vb_lane_config){ .seed = i + 1,
						      .slot = (uint8_t)(i + 1),
						      .patience = 32 * VB_MS,
						      .recovery = VB_RECOVERY_AGREED,
						      .fails_over = addresses[i] > 0,
						      .goes_by_large = true,
						      .paths = paths,
						      .flowlet_packets = 1 });
		end->rig->now = two->now;
		vb_lane_set_addresses(end->rig->lane, all, addresses[i]);
		vb_lane_set_peer(end->rig->lane, &other,
			&(struct vb_peer_facts){ .is_verbena = true, .takes_hellos = true, .receive_buffer = 1 << 20 });
		end->qp = rig_qp(end->rig, NULL);
		end->hears[0] = end->hears[1] = end->hears[2] = true;
		for (unsigned k = 0; k < RIG_BYTES / 2; k++)
			end->rig->memory[k] = (uint8_t)(k * 7 + k / 251 + i);
	}
	for (unsigned i = 0; i < 2; i++)
		connect_end(&two->end[i], i, vb_qp_number(two->end[1 - i].qp));
	return two;
}

static inline struct two *open_two(unsigned first, unsigned second)
{
	return open_paths(first, second, 1);
}

static inline void close_two(struct two *two)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vb_qp_destroy(two->end[i].qp), 0);
		rig_close(two->end[i].rig);
	}
	free(two);
}

enum { LONGEST_HEADERS = 32 }; /* BTH, RETH, ImmDt */

/* Packets between addresses of different links reach nobody. */
static inline void deliver(struct two *two, struct end *to, const struct vb_batch *batch, const struct vb_outgoing *out)
{
	uint8_t bytes[VB_MAX_PAYLOAD], *end = bytes;
	struct vb_packet packet = out->packet;
	struct vb_path path = { .src = out->av->sgid, .dst = out->av->dgid };
	unsigned link = path.dst.raw[13] - 1u;
	uint32_t length = vb_packet_row(&packet)->headers_length + packet.payload_length;
	if (path.src.raw[13] != path.dst.raw[13] || !to->hears[link] || length > two->carried + LONGEST_HEADERS)
		return;
	uint32_t of_end = two->carried_from[to == &two->end[0]];
	if (of_end && length > of_end + LONGEST_HEADERS)
		return;
	bool is_data = packet.payload_length > 0 || vb_packet_row(&packet)->message == VB_MESSAGE_READ;
	if (is_data && packet.opcode != VB_HELLO && to->deaf_to_data > 0 && to->deaf_to_data-- % 2)
		return;
	if (packet.opcode == VB_PATH_ADDRESS && packet.path_number && to->deaf_to > 0 && to->deaf_to--)
		return;
	for (unsigned i = 0; i < out->iov_count; i++) {
		const struct vb_iov *iov = &batch->iov[out->iov_first + i];
		memcpy(end, iov->base, iov->length);
		end += iov->length;
	}
	packet.payload = bytes;
	vb_lane_receive(to->rig->lane, &path, &packet, 1, to->rig->now);
	vb_lane_check(to->rig->lane);
}

static inline void turn(struct two *two, struct end *end, struct end *other)
{
	struct rig *rig = end->rig;
	struct vb_wc wc[16];
	int n;
	vb_lane_advance(rig->lane, rig->now);
	while (rig_transmit(rig) > 0) {
		for (unsigned i = 0; i < rig->batch.count; i++) {
			const struct vb_outgoing *out = &rig->batch.out[i];
			end->left[out->packet.opcode]++;
			end->data[out->av->sgid.raw[13] - 1] += out->packet.payload_length > 0;
			if (out->packet.payload_length > end->longest)
				end->longest = out->packet.payload_length;
			deliver(two, other, &rig->batch, out);
		}
	}
	while ((n = vb_cq_poll(rig->cq, wc, 16)) > 0)
		for (int i = 0; i < n; i++, end->done++)
			assert_int_equal(wc[i].status, VB_WC_SUCCESS);
}

static inline void step(struct two *two)
{
	two->now = vb_time_add(two->now, STEP);
	for (unsigned i = 0; i < 2; i++)
		two->end[i].rig->now = two->now;
	turn(two, &two->end[0], &two->end[1]);
	if (two->steps++ % two->slowness == 0)
		turn(two, &two->end[1], &two->end[0]);
}

static inline void run(struct two *two, vb_time span)
{
	for (vb_time end = vb_time_add(two->now, span); vb_time_before(two->now, end);)
		step(two);
}

static inline void post(struct two *two, unsigned from, enum vb_wr_opcode opcode)
{
	struct end *end = &two->end[from];
	struct rig *peer = two->end[1 - from].rig;
	uint32_t at = end->posted++ % 8 * MESSAGE;
	bool is_read = opcode == VB_WR_RDMA_READ;
	struct vb_sge sge = rig_sge(end->rig, (is_read ? RIG_BYTES / 2 : 0) + at, MESSAGE);
	struct vb_send_wr wr = { .opcode = opcode, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 };
	wr.remote_addr = (uintptr_t)peer->memory + (is_read ? 0 : RIG_BYTES / 2) + at;
	wr.rkey = vb_mr_key(peer->mr);
	rig_post(end->qp, &wr);
}

/* So many messages one after the other; gives the longest time that one took. */
static inline vb_time exchange(struct two *two, unsigned from, enum vb_wr_opcode opcode, unsigned count)
{
	struct end *end = &two->end[from];
	vb_time longest = 0;
	for (unsigned i = 0; i < count; i++) {
		vb_time since = two->now;
		unsigned before = end->done;
		post(two, from, opcode);
		while (end->done == before) {
			step(two);
			assert_true(vb_time_since(since, two->now) < VB_S);
		}
		vb_time took = vb_time_since(since, two->now);
		longest = took > longest ? took : longest;
	}
	return longest;
}

static inline void cut(struct two *two, unsigned link)
{
	two->end[0].hears[link] = two->end[1].hears[link] = false;
}

static inline void mend(struct two *two, unsigned link)
{
	two->end[0].hears[link] = two->end[1].hears[link] = true;
}

static inline uint64_t counter(const struct two *two, unsigned end, enum vb_counter which)
{
	return rig_counter(two->end[end].rig, which);
}

static inline void assert_written(const struct two *two, unsigned from)
{
	assert_memory_equal(two->end[from].rig->memory, two->end[1 - from].rig->memory + RIG_BYTES / 2, RIG_BYTES / 2);
}

#endif
