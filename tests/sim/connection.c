/* Pairs of QPs: made and connected, broken on purpose or by what the network did, flushed, and made again with other
 * QPNs and PSNs. What disasters there are is decided here too. */
#include <stdlib.h>
#include <string.h>
#include "sim.h"

#define REMOTE_ALL (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_FLUSH_GLOBAL)
#define QKEY       0x1234

static void must(int rc, const char *what)
{
	if (rc)
		broken("%s gives %d", what, rc);
}

static void end_open(struct connection *connection, unsigned i, struct host *host)
{
	struct endpoint *end = &connection->ends[i];
	end->connection = connection;
	end->peer = &connection->ends[1 - i];
	end->host = host;
	end->lane = &host->lanes[below(host->lane_count)];
	end->type = connection->type;
	end->is_target = connection->is_xrc && i == 1;
	end->has_srq = connection->is_xrc || chance(300000);
	uint64_t bytes = (uint64_t)connection->slot_bytes * connection->slots;
	block_open(host, &end->local, bytes, VB_ACCESS_LOCAL_WRITE, false);
	block_open(host, &end->recvs, RECVS * SEND_MAX, VB_ACCESS_LOCAL_WRITE, false);
	if (connection->type != VB_QP_UD)
		block_open(host, &end->target, bytes, VB_ACCESS_LOCAL_WRITE | REMOTE_ALL | VB_ACCESS_MW_BIND,
			connection->type == VB_QP_RC);
	if (connection->type == VB_QP_UC)
		memset(end->target.bytes, 0, bytes);
}

void connection_open(struct connection *connection, unsigned index, enum vb_qp_type type, bool is_xrc)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 1024, 2048, 4096, 4096 };
	memset(connection, 0, sizeof(*connection));
	connection->index = index;
	connection->type = type;
	connection->is_xrc = is_xrc;
	connection->mtu = mtus[below(7)];
	if (world.network.is_of_nics)
		connection->mtu -= index * 31 % 200;
	bool is_big = index == 0 && type == VB_QP_RC;
	connection->slots = is_big ? BIG_SLOTS : SLOTS;
	connection->slot_bytes = !is_big ? SLOT_BYTES : world.is_twin ? BIG_SLOT_BYTES / 4 : BIG_SLOT_BYTES;
	if (world.is_local && is_big && chance(300000)) /* which is copied in several pieces */
		connection->slot_bytes = 5 * BIG_SLOT_BYTES / 2;
	unsigned a = below(world.host_count), b = below(world.host_count);
	if (a == b && chance(900000))
		b = (b + 1) % world.host_count;
	end_open(connection, 0, &world.hosts[a]);
	end_open(connection, 1, &world.hosts[b]);
	connection_start(connection);
	for (int i = 0; i < 2; i++)
		event_add(after((vb_time)below(20000) * VB_NS), EVENT_APP, &connection->ends[i]);
}

/* ---- Up ---------------------------------------------------------------------------------------------------------- */

static enum vb_qp_type engine_type(const struct endpoint *end)
{
	return !end->connection->is_xrc ? end->type : end->is_target ? VB_QP_XRC_RECV : VB_QP_XRC_SEND;
}

static void create_qp(struct endpoint *end)
{
	bool is_xrc = end->connection->is_xrc;
	struct host *host = end->host;
	struct vb_qp_config config = { .type = engine_type(end),
		.pd = end->is_target ? NULL : host->pd,
		.send_cq = end->is_target ? NULL : host->cq,
		.recv_cq = is_xrc ? NULL : host->cq,
		.srq = end->has_srq && !is_xrc ? host->pools[0].srq : NULL,
		.xrcd = end->is_target ? host->xrcd : NULL,
		.max_send_wr = 4 + below(44),
		.max_recv_wr = RECVS,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline = 256,
		.user = end };
	must(vb_qp_create(end->lane->lane, &config, &end->qp), "qp_create");
	end->qpn = vb_qp_number(end->qp);
	end->depth = config.max_send_wr;
	if (end->type == VB_QP_RC)
		must(vb_mw_create(end->host->pd, 2, &end->window), "mw_create");
	end->window_state = WINDOW_UNBOUND;
	end->window_users = 0;
	end->head = end->tail = end->unsignalled = 0;
	end->inbound_head = end->inbound_tail = 0;
	end->recv_waiting = 0;
	end->is_dead = end->is_late = false;
	end->is_short = false;
	end->heard_id = 0;
	memset(end->recv_posted, 0, sizeof(end->recv_posted));
	memset(end->slot_users, 0, sizeof(end->slot_users));
}

