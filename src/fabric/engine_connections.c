/* See engine_connections.h. */
#include "fabric/engine_connections.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "cc/choice.h"
#include "fabric/endpoint.h"
#include "fabric/round_trips.h"
#include "fabric/telemetry.h"
#include "net/grow.h"

enum {
	KEPT_DEPTH = 64,   /* work requests that a connection that stays open takes at a time */
	NOBODYS_INDEX = 0, /* no QP has it */
};

/* In generations, until nothing of a flow is under way: its requests have arrived, their acks and CNPs, and the CNPs
 * for marked acks. */
#define QUIET_TURNS 3

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static uint16_t next_listed_number(struct fabric *fabric, uint32_t endpoint)
{
	struct engine_end *end = &fabric->endpoints[endpoint].engine;
	if (!fabric->config->job_count)
		return (uint16_t)vb_lane_next_number(end->lane);
	return (uint16_t)(CONNECTIONS_FIRST_LISTED + end->next_number++);
}

static const struct qp_plane *plane_of(const struct fabric *fabric, uint32_t endpoint)
{
	return endpoint < network_back_endpoints(fabric->network) ? &fabric->back_plane : &fabric->front_plane;
}

/* Whether it is a responder's number that has no place: of its source's own choice, so that those of others may be the
 * same. */
static bool is_without_place(const struct fabric *fabric, uint32_t endpoint, uint32_t index)
{
	return index >= CONNECTIONS_FIRST_RESPONDER && index & plane_of(fabric, endpoint)->sources;
}

/* The next number with that bit of those from `first` on that the lane does not have; 0: it has them all. */
static uint32_t next_free(
	const struct qp_plane *plane, const struct vb_lane *lane, uint32_t first, uint32_t range, uint16_t *next)
{
	for (uint32_t tries = 0; tries < range / 2; tries++) {
		const uint32_t k = (*next)++ % (range / 2);
		const uint32_t index = qp_index_of_turn(plane->sources, first, k);
		assert(index < first + range);
		if (!vb_lane_has_qp(lane, qp_number(index)))
			return index;
	}
	return 0;
}

static uint32_t next_requester(const struct qp_plane *plane, struct engine_end *end)
{
	return next_free(plane, end->lane, CONNECTIONS_FIRST_REQUESTER,
		CONNECTIONS_FIRST_RESPONDER - CONNECTIONS_FIRST_REQUESTER, &end->next_number);
}

/* The number that the QP has at its destination, where the number on the wire may be several sources'. */
static uint32_t next_responder(const struct qp_plane *plane, struct engine_end *end)
{
	return next_free(plane, end->lane, CONNECTIONS_FIRST_RESPONDER, CONNECTIONS_FIRST_RESPONDER, &end->next_here);
}

static void run_out_of_numbers(struct shard *shard, uint32_t endpoint)
{
	shard->is_out_of_numbers = true;
	shard->out_of_numbers = endpoint;
}

static bool take_numbers(struct shard *shard, struct connection *its)
{
	const struct fabric *fabric = shard->fabric;
	struct engine_end *end = &fabric->endpoints[its->src].engine;
	const struct qp_plane *plane = plane_of(fabric, its->src);
	const uint32_t requester = next_requester(plane, end);
	uint32_t *used = requester ? number_map_make(&end->used, its->dst) : NULL;
	if (!requester)
		run_out_of_numbers(shard, its->src);
	else
		shard->is_out_of_memory |= !used;
	if (!used)
		return false;
	its->requester_index = (uint16_t)requester;
	its->place = (uint8_t)qp_take_place(plane->sources, used);
	its->responder_index =
		(uint16_t)(its->place != CONNECTIONS_NO_PLACE ? qp_responder_index(plane, its->src, its->place)
							      : qp_responder_without_place(requester));
	assert(is_without_place(fabric, its->src, its->responder_index) == (its->place == CONNECTIONS_NO_PLACE));
	return true;
}

