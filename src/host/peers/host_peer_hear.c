/* The messages that come by a local peer's socket: bells, what host_peer_messages.c lists, and its end. */
#include "base/invariant.h"
#include "host/peers/calibration.h"
#include "host/peers/host_peer.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/passing.h"
#include "os/user.h"

#define HEARD_AT_A_TIME 16

/* The outcome of a message, or of all that there were. */
enum heard {
	HEARD,
	HEARD_END, /* it ended, refused, or broke the rules */
	HEARD_PARTED,
};

static enum vb_local_reason why_not_read(int error)
{
	switch (error) {
	case 0:
		return VB_LOCAL_IS_USED;
	case -ESRCH:
	case -EFAULT:
		return VB_LOCAL_UNSEEN;
	default:
		return VB_LOCAL_FORBIDDEN;
	}
}

/* By its word alone we could be sent to another's memory, which we may read and it may not: it has to be the process
 * that was introduced. Of another user nothing is read: its memory might keep us waiting. */
static enum vb_local_reason read_challenge(
	const struct vb_host_peer *peer, const struct vb_host_peer_message *hello, uint64_t *number)
{
	if (!peer->is_our_users)
		return peer->pull_reason;
	if (hello->challenge == 0 || (pid_t)hello->pid != vb_pid_of(peer->pidfd))
		return VB_LOCAL_UNSEEN;
	return why_not_read(vb_pull_number((pid_t)hello->pid, hello->challenge, number));
}

static void answer_challenge(struct vb_host_peer *peer, const struct vb_host_peer_message *hello)
{
	uint64_t number = 0;
	enum vb_local_reason reason = read_challenge(peer, hello, &number);

	assert(!peer->awaits_memory);
	peer->awaits_memory = reason == VB_LOCAL_IS_USED;
	if (peer->awaits_memory) {
		vb_host_peer_say_proof(peer, number);
	} else {
		peer->pull_reason = reason;
		vb_host_peer_say_verdict(peer);
	}
}

static bool is_known_reason(uint8_t reason)
{
	return reason < VB_LOCAL_REASONS;
}

/* ---- Messages, by kind: false where they end the peer ------------------------------------------------------------ */

static bool take_hello(struct vb_host_peer *peer, const struct vb_host_peer_message *hello)
{
	if (hello->reason != VB_LOCAL_IS_USED || peer->state != VB_PEER_INTRODUCED) {
		peer->reason = hello->reason;
		return false;
	}
	peer->pid = hello->pid;
	answer_challenge(peer, hello);
	vb_host_peer_ready(peer);
	assert(peer->state == VB_PEER_READY);
	return true;
}

/* A peer that guesses, or has read another process's memory, is shown nothing. */
static bool take_proof(struct vb_host_peer *peer, const struct vb_host_peer_message *proof)
{
	if (peer->proof != VB_PROOF_CHALLENGED)
		return false;
	peer->proof = VB_PROOF_NONE;
	if (proof->challenge != peer->all->challenges[peer->slot])
		return true;
	assert(peer->is_our_users);
	peer->proof = VB_PROOF_GIVEN;
	vb_host_peer_say_memory(peer);
	vb_host_peer_say_segments(peer);
	return true;
}

static bool take_memory(struct vb_host_peer *peer, const struct vb_host_peer_message *memory)
{
	if (!peer->awaits_memory)
		return false;
	assert(peer->is_our_users);
	peer->awaits_memory = false;
	peer->puller = (struct vb_puller){ .pid = (pid_t)peer->pid,
		.nonce = memory->nonce,
		.epochs = memory->epochs,
		.stages = vb_pull_is_slow_near() };
	peer->pull_reason = why_not_read(vb_puller_try(&peer->puller));
	vb_local_peer_set_pulling(&peer->engine, peer->pull_reason == VB_LOCAL_IS_USED ? vb_pull_pays_from() : 0);
	vb_host_peer_say_verdict(peer);
	return true;
}

static void take_verdict(struct vb_host_peer *peer, const struct vb_host_peer_message *verdict)
{
	if (peer->proof == VB_PROOF_GIVEN) /* else our addresses are not its business */
		vb_local_peer_set_lending(&peer->engine, verdict->lend_from);
}

/* Memory that cannot be mapped is pulled as all other memory. */
static void take_segment(struct vb_host_peer *peer, const struct vb_host_peer_message *message, int file)
{
	const struct vb_segment segment = { message->segment, message->address, message->length };

	if (peer->pull_reason == VB_LOCAL_IS_USED)
		vb_mapped_take(&peer->puller.mapped, &segment, file);
}

static enum heard heard_if(bool is_taken)
{
	return is_taken ? HEARD : HEARD_END;
}

