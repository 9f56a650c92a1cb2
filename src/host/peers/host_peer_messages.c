/* The messages that two local peers send each other by the socket that the broker gave them, and the ones we send.
 *
 *   HELLO      we are willing; where a number is to be read, of ours alone, if we are of one user
 *   PROOF      the number: the kernel lets us read the other's memory
 *   MEMORY     the answer to a right PROOF: where ours is
 *   VERDICT    from how many bytes on what is lent is pulled, or why none is: in place of PROOF, or after MEMORY
 *   SEGMENT, WITHDRAWN    what may be mapped, as it comes and goes
 *   PARTED     the sender lets go, and lives
 *
 * Holds: nothing goes by memory before a HELLO has come. A peer that has not said the number that is there for it
 * learns no address of ours but that number's, gets no file of ours, and is lent nothing. A number is taken once. What
 * comes in another shape, or out of turn, ends the peer (host_peer_hear.c). */
#include "base/invariant.h"
#include "host/peers/calibration.h"
#include "host/peers/host_peer.h"
#include "host/random.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/passing.h"
#include "os/user.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

static void say(int bell, const struct vb_host_peer_message *message)
{
	syscall(SYS_sendto, bell, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

void vb_host_peer_say_refusal(int bell, enum vb_local_reason reason)
{
	const struct vb_host_peer_message hello = { .kind = VB_PEER_HELLO, .reason = (uint8_t)reason };

	say(bell, &hello);
}

enum vb_local_reason vb_host_peer_judge(int pidfd, bool is_same_user)
{
	const struct vb_users users = vb_users_read();

	if (!is_same_user)
		return VB_LOCAL_OTHER_USER;
	if (vb_pid_of(pidfd) == 0)
		return access("/proc/self", F_OK) < 0 ? VB_LOCAL_NO_PROC : VB_LOCAL_UNSEEN;
	return vb_user_of_process(&users, pidfd) == geteuid() ? VB_LOCAL_IS_USED : VB_LOCAL_OTHER_USER;
}

void vb_host_peer_say_hello(struct vb_host_peer *peer)
{
	const int yes = 1;
	uint64_t *challenge = &peer->all->challenges[peer->slot];
	struct vb_host_peer_message hello = { .kind = VB_PEER_HELLO, .pid = (uint32_t)getpid() };

	assert(peer->state == VB_PEER_INTRODUCED);
	assert(peer->proof == VB_PROOF_NONE);
	if (peer->is_our_users) {
		peer->proof = VB_PROOF_CHALLENGED;
		*challenge = vb_host_random_seed();
		hello.challenge = (uintptr_t)challenge;
		/* its segments' files, which the broker has forbidden */
		setsockopt(peer->bell, SOL_SOCKET, SO_PASSRIGHTS, &yes, sizeof(yes));
	}
	say(peer->bell, &hello);
}

void vb_host_peer_say_proof(const struct vb_host_peer *peer, uint64_t number)
{
	const struct vb_host_peer_message proof = { .kind = VB_PEER_PROOF, .challenge = number };

	assert(peer->awaits_memory);
	say(peer->bell, &proof);
}

void vb_host_peer_say_parted(const struct vb_host_peer *peer)
{
	const struct vb_host_peer_message parted = { .kind = VB_PEER_PARTED };

	say(peer->bell, &parted);
}

void vb_host_peer_say_memory(const struct vb_host_peer *peer)
{
	const struct vb_epochs *epochs = peer->all->host_lane->process->epochs;
	const struct vb_host_peer_message memory = {
		.kind = VB_PEER_MEMORY, .nonce = epochs->nonce, .epochs = (uintptr_t)epochs
	};

	assert(peer->proof == VB_PROOF_GIVEN);
	say(peer->bell, &memory);
}

void vb_host_peer_say_verdict(const struct vb_host_peer *peer)
{
	const struct vb_host_peer_message verdict = { .kind = VB_PEER_VERDICT,
		.reason = (uint8_t)peer->pull_reason,
		.lend_from = peer->pull_reason == VB_LOCAL_IS_USED ? vb_pull_pays_from() : 0 };

	assert(peer->pull_reason < VB_LOCAL_REASONS);
	say(peer->bell, &verdict);
}

/* ---- Segments ---------------------------------------------------------------------------------------------------- */

/* False: there is no room for it, and the peer is to be told once more. */
static bool say_segment(const struct vb_host_peer *peer, const struct vb_segment *segment, int file)
{
	const struct vb_host_peer_message message = {
		.kind = VB_PEER_SEGMENT, .segment = segment->id, .address = segment->address, .length = segment->length
	};

	return vb_pass_send(peer->bell, &message, sizeof(message), &file, file >= 0, MSG_DONTWAIT) == 0;
}

static bool say_withdrawn(const struct vb_host_peer *peer, uint32_t id)
{
	const struct vb_host_peer_message message = { .kind = VB_PEER_WITHDRAWN, .segment = id };

	return vb_pass_send(peer->bell, &message, sizeof(message), NULL, 0, MSG_DONTWAIT) == 0;
}

/* Only a peer that the kernel lets read us is told: it has proved so, and the kernel would let any process of our user.
 * What the socket has no room for is sent with the next. */
void vb_host_peer_say_segments(struct vb_host_peer *peer)
{
	struct vb_segments *segments = peer->all->host_lane->process->segments;
	unsigned count = 0;

	if (peer->proof != VB_PROOF_GIVEN || peer->bell < 0 || !vb_segments_may_be_shared())
		return;
	pthread_mutex_lock(&segments->mutex);
	assert(peer->is_our_users);
	for (unsigned i = 0; i < VB_SEGMENTS; i++) {
		const struct vb_segment *said = &segments->places[i].said;
		if (peer->told[i] != said->id && peer->told[i] && say_withdrawn(peer, peer->told[i]))
			peer->told[i] = 0;
		if (said->id && !peer->told[i] && say_segment(peer, said, segments->places[i].file))
			peer->told[i] = said->id;
		count += peer->told[i] != 0;
	}
	pthread_mutex_unlock(&segments->mutex);
	vb_local_peer_set_mapping(&peer->engine, count > 1); /* the first has our epochs alone */
}

void vb_host_peers_tell_segments(struct vb_host_lane *d)
{
	if (!d->peers)
		return;
	vb_list_for_each (node, &d->peers->connected)
		vb_host_peer_say_segments(vb_container_of(node, struct vb_host_peer, link));
}
