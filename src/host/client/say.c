/* The messages to the broker: those that it has to know, which are sent again when it forgets, and those that are sent
 * once. */
#include "host/client/state.h"

#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "host/client/start.h"
#include "os/clock.h"
#include "os/descriptor.h"

#define PASS_AGAIN_MS 100

/* False: there is no room now, or no broker. */
static bool say(struct vb_broker *broker, const struct vb_message *message, const int *pass)
{
	int rc = broker->fd >= 0 ? vb_message_send(broker->fd, message, pass) : -EPIPE;
	errno = -rc;
	return rc == 0;
}

/* Room on the connection would not help: too many descriptors are on their way, or a program has closed it. */
static bool is_not_to_be_passed(int error)
{
	return error == ETOOMANYREFS || error == EBADF || error == EINVAL;
}

static bool say_slot(struct vb_broker *broker, struct vb_held_slot *held)
{
	struct vb_message adopt = { .kind = VB_MESSAGE_ADOPT, .slot = held->slot.number };

	vb_held_slot_holds(held);
	if (held->is_said || (held->again_ms && vb_clock_ms() < held->again_ms))
		return true;
	adopt.request = held->request = ++broker->last_request;
	held->is_said = say(broker, &adopt, held->slot.is_carried ? NULL : &held->slot.fd);
	if (!held->is_said && is_not_to_be_passed(errno)) {
		held->again_ms = vb_clock_ms() + PASS_AGAIN_MS;
		return true; /* the rest does not wait for it */
	}
	return held->is_said;
}

/* The broker does not take it for a slot that it has not adopted yet. A slot is not open at first. */
static bool say_open(struct vb_broker *broker, struct vb_held_slot *held)
{
	const struct vb_message open = {
		.kind = VB_MESSAGE_OPEN, .slot = held->slot.number, .introduction.is_open = held->is_open
	};

	if (held->is_adopted && !held->is_open_said)
		held->is_open_said = say(broker, &open, NULL);
	return !held->is_adopted || held->is_open_said;
}

struct vb_message vb_broker_about(uint16_t kind, const struct vb_binding *binding)
{
	return (struct vb_message){ .kind = kind,
		.gid = binding->address,
		.binding.number = binding->number,
		.binding.port_space = binding->port_space,
		.binding.port = binding->port,
		.binding.is_shared = binding->is_shared,
		.binding.is_ipv6_only = binding->is_ipv6_only,
		.binding.is_accepting = binding->is_accepting,
		.binding.family = binding->family };
}

static bool say_binding(struct vb_broker *broker, struct vb_held_binding *binding)
{
	struct vb_message bind = vb_broker_about(VB_MESSAGE_BIND, &binding->is),
			  listen = vb_broker_about(VB_MESSAGE_LISTEN, &binding->is);

	if (!binding->is_said && binding->again_ms && vb_clock_ms() < binding->again_ms)
		return true; /* the rest does not wait for it */
	if (!binding->is_said) {
		bind.request = binding->request = ++broker->last_request;
		binding->is_said = say(broker, &bind, NULL);
	}
	if (binding->is_said && binding->is_listening && !binding->is_listening_said)
		binding->is_listening_said = say(broker, &listen, NULL);
	return binding->is_said && (!binding->is_listening || binding->is_listening_said);
}

static bool say_question(struct vb_broker *broker, struct vb_broker_question *question)
{
	const struct vb_message discover = {
		.kind = VB_MESSAGE_DISCOVER, .sgid = question->sgid, .gid = question->dgid
	};

	if (!question->is_said)
		question->is_said = say(broker, &discover, NULL);
	return question->is_said;
}

static bool say_standing(struct vb_broker *broker)
{
	vb_list_for_each (node, &broker->slots)
		if (!say_slot(broker, vb_container_of(node, struct vb_held_slot, link)) ||
			!say_open(broker, vb_container_of(node, struct vb_held_slot, link)))
			return false;
	vb_list_for_each (node, &broker->bindings)
		if (!say_binding(broker, vb_container_of(node, struct vb_held_binding, link)))
			return false;
	return true;
}

static bool say_requests(struct vb_broker *broker)
{
	vb_list_for_each (node, &broker->requests) {
		struct vb_broker_request *request = vb_container_of(node, struct vb_broker_request, link);
		if (!request->is_said)
			request->is_said = say(broker, &request->message, NULL);
		if (!request->is_said)
			return false;
	}
	return true;
}

