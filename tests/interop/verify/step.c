/* One step: what both memories hold before it and must hold after it, doing it, comparing all of them.
 * Not here: which steps there are (steps.c, refusals.c). */
#include <arpa/inet.h>
#include <time.h>
#include "verify.h"

uint64_t next_random(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9E3779B97F4A7C15;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return z ^ z >> 31;
}

void fill(uint8_t *memory, uint64_t step, bool is_active)
{
	uint64_t state = step * 2 + is_active;

	for (size_t at = 0; at < SPAN; at += sizeof(uint64_t)) {
		uint64_t word = next_random(&state);
		memcpy(memory + at, &word, sizeof(word));
	}
}

void draw_place(struct message *message, uint64_t *state, uint32_t slot, uint32_t room)
{
	uint32_t spare = room - message->length - MAX_PIECES * GAP;

	message->local = slot + (uint32_t)(next_random(state) % spare);
	message->remote = slot + (uint32_t)(next_random(state) % spare);
	message->local_pieces = 1 + (unsigned)(next_random(state) % MAX_PIECES);
	message->remote_pieces = 1 + (unsigned)(next_random(state) % MAX_PIECES);
	message->immediate = (uint32_t)next_random(state);
}

/* ---- Scatter and gather lists ------------------------------------------------------------------------------------ */

static uint32_t piece_length(uint32_t length, unsigned pieces, unsigned i)
{
	uint32_t each = length / pieces;

	return i + 1 < pieces ? each : length - each * (pieces - 1);
}

static int list_pieces(const struct end *end, struct ibv_sge *sges, uint32_t offset, uint32_t length, unsigned pieces)
{
	for (unsigned i = 0; i < pieces; i++) {
		sges[i] = (struct ibv_sge){ (uintptr_t)end->memory + offset, piece_length(length, pieces, i),
			end->mr->lkey };
		offset += sges[i].length + GAP;
	}
	return (int)pieces;
}

/* Between a list of pieces in memory and consecutive bytes. */
static void copy_pieces(
	uint8_t *memory, uint8_t *flat, uint32_t offset, uint32_t length, unsigned pieces, bool to_memory)
{
	for (unsigned i = 0; i < pieces; i++) {
		uint32_t part = piece_length(length, pieces, i);
		if (to_memory)
			memcpy(memory + offset, flat, part);
		else
			memcpy(flat, memory + offset, part);
		offset += part + GAP;
		flat += part;
	}
}

