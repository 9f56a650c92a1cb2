/* Somebody who may be a local peer, played by the test: he is introduced as by the broker, and says and does what the
 * test likes. His memory is this process's. */
#ifndef VB_TEST_HOST_PLAYED_PEER_H
#define VB_TEST_HOST_PLAYED_PEER_H

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../unit.h"
#include "host/peers/host_peer.h"
#include "local/parts.h"

enum { SAYS_HELLO = 1, SAYS_VERDICT, SAYS_SEGMENT, SAYS_WITHDRAWN, SAYS_PROOF, SAYS_MEMORY, SAYS_PARTED };

/* As it goes by the socket. */
struct saying {
	uint8_t kind, reason;
	uint16_t spare;
	uint32_t pid, lend_from, spare_too;
	union {
		uint64_t riddle; /* of HELLO its address, of PROOF its number */
		uint64_t nonce;
	};
	uint64_t epochs;
};

struct played_peer {
	uint8_t slot;
	int bell, pidfd;
	struct vb_shm *shm;
	int lent_bell; /* the other end, as a child may have it that nobody knows of; -1 */
};

static inline void introduce(
	struct vb_device *device, struct played_peer *who, uint8_t slot, bool is_same_user, int pidfd)
{
	int ends[2], memory = memfd_create("played_peer", MFD_CLOEXEC);
	uint8_t own = vb_device_host_lane(device)->slot.number;

	assert_int_equal(ftruncate(memory, (off_t)vb_shm_bytes()), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	*who = (struct played_peer){ .slot = slot, .bell = ends[1], .pidfd = pidfd, .lent_bell = -1 };
	assert_int_equal(vb_shm_open(memory, slot > own, &who->shm), 0);
	const struct vb_broker_notice notice = { .kind = VB_BROKER_INTRODUCTION,
		.own_slot = own,
		.slot = slot,
		.side = own > slot,
		.is_same_user = is_same_user,
		.socket = ends[0],
		.memory = memory,
		.pidfd = pidfd };
	vb_host_peers_meet(device->process, &notice);
}

static const uint64_t played_peers_riddle = 0x1234567890abcdef;

static inline struct saying hello_of(const struct vb_device *device)
{
	return (struct saying){
		.kind = SAYS_HELLO, .pid = (uint32_t)getpid(), .riddle = (uintptr_t)&played_peers_riddle
	};
}

/* It has ours for its own. */
static inline struct saying memory_of(const struct vb_device *device)
{
	const struct vb_epochs *epochs = device->process->epochs;

	return (struct saying){ .kind = SAYS_MEMORY, .nonce = epochs->nonce, .epochs = (uintptr_t)epochs };
}

static inline void says(const struct played_peer *who, const struct saying *saying, size_t length)
{
	assert_int_equal(send(who->bell, saying, length, MSG_NOSIGNAL), length);
}

static inline void part(struct played_peer *who)
{
	close(who->bell);
	vb_shm_close(who->shm);
}

/* What was said to him: its length, 0 for the end, -errno. */
static inline int hears(const struct played_peer *who, struct saying *saying)
{
	ssize_t n = recv(who->bell, saying, sizeof(*saying), MSG_DONTWAIT);

	return n < 0 ? -errno : (int)n;
}

/* One who is willing, of this user, from whom may be pulled. */
static inline void meet(struct vb_device *device, struct played_peer *who, uint8_t slot)
{
	const struct saying hello = hello_of(device), memory = memory_of(device);
	struct saying said = { 0 };

	introduce(device, who, slot, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	says(who, &hello, sizeof(hello));
	vb_device_drive(device, VB_ALL_LANES);
	while (said.kind != SAYS_PROOF && hears(who, &said) > 0)
		;
	if (said.kind == SAYS_PROOF)
		says(who, &memory, sizeof(memory));
	vb_device_drive(device, VB_ALL_LANES);
}

static inline bool has_been_left(const struct played_peer *who)
{
	struct saying ignored;
	int n;

	while ((n = hears(who, &ignored)) > 0)
		;
	return n == 0 || n == -ECONNRESET;
}

/* As his lane would: true, he has rung. */
static inline bool wakes(const struct played_peer *who)
{
	if (!vb_shm_must_wake(who->shm))
		return false;
	assert_true(
		send(who->bell, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN); /* so many are unheard */
	return true;
}

static inline bool asks(const struct played_peer *who, const struct vb_descriptor *descriptors, unsigned count)
{
	struct vb_local_room room;

	for (unsigned i = 0; i < count; i++) {
		vb_shm_room(who->shm, VB_SHM_ASKING, &room);
		assert_true(room.descriptor_max > 0);
		room.descriptors[0] = descriptors[i];
		vb_local_add(&room);
		vb_shm_publish(who->shm, VB_SHM_ASKING, &room);
	}
	return wakes(who);
}

/* How many answers of that kind there are; all are taken. */
static inline unsigned takes_answers(const struct played_peer *who, enum vb_answer_kind kind)
{
	struct vb_answer answers[VB_SHM_BATCH];
	unsigned count, total = 0;

	while ((count = vb_shm_take_answers(who->shm, answers, VB_SHM_BATCH)) > 0) {
		for (unsigned i = 0; i < count; i++)
			total += answers[i].kind == kind;
		vb_shm_free_answers(who->shm, count);
	}
	return total;
}

#endif
