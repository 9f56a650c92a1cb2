/* A stream's queue pair and rings: posting, completions, credits.
 * Holds: every message that the peer has credit for has a receive work request. No byte of the receive ring is granted
 * again before it was read, and none of the send ring is used again before its WRITE is complete. The peer's messages
 * are checked against what it was granted; the addresses in them are of its own memory, which its NIC guards.
 * Not here: the arithmetic (wire.c), the program's calls (io.c). */
#include "rsocket/objects.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/invariant.h"

#define IS_RECEIVE (1ull << 63)

enum { POLL_AT_ONCE = 16, RECEIVES_AT_ONCE = 64 };

/* The completion of a send tells by this its operation, and how many bytes of the ring are free again. */
static uint64_t send_wr_id(enum vb_rs_op op, uint32_t freed)
{
	return vb_rs_message(op, freed);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Whole pages, so that nothing else lies in pages that the NIC writes. */
static uint8_t *map_pages(size_t bytes, size_t *room)
{
	*room = (bytes + 4095) / 4096 * 4096;
	void *pages = mmap(NULL, *room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return pages == MAP_FAILED ? NULL : pages;
}

static struct ibv_mr *map_region(struct vb_rsocket *rs, uint8_t **pages, size_t bytes, size_t *room, int access)
{
	*pages = map_pages(bytes, room);
	return *pages ? ibv_reg_mr(rs->id->pd, *pages, *room, access) : NULL;
}

static void unmap_region(struct ibv_mr **mr, uint8_t **pages, size_t room)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	if (*pages)
		munmap(*pages, room);
	*mr = NULL;
	*pages = NULL;
}

static int open_rings(struct vb_rsocket *rs)
{
	const struct vb_rs_options *options = &rs->options;
	size_t table = VB_RS_TARGETS * VB_RS_REGION_LENGTH + (size_t)options->mappings * VB_RS_MAPPING_LENGTH;

	rs->send_mr = map_region(rs, &rs->send_ring, options->send_bytes, &rs->send_room, IBV_ACCESS_LOCAL_WRITE);
	rs->receive_mr = map_region(rs, &rs->receive_ring, options->receive_bytes, &rs->receive_room,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rs->table_mr =
		map_region(rs, &rs->table, table, &rs->table_room, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return rs->send_mr && rs->receive_mr && rs->table_mr ? 0 : -ENOMEM;
}

/* ---- The queue pair ---------------------------------------------------------------------------------------------- */

static int open_completions(struct vb_rsocket *rs)
{
	rs->completions = ibv_create_comp_channel(rs->id->verbs);
	if (!rs->completions)
		return -errno;
	int flags = fcntl(rs->completions->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->completions->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	int entries =
		(int)(rs->options.send_queue + VB_RS_CONTROL_SLOTS + rs->options.receive_queue + VB_RS_RECEIVES_EXTRA);
	rs->cq = ibv_create_cq(rs->id->verbs, entries, rs, rs->completions, 0);
	if (!rs->cq)
		return -errno;
	return vb_rs_watch(rs, rs->completions->fd);
}

/* The default sizes may be more than the device has: then its limits are enough. */
static int fit_queues(struct vb_rsocket *rs)
{
	struct ibv_device_attr device;
	struct vb_rs_options *options = &rs->options;

	if (ibv_query_device(rs->id->verbs, &device))
		return -errno;
	uint32_t most = (uint32_t)device.max_qp_wr;
	if (most < VB_RS_QUEUE_MIN + VB_RS_RECEIVES_EXTRA)
		return -ENODEV;
	if (options->send_queue > most - VB_RS_CONTROL_SLOTS)
		options->send_queue = most - VB_RS_CONTROL_SLOTS;
	if (options->receive_queue > most - VB_RS_RECEIVES_EXTRA)
		options->receive_queue = most - VB_RS_RECEIVES_EXTRA;
	return 0;
}

static int open_qp(struct vb_rsocket *rs)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = rs,
		.send_cq = rs->cq,
		.recv_cq = rs->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = rs->options.send_queue + VB_RS_CONTROL_SLOTS,
			.max_recv_wr = rs->options.receive_queue + VB_RS_RECEIVES_EXTRA,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = rs->options.inline_bytes,
		},
	};
	if (rdma_create_qp(rs->id, NULL, &attr))
		return -errno;
	rs->inline_bytes = rs->options.inline_bytes;
	return 0;
}

/* Receives have no buffers: data comes by WRITE, and the immediate data is the message. */
static int post_receives(struct vb_rsocket *rs, uint32_t count)
{
	struct ibv_recv_wr wr[RECEIVES_AT_ONCE], *bad;

	while (count) {
		uint32_t n = count < RECEIVES_AT_ONCE ? count : RECEIVES_AT_ONCE;
		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){ .wr_id = IS_RECEIVE, .next = i + 1 < n ? &wr[i + 1] : NULL };
		int error = ibv_post_recv(rs->id->qp, wr, &bad);
		if (error)
			return -error;
		count -= n;
	}
	return 0;
}