static void connect_qp(struct endpoint *end, struct vb_qp_attr *attr)
{
	static const uint32_t to_init[] = { [VB_QP_RC] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QP_UC] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QP_UD] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY,
		[VB_QP_XRC_SEND] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QP_XRC_RECV] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS };
	static const uint32_t to_rtr[] = { [VB_QP_RC] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
							VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER,
		[VB_QP_UC] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN,
		[VB_QP_UD] = 0,
		[VB_QP_XRC_SEND] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN,
		[VB_QP_XRC_RECV] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
				   VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER };
	static const uint32_t to_rts[] = { [VB_QP_RC] = VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY |
							VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC,
		[VB_QP_UC] = VB_QP_SQ_PSN,
		[VB_QP_UD] = VB_QP_SQ_PSN,
		[VB_QP_XRC_SEND] =
			VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC,
		[VB_QP_XRC_RECV] = VB_QP_TIMEOUT | VB_QP_SQ_PSN };
	enum vb_qp_type type = engine_type(end);
	attr->state = VB_QPS_INIT;
	must(vb_qp_modify(end->qp, attr, VB_QP_STATE | to_init[type], world.now), "to INIT");
	recv_refill(end, RECVS);
	attr->state = VB_QPS_RTR;
	must(vb_qp_modify(end->qp, attr, VB_QP_STATE | to_rtr[type], world.now), "to RTR");
	attr->state = VB_QPS_RTS;
	must(vb_qp_modify(end->qp, attr, VB_QP_STATE | to_rts[type], world.now), "to RTS");
}

static void connect_end(struct endpoint *end)
{
	connect_qp(end, &end->attr);
	end->is_late = false;
	progress_made(end);
	lane_wake(end->lane, world.now);
}

void connection_late(struct connection *connection)
{
	for (int i = 0; i < 2; i++)
		if (connection->ends[i].is_late && connection->ends[i].qp)
			connect_end(&connection->ends[i]);
}

void connection_start(struct connection *connection)
{
	uint32_t psn[2] = { below(1 << 24), chance(100000) ? 0xFFFFF0 : below(1 << 24) };
	uint8_t depth[2] = { (uint8_t)(1 + below(8)), (uint8_t)(1 + below(16)) };
	uint8_t timeout = connection->timeout ? connection->timeout : (uint8_t)(11 + below(4));
	connection->ack_timeout = 4096 * VB_NS << timeout;
	for (int i = 0; i < 2; i++)
		create_qp(&connection->ends[i]);
	for (int i = 0; i < 2; i++) {
		struct endpoint *end = &connection->ends[i], *peer = &connection->ends[1 - i];
		struct vb_qp_attr attr = { .path_mtu = connection->mtu,
			.qkey = QKEY,
			.rq_psn = psn[1 - i],
			.sq_psn = psn[i],
			.dest_qpn = peer->qpn,
			.access = REMOTE_ALL,
			.port = 1,
			.max_rd_atomic = depth[i],
			.max_dest_rd_atomic = depth[1 - i],
			.min_rnr_timer = (uint8_t)(1 + below(14)),
			.timeout = timeout,
			.retry_cnt = RETRIES,
			.rnr_retry = 7,
			.av = { .sgid = end->host->gid, .dgid = peer->host->gid, .traffic_class = 2 } };
		end->attr = attr;
		end->is_late = world.is_local && i == 1 && chance(200000);
		if (end->is_late)
			event_add(after((vb_time)below(2000) * VB_US), EVENT_CONNECT, connection);
		else
			connect_end(end);
	}
	connection->state = UP;
	connection->may_break = connection->is_silenced = false;
	connection->generation++;
}

/* ---- Down -------------------------------------------------------------------------------------------------------- */

/* The earliest of several reasons decides when. */
static void repair_in(struct connection *connection, vb_time span)
{
	vb_time at = after(span);
	if (connection->is_repair_set && !vb_time_before(at, connection->repair_at))
		return;
	connection->is_repair_set = true;
	connection->repair_at = at;
	event_add(at, EVENT_REPAIR, connection);
}

void connection_broke(struct connection *connection)
{
	if (connection->state != UP)
		return;
	connection->state = BROKEN;
	repair_in(connection, (vb_time)below(2000) * VB_US);
}

