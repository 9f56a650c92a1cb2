/* See scene.h. Some have a port that is done with packets late and in any order, or a rate. */
#include "scene.h"
#include "local/local.h"
#include "roce/failover.h"
#include "roce/roce.h"
#include "roce/selective.h"
#include "../paced.h"

/* The first PSNs that a QP receives and sends; both wrap soon. */
enum { RQ_PSN = 0xFFFFFE, SQ_PSN = 0xFFFFFC, LARGE = 700 };

struct input input;
struct scene scene;

static struct vb_batch batch;

uint32_t take(unsigned n)
{
	uint32_t value = 0;
	while (n--)
		value = value << 8 | (input.at < input.end ? *input.at++ : 0);
	return value;
}

/* ---- The scene --------------------------------------------------------------------------------------------------- */

/* The same host's, by another link. */
static struct vb_gid further(const struct vb_gid *gid)
{
	struct vb_gid other = *gid;
	other.raw[14] ^= 1;
	return other;
}

static void create_qp(unsigned i)
{
	static const enum vb_qp_type types[QPS] = { VB_QP_RC, VB_QP_RC, VB_QP_RC, VB_QP_UC, VB_QP_UD,
		VB_QP_RC, [XRC_SEND] = VB_QP_XRC_SEND, [XRC_RECV] = VB_QP_XRC_RECV };
	struct vb_qp_config config = { .type = types[i],
		.pd = i == XRC_RECV ? NULL : scene.pd,
		.send_cq = i == XRC_RECV ? NULL : scene.cq,
		.recv_cq = i >= XRC_SEND ? NULL : scene.cq,
		.srq = i == 2 ? scene.srq : NULL,
		.xrcd = i == XRC_RECV ? scene.xrcd : NULL,
		.max_send_wr = 8,
		.max_recv_wr = 8,
		.max_send_sge = 3,
		.max_recv_sge = 3,
		.max_inline = 64,
		.signal_all = true };
	require(vb_qp_create(scene.lane, &config, &scene.qps[i]) == 0);
}

static void modify(unsigned i, enum vb_qp_state state)
{
	struct vb_qp_attr attr = { .state = state,
		.path_mtu = 256,
		.qkey = 5,
		.rq_psn = RQ_PSN,
		.sq_psn = SQ_PSN,
		.dest_qpn = scene.peer_qpn,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC,
		.av = { .sgid = scene.local, .dgid = scene.peer },
		.port = 1,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 2,
		.retry_cnt = 2,
		.rnr_retry = 2 };
	uint32_t mask = VB_QP_STATE;
	bool is_rc = i < 3 || i == 5, is_ud = i == 4, is_send = i == XRC_SEND, is_recv = i == XRC_RECV;
	if (state == VB_QPS_INIT)
		mask |= VB_QP_PKEY_INDEX | VB_QP_PORT | (is_ud ? VB_QP_QKEY : VB_QP_ACCESS_FLAGS);
	if (state == VB_QPS_RTR && !is_ud)
		mask |= VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
			(is_rc || is_recv ? VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER : 0);
	if (state == VB_QPS_RTS && vb_qp_state(scene.qps[i]) == VB_QPS_RTR)
		mask |= VB_QP_SQ_PSN | (is_rc || is_send || is_recv ? VB_QP_TIMEOUT : 0) |
			(is_rc || is_send ? VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC : 0);
	vb_qp_modify(scene.qps[i], &attr, mask, scene.now);
}

static uint8_t guard_byte(size_t i)
{
	return (uint8_t)(i * 13 + 7);
}

static void create_xrc_srq(unsigned i)
{
	struct vb_srq_config config = {
		.max_wr = 8, .max_sge = 3, .cq = scene.cq, .xrcd = i == XRC_SRQS - 1 ? scene.other_xrcd : scene.xrcd
	};
	require(vb_srq_create(scene.pd, &config, &scene.xrc_srqs[i]) == 0);
}