/* ---- What an operation does -------------------------------------------------------------------------------------- */

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(enum ibv_wr_opcode opcode)
{
	return takes_receive(opcode) && opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint64_t atomic_result(const struct message *message, uint64_t before)
{
	if (message->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return before + message->operand;
	return before == message->compare ? message->operand : before;
}

/* The message's effect on two images of memory, the active end's and the passive one's. */
static void imagine(const struct message *message, uint8_t *active, uint8_t *passive)
{
	static uint8_t flat[SPAN];
	uint64_t before, after;

	if (is_atomic(message->opcode)) {
		memcpy(&before, passive + message->remote, sizeof(before));
		after = atomic_result(message, before);
		memcpy(passive + message->remote, &after, sizeof(after));
		memcpy(active + message->local, &before, sizeof(before));
	} else if (message->opcode == IBV_WR_RDMA_READ) {
		copy_pieces(active, passive + message->remote, message->local, message->length, message->local_pieces,
			true);
	} else {
		copy_pieces(active, flat, message->local, message->length, message->local_pieces, false);
		copy_pieces(passive, flat, message->remote, message->length,
			is_send(message->opcode) ? message->remote_pieces : 1, true);
	}
}

/* ---- Doing it ---------------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

void wait_completion(const struct end *end, struct ibv_wc *wc, const char *what)
{
	double deadline = now() + WAIT_SECONDS;
	int n;

	while ((n = ibv_poll_cq(end->cq, 1, wc)) == 0)
		if (now() > deadline)
			fail(end, "no completion of %s within %d s", what, WAIT_SECONDS);
	if (n < 0)
		fail(end, "ibv_poll_cq: %d", n);
}

void post_receive(struct end *end, const struct message *message, unsigned i)
{
	struct ibv_sge sges[MAX_PIECES + 1];
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sges }, *bad;

	if (end->qp->qp_type == IBV_QPT_UD)
		sges[wr.num_sge++] = (struct ibv_sge){ (uintptr_t)end->grh[i], GRH, end->grh_mr->lkey };
	if (is_send(message->opcode))
		wr.num_sge +=
			list_pieces(end, sges + wr.num_sge, message->remote, message->length, message->remote_pieces);
	if (ibv_post_recv(end->qp, &wr, &bad))
		fail(end, "ibv_post_recv of %d pieces failed", wr.num_sge);
}

void post_message(struct end *end, const struct message *message, unsigned i, uint32_t rkey)
{
	struct ibv_sge sges[MAX_PIECES];
	struct ibv_send_wr wr = { .wr_id = i, .sg_list = sges, .opcode = message->opcode }, *bad;

	wr.send_flags = IBV_SEND_SIGNALED | (message->is_fenced ? IBV_SEND_FENCE : 0);
	wr.num_sge = list_pieces(end, sges, message->local, message->length, message->local_pieces);
	wr.imm_data = htonl(message->immediate);
	if (message->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = rkey;
	if (end->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = end->peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (is_atomic(message->opcode)) {
		wr.wr.atomic.remote_addr = end->peer.memory + message->remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add =
			message->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? message->operand : message->compare;
		wr.wr.atomic.swap = message->operand;
	} else {
		wr.wr.rdma.remote_addr = end->peer.memory + message->remote;
		wr.wr.rdma.rkey = rkey;
	}
	if (ibv_post_send(end->qp, &wr, &bad))
		fail(end, "ibv_post_send of opcode %d, %u bytes failed", message->opcode, message->length);
}

static void check_received(const struct end *end, const struct message *message, const struct ibv_wc *wc)
{
	bool has_immediate = message->opcode == IBV_WR_SEND_WITH_IMM || message->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool is_ud = end->qp->qp_type == IBV_QPT_UD;
	enum ibv_wc_opcode opcode = is_send(message->opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;

	if (wc->status)
		fail(end, "receive of %u bytes: %s", message->length, ibv_wc_status_str(wc->status));
	if (wc->opcode != opcode)
		fail(end, "receive completed as opcode %d, expected %d", wc->opcode, opcode);
	if (wc->byte_len != message->length + (is_ud ? GRH : 0))
		fail(end, "receive of %u bytes says %u", message->length, wc->byte_len);
	if (has_immediate != !!(wc->wc_flags & IBV_WC_WITH_IMM))
		fail(end, "receive flags %#x, immediate expected: %d", wc->wc_flags, has_immediate);
	if (has_immediate && ntohl(wc->imm_data) != message->immediate)
		fail(end, "immediate %#x, expected %#x", ntohl(wc->imm_data), message->immediate);
	if (is_ud && (wc->src_qp != end->peer.qpn || !(wc->wc_flags & IBV_WC_GRH)))
		fail(end, "datagram from QP %#x flags %#x, expected QP %#x and GRH", wc->src_qp, wc->wc_flags,
			end->peer.qpn);
}

static bool is_as_expected(const struct end *end)
{
	return memcmp(end->memory, end->expected, SPAN) == 0;
}

void compare(const struct end *end)
{
	size_t first = 0, wrong = 0;

	if (is_as_expected(end))
		return;
	for (size_t i = SPAN; i-- > 0;)
		if (end->memory[i] != end->expected[i]) {
			first = i;
			wrong++;
		}
	fail(end, "%zu bytes are wrong, the first at offset %zu: %02x, expected %02x", wrong, first, end->memory[first],
		end->expected[first]);
}

/* A UC or UD message is complete when it has left; its bytes may still be under way. */
static void compare_patiently(const struct end *end)
{
	double deadline = now() + 5;

	while (!is_as_expected(end) && now() < deadline)
		usleep(1000);
	compare(end);
}

/* Memory as both ends know it before a step, and what becomes of it. */
void prepare(struct end *end, const struct message *messages, unsigned n, bool is_active)
{
	fill(end->memory, end->step, is_active);
	fill(end->expected, end->step, is_active);
	fill(end->other, end->step, !is_active);
	for (unsigned i = 0; i < n; i++)
		imagine(&messages[i], is_active ? end->expected : end->other, is_active ? end->other : end->expected);
}

static void be_active(struct end *end, const struct message *messages, unsigned n)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++)
		post_message(end, &messages[i], i, end->peer.rkey);
	for (unsigned i = 0; i < n; i++) {
		wait_completion(end, &wc, "a request");
		if (wc.status)
			fail(end, "request %llu of %u bytes: %s", (unsigned long long)wc.wr_id,
				messages[wc.wr_id].length, ibv_wc_status_str(wc.status));
		if (wc.wr_id != i)
			fail(end, "request %llu completed, expected %u", (unsigned long long)wc.wr_id, i);
	}
}

static void post_receives(struct end *end, const struct message *messages, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (takes_receive(messages[i].opcode))
			post_receive(end, &messages[i], i);
}

static void be_passive(struct end *end, const struct message *messages, unsigned n)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++) {
		if (!takes_receive(messages[i].opcode))
			continue;
		wait_completion(end, &wc, "a receive");
		if (wc.wr_id != i)
			fail(end, "receive %llu completed, expected %u", (unsigned long long)wc.wr_id, i);
		check_received(end, &messages[i], &wc);
	}
}

/* One step: prepare, do, compare, at both ends. is_late: the receives are posted only after they were needed. */
void run_step(struct end *end, const struct message *messages, unsigned n, bool is_active, bool is_late)
{
	end->step++;
	prepare(end, messages, n, is_active);
	if (!is_active && !is_late)
		post_receives(end, messages, n);
	meet(end);
	if (is_active) {
		be_active(end, messages, n);
	} else {
		if (is_late) {
			usleep(50000);
			post_receives(end, messages, n);
		}
		be_passive(end, messages, n);
	}
	if (end->qp->qp_type == IBV_QPT_RC) {
		meet(end);
		compare(end);
	} else {
		compare_patiently(end);
		meet(end);
	}
	for (unsigned i = 0; i < n; i++) {
		end->operations++;
		end->bytes += messages[i].length;
	}
}
