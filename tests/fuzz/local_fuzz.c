/* Any bytes as what a local peer says to a lane by shared memory, who may be another user's process and an enemy:
 * descriptors, answers, bytes in the heap, what comes of pulling, and its end. The lane's own requests are under way,
 * by descriptors and by packets. Beside what the scene checks: nothing of memory that was not granted is brought to the
 * local peer, and whoever has room for answers is answered. */
#include "local/local.h"
#include "engine/qp.h"
#include "core/tags.h"
#include "scene.h"

#define PEER_QPN 0x020222u
#define WAITING  32
#define SENT     16
#define HEAP     (2 * VB_LOCAL_PART)
#define SECRET   64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static struct {
	struct vb_local_peer *peer; /* NULL: lost */
	uint8_t *heap;              /* of the other end */
	struct vb_descriptor waiting[WAITING];
	unsigned waiting_count;
	struct vb_descriptor sent[SENT]; /* lately, by us */
	unsigned sent_count;
	struct vb_mr *secret;
	uint8_t kept[4096]; /* which is registered, and granted to nobody */
} local;

static struct vb_epochs epochs;

/* ---- The local peer ---------------------------------------------------------------------------------------------- */

static void meet(void)
{
	if (local.peer)
		return;
	local.peer = malloc(sizeof(*local.peer));
	vb_local_peer_init(local.peer, scene.lane, PEER_QPN >> 16, take(1) & 1 ? VB_LOCAL_LEND_MIN : 0);
	vb_local_peer_set_pulling(local.peer, take(1) & 1);
	require(vb_lane_set_local_peer(scene.lane, &scene.peer, PEER_QPN >> 16, local.peer) == 0);
	local.waiting_count = 0;
}

static void lose(void)
{
	if (!local.peer)
		return;
	vb_local_lost(local.peer, scene.now);
	require(vb_lane_set_local_peer(scene.lane, &scene.peer, PEER_QPN >> 16, NULL) == 0);
	free(local.peer);
	local.peer = NULL;
}

static void answer_wanted(void)
{
	struct vb_gid gid;
	uint8_t slot;
	while (vb_lane_next_wanted_peer(scene.lane, &gid, &slot))
		vb_lane_set_local_peer(scene.lane, &gid, slot, slot == PEER_QPN >> 16 ? local.peer : NULL);
}

/* Room of just the size it is said to have, for ASan. */
static struct vb_local_room open_room(void)
{
	uint32_t kind = take(1);
	unsigned most = kind & 7;
	uint32_t bytes = kind & 8 ? HEAP : kind & 16 ? take(2) : 0;
	return (struct vb_local_room){ .descriptors = malloc((most + 1) * sizeof(struct vb_descriptor)),
		.answers = malloc((most + 1) * sizeof(struct vb_answer)),
		.descriptor_max = most,
		.answer_max = most,
		.heap = malloc(bytes + 1),
		.heap_at = kind & 32 ? 4096 : 0,
		.heap_bytes = bytes };
}

static void close_room(struct vb_local_room *room)
{
	require(room->descriptor_count <= room->descriptor_max && room->answer_count <= room->answer_max &&
		room->heap_used <= room->heap_bytes);
	uint8_t kept[16];
	memset(kept, SECRET, sizeof(kept));
	require(!memmem(room->heap, room->heap_used, kept, sizeof(kept)));
	free(room->descriptors);
	free(room->answers);
	free(room->heap);
}

/* ---- What it asks ------------------------------------------------------------------------------------------------ */

static struct vb_qp *some_qp(void)
{
	return scene.qps[take(1) % QPS];
}

/* Most of the time the one that is expected. */
static uint32_t some_psn(uint32_t expected)
{
	uint32_t choice = take(1);
	return choice < 200 ? expected : choice < 250 ? (expected + choice - 225) & VB_PSN_MASK : take(4);
}

static uint32_t some_length(void)
{
	uint32_t choice = take(1);
	return choice < 100   ? choice % 40
	       : choice < 180 ? take(2)
	       : choice < 220 ? VB_LOCAL_PART - choice % 3
			      : take(4);
}

