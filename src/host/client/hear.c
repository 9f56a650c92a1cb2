/* The messages from the broker: answers, and news that no thread has asked for. */
#include "base/invariant.h"
#include "host/client/state.h"

#include <errno.h>
#include <fcntl.h>
#include "host/client/start.h"
#include "host/report/log.h"
#include "os/clock.h"
#include "os/descriptor.h"

#define ADOPT_AGAIN_MS     1000 /* a slot that was refused */
#define BIND_AGAIN_MS      100  /* a port, at first */
#define FORWARDER_AGAIN_MS 20

static void take_slot(struct vb_broker *broker, struct vb_broker_request *request)
{
	const struct vb_message *answer = &request->answer;

	if (answer->kind != VB_MESSAGE_SLOT || request->fd < 0 || answer->slot == 0 || answer->slot > VB_SLOT_MAX)
		return;
	*request->slot = (struct vb_held_slot){ .is_said = true,
		.is_adopted = true,
		.is_open_said = true,
		.slot = { answer->slot, request->fd, answer->receive_buffer, answer->is_carried } };
	vb_list_add_tail(&broker->slots, &request->slot->link);
	vb_held_slot_holds(request->slot);
}

static void take_binding(struct vb_broker *broker, struct vb_broker_request *request)
{
	struct vb_held_binding *binding = request->binding;

	assert(binding);
	assert(!binding->is_said);
	if (request->answer.kind != VB_MESSAGE_BOUND)
		return;
	binding->is.port = request->answer.binding.port;
	binding->is_said = true;
	vb_list_add_tail(&broker->bindings, &binding->link);
}

static void take_listening(struct vb_broker *broker, const struct vb_broker_request *request)
{
	struct vb_held_binding *binding = vb_broker_find_binding(broker, request->message.binding.number);

	if (!binding || request->answer.kind != VB_MESSAGE_BOUND)
		return;
	assert(binding->is.number == request->message.binding.number);
	binding->is_listening = binding->is_listening_said = true;
	binding->is.is_accepting = request->message.binding.is_accepting;
}

static void take_answer_of(struct vb_broker *broker, struct vb_broker_request *request)
{
	switch (request->message.kind) {
	case VB_MESSAGE_GET_SLOT:
		take_slot(broker, request);
		break;
	case VB_MESSAGE_BIND:
		take_binding(broker, request);
		break;
	case VB_MESSAGE_LISTEN:
		take_listening(broker, request);
		break;
	default:
		break;
	}
}

/* True: a thread waited for it, and has fd. */
static bool take_answer(struct vb_broker *broker, const struct vb_message *message, int fd)
{
	vb_list_for_each (node, &broker->requests) {
		struct vb_broker_request *request = vb_container_of(node, struct vb_broker_request, link);
		if (request->message.request != message->request)
			continue;
		assert(!request->is_answered);
		vb_list_remove(&request->link);
		request->answer = *message;
		request->fd = fd;
		request->is_answered = true;
		take_answer_of(broker, request);
		pthread_cond_broadcast(&broker->answered);
		return true;
	}
	return false;
}

static void try_later(struct vb_broker *broker, struct vb_held_slot *held, const struct vb_message *refusal)
{
	bool is_early = refusal->error == EAGAIN; /* its forwarder is not there yet */

	if (!is_early)
		vb_log(VB_LOG_WARN, "the new broker does not take slot %u: %s", held->slot.number, refusal->why);
	held->is_said = broker->has_all = false;
	held->again_ms = vb_clock_ms() + (is_early ? FORWARDER_AGAIN_MS : ADOPT_AGAIN_MS);
}

static bool take_adoption(struct vb_broker *broker, const struct vb_message *message)
{
	vb_list_for_each (node, &broker->slots) {
		struct vb_held_slot *held = vb_container_of(node, struct vb_held_slot, link);
		if (!held->is_said || held->request != message->request)
			continue;
		held->is_adopted = message->kind == VB_MESSAGE_ADOPTED;
		held->is_open_said = !held->is_open; /* a new broker takes every slot for closed */
		if (held->is_open) {
			broker->has_all = false;
			vb_eventfd_ring(broker->wake_fd, 1);
		}
		if (!held->is_adopted)
			try_later(broker, held, message);
		vb_held_slot_holds(held);
		return true;
	}
	return false;
}

/* No thread waits for it: a forwarder has taken the place of another, which is news, or it came too late, or twice. */
static bool take_late_slot(struct vb_broker *broker, const struct vb_message *message, int fd)
{
	const struct vb_message release = { .kind = VB_MESSAGE_RELEASE_SLOT, .slot = message->slot };

	const struct vb_held_slot *held = vb_broker_find_slot(broker, message->slot);
	if (held)
		return held->slot.is_carried && message->is_carried && dup3(fd, held->slot.fd, O_CLOEXEC) >= 0;
	vb_broker_post(broker, &release);
	return false;
}

