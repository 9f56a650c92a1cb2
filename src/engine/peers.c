/* Windows: how many bytes may be under way, per QP (through cc/), per peer address, and of READ responses towards us.
 * Plain RoCE has none and relies on a network that never drops; a socket's receive buffer does. */
#include <stdlib.h>
#include "engine/qp.h"

static uint32_t gid_hash(const struct vb_gid *gid)
{
	uint64_t a, b;
	memcpy(&a, gid->raw, 8);
	memcpy(&b, gid->raw + 8, 8);
	a = (a ^ b * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
	return (uint32_t)(a >> 32);
}

const struct vb_peer *vb_peer_find(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	if (lane->peer_buckets == 0)
		return NULL;
	struct vb_peer *peer = lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	while (peer && !(peer->slot == slot && vb_gid_equal(&peer->gid, gid)))
		peer = peer->next;
	return peer;
}

static bool grow(struct vb_lane *lane)
{
	uint32_t buckets = lane->peer_buckets ? lane->peer_buckets * 2 : 8;
	struct vb_peer **table = calloc(buckets, sizeof(struct vb_peer *));
	if (!table)
		return false;
	for (uint32_t i = 0; i < lane->peer_buckets; i++) {
		for (struct vb_peer *peer = lane->peers[i], *next; peer; peer = next) {
			struct vb_peer **bucket = &table[gid_hash(&peer->gid) & (buckets - 1)];
			next = peer->next;
			peer->next = *bucket;
			*bucket = peer;
		}
	}
	free(lane->peers);
	lane->peers = table;
	lane->peer_buckets = buckets;
	return true;
}

static void apply_facts(const struct vb_lane *lane, struct vb_peer *peer)
{
	uint32_t stranger = lane->config.stranger_window ? lane->config.stranger_window : VB_START_WINDOW;
	peer->window = stranger;
	if (peer->facts.is_verbena && peer->facts.receive_buffer)
		peer->window = peer->facts.receive_buffer / 2;
}

static struct vb_peer *obtain(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_peer *peer = (struct vb_peer *)vb_peer_find(lane, gid, slot);
	if (peer)
		return peer;
	if (lane->peer_count >= lane->peer_buckets && !grow(lane))
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->gid = *gid;
	peer->slot = slot;
	peer->patience = lane->config.patience;
	const struct vb_peer *address = slot ? vb_peer_find(lane, gid, 0) : NULL;
	if (address)
		peer->facts = address->facts;
	vb_list_init(&peer->blocked);
	vb_list_init(&peer->curious);
	apply_facts(lane, peer);
	struct vb_peer **bucket = &lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	peer->next = *bucket;
	*bucket = peer;
	lane->peer_count++;
	return peer;
}

struct vb_peer *vb_peer_get(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_peer *peer = obtain(lane, gid, slot);
	if (peer)
		peer->users++;
	return peer;
}

/* What is known of an address outlives its last QP: the next connection to it starts wiser. */
void vb_peer_put(struct vb_peer *peer)
{
	peer->users--;
}

void vb_peers_deinit(struct vb_lane *lane)
{
	for (uint32_t i = 0; i < lane->peer_buckets; i++) {
		for (struct vb_peer *peer = lane->peers[i], *next; peer; peer = next) {
			next = peer->next;
			free(peer);
		}
	}
	free(lane->peers);
}

static void wake_one(struct vb_list *blocked)
{
	struct vb_list *node = vb_list_pop(blocked);
	if (!node)
		return;
	struct vb_qp *qp = vb_container_of(node, struct vb_qp, blocked_link);
	qp->is_admitted = qp->is_woken = true;
	vb_schedule(qp);
}

static void wake_curious(struct vb_peer *peer)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&peer->curious)) != NULL)
		vb_schedule(vb_container_of(node, struct vb_qp, blocked_link));
}

void vb_lane_set_peer(struct vb_lane *lane, const struct vb_gid *gid, const struct vb_peer_facts *facts)
{
	if (!obtain(lane, gid, 0))
		return;
	struct vb_peer *peer = lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	for (; peer; peer = peer->next) { /* all slots of an address hang in one bucket */
		if (!vb_gid_equal(&peer->gid, gid))
			continue;
		peer->facts = *facts;
		apply_facts(lane, peer);
		wake_one(&peer->blocked);
		if (!facts->is_asked)
			wake_curious(peer);
	}
}

bool vb_peer_must_answer(struct vb_qp *qp)
{
	if (!qp->peer || !qp->peer->facts.is_asked)
		return false;
	if (!vb_list_linked(&qp->blocked_link)) {
		vb_list_add_tail(&qp->peer->curious, &qp->blocked_link);
		qp->blocked_in = &qp->peer->curious;
	}
	return true;
}

/* One waiter is woken; when it has had its turn and there is still room, it wakes the next (vb_flight_wake). */
static void wake_for_peer(struct vb_qp *qp)
{
	if (qp->peer && qp->peer->flight < qp->peer->window)
		wake_one(&qp->peer->blocked);
}

/* The first that waits to ask for READs gets its turn; until then nobody comes before it, though less room might be enough
 * for another. */
static void wake_for_reads(struct vb_lane *lane)
{
	if (lane->read_turn || lane->read_flight >= lane->read_window)
		return;
	struct vb_list *node = vb_list_pop(&lane->read_blocked);
	if (!node)
		return;
	lane->read_turn = vb_container_of(node, struct vb_qp, blocked_link);
	lane->read_turn_is_used = false;
	vb_schedule(lane->read_turn);
}

