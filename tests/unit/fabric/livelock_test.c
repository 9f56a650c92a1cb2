/* What a recovery makes of a switch that loses each 256th packet (Guo et al., SIGCOMM 2016, 4.1): messages of 4 MB at
 * 40 Gb/s by SEND, WRITE and READ. Prints what there was of the link for payload, for `make validate-fabric`. */
#include <errno.h>
#include "engine/nic.h"
#include "fabric/fabric.h"
#include "fabric/holder.h"
#include "nets.h"

enum { MTU = 1024, MESSAGE = 4 << 20, OVERHEAD = 82, LOSS_EVERY = 256, ACK_EVERY = 100, MESSAGES = 10, AT_ONCE = 2 };

#define REGION (1ull << 20)
#define DELAY  (500 * VB_NS)
#define LIMIT  (20 * VB_MS)

struct end {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	struct vb_gid gid;
	bool is_called; /* when its wire is free */
};

static struct {
	struct network network;
	struct fabric *fabric;
	struct end ends[2]; /* data goes from 0 to 1 */
	struct vb_batch batch;
	enum vb_wr_opcode opcode;
	uint32_t requester, done;
	uint64_t sent; /* bytes on the wire with data */
} test;

static void post(void)
{
	const struct end *own = &test.ends[test.requester], *peer = &test.ends[1 - test.requester];
	struct vb_sge sge = { REGION, MESSAGE, vb_mr_key(own->mr) };
	vb_sq_begin(own->qp);
	assert_int_equal(vb_sq_put(own->qp, &(struct vb_send_wr){ .opcode = test.opcode,
						    .flags = VB_SEND_SIGNALED,
						    .sges = &sge,
						    .sge_count = 1,
						    .remote_addr = REGION,
						    .rkey = vb_mr_key(peer->mr) }),
		0);
	vb_sq_end(own->qp, true);
}

static void post_receive(const struct end *end)
{
	struct vb_sge sge = { REGION, MESSAGE, vb_mr_key(end->mr) };
	assert_int_equal(vb_rq_post(end->qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
}

static void take_completions(const struct end *end)
{
	struct vb_wc wc;
	struct vb_event event;
	while (vb_cq_poll(end->cq, &wc, 1) > 0) {
		assert_int_equal(wc.status, VB_WC_SUCCESS);
		if (wc.opcode == VB_WC_RECV) {
			post_receive(end);
			continue;
		}
		test.done++;
		post();
	}
	while (vb_lane_next_event(end->lane, &event))
		;
}

/* As the wire is free. */
static void transmit(uint32_t number)
{
	struct end *end = &test.ends[number];
	const vb_time now = fabric_now(test.fabric);
	while (fabric_free_at(test.fabric, number) <= now && vb_lane_transmit(end->lane, &test.batch, 1, now)) {
		struct vb_packet *cargo = malloc(sizeof(*cargo));
		*cargo = test.batch.out[0].packet;
		const uint16_t bytes = (uint16_t)(cargo->payload_length + OVERHEAD);
		test.sent += cargo->payload_length ? bytes : 0;
		fabric_send(test.fabric,
			&(struct fabric_post){ .from = number, .to = 1 - number, .wire_bytes = bytes, .cargo = cargo });
		vb_lane_transmit_done(end->lane, test.batch.completions, 1, now);
	}
	const vb_time free_at = fabric_free_at(test.fabric, number);
	if (free_at > now && !end->is_called && vb_lane_wants_transmit(end->lane, now)) {
		end->is_called = true;
		fabric_call(test.fabric, free_at, number);
	}
}

static void on_arrival(void *user, uint32_t number, void *cargo, bool is_marked)
{
	const struct end *end = &test.ends[number];
	struct vb_path path = { .src = test.ends[1 - number].gid, .dst = end->gid };
	(void)user;
	(void)is_marked;
	vb_lane_receive(end->lane, &path, cargo, 1, fabric_now(test.fabric));
	free(cargo);
	take_completions(end);
	transmit(number);
}

static void on_loss(void *user, void *cargo)
{
	(void)user;
	free(cargo);
}

enum { CLOCK = 2 }; /* of both */

static void on_call(void *user, uint32_t number)
{
	(void)user;
	if (number != CLOCK) {
		test.ends[number].is_called = false;
		transmit(number);
		return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		vb_lane_advance(test.ends[i].lane, fabric_now(test.fabric));
		transmit(i);
	}
	fabric_call(test.fabric, fabric_now(test.fabric) + 10 * VB_US, CLOCK);
}

static void open_end(uint32_t number, bool restarts_messages)
{
	struct end *end = &test.ends[number];
	struct vb_lane_config lane = { .seed = number,
		.slot = 1,
		.unknown_peer_allowance = VB_UNLIMITED,
		.cc = { .algorithm = &vb_cc_none },
		.acks = { .every_bytes = VB_UNLIMITED, .every_packets = ACK_EVERY, .by_count_alone = true },
		.replies_first = true,
		.packet_overhead = VB_NONE,
		.ack_timeout = 500 * VB_US,
		.probe_after = 50 * VB_US,
		.turn_bytes = 1,
		.recovery = restarts_messages ? VB_RECOVERY_GO_BACK_0 : VB_RECOVERY_GO_BACK_N };
	struct vb_mr_config mr = { .iova = REGION,
		.length = MESSAGE,
		.kind = &vb_memory_phantom,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ };
	end->gid = fabric_gid(number);
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = number + 1, .mtu = MTU }, &end->nic), 0);
	assert_int_equal(vb_nic_set_gid(end->nic, 0, &end->gid), 0);
	assert_int_equal(vb_lane_create(&lane, &end->lane), 0);
	assert_int_equal(vb_pd_create(end->nic, &end->pd), 0);
	assert_int_equal(vb_cq_create(end->nic, &(struct vb_cq_config){ .capacity = 16 }, &end->cq), 0);
	assert_int_equal(vb_mr_register(end->pd, &mr, &end->mr), 0);
	struct vb_qp_config qp = { .type = VB_QP_RC,
		.pd = end->pd,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.max_send_wr = AT_ONCE + 1,
		.max_recv_wr = AT_ONCE,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	assert_int_equal(vb_qp_create(end->lane, &qp, &end->qp), 0);
}

