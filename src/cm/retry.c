/* The timer of an id: a message is sent again until its answer comes or all retries are spent.
 * Holds: an armed timer belongs to a state that waits (vb_cm_is_waiting). */
#include "base/invariant.h"
#include "cm/id.h"

/* The first pause between two attempts within a period: a lost MAD costs this, not the seconds that a period may
 * last. */
#define FIRST_PAUSE (100 * VB_MS)

void vb_cm_arm(struct vb_cm_id *id, vb_time span, vb_time now)
{
	assert(vb_cm_is_waiting(id->state));
	assert(span >= 0);
	vb_timer_set(&id->cm->timers, &id->timer, vb_time_add(now, span));
}

void vb_cm_wait(struct vb_cm_id *id, vb_time span, vb_time now)
{
	id->due = vb_time_add(now, span);
	vb_cm_arm(id, span, now);
}

/* Waits for the pause, or until the period is over if that is sooner. */
static void pause(struct vb_cm_id *id, vb_time now)
{
	vb_time left = vb_time_diff(id->due, now);
	vb_cm_arm(id, id->pause < left ? id->pause : left, now);
	id->pause *= 2;
}

void vb_cm_await(struct vb_cm_id *id, uint8_t retries, vb_time now)
{
	assert(id->period > 0);
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

void vb_cm_ask(
	struct vb_cm_id *id, const struct vb_cm_message *message, enum vb_cm_state state, uint8_t retries, vb_time now)
{
	vb_cm_send(id, message);
	vb_cm_id_enter(id, state);
	vb_cm_await(id, retries, now);
}

static void tell_silence(struct vb_cm_id *id, vb_time now)
{
	const bool is_asked = id->state == VB_CM_REQ_SENT || id->state == VB_CM_SIDR_REQ_SENT;
	const vb_time patience = id->cm->tells_silence;
	if (!is_asked || id->is_silence_told || patience == 0 || vb_time_since(id->asked_at, now) < patience)
		return;
	id->is_silence_told = true;
	vb_cm_post(id, VB_CM_EVENT_SILENT, NULL);
}

bool vb_cm_try_again(struct vb_cm_id *id, vb_time now)
{
	assert(id->tries > 0);
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
	vb_cm_send_again(id);
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
