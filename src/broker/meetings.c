/* Two processes of this network namespace, or two slots of one, are introduced to each other, so that they share
 * memory: each gets an end of a pair of sockets, the same memory, and the other's pidfd. What they make of it is
 * theirs alone.
 *
 * Holds: they meet who want each other: both have asked, or one has and the other is open to all. Neither is
 * introduced to one with whom it shares memory, and has not let that go. Every question is answered: by the meeting,
 * by ALONE, by AWAITED until the other wants it too, or by a refusal when it is to be asked again. Of a question that
 * waits two bits are kept. Who does not read is introduced to a few only, for descriptors that are under way count
 * against the broker; whoever asks for him is refused.
 *
 * The asker is told last. So when the worker dies between the two, or cannot send the second, it is the asker that was
 * not told, and he asks again. The other has a socket whose end is reached, for nobody holds its other end, and so he
 * knows the introduction for void. A process takes a second introduction to the same slot when the first is void, and
 * closes it otherwise: each hears both in the same order, so both keep the same one. That happens after a worker's
 * death, too, when one of them asks about another address of the other: the next worker knows of no meetings. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "broker/addresses.h"
#include "broker/worker_state.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define NAME               "verbena-meeting"
#define UNHEARD_MOST       64 /* introductions under way to one client; fewer where there are few descriptors */
#define PAUSE_FIRST_MS     10 /* between two introductions of the same two, and twice that between the next */
#define PAUSE_MAX_MS       4000
#define PAUSE_FORGOTTEN_MS 10000
#define FDS_A_PLACE        4096 /* a fifth of the descriptors is under way at most, 3 an introduction to each of 254 */

/* ---- Who has met whom ----------------------------------------------------------------------------------------- */

typedef uint64_t table[REGISTRY_SLOTS][REGISTRY_SLOTS / 64];

static bool has(const table of, uint8_t a, uint8_t b)
{
	return of[a][b / 64] >> b % 64 & 1;
}

static void note(table of, uint8_t a, uint8_t b, bool is_so)
{
	of[a][b / 64] = (of[a][b / 64] & ~(1ull << b % 64)) | (uint64_t)is_so << b % 64;
}

static void forget(table of, uint8_t slot)
{
	memset(of[slot], 0, sizeof(of[slot]));
	for (unsigned other = 0; other < REGISTRY_SLOTS; other++)
		note(of, (uint8_t)other, slot, false);
}

static void note_meeting(struct worker *worker, uint8_t a, uint8_t b)
{
	note(worker->has_met, a, b, true);
	note(worker->has_met, b, a, true);
	note(worker->awaits, a, b, false);
	note(worker->awaits, b, a, false);
}

/* Who parts and meets again at once, be it by ill will, costs the other a greeting each time. */
static struct meeting_pause *pause_of(struct worker *worker, uint8_t a, uint8_t b)
{
	return a < b ? &worker->pauses[a][b] : &worker->pauses[b][a];
}

/* The process that uses the slot; -1: it has not come, or is leaving. */
static int user_of(const struct worker *worker, uint8_t slot)
{
	const struct client_slot *one = &worker->registry->slots[slot];
	if (one->owner < 0 || one->user < 0 || worker->clients[one->user].leaves_at)
		return -1;
	return one->user;
}

/* The user of slot has asked for other: it asks again, which is answered as its first question. */
static void tell_wanted(struct worker *worker, uint8_t slot, uint8_t other)
{
	const int user = user_of(worker, slot);
	const struct vb_message wanted = { .kind = VB_MESSAGE_WANTED, .slot = slot, .meeting.slot = other };
	if (user >= 0 && has(worker->awaits, slot, other))
		worker_say(worker, (unsigned)user, &wanted, NULL);
}

/* Their questions would find nobody, or somebody else. */
static void tell_who_awaited(struct worker *worker, uint8_t slot)
{
	for (unsigned other = 1; other <= VB_SLOT_MAX; other++)
		tell_wanted(worker, (uint8_t)other, slot);
}