static void give_back_numbers(struct fabric *fabric, const struct connection *its)
{
	struct number_map *map = &fabric->endpoints[its->src].engine.used;
	uint32_t *used = number_map_find(map, its->dst);
	if (its->place == CONNECTIONS_NO_PLACE)
		return;
	assert(used);
	*used &= ~(1u << its->place);
	if (*used == 0)
		number_map_remove(map, its->dst);
}

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

static int connect_qp(const struct fabric *fabric, uint32_t own, uint32_t peer, uint8_t traffic_class, struct vb_qp *qp,
	uint32_t dest_qpn)
{
	const struct fabric_config *config = fabric->config;
	const bool takes_marks = !engine_is_behind_sockets(fabric) || vb_cc_takes_marks_live(config->cc.algorithm);
	struct vb_qp_attr attr = { .path_mtu = config->mtu,
		.dest_qpn = dest_qpn,
		.access = VB_ACCESS_REMOTE_WRITE,
		.port = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = engine_retries(config),
		.rnr_retry = 7,
		.av = { .sgid = fabric_gid(own),
			.dgid = fabric_gid(peer),
			.traffic_class = (uint8_t)(traffic_class << DSCP_SHIFT | (takes_marks ? ECT : 0)) } };
	attr.state = VB_QPS_INIT;
	int rc = vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, 0);
	attr.state = VB_QPS_RTR;
	if (rc == 0)
		rc = vb_qp_modify(qp, &attr,
			VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
				VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER,
			0);
	attr.state = VB_QPS_RTS;
	if (rc == 0)
		rc = vb_qp_modify(qp, &attr,
			VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
				VB_QP_MAX_QP_RD_ATOMIC,
			0);
	return rc;
}

static int create_qp(const struct fabric *fabric, uint32_t endpoint, uint32_t index, struct connection *user,
	uint32_t depth, struct vb_qp **qp)
{
	struct endpoint *its = &fabric->endpoints[endpoint];
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = its->engine.pd,
		.send_cq = its->engine.cq,
		.recv_cq = its->engine.cq,
		.max_send_wr = depth,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.number = qp_number(index),
		.user = user };
	return vb_qp_create(its->engine.lane, &config, qp);
}

/* As processes learn about each other from their brokers. */
static void introduce(const struct fabric *fabric, uint32_t endpoint, uint32_t peer)
{
	const struct vb_peer_facts facts = { .is_verbena = true, .receive_buffer = fabric->config->receive_buffer };
	const struct vb_gid gid = fabric_gid(peer);
	if (engine_is_behind_sockets(fabric))
		vb_lane_set_peer(fabric->endpoints[endpoint].engine.lane, &gid, &facts);
}

static int open_requester(struct shard *shard, struct connection *its)
{
	const struct fabric *fabric = shard->fabric;
	const struct vb_cc_config *control = NULL;
	assert(!its->requester);
	introduce(fabric, its->src, its->dst);
	int rc = create_qp(fabric, its->src, its->requester_index, its, its->depth, &its->requester);
	if (rc == 0 && shard->round_trips)
		rc = round_trips_config(shard, its->src, its->dst, &control);
	if (control)
		rc = vb_qp_set_congestion_control(its->requester, control);
	return rc ? rc
		  : connect_qp(fabric, its->src, its->dst, its->traffic_class, its->requester,
			    qp_number(its->responder_index));
}

/* A message whose arrival is to be told ends with an immediate, for which its destination has posted a receive request.
 * So the engine reports the arrival there, as it does to programs. A packet ends one message at most, and its
 * completion is taken at once: one request is enough. */
int connection_expect_arrival(struct shard *shard, struct connection *its)
{
	const struct vb_recv_wr wr = { .wr_id = its->number };
	struct endpoint *endpoint = &shard->fabric->endpoints[its->dst];
	return engine_make_room(shard, endpoint, 1) ? vb_rq_post(its->responder, &wr) : -ENOMEM;
}