static bool say_questions(struct vb_broker *broker)
{
	for (unsigned i = 0; i < broker->question_count; i++)
		if (!say_question(broker, &broker->questions[i]))
			return false;
	return true;
}

static bool say_introduction(struct vb_broker *broker, struct vb_broker_introduction *introduction)
{
	struct vb_message meet = { .kind = VB_MESSAGE_MEET,
		.slot = introduction->own_slot,
		.gid = introduction->gid,
		.introduction.slot = introduction->slot };

	if (introduction->is_said || (introduction->again_ms && vb_clock_ms() < introduction->again_ms))
		return true;
	meet.request = introduction->request = ++broker->last_request;
	introduction->is_said = say(broker, &meet, NULL);
	return introduction->is_said;
}

static bool say_introductions(struct vb_broker *broker)
{
	vb_list_for_each (node, &broker->introductions)
		if (!say_introduction(broker, vb_container_of(node, struct vb_broker_introduction, link)))
			return false;
	return true;
}

static void drop_post(struct vb_broker *broker, struct vb_broker_post *post)
{
	assert(broker->post_count > 0);
	vb_list_remove(&post->link);
	broker->post_count--;
	free(post);
}

static bool say_posts(struct vb_broker *broker)
{
	while (!vb_list_empty(&broker->posts)) {
		struct vb_broker_post *post = vb_container_of(broker->posts.next, struct vb_broker_post, link);
		if (!say(broker, &post->message, NULL))
			return false;
		drop_post(broker, post);
	}
	return true;
}

bool vb_broker_say_all(struct vb_broker *broker)
{
	if (!broker->has_all) {
		if (!say_standing(broker) || !say_requests(broker) || !say_questions(broker) ||
			!say_introductions(broker))
			return false;
		broker->has_all = true;
	}
	if (!say_requests(broker) || !say_posts(broker))
		return false;
	assert(broker->has_all);
	assert(vb_list_empty(&broker->posts));
	assert(broker->post_count == 0);
	return true;
}

static void wake(struct vb_broker *broker)
{
	if (!vb_eventfd_ring(broker->wake_fd, 1))
		vb_broker_end(broker);
}

void vb_broker_hurry(struct vb_broker *broker)
{
	if (!vb_broker_say_all(broker))
		wake(broker);
}

void vb_broker_post(struct vb_broker *broker, const struct vb_message *message)
{
	struct vb_broker_post *post;

	if (vb_broker_say_all(broker) && say(broker, message, NULL))
		return;
	post = malloc(sizeof(*post));
	if (!post)
		return;
	post->message = *message;
	vb_list_add_tail(&broker->posts, &post->link);
	broker->post_count++;
	wake(broker);
}

void vb_worker_forgot(struct vb_broker *broker)
{
	vb_list_for_each (node, &broker->slots) {
		struct vb_held_slot *held = vb_container_of(node, struct vb_held_slot, link);
		held->is_open_said = !held->is_open;
	}
	vb_list_for_each (node, &broker->bindings) {
		struct vb_held_binding *binding = vb_container_of(node, struct vb_held_binding, link);
		binding->is_said = binding->is_listening_said = false;
		binding->again_ms = binding->refusals = 0;
	}
	vb_list_for_each (node, &broker->requests)
		vb_container_of(node, struct vb_broker_request, link)->is_said = false;
	for (unsigned i = 0; i < broker->question_count; i++)
		broker->questions[i].is_said = broker->questions[i].is_answered;
	vb_list_for_each (node, &broker->introductions) {
		struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		introduction->is_said = false;
		introduction->again_ms = 0;
	}
	broker->has_all = false;
}

void vb_broker_forgot(struct vb_broker *broker)
{
	vb_list_for_each (node, &broker->slots) {
		struct vb_held_slot *held = vb_container_of(node, struct vb_held_slot, link);
		held->is_said = held->is_adopted = false;
		held->again_ms = 0;
	}
	vb_list_for_each_safe (node, &broker->posts) /* what others take back, the next broker never knew */
		if (vb_container_of(node, struct vb_broker_post, link)->message.kind != VB_MESSAGE_POST_MAD)
			drop_post(broker, vb_container_of(node, struct vb_broker_post, link));
	vb_worker_forgot(broker);
	broker->is_back = false;
	assert(!broker->has_all);
}