/* Of a READ's pieces so many are remembered as two messages have. */
static void connect_end(uint32_t number)
{
	const struct end *end = &test.ends[number], *peer = &test.ends[1 - number];
	static const uint32_t masks[] = { VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER,
		VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
			VB_QP_MAX_QP_RD_ATOMIC };
	struct vb_qp_attr attr = { .path_mtu = MTU,
		.dest_qpn = vb_qp_number(peer->qp),
		.port = 1,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.av = { .sgid = end->gid, .dgid = peer->gid } };
	for (int i = 0; i < 3; i++) {
		attr.state = (enum vb_qp_state)(VB_QPS_INIT + i);
		assert_int_equal(vb_qp_modify(end->qp, &attr, masks[i], 0), 0);
	}
}

static void close_end(struct end *end)
{
	struct vb_event event;
	vb_qp_destroy(end->qp);
	while (vb_lane_next_event(end->lane, &event))
		;
	vb_mr_invalidate(end->mr);
	vb_mr_free(end->mr);
	vb_cq_destroy(end->cq);
	vb_pd_destroy(end->pd);
	vb_lane_destroy(end->lane);
	vb_nic_destroy(end->nic);
}

/* The share of the link that messages had; *busy: that all data had. */
static double run_messages(enum vb_wr_opcode opcode, bool restarts_messages, double *busy)
{
	static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };
	static const struct fabric_holder holder = {
		.on_arrival = on_arrival, .on_loss = on_loss, .on_call = on_call, .day_shift = 20
	};
	char why[100];
	memset(&test, 0, sizeof(test));
	test.opcode = opcode;
	test.requester = opcode == VB_WR_RDMA_READ;
	make_star(&test.network, 2, 40 * GBPS, DELAY, &ideal);
	const uint32_t link = test.network.endpoints[0].link;
	network_set_fault(&test.network, link, &(struct network_fault){ .loss_every = LOSS_EVERY });
	test.network.links[test.network.links[link].reverse].fault = NETWORK_NONE; /* of answers none */
	assert_int_equal(fabric_open(&test.network, 1, &holder, &test.fabric, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < 2; i++)
		open_end(i, restarts_messages);
	for (uint32_t i = 0; i < 2; i++)
		connect_end(i);
	for (int i = 0; i < AT_ONCE; i++) {
		post_receive(&test.ends[1]);
		post();
	}
	fabric_call(test.fabric, 0, CLOCK);
	while (test.done < MESSAGES && fabric_now(test.fabric) < LIMIT)
		assert_int_equal(fabric_step(test.fabric), 1);
	const double bytes = (double)fabric_now(test.fabric) / (8000.0 / 40),
		     payload = (double)MESSAGE * (MTU + OVERHEAD) / MTU;
	*busy = (double)test.sent / bytes;
	const double share = test.done * payload / bytes;
	for (uint32_t i = 0; i < 2; i++)
		close_end(&test.ends[i]);
	fabric_close(test.fabric);
	network_free(&test.network);
	return share;
}

static const struct {
	enum vb_wr_opcode opcode;
	const char *name;
} verbs[] = { { VB_WR_SEND, "SEND" }, { VB_WR_RDMA_WRITE, "WRITE" }, { VB_WR_RDMA_READ, "READ" } };

static void going_back_to_0__never_ends(void **state)
{
	for (unsigned i = 0; i < COUNT_OF(verbs); i++) {
		double busy, share = run_messages(verbs[i].opcode, true, &busy);
		printf("%s go-back-0 %.4f of %.4f\n", verbs[i].name, share, busy);
		assert_true(share == 0);
		assert_true(busy > 0.95);
	}
}

/* Of 256 packets one is lost, and as many behind it as leave in a round trip: four links, and a packet each at the
 * switch and at whoever hears of it. */
static void going_back_to_n__costs_a_round_trip(void **state)
{
	const double packet = (MTU + OVERHEAD) * 8000.0 / 40, round_trip = 4 * (double)DELAY + 3 * packet;
	const double law = 1 - (1 + round_trip / packet) / LOSS_EVERY;
	for (unsigned i = 0; i < COUNT_OF(verbs); i++) {
		double busy, share = run_messages(verbs[i].opcode, false, &busy);
		printf("%s go-back-n %.4f law %.4f\n", verbs[i].name, share, law);
		assert_true(share > law - 0.01 && share < law + 0.01);
	}
}

static void going_back_to_0__is_for_engines(void **state)
{
	static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };
	struct network network;
	struct flow_list flows = { 0 };
	struct fabric_result result;
	char why[200] = "";
	make_star(&network, 2, 40 * GBPS, DELAY, &ideal);
	add_flow(&flows, 0, 1, MESSAGE, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.recovery = VB_RECOVERY_GO_BACK_0;
	config.endpoint = FABRIC_IDEAL;
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "go-back-0"));
	network_free(&network);
	flow_list_free(&flows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(going_back_to_0__never_ends),
		cmocka_unit_test(going_back_to_n__costs_a_round_trip),
		cmocka_unit_test(going_back_to_0__is_for_engines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
