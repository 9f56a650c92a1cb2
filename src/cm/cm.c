/* The manager: its ids, how they are found, and the queues of what goes out and of what happened.
 * Holds: every id is in cm->ids and has room for its timer; the tables hold whom a message could mean. Memory that a
 * peer can make us use is bounded: requests not yet answered, ghosts and replies abandoned by the limit of what is half
 * open, MADs to send by a constant.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

enum { MOST_HALF_OPEN = 4096, MOST_OUTGOING = 16384, NUMBER_BITS = 24, NUMBERS = 1 << NUMBER_BITS };

/* Of what is repeated before its period is over: a lost MAD costs this, not the seconds that a period may last. */
#define FIRST_PAUSE (100 * VB_MS)

struct queued {
	struct vb_list link;
	struct vb_cm_outgoing outgoing;
};

/* ---- The manager ------------------------------------------------------------------------------------------------ */

static int init_tables(struct vb_cm *cm, uint32_t max_half_open)
{
	bool is_done = vb_cm_half_open_init(&cm->half_open, max_half_open) == 0 &&
		       vb_cm_table_init(&cm->by_local) == 0 && vb_cm_table_init(&cm->by_remote) == 0 &&
		       vb_cm_table_init(&cm->by_qp) == 0 && vb_cm_table_init(&cm->by_service) == 0;
	return is_done ? 0 : -ENOMEM;
}

int vb_cm_create(const struct vb_cm_config *config, struct vb_cm **out)
{
	struct vb_cm *cm = calloc(1, sizeof(*cm));
	if (!cm)
		return -ENOMEM;
	vb_list_init(&cm->ids);
	vb_list_init(&cm->outgoing);
	vb_list_init(&cm->events);
	vb_list_init(&cm->spares);
	vb_timers_init(&cm->timers);
	cm->secret = (struct vb_secret){ .key = { config->seed, config->seed_high } };
	cm->hash_seed = vb_secret_next(&cm->secret);
	cm->slot = config->slot;
	cm->tells_silence = config->tells_silence;
	cm->next_number = (uint32_t)vb_secret_next(&cm->secret) & (NUMBERS - 1);
	if (init_tables(cm, config->max_half_open ? config->max_half_open : MOST_HALF_OPEN) != 0) {
		vb_cm_destroy(cm);
		return -ENOMEM;
	}
	*out = cm;
	return 0;
}

void vb_cm_destroy(struct vb_cm *cm)
{
	struct vb_list *node;
	while (!vb_list_empty(&cm->ids))
		vb_cm_id_free(vb_container_of(cm->ids.next, struct vb_cm_id, link));
	while ((node = vb_list_pop(&cm->outgoing)))
		free(vb_container_of(node, struct queued, link));
	while ((node = vb_list_pop(&cm->spares)))
		free(vb_container_of(node, struct vb_cm_pending, link));
	vb_cm_table_deinit(&cm->by_local);
	vb_cm_table_deinit(&cm->by_remote);
	vb_cm_table_deinit(&cm->by_qp);
	vb_cm_table_deinit(&cm->by_service);
	vb_cm_half_open_deinit(&cm->half_open);
	vb_timers_deinit(&cm->timers);
	free(cm);
}

void vb_cm_count(struct vb_cm *cm, enum vb_cm_counter counter)
{
	cm->counters[counter]++;
}

void vb_cm_counters(const struct vb_cm *cm, uint64_t values[VB_CM_COUNTER_COUNT])
{
	memcpy(values, cm->counters, sizeof(cm->counters));
}

/* ---- Ids -------------------------------------------------------------------------------------------------------- */

