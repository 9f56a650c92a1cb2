/* The requests of the program's threads to the broker: for slots, ports, peers, MADs. */
#include "base/invariant.h"
#include "host/client/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include "host/client/start.h"
#include "os/clock.h"
#include "os/descriptor.h"

#define PATIENCE_MS  10000 /* for the answer to a request */
#define ASK_AGAIN_MS 1000  /* a peer that did not answer may have been started since */
#define MOST_POSTS   4096

static bool wait_for_answer(struct vb_broker *broker, const struct vb_broker_request *request)
{
	int64_t until_ns = vb_clock_ns() + PATIENCE_MS * VB_CLOCK_MS;
	int rc = 0;

	while (!request->is_answered && !broker->is_over && rc == 0)
		rc = vb_clock_cond_wait(&broker->answered, &broker->mutex, until_ns);
	return request->is_answered;
}

/* Not cancelled: the thread would leave its request behind. */
static int ask(struct vb_broker *broker, struct vb_broker_request *request, char *why, size_t why_size)
{
	int cancelled_before, rc = 0;

	assert(!request->is_answered);
	request->fd = -1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled_before);
	pthread_mutex_lock(&broker->mutex);
	request->message.request = ++broker->last_request;
	vb_list_add_tail(&broker->requests, &request->link);
	vb_broker_hurry(broker);
	const bool is_answered = wait_for_answer(broker, request);
	assert(vb_list_linked(&request->link) == !is_answered);
	if (!is_answered) {
		vb_list_remove(&request->link);
		rc = broker->fd < 0 ? vb_broker_fail(EPIPE, why, why_size,
					      "the broker is gone, and there is no other: %s", broker->why)
				    : vb_broker_fail(ETIMEDOUT, why, why_size, "the broker does not answer");
	}
	vb_broker_holds(broker);
	pthread_mutex_unlock(&broker->mutex);
	pthread_setcancelstate(cancelled_before, NULL);
	if (rc == 0 && request->answer.kind == VB_MESSAGE_REFUSED)
		rc = vb_broker_fail(request->answer.error > 0 ? request->answer.error : EPROTO, why, why_size, "%s",
			request->answer.why);
	return rc;
}

int vb_broker_get_slot(struct vb_broker *broker, uint32_t receive_buffer, bool is_further, struct vb_slot *slot,
	char *why, size_t why_size)
{
	struct vb_held_slot *held = calloc(1, sizeof(*held));
	struct vb_broker_request request = {
		.message = { .kind = VB_MESSAGE_GET_SLOT, .receive_buffer = receive_buffer, .is_further = is_further },
		.slot = held
	};

	if (!held)
		return vb_broker_fail(ENOMEM, why, why_size, "out of memory");
	int rc = ask(broker, &request, why, why_size);
	if (rc == 0 && held->slot.number == 0)
		rc = vb_broker_fail(EPROTO, why, why_size, "the broker gave no socket");
	if (rc == 0) {
		assert(held->slot.fd >= 0);
		*slot = held->slot;
		return 0;
	}
	if (request.fd >= 0)
		close(request.fd);
	free(held);
	return rc;
}

/* Closes the socket behind fd, which becomes a descriptor that is never readable. */
static void silence(int fd)
{
	if (!vb_descriptor_is(fd, S_IFSOCK)) /* the program has closed it */
		return;
	int quiet = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (quiet >= 0) {
		dup3(quiet, fd, O_CLOEXEC);
		close(quiet);
	}
}

void vb_broker_release_slot(struct vb_broker *broker, const struct vb_slot *slot)
{
	const struct vb_message release = { .kind = VB_MESSAGE_RELEASE_SLOT, .slot = slot->number };

	silence(slot->fd); /* while any process holds the socket it stays in the group */
	pthread_mutex_lock(&broker->mutex);
	struct vb_held_slot *held = vb_broker_find_slot(broker, slot->number);
	if (held) {
		vb_held_slot_holds(held);
		vb_list_remove(&held->link);
		if (held->is_adopted)
			vb_broker_post(broker, &release);
		free(held);
	}
	vb_broker_forget_introductions(broker, slot->number);
	pthread_mutex_unlock(&broker->mutex);
}

int vb_broker_join(
	struct vb_broker *broker, const struct vb_slot *slot, const struct vb_gid *group, uint32_t ifindex, bool join)
{
	struct vb_broker_request request = { .message = { .kind = join ? VB_MESSAGE_JOIN : VB_MESSAGE_LEAVE,
						     .slot = slot->number,
						     .gid = *group,
						     .scope = ifindex } };

	return ask(broker, &request, NULL, 0);
}

/* ---- Ports ------------------------------------------------------------------------------------------------------- */

