/* Two processes of this network namespace, or two slots of one, are introduced to each other, so that they share
 * memory: each gets an end of a socket pair, the same memory, and the other's pidfd. The broker has no part in how they
 * use them.
 *
 * Holds: two are introduced if both asked, or if one asked and the other is open to all; and not while they share
 * memory already. Every question is answered: by the introduction, by ALONE, by AWAITED until the other asks too, or by
 * a refusal that says when to ask again. A waiting question takes two bits. A process that does not read gets few
 * introductions, because descriptors in flight count against the broker; further questions for it are refused.
 *
 * The asker is told last. So if the worker dies between the two messages, or cannot send the second, the asker was not
 * told and asks again. The other has a socket at end of file, since its other end is closed, and so it knows that the
 * introduction is void. A process takes a second introduction to the same slot if the first is void, and closes it
 * otherwise. Each receives both in the same order, so both keep the same one. This also happens after a worker's death,
 * when one of them asks about another address of the other, since the next worker does not know earlier
 * introductions. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/addresses.h"
#include "broker/worker_state.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define NAME               "verbena-shared"
#define UNHEARD_MOST       64 /* unread introductions of one client; fewer if there are few descriptors */
#define PAUSE_FIRST_MS     10 /* between two introductions of the same two, doubled each time */
#define PAUSE_MAX_MS       4000
#define PAUSE_FORGOTTEN_MS 10000
/* So that at most a fifth of the descriptors is in flight: 3 an introduction, to each of 254. */
#define FDS_A_PLACE 4096

/* ---- Who has met whom -------------------------------------------------------------------------------------------- */

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

static void note_introduction(struct worker *worker, uint8_t a, uint8_t b)
{
	assert(!has(worker->has_met, a, b) && !has(worker->has_met, b, a));
	note(worker->has_met, a, b, true);
	note(worker->has_met, b, a, true);
	note(worker->awaits, a, b, false);
	note(worker->awaits, b, a, false);
}

/* A process that leaves and returns at once, perhaps on purpose, costs the other a handshake each time; hence the
 * pause. */
static struct introduction_pause *pause_of(struct worker *worker, uint8_t a, uint8_t b)
{
	return a < b ? &worker->pauses[a][b] : &worker->pauses[b][a];
}

/* The client that uses the slot; -1: it has not connected yet, or is leaving. */
static int user_of(const struct worker *worker, uint8_t slot)
{
	const struct client_slot *one = &worker->registry->slots[slot];
	if (one->owner < 0 || one->user < 0 || worker->clients[one->user].leaves_at)
		return -1;
	assert(worker->registry->clients[one->user].is_used);
	return one->user;
}

/* The user of slot asked for other before. It is told to ask again, which is answered as its first question was. */
static void tell_wanted(struct worker *worker, uint8_t slot, uint8_t other)
{
	const int user = user_of(worker, slot);
	const struct vb_message wanted = { .kind = VB_MESSAGE_WANTED, .slot = slot, .introduction.slot = other };
	if (user >= 0 && has(worker->awaits, slot, other))
		worker_say(worker, (unsigned)user, &wanted, NULL);
}

/* Answers those who wait for this slot, since it is now free or another process's. */
static void tell_who_awaited(struct worker *worker, uint8_t slot)
{
	for (unsigned other = 1; other <= VB_SLOT_MAX; other++)
		tell_wanted(worker, (uint8_t)other, slot);
}

void worker_forget_introductions(struct worker *worker, uint8_t slot)
{
	tell_who_awaited(worker, slot);
	forget(worker->has_met, slot);
	forget(worker->awaits, slot);
	for (unsigned other = 0; other < REGISTRY_SLOTS; other++)
		*pause_of(worker, slot, (uint8_t)other) = (struct introduction_pause){ 0 };
	worker->is_open[slot] = false;
}

/* ---- What they get ----------------------------------------------------------------------------------------------- */

struct introduction {
	int ends[2], memory;
	bool is_of_one_user;
};

static void end_introduction(const struct introduction *introduction)
{
	assert(introduction->ends[0] >= 0 && introduction->ends[1] >= 0);
	close(introduction->ends[0]);
	close(introduction->ends[1]);
	if (introduction->memory >= 0)
		close(introduction->memory);
}

/* Shared memory of a sealed size, so that neither can shrink it under the other. */
static int create_memory(void)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, VB_INTRODUCTION_BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

/* Neither may pass the other descriptors, which can be slow to close, before the other allows it. Kernels before 6.16
 * cannot forbid it. */
static int begin_introduction(struct introduction *introduction)
{
	const int none = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, introduction->ends))
		return -errno;
	for (unsigned i = 0; i < 2; i++)
		setsockopt(introduction->ends[i], SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	introduction->memory = create_memory();
	if (introduction->memory >= 0)
		return 0;
	end_introduction(introduction);
	return introduction->memory;
}

/* ---- Introducing ------------------------------------------------------------------------------------------------- */

static unsigned most_unheard(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur < 2 * FDS_A_PLACE)
		return 1;
	return files.rlim_cur / FDS_A_PLACE < UNHEARD_MOST ? (unsigned)(files.rlim_cur / FDS_A_PLACE) : UNHEARD_MOST;
}

/* True if the client reads its messages and none waits for it. */
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