void vb_flight_wake(struct vb_qp *qp)
{
	wake_for_peer(qp);
	wake_for_reads(qp->lane);
}

void vb_flight_add(struct vb_qp *qp, uint32_t out, uint32_t in)
{
	qp->requester.flight_out += out;
	qp->requester.flight_in += in;
	if (qp->peer)
		qp->peer->flight += out;
	if (!qp->requester.is_silent)
		qp->lane->read_flight += in;
}

void vb_flight_fall_silent(struct vb_qp *qp)
{
	if (qp->requester.is_silent)
		return;
	qp->requester.is_silent = true;
	qp->lane->read_flight -= qp->requester.flight_in;
	vb_flight_wake(qp);
}

void vb_flight_be_heard(struct vb_qp *qp)
{
	if (!qp->requester.is_silent)
		return;
	qp->requester.is_silent = false;
	qp->lane->read_flight += qp->requester.flight_in;
}

void vb_flight_remove(struct vb_qp *qp, uint32_t out, uint32_t in)
{
	if ((out | in) == 0)
		return;
	qp->requester.flight_out -= out;
	qp->requester.flight_in -= in;
	if (qp->peer)
		qp->peer->flight -= out;
	if (!qp->requester.is_silent)
		qp->lane->read_flight -= in;
	vb_flight_wake(qp);
}

/* Whoever was given a turn and could not use it, for there was too little room, keeps the first place. Returns false. */
static bool wait_in(struct vb_qp *qp, struct vb_list *blocked, bool is_first)
{
	if (!vb_list_linked(&qp->blocked_link) || qp->blocked_in != blocked) {
		vb_list_remove(&qp->blocked_link);
		if (is_first)
			vb_list_add_head(blocked, &qp->blocked_link);
		else
			vb_list_add_tail(blocked, &qp->blocked_link);
		qp->blocked_in = blocked;
	}
	return false;
}

/* Is there room in the peer's window, and is it this QP's turn to take it? Those who wait go first. */
static bool is_open(const struct vb_qp *qp, const struct vb_peer *peer, uint32_t more)
{
	if (peer->flight == 0)
		return true;
	return peer->flight + more <= peer->window && (qp->is_admitted || vb_list_empty(&peer->blocked));
}

/* Unlike the packets of a peer's window the pieces of READs differ in size, by which a large one would wait for ever where
 * small ones may pass it. */
static bool reads_allowed(struct vb_qp *qp, uint32_t more)
{
	struct vb_lane *lane = qp->lane;
	bool has_turn = lane->read_turn == qp;

	if ((has_turn || (!lane->read_turn && vb_list_empty(&lane->read_blocked))) &&
		(lane->read_flight == 0 || lane->read_flight + more <= lane->read_window)) {
		lane->read_turn = qp;
		lane->read_turn_is_used = true;
		return true;
	}
	if (has_turn)
		lane->read_turn = NULL;
	return wait_in(qp, &lane->read_blocked, has_turn && !lane->read_turn_is_used);
}

/* For the rest of its turn. */
static bool admit(struct vb_qp *qp)
{
	vb_list_remove(&qp->blocked_link);
	qp->is_admitted = true;
	qp->is_woken = false;
	return true;
}

bool vb_flight_allows_share(struct vb_qp *qp, uint32_t out)
{
	if (qp->peer && !is_open(qp, qp->peer, out)) {
		bool is_first = qp->is_woken;
		qp->is_admitted = qp->is_woken = false;
		return wait_in(qp, &qp->peer->blocked, is_first);
	}
	return admit(qp);
}

/* Two fit into the windows, so that one is asked for while the other comes; where the peer takes but one READ at a time,
 * one does, for each is a round trip. Large, for each costs a request and breaks a train twice; but when the windows
 * shrink, so do the pieces, for it is by pieces that responses can be held back. */
uint32_t vb_read_piece(const struct vb_qp *qp)
{
	uint32_t window = qp->requester.cc.window_bytes, halves = qp->attr.max_rd_atomic > 1 ? 4 : 2;
	if (window > qp->lane->read_window)
		window = qp->lane->read_window;
	uint32_t piece = VB_READ_PIECE_MIN >> qp->mtu_shift;
	while (piece << qp->mtu_shift < VB_READ_PIECE_MAX && halves * piece * (qp->mtu + VB_PACKET_OVERHEAD) <= window)
		piece *= 2;
	return piece;
}

/* A window that is empty lets anything through, whatever its size: else a small window would stop all traffic. */
bool vb_flight_allows(struct vb_qp *qp, uint32_t out, uint32_t in)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t flight = rq->flight_out + rq->flight_in;

	if (flight > 0 && (flight + out + in > rq->cc.window_bytes || rq->is_silent))
		return false; /* its own acks wake it */
	if (out && !vb_flight_allows_share(qp, out))
		return false;
	if (in && !reads_allowed(qp, in))
		return false;
	return admit(qp);
}

void vb_flight_end_turn(struct vb_qp *qp, bool has_sent)
{
	struct vb_lane *lane = qp->lane;
	bool was_admitted = qp->is_admitted, had_read_turn = lane->read_turn == qp;

	qp->is_admitted = qp->is_woken = false;
	if (had_read_turn)
		lane->read_turn = NULL;
	if (has_sent || was_admitted)
		wake_for_peer(qp);
	if (has_sent || had_read_turn)
		wake_for_reads(lane);
}
