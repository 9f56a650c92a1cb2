/* The processes of this host that threads of the program ask to meet. Each question is remembered until the broker has
 * answered it: by the introduction, which the other process may have asked for, too, or by saying that we are alone. */
#include "base/invariant.h"
#include "host/client/state.h"

#include <errno.h>
#include <stdlib.h>
#include "host/client/start.h"
#include "os/clock.h"

#define PAUSE_FIRST_MS 5 /* before it is asked again: one of the two does not read at the moment */
#define PAUSE_MAX_MS   500

static void drop(struct vb_broker *broker, struct vb_broker_introduction *introduction)
{
	assert(broker->introduction_count > 0);
	vb_list_remove(&introduction->link);
	broker->introduction_count--;
	free(introduction);
}

static bool is_asked(const struct vb_broker *broker, uint8_t own_slot, const struct vb_gid *gid, uint8_t slot)
{
	vb_list_for_each (node, &broker->introductions) {
		const struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		if (introduction->own_slot == own_slot && introduction->slot == slot &&
			vb_gid_equal(&introduction->gid, gid))
			return true;
	}
	return false;
}

/* Beyond the most that there may be, the oldest makes room. */
static void add(struct vb_broker *broker, uint8_t own_slot, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_broker_introduction *introduction = malloc(sizeof(*introduction));

	if (!introduction)
		return;
	if (broker->introduction_count == VB_BROKER_MOST_INTRODUCTIONS)
		drop(broker, vb_container_of(broker->introductions.next, struct vb_broker_introduction, link));
	*introduction = (struct vb_broker_introduction){
		.own_slot = own_slot, .slot = slot, .gid = *gid, .pause_ms = PAUSE_FIRST_MS
	};
	vb_list_add_tail(&broker->introductions, &introduction->link);
	broker->introduction_count++;
	assert(broker->introduction_count <= VB_BROKER_MOST_INTRODUCTIONS);
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
	const struct vb_message part = { .kind = VB_MESSAGE_PART, .slot = own_slot, .introduction.slot = slot };

	pthread_mutex_lock(&broker->mutex);
	if (vb_broker_find_slot(broker, own_slot))
		vb_broker_post(broker, &part);
	pthread_mutex_unlock(&broker->mutex);
}

void vb_broker_forget_introductions(struct vb_broker *broker, uint8_t own_slot)
{
	vb_list_for_each_safe (node, &broker->introductions) {
		struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		if (introduction->own_slot == own_slot)
			drop(broker, introduction);
	}
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static struct vb_broker_introduction *find(struct vb_broker *broker, uint32_t request)
{
	vb_list_for_each (node, &broker->introductions) {
		struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		if (introduction->is_said && introduction->request == request)
			return introduction;
	}
	return NULL;
}

/* Drops the question that the notice answers, and sets notice->gid to the address at which it was asked. */
static void settle(struct vb_broker *broker, struct vb_broker_notice *notice)
{
	vb_list_for_each_safe (node, &broker->introductions) {
		struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		introduction->pause_ms = PAUSE_FIRST_MS; /* the broker goes on */
		if (introduction->own_slot != notice->own_slot || introduction->slot != notice->slot)
			continue;
		notice->gid = introduction->gid;
		drop(broker, introduction);
	}
}

bool vb_broker_take_introduction(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice)
{
	notice->own_slot = message->slot;
	notice->slot = message->introduction.slot;
	settle(broker, notice);
	if (!broker->hear || !vb_broker_find_slot(broker, message->slot))
		return false;
	if (fds[1] < 0) { /* this process has no descriptor left; a thread that asks later would not hear of that */
		notice->kind = VB_BROKER_ALONE;
		notice->error = -EMFILE;
		return true;
	}
	notice->kind = VB_BROKER_INTRODUCTION;
	notice->side = message->introduction.side;
	notice->is_same_user = message->introduction.is_same_user;
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
	struct vb_broker_introduction *introduction = find(broker, message->request);

	if (!introduction)
		return false;
	notice->kind = VB_BROKER_ALONE;
	notice->own_slot = introduction->own_slot;
	notice->slot = introduction->slot;
	notice->gid = introduction->gid;
	drop(broker, introduction);
	return true;
}

bool vb_broker_take_awaited(struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice)
{
	const struct vb_broker_introduction *introduction = find(broker, message->request);

	if (!introduction)
		return false;
	notice->kind = VB_BROKER_AWAITED;
	notice->own_slot = introduction->own_slot;
	notice->slot = introduction->slot;
	return true;
}

void vb_broker_take_wanted(struct vb_broker *broker, const struct vb_message *message)
{
	vb_list_for_each (node, &broker->introductions) {
		struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		if (introduction->own_slot != message->slot || introduction->slot != message->introduction.slot)
			continue;
		introduction->is_said = broker->has_all = false;
		introduction->again_ms = 0;
	}
	if (!broker->has_all)
		vb_broker_hurry(broker);
}

bool vb_broker_put_off_introduction(
	struct vb_broker *broker, const struct vb_message *refusal, struct vb_broker_notice *notice)
{
	struct vb_broker_introduction *introduction = find(broker, refusal->request);

	if (!introduction)
		return false;
	assert(introduction->pause_ms > 0);
	introduction->is_said = broker->has_all = false;
	introduction->again_ms = vb_clock_ms() + introduction->pause_ms;
	introduction->pause_ms = introduction->pause_ms * 2 < PAUSE_MAX_MS ? introduction->pause_ms * 2 : PAUSE_MAX_MS;
	notice->kind = VB_BROKER_LATER;
	notice->own_slot = introduction->own_slot;
	notice->slot = introduction->slot;
	return true;
}
