/* What two neighbours say to each other by the socket that the broker gave them: a greeting each, what may be lent,
 * which segments there are, and bells.
 *
 *   HELLO      we are willing; where a number is to be read, of ours alone, if we are of one user
 *   PROOF      the number: the kernel lets us read the other's memory
 *   MEMORY     so this is where ours is
 *   VERDICT    from how many bytes on what is lent is pulled, or why none is: in place of PROOF, or after MEMORY
 *   SEGMENT, WITHDRAWN    what may be mapped, as it comes and goes
 *   PARTED     whoever says it lets go, and lives
 *
 * Holds: nothing goes by memory before a greeting has come; nobody hears an address of ours, but its riddle's, and has
 * a file of ours, and is lent anything, who has not said that riddle's number; a number is taken once. What comes in
 * another shape, or out of turn, ends it. */
#include "host/peers/calibration.h"
#include "host/peers/neighbours_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/user.h"

#define HEARD_AT_A_TIME 16

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum greeting_kind {
	GREETING_HELLO = 1,
	GREETING_VERDICT,
	GREETING_SEGMENT,
	GREETING_WITHDRAWN,
	GREETING_PROOF,
	GREETING_MEMORY,
	GREETING_PARTED,
};

struct greeting {
	uint8_t kind;
	uint8_t reason; /* HELLO: why not, or IS_USED; VERDICT: why nothing is pulled */
	uint16_t spare;
	union {
		uint32_t pid;     /* HELLO: his, where he is */
		uint32_t segment; /* SEGMENT, which comes with its file; WITHDRAWN */
	};
	uint32_t lend_from; /* VERDICT: from how many bytes on he pulls; 0: never */
	uint32_t spare_too;
	union {
		uint64_t riddle; /* HELLO: its address; 0: there is none. PROOF: its number */
		struct {
			uint64_t nonce, lives; /* MEMORY */
		};
		struct {
			uint64_t address, length; /* SEGMENT */
		};
	};
};
_Static_assert(sizeof(struct greeting) == 32, "no padding in a greeting");

static void say(int bell, const struct greeting *greeting)
{
	syscall(SYS_sendto, bell, greeting, sizeof(*greeting), MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

void vb_greeting_refuse(int bell, enum vb_local_reason reason)
{
	const struct greeting hello = { .kind = GREETING_HELLO, .reason = (uint8_t)reason };

	say(bell, &hello);
}

enum vb_local_reason vb_greeting_judge(int pidfd, bool is_same_user)
{
	const struct vb_users users = vb_users_read();

	if (!is_same_user)
		return VB_LOCAL_OTHER_USER;
	if (vb_pid_of(pidfd) == 0)
		return access("/proc/self", F_OK) < 0 ? VB_LOCAL_NO_PROC : VB_LOCAL_UNSEEN;
	return vb_user_of_process(&users, pidfd) == geteuid() ? VB_LOCAL_IS_USED : VB_LOCAL_OTHER_USER;
}

void vb_greeting_say(struct vb_link *link)
{
	const int yes = 1;
	uint64_t *riddle = &link->all->riddles[link->who->slot];
	struct greeting hello = { .kind = GREETING_HELLO, .pid = (uint32_t)getpid() };

	link->has_riddle = link->is_our_users;
	if (link->is_our_users) {
		*riddle = vb_host_random_seed();
		hello.riddle = (uintptr_t)riddle;
		/* its segments' files, which the broker has forbidden */
		setsockopt(link->bell, SOL_SOCKET, SO_PASSRIGHTS, &yes, sizeof(yes));
	}
	say(link->bell, &hello);
}

void vb_greeting_part(const struct vb_link *link)
{
	const struct greeting parted = { .kind = GREETING_PARTED };

	say(link->bell, &parted);
}

static void say_memory(const struct vb_link *link)
{
	const struct vb_lives *lives = link->all->driver->process->lives;
	const struct greeting memory = { .kind = GREETING_MEMORY, .nonce = lives->nonce, .lives = (uintptr_t)lives };

	say(link->bell, &memory);
}

static void say_verdict(const struct vb_link *link)
{
	enum vb_local_reason reason = link->who->pull_reason;
	const struct greeting verdict = { .kind = GREETING_VERDICT,
		.reason = (uint8_t)reason,
		.lend_from = reason == VB_LOCAL_IS_USED ? vb_pull_pays_from() : 0 };

	say(link->bell, &verdict);
}

/* A greeting with a descriptor, or none (-1). False: there is no room for it, and he is to be told once more. */
static bool say_with_file(int bell, const struct greeting *greeting, int file)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec io = { (void *)greeting, sizeof(*greeting) };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1 };

	if (file >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(file));
		memcpy(CMSG_DATA(rights), &file, sizeof(file));
	}
	return syscall(SYS_sendmsg, bell, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*greeting);
}

