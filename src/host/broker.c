/* The process's end of the broker: finding it, asking it for slots and for peers, and finding the next one when it dies.
 * Where there is none it has one started (broker_start.c). protocol.h is what is said; src/broker/ is who answers. */
#include "host/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include "host/broker_start.h"
#include "host/connections.h"
#include "host/protocol.h"

#define PATIENCE_MS	 10000 /* for a broker to answer */
#define LOCK_PATIENCE_MS 2000  /* for somebody else who is starting one */
#define RETRY_MS	 2
#define POST_PATIENCE_MS 100
#define MAX_QUESTIONS	 256

struct vb_broker {
	int fd;
	bool is_gone;
	bool accepts_any;
	char *libexec;
	uint32_t last_request;
	unsigned question_count; /* asked and not answered */
	struct {
		struct vb_gid sgid, dgid;
	} questions[MAX_QUESTIONS];
	unsigned notice_count; /* heard while waiting for something else */
	struct vb_broker_notice notices[MAX_QUESTIONS];
};

static void wait_a_moment(void)
{
	/* A little different for each, so that many do not come at once. */
	struct timespec span = { 0, RETRY_MS * 1000000 + getpid() % 64 * 16000 };
	nanosleep(&span, NULL);
}

/* ---- Connecting ------------------------------------------------------------------------------------------------ */

static int wait_readable(int fd, int64_t until)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	for (;;) {
		int64_t left = until - vb_broker_now_ms();
		int rc = poll(&wait, 1, left > 0 ? (int)left : 0);
		if (rc > 0)
			return 0;
		if (rc == 0 && left <= 0)
			return -ETIMEDOUT;
		if (rc < 0 && errno != EINTR)
			return -errno;
	}
}

/* Who made the socket that we are connected to. */
static int check_owner(const struct vb_broker *broker, int fd, char *why, size_t why_size)
{
	struct ucred owner;
	socklen_t length = sizeof(owner);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &length))
		return vb_broker_fail(errno, why, why_size, "cannot see who runs the broker: %s", strerror(errno));
	if (owner.uid == 0 || owner.uid == geteuid() || broker->accepts_any)
		return 0;
	return vb_broker_fail(EPERM, why, why_size, "UDP port 4791 is held by the broker of another user, uid %u (pid %d). To "
		"share it, trust that user and set VERBENA_BROKER=any; or, once it has left, a second after its last "
		"client, have root run: verbena broker",
		owner.uid, owner.pid);
}

static int greet(int fd, int64_t until)
{
	struct vb_message message = { .kind = VB_MESSAGE_HELLO };
	int passed;
	int rc = vb_message_send(fd, &message, NULL);
	while (rc == 0) {
		rc = wait_readable(fd, until);
		if (rc == 0)
			rc = vb_message_receive(fd, &message, &passed);
		if (rc == 0 && passed >= 0)
			close(passed);
		if (rc == 0 && message.kind == VB_MESSAGE_WELCOME)
			return 0;
		if (rc == 0 && message.kind == VB_MESSAGE_RESTARTED) {
			message = (struct vb_message){ .kind = VB_MESSAGE_HELLO };
			rc = vb_message_send(fd, &message, NULL);
		}
	}
	return rc;
}

/* *fd is connected and greeted. -ECONNREFUSED: there is no broker; -EAGAIN: it is busy or just left. */
static int try_connect(const struct vb_broker *broker, int64_t until, int *fd, char *why, size_t why_size)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection < 0)
		return vb_broker_fail(errno, why, why_size, "cannot make a Unix socket: %s", strerror(errno));
	int rc = 0;
	if (connect(connection, (struct sockaddr *)&address, length)) {
		rc = vb_broker_fail(errno, why, why_size, "cannot connect to the broker: %s", strerror(errno));
	} else {
		rc = check_owner(broker, connection, why, why_size);
		if (rc == 0) {
			rc = greet(connection, until);
			if (rc == -ETIMEDOUT)
				vb_broker_fail(0, why, why_size, "the broker does not answer");
			else if (rc)
				rc = -EAGAIN;
		}
	}
	if (rc)
		close(connection);
	else
		*fd = connection;
	return rc;
}

