/* A simulated host, driven as a live holder drives its lanes: what has arrived, what is due, what may leave, what
 * there is to tell. A lane is called only for a packet, a posted request, its own deadline or room to send: a deadline
 * that the engine forgets shows as a stall. */
#include <stdlib.h>
#include <string.h>
#include "engine/check.h"
#include "local/local.h"
#include "sim.h"

#define TRAIN_MAX  32
#define LINK_QUEUE (20 * VB_US) /* what an interface's queue holds */

#define SEGMENTS 65536

static struct {
	const struct host *host;
	const struct block *block;
} segments[SEGMENTS];

static uint32_t segment_open(const struct host *host, const struct block *block)
{
	uint32_t segment = ++world.last_segment;
	segments[segment % SEGMENTS].host = host;
	segments[segment % SEGMENTS].block = block;
	return segment;
}

const struct block *block_of_segment(const struct host *host, uint32_t segment)
{
	const struct block *block = segments[segment % SEGMENTS].block;
	return block && block->bytes && block->segment == segment && segments[segment % SEGMENTS].host == host ? block
													       : NULL;
}

void block_open(struct host *host, struct block *block, uint64_t size, uint32_t access, bool has_shadow)
{
	static const uint64_t spread = 1ull << 32;
	uint8_t *memory;
	*block = (struct block){ .size = size, .access = access };
	if (posix_memalign((void **)&memory, 64, size + 2 * GUARD))
		abort();
	block->bytes = memory + GUARD;
	guard_write(memory, GUARD);
	guard_write(block->bytes + size, GUARD);
	pattern_fill(block->bytes, (uint32_t)size, world.next_id, 0);
	block->iova = spread * ++world.next_id;
	if (has_shadow) {
		block->shadow = malloc(size);
		memcpy(block->shadow, block->bytes, size);
	}
	block->segment = world.is_local && chance(400000) ? segment_open(host, block) : 0;
	struct vb_mr_config config = {
		.memory = block->bytes, .iova = block->iova, .length = size, .access = access, .segment = block->segment
	};
	if (vb_mr_register(host->pd, &config, &block->mr))
		broken("a region cannot be registered");
	block->key = vb_mr_key(block->mr);
}

void block_close(struct block *block)
{
	if (!block->bytes)
		return;
	check_guard(block);
	vb_mr_invalidate(block->mr);
	vb_mr_free(block->mr);
	free(block->bytes - GUARD);
	free(block->shadow);
	block->bytes = NULL;
}

/* The lanes of a host publish their QPs' epochs at one place, so no two have the same index. */
static void lane_open(struct lane *lane, struct host *host, uint8_t slot)
{
	const uint32_t indices = 0x10000 / MAX_LANES;
	struct vb_lane_config config = { .seed = vb_random_u64(&world.random),
		.slot = slot,
		.first_index = (uint32_t)(lane - host->lanes) * indices,
		.index_count = indices,
		.receive_buffer = (uint32_t)world.network.receive_buffer,
		.ack_delay = world.network.ack_delay,
		.patience = world.network.patience,
		.cc = world.network.cc,
		.acks = world.network.acks,
		.cnps = world.network.cnps,
		.packet_overhead = world.network.packet_overhead,
		.never_probes = world.network.never_probes,
		.replies_first = world.network.replies_first,
		.unknown_peer_allowance = world.network.unknown_peer_allowance,
		.meets_local_peers = world.is_local,
		.recovery = world.network.recovery,
		.hold_bytes = world.network.hold_bytes,
		.paths = world.network.paths,
		.flowlet_packets = world.network.flowlet,
		.fails_over = world.network.fails_over,
		.goes_by_large = true };
	const uint32_t mtu = world.network.large_mtu ? world.network.large_mtu : VB_MAX_MTU;
	const struct vb_address addresses[] = { { host->gid, mtu }, { host->further, mtu } };
	memset(lane, 0, sizeof(*lane));
	lane->host = host;
	lane->slot = slot;
	lane->rx_tail = &lane->rx_head;
	lane->batch = malloc(sizeof(*lane->batch));
	lane->busy_until = lane->paused_until = lane->last_run = world.now;
	if (vb_lane_create(&config, &lane->lane))
		broken("a lane cannot be made");
	vb_lane_set_addresses(lane->lane, addresses, 2);
}