static bool say_segment(const struct vb_link *link, const struct vb_segment *segment, int file)
{
	const struct greeting greeting = {
		.kind = GREETING_SEGMENT, .segment = segment->id, .address = segment->address, .length = segment->length
	};

	return say_with_file(link->bell, &greeting, file);
}

static bool say_withdrawn(const struct vb_link *link, uint32_t id)
{
	const struct greeting greeting = { .kind = GREETING_WITHDRAWN, .segment = id };

	return say_with_file(link->bell, &greeting, -1);
}

/* To whom the kernel lets read us, as was proved, and as it would any of our user's. What the socket has no room for
 * is said with the next. */
void vb_greeting_tell_segments(struct vb_link *link)
{
	struct vb_segments *segments = link->all->driver->process->segments;
	unsigned count = 0;

	if (!link->reads_us || link->bell < 0 || !vb_segments_may_be_shared())
		return;
	pthread_mutex_lock(&segments->mutex);
	for (unsigned i = 0; i < VB_SEGMENTS; i++) {
		const struct vb_segment *said = &segments->places[i].said;
		if (link->told[i] != said->id && link->told[i] && say_withdrawn(link, link->told[i]))
			link->told[i] = 0;
		if (said->id && !link->told[i] && say_segment(link, said, segments->places[i].file))
			link->told[i] = said->id;
		count += link->told[i] != 0;
	}
	pthread_mutex_unlock(&segments->mutex);
	vb_neighbour_set_mapping(&link->engine, count > 1); /* the first has our lives alone */
}

void vb_neighbours_tell_segments(struct vb_driver *d)
{
	if (!d->neighbours)
		return;
	vb_list_for_each (node, &d->neighbours->links)
		vb_greeting_tell_segments(vb_container_of(node, struct vb_link, link));
}

/* ---- Hearing ---------------------------------------------------------------------------------------------------- */

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

/* By its word alone we could be sent to another's memory, which we may read and it may not: it is the process to which
 * we were introduced. Of another user nothing is read: its memory might keep us waiting. */
static enum vb_local_reason read_riddle(const struct vb_link *link, const struct greeting *hello, uint64_t *number)
{
	if (!link->is_our_users)
		return link->who->pull_reason;
	if (hello->riddle == 0 || (pid_t)hello->pid != vb_pid_of(link->pidfd))
		return VB_LOCAL_UNSEEN;
	return why_not_read(vb_pull_number((pid_t)hello->pid, hello->riddle, number));
}

static void answer_riddle(struct vb_link *link, const struct greeting *hello)
{
	struct greeting proof = { .kind = GREETING_PROOF };
	enum vb_local_reason reason = read_riddle(link, hello, &proof.riddle);

	link->has_answered = reason == VB_LOCAL_IS_USED;
	if (link->has_answered) {
		say(link->bell, &proof);
	} else {
		link->who->pull_reason = reason;
		say_verdict(link);
	}
}