void scene_open(uint32_t peer_qpn, uint32_t region, uint32_t longest, struct vb_epochs *epochs)
{
	struct vb_nic_config nic = {
		.seed = 1, .mtu = 256, .large_mtu = LARGE, .advertise_credits = take(1) & 1, .epochs = epochs
	};
	struct vb_lane_config lane = { .seed = 1,
		.slot = 1,
		.receive_buffer = 8192,
		.ack_delay = (vb_time)take(1) * VB_US / 8,
		.meets_local_peers = epochs };
	uint32_t kind = take(1);
	struct vb_cq_config cq = { .capacity = kind & 7 ? 512 : 3 };
	bool has_tags = epochs && (kind & 32);
	struct vb_srq_config srq = {
		.max_wr = 8, .max_sge = 3, .limit = has_tags ? 0 : 2, .max_tags = has_tags ? 4 : 0
	};
	static const struct paced paced = { .rate = 100000000, .period = 50 * VB_US, .is_moody = true };
	if (kind & 16)
		lane.cc = (struct vb_cc_config){ .algorithm = &paced_algorithm, .parameters = &paced };
	/* Those of go-back-N, which most corpora are of, have neither. */
	lane.recovery = kind & 64 ? VB_RECOVERY_SELECTIVE : kind & 128 ? VB_RECOVERY_AGREED : VB_RECOVERY_GO_BACK_N;
	if (kind & 64 && kind & 128)
		lane.hold_bytes = 2048;
	lane.fails_over = lane.goes_by_large = lane.recovery == VB_RECOVERY_AGREED;
	memset(&scene, 0, offsetof(struct scene, memory));
	scene.peer_qpn = peer_qpn;
	scene.region = region;
	scene.longest = longest;
	scene.epochs = epochs;
	scene.is_late = kind & 8;
	scene.local = vb_gid_from_ipv4(10, 0, 0, 1);
	scene.peer = vb_gid_from_ipv4(10, 0, 0, 2);
	for (size_t i = 0; i < scene.region + 2 * GUARD; i++)
		scene.memory[i] = guard_byte(i);
	require(vb_nic_create(&nic, &scene.nic) == 0 && vb_nic_set_gid(scene.nic, 0, &scene.local) == 0);
	require(vb_lane_create(&lane, &scene.lane) == 0 && vb_pd_create(scene.nic, &scene.pd) == 0);
	vb_lane_set_addresses(scene.lane, &(struct vb_address){ further(&scene.local), 4096 }, 1);
	require(vb_cq_create(scene.nic, &cq, &scene.cq) == 0);
	srq.cq = has_tags ? scene.cq : NULL;
	require(vb_srq_create(scene.pd, &srq, &scene.srq) == 0);
	if (epochs)
		vb_lane_publish_epochs(scene.lane, epochs);
	struct vb_mr_config mr = { .memory = scene.memory + GUARD, .iova = IOVA, .length = scene.region, .access = 31 };
	require(vb_mr_register(scene.pd, &mr, &scene.mr) == 0);
	scene.is_valid = true;
	for (unsigned i = 0; i < WINDOWS; i++)
		require(vb_mw_create(scene.pd, 1 + (int)i, &scene.windows[i]) == 0);
	require(vb_xrcd_create(scene.nic, &scene.xrcd) == 0 && vb_xrcd_create(scene.nic, &scene.other_xrcd) == 0);
	for (unsigned i = 0; i < XRC_SRQS; i++)
		create_xrc_srq(i);
	for (unsigned i = 0; i < QPS; i++) {
		create_qp(i);
		for (int to = VB_QPS_INIT; to <= VB_QPS_RTS && !(i == 5 && to == VB_QPS_RTS); to++)
			modify(i, (enum vb_qp_state)to);
	}
}

void scene_drain(void)
{
	struct vb_event event;
	struct vb_wc wc[8];
	for (int n; (n = vb_cq_poll(scene.cq, wc, 8)) > 0;)
		for (int i = 0; i < n; i++)
			wc[i].wr_id & 1 ? scene.recvs_completed++ : scene.sends_completed++;
	while (vb_lane_next_event(scene.lane, &event))
		;
	require(scene.sends_completed <= scene.sends_posted && scene.recvs_completed <= scene.recvs_posted);
}

/* The port is done with one of what it has, or with all. */
static void finish(unsigned at)
{
	if (scene.owed[at].last)
		(void)*(volatile const uint8_t *)scene.owed[at].last;
	vb_lane_transmit_done(scene.lane, &scene.owed[at].completion, 1, scene.now);
	scene.owed[at] = scene.owed[--scene.owed_count];
	vb_lane_check(scene.lane);
}

static void finish_all(void)
{
	while (scene.owed_count > 0)
		finish(scene.owed_count - 1);
}