struct vb_cm_id *vb_cm_id_create(struct vb_cm *cm, void *user)
{
	if (vb_timers_reserve(&cm->timers, cm->id_count + 1) != 0)
		return NULL;
	struct vb_cm_id *id = calloc(1, sizeof(*id));
	if (!id)
		return NULL;
	id->cm = cm;
	id->user = user;
	vb_list_init(&id->events);
	vb_list_init(&id->of_source);
	vb_timer_init(&id->timer);
	vb_list_add_tail(&cm->ids, &id->link);
	cm->id_count++;
	return id;
}

struct vb_cm_id *vb_cm_id_create_for(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, bool is_sidr)
{
	struct vb_cm_id *id = vb_cm_id_create(cm, NULL);
	if (!id)
		return NULL;
	id->path = *path;
	id->is_sidr = is_sidr;
	id->remote_id = message->local_id;
	id->transaction_id = message->transaction_id;
	vb_cm_id_number(id);
	vb_cm_id_link_remote(id);
	return id;
}

void *vb_cm_id_user(const struct vb_cm_id *id)
{
	return id->user;
}

void vb_cm_id_set_user(struct vb_cm_id *id, void *user)
{
	id->user = user;
}

enum vb_cm_state vb_cm_id_state(const struct vb_cm_id *id)
{
	return id->state;
}

const struct vb_cm_path *vb_cm_id_path(const struct vb_cm_id *id)
{
	return &id->path;
}

/* Nothing but one message, of anybody, says that there is a peer. Who has sent an MRA has read our REP. */
static bool is_half_open(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
	case VB_CM_REP_SENT:
	case VB_CM_SIDR_REQ_RCVD:
		return true;
	default:
		return false;
	}
}

static void unlink_all(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	vb_cm_table_remove(&cm->by_local, &id->by_local);
	vb_cm_table_remove(&cm->by_remote, &id->by_remote);
	vb_cm_table_remove(&cm->by_qp, &id->by_qp);
	vb_cm_table_remove(&cm->by_service, &id->by_service);
}

static void set_state(struct vb_cm_id *id, enum vb_cm_state state)
{
	bool was = is_half_open(id->state), is = is_half_open(state);
	if (was && !is)
		vb_cm_half_open_remove(id);
	if (is && !was)
		vb_cm_half_open_add(id);
	id->state = state;
}

void vb_cm_drop_events(struct vb_cm_id *id)
{
	for (struct vb_list *node; (node = vb_list_pop(&id->events));) {
		struct vb_cm_pending *pending = vb_container_of(node, struct vb_cm_pending, of_id);
		vb_list_remove(&pending->link);
		free(pending);
	}
}

void vb_cm_id_free(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	set_state(id, VB_CM_IDLE);
	unlink_all(id);
	vb_cm_drop_events(id);
	vb_timer_remove(&cm->timers, &id->timer);
	vb_list_remove(&id->link);
	cm->ghosts -= id->is_ghost;
	cm->id_count--;
	free(id);
}

void vb_cm_id_enter(struct vb_cm_id *id, enum vb_cm_state state)
{
	vb_timer_remove(&id->cm->timers, &id->timer);
	set_state(id, state);
	if (state == VB_CM_TIMEWAIT)
		vb_cm_table_remove(&id->cm->by_qp, &id->by_qp);
	if (state != VB_CM_IDLE)
		return;
	unlink_all(id);
	id->local_id = id->remote_id = id->remote_qpn = 0;
	id->cm->abandoned -= id->is_over;
	id->is_over = false;
	if (id->is_orphan)
		vb_cm_id_free(id);
}

bool vb_cm_make_room(struct vb_cm *cm, const struct vb_gid *source, vb_time now)
{
	if (cm->half_open.count < cm->half_open.limit)
		return true;
	struct vb_cm_id *victim = vb_cm_half_open_victim(cm, source);
	vb_cm_count(cm, victim ? VB_CM_DISPLACED_COUNT : VB_CM_FLOODED_COUNT);
	if (victim)
		vb_cm_displace(victim, now);
	return victim;
}

/* ---- Finding them ----------------------------------------------------------------------------------------------- */