static int open_responder(struct shard *shard, struct connection *its)
{
	const struct fabric *fabric = shard->fabric;
	struct engine_end *end = &fabric->endpoints[its->dst].engine;
	const uint32_t index = its->place == CONNECTIONS_NO_PLACE ? next_responder(plane_of(fabric, its->dst), end)
								  : its->responder_index;
	assert(!its->responder);
	if (index == 0) {
		run_out_of_numbers(shard, its->dst);
		return 0;
	}
	introduce(fabric, its->dst, its->src);
	int rc = telemetry_open_connection(fabric, its);
	if (rc == 0)
		rc = create_qp(fabric, its->dst, index, its, 1, &its->responder);
	if (rc == 0)
		rc = connect_qp(fabric, its->dst, its->src, its->traffic_class, its->responder,
			qp_number(its->requester_index));
	return rc || !its->tells_arrivals ? rc : connection_expect_arrival(shard, its);
}

bool engine_make_room(struct shard *shard, struct endpoint *endpoint, uint32_t pieces)
{
	const uint32_t capacity = vb_cq_capacity(endpoint->engine.cq);
	endpoint->engine.open_pieces += pieces;
	if (endpoint->engine.open_pieces <= capacity)
		return true;
	uint32_t wanted = endpoint->engine.open_pieces > 2 * capacity ? endpoint->engine.open_pieces : 2 * capacity;
	shard->is_out_of_memory |= vb_cq_resize(endpoint->engine.cq, wanted) != 0;
	assert(wanted >= endpoint->engine.open_pieces);
	return !shard->is_out_of_memory;
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static uint64_t expected_key(uint32_t src, uint32_t index)
{
	return (uint64_t)src << 16 | index;
}

void connection_expect(struct shard *shard, uint32_t endpoint, uint32_t number)
{
	const struct connection *its = connection_at(shard->fabric, number);
	uint32_t *expected = number_map_make(
		&shard->fabric->endpoints[endpoint].engine.expected, expected_key(its->src, its->responder_index));
	assert(its->dst == endpoint);
	shard->is_out_of_memory |= !expected;
	if (expected)
		*expected = number;
}

static void tell_destination(struct shard *shard, const struct connection *its)
{
	const uint16_t there = shard->fabric->endpoints[its->dst].shard;
	struct mailbox *box = &shard->out[there];
	if (there == shard->index) {
		connection_expect(shard, its->dst, its->number);
		return;
	}
	if (!grow_by_one(&box->news, &box->news_room, box->news_count, sizeof(*box->news))) {
		shard->is_out_of_memory = true;
		return;
	}
	box->news[box->news_count++] = (struct mailbox_news){ its->dst, its->number };
}

static void expect_no_more(struct fabric *fabric, const struct connection *its)
{
	number_map_remove(&fabric->endpoints[its->dst].engine.expected, expected_key(its->src, its->responder_index));
}

static struct connection *make(struct shard *shard, const struct flow_state *flow, uint32_t depth)
{
	const uint32_t number = pool_take(&shard->fabric->connections, &shard->connections);
	if (number == POOL_NONE)
		return NULL;
	struct connection *its = connection_at(shard->fabric, number);
	*its = (struct connection){ .number = number,
		.src = flow->src,
		.dst = flow->dst,
		.depth = depth,
		.first_waiting = FLOW_NONE,
		.entropy = flow->entropy,
		.traffic_class = flow->traffic_class,
		.tells_arrivals = flow->tells_arrival };
	return its;
}

static bool is_listed(const struct fabric *fabric, const struct flow_state *flow)
{
	return fabric->has_list && flow->job == 0;
}

static struct connection *open_own(struct shard *shard, const struct flow_state *flow, uint32_t depth)
{
	struct fabric *fabric = shard->fabric;
	struct connection *its = make(shard, flow, depth);
	shard->is_out_of_memory |= !its;
	if (!its)
		return NULL;
	its->is_listed = is_listed(fabric, flow);
	if (its->is_listed) {
		its->requester_index = fabric->listed_numbers[2 * flow->tag];
		its->responder_index = fabric->listed_numbers[2 * flow->tag + 1];
	} else if (!take_numbers(shard, its)) {
		return NULL;
	}
	tell_destination(shard, its);
	shard->is_out_of_memory |= open_requester(shard, its) != 0;
	return shard->is_out_of_memory ? NULL : its;
}

uint64_t connection_key(const struct fabric *fabric, const struct flow_state *flow)
{
	const uint32_t gpu = hosts_gpu_in_host(&fabric->config->hosts, flow->from);
	assert(flow->to < 1u << 24 && gpu < 1u << 10 && flow->channel <= MESSAGE_MOST_CHANNEL &&
		flow->traffic_class < 1u << 3);
	return (uint64_t)flow->to << 40 | (uint64_t)gpu << 30 | flow->channel << 19 | flow->traffic_class << 16 |
	       flow->job;
}

struct connection *connection_of(struct shard *shard, struct flow_state *flow, uint32_t pieces)
{
	struct fabric *fabric = shard->fabric;
	struct number_map *kept = &fabric->endpoints[flow->src].engine.kept;
	if (fabric->listed_connections && is_listed(fabric, flow))
		return connection_at(fabric, fabric->listed_connections[flow->tag]);
	if (flow->channel == 0 || pieces > KEPT_DEPTH)
		return open_own(shard, flow, pieces);
	uint32_t *number = number_map_find(kept, connection_key(fabric, flow));
	if (number)
		return connection_at(fabric, *number);
	struct connection *its = open_own(shard, flow, KEPT_DEPTH);
	if (!its)
		return NULL;
	its->is_kept = its->tells_arrivals = true;
	number = number_map_make(kept, connection_key(fabric, flow));
	shard->is_out_of_memory |= !number;
	if (number)
		*number = its->number;
	return number ? its : NULL;
}

uint32_t connection_qpn(struct shard *shard, uint32_t endpoint, uint32_t src, uint32_t qpn)
{
	const struct engine_end *end = &shard->fabric->endpoints[endpoint].engine;
	const uint32_t index = (uint16_t)qpn;
	const bool is_of_source = is_without_place(shard->fabric, endpoint, index);
	if (!is_of_source && vb_lane_has_qp(end->lane, qpn))
		return qpn;
	const uint32_t *number = number_map_find(&end->expected, expected_key(src, index));
	struct connection *its = number ? connection_at(shard->fabric, *number) : NULL;
	if (its && !its->responder)
		shard->is_out_of_memory |= open_responder(shard, its) != 0;
	if (its && its->responder)
		return vb_qp_number(its->responder);
	return is_of_source ? qp_number(NOBODYS_INDEX) : qpn;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

static int open_listed(struct fabric *fabric, uint32_t number)
{
	const struct flow *flow = &fabric->config->flows->flows[number];
	const struct flow_state message = { .src = flow->src,
		.dst = flow->dst,
		.traffic_class = flow->traffic_class,
		.entropy = (uint16_t)(number ^ number >> 16),
		.tells_arrival = flow_job_tells(&fabric->listed, number) };
	struct shard *shard = &fabric->shards[fabric->endpoints[flow->src].shard];
	struct connection *its = make(shard, &message, engine_pieces(flow->bytes));
	if (!its)
		return -ENOMEM;
	its->is_listed = true;
	its->requester_index = fabric->listed_numbers[2 * number];
	its->responder_index = fabric->listed_numbers[2 * number + 1];
	fabric->listed_connections[number] = its->number;
	int rc = open_requester(shard, its);
	return rc ? rc : open_responder(&fabric->shards[fabric->endpoints[flow->dst].shard], its);
}

int connections_open(struct fabric *fabric)
{
	const struct flow_list *list = fabric->config->flows;
	fabric->listed_numbers = malloc((2 * (size_t)list->count + 1) * sizeof(*fabric->listed_numbers));
	if (!fabric->listed_numbers)
		return -ENOMEM;
	pool_open(&fabric->connections, sizeof(struct connection));
	pool_open(&fabric->timers, sizeof(struct vb_timer));
	if (fabric->config->job_count) {
		fabric->back_plane = qp_back_plane(fabric->network);
		fabric->front_plane = qp_front_plane(fabric->network);
	}
	assert(fabric->back_plane.sources <= CONNECTIONS_MOST_ENDPOINTS);
	assert(fabric->front_plane.sources <= CONNECTIONS_MOST_ENDPOINTS);
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->flows[i].bytes > (uint64_t)VB_MAX_QP_WR * ENGINE_PIECE_BYTES)
			return -EINVAL;
		fabric->listed_numbers[2 * i] = next_listed_number(fabric, list->flows[i].src);
		fabric->listed_numbers[2 * i + 1] = next_listed_number(fabric, list->flows[i].dst);
	}
	if (!engine_is_behind_sockets(fabric))
		return 0;
	fabric->listed_connections = malloc((list->count + 1) * sizeof(*fabric->listed_connections));
	int rc = fabric->listed_connections ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < list->count && rc == 0; i++)
		rc = open_listed(fabric, i);
	return rc;
}

