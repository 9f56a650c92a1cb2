/* The client's side of the broker: how a process gets its slot of UDP port 4791, its ports, and word of its peers. The
 * broker itself is the program verbena-broker (src/broker/); protocol.h has their messages.
 *
 * A thread of its own reads the broker's messages, and finds or starts the next broker when both processes of this one
 * are gone. It sends again what a broker has forgotten and has to know (slots, bindings, questions, requests not
 * answered yet), as fast as the broker reads. So a thread of the program waits for the broker only where it wants an
 * answer.
 *
 * Threads: any, at any time. Errors: 0 or -errno; why, of why_size bytes, then says what is wrong and what to do. */
#ifndef VB_HOST_BROKER_H
#define VB_HOST_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"

struct vb_broker;

enum vb_broker_notice_kind {
	VB_BROKER_PEER,   /* answer to vb_broker_discover */
	VB_BROKER_MAD,    /* a management datagram came: an answer to vb_broker_send_mad, or the connection manager's */
	VB_BROKER_FAILED, /* the network did not deliver a MAD of vb_broker_post_mad */
	VB_BROKER_GONE,   /* both broker processes died; connected queue pairs go on */
	VB_BROKER_BACK,   /* after GONE: the next one knows our slots, and steering is right */
	VB_BROKER_CHANNEL, /* a slot's forwarder has been replaced: another channel is behind the slot's descriptor */
	VB_BROKER_INTRODUCTION, /* with another process of this host: one of the two has asked for it */
	VB_BROKER_ALONE,        /* answer to vb_broker_meet: there is no process that we could meet and have not met */
	VB_BROKER_LOST,  /* the program closed one of our descriptors, and none is used any more. The last notice */
	VB_BROKER_LATER, /* not the answer yet: the process is there, and one of the two does not read at the moment */
	VB_BROKER_AWAITED, /* nor this: the process is there, and has not asked for us. We meet when it does */
};

/* An address, as its broker says. All 0: no broker answered. */
struct vb_broker_peer {
	bool is_verbena, takes_hellos;
	uint32_t receive_buffer; /* of its slots */
};

struct vb_broker_notice {
	enum vb_broker_notice_kind kind;
	struct vb_gid gid; /* PEER: whose; MAD: from; FAILED: to; ALONE: asked for */
	int error;         /* FAILED: -errno; ALONE: -errno where we could not take what was to be shared, or 0 */
	struct vb_gid to;  /* MAD */
	uint32_t scope;    /* MAD: interface of link-local addresses, else 0 */
	struct vb_broker_peer peer; /* PEER */
	uint32_t length;            /* MAD: as received, padding included */
	uint8_t mad[256];
	uint8_t own_slot, slot;    /* INTRODUCTION, ALONE, LATER, AWAITED: ours, and the other's */
	uint8_t side;              /* INTRODUCTION: 0 in the lower slot, 1 in the higher */
	bool is_same_user;         /* INTRODUCTION: the broker sees both as one user's */
	int socket, memory, pidfd; /* INTRODUCTION: hear() has to close them; pidfd is the other process's, or -1 */
};

/* Called by the broker's thread, with no mutex held; it may call all functions here that do not wait for an answer. */
typedef void vb_broker_hear(void *user, const struct vb_broker_notice *notice);

struct vb_broker_config {
	bool accepts_any;    /* also another user's broker */
	const char *libexec; /* directory of verbena-broker; NULL: beside the library */
	vb_broker_hear *hear;
	void *user;
};

/* Finds this network namespace's broker, or starts one (spawned, not forked), checks its owner, and connects. Errors:
 * port 4791 taken (why says by which program), another user's broker, exec forbidden, verbena-broker not found, no
 * room. */
int vb_broker_connect(const struct vb_broker_config *config, struct vb_broker **broker, char *why, size_t why_size);
/* Gives everything back. hear() is not called any more once it returns. */
void vb_broker_disconnect(struct vb_broker *broker);
/* Its thread ends, as if it had found its descriptors closed. Waits for nothing. */
void vb_broker_end(struct vb_broker *broker);
/* Readable when its thread is to end. A thread that sleeps on it in poll() is woken when the program closes
 * descriptors of ours. */