static void srq_create(struct host *host, unsigned index)
{
	struct vb_srq_config config = { .max_wr = SHARED_RECVS * 2,
		.max_sge = 4,
		.xrcd = index ? host->xrcd : NULL,
		.cq = index ? host->cq : NULL };
	if (vb_srq_create(host->pd, &config, &host->pools[index].srq))
		broken("an SRQ cannot be made");
}

void host_replace_srq(struct host *host, unsigned index)
{
	struct pool *pool = &host->pools[index];
	host_take_completions(host);
	if (vb_srq_destroy(pool->srq))
		broken("an XRC SRQ cannot go");
	memset(pool->posted, 0, sizeof(pool->posted));
	srq_create(host, index);
}

static void pool_open(struct host *host, unsigned index)
{
	struct pool *pool = &host->pools[index];
	srq_create(host, index);
	block_open(host, &pool->recvs, SHARED_RECVS * SEND_MAX, VB_ACCESS_LOCAL_WRITE, false);
}

void host_open(struct host *host, unsigned index, unsigned lanes)
{
	struct vb_nic_config nic = { .seed = vb_random_u64(&world.random),
		.mtu = 4096,
		.large_mtu = world.network.large_mtu,
		.advertise_credits = chance(300000) };
	struct vb_cq_config cq = { .capacity = 65536 };
	memset(host, 0, sizeof(*host));
	nic.epochs = host->epochs = world.is_local ? calloc(1, sizeof(*host->epochs)) : NULL;
	host->index = index;
	host->gid = world.network.is_ipv6 ? (struct vb_gid){ { 0xfd, [15] = (uint8_t)(index + 1) } }
					  : vb_gid_from_ipv4(10, 0, 0, (uint8_t)(index + 1));
	host->further = host->gid;
	host->further.raw[14] = 1;
	if (vb_nic_create(&nic, &host->nic) || vb_nic_set_gid(host->nic, 0, &host->gid) ||
		vb_pd_create(host->nic, &host->pd) || vb_cq_create(host->nic, &cq, &host->cq) ||
		vb_xrcd_create(host->nic, &host->xrcd))
		broken("a NIC cannot be made");
	host->lane_count = lanes;
	for (unsigned i = 0; i < lanes; i++)
		lane_open(&host->lanes[i], host, (uint8_t)(1 + i + index * 2));
	for (unsigned i = 0; i < POOLS; i++)
		pool_open(host, i);
	block_open(host, &host->cells, CELLS * 8,
		VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_REMOTE_READ, false);
	memset(host->cells.bytes, 0, CELLS * 8);
	recv_refill_shared(host, SHARED_RECVS * POOLS);
}

static void must(int rc, const char *what)
{
	if (rc)
		broken("%s gives %d at the end", what, rc);
}

void host_close(struct host *host)
{
	for (unsigned i = 0; i < host->lane_count; i++) {
		struct lane *lane = &host->lanes[i];
		for (struct frame *frame; (frame = lane->rx_head);) {
			lane->rx_head = frame->next;
			frame_put(frame);
		}
		uint64_t counters[VB_COUNTER_COUNT];
		vb_lane_counters(lane->lane, counters);
		world.timeouts += counters[VB_TIMEOUTS];
		world.held += counters[VB_HELD];
		vb_lane_destroy(lane->lane);
		free(lane->batch);
	}
	for (unsigned i = 0; i < POOLS; i++)
		block_close(&host->pools[i].recvs);
	block_close(&host->cells);
	for (unsigned i = 0; i < POOLS; i++)
		must(vb_srq_destroy(host->pools[i].srq), "srq_destroy");
	must(vb_xrcd_destroy(host->xrcd), "xrcd_destroy");
	must(vb_cq_destroy(host->cq), "cq_destroy");
	must(vb_pd_destroy(host->pd), "pd_destroy");
	vb_nic_destroy(host->nic);
	free(host->epochs);
}

/* Some know from the start that the others are Verbena, and how much their sockets hold. */
void host_meet(struct host *host)
{
	for (unsigned i = 0; i < world.host_count; i++) {
		struct vb_peer_facts facts = { .is_verbena = true,
			.takes_hellos = world.network.takes_hellos || i % 2 == 0,
			.receive_buffer = (uint32_t)world.network.receive_buffer };
		for (unsigned k = 0; k < host->lane_count; k++)
			vb_lane_set_peer(host->lanes[k].lane, &world.hosts[i].gid, &facts);
	}
}