static bool is_known_reason(uint8_t reason)
{
	return reason < VB_LOCAL_REASONS;
}

/* False: it is no neighbour. */
static bool take_hello(struct vb_link *link, const struct greeting *hello)
{
	struct vb_acquaintance *who = link->who;

	if (hello->reason != VB_LOCAL_IS_USED || link->is_greeted) {
		who->reason = hello->reason;
		return false;
	}
	who->pid = hello->pid;
	answer_riddle(link, hello);
	vb_link_greeted(link);
	return true;
}

/* Who guesses, or has read another process's memory, is shown nothing. */
static bool take_proof(struct vb_link *link, const struct greeting *proof)
{
	if (!link->has_riddle)
		return false;
	link->has_riddle = false;
	link->reads_us = proof->riddle == link->all->riddles[link->who->slot];
	if (!link->reads_us)
		return true;
	say_memory(link);
	vb_greeting_tell_segments(link);
	return true;
}

static bool take_memory(struct vb_link *link, const struct greeting *memory)
{
	struct vb_acquaintance *who = link->who;

	if (!link->has_answered)
		return false;
	link->has_answered = false;
	link->puller = (struct vb_puller){
		.pid = (pid_t)who->pid, .nonce = memory->nonce, .lives = memory->lives, .stages = vb_pull_is_slow_near()
	};
	who->pull_reason = why_not_read(vb_puller_try(&link->puller));
	vb_neighbour_set_pulling(&link->engine, who->pull_reason == VB_LOCAL_IS_USED ? vb_pull_pays_from() : 0);
	say_verdict(link);
	return true;
}

static void take_verdict(struct vb_link *link, const struct greeting *verdict)
{
	if (link->reads_us) /* else our addresses are not its business */
		vb_neighbour_set_lending(&link->engine, verdict->lend_from);
}

/* What cannot be mapped is pulled as all else. */
static void take_segment(struct vb_link *link, const struct greeting *greeting, int file)
{
	const struct vb_segment segment = { greeting->segment, greeting->address, greeting->length };

	if (link->who->pull_reason == VB_LOCAL_IS_USED)
		vb_mapped_take(&link->puller.mapped, &segment, file);
}

static bool take_greeting(struct vb_link *link, const struct greeting *greeting, int file)
{
	if (!is_known_reason(greeting->reason))
		return false;
	if (greeting->kind == GREETING_HELLO)
		return take_hello(link, greeting);
	if (!link->is_greeted)
		return false;
	switch (greeting->kind) {
	case GREETING_VERDICT:
		take_verdict(link, greeting);
		return true;
	case GREETING_PARTED:
		link->is_let_go = true;
		return false;
	case GREETING_PROOF:
		return take_proof(link, greeting);
	case GREETING_MEMORY:
		return take_memory(link, greeting);
	case GREETING_SEGMENT:
		take_segment(link, greeting, file);
		return true;
	case GREETING_WITHDRAWN:
		vb_mapped_drop(link->puller.mapped, greeting->segment);
		return true;
	default:
		return false;
	}
}

/* Has the next message of another user descriptors with it? Whoever reads it without taking them closes them, and to
 * close a socket that lingers takes as long as its sender likes (broker/undertaker.h; before Linux 6.16 nobody can
 * refuse them). False: there is no message, and one that comes after this look is not known to have none. */
static bool look(int bell, bool *has_descriptors)
{
	char byte;
	struct iovec io = { &byte, 1 };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1 };

	if (syscall(SYS_recvmsg, bell, &header, MSG_PEEK | MSG_DONTWAIT) < 0)
		return false;
	*has_descriptors = header.msg_flags & MSG_CTRUNC;
	return true;
}

