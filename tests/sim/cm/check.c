/* One function a claim: an id by its state; the manager's tables, lists and counts against its ids. */
#include "check.h"

static bool is_half_open(enum vb_cm_state state)
{
	return state == VB_CM_REQ_RCVD || state == VB_CM_MRA_REQ_SENT || state == VB_CM_REP_SENT ||
	       state == VB_CM_SIDR_REQ_RCVD;
}

static bool waits_for_time(enum vb_cm_state state)
{
	return state == VB_CM_REQ_SENT || state == VB_CM_MRA_REQ_RCVD || state == VB_CM_REP_SENT ||
	       state == VB_CM_MRA_REP_RCVD || state == VB_CM_DREQ_SENT || state == VB_CM_TIMEWAIT ||
	       state == VB_CM_SIDR_REQ_SENT;
}

/* id.h: an id has a communication ID, and is found by it, in every state but IDLE and LISTEN. */
static const char *check_number(struct vb_cm *cm, struct vb_cm_id *id)
{
	bool has_number = id->state != VB_CM_IDLE && id->state != VB_CM_LISTEN;
	if (has_number != id->by_local.is_linked)
		return has_number ? "an id cannot be found" : "an id is found that means nobody";
	if (has_number && (id->local_id == 0 || vb_cm_find_local(cm, id->local_id) != id))
		return "an id is not found by its number";
	if (has_number && id->local_id >> 24 != cm->slot)
		return "an id's number is another slot's";
	return !has_number && (id->by_remote.is_linked || id->by_qp.is_linked) ? "an idle id has a peer" : NULL;
}

/* The QP of who is in TIMEWAIT may come again. */
static const char *check_tables(struct vb_cm_id *id)
{
	if (id->by_service.is_linked != (id->state == VB_CM_LISTEN))
		return "listeners and services differ";
	if (id->by_qp.is_linked && id->state == VB_CM_TIMEWAIT)
		return "TIMEWAIT keeps the peer's QP";
	return NULL;
}

static const char *check_timer(struct vb_cm_id *id)
{
	if (waits_for_time(id->state) != (id->timer.index >= 0))
		return id->timer.index < 0 ? "an id waits for ever" : "a timer runs for nobody";
	return NULL;
}

static const char *check_owner(struct vb_cm_id *id)
{
	if (id->is_record && (!id->is_released || id->state != VB_CM_TIMEWAIT))
		return "a record is held, or not in TIMEWAIT";
	if (id->is_released && (!vb_list_empty(&id->events) || id->state == VB_CM_IDLE))
		return "a released id has events, or nothing to do";
	return NULL;
}

static const char *check_ids(struct vb_cm *cm)
{
	uint32_t ids = 0, records = 0, half_open = 0, armed = 0, numbers = 0, remotes = 0, qps = 0, services = 0;
	uint32_t abandoned = 0;
	vb_list_for_each (node, &cm->ids) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, link);
		const char *wrong = check_number(cm, id);
		wrong = wrong ? wrong : check_tables(id);
		wrong = wrong ? wrong : check_timer(id);
		wrong = wrong ? wrong : check_owner(id);
		if (wrong)
			return wrong;
		if (vb_list_linked(&id->of_source) != is_half_open(id->state))
			return "a half-open id is of no source, or another is";
		ids++;
		records += id->is_record;
		half_open += is_half_open(id->state);
		abandoned += id->is_abandoned;
		armed += id->timer.index >= 0;
		numbers += id->by_local.is_linked;
		remotes += id->by_remote.is_linked;
		qps += id->by_qp.is_linked;
		services += id->by_service.is_linked;
	}
	vb_timers_check(&cm->timers);
	if (ids != cm->id_count || ids > cm->timers.room || armed != cm->timers.count)
		return "ids and timers are miscounted";
	if (records != cm->records || half_open != cm->half_open.count || abandoned != cm->abandoned)
		return "records, half-open or abandoned ids are miscounted";
	if (records > cm->half_open.limit || half_open > cm->half_open.limit || abandoned > cm->half_open.limit)
		return "there are more records, half-open or abandoned ids than may be";
	if (numbers != cm->by_local.count || remotes != cm->by_remote.count || qps != cm->by_qp.count ||
		services != cm->by_service.count)
		return "a table holds what is no id's";
	return NULL;
}

static const char *check_events(struct vb_cm *cm)
{
	unsigned spares = 0, of_ids = 0, events = 0;
	vb_list_for_each (node, &cm->spares)
		spares++;
	vb_list_for_each (node, &cm->events)
		events++;
	vb_list_for_each (node, &cm->ids)
		vb_list_for_each (event, &vb_container_of(node, struct vb_cm_id, link)->events)
			of_ids++;
	return spares != cm->spare_count || events != of_ids ? "events are miscounted, or nobody's" : NULL;
}

/* half_open.c. */
static bool is_well(const struct vb_cm_source *source, unsigned row)
{
	uint32_t ids = 0;
	vb_list_for_each (node, &source->ids) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, of_source);
		if (!vb_gid_equal(&id->path.remote, &source->gid))
			return false;
		ids++;
	}
	return ids == source->count && ids >> (row - 1) == 1 && source->by_gid.is_linked;
}

static const char *check_sources(const struct vb_cm_half_open *half_open)
{
	uint32_t sources = 0;
	for (unsigned row = 0; row < VB_CM_ROWS; row++) {
		vb_list_for_each (node, &half_open->rows[row]) {
			if (row == 0 || !is_well(vb_container_of(node, struct vb_cm_source, row), row))
				return "a source is miscounted, or in the wrong row";
			sources++;
		}
	}
	return sources == half_open->by_source.count ? NULL : "a source is in no row";
}

const char *check_manager(struct vb_cm *cm)
{
	const char *wrong = check_ids(cm);
	wrong = wrong ? wrong : check_sources(&cm->half_open);
	return wrong ? wrong : check_events(cm);
}