/* ---- Running a lane ---------------------------------------------------------------------------------------------- */

void lane_wake(struct lane *lane, vb_time at)
{
	if (vb_time_before(at, lane->busy_until))
		at = lane->busy_until;
	if (vb_time_before(at, lane->paused_until))
		at = lane->paused_until;
	if (vb_time_before(at, world.now))
		at = world.now;
	if (lane->is_scheduled && !vb_time_before(at, lane->wake_at))
		return;
	lane->is_scheduled = true;
	lane->wake_at = at;
	event_add(at, EVENT_LANE, lane);
}

void lane_pause(struct lane *lane, vb_time span)
{
	vb_time from = vb_time_before(world.now, lane->paused_until) ? lane->paused_until : world.now;
	lane->paused_until = after(span);
	lane->paused_for += vb_time_diff(lane->paused_until, from);
	lane_wake(lane, lane->paused_until); /* which may be earlier than it was */
}

vb_time lane_running_time(const struct lane *lane)
{
	vb_time ahead = vb_time_diff(lane->paused_until, world.now);
	return vb_time_diff(world.now, lane->paused_for - (ahead > 0 ? ahead : 0));
}

vb_time lane_lag(const struct lane *lane)
{
	return lane->rx_head ? vb_time_diff(world.now, lane->rx_head->arrived_at) : 0;
}

static bool is_same_path(const struct frame *a, const struct frame *b)
{
	return vb_gid_equal(&a->path.src, &b->path.src) && vb_gid_equal(&a->path.dst, &b->path.dst) &&
	       a->path.src_port == b->path.src_port && a->path.traffic_class == b->path.traffic_class;
}

/* The oldest packets of one path; their payloads are overwritten afterwards, for they are only lent. */
static unsigned receive_train(struct lane *lane)
{
	struct vb_packet packets[TRAIN_MAX];
	struct frame *frames[TRAIN_MAX];
	unsigned n = 0, most = world.network.is_trained ? TRAIN_MAX : 1;
	while (n < most && lane->rx_head && (n == 0 || is_same_path(frames[0], lane->rx_head))) {
		struct frame *frame = lane->rx_head;
		lane->rx_head = frame->next;
		if (!lane->rx_head)
			lane->rx_tail = &lane->rx_head;
		lane->rx_bytes -= frame->packet.payload_length + 768;
		lane->rx_count--;
		frames[n] = frame;
		packets[n++] = frame->packet;
	}
	if (n == 0)
		return 0;
	for (unsigned i = 0; is_verbose && i < n; i++)
		trace_packet("gets", packets[i].dest_qpn, &packets[i]);
	vb_lane_receive(lane->lane, &frames[0]->path, packets, n, world.now);
	for (unsigned i = 0; i < n; i++) {
		progress_heard(&packets[i]);
		note((uint64_t)frames[i]->packet.opcode << 32 | frames[i]->packet.psn);
		if (!frames[i]->is_phantom)
			memset(frames[i]->payload, 0xDD, frames[i]->packet.payload_length < 64 ? 64 : 128);
		frame_put(frames[i]);
	}
	return n;
}

/* The port is done with some of what it has, most of the time all, in any order. */
static void finish(struct lane *lane, uint32_t keep_ppm)
{
	struct vb_tx_completion back[MAX_OWED];
	unsigned count = 0, kept = 0;
	for (unsigned i = 0; i < lane->owed_count; i++) {
		if (keep_ppm && chance(keep_ppm)) {
			lane->owed[kept++] = lane->owed[i];
			continue;
		}
		unsigned place = below(count + 1);
		back[count++] = back[place];
		back[place] = lane->owed[i];
	}
	lane->owed_count = kept;
	if (count)
		vb_lane_transmit_done(lane->lane, back, count, world.now);
}

static void owe(struct lane *lane, const struct vb_tx_completion *completion, int error)
{
	if (lane->owed_count == MAX_OWED)
		finish(lane, 0);
	lane->owed[lane->owed_count] = *completion;
	lane->owed[lane->owed_count++].error = error;
}

/* Sends what there is room for. Now and then packets are kept for a while before they are done, as a port with real
 * queues does. */