int vb_rs_stream_open(struct vb_rsocket *rs)
{
	int error = fit_queues(rs);
	if (!error)
		error = open_completions(rs);
	if (!error)
		error = open_qp(rs);
	if (!error)
		error = open_rings(rs);
	if (!error)
		error = post_receives(rs, rs->options.receive_queue + VB_RS_RECEIVES_EXTRA);
	return error;
}

void vb_rs_stream_close(struct vb_rsocket *rs)
{
	if (rs->id && rs->id->qp)
		rdma_destroy_qp(rs->id);
	if (rs->cq)
		ibv_destroy_cq(rs->cq);
	rs->cq = NULL;
	if (rs->completions)
		ibv_destroy_comp_channel(rs->completions);
	rs->completions = NULL;
	vb_rs_mappings_close(rs);
	unmap_region(&rs->send_mr, &rs->send_ring, rs->send_room);
	unmap_region(&rs->receive_mr, &rs->receive_ring, rs->receive_room);
	unmap_region(&rs->table_mr, &rs->table, rs->table_room);
}

/* ---- The beginning ----------------------------------------------------------------------------------------------- */

void vb_rs_stream_hello(const struct vb_rsocket *rs, struct vb_rs_hello *hello)
{
	*hello = (struct vb_rs_hello){
		.is_big_endian = VB_RS_IS_BIG_ENDIAN,
		.has_mappings = true,
		.credits = (uint16_t)rs->options.receive_queue,
		.mappings = rs->options.mappings,
		.targets = { (uintptr_t)rs->table, rs->table_mr->rkey, VB_RS_TARGETS },
		.data = { (uintptr_t)rs->receive_ring, rs->receive_mr->rkey, rs->options.receive_bytes },
	};
}

void vb_rs_stream_start(struct vb_rsocket *rs, const struct vb_rs_hello *remote)
{
	assert(!rs->under_way);
	rs->remote = *remote;
	rs->slots = rs->options.send_queue;
	/* The first entry of each table stands for the grant in the hello. */
	rs->table_at = 1 % VB_RS_TARGETS;
	rs->remote_at = 1 % remote->targets.length;
	vb_rs_sender_init(&rs->sender, rs->options.send_bytes, remote);
	vb_rs_receiver_init(&rs->receiver, rs->options.receive_bytes, (uint16_t)rs->options.receive_queue);
	vb_rs_set_state(rs, VB_RS_CONNECTED);
	assert(rs->sender.size && rs->receiver.size); /* which stays so, also after the end */
}

/* ---- Posting ----------------------------------------------------------------------------------------------------- */

int vb_rs_stream_post(struct vb_rsocket *rs, const struct vb_rs_post *post)
{
	struct ibv_sge sge = { .addr = (uintptr_t)post->from, .length = post->length, .lkey = post->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = send_wr_id(post->op, post->freed),
		.sg_list = &sge,
		.num_sge = post->length ? 1 : 0,
		.opcode = post->op == VB_RS_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = post->is_inline && post->length ? IBV_SEND_INLINE : 0,
		.imm_data = htobe32(vb_rs_message(post->op, post->value)),
		.wr.rdma = { .remote_addr = post->remote_addr, .rkey = post->remote_key },
	};
	const bool is_data = post->op == VB_RS_DATA || post->op == VB_RS_WRITE;
	assert(is_data ? rs->slots > 0 : rs->control_used < VB_RS_CONTROL_SLOTS);
	int error = ibv_post_send(rs->id->qp, &wr, &bad);
	if (error)
		return -error;
	rs->under_way++;
	if (is_data)
		rs->slots--;
	else
		rs->control_used++;
	return 0;
}

int vb_rs_stream_control(struct vb_rsocket *rs, enum vb_rs_control what)
{
	if (rs->control_used >= VB_RS_CONTROL_SLOTS)
		return -EAGAIN;
	struct vb_rs_post post = { .op = VB_RS_CONTROL, .value = what };
	return vb_rs_stream_post(rs, &post);
}

uint32_t vb_rs_stream_room(const struct vb_rsocket *rs)
{
	return rs->slots ? vb_rs_sender_room(&rs->sender) : 0;
}

