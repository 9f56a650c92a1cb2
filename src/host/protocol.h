/* The messages between a process and its broker, over an abstract SOCK_SEQPACKET socket of the network namespace.
 * One message is one struct vb_message, always whole; descriptors travel with it where the kind says so: a receive
 * socket, or the files by which two processes meet. Anything else ends the connection. A change of this file changes
 * VB_BROKER_PROTOCOL, and so the socket's name. */
#ifndef VB_HOST_PROTOCOL_H
#define VB_HOST_PROTOCOL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "base/gid.h"
#include "os/passing.h"

#define VB_BROKER_PROTOCOL    "9"
#define VB_BROKER_NAME        "verbena-broker." VB_BROKER_PROTOCOL
#define VB_BROKER_ANY_VERSION "verbena-broker" /* bound by a broker of any protocol: two never share the port */
#define VB_BROKER_START_NAME  "verbena-start." VB_BROKER_PROTOCOL /* bound, with the uid, while one is started */
#define VB_BROKER_PROGRAM     "verbena-broker"
#define VB_BROKER_READY       "ready" /* on the report descriptor; any other text there says why it could not start */

#define VB_SLOT_MAX           254
#define VB_BROKER_WHY_SIZE    200
#define VB_MESSAGE_FDS        3         /* most descriptors of a message */
#define VB_INTRODUCTION_BYTES (8 << 20) /* that two processes share: sparse, more than vb_shm_bytes */

enum vb_message_kind {
	/* From a process. */
	VB_MESSAGE_HELLO = 1,
	VB_MESSAGE_GET_SLOT,     /* request, receive_buffer, is_further */
	VB_MESSAGE_RELEASE_SLOT, /* slot */
	VB_MESSAGE_ADOPT,        /* request, slot, and its socket: a slot from a broker that died */
	VB_MESSAGE_DISCOVER,     /* sgid, gid */
	VB_MESSAGE_SEND_MAD,     /* request, sgid, gid, mad, length with padding */
	VB_MESSAGE_POST_MAD,     /* the same, not answered: a lost one is sent again */
	VB_MESSAGE_BIND,         /* request, gid, binding */
	VB_MESSAGE_LISTEN,       /* request, binding.number and .is_accepting; again when that has changed */
	VB_MESSAGE_UNBIND,       /* binding.number */
	VB_MESSAGE_JOIN,  /* request, slot, gid, scope: a multicast group on an interface; the broker has the socket */
	VB_MESSAGE_LEAVE, /* the same */
	VB_MESSAGE_CARRY, /* request, slot, carry: from a forwarder, for that client; with a dead broker's socket */
	VB_MESSAGE_MEET,  /* request, slot (its own), gid, introduction.slot: to share memory with that process of this
			   * host
			   */
	VB_MESSAGE_OPEN,  /* slot, introduction.is_open: any process may meet it; else those that it asks for */
	VB_MESSAGE_PART,  /* slot, introduction.slot: it has let go of what they shared, or has not taken it */
	/* From the broker. */
	VB_MESSAGE_WELCOME,
	VB_MESSAGE_SLOT,    /* request, slot, receive_buffer, and the socket, or a forwarder's channel: is_carried */
	VB_MESSAGE_ADOPTED, /* request, slot: steering is right again */
	VB_MESSAGE_REFUSED, /* request, error (a positive errno), why */
	VB_MESSAGE_PEER,    /* gid, peer_is, receive_buffer */
	VB_MESSAGE_SENT,    /* request: the MAD has left */
	VB_MESSAGE_MAD,     /* gid: from, sgid: to, scope, mad, length */
	VB_MESSAGE_FAILED,  /* gid: to, error, mad: a posted one that the network did not deliver */
	VB_MESSAGE_BOUND,   /* request, binding.port: bound, or listening */
	VB_MESSAGE_JOINED,  /* request: joined, or left */
	VB_MESSAGE_INTRODUCTION, /* slot (its own), introduction, and: a socket to the other, the memory, the other's
			       pidfd or none */
	VB_MESSAGE_ALONE,     /* request, slot, gid, introduction.slot: it could meet no process there, or has met it */
	VB_MESSAGE_AWAITED,   /* the same: the other has not asked for it. They meet when it does */
	VB_MESSAGE_WANTED,    /* slot, introduction.slot: the awaited one would meet it now; to be asked again */
	VB_MESSAGE_RESTARTED, /* the broker's worker died and was replaced: send unanswered requests again */
};

enum { VB_PEER_IS_VERBENA = 1, VB_PEER_TAKES_HELLOS = 2 };

struct vb_message {
	uint16_t kind;
	uint8_t slot;
	uint8_t peer_is; /* VB_PEER_IS_VERBENA, VB_PEER_TAKES_HELLOS; 0: of somebody else */
	uint32_t request;
	uint32_t receive_buffer;
	int32_t error;
	uint32_t length, scope;
	struct vb_gid sgid, gid;
	union {
		char why[VB_BROKER_WHY_SIZE];
		uint8_t mad[256];
		struct {
			uint32_t number; /* the process's own name for it */
			uint16_t port_space, port;
			uint8_t is_shared, is_ipv6_only, is_accepting;
			uint64_t family; /* a secret of the processes that listen together; 0: of none */
		} binding;
		struct {
			uint32_t pid, uid, receive_buffer,
				number; /* the client, as the broker sees it; the forwarder's */
		} carry;
		struct {
			uint8_t slot;         /* of the other */
			uint8_t side;         /* 0 in the lower slot, 1 in the higher */
			uint8_t is_same_user; /* both are one user's, as the broker sees them */
			uint8_t is_open;
		} introduction;
		uint8_t is_carried;
		uint8_t is_further; /* it has a slot, and can do without another */
	};
};
_Static_assert(sizeof(struct vb_message) == 56 + 256, "no padding in a message");

/* An abstract socket address; returns its length. */
static inline socklen_t vb_abstract_address(struct sockaddr_un *address, const char *name)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	size_t length = strlen(name);
	if (length > sizeof(address->sun_path) - 1)
		length = sizeof(address->sun_path) - 1;
	memcpy(address->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static inline int vb_message_send(int to, const struct vb_message *message, const int *fd)
{
	return vb_pass_send(to, message, sizeof(*message), fd, fd ? 1 : 0, MSG_DONTWAIT);
}

/* Of the descriptors those that did not come are -1. */
static inline int vb_message_take(int from, struct vb_message *message, int *fds, unsigned max)
{
	unsigned count;
	const int rc = vb_pass_receive(from, message, sizeof(*message), fds, max, &count, MSG_DONTWAIT);

	for (unsigned i = count; i < max; i++)
		fds[i] = -1;
	const bool is_there = rc == 0 || rc == -EMFILE; /* without its descriptors */
	if (is_there && message->kind == VB_MESSAGE_REFUSED)
		message->why[VB_BROKER_WHY_SIZE - 1] = 0;
	return rc;
}

/* *fd is -1 when none came. For a process that expects no more than one: a message with more is of another shape. */
static inline int vb_message_receive(int from, struct vb_message *message, int *fd)
{
	return vb_message_take(from, message, fd, 1);
}

/* For a process that may be introduced to others. */
static inline int vb_message_receive_all(int from, struct vb_message *message, int fds[VB_MESSAGE_FDS])
{
	return vb_message_take(from, message, fds, VB_MESSAGE_FDS);
}

#endif