static void end_destroy(struct endpoint *end)
{
	if (!end->qp)
		return;
	local_let_go(end->host);
	host_take_completions(end->host);
	must(vb_qp_destroy(end->qp), "qp_destroy");
	if (end->window)
		must(vb_mw_destroy(end->window), "mw_destroy");
	end->qp = NULL;
	end->window = NULL;
	local_look(end->lane, NULL);
}

static void to_error(struct endpoint *end)
{
	struct vb_qp_attr attr = { .state = VB_QPS_ERR };
	if (!end->qp)
		return;
	local_let_go(end->host);
	must(vb_qp_modify(end->qp, &attr, VB_QP_STATE, world.now), "to ERR");
	end->is_dead = true;
	lane_wake(end->lane, world.now);
}

/* After a connection is gone nobody knows which of its unfinished requests were executed; what memory holds now is what
 * it is from here on. Keys that were revoked open again. */
static void take_stock(struct endpoint *end)
{
	struct block *blocks[] = { &end->target, &end->local, &end->recvs };
	for (unsigned i = end->head; i != end->tail; i++)
		if (end->posted[i % MAX_QUEUE].kind == WR_ATOMIC)
			atomic_unknown(end, &end->posted[i % MAX_QUEUE]);
	/* A message that was given up may have brought anything, and what was secret is not. */
	if (end->type == VB_QP_UC || end->target.is_revoked)
		memset(end->target.bytes, 0, end->target.size);
	if (end->target.shadow)
		memcpy(end->target.shadow, end->target.bytes, end->target.size);
	for (int i = 0; i < 3; i++) {
		struct block *block = blocks[i];
		struct vb_mr_config config = {
			.memory = block->bytes, .iova = block->iova, .length = block->size, .access = block->access
		};
		if (!block->bytes)
			continue;
		local_let_go(end->host);
		must(vb_mr_invalidate(block->mr), "mr_invalidate");
		must(vb_mr_revalidate(block->mr, NULL, &config), "mr_revalidate");
		block->is_revoked = false;
	}
}

void connection_repair(struct connection *connection)
{
	if (!connection->is_repair_set || connection->repair_at != world.now)
		return;
	connection->is_repair_set = false;
	for (int i = 0; i < 2; i++) {
		struct lane *lane = connection->ends[i].lane;
		if (vb_time_before(world.now, lane->paused_until) || lane->host->is_dead) {
			vb_time rest = vb_time_diff(lane->paused_until, world.now);
			repair_in(connection, (rest > 0 ? rest : 0) + VB_US);
			return;
		}
	}
	connection_late(connection);
	if (connection->state == FLUSHING) {
		connection->state = ENDING;
		repair_in(connection, 2 * VB_MS);
		return;
	}
	if (connection->state != ENDING) {
		trace("connection %u: to ERR", connection->index);
		connection->state = FLUSHING;
		to_error(&connection->ends[0]);
		to_error(&connection->ends[1]);
		repair_in(connection, 2 * VB_MS);
		return;
	}
	for (int i = 0; i < 2; i++)
		host_take_completions(connection->ends[i].host);
	check_all_completed(connection);
	for (int i = 0; i < 2; i++)
		end_destroy(&connection->ends[i]);
	for (int i = 0; i < 2; i++)
		take_stock(&connection->ends[i]);
	world.reconnects++;
	connection_start(connection);
	trace("connection %u: up again", connection->index);
}

void connection_close(struct connection *connection)
{
	for (int i = 0; i < 2; i++)
		end_destroy(&connection->ends[i]);
	for (int i = 0; i < 2; i++) {
		block_close(&connection->ends[i].local);
		block_close(&connection->ends[i].target);
		block_close(&connection->ends[i].recvs);
	}
}

/* ---- Disasters --------------------------------------------------------------------------------------------------- */

static void excuse(vb_time span)
{
	vb_time until = after(span + 2 * VB_S);
	if (vb_time_before(world.network.excused_until, until))
		world.network.excused_until = until;
}

void connection_silence(struct connection *connection)
{
	if (connection->state == UP)
		connection->may_break = connection->is_silenced = true;
	repair_in(connection, 3 * VB_S);
}

void connection_end_vanish(struct endpoint *end)
{
	trace("connection %u: qpn %06x vanishes", end->connection->index, end->qpn);
	if (end->has_srq && end->qp && !end->is_late) /* gives back the shared receive that a message may be using */
		to_error(end);
	end_destroy(end);
}

void connection_may_break(struct connection *connection)
{
	if (connection->state != UP)
		return;
	connection->may_break = true;
	repair_in(connection, 500 * VB_MS); /* if nobody stumbles over it */
}

