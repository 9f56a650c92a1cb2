/* The manager and its ids, from their creation to their end.
 * Holds: every id is in cm->ids and has room for its timer. A peer can make us use only bounded memory: half-open
 * requests, records of answers and abandoned replies are bounded by the limit of half-open requests, MADs to send by a
 * constant (queues.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

enum { MOST_HALF_OPEN = 4096 };

/* ---- The manager ------------------------------------------------------------------------------------------------- */

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
	cm->next_number = (uint32_t)vb_secret_next(&cm->secret) & (VB_CM_NUMBERS - 1);
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
	struct vb_cm_outgoing unsent;
	while (!vb_list_empty(&cm->ids))
		vb_cm_id_free(vb_container_of(cm->ids.next, struct vb_cm_id, link));
	assert(cm->id_count == 0);
	assert(vb_list_empty(&cm->events)); /* they went with their ids */
	while (vb_cm_next_outgoing(cm, &unsent))
		;
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

void vb_cm_counters(const struct vb_cm *cm, uint64_t values[VB_CM_COUNTER_COUNT])
{
	memcpy(values, cm->counters, sizeof(cm->counters));
}

/* ---- Ids --------------------------------------------------------------------------------------------------------- */

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

struct vb_cm_message vb_cm_id_begin(
	struct vb_cm_id *id, enum vb_cm_kind kind, const struct vb_cm_path *path, uint64_t service_id)
{
	assert(kind == VB_CM_REQ || kind == VB_CM_SIDR_REQ);
	assert(id->remote_id == 0); /* an IDLE id has no peer */
	id->path = *path;
	id->is_sidr = kind == VB_CM_SIDR_REQ;
	id->service_id = service_id;
	vb_cm_id_number(id);
	id->transaction_id = vb_cm_new_transaction(id);
	return vb_cm_message_of(id, kind);
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

/* ---- States ------------------------------------------------------------------------------------------------------ */

/* The states that may follow each one: the figure at the top of cm.h, with its shortcuts. An id is given up to IDLE
 * only where its peer has no connection of ours to lose. */
#define BIT(state) (1u << VB_CM_##state)
static const uint32_t successors[VB_CM_STATES] = {
	[VB_CM_IDLE] = BIT(IDLE) | BIT(LISTEN) | BIT(REQ_SENT) | BIT(REQ_RCVD) | BIT(SIDR_REQ_SENT) |
		       BIT(SIDR_REQ_RCVD) | BIT(TIMEWAIT) /* a record of an answer */,
	[VB_CM_LISTEN] = BIT(IDLE),
	[VB_CM_REQ_SENT] = BIT(MRA_REQ_RCVD) | BIT(REP_RCVD) | BIT(IDLE),
	[VB_CM_MRA_REQ_RCVD] = BIT(REP_RCVD) | BIT(IDLE),
	[VB_CM_REQ_RCVD] = BIT(MRA_REQ_SENT) | BIT(REP_SENT) | BIT(IDLE),
	[VB_CM_MRA_REQ_SENT] = BIT(MRA_REQ_SENT) | BIT(REP_SENT) | BIT(IDLE),
	[VB_CM_REP_SENT] =
		BIT(MRA_REP_RCVD) | BIT(ESTABLISHED) | BIT(DREQ_RCVD) | BIT(DREQ_SENT) | BIT(TIMEWAIT) | BIT(IDLE),
	[VB_CM_MRA_REP_RCVD] = BIT(ESTABLISHED) | BIT(DREQ_RCVD) | BIT(DREQ_SENT) | BIT(TIMEWAIT) | BIT(IDLE),
	[VB_CM_REP_RCVD] = BIT(MRA_REP_SENT) | BIT(ESTABLISHED) | BIT(TIMEWAIT),
	[VB_CM_MRA_REP_SENT] = BIT(MRA_REP_SENT) | BIT(ESTABLISHED) | BIT(TIMEWAIT),
	[VB_CM_ESTABLISHED] = BIT(DREQ_SENT) | BIT(DREQ_RCVD) | BIT(TIMEWAIT),
	[VB_CM_DREQ_SENT] = BIT(TIMEWAIT),
	[VB_CM_DREQ_RCVD] = BIT(TIMEWAIT),
	[VB_CM_TIMEWAIT] = BIT(IDLE),
	[VB_CM_SIDR_REQ_SENT] = BIT(IDLE),
	[VB_CM_SIDR_REQ_RCVD] = BIT(IDLE),
};
#undef BIT

/* A single message, which anybody can send, is the only sign of the peer. An MRA would show that it has read our
 * REP. */
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

static void set_state(struct vb_cm_id *id, enum vb_cm_state state)
{
	bool was = is_half_open(id->state), is = is_half_open(state);
	if (was && !is)
		vb_cm_half_open_remove(id);
	if (is && !was)
		vb_cm_half_open_add(id);
	id->state = state;
}

void vb_cm_id_free(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	assert(cm->id_count > 0);
	assert(cm->records >= id->is_record);
	vb_timer_remove(&cm->timers, &id->timer);
	set_state(id, VB_CM_IDLE);
	vb_cm_id_unlink(id);
	vb_cm_drop_events(id);
	vb_list_remove(&id->link);
	cm->records -= id->is_record;
	cm->id_count--;
	free(id);
}

static void become_idle(struct vb_cm_id *id)
{
	assert(id->cm->abandoned >= id->is_abandoned);
	vb_cm_id_unlink(id);
	id->local_id = id->remote_id = id->remote_qpn = 0;
	id->cm->abandoned -= id->is_abandoned;
	id->is_abandoned = false;
	if (id->is_released)
		vb_cm_id_free(id);
}

void vb_cm_id_enter(struct vb_cm_id *id, enum vb_cm_state state)
{
	assert(successors[id->state] & 1u << state);
	assert(id->by_local.is_linked || state == VB_CM_IDLE || state == VB_CM_LISTEN);
	vb_timer_remove(&id->cm->timers, &id->timer);
	set_state(id, state);
	if (state == VB_CM_TIMEWAIT)
		vb_cm_table_remove(&id->cm->by_qp, &id->by_qp);
	if (state == VB_CM_IDLE)
		become_idle(id);
}