int vb_broker_alarm_fd(const struct vb_broker *broker);
/* In a forked child, for it is the parent's: closes descriptors, touches nothing else. */
void vb_broker_forked(struct vb_broker *broker);

struct vb_slot {
	uint8_t number;          /* 1 .. 254 */
	int fd;                  /* receive socket, or a forwarder's channel (port/carried.h); the caller's to close */
	uint32_t receive_buffer; /* effective SO_RCVBUF */
	bool is_carried;         /* the broker is another user's, and keeps the socket */
};

/* -EUSERS when all are taken; or, with is_further, when the few that are left are for processes that have none. May
 * wait, as all functions that have a why. */
int vb_broker_get_slot(struct vb_broker *broker, uint32_t receive_buffer, bool is_further, struct vb_slot *slot,
	char *why, size_t why_size);
/* slot->fd, still open, stops being the socket and is to be closed afterwards. */
void vb_broker_release_slot(struct vb_broker *broker, const struct vb_slot *slot);

/* A carried slot joins a multicast group on an interface, or leaves it: the socket is not ours to change. */
int vb_broker_join(
	struct vb_broker *broker, const struct vb_slot *slot, const struct vb_gid *group, uint32_t ifindex, bool join);

/* Asks the broker which host is at dgid, seen from sgid; it answers by a notice, from memory or after asking the peer.
 * An address that it was asked about lately, or that is known, is not asked about again. True: it is the first
 * question about dgid. */
bool vb_broker_discover(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid);
/* The answer of the last such notice about dgid; false: there was none, or it is forgotten. */
bool vb_broker_knows(struct vb_broker *broker, const struct vb_gid *dgid, struct vb_broker_peer *peer);

/* Asks to be introduced to the process that has slot at gid, if that is of this host; it may be this process. Both hear
 * of an INTRODUCTION of own_slot and slot, with a socket to the other and memory that both share, as soon as the other
 * wants it too: it asks for us, or is open. Waits for nothing. The question is remembered until a notice other than
 * LATER and AWAITED answers it, and counts once if it is asked twice meanwhile. A pair of slots that has met meets
 * again after both have parted. When a broker dies, the same slots may meet a second time: the second introduction is
 * to be taken if the socket of the first is at its end, and closed otherwise; the other process does the same.
 *
 * The other process may be another user's. Before Linux 6.16 it may send descriptors by the socket, and to close such a
 * descriptor may take as long as that user likes: MSG_PEEK without room for them tells of them by MSG_CTRUNC, and then
 * nothing more is to be read. */
void vb_broker_meet(struct vb_broker *broker, uint8_t own_slot, const struct vb_gid *gid, uint8_t slot);
/* Open: any process that asks for own_slot may meet it; else only those for which it asks. Not open at first. */
void vb_broker_open(struct vb_broker *broker, uint8_t own_slot, bool is_open);
/* own_slot lets go of what it shared with slot, or has not taken an introduction. */
void vb_broker_part(struct vb_broker *broker, uint8_t own_slot, uint8_t slot);

/* Sends a MAD from QP1 at sgid to QP1 at dgid, padded with zero bytes to length (256 .. 4096); MADs that come from
 * there with its transaction id are notices. -EMSGSIZE: too long for the interface. */
int vb_broker_send_mad(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid,
	const uint8_t mad[256], uint32_t length);
/* Sends a MAD of 256 bytes and waits for nothing; it may be lost. */
void vb_broker_post_mad(
	struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid, const uint8_t mad[256]);

/* The same with a MAD of another class; an answer to its transaction id is a notice. */
void vb_broker_post_query(
	struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid, const uint8_t mad[256]);

/* A port of RDMA-CM (connections.h); from the answer on the broker knows it until vb_broker_unbind. */
struct vb_binding;
int vb_broker_bind(struct vb_broker *broker, struct vb_binding *binding, char *why, size_t why_size);
int vb_broker_listen(struct vb_broker *broker, const struct vb_binding *binding, char *why, size_t why_size);
void vb_broker_accepting(struct vb_broker *broker, const struct vb_binding *binding);
void vb_broker_unbind(struct vb_broker *broker, const struct vb_binding *binding);

#endif