void worker_forget_meetings(struct worker *worker, uint8_t slot)
{
	tell_who_awaited(worker, slot);
	forget(worker->has_met, slot);
	forget(worker->awaits, slot);
	for (unsigned other = 0; other < REGISTRY_SLOTS; other++)
		*pause_of(worker, slot, (uint8_t)other) = (struct meeting_pause){ 0 };
	worker->is_open[slot] = false;
}

/* ---- What they get -------------------------------------------------------------------------------------------- */

struct meeting {
	int ends[2], memory;
	bool is_of_one_user;
};

static void end_meeting(const struct meeting *meeting)
{
	close(meeting->ends[0]);
	close(meeting->ends[1]);
	if (meeting->memory >= 0)
		close(meeting->memory);
}

/* Of a size that neither of them can change under the other's feet. */
static int create_memory(void)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, VB_MEETING_BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

/* Neither passes the other descriptors, which may be slow to close, before that one allows it; kernels before 6.16
 * cannot forbid it. */
static int begin_meeting(struct meeting *meeting)
{
	const int none = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, meeting->ends))
		return -errno;
	for (unsigned i = 0; i < 2; i++)
		setsockopt(meeting->ends[i], SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	meeting->memory = create_memory();
	if (meeting->memory >= 0)
		return 0;
	end_meeting(meeting);
	return meeting->memory;
}

/* ---- Introducing ---------------------------------------------------------------------------------------------- */

static unsigned most_unheard(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur < 2 * FDS_A_PLACE)
		return 1;
	return files.rlim_cur / FDS_A_PLACE < UNHEARD_MOST ? (unsigned)(files.rlim_cur / FDS_A_PLACE) : UNHEARD_MOST;
}

/* It reads what it is sent, and has been told all that it is to know before. */
static bool is_listening(struct worker *worker, unsigned client)
{
	struct client_state *state = &worker->clients[client];
	int unread = 0;
	if (backlog_is_waiting(&state->backlog))
		return false;
	if (state->unheard && ioctl(worker->registry->clients[client].connection, SIOCOUTQ, &unread) == 0 &&
		unread == 0)
		state->unheard = 0;
	return state->unheard == 0 || state->unheard < most_unheard();
}

/* The user of slot hears of the user of other. */
static int tell(struct worker *worker, const struct meeting *meeting, uint8_t slot, uint8_t other)
{
	const unsigned client = (unsigned)worker->registry->slots[slot].user;
	const struct client *who = &worker->registry->clients[worker->registry->slots[other].user];
	const uint8_t side = slot > other;
	const int fds[VB_MESSAGE_FDS] = { meeting->ends[side], meeting->memory, who->pidfd };
	const struct vb_message message = { .kind = VB_MESSAGE_MEETING,
		.slot = slot,
		.meeting = { .slot = other, .side = side, .is_same_user = meeting->is_of_one_user } };
	int rc = vb_send_with_fds(worker->registry->clients[client].connection, &message, sizeof(message), fds,
		who->pidfd >= 0 ? 3 : 2, MSG_DONTWAIT);
	if (rc == 0)
		worker->clients[client].unheard++;
	return rc;
}

static bool is_paused(struct worker *worker, uint8_t a, uint8_t b)
{
	const struct meeting_pause *pause = pause_of(worker, a, b);
	return pause->ms && (uint32_t)worker_now_ms() - pause->since < pause->ms;
}

static void begin_pause(struct worker *worker, uint8_t a, uint8_t b)
{
	struct meeting_pause *pause = pause_of(worker, a, b);
	const uint32_t now = (uint32_t)worker_now_ms();
	if (now - pause->since >= PAUSE_FORGOTTEN_MS || pause->ms == 0)
		pause->ms = PAUSE_FIRST_MS;
	else
		pause->ms = pause->ms * 2 < PAUSE_MAX_MS ? pause->ms * 2 : PAUSE_MAX_MS;
	pause->since = now;
}