void connection_give_up(struct endpoint *end)
{
	struct connection *connection = end->connection;
	if (connection->state != UP || !end->qp || end->is_late)
		return;
	trace("connection %u: qpn %06x gives up", connection->index, end->qpn);
	connection->may_break = true;
	to_error(end);
	lane_look_around(end->lane, true);
	connection_broke(connection);
}

/* One process is killed: its QP is gone without a word, and its peer learns it by silence alone. */
static void restart_peer(struct connection *connection)
{
	struct endpoint *end = &connection->ends[below(2)];
	if (connection->type != VB_QP_RC || connection->state != UP || connection->is_silenced)
		return;
	connection_silence(connection);
	connection_end_vanish(end);
}

void connection_revoke(struct block *block, struct connection *connection)
{
	if (connection->type != VB_QP_RC || connection->state != UP || !block->bytes || connection->is_silenced)
		return;
	bool is_target = block == &connection->ends[0].target || block == &connection->ends[1].target;
	const struct endpoint *end = &connection->ends[block >= &connection->ends[1].local];
	local_let_go(end->host);
	if (vb_mr_invalidate(block->mr)) /* a window is bound to it */
		return;
	trace("connection %u: a key of qpn %06x is revoked", connection->index, end->qpn);
	connection_may_break(connection);
	if (!world.is_local || !is_target)
		return;
	block->is_revoked = true;
	memset(block->bytes, SECRET, block->size);
}

static void revoke_key(struct connection *connection)
{
	struct endpoint *end = &connection->ends[below(2)];
	struct block *blocks[] = { &end->target, &end->local, &end->recvs };
	connection_revoke(blocks[below(3)], connection);
}

/* An XRC SRQ goes, and another comes with another number: who has named the old one is refused. */
static void replace_srq(struct connection *connection)
{
	struct host *host = connection->ends[1].host;
	unsigned index = 1 + below(POOLS - 1);
	if (!connection->is_xrc || host->is_dead)
		return;
	local_let_go(host);
	trace("host %u: XRC SRQ %u is replaced", host->index, index);
	host_replace_srq(host, index);
	for (unsigned i = 0; i < world.connection_count; i++) {
		struct connection *other = &world.connections[i];
		if (!other->is_xrc || other->ends[1].host != host || other->state != UP || other->is_silenced)
			continue;
		connection_may_break(other);
	}
}

/* Most of them: else nothing but disasters would happen. */
static bool are_well(void)
{
	unsigned count = 0;
	for (unsigned i = 0; i < world.connection_count; i++)
		count += world.connections[i].state == UP && !world.connections[i].may_break;
	return 2 * count >= world.connection_count;
}

void chaos(void)
{
	struct conditions *n = &world.network;
	event_add(after((vb_time)(1 + below(world.is_local ? 300 : 2000)) * VB_US), EVENT_CHAOS, NULL);
	if (!chance(n->chaos_ppm) || world.is_stopping)
		return;
	struct connection *connection = &world.connections[below(world.connection_count)];
	if (world.is_local && !are_well())
		return;
	if (world.is_local && chance(200000)) {
		unsigned kind = below(5);
		struct endpoint *end = &connection->ends[below(2)];
		if (kind < 2) {
			local_part();
		} else if (kind == 2 && n->has_restarts) {
			local_kill(&world.hosts[below(world.host_count)]);
		} else if (kind == 3 && n->has_restarts) {
			connection_give_up(end);
		} else if (kind == 4 && n->has_dead_keys && connection->type == VB_QP_RC && !end->has_srq) {
			end->is_short = true;
			connection_may_break(connection);
		}
		return;
	}
	unsigned kind = below(4);
	if (kind == 0 && n->has_pauses) {
		struct host *host = &world.hosts[below(world.host_count)];
		struct lane *lane = &host->lanes[below(host->lane_count)];
		vb_time span = (vb_time)below(world.is_local && chance(200000) ? 1000000 : 100000) * VB_US;
		lane_pause(lane, span);
		excuse(span);
	} else if (kind == 1 && n->has_pauses) {
		vb_time span = (vb_time)below(30000) * VB_US;
		bool is_one_way = chance(500000); /* of one lane, which goes on hearing others */
		network_black_out(is_one_way ? connection->ends[0].lane : NULL, span);
		excuse(span);
	} else if (kind == 2 && n->has_restarts) {
		restart_peer(connection);
	} else if (kind == 3 && n->has_dead_keys && chance(500000)) {
		replace_srq(connection);
	} else if (kind == 3 && n->has_dead_keys) {
		revoke_key(connection);
	}
}