static unsigned transmit(struct lane *lane)
{
	unsigned sent = 0;
	vb_time horizon = after(LINK_QUEUE);
	local_hear_wanted(lane);
	while (!vb_time_before(horizon, network_free_at(lane))) {
		unsigned budget = 1 + below(VB_BATCH_PACKETS);
		unsigned n = vb_lane_transmit(lane->lane, lane->batch, budget, world.now);
		if (n == 0)
			break;
		if (n > budget || n != lane->batch->count)
			broken("transmit was allowed %u packets, returned %u and filled %u", budget, n,
				lane->batch->count);
		for (unsigned i = 0; i < n; i++) {
			bool is_lost = chance(200);
			owe(lane, &lane->batch->completions[i], is_lost ? 105 : 0);
			if (!is_lost)
				network_send(lane, &lane->batch->out[i], lane->batch);
		}
		sent += n;
		if (!chance(100000))
			finish(lane, 0);
	}
	local_hear_wanted(lane);
	return sent;
}

static struct endpoint *find_endpoint(struct vb_qp *qp)
{
	struct endpoint *end = vb_qp_user(qp);
	if (end->qp != qp)
		broken("an event of a QP that is gone");
	return end;
}

static void take_events(struct lane *lane)
{
	struct vb_event event;
	while (vb_lane_next_event(lane->lane, &event)) {
		note(event.kind);
		switch (event.kind) {
		case VB_EVENT_QP_DIED:
			world.deaths++;
			check_death(find_endpoint(event.qp));
			break;
		case VB_EVENT_QP_MOVED:
			world.moves++;
			break;
		case VB_EVENT_CQ_ERR:
			broken("a CQ overran that had room for everything");
		case VB_EVENT_QP_FATAL:
			broken("event %u has no reason", event.kind);
		default:
			break;
		}
	}
}

unsigned host_take_completions(struct host *host)
{
	struct vb_wc wc[16];
	int n;
	unsigned total = 0;
	while ((n = vb_cq_poll(host->cq, wc, 16)) > 0) {
		for (int i = 0; i < n; i++)
			check_completion(host, &wc[i]);
		total += (unsigned)n;
	}
	if (n < 0)
		broken("polling gives %d", n);
	return total;
}

static void look_ahead(struct lane *lane)
{
	struct vb_deadline deadline = vb_lane_next_deadline(lane->lane);
	vb_time free_at = network_free_at(lane);
	bool is_link_full = vb_time_before(after(LINK_QUEUE), free_at);
	if (deadline.is_set) /* what is due and cannot leave, an ack, waits for room */
		lane_wake(lane, is_link_full && !vb_time_before(world.now, deadline.at) ? free_at : deadline.at);
	if (lane->rx_head)
		lane_wake(lane, lane->busy_until);
	if (vb_lane_wants_transmit(lane->lane, world.now))
		lane_wake(lane, is_link_full ? free_at : world.now);
	if (lane->owed_count)
		lane_wake(lane, after(10 * VB_US));
}

void lane_look_around(struct lane *lane, bool takes_completions)
{
	take_events(lane);
	if (takes_completions)
		host_take_completions(lane->host);
	vb_lane_check(lane->lane);
	look_ahead(lane);
}

void lane_run(struct lane *lane)
{
	unsigned work = 0, n;
	lane->is_scheduled = false;
	if (lane->copier || lane->host->is_dead) {
		lane_wake(lane, after(VB_US));
		return;
	}
	if (chance(500000))
		finish(lane, 500000);
	for (unsigned trains = 0; trains < 4 && (n = receive_train(lane)); trains++)
		work += n;
	finish(lane, chance(200000) ? 700000 : 0);
	vb_lane_advance(lane->lane, world.now);
	work += transmit(lane);
	take_events(lane);
	work += host_take_completions(lane->host);
	if (chance(100000))
		vb_lane_flush_acks(lane->lane);
	/* A lane that is called again and again at one moment, and has nothing to do, would burn a core. */
	lane->idle_runs = work || lane->last_run != world.now ? 0 : lane->idle_runs + 1;
	lane->last_run = world.now;
	if (lane->idle_runs > 1000) {
		struct vb_deadline deadline = vb_lane_next_deadline(lane->lane);
		broken("host %u lane %u wants to be called without end: deadline %d in %lld ps, wants transmit %d",
			lane->host->index, lane->slot, deadline.is_set, (long long)vb_time_diff(deadline.at, world.now),
			vb_lane_wants_transmit(lane->lane, world.now));
	}
	vb_lane_check(lane->lane);
	lane->busy_until = after((vb_time)work * world.network.packet_cost);
	look_ahead(lane);
	local_look(lane, NULL);
}