static void destroy(struct vb_qp **qp)
{
	if (*qp)
		vb_qp_destroy(*qp);
	*qp = NULL;
}

static bool is_quiet(const struct connection *its)
{
	return (!its->requester || vb_qp_is_quiet(its->requester)) &&
	       (!its->responder || vb_qp_is_quiet(its->responder));
}

/* When a connection is closed must not change when its endpoint wakes up: its timer keeps its place, if it has one. */
static void leave_timer(struct fabric *fabric, struct connection *its)
{
	struct pool_list *list = &fabric->shards[fabric->endpoints[its->src].shard].timers;
	const uint32_t number = pool_take(&fabric->timers, list);
	if (number == POOL_NONE)
		return;
	struct vb_timer *timer = pool_at(&fabric->timers, number);
	vb_qp_leave_timer(its->requester, timer);
	if (timer->index < 0)
		pool_put(&fabric->timers, list, number);
}

static void destroy_both(struct connection *its)
{
	destroy(&its->requester);
	destroy(&its->responder);
	telemetry_close_connection(its);
}

static void close_own(struct fabric *fabric, struct connection *its)
{
	if (its->is_listed)
		leave_timer(fabric, its);
	else
		give_back_numbers(fabric, its);
	destroy_both(its);
	expect_no_more(fabric, its);
	pool_put(&fabric->connections, &fabric->shards[fabric->endpoints[its->src].shard].connections, its->number);
}