/* A port that we told a new broker or worker of has become another process's meanwhile; or the privilege for it is our
 * parent's, which has not told the broker yet. */
static void take_refused_port(
	struct vb_broker *broker, struct vb_held_binding *binding, const struct vb_message *refusal)
{
	if (refusal->error == EACCES && binding->is.family) {
		binding->is_said = binding->is_listening_said = broker->has_all = false;
		bool is_first = binding->refusals++ == 0;
		binding->again_ms = vb_clock_ms() + (is_first ? BIND_AGAIN_MS : ADOPT_AGAIN_MS);
		if (binding->refusals == 2)
			vb_log(VB_LOG_WARN, "the new broker does not give back what this process held: %s",
				refusal->why);
	} else if (refusal->error == EADDRINUSE || refusal->error == EADDRNOTAVAIL) {
		vb_log(VB_LOG_ERROR, "port %u, which this process held, is another's since the broker was replaced",
			binding->is.port);
	} else if (refusal->error !=
		   EINVAL) { /* EINVAL: it has the port, which it was told before it said that it is new */
		vb_log(VB_LOG_ERROR, "the new broker does not give back what this process held: %s", refusal->why);
	}
}

static void take_lost_port(struct vb_broker *broker, const struct vb_message *message)
{
	vb_list_for_each (node, &broker->bindings) {
		struct vb_held_binding *binding = vb_container_of(node, struct vb_held_binding, link);
		if (binding->request == message->request)
			take_refused_port(broker, binding, message);
	}
}

static struct vb_broker_peer peer_of(const struct vb_message *message)
{
	return (struct vb_broker_peer){ .is_verbena = message->peer_is & VB_PEER_IS_VERBENA,
		.takes_hellos = message->peer_is & VB_PEER_TAKES_HELLOS,
		.receive_buffer = message->receive_buffer };
}

static void take_peer(struct vb_broker *broker, const struct vb_message *message)
{
	for (unsigned i = 0; i < broker->question_count; i++) {
		struct vb_broker_question *question = &broker->questions[i];
		if (!vb_gid_equal(&question->dgid, &message->gid))
			continue;
		question->is_said = question->is_answered = true;
		question->peer = peer_of(message);
	}
}

/* Of something that no thread waits for in a call. True: the user is to hear *notice. */
static bool take_refusal(struct vb_broker *broker, const struct vb_message *refusal, struct vb_broker_notice *notice)
{
	if (vb_broker_put_off_introduction(broker, refusal, notice))
		return true;
	take_lost_port(broker, refusal);
	return false;
}

bool vb_broker_take(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice)
{
	int *fd = &fds[0];

	*notice = (struct vb_broker_notice){ .gid = message->gid, .to = message->sgid, .scope = message->scope };
	switch (message->kind) {
	case VB_MESSAGE_SLOT:
		if (take_answer(broker, message, *fd)) {
			*fd = -1;
			return false;
		}
		notice->kind = VB_BROKER_CHANNEL;
		return *fd >= 0 && take_late_slot(broker, message, *fd);
	case VB_MESSAGE_ADOPTED:
	case VB_MESSAGE_SENT:
	case VB_MESSAGE_BOUND:
	case VB_MESSAGE_JOINED:
	case VB_MESSAGE_REFUSED:
		if (message->request == 0) /* we do not wait for it */
			return false;
		if (take_answer(broker, message, *fd))
			*fd = -1;
		else if (!take_adoption(broker, message) && message->kind == VB_MESSAGE_REFUSED)
			return take_refusal(broker, message, notice);
		return false;
	case VB_MESSAGE_RESTARTED:
		vb_worker_forgot(broker);
		return false;
	case VB_MESSAGE_INTRODUCTION:
		return vb_broker_take_introduction(broker, message, fds, notice);
	case VB_MESSAGE_ALONE:
		return vb_broker_take_alone(broker, message, notice);
	case VB_MESSAGE_AWAITED:
		return vb_broker_take_awaited(broker, message, notice);
	case VB_MESSAGE_WANTED:
		vb_broker_take_wanted(broker, message);
		return false;
	case VB_MESSAGE_PEER:
		take_peer(broker, message);
		notice->kind = VB_BROKER_PEER;
		notice->peer = peer_of(message);
		return true;
	case VB_MESSAGE_MAD:
	case VB_MESSAGE_FAILED:
		notice->kind = message->kind == VB_MESSAGE_MAD ? VB_BROKER_MAD : VB_BROKER_FAILED;
		notice->error = -message->error;
		notice->length = message->length;
		memcpy(notice->mad, message->mad, sizeof(notice->mad));
		return true;
	default:
		return false;
	}
}