static uint8_t some_opcode(const struct vb_qp *qp)
{
	uint8_t opcode = (uint8_t)take(1);
	return opcode < 230 ? (uint8_t)(qp->service | (opcode % 0x20)) : (uint8_t)take(1);
}

static void place_payload(struct vb_descriptor *request)
{
	uint32_t choice = take(1);
	request->place = choice & 7;
	if (choice < 224)
		request->place = choice & 3;
	switch ((enum vb_local_place)request->place) {
	case VB_LOCAL_INLINED:
		for (unsigned i = 0; i < 4; i++)
			request->bytes[i] = (uint8_t)take(1);
		break;
	case VB_LOCAL_LENT:
		request->lent.address = take(4);
		request->lent.segment = (uint32_t)request->lent.address >> 24;
		request->lent.epoch = (uint16_t)take(1);
		break;
	default:
		request->heap.at = choice & 64 ? take(4) : take(2);
		request->heap.total = choice & 128 ? some_length() : request->length;
		break;
	}
}

static void ask(void)
{
	struct vb_qp *qp = some_qp();
	if (local.waiting_count == WAITING)
		return;
	struct vb_descriptor *request = &local.waiting[local.waiting_count++];
	memset(request, 0, sizeof(*request));
	request->opcode = some_opcode(qp);
	uint32_t flags = take(1);
	request->flags = flags & 31;
	request->dest_qpn = flags < 240 ? vb_qp_number(qp) : take(4);
	request->src_qpn = flags % 16 < 15 ? PEER_QPN : take(4);
	request->psn = some_psn(qp->responder.expected_psn);
	if (flags & VB_LOCAL_ACKED)
		request->acked = some_psn(qp->requester.una_psn);
	else
		request->srqn = some_srqn();
	request->length = some_length();
	request->va = some_address();
	request->rkey = some_key();
	request->imm_or_inv = take(1) & 1 ? some_key() : take(4);
	place_payload(request);
}

static void execute(void)
{
	struct vb_local_heap heap = { local.heap, HEAP };
	if (!local.peer)
		return;
	struct vb_local_room room = open_room();
	unsigned n = take(1) % (WAITING + 1);
	n = n < local.waiting_count ? n : local.waiting_count;
	struct vb_descriptor *given = malloc((n + 1) * sizeof(*given));
	memcpy(given, local.waiting, n * sizeof(*given));
	unsigned taken = vb_local_receive(local.peer, given, n, &heap, &room, scene.now);
	require(taken <= n);
	/* The last may have an answer that it waits to give. */
	if (n && taken == 0 && room.answer_max > 1 && room.heap_bytes == HEAP)
		require(local.peer->puller || local.peer->is_held || local.peer->has_pending ||
			room.answer_count == room.answer_max);
	local.waiting_count -= taken;
	memmove(local.waiting, local.waiting + taken, local.waiting_count * sizeof(*given));
	free(given);
	close_room(&room);
}

/* ---- What it lends ----------------------------------------------------------------------------------------------- */

static void pull(void)
{
	struct vb_local_pull pull;
	uint32_t choice = take(1), length = 0, lent = 0;
	if (!local.peer || !vb_local_pull(local.peer, &pull, scene.now))
		return;
	for (unsigned i = 0; i < pull.iov_count; i++) {
		length += (uint32_t)pull.iov[i].length;
		if (choice & 4)
			memset(pull.iov[i].base, (int)choice, pull.iov[i].length);
	}
	for (unsigned i = 0; i < pull.lent_count; i++)
		lent += pull.lent[i].length;
	require(length == pull.length && lent == length && pull.proof_bytes <= sizeof(pull.proof) &&
		pull.proof_at + pull.proof_bytes <= sizeof(struct vb_epochs));
	if (choice & 8) /* the lane is given away, and what was copied is in vain */
		return;
	unsigned taken =
		vb_local_pulled(local.peer, choice < 192 ? VB_PULLED : (enum vb_local_outcome)(choice & 3), scene.now);
	require(taken <= local.waiting_count);
	local.waiting_count -= taken;
	memmove(local.waiting, local.waiting + taken, local.waiting_count * sizeof(*local.waiting));
}

/* ---- What it answers --------------------------------------------------------------------------------------------- */