void scene_close(void)
{
	scene_drain();
	for (unsigned i = 0; i < QPS; i++)
		require(vb_qp_destroy(scene.qps[i]) == 0);
	finish_all();
	require(vb_lane_handed_out(scene.lane) == 0);
	for (unsigned i = 0; i < WINDOWS; i++)
		require(vb_mw_destroy(scene.windows[i]) == 0);
	require(vb_mr_invalidate(scene.mr) == 0);
	vb_mr_free(scene.mr);
	for (unsigned i = 0; i < XRC_SRQS; i++)
		require(vb_srq_destroy(scene.xrc_srqs[i]) == 0);
	require(vb_xrcd_destroy(scene.xrcd) == 0 && vb_xrcd_destroy(scene.other_xrcd) == 0);
	require(vb_srq_destroy(scene.srq) == 0 && vb_cq_destroy(scene.cq) == 0 && vb_pd_destroy(scene.pd) == 0);
	vb_lane_destroy(scene.lane);
	vb_nic_destroy(scene.nic);
	for (size_t i = 0; i < GUARD; i++)
		require(scene.memory[i] == guard_byte(i) &&
			scene.memory[GUARD + scene.region + i] == guard_byte(GUARD + scene.region + i));
}

/* ---- What happens ------------------------------------------------------------------------------------------------ */

uint32_t some_key(void)
{
	uint32_t choice = take(1);
	if (choice < 160)
		return vb_mr_key(scene.mr);
	if (choice < 220)
		return vb_mw_key(scene.windows[choice % WINDOWS]) + (choice & 3);
	return take(4);
}

uint64_t some_address(void)
{
	uint32_t choice = take(1);
	return choice < 200 ? IOVA + take(2) % (scene.region + 64) - (choice & 15) : (uint64_t)take(4) << 32 | take(4);
}

uint32_t some_srqn(void)
{
	uint32_t choice = take(1);
	return choice < 240 ? vb_srq_number(scene.xrc_srqs[choice < 200 ? choice % 2 : choice % XRC_SRQS]) : take(3);
}

uint32_t near(uint32_t psn)
{
	return (psn + take(1) - 16) & VB_PSN_MASK;
}

static void read_bitmap(struct vb_packet *packet)
{
	packet->expected_psn = near(SQ_PSN + 16);
	packet->named = take(1) << 24 | near(SQ_PSN + 16);
	packet->told = packet->named >> 24 & 1;
	packet->bits[0] = (uint64_t)take(4) << 32 | take(4);
	packet->bits[1] = take(1);
}

/* Whichever these are, the same of the input is used up. */
static void read_headers(struct vb_packet *packet)
{
	uint64_t va = some_address();
	uint32_t rkey = some_key();
	uint32_t dma_length = take(2) & 0x8000 ? take(4) : take(2) % 1024;
	uint32_t swap_add = take(1), imm_or_inv = some_key(), srqn = some_srqn();
	uint8_t syndrome = (uint8_t)take(1);
	uint32_t msn = take(1);
	const struct vb_opcode *row = vb_packet_row(packet);
	if (row->is_response) {
		packet->syndrome = syndrome;
		packet->msn = msn;
		if (row->message == VB_MESSAGE_BITMAP)
			read_bitmap(packet);
	} else if (row->message == VB_MESSAGE_HELLO) {
		packet->hold_bytes = dma_length;
		packet->hello = syndrome;
		packet->large_mtu = VB_LARGE_MTU; /* the scene's is less */
		if (dma_length % 4)               /* of this connection */
			packet->psn = syndrome & VB_HELLO_ANSWERS ? SQ_PSN : RQ_PSN;
	} else if ((packet->opcode & 0xe0) == VB_UD || row->message == VB_MESSAGE_ECHO) {
		packet->qkey = 5;
		packet->src_qpn = scene.peer_qpn;
		packet->imm = imm_or_inv;
	} else {
		packet->va = va;
		packet->rkey = rkey;
		packet->xrc_srqn = srqn;
		packet->dma_length = dma_length;
		packet->imm = packet->inv_rkey = imm_or_inv;
		if (row->message == VB_MESSAGE_ATOMIC)
			packet->swap_add = swap_add;
	}
}