/* Seeded, so that a peer who chooses the words does not choose the bucket. */
uint64_t vb_cm_hash(const struct vb_cm *cm, uint64_t a, uint64_t b, const struct vb_gid *gid)
{
	uint64_t words[4] = { a, b }, hash = cm->hash_seed;
	if (gid)
		memcpy(words + 2, gid, sizeof(*gid));
	for (int i = 0; i < 4; i++) {
		hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
		hash ^= hash >> 29;
	}
	return hash;
}

/* A permutation of the numbers, by a Feistel network: none comes back before all have been used, and who knows some
 * knows nothing of the others. */
static uint32_t scramble(const struct vb_cm *cm, uint32_t number)
{
	const uint32_t half = NUMBER_BITS / 2, mask = (1u << half) - 1;
	uint32_t left = number >> half, right = number & mask;
	for (uint64_t round = 1; round <= 4; round++) {
		uint32_t mixed = left ^ ((uint32_t)vb_secret_of(&cm->secret, round << 32 | right) & mask);
		left = right;
		right = mixed;
	}
	return left << half | right;
}

void vb_cm_id_number(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	assert(cm->by_local.count < NUMBERS - 1);
	do {
		cm->next_number = (cm->next_number + 1) & (NUMBERS - 1);
		id->local_id = cm->slot << NUMBER_BITS | scramble(cm, cm->next_number);
	} while (id->local_id == 0 || vb_cm_find_local(cm, id->local_id));
	vb_cm_table_add(&cm->by_local, &id->by_local, vb_cm_hash(cm, id->local_id, 0, NULL));
}

void vb_cm_id_link_remote(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	vb_cm_table_add(&cm->by_remote, &id->by_remote, vb_cm_hash(cm, id->remote_id, id->is_sidr, &id->path.remote));
}

void vb_cm_id_link_qp(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	vb_cm_table_add(&cm->by_qp, &id->by_qp, vb_cm_hash(cm, id->remote_qpn, id->remote_guid, &id->path.remote));
}

struct vb_cm_id *vb_cm_find_local(struct vb_cm *cm, uint32_t local_id)
{
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_local, vb_cm_hash(cm, local_id, 0, NULL));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_local);
		if (id->local_id == local_id)
			return id;
	}
	return NULL;
}

struct vb_cm_id *vb_cm_find_remote(struct vb_cm *cm, const struct vb_gid *remote, uint32_t remote_id, bool is_sidr)
{
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_remote, vb_cm_hash(cm, remote_id, is_sidr, remote));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_remote);
		if (id->remote_id == remote_id && id->is_sidr == is_sidr && vb_gid_equal(&id->path.remote, remote))
			return id;
	}
	return NULL;
}

struct vb_cm_id *vb_cm_find_qp(struct vb_cm *cm, const struct vb_gid *remote, uint64_t guid, uint32_t qpn)
{
	if (qpn == 0)
		return NULL;
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_qp, vb_cm_hash(cm, qpn, guid, remote));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_qp);
		if (id->remote_qpn == qpn && id->remote_guid == guid && vb_gid_equal(&id->path.remote, remote))
			return id;
	}
	return NULL;
}

/* How well a listener's address fits; 0: not at all. */
static int fitness(const struct vb_gid *listens, const struct vb_gid *address)
{
	struct vb_gid any_ipv4 = vb_gid_from_ipv4(0, 0, 0, 0);
	if (vb_gid_equal(listens, address))
		return 3;
	if (vb_gid_equal(listens, &any_ipv4) && vb_gid_is_ipv4(address))
		return 2;
	return vb_gid_is_zero(listens) ? 1 : 0;
}

struct vb_cm_id *vb_cm_find_listener(struct vb_cm *cm, uint64_t service_id, const struct vb_gid *address)
{
	struct vb_cm_id *best = NULL;
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_service, vb_cm_hash(cm, service_id, 0, NULL));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_service);
		int fits = id->service_id == service_id ? fitness(&id->path.local, address) : 0;
		if (fits > (best ? fitness(&best->path.local, address) : 0))
			best = id;
	}
	return best;
}