/* Introduces the user of `other` to the user of slot. */
static int tell(struct worker *worker, const struct introduction *introduction, uint8_t slot, uint8_t other)
{
	assert(introduction->memory >= 0);
	assert(worker->registry->slots[slot].user >= 0);
	const unsigned client = (unsigned)worker->registry->slots[slot].user;
	const struct client *who = &worker->registry->clients[worker->registry->slots[other].user];
	const uint8_t side = slot > other;
	const int fds[VB_MESSAGE_FDS] = { introduction->ends[side], introduction->memory, who->pidfd };
	const struct vb_message message = { .kind = VB_MESSAGE_INTRODUCTION,
		.slot = slot,
		.introduction = { .slot = other, .side = side, .is_same_user = introduction->is_of_one_user } };
	int rc = vb_pass_send(worker->registry->clients[client].connection, &message, sizeof(message), fds,
		who->pidfd >= 0 ? 3 : 2, MSG_DONTWAIT);
	if (rc == 0)
		worker->clients[client].unheard++;
	return rc;
}

static bool is_paused(struct worker *worker, uint8_t a, uint8_t b)
{
	const struct introduction_pause *pause = pause_of(worker, a, b);
	return pause->ms && (uint32_t)vb_clock_ms() - pause->since < pause->ms;
}

static void begin_pause(struct worker *worker, uint8_t a, uint8_t b)
{
	struct introduction_pause *pause = pause_of(worker, a, b);
	const uint32_t now = (uint32_t)vb_clock_ms();
	if (now - pause->since >= PAUSE_FORGOTTEN_MS || pause->ms == 0)
		pause->ms = PAUSE_FIRST_MS;
	else
		pause->ms = pause->ms * 2 < PAUSE_MAX_MS ? pause->ms * 2 : PAUSE_MAX_MS;
	assert(pause->ms >= PAUSE_FIRST_MS && pause->ms <= PAUSE_MAX_MS);
	pause->since = now;
}

/* 0; -EAGAIN: not now; another -errno: sockets or memory could not be made. */
static int introduce(struct worker *worker, uint8_t asker, uint8_t other)
{
	struct introduction introduction;
	assert(asker != other);
	if (is_paused(worker, asker, other) || !is_listening(worker, (unsigned)worker->registry->slots[asker].user) ||
		!is_listening(worker, (unsigned)worker->registry->slots[other].user))
		return -EAGAIN;
	int rc = begin_introduction(&introduction);
	if (rc)
		return rc == -EAGAIN ? -ENOMEM : rc;
	introduction.is_of_one_user = worker_are_of_one_user(
		worker, (unsigned)worker->registry->slots[asker].user, (unsigned)worker->registry->slots[other].user);
	bool is_told = tell(worker, &introduction, other, asker) == 0;
	if (is_told) {
		begin_pause(worker, asker, other); /* even if the asker cannot be told */
		is_told = tell(worker, &introduction, asker, other) == 0;
	}
	end_introduction(&introduction);
	if (is_told)
		note_introduction(worker, asker, other);
	return is_told ? 0 : -EAGAIN;
}

static bool may_meet(const struct worker *worker, unsigned client, const struct vb_message *message)
{
	int user = user_of(worker, message->introduction.slot);
	return user_of(worker, message->slot) == (int)client && user >= 0 &&
	       message->introduction.slot != message->slot && addresses_interface(&message->gid, vb_clock_ms());
}

/* True while clients that survived the last broker may still announce their slots. */
static bool may_still_come(const struct worker *worker, const struct vb_message *message)
{
	return worker_is_before(worker->knows_ports_at) &&
	       (user_of(worker, message->slot) < 0 || user_of(worker, message->introduction.slot) < 0) &&
	       addresses_interface(&message->gid, vb_clock_ms());
}

/* True if the user of `one` would take an introduction to slot. */
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
		.introduction.slot = message->introduction.slot };
	worker_say(worker, client, &said, NULL);
}

void worker_meet(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const uint8_t slot = message->slot, other = message->introduction.slot;
	int rc = -ENOENT;
	if (may_meet(worker, client, message)) {
		note(worker->awaits, slot, other, !has(worker->has_met, slot, other));
		rc = !wants(worker, slot, other)  ? -EALREADY
		     : wants(worker, other, slot) ? introduce(worker, slot, other)
						  : -EINPROGRESS;
	} else if (may_still_come(worker, message)) {
		rc = -EAGAIN;
	}
	assert(rc != -EINPROGRESS || has(worker->awaits, slot, other));
	if (rc == -EAGAIN) { /* the asker asks again by itself */
		note(worker->awaits, slot, other, false);
		worker_refuse(worker, client, message->request, -rc, "introduction slot %u: %s", other, strerror(-rc));
	} else if (rc) {
		answer(worker, client, message, rc == -EINPROGRESS ? VB_MESSAGE_AWAITED : VB_MESSAGE_ALONE);
	}
}

/* Tells those who wait for slot. Of many that ask again at once, some are put off. */
static void tell_who_awaits(struct worker *worker, uint8_t slot, uint8_t other)
{
	assert(has(worker->awaits, slot, other));
	if (wants(worker, other, slot))
		tell_wanted(worker, slot, other);
	note(worker->awaits, slot, other, false);
}

void worker_open(struct worker *worker, unsigned client, const struct vb_message *message)
{
	if (user_of(worker, message->slot) != (int)client)
		return;
	worker->is_open[message->slot] = message->introduction.is_open;
	for (unsigned slot = 1; message->introduction.is_open && slot <= VB_SLOT_MAX; slot++)
		if (has(worker->awaits, (uint8_t)slot, message->slot))
			tell_who_awaits(worker, (uint8_t)slot, message->slot);
}

void worker_let_part(struct worker *worker, unsigned client, const struct vb_message *message)
{
	if (user_of(worker, message->slot) != (int)client)
		return;
	note(worker->has_met, message->slot, message->introduction.slot, false);
	if (wants(worker, message->slot, message->introduction.slot) &&
		has(worker->awaits, message->introduction.slot, message->slot))
		tell_who_awaits(worker, message->introduction.slot, message->slot);
}