/* From addresses that are the connection's or not; with a secret that counts, as only a peer has it, or another. */
static void read_path(struct vb_packet *packet, struct vb_path *path, const struct vb_qp *qp)
{
	const struct vb_selective *selective = vb_roce(qp)->selective;
	const struct vb_failover *failover = selective ? selective->failover : NULL;
	uint32_t way = take(1);
	packet->secret = failover && way & 4 ? failover->secret : take(2);
	packet->path_number = take(1);
	packet->path_flags = (uint8_t)take(1);
	packet->address = way & 8 ? further(&scene.peer) : vb_gid_from_ipv4(10, 0, 0, (uint8_t)take(1));
	if (way & 1)
		path->src = further(&path->src);
	if (way & 2)
		path->dst = further(&path->dst);
}

/* Such as shows that large packets come through, or is one. */
static uint32_t some_large(const struct vb_packet *packet, uint32_t length)
{
	if (packet->opcode == VB_HELLO)
		return LARGE + VB_LARGE_HEADERS;
	return length == 256 ? LARGE : length;
}

static void receive(void)
{
	static uint8_t payload[VB_LARGE_MTU];
	struct vb_packet packet = { .pkey = VB_PKEY_DEFAULT };
	struct vb_path path = { .src = scene.peer, .dst = scene.local, .src_port = 0xC000, .hop_limit = 1 };
	unsigned i = take(1) % QPS;
	packet.opcode = (uint8_t)take(1);
	if (!vb_opcode_exists(packet.opcode))
		packet.opcode = i == 3          ? VB_UC | (packet.opcode % 12)
				: i == 4        ? VB_UD_SEND_ONLY
				: i >= XRC_SEND ? VB_XRC | (packet.opcode % 0x18)
						: packet.opcode % 0x18;
	if (!vb_opcode_exists(packet.opcode)) /* the codec lets no other through */
		return;
	uint8_t flags = (uint8_t)take(1);
	packet.ackreq = flags & 1;
	packet.solicited = flags & 2;
	packet.dest_qpn = flags & 4 && flags & 8 && flags & 16 ? take(3) : vb_qp_number(scene.qps[i]);
	path.traffic_class = flags & 32 ? 3 : 0;
	if (flags & 64 && flags & 128)
		path.src.raw[15] ^= 1;
	packet.psn = near(vb_packet_row(&packet)->is_response ? SQ_PSN + 16 : RQ_PSN + 16);
	read_headers(&packet);
	if (vb_packet_row(&packet)->message == VB_MESSAGE_PATH)
		read_path(&packet, &path, scene.qps[i]);
	packet.payload_length = vb_packet_row(&packet)->payload == VB_PAYLOAD_NONE ? 0
				: flags & 8                                        ? 256
										   : take(2) % 300;
	if (flags & 128)
		packet.payload_length = some_large(&packet, packet.payload_length);
	if (vb_packet_row(&packet)->payload == VB_PAYLOAD_EIGHT)
		packet.payload_length = 8;
	packet.payload = payload;
	vb_lane_receive(scene.lane, &path, &packet, 1, scene.now);
}

static unsigned make_sges(struct vb_sge *sges)
{
	unsigned n = take(1) % 4;
	for (unsigned i = 0; i < n; i++)
		sges[i] = (struct vb_sge){ some_address(), take(2) % scene.longest, some_key() };
	return n;
}

static void post_send(void)
{
	struct vb_sge sges[4];
	struct vb_av av = { .sgid = scene.local, .dgid = scene.peer };
	unsigned i = take(1) % QPS;
	struct vb_send_wr wr = { .wr_id = scene.next_wr += 2,
		.opcode = (enum vb_wr_opcode)(take(1) % 10),
		.sges = sges,
		.flags = take(1) & 7,
		.sge_count = make_sges(sges),
		.remote_addr = 77,
		.rkey = 88,
		.compare_add = take(1),
		.av = &av,
		.remote_qpn = scene.peer_qpn,
		.remote_qkey = 5,
		.remote_srqn = 0x1234567 };
	wr.imm_or_inv = some_key();
	struct vb_mw *window = scene.windows[take(1) % WINDOWS];
	wr.bind.mw = window;
	wr.bind.mr = scene.mr;
	wr.bind.addr = some_address();
	wr.bind.length = take(2);
	wr.bind.access = take(1) & 31;
	wr.bind.rkey = take(1) & 1 ? vb_mw_next_key(window) : vb_mw_key(window) ^ 1;
	vb_sq_begin(scene.qps[i]);
	int rc = vb_sq_put(scene.qps[i], &wr);
	vb_sq_end(scene.qps[i], rc == 0);
	scene.sends_posted += rc == 0;
}