static void check_sent(const struct vb_descriptor *sent)
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)sent->lent.address;
	if (sent->place == VB_LOCAL_LENT)
		require(from >= scene.memory + GUARD && from + sent->length <= scene.memory + GUARD + scene.region);
	local.sent[local.sent_count++ % SENT] = *sent;
}

static void send(void)
{
	answer_wanted();
	if (!local.peer)
		return;
	struct vb_local_room room = open_room();
	vb_local_transmit(local.peer, &room, scene.now);
	for (unsigned i = 0; i < room.descriptor_count; i++)
		check_sent(&room.descriptors[i]);
	close_room(&room);
}

/* To one of our descriptors, or to what it likes. */
static void answer(void)
{
	uint32_t choice = take(1);
	unsigned back = take(1) % SENT;
	const struct vb_descriptor *sent =
		&local.sent[(local.sent_count - 1 - (back < local.sent_count ? back : 0)) % SENT];
	struct vb_qp *qp = some_qp();
	struct vb_answer answer = { .dest_qpn = choice < 128 ? sent->src_qpn : vb_qp_number(qp),
		.src_qpn = choice & 16 && choice & 32 ? take(4) : PEER_QPN };
	answer.psn = choice < 128 ? sent->psn : some_psn(qp->requester.una_psn);
	answer.kind = (uint8_t)(choice & 8 ? take(1) : take(1) % (VB_ANSWER_MISPLACED + 1));
	answer.code = (uint8_t)take(1);
	answer.length = choice & 4 ? some_length() : sent->length;
	answer.at = choice & 2 ? take(4) : take(2);
	answer.value = take(2);
	struct vb_local_heap heap = { local.heap, HEAP };
	if (local.peer)
		vb_local_answered(local.peer, &answer, 1, &heap, scene.now);
}

/* ---- Whatever happens -------------------------------------------------------------------------------------------- */

static void add_tag(void)
{
	struct vb_tag_op op = { .kind = (enum vb_tag_op_kind)(take(1) % 3),
		.is_signaled = take(1) & 1,
		.tag = take(1) & 3,
		.mask = take(1) & 3,
		.handle = take(1) % 8,
		.wr_id = scene.next_wr += 2,
		.tells_unexpected = take(1) & 1,
		.unexpected = take(1),
		.recv_wr_id = (scene.next_wr += 2) | 1 };
	op.sge = (struct vb_sge){ some_address(), take(2), some_key() };
	if (vb_srq_tag_op(scene.lane, scene.srq, &op, scene.now))
		return;
	scene.sends_posted++;
	scene.recvs_posted += 2;
}

static void happen(void)
{
	uint32_t what = take(1);
	if (what < 70)
		ask();
	else if (what < 110)
		execute();
	else if (what < 130)
		pull();
	else if (what < 160)
		answer();
	else if (what < 185)
		send();
	else if (what < 190)
		memset(local.heap + take(2), (int)take(1), take(1));
	else if (what < 192)
		lose();
	else if (what < 196)
		meet();
	else if (what < 204)
		add_tag();
	else
		scene_happen();
}

static void open_local(void)
{
	struct vb_mr_config mr = {
		.memory = local.kept, .iova = 1ull << 40, .length = sizeof(local.kept), .access = VB_ACCESS_LOCAL_WRITE
	};
	memset(&epochs, 0, sizeof(epochs));
	memset(&local, 0, sizeof(local));
	memset(local.kept, SECRET, sizeof(local.kept));
	local.heap = calloc(1, HEAP);
	scene_open(PEER_QPN, REGION_MAX, 65536, &epochs);
	require(vb_mr_register(scene.pd, &mr, &local.secret) == 0);
	meet();
	answer_wanted();
}

static void close_local(void)
{
	lose();
	for (size_t i = 0; i < sizeof(local.kept); i++)
		require(local.kept[i] == SECRET);
	require(vb_mr_invalidate(local.secret) == 0);
	vb_mr_free(local.secret);
	scene_close();
	free(local.heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	input = (struct input){ bytes, bytes + length };
	open_local();
	while (input.at < input.end) {
		happen();
		vb_lane_check(scene.lane);
		if (local.peer)
			vb_local_peer_check(local.peer);
	}
	vb_nic_check(scene.nic);
	scene_transmit();
	close_local();
	return 0;
}
