/* Client processes for the broker's tests: each connects, takes a slot, recovers by itself when the broker is gone, and
 * does what it is told over a socket pair. */
#ifndef TESTS_BROKER_CLIENT_H
#define TESTS_BROKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/gid.h"

#define PATIENCE_S 20 /* for what happens at once, but on a machine with too much to do */

enum order_kind {
	ORDER_SLOT,      /* connect and take a slot */
	ORDER_COLLECT,   /* read everything that came: good, strays */
	ORDER_RELEASE,   /* give the slot back and stay */
	ORDER_JOIN,      /* multicast group in gid (IPv4) */
	ORDER_MOVE_AWAY, /* into a network namespace of its own */
	ORDER_DISCOVER,  /* ask for gid, wait for the answer */
	ORDER_DETACH,    /* the steering program from the group, by its socket */
	ORDER_MEET,      /* ask for the process of slot at gid */
	ORDER_MET,       /* look whom it has met in slot */
	ORDER_TELL,      /* its own number to whom it has met in slot, by socket and memory */
	ORDER_HEAR,      /* what that one has told */
	ORDER_BECOME,    /* another user */
};

struct order {
	enum order_kind kind;
	bool broker_any;
	struct vb_gid sgid, gid;
	uint8_t slot;
	uid_t uid;
};

/* Of one slot. */
struct played_peer {
	unsigned introductions; /* heard */
	bool is_there;          /* its socket has an end */
	uint8_t side;
	bool is_same_user;
	pid_t pid;  /* by its pidfd; 0: there is none */
	pid_t told; /* by it */
};

struct report {
	int rc;
	uint8_t slot;
	uint32_t receive_buffer;
	unsigned good, strays, merged, recoveries; /* merged: of all packets, those read together with others */
	bool is_verbena, is_carried;
	unsigned alones; /* answers that it met nobody */
	struct played_peer met;
	char why[256];
};

struct client_process {
	pid_t pid;
	int orders;
	struct report last;
};

extern const char *client_libexec;

struct vb_broker;
/* Of the test itself; hears no notices. */
int client_connect(struct vb_broker **broker, char *why, size_t why_size);

/* uid 0 leaves the user as it is. */
void client_start(struct client_process *client, uid_t uid);
/* In a user namespace that calls the user `outside` `inside`, and maps nobody else. */
void client_start_in(struct client_process *client, uid_t inside, uid_t outside);
void client_order(struct client_process *client, const struct order *order);
/* False: it died or said nothing for ten seconds. */
bool client_wait(struct client_process *client);
bool client_do(struct client_process *client, enum order_kind kind);
/* kill -9, and waits for its end. */
void client_kill(struct client_process *client);

#endif
