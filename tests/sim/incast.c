/* Sixteen senders, one receiver whose socket holds an ordinary 212,992 bytes; and the same with the receiver stopped
 * for 100 ms. The loss is made good within 10 ms, and nobody sleeps until the ack timeout. */
#include <string.h>
#include "sim.h"

#define SENDERS  16
#define MESSAGE  65536
#define MESSAGES 20
#define STOP     (100 * VB_MS)

static struct {
	vb_time posted_at[SENDERS], slowest;
	bool is_posted[SENDERS];
	unsigned left[SENDERS];
} incast;

static void post(struct endpoint *end)
{
	struct vb_sge sge = { end->local.iova, MESSAGE, end->local.key };
	struct vb_send_wr out = { .wr_id = (1ull << 40) + world.next_id++,
		.opcode = VB_WR_RDMA_WRITE,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.remote_addr = end->peer->target.iova,
		.rkey = end->peer->target.key };
	end->posted[end->tail++ % MAX_QUEUE] = (struct wr){ .id = out.wr_id,
		.kind = WR_SEND,
		.opcode = VB_WR_RDMA_WRITE,
		.slot = -1,
		.from_slot = -1,
		.is_signalled = true,
		.length = MESSAGE };
	vb_sq_begin(end->qp);
	if (vb_sq_put(end->qp, &out))
		broken("sq_put");
	vb_sq_end(end->qp, true);
	lane_wake(end->lane, world.now);
}

static void open_sender(unsigned i, bool has_stop)
{
	struct connection *connection = &world.connections[i];
	memset(connection, 0, sizeof(*connection));
	connection->index = i;
	connection->type = VB_QP_RC;
	connection->mtu = 1024;
	connection->timeout = has_stop ? 17 : 14; /* longer than the stop */
	connection->slots = 1;
	connection->slot_bytes = MESSAGE;
	for (unsigned k = 0; k < 2; k++) {
		struct endpoint *end = &connection->ends[k];
		end->connection = connection;
		end->peer = &connection->ends[1 - k];
		end->host = &world.hosts[k == 0 ? i + 1 : 0];
		end->lane = &end->host->lanes[0];
		end->type = VB_QP_RC;
		end->has_srq = true;
		block_open(end->host, &end->local, MESSAGE, VB_ACCESS_LOCAL_WRITE, false);
		block_open(end->host, &end->target, MESSAGE, VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE, true);
		block_open(end->host, &end->recvs, RECVS * SEND_MAX, VB_ACCESS_LOCAL_WRITE, false);
	}
	connection_start(connection);
}

/* Each sender's next message as soon as the last one is done; how long the slowest took. */
static bool step_senders(void)
{
	bool is_busy = false;
	for (unsigned i = 0; i < SENDERS; i++) {
		struct endpoint *end = &world.connections[i].ends[0];
		if (end->head != end->tail) {
			is_busy = true;
			continue;
		}
		vb_time took = vb_time_diff(world.now, incast.posted_at[i]);
		if (incast.is_posted[i] && took > incast.slowest)
			incast.slowest = took;
		incast.is_posted[i] = false;
		if (incast.left[i] == 0)
			continue;
		incast.left[i]--;
		incast.posted_at[i] = world.now;
		incast.is_posted[i] = true;
		post(end);
		is_busy = true;
	}
	return is_busy;
}

static void stop_receiver(void)
{
	lane_pause(&world.hosts[0].lanes[0], STOP);
}

void incast_run(uint64_t seed, bool has_stop)
{
	world_open(seed);
	world.is_quiet = true;
	memset(&incast, 0, sizeof(incast));
	world.network = (struct conditions){ .delay = 10 * VB_US,
		.jitter = 5 * VB_US,
		.bytes_per_second = 1250000000,
		.receive_buffer = 212992,
		.packet_cost = 800 * VB_NS,
		.ack_delay = 20 * VB_US,
		.is_trained = true,
		.excused_until = world.now };
	world.host_count = SENDERS + 1;
	network_open();
	for (unsigned i = 0; i < world.host_count; i++)
		host_open(&world.hosts[i], i, 1);
	world.connection_count = SENDERS;
	for (unsigned i = 0; i < SENDERS; i++) {
		open_sender(i, has_stop);
		incast.left[i] = MESSAGES;
	}
	vb_time start = world.now;
	bool is_stopped = !has_stop;
	while (step_senders()) {
		if (!is_stopped && vb_time_diff(world.now, start) > 5 * VB_MS) {
			is_stopped = true;
			stop_receiver();
		}
		if (!network_step())
			broken("nothing more happens, and messages are under way");
		if (vb_time_diff(world.now, start) > 5 * VB_S)
			broken("the incast does not end");
	}
	/* A message's fair time: sixteen of them through the receiver, one after the other. */
	vb_time fair = SENDERS * (MESSAGE / 1024) * (world.network.packet_cost + 900 * VB_NS);
	vb_time allowed = 2 * fair + 10 * VB_MS + (has_stop ? STOP : 0);
	trace("incast: slowest message %lld us, fair %lld us, %llu packets, %llu overflowed",
		(long long)(incast.slowest / VB_US), (long long)(fair / VB_US), (unsigned long long)world.packets,
		(unsigned long long)world.overflowed);
	world_close();
	if (world.timeouts)
		broken("%llu ack timeouts in an incast%s", (unsigned long long)world.timeouts,
			has_stop ? " with a stopped receiver" : "");
	if (incast.slowest > allowed)
		broken("the slowest message of an incast took %lld us, %lld were allowed",
			(long long)(incast.slowest / VB_US), (long long)(allowed / VB_US));
}