/* Of processes that find no broker one starts it, the others wait. The name is held as long as the socket. */
static int take_start_lock(void)
{
	char name[64];
	struct sockaddr_un address;
	snprintf(name, sizeof(name), VB_BROKER_START_NAME ".%u", (unsigned)geteuid());
	socklen_t length = vb_abstract_address(&address, name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, length)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int find_broker(const struct vb_broker *broker, int *fd, char *why, size_t why_size)
{
	int64_t begin = vb_broker_now_ms();
	while (vb_broker_now_ms() - begin < PATIENCE_MS) {
		int rc = try_connect(broker, begin + PATIENCE_MS, fd, why, why_size);
		if (rc != -ECONNREFUSED && rc != -EAGAIN)
			return rc;
		if (rc == -ECONNREFUSED) {
			int lock = take_start_lock();
			if (lock >= 0 || vb_broker_now_ms() - begin > LOCK_PATIENCE_MS) {
				rc = try_connect(broker, begin + PATIENCE_MS, fd, why, why_size);
				if (rc == -ECONNREFUSED)
					rc = vb_broker_start(broker->libexec, why, why_size) ?: -EAGAIN;
				if (lock >= 0)
					close(lock);
				if (rc != -EAGAIN)
					return rc;
				continue;
			}
		}
		wait_a_moment();
	}
	return vb_broker_fail(ETIMEDOUT, why, why_size, "no broker could be reached within %d s", PATIENCE_MS / 1000);
}

int vb_broker_connect(bool broker_any, const char *libexec, struct vb_broker **result, char *why, size_t why_size)
{
	struct vb_broker *broker = calloc(1, sizeof(*broker));
	if (!broker)
		return vb_broker_fail(ENOMEM, why, why_size, "out of memory");
	broker->fd = -1;
	broker->accepts_any = broker_any;
	broker->libexec = libexec && *libexec ? strdup(libexec) : NULL;
	int rc = find_broker(broker, &broker->fd, why, why_size);
	if (rc)
		vb_broker_disconnect(broker);
	else
		*result = broker;
	return rc;
}

void vb_broker_disconnect(struct vb_broker *broker)
{
	if (broker->fd >= 0)
		close(broker->fd);
	free(broker->libexec);
	free(broker);
}

/* ---- Talking --------------------------------------------------------------------------------------------------- */

/* Closes what is behind fd, which becomes one that is never readable. */
static void silence(int fd)
{
	int quiet = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (quiet >= 0) {
		dup3(quiet, fd, O_CLOEXEC);
		close(quiet);
	}
}

/* Who waits on the dead connection must not spin. */
static void lose(struct vb_broker *broker)
{
	broker->is_gone = true;
	silence(broker->fd);
}

/* Waits for room, as long as the broker reads at all. */
static int send_patiently(const struct vb_broker *broker, const struct vb_message *message, const int *pass,
	int patience_ms)
{
	int rc;
	while ((rc = vb_message_send(broker->fd, message, pass)) == -EAGAIN) {
		struct pollfd wait = { .fd = broker->fd, .events = POLLOUT };
		if (poll(&wait, 1, patience_ms) == 0)
			return -ETIMEDOUT;
	}
	return rc;
}

static void send_question(struct vb_broker *broker, unsigned i)
{
	const struct vb_message message = { .kind = VB_MESSAGE_DISCOVER, .sgid = broker->questions[i].sgid,
		.gid = broker->questions[i].dgid };
	vb_message_send(broker->fd, &message, NULL);
}

static void ask_again(struct vb_broker *broker)
{
	for (unsigned i = 0; i < broker->question_count; i++)
		send_question(broker, i);
}

static void drop_question(struct vb_broker *broker, const struct vb_gid *dgid)
{
	for (unsigned i = 0; i < broker->question_count; i++) {
		if (vb_gid_equal(&broker->questions[i].dgid, dgid)) {
			broker->questions[i] = broker->questions[--broker->question_count];
			i--;
		}
	}
}

/* A message that answers no request. False: it was none. */
static bool take_notice(struct vb_broker *broker, const struct vb_message *message)
{
	struct vb_broker_notice notice = { .kind = VB_BROKER_PEER, .gid = message->gid, .to = message->sgid,
		.scope = message->scope, .is_verbena = message->is_verbena, .receive_buffer = message->receive_buffer };
	switch (message->kind) {
	case VB_MESSAGE_PEER:
		drop_question(broker, &message->gid);
		break;
	case VB_MESSAGE_MAD:
		notice.kind = VB_BROKER_MAD;
		notice.length = message->length;
		memcpy(notice.mad, message->mad, sizeof(notice.mad));
		break;
	case VB_MESSAGE_FAILED:
		notice.kind = VB_BROKER_FAILED;
		notice.error = -message->error;
		memcpy(notice.mad, message->mad, sizeof(notice.mad));
		break;
	case VB_MESSAGE_RESTARTED:
		ask_again(broker);
		notice.kind = VB_BROKER_FORGOT;
		break;
	default:
		return false;
	}
	if (broker->notice_count < MAX_QUESTIONS)
		broker->notices[broker->notice_count++] = notice;
	return true;
}

/* Sends request and waits for its answer; *fd is what came with it, or -1. */
static int ask(struct vb_broker *broker, struct vb_message *request, const int *pass, struct vb_message *answer,
	int *fd, char *why, size_t why_size)
{
	int64_t until = vb_broker_now_ms() + PATIENCE_MS;
	request->request = ++broker->last_request;
	int rc = broker->is_gone ? -EPIPE : send_patiently(broker, request, pass, PATIENCE_MS);
	while (rc == 0) {
		rc = wait_readable(broker->fd, until);
		if (rc == 0)
			rc = vb_message_receive(broker->fd, answer, fd);
		if (rc == -EAGAIN) {
			rc = 0;
			continue;
		}
		if (rc)
			break;
		bool is_answer = answer->request == request->request &&
			(answer->kind == VB_MESSAGE_SLOT || answer->kind == VB_MESSAGE_ADOPTED ||
				answer->kind == VB_MESSAGE_SENT || answer->kind == VB_MESSAGE_BOUND ||
				answer->kind == VB_MESSAGE_REFUSED);
		if (is_answer && answer->kind == VB_MESSAGE_REFUSED)
			rc = vb_broker_fail(answer->error > 0 ? answer->error : EPROTO, why, why_size, "%s", answer->why);
		if (is_answer && rc == 0)
			return 0;
		if (*fd >= 0)
			close(*fd);
		if (is_answer)
			return rc;
		if (take_notice(broker, answer) && answer->kind == VB_MESSAGE_RESTARTED)
			rc = send_patiently(broker, request, pass, PATIENCE_MS); /* who was asked may not have heard */
	}
	if (rc == -ETIMEDOUT)
		return vb_broker_fail(ETIMEDOUT, why, why_size, "the broker does not answer");
	if (!broker->is_gone)
		lose(broker);
	return vb_broker_fail(EPIPE, why, why_size, "the broker is gone");
}

static int adopt(struct vb_broker *broker, const struct vb_slot *slot, char *why, size_t why_size)
{
	struct vb_message request = { .kind = VB_MESSAGE_ADOPT, .slot = slot->number }, answer;
	int fd;
	int rc = ask(broker, &request, &slot->fd, &answer, &fd, why, why_size);
	if (rc == 0 && fd >= 0)
		close(fd);
	return rc == 0 && answer.kind != VB_MESSAGE_ADOPTED ? vb_broker_fail(EPROTO, why, why_size, "a confused broker") : rc;
}

int vb_broker_recover(struct vb_broker *broker, const struct vb_slot *slot, char *why, size_t why_size)
{
	int rc = 0;
	if (broker->is_gone) {
		int fd;
		rc = find_broker(broker, &fd, why, why_size);
		if (rc)
			return rc;
		rc = dup3(fd, broker->fd, O_CLOEXEC) < 0 ? vb_broker_fail(errno, why, why_size, "dup3: %s", strerror(errno)) : 0;
		close(fd);
		broker->is_gone = rc != 0;
	}
	if (rc == 0)
		rc = adopt(broker, slot, why, why_size);
	if (rc == 0)
		ask_again(broker);
	return rc;
}

int vb_broker_get_slot(struct vb_broker *broker, uint32_t receive_buffer, struct vb_slot *slot, char *why,
	size_t why_size)
{
	/* A broker that dies at this moment is followed by another; a slot that was not received is nobody's. */
	for (unsigned attempt = 0;; attempt++) {
		struct vb_message request = { .kind = VB_MESSAGE_GET_SLOT, .receive_buffer = receive_buffer }, answer;
		int fd;
		int rc = ask(broker, &request, NULL, &answer, &fd, why, why_size);
		if (rc)
			return rc;
		if (answer.kind == VB_MESSAGE_SLOT && fd >= 0 && answer.slot > 0 && answer.slot <= VB_SLOT_MAX) {
			*slot = (struct vb_slot){ answer.slot, fd, answer.receive_buffer };
			return 0;
		}
		if (fd >= 0)
			close(fd);
		if (attempt)
			return vb_broker_fail(EPROTO, why, why_size, "the broker gave no socket");
	}
}

void vb_broker_release_slot(struct vb_broker *broker, const struct vb_slot *slot)
{
	const struct vb_message message = { .kind = VB_MESSAGE_RELEASE_SLOT, .slot = slot->number };
	silence(slot->fd); /* as long as anybody holds the socket it stays in the group */
	if (!broker->is_gone)
		vb_message_send(broker->fd, &message, NULL);
}

bool vb_broker_has_notices(const struct vb_broker *broker)
{
	return broker->notice_count > 0;
}

int vb_broker_fd(const struct vb_broker *broker)
{
	return broker->fd;
}

void vb_broker_next_notice(struct vb_broker *broker, struct vb_broker_notice *notice)
{
	memset(notice, 0, sizeof(*notice));
	while (!broker->notice_count && !broker->is_gone) {
		struct vb_message message;
		int fd;
		int rc = vb_message_receive(broker->fd, &message, &fd);
		if (rc == -EAGAIN)
			return;
		if (fd >= 0)
			close(fd);
		if (rc)
			lose(broker);
		else
			take_notice(broker, &message);
	}
	if (broker->notice_count) {
		*notice = broker->notices[0];
		memmove(broker->notices, broker->notices + 1, --broker->notice_count * sizeof(*notice));
	} else {
		notice->kind = VB_BROKER_GONE;
	}
}

int vb_broker_discover(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid)
{
	if (broker->question_count == MAX_QUESTIONS)
		return -EAGAIN;
	for (unsigned i = 0; i < broker->question_count; i++)
		if (vb_gid_equal(&broker->questions[i].dgid, dgid))
			return 0;
	broker->questions[broker->question_count].sgid = *sgid;
	broker->questions[broker->question_count].dgid = *dgid;
	broker->question_count++;
	if (!broker->is_gone) /* else it is asked after recovery */
		send_question(broker, broker->question_count - 1);
	return 0;
}

int vb_broker_send_mad(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid,
	const uint8_t mad[256], uint32_t length)
{
	struct vb_message answer, request = { .kind = VB_MESSAGE_SEND_MAD, .sgid = *sgid, .gid = *dgid,
		.length = length };
	int fd;
	memcpy(request.mad, mad, sizeof(request.mad));
	int rc = ask(broker, &request, NULL, &answer, &fd, NULL, 0);
	if (rc == 0 && fd >= 0)
		close(fd);
	return rc;
}

void vb_broker_post_mad(const struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid,
	const uint8_t mad[256])
{
	struct vb_message message = { .kind = VB_MESSAGE_POST_MAD, .sgid = *sgid, .gid = *dgid, .length = 256 };
	memcpy(message.mad, mad, sizeof(message.mad));
	send_patiently(broker, &message, NULL, POST_PATIENCE_MS);
}

/* ---- Ports ------------------------------------------------------------------------------------------------------ */

static struct vb_message about(uint16_t kind, const struct vb_binding *binding)
{
	return (struct vb_message){ .kind = kind, .gid = binding->address, .binding.number = binding->number,
		.binding.port_space = binding->port_space, .binding.port = binding->port,
		.binding.is_shared = binding->is_shared, .binding.is_ipv6_only = binding->is_ipv6_only };
}

int vb_broker_bind(struct vb_broker *broker, struct vb_binding *binding, char *why, size_t why_size)
{
	struct vb_message request = about(VB_MESSAGE_BIND, binding), answer;
	int fd;
	int rc = ask(broker, &request, NULL, &answer, &fd, why, why_size);
	if (rc == 0)
		binding->port = answer.binding.port;
	return rc;
}

int vb_broker_listen(struct vb_broker *broker, const struct vb_binding *binding, char *why, size_t why_size)
{
	struct vb_message request = about(VB_MESSAGE_LISTEN, binding), answer;
	int fd;
	return ask(broker, &request, NULL, &answer, &fd, why, why_size);
}

void vb_broker_unbind(struct vb_broker *broker, const struct vb_binding *binding)
{
	const struct vb_message message = about(VB_MESSAGE_UNBIND, binding);
	if (!broker->is_gone)
		vb_message_send(broker->fd, &message, NULL);
}

void vb_broker_bind_again(struct vb_broker *broker, const struct vb_binding *binding, bool is_listening)
{
	struct vb_message message = about(VB_MESSAGE_BIND, binding);
	vb_message_send(broker->fd, &message, NULL);
	message.kind = VB_MESSAGE_LISTEN;
	if (is_listening)
		vb_message_send(broker->fd, &message, NULL);
}