static void post_recv(void)
{
	struct vb_sge sges[4];
	unsigned i = take(1) % QPS;
	struct vb_recv_wr wr = { .wr_id = (scene.next_wr += 2) | 1, .sges = sges, .sge_count = make_sges(sges) };
	struct vb_srq *srq = i == 2 ? scene.srq : i >= XRC_SEND ? scene.xrc_srqs[i - XRC_SEND] : NULL;
	int rc = srq ? vb_srq_post(srq, &wr) : vb_rq_post(scene.qps[i], &wr);
	scene.recvs_posted += rc == 0;
}

/* The bytes are readable? ASan says. */
static const uint8_t *last_byte(const struct vb_outgoing *out)
{
	const uint8_t *last = NULL;
	uint32_t bytes = 0;
	for (unsigned k = 0; k < out->iov_count; k++) {
		const struct vb_iov *iov = &batch.iov[out->iov_first + k];
		bytes += (uint32_t)iov->length;
		if (iov->length)
			last = (const uint8_t *)iov->base + iov->length - 1;
		if (iov->length)
			(void)*(volatile const uint8_t *)last;
	}
	require(bytes == out->packet.payload_length && bytes <= VB_MAX_PAYLOAD);
	return last;
}

void scene_transmit(void)
{
	for (unsigned rounds = 0, n; (n = vb_lane_transmit(scene.lane, &batch, 1 + take(1) % 64, scene.now));
		rounds++) {
		require(n == batch.count && rounds < 1000);
		for (unsigned i = 0; i < n; i++) {
			const uint8_t *last = last_byte(&batch.out[i]);
			batch.completions[i].error = take(1) == 99 ? 14 : 0;
			if (!scene.is_late)
				continue;
			if (scene.owed_count == OWED)
				finish(0);
			scene.owed[scene.owed_count].completion = batch.completions[i];
			scene.owed[scene.owed_count++].last = last;
		}
		if (!scene.is_late)
			vb_lane_transmit_done(scene.lane, batch.completions, n, scene.now);
	}
	for (unsigned n = scene.owed_count ? take(1) % 16 : 0; n > 0 && scene.owed_count > 0; n--)
		finish(take(1) % scene.owed_count);
}

static void wait_a_while(void)
{
	struct vb_deadline deadline = vb_lane_next_deadline(scene.lane);
	if (take(1) & 1 && deadline.is_set && vb_time_before(scene.now, deadline.at))
		scene.now = deadline.at;
	else
		scene.now = vb_time_add(scene.now, (vb_time)take(2) * VB_US);
	vb_lane_advance(scene.lane, scene.now);
}

static void change_region(void)
{
	struct vb_mr_config mr = { .memory = scene.memory + GUARD, .iova = IOVA, .length = scene.region, .access = 31 };
	if (scene.is_valid)
		scene.is_valid = vb_mr_invalidate(scene.mr) != 0;
	else
		scene.is_valid = vb_mr_revalidate(scene.mr, NULL, &mr) == 0;
}

static void remake_qp(unsigned i)
{
	scene_transmit();
	scene_drain();
	require(vb_qp_destroy(scene.qps[i]) == 0);
	create_qp(i);
	for (int to = VB_QPS_INIT; to <= VB_QPS_RTS; to++)
		modify(i, (enum vb_qp_state)to);
}

static void replace_srq(unsigned i)
{
	scene_drain();
	require(vb_srq_destroy(scene.xrc_srqs[i]) == 0);
	create_xrc_srq(i);
}

void scene_happen(void)
{
	uint32_t what = take(1);
	if (what < 140)
		receive();
	else if (what < 180)
		post_send();
	else if (what < 205)
		post_recv();
	else if (what < 225)
		scene_transmit();
	else if (what < 240)
		wait_a_while();
	else if (what < 246)
		modify(take(1) % QPS, (enum vb_qp_state)(take(1) % VB_QPS_COUNT));
	else if (what < 250)
		change_region();
	else if (what < 252)
		remake_qp(take(1) % QPS);
	else if (what < 253)
		replace_srq(take(1) % XRC_SRQS);
	else
		scene_drain();
}