static enum heard take_message(struct vb_host_peer *peer, const struct vb_host_peer_message *message, int file)
{
	if (!is_known_reason(message->reason))
		return HEARD_END;
	if (message->kind == VB_PEER_HELLO)
		return heard_if(take_hello(peer, message));
	if (peer->state != VB_PEER_READY)
		return HEARD_END;
	switch (message->kind) {
	case VB_PEER_VERDICT:
		take_verdict(peer, message);
		return HEARD;
	case VB_PEER_PARTED:
		return HEARD_PARTED;
	case VB_PEER_PROOF:
		return heard_if(take_proof(peer, message));
	case VB_PEER_MEMORY:
		return heard_if(take_memory(peer, message));
	case VB_PEER_SEGMENT:
		take_segment(peer, message, file);
		return HEARD;
	case VB_PEER_WITHDRAWN:
		vb_mapped_drop(peer->puller.mapped, message->segment);
		return HEARD;
	default:
		return HEARD_END;
	}
}

/* ---- The socket -------------------------------------------------------------------------------------------------- */

/* Has the next message of another user descriptors with it? To read it without taking them closes them, and to close a
 * socket that lingers takes as long as its sender likes (broker/closer.h; before Linux 6.16 no process can
 * refuse them). -errno: there is no message, and one that comes after this look is not known to have none. */
static int look(int bell, bool *has_descriptors)
{
	char byte;
	struct iovec io = { &byte, 1 };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1 };

	if (syscall(SYS_recvmsg, bell, &header, MSG_PEEK | MSG_DONTWAIT) < 0)
		return -errno;
	*has_descriptors = header.msg_flags & MSG_CTRUNC;
	return 0;
}

/* A message's length, or -errno. */
static ssize_t hear(int bell, struct vb_host_peer_message *message)
{
	const ssize_t n = syscall(SYS_recvfrom, bell, message, sizeof(*message), MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);

	return n < 0 ? -errno : n;
}

/* And one descriptor; -1: none came, or there was no room for it here. */
static ssize_t hear_with_file(int bell, struct vb_host_peer_message *message, int *file)
{
	enum vb_passed passed;
	unsigned count;
	const ssize_t n = vb_pass_receive_any(bell, message, sizeof(*message), file, 1, &count, &passed, MSG_DONTWAIT);

	if (count == 0)
		*file = -1;
	return n;
}

static ssize_t hear_next(const struct vb_host_peer *peer, struct vb_host_peer_message *message, int *file)
{
	if (peer->is_our_users)
		return hear_with_file(peer->bell, message, file);
	bool has_descriptors = false;
	*file = -1;
	const int rc = look(peer->bell, &has_descriptors);
	if (rc < 0)
		return rc;
	return has_descriptors ? 0 : hear(peer->bell, message);
}

static enum heard hear_socket(struct vb_host_peer *peer)
{
	struct vb_host_peer_message message;
	int file;

	for (unsigned i = 0; i < HEARD_AT_A_TIME; i++) {
		ssize_t n = hear_next(peer, &message, &file);
		if (n == -ECONNRESET)
			continue; /* the peer left what we said unread; what it said comes next */
		if (n < 0)
			return heard_if(n == -EAGAIN || n == -EINTR);
		enum heard heard = n == sizeof(message) ? take_message(peer, &message, file) : HEARD_END;
		vb_host_peer_descriptor_close(file);
		if (heard == HEARD)
			continue;
		if (n != 1)
			return heard;
		if (peer->state != VB_PEER_READY)
			continue;
		vb_host_peer_rouse(peer);
		return HEARD; /* most likely that was all, and to find out is a call */
	}
	return HEARD;
}

/* Its process has ended; the socket alone is not looked at. */
static enum heard hear_process(const struct vb_host_peer *peer)
{
	return heard_if(!vb_host_lane_is_readable(peer->pidfd));
}

static void hear_peer(struct vb_host_peer *peer, bool is_pidfd)
{
	const enum heard heard = is_pidfd ? hear_process(peer) : hear_socket(peer);

	if (heard == HEARD_PARTED)
		vb_host_peer_parted(peer, vb_host_now());
	else if (heard == HEARD_END)
		vb_host_peer_end(peer, vb_host_now());
}

/* The event before may have ended the peer. */
static bool listens(const struct vb_host_peer *peer)
{
	return peer && peer->bell >= 0;
}

void vb_host_peers_hear(struct vb_host_lane *d)
{
	struct vb_host_peers *all = d->peers;
	struct epoll_event events[HEARD_AT_A_TIME];

	if (!all)
		return;
	/* Not cancelled: the mutex is held. */
	int count = (int)syscall(SYS_epoll_pwait, all->epoll_fd, events, HEARD_AT_A_TIME, 0, NULL, 0);
	for (int i = 0; i < count; i++) {
		struct vb_host_peer *peer = all->by_slot[events[i].data.u32 % VB_HOST_PEER_SLOTS];
		if (listens(peer))
			hear_peer(peer, events[i].data.u32 / VB_HOST_PEER_SLOTS);
	}
}