static bool stays_open(const struct fabric *fabric, const struct connection *its)
{
	return its->is_kept || (its->is_listed && engine_is_behind_sockets(fabric));
}

/* Of jobs, whose connections are many: what still comes finds no QP and is dropped, and the numbers stay taken until
 * nothing comes. Without a place it is the requester that keeps the number. A list's results do not depend on when its
 * connections are closed. */
void connection_retire_after(struct fabric *fabric, uint32_t number)
{
	struct connection *its = connection_at(fabric, flow_at(fabric, number)->connection);
	if (its->is_listed || its->place == CONNECTIONS_NO_PLACE || stays_open(fabric, its) ||
		!vb_qp_is_quiet(its->requester))
		return;
	destroy_both(its);
	expect_no_more(fabric, its);
}

bool connection_close_after(struct fabric *fabric, uint32_t number)
{
	const struct flow_state *flow = flow_at(fabric, number);
	struct connection *its = connection_at(fabric, flow->connection);
	assert(flow->pieces_left == 0);
	if (stays_open(fabric, its))
		return true;
	its->quiet_turns = is_quiet(its) ? its->quiet_turns + 1 : 0;
	if (its->quiet_turns < QUIET_TURNS)
		return false;
	close_own(fabric, its);
	return true;
}

void connections_close(struct fabric *fabric)
{
	struct connection *its;
	for (uint32_t i = 0; (its = pool_next(&fabric->connections, &i)); i++) {
		destroy(&its->requester);
		destroy(&its->responder);
		telemetry_close_connection(its);
	}
	for (uint32_t i = 0; fabric->endpoints && i < fabric->network->endpoint_count; i++) {
		struct engine_end *end = &fabric->endpoints[i].engine;
		number_map_free(&end->expected);
		number_map_free(&end->kept);
		number_map_free(&end->used);
	}
	free(fabric->listed_numbers);
	free(fabric->listed_connections);
}

void connections_forget_timers(struct fabric *fabric)
{
	pool_close(&fabric->connections);
	pool_close(&fabric->timers);
}