int vb_cm_listen(struct vb_cm_id *id, uint64_t service_id, const struct vb_gid *address)
{
	if (id->state != VB_CM_IDLE)
		return -EINVAL;
	struct vb_cm_id *other = vb_cm_find_listener(id->cm, service_id, address);
	if (other && vb_gid_equal(&other->path.local, address))
		return -EADDRINUSE;
	id->path = (struct vb_cm_path){ .local = *address };
	id->service_id = service_id;
	vb_cm_id_enter(id, VB_CM_LISTEN);
	vb_cm_table_add(&id->cm->by_service, &id->by_service, vb_cm_hash(id->cm, service_id, 0, NULL));
	return 0;
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

bool vb_cm_reserve_events(struct vb_cm *cm)
{
	while (cm->spare_count < VB_CM_MOST_EVENTS) {
		struct vb_cm_pending *pending = malloc(sizeof(*pending));
		if (!pending)
			return false;
		vb_list_add_tail(&cm->spares, &pending->link);
		cm->spare_count++;
	}
	return true;
}

void vb_cm_tell_listener(
	struct vb_cm_id *listener, struct vb_cm_id *id, enum vb_cm_event_kind kind, const struct vb_cm_message *message)
{
	struct vb_cm *cm = id->cm;
	if (id->is_orphan)
		return;
	assert(cm->spare_count > 0);
	cm->spare_count--;
	struct vb_cm_pending *pending = vb_container_of(vb_list_pop(&cm->spares), struct vb_cm_pending, link);
	pending->event = (struct vb_cm_event){ .kind = kind,
		.id = id,
		.listener = listener,
		.tries = id->tries,
		.error = id->error,
		.service_id = id->service_id,
		.is_of_reply = id->state == VB_CM_REP_SENT || id->state == VB_CM_MRA_REP_RCVD };
	if (message) {
		pending->event.has_message = true;
		pending->event.message = *message;
	}
	vb_list_add_tail(&cm->events, &pending->link);
	vb_list_add_tail(&id->events, &pending->of_id);
}

void vb_cm_tell(struct vb_cm_id *id, enum vb_cm_event_kind kind, const struct vb_cm_message *message)
{
	vb_cm_tell_listener(NULL, id, kind, message);
}

bool vb_cm_next_event(struct vb_cm *cm, struct vb_cm_event *event)
{
	struct vb_list *node = vb_list_pop(&cm->events);
	if (!node)
		return false;
	struct vb_cm_pending *pending = vb_container_of(node, struct vb_cm_pending, link);
	vb_list_remove(&pending->of_id);
	*event = pending->event;
	free(pending);
	return true;
}

void vb_cm_drop_requests_of(struct vb_cm_id *listener, vb_time now)
{
	struct vb_list *head = &listener->cm->events;
	for (struct vb_list *node = head->next, *before; node != head; node = before->next) {
		struct vb_cm_event *event = &vb_container_of(node, struct vb_cm_pending, link)->event;
		/* A request is an id's first event: what lies before it is of others, and stays. */
		before = node->prev;
		if (event->listener == listener)
			vb_cm_id_destroy(event->id, now);
		else
			before = node;
	}
}

/* ---- Out -------------------------------------------------------------------------------------------------------- */

/* What cannot be queued is lost, as it might be on the wire. */
static void queue(struct vb_cm *cm, const struct vb_cm_path *path, const uint8_t mad[VB_MAD_LENGTH])
{
	struct queued *queued = cm->outgoing_count < MOST_OUTGOING ? malloc(sizeof(*queued)) : NULL;
	if (!queued)
		return;
	queued->outgoing.path = *path;
	memcpy(queued->outgoing.mad, mad, VB_MAD_LENGTH);
	vb_list_add_tail(&cm->outgoing, &queued->link);
	cm->outgoing_count++;
}

void vb_cm_send(struct vb_cm_id *id, const struct vb_cm_message *message)
{
	vb_cm_encode(message, id->sent);
	queue(id->cm, &id->path, id->sent);
}

static void send_again(struct vb_cm_id *id)
{
	vb_cm_count(id->cm, VB_CM_RETRIES_COUNT);
	queue(id->cm, &id->path, id->sent);
}

void vb_cm_send_kept(struct vb_cm_id *id)
{
	vb_cm_count(id->cm, VB_CM_DUPLICATES_COUNT);
	queue(id->cm, &id->path, id->sent);
}

void vb_cm_send_unkept(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message)
{
	uint8_t mad[VB_MAD_LENGTH];
	vb_cm_encode(message, mad);
	queue(cm, path, mad);
}

enum vb_cm_kind vb_cm_kept(const struct vb_cm_id *id)
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, id->sent);
	return (enum vb_cm_kind)header.attribute_id;
}