/* The message that tells the peer of a granted half also writes it into the peer's table. */
void vb_rs_stream_send_credits(struct vb_rsocket *rs)
{
	uint8_t entry[VB_RS_REGION_LENGTH];
	bool has_half;
	uint32_t at;

	if (!vb_rs_is_connected(rs) || rs->peer_state == VB_RS_PEER_UNCONFIRMED ||
		rs->control_used >= VB_RS_CONTROL_SLOTS || !vb_rs_receiver_credits_due(&rs->receiver))
		return;
	struct vb_rs_post post = { .op = VB_RS_CREDITS, .is_inline = true };
	post.value = vb_rs_receiver_take_credits(&rs->receiver, &has_half, &at);
	if (has_half) {
		struct vb_rs_region half = { (uintptr_t)rs->receive_ring + at, rs->receive_mr->rkey,
			rs->receiver.size / 2 };
		vb_rs_region_encode(&half, rs->remote.is_big_endian, entry);
		post.from = entry;
		post.length = sizeof(entry);
		post.remote_addr = rs->remote.targets.addr + rs->remote_at * (uint64_t)VB_RS_REGION_LENGTH;
		post.remote_key = rs->remote.targets.key;
		rs->remote_at = (rs->remote_at + 1) % rs->remote.targets.length;
	}
	int error = vb_rs_stream_post(rs, &post);
	if (error)
		vb_rs_end(rs, -error);
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

/* The peer wrote the entry before it sent the message. */
static bool take_target(struct vb_rsocket *rs)
{
	struct vb_rs_region target;

	memcpy(&target, rs->table + rs->table_at * VB_RS_REGION_LENGTH, sizeof(target));
	rs->table_at = (rs->table_at + 1) % VB_RS_TARGETS;
	return vb_rs_sender_grant(&rs->sender, &target);
}
_Static_assert(sizeof(struct vb_rs_region) == VB_RS_REGION_LENGTH, "a region is an entry of our table");

static void on_control(struct vb_rsocket *rs, uint32_t what)
{
	if (what == VB_RS_DISCONNECT)
		vb_rs_note_peer(rs, VB_RS_PEER_LEFT);
	if (what == VB_RS_DISCONNECT || (what == VB_RS_SHUTDOWN && !vb_rs_can_write(rs)))
		vb_rs_end(rs, 0);
	else if (what == VB_RS_SHUTDOWN)
		vb_rs_stop_reading(rs);
}

static bool on_message(struct vb_rsocket *rs, uint32_t message, uint32_t written)
{
	uint32_t value = vb_rs_message_value(message);

	switch (vb_rs_message_op(message)) {
	case VB_RS_DATA:
		return vb_rs_receiver_arrive(&rs->receiver, value);
	case VB_RS_CREDITS:
		rs->sender.limit = (uint16_t)value;
		return written < VB_RS_REGION_LENGTH || take_target(rs);
	case VB_RS_MAPPING:
		return vb_rs_receiver_arrive(&rs->receiver, 0);
	case VB_RS_CONTROL:
		on_control(rs, value);
		return true;
	default:
		return false;
	}
}

static void on_receive(struct vb_rsocket *rs, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return; /* a send, or the end of the connection, tells the reason */
	if (!vb_rs_is_connected(rs)) {
		if (be32toh(wc->imm_data) == vb_rs_message(VB_RS_CONTROL, VB_RS_DISCONNECT))
			vb_rs_note_peer(rs, VB_RS_PEER_LEFT);
		return;
	}
	vb_rs_note_peer(rs, VB_RS_PEER_READY);
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || !on_message(rs, be32toh(wc->imm_data), wc->byte_len))
		vb_rs_end(rs, ECONNRESET);
}

static int error_of(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET;
}

static void on_sent(struct vb_rsocket *rs, const struct ibv_wc *wc)
{
	uint32_t message = (uint32_t)wc->wr_id;
	enum vb_rs_op op = vb_rs_message_op(message);

	assert(rs->under_way);
	rs->under_way--;
	if (op == VB_RS_DATA || op == VB_RS_WRITE) {
		rs->slots++;
		vb_rs_sender_free(&rs->sender, vb_rs_message_value(message));
	} else {
		assert(rs->control_used);
		rs->control_used--;
	}
	if (wc->status != IBV_WC_SUCCESS)
		vb_rs_end(rs, error_of(wc->status));
}

/* Completions that are there or, if there are none, that a look at the lanes brings which were not looked at yet. */
static int take(struct vb_rsocket *rs, struct ibv_wc wc[POLL_AT_ONCE], unsigned *driven)
{
	if (!driven)
		return ibv_poll_cq(rs->cq, POLL_AT_ONCE, wc);
	const unsigned lanes = vb_cq_lanes(rs->cq);
	int n = vb_cq_take_here(rs->cq, POLL_AT_ONCE, wc);
	if (n || !(lanes & ~*driven))
		return n;
	*driven |= lanes;
	return ibv_poll_cq(rs->cq, POLL_AT_ONCE, wc);
}

bool vb_rs_stream_poll(struct vb_rsocket *rs, unsigned *driven)
{
	struct ibv_wc wc[POLL_AT_ONCE];
	uint32_t receives = 0;
	int n, total = 0;

	do {
		n = take(rs, wc, driven);
		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id & IS_RECEIVE) {
				on_receive(rs, &wc[i]);
				receives++;
			} else {
				on_sent(rs, &wc[i]);
			}
		}
		total += n > 0 ? n : 0;
	} while (n == POLL_AT_ONCE);
	if (!vb_rs_is_connected(rs))
		return total > 0;
	if (receives && post_receives(rs, receives))
		vb_rs_end(rs, ECONNRESET);
	vb_rs_stream_send_credits(rs);
	return total > 0;
}