static ssize_t hear(int bell, struct greeting *greeting)
{
	return syscall(SYS_recvfrom, bell, greeting, sizeof(*greeting), MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
}

/* And one descriptor; -1: none came. */
static ssize_t hear_with_file(int bell, struct greeting *greeting, int *file)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec io = { greeting, sizeof(*greeting) };
	struct msghdr header = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_LEN(sizeof(int))
	};
	ssize_t n = syscall(SYS_recvmsg, bell, &header, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *rights = n >= 0 ? CMSG_FIRSTHDR(&header) : NULL;

	*file = -1;
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(rights), sizeof(*file));
	return n;
}

/* Reads what another user's process has said last. False: descriptors are among it. A message without bytes reads as
 * the end does, but for its sender, which comes with every message. */
static bool throw_away_rest(int bell)
{
	const int yes = 1;
	struct greeting ignored;

	setsockopt(bell, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	for (;;) {
		union {
			char bytes[CMSG_SPACE(sizeof(struct ucred))]; /* no room for descriptors */
			struct cmsghdr align;
		} sender;
		struct iovec io = { &ignored, sizeof(ignored) };
		struct msghdr header = { .msg_iov = &io,
			.msg_iovlen = 1,
			.msg_control = sender.bytes,
			.msg_controllen = sizeof(sender.bytes) };
		const ssize_t n = syscall(SYS_recvmsg, bell, &header, MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && errno == ECONNRESET)
			continue; /* said once, in front of what it said */
		if (n < 0 || (n == 0 && header.msg_controllen == 0))
			return true;
		if (header.msg_flags & MSG_CTRUNC)
			return false;
		hear(bell, &ignored);
	}
}

/* A bell that has messages which nobody dares to throw away is closed by a thread that has nothing else to do. */
bool vb_greeting_end(int bell, bool is_our_users)
{
	shutdown(bell, SHUT_RDWR); /* nothing more comes */
	if (is_our_users || throw_away_rest(bell)) {
		syscall(SYS_close, bell);
		return true;
	}
	vb_log(VB_LOG_WARN, "a neighbour has sent descriptors, which nobody asked for");
	return false;
}

static ssize_t hear_next(const struct vb_link *link, struct greeting *greeting, int *file)
{
	if (link->is_our_users)
		return hear_with_file(link->bell, greeting, file);
	bool has_descriptors;
	*file = -1;
	if (!look(link->bell, &has_descriptors))
		return -1;
	return has_descriptors ? 0 : hear(link->bell, greeting);
}

/* False: it is his end. */
static bool hear_link(struct vb_link *link)
{
	struct greeting greeting;
	int file;

	for (unsigned i = 0; i < HEARD_AT_A_TIME; i++) {
		ssize_t n = hear_next(link, &greeting, &file);
		if (n < 0 && errno == ECONNRESET)
			continue; /* he left what we said unread; what he said comes next */
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		bool is_taken = n == sizeof(greeting) && take_greeting(link, &greeting, file);
		if (file >= 0)
			syscall(SYS_close, file); /* not cancelled: the mutex is held */
		if (is_taken)
			continue;
		if (n != 1)
			return false;
		if (!link->is_greeted)
			continue;
		vb_link_rouse(link);
		return true; /* most likely that was all, and to find out is a call */
	}
	return true;
}

void vb_neighbours_hear(struct vb_driver *d)
{
	struct vb_neighbours *all = d->neighbours;
	struct epoll_event events[HEARD_AT_A_TIME];

	if (!all)
		return;
	/* Not cancelled: the mutex is held. */
	int count = (int)syscall(SYS_epoll_pwait, all->epoll_fd, events, HEARD_AT_A_TIME, 0, NULL, 0);
	for (int i = 0; i < count; i++) {
		struct vb_acquaintance *who = all->by_slot[events[i].data.u32 % VB_NEIGHBOUR_SLOTS];
		bool is_pidfd = events[i].data.u32 / VB_NEIGHBOUR_SLOTS;
		if (who && who->link && (is_pidfd ? vb_driver_is_readable(who->link->pidfd) : !hear_link(who->link)))
			vb_link_end(who->link, vb_host_now());
	}
}