bool vb_cm_next_outgoing(struct vb_cm *cm, struct vb_cm_outgoing *out)
{
	struct vb_list *node = vb_list_pop(&cm->outgoing);
	if (!node)
		return false;
	struct queued *queued = vb_container_of(node, struct queued, link);
	*out = queued->outgoing;
	free(queued);
	cm->outgoing_count--;
	vb_cm_count(cm, VB_CM_TX_MADS_COUNT);
	return true;
}

/* ---- Time ------------------------------------------------------------------------------------------------------- */

void vb_cm_arm(struct vb_cm_id *id, vb_time span, vb_time now)
{
	vb_timer_set(&id->cm->timers, &id->timer, vb_time_add(now, span));
}

void vb_cm_wait(struct vb_cm_id *id, vb_time span, vb_time now)
{
	id->due = vb_time_add(now, span);
	vb_cm_arm(id, span, now);
}

/* Until the period is over, or shorter. */
static void pause(struct vb_cm_id *id, vb_time now)
{
	vb_time left = vb_time_diff(id->due, now);
	vb_cm_arm(id, id->pause < left ? id->pause : left, now);
	id->pause *= 2;
}

void vb_cm_await(struct vb_cm_id *id, uint8_t retries, vb_time now)
{
	id->retries = retries;
	id->tries = 1;
	id->error = 0;
	id->is_early = true;
	id->is_silence_told = false;
	id->asked_at = now;
	id->was_refused = false;
	id->due = vb_time_add(now, id->period);
	id->pause = FIRST_PAUSE;
	pause(id, now);
}

static void tell_silence(struct vb_cm_id *id, vb_time now)
{
	const bool is_asked = id->state == VB_CM_REQ_SENT || id->state == VB_CM_SIDR_REQ_SENT;
	const vb_time patience = id->cm->tells_silence;
	if (!is_asked || id->is_silence_told || patience == 0 || vb_time_since(id->asked_at, now) < patience)
		return;
	id->is_silence_told = true;
	vb_cm_tell(id, VB_CM_EVENT_SILENT, NULL);
}

bool vb_cm_try_again(struct vb_cm_id *id, vb_time now)
{
	if (!vb_time_is_due(id->due, now)) {
		pause(id, now);
	} else if (id->retries > 0) {
		id->retries--;
		id->is_early = false;
		vb_cm_wait(id, id->period, now);
	} else {
		return false;
	}
	tell_silence(id, now);
	id->tries++;
	send_again(id);
	return true;
}

void vb_cm_give_up(struct vb_cm_id *id, int error, vb_time now)
{
	id->error = error;
	id->retries = 0;
	id->due = now;
}

struct vb_deadline vb_cm_next_deadline(const struct vb_cm *cm)
{
	return vb_timers_next(&cm->timers);
}
