/* The client's side of the broker: how a process gets its slot of UDP port 4791. The broker itself is the program
 * verbena-broker (src/broker/); protocol.h is what the two say to each other. All calls may block briefly; none is on
 * the data path. One thread at a time. */
#ifndef VB_HOST_BROKER_H
#define VB_HOST_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"

struct vb_broker;

/* Finds this network namespace's broker, or starts one (spawned, not forked), checks its owner, and connects. On error
 * -errno, with what is wrong and what to do in why: port 4791 taken (by whom), another user's broker, exec forbidden,
 * verbena-broker not found. broker_any accepts another user's broker; libexec may be NULL. */
int vb_broker_connect(bool broker_any, const char *libexec, struct vb_broker **broker, char *why, size_t why_size);
/* Gives everything back. */
void vb_broker_disconnect(struct vb_broker *broker);

struct vb_slot {
	uint8_t number;		 /* 1 .. 254 */
	int fd;			 /* receive socket, ours to close */
	uint32_t receive_buffer; /* effective SO_RCVBUF */
};

/* -EUSERS with the reason in why when all are taken. */
int vb_broker_get_slot(struct vb_broker *broker, uint32_t receive_buffer, struct vb_slot *slot, char *why,
	size_t why_size);
/* slot->fd, still open, stops being the socket and is to be closed afterwards. */
void vb_broker_release_slot(struct vb_broker *broker, const struct vb_slot *slot);

/* Readable when the broker has something to say or is gone. The number stays the same all along, but what is behind it
 * changes when GONE is told (then it is never readable) and by vb_broker_recover: add it to an epoll set again. */
int vb_broker_fd(const struct vb_broker *broker);

enum vb_broker_notice_kind {
	VB_BROKER_NOTHING,
	VB_BROKER_PEER, /* answer to vb_broker_discover */
	VB_BROKER_GONE, /* both broker processes died: call vb_broker_recover */
	VB_BROKER_MAD,	/* a management datagram came: an answer to vb_broker_send_mad, or the connection manager's */
	VB_BROKER_FAILED, /* the network did not deliver a MAD of vb_broker_post_mad */
	VB_BROKER_FORGOT, /* its worker died and was replaced: vb_broker_bind_again */
};

struct vb_broker_notice {
	enum vb_broker_notice_kind kind;
	struct vb_gid gid;	 /* PEER: whose; MAD: from; FAILED: to */
	int error;		 /* FAILED: -errno */
	struct vb_gid to;	 /* MAD */
	uint32_t scope;		 /* MAD: interface of link-local addresses, else 0 */
	bool is_verbena;	 /* false: nobody who knows Verbena answered */
	uint32_t receive_buffer; /* of the peer's slots */
	uint32_t length;	 /* MAD: as received, padding included */
	uint8_t mad[256];
};

/* True when another call has come upon notices, of which the descriptor says nothing any more. */
bool vb_broker_has_notices(const struct vb_broker *broker);
/* The next notice, without waiting. */
void vb_broker_next_notice(struct vb_broker *broker, struct vb_broker_notice *notice);
/* Asks the broker who is at dgid, seen from sgid; it answers by a notice, from memory or after asking the peer. */
int vb_broker_discover(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid);
/* Sends a MAD from QP1 at sgid to QP1 at dgid, padded with zero bytes to length (256 .. 4096); MADs that come from
 * there with its transaction id are notices. For the doctor, and connection management to come. -EMSGSIZE: too long
 * for the interface. */
int vb_broker_send_mad(struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid,
	const uint8_t mad[256], uint32_t length);
/* Sends a MAD of 256 bytes and waits for nothing but room; it may be lost. Any thread, beside the other calls. */
void vb_broker_post_mad(const struct vb_broker *broker, const struct vb_gid *sgid, const struct vb_gid *dgid,
	const uint8_t mad[256]);

/* A port of RDMA-CM (connections.h). -EADDRINUSE and the like, with words in why. */
struct vb_binding;
int vb_broker_bind(struct vb_broker *broker, struct vb_binding *binding, char *why, size_t why_size);
int vb_broker_listen(struct vb_broker *broker, const struct vb_binding *binding, char *why, size_t why_size);
void vb_broker_unbind(struct vb_broker *broker, const struct vb_binding *binding);
/* Tells a new worker or broker of a binding that the one before knew; does not wait. */
void vb_broker_bind_again(struct vb_broker *broker, const struct vb_binding *binding, bool is_listening);

/* After GONE: connects to the next broker, or starts one, and hands our slot's socket to it; the slot, its number and
 * its socket stay ours. -errno: try again later. With several slots, call it for each. */
int vb_broker_recover(struct vb_broker *broker, const struct vb_slot *slot, char *why, size_t why_size);

#endif