/* 0; -EAGAIN: not now; another -errno: there is nothing to meet by. */
static int introduce(struct worker *worker, uint8_t asker, uint8_t other)
{
	struct meeting meeting;
	if (is_paused(worker, asker, other) || !is_listening(worker, (unsigned)worker->registry->slots[asker].user) ||
		!is_listening(worker, (unsigned)worker->registry->slots[other].user))
		return -EAGAIN;
	int rc = begin_meeting(&meeting);
	if (rc)
		return rc == -EAGAIN ? -ENOMEM : rc;
	meeting.is_of_one_user = worker_are_of_one_user(
		worker, (unsigned)worker->registry->slots[asker].user, (unsigned)worker->registry->slots[other].user);
	bool is_told = tell(worker, &meeting, other, asker) == 0;
	if (is_told) {
		begin_pause(worker, asker, other); /* though the asker may not hear of it */
		is_told = tell(worker, &meeting, asker, other) == 0;
	}
	end_meeting(&meeting);
	if (is_told)
		note_meeting(worker, asker, other);
	return is_told ? 0 : -EAGAIN;
}

static bool may_meet(const struct worker *worker, unsigned client, const struct vb_message *message)
{
	int user = user_of(worker, message->meeting.slot);
	return user_of(worker, message->slot) == (int)client && user >= 0 && message->meeting.slot != message->slot &&
	       addresses_interface(&message->gid, worker_now_ms());
}

/* Those who lived through the last broker's death say one after the other what they hold. */
static bool may_still_come(const struct worker *worker, const struct vb_message *message)
{
	return worker_now_ms() < worker->knows_ports_at &&
	       (user_of(worker, message->slot) < 0 || user_of(worker, message->meeting.slot) < 0) &&
	       addresses_interface(&message->gid, worker_now_ms());
}

/* It would take an introduction to slot. */
static bool wants(const struct worker *worker, uint8_t one, uint8_t slot)
{
	return !has(worker->has_met, one, slot) && (worker->is_open[one] || has(worker->awaits, one, slot));
}

static void answer(struct worker *worker, unsigned client, const struct vb_message *message, uint16_t kind)
{
	const struct vb_message said = { .kind = kind,
		.request = message->request,
		.slot = message->slot,
		.gid = message->gid,
		.meeting.slot = message->meeting.slot };
	worker_say(worker, client, &said, NULL);
}

void worker_meet(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const uint8_t slot = message->slot, other = message->meeting.slot;
	int rc = -ENOENT;
	if (may_meet(worker, client, message)) {
		note(worker->awaits, slot, other, !has(worker->has_met, slot, other));
		rc = !wants(worker, slot, other)  ? -EALREADY
		     : wants(worker, other, slot) ? introduce(worker, slot, other)
						  : -EINPROGRESS;
	} else if (may_still_come(worker, message)) {
		rc = -EAGAIN;
	}
	if (rc == -EAGAIN) { /* it asks again by itself, and is not to be told to */
		note(worker->awaits, slot, other, false);
		worker_refuse(worker, client, message->request, -rc, "meeting slot %u: %s", other, strerror(-rc));
	} else if (rc) {
		answer(worker, client, message, rc == -EINPROGRESS ? VB_MESSAGE_AWAITED : VB_MESSAGE_ALONE);
	}
}

/* Of many who ask again at once some are put off. */
static void tell_who_awaits(struct worker *worker, uint8_t slot, uint8_t other)
{
	if (wants(worker, other, slot))
		tell_wanted(worker, slot, other);
	note(worker->awaits, slot, other, false);
}

void worker_open(struct worker *worker, unsigned client, const struct vb_message *message)
{
	if (user_of(worker, message->slot) != (int)client)
		return;
	worker->is_open[message->slot] = message->meeting.is_open;
	for (unsigned slot = 1; message->meeting.is_open && slot <= VB_SLOT_MAX; slot++)
		if (has(worker->awaits, (uint8_t)slot, message->slot))
			tell_who_awaits(worker, (uint8_t)slot, message->slot);
}

void worker_let_part(struct worker *worker, unsigned client, const struct vb_message *message)
{
	if (user_of(worker, message->slot) != (int)client)
		return;
	note(worker->has_met, message->slot, message->meeting.slot, false);
	if (wants(worker, message->slot, message->meeting.slot) &&
		has(worker->awaits, message->meeting.slot, message->slot))
		tell_who_awaits(worker, message->meeting.slot, message->slot);
}
