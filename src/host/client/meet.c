/* The processes of this host that threads of the program ask to meet. Each question is remembered until the broker has
 * answered it: by the meeting, which the other process may have asked for, too, or by saying that we are alone. */
#include "base/invariant.h"
#include "host/client/state.h"

#include <errno.h>
#include <stdlib.h>
#include "host/client/start.h"
#include "os/clock.h"

#define PAUSE_FIRST_MS 5 /* before it is asked again: one of the two does not read at the moment */
#define PAUSE_MAX_MS   500

static void drop(struct vb_broker *broker, struct vb_broker_meeting *meeting)
{
	assert(broker->meeting_count > 0);
	vb_list_remove(&meeting->link);
	broker->meeting_count--;
	free(meeting);
}

static bool is_asked(const struct vb_broker *broker, uint8_t own_slot, const struct vb_gid *gid, uint8_t slot)
{
	vb_list_for_each (node, &broker->meetings) {
		const struct vb_broker_meeting *meeting = vb_container_of(node, struct vb_broker_meeting, link);
		if (meeting->own_slot == own_slot && meeting->slot == slot && vb_gid_equal(&meeting->gid, gid))
			return true;
	}
	return false;
}

/* Beyond the most that there may be, the oldest makes room. */
static void add(struct vb_broker *broker, uint8_t own_slot, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_broker_meeting *meeting = malloc(sizeof(*meeting));

	if (!meeting)
		return;
	if (broker->meeting_count == VB_BROKER_MOST_MEETINGS)
		drop(broker, vb_container_of(broker->meetings.next, struct vb_broker_meeting, link));
	*meeting = (struct vb_broker_meeting){
		.own_slot = own_slot, .slot = slot, .gid = *gid, .pause_ms = PAUSE_FIRST_MS
	};
	vb_list_add_tail(&broker->meetings, &meeting->link);
	broker->meeting_count++;
	assert(broker->meeting_count <= VB_BROKER_MOST_MEETINGS);
	broker->has_all = false;
	vb_broker_hurry(broker);
}

void vb_broker_meet(struct vb_broker *broker, uint8_t own_slot, const struct vb_gid *gid, uint8_t slot)
{
	pthread_mutex_lock(&broker->mutex);
	if (vb_broker_find_slot(broker, own_slot) && !is_asked(broker, own_slot, gid, slot))
		add(broker, own_slot, gid, slot);
	pthread_mutex_unlock(&broker->mutex);
}

void vb_broker_open(struct vb_broker *broker, uint8_t own_slot, bool is_open)
{
	pthread_mutex_lock(&broker->mutex);
	struct vb_held_slot *held = vb_broker_find_slot(broker, own_slot);
	if (held && held->is_open != is_open) {
		held->is_open = is_open;
		held->is_open_said = broker->has_all = false;
		vb_broker_hurry(broker);
	}
	pthread_mutex_unlock(&broker->mutex);
}

void vb_broker_part(struct vb_broker *broker, uint8_t own_slot, uint8_t slot)
{
	const struct vb_message part = { .kind = VB_MESSAGE_PART, .slot = own_slot, .meeting.slot = slot };

	pthread_mutex_lock(&broker->mutex);
	if (vb_broker_find_slot(broker, own_slot))
		vb_broker_post(broker, &part);
	pthread_mutex_unlock(&broker->mutex);
}

void vb_broker_forget_meetings(struct vb_broker *broker, uint8_t own_slot)
{
	vb_list_for_each_safe (node, &broker->meetings) {
		struct vb_broker_meeting *meeting = vb_container_of(node, struct vb_broker_meeting, link);
		if (meeting->own_slot == own_slot)
			drop(broker, meeting);
	}
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static struct vb_broker_meeting *find(struct vb_broker *broker, uint32_t request)
{
	vb_list_for_each (node, &broker->meetings) {
		struct vb_broker_meeting *meeting = vb_container_of(node, struct vb_broker_meeting, link);
		if (meeting->is_said && meeting->request == request)
			return meeting;
	}
	return NULL;
}

/* Drops the question that the notice answers, and sets notice->gid to the address at which it was asked. */
static void settle(struct vb_broker *broker, struct vb_broker_notice *notice)
{
	vb_list_for_each_safe (node, &broker->meetings) {
		struct vb_broker_meeting *meeting = vb_container_of(node, struct vb_broker_meeting, link);
		meeting->pause_ms = PAUSE_FIRST_MS; /* the broker goes on */
		if (meeting->own_slot != notice->own_slot || meeting->slot != notice->slot)
			continue;
		notice->gid = meeting->gid;
		drop(broker, meeting);
	}
}

bool vb_broker_take_meeting(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice)
{
	notice->own_slot = message->slot;
	notice->slot = message->meeting.slot;
	settle(broker, notice);
	if (!broker->hear || !vb_broker_find_slot(broker, message->slot))
		return false;
	if (fds[1] < 0) { /* this process has no descriptor left; a thread that asks later would not hear of that */
		notice->kind = VB_BROKER_ALONE;
		notice->error = -EMFILE;
		return true;
	}
	notice->kind = VB_BROKER_MEETING;
	notice->side = message->meeting.side;
	notice->is_same_user = message->meeting.is_same_user;
	notice->socket = fds[0];
	notice->memory = fds[1];
	notice->pidfd = fds[2];
	assert(notice->socket >= 0);
	for (unsigned i = 0; i < VB_MESSAGE_FDS; i++)
		fds[i] = -1;
	return true;
}

bool vb_broker_take_alone(struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice)
{
	struct vb_broker_meeting *meeting = find(broker, message->request);

	if (!meeting)
		return false;
	notice->kind = VB_BROKER_ALONE;
	notice->own_slot = meeting->own_slot;
	notice->slot = meeting->slot;
	notice->gid = meeting->gid;
	drop(broker, meeting);
	return true;
}

bool vb_broker_take_awaited(struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice)
{
	const struct vb_broker_meeting *meeting = find(broker, message->request);

	if (!meeting)
		return false;
	notice->kind = VB_BROKER_AWAITED;
	notice->own_slot = meeting->own_slot;
	notice->slot = meeting->slot;
	return true;
}

void vb_broker_take_wanted(struct vb_broker *broker, const struct vb_message *message)
{
	vb_list_for_each (node, &broker->meetings) {
		struct vb_broker_meeting *meeting = vb_container_of(node, struct vb_broker_meeting, link);
		if (meeting->own_slot != message->slot || meeting->slot != message->meeting.slot)
			continue;
		meeting->is_said = broker->has_all = false;
		meeting->again_ms = 0;
	}
	if (!broker->has_all)
		vb_broker_hurry(broker);
}

bool vb_broker_put_off_meeting(
	struct vb_broker *broker, const struct vb_message *refusal, struct vb_broker_notice *notice)
{
	struct vb_broker_meeting *meeting = find(broker, refusal->request);

	if (!meeting)
		return false;
	assert(meeting->pause_ms > 0);
	meeting->is_said = broker->has_all = false;
	meeting->again_ms = vb_clock_ms() + meeting->pause_ms;
	meeting->pause_ms = meeting->pause_ms * 2 < PAUSE_MAX_MS ? meeting->pause_ms * 2 : PAUSE_MAX_MS;
	notice->kind = VB_BROKER_LATER;
	notice->own_slot = meeting->own_slot;
	notice->slot = meeting->slot;
	return true;
}