int vb_broker_bind(struct vb_broker *broker, struct vb_binding *is, char *why, size_t why_size)
{
	struct vb_held_binding *binding = calloc(1, sizeof(*binding));

	if (!binding)
		return vb_broker_fail(ENOMEM, why, why_size, "out of memory");
	pthread_mutex_lock(&broker->mutex);
	is->number = ++broker->last_number;
	pthread_mutex_unlock(&broker->mutex);
	binding->is = *is;
	struct vb_broker_request request = { .message = vb_broker_about(VB_MESSAGE_BIND, is), .binding = binding };
	int rc = ask(broker, &request, why, why_size);
	if (rc == -ETIMEDOUT && request.is_said) { /* it may be bound yet */
		const struct vb_message unbind = vb_broker_about(VB_MESSAGE_UNBIND, is);
		pthread_mutex_lock(&broker->mutex);
		vb_broker_post(broker, &unbind);
		pthread_mutex_unlock(&broker->mutex);
	}
	assert(rc <= 0); /* at 0 it was said, to a broker that may be gone by now */
	if (rc)
		free(binding);
	else
		is->port = request.answer.binding.port;
	return rc;
}

int vb_broker_listen(struct vb_broker *broker, const struct vb_binding *is, char *why, size_t why_size)
{
	struct vb_broker_request request = { .message = vb_broker_about(VB_MESSAGE_LISTEN, is) };

	return ask(broker, &request, why, why_size);
}

/* Not answered: it is sent again to each new broker, so it cannot be lost. */
void vb_broker_accepting(struct vb_broker *broker, const struct vb_binding *is)
{
	pthread_mutex_lock(&broker->mutex);
	struct vb_held_binding *binding = vb_broker_find_binding(broker, is->number);
	if (binding) {
		binding->is.is_accepting = true;
		binding->is_listening_said = broker->has_all = false;
		vb_broker_hurry(broker);
	}
	pthread_mutex_unlock(&broker->mutex);
}

void vb_broker_unbind(struct vb_broker *broker, const struct vb_binding *is)
{
	const struct vb_message unbind = vb_broker_about(VB_MESSAGE_UNBIND, is);

	pthread_mutex_lock(&broker->mutex);
	struct vb_held_binding *binding = vb_broker_find_binding(broker, is->number);
	if (binding) {
		vb_list_remove(&binding->link);
		free(binding);
		vb_broker_post(broker, &unbind);
	}
	pthread_mutex_unlock(&broker->mutex);
}

/* ---- Peers and MADs ---------------------------------------------------------------------------------------------- */

static struct vb_broker_question *find_question(struct vb_broker *broker, const struct vb_gid *dgid)
{
	for (unsigned i = 0; i < broker->question_count; i++)
		if (vb_gid_equal(&broker->questions[i].dgid, dgid))
			return &broker->questions[i];
	return NULL;
}

/* Beyond the table's size the oldest question makes room. */
static struct vb_broker_question *new_question(struct vb_broker *broker)
{
	struct vb_broker_question *oldest = &broker->questions[0];

	if (broker->question_count < VB_BROKER_MOST_QUESTIONS)
		return &broker->questions[broker->question_count++];
	assert(broker->question_count == VB_BROKER_MOST_QUESTIONS);
	for (unsigned i = 1; i < VB_BROKER_MOST_QUESTIONS; i++)
		if (broker->questions[i].again_ms < oldest->again_ms)
			oldest = &broker->questions[i];
	return oldest;
}

bool vb_broker_discover(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid)
{
	int64_t now = vb_clock_ms();

	pthread_mutex_lock(&broker->mutex);
	struct vb_broker_question *question = find_question(broker, dgid);
	bool is_new = !question;
	if (is_new || (!question->peer.is_verbena && now >= question->again_ms)) {
		if (is_new)
			question = new_question(broker);
		*question = (struct vb_broker_question){ .sgid = *sgid, .dgid = *dgid, .again_ms = now + ASK_AGAIN_MS };
		broker->has_all = false;
		vb_broker_hurry(broker);
	}
	pthread_mutex_unlock(&broker->mutex);
	return is_new;
}

bool vb_broker_knows(struct vb_broker *broker, const struct vb_gid *dgid, struct vb_broker_peer *peer)
{
	pthread_mutex_lock(&broker->mutex);
	const struct vb_broker_question *question = find_question(broker, dgid);
	bool is_known = question && question->is_answered;
	if (is_known)
		*peer = question->peer;
	pthread_mutex_unlock(&broker->mutex);
	return is_known;
}

int vb_broker_send_mad(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid,
	const uint8_t mad[256], uint32_t length)
{
	struct vb_broker_request request = {
		.message = { .kind = VB_MESSAGE_SEND_MAD, .sgid = *sgid, .gid = *dgid, .length = length }
	};

	memcpy(request.message.mad, mad, sizeof(request.message.mad));
	return ask(broker, &request, NULL, 0);
}

static void post_mad(struct vb_broker *broker, struct vb_message *message, const uint8_t mad[256])
{
	memcpy(message->mad, mad, sizeof(message->mad));
	pthread_mutex_lock(&broker->mutex);
	if (broker->post_count < MOST_POSTS)
		vb_broker_post(broker, message);
	pthread_mutex_unlock(&broker->mutex);
}

void vb_broker_post_mad(
	struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid, const uint8_t mad[256])
{
	struct vb_message message = { .kind = VB_MESSAGE_POST_MAD, .sgid = *sgid, .gid = *dgid, .length = 256 };

	post_mad(broker, &message, mad);
}

void vb_broker_post_query(
	struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid, const uint8_t mad[256])
{
	struct vb_message message = { .kind = VB_MESSAGE_SEND_MAD, .sgid = *sgid, .gid = *dgid, .length = 256 };

	post_mad(broker, &message, mad);
}
