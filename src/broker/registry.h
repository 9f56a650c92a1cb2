/* The clients and the owners of slots. Parent and worker each hold a copy, descriptors included. The worker changes it
 * only through registry_* on its link; the parent repeats and confirms each change. So a dead worker is replaced from
 * the parent's copy, and a dead parent from the worker's. Each change asserts that both copies agree. */
#ifndef VB_BROKER_REGISTRY_H
#define VB_BROKER_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REGISTRY_CLIENTS 512
#define REGISTRY_SLOTS   256

struct client {
	bool is_used;
	int connection;
	int pidfd; /* of the process at the other end; -1: not available */
	pid_t pid;
	uid_t uid;         /* VB_USER_UNKNOWN (os/user.h) if the id names no user */
	bool may_bind_any; /* any port: it had the privilege when it connected, even if it dropped it since */
};

struct client_slot {
	int owner; /* the client that has its socket: index in clients, -1: free */
	/* the client that uses it: the owner, or the process that the owner, a forwarder, serves; -1: not connected yet
	 */
	int user;
	int fd;           /* of a free slot: the socket that keeps its place in the group (group.h), or -1 */
	uint32_t request; /* the request that it answered, so that a repeated one gets the same slot */
	uint32_t receive_buffer;
	bool is_carried;
	pid_t user_pid; /* is_carried: the user's pid, by which the next broker recognises it */
	uid_t user_uid;
};

struct registry {
	int listener;
	struct client clients[REGISTRY_CLIENTS];
	struct client_slot slots[REGISTRY_SLOTS];
	uint8_t last_slot; /* handed out last; the next search begins after it */
};

void registry_init(struct registry *registry, int listener);

bool registry_has_clients(const struct registry *registry);

/* The worker's changes; link is its end of the socket pair. Passed descriptors become the registry's. Dropped ones are
 * closed here, except a slot's, which is left to the caller. -errno: the parent is gone and changed nothing. */
int registry_add_client(struct registry *registry, int link, int number, const struct client *client);
int registry_drop_client(struct registry *registry, int link, int number);
int registry_add_slot(struct registry *registry, int link, uint8_t number, const struct client_slot *slot);
int registry_drop_slot(struct registry *registry, int link, uint8_t number);
int registry_set_user(struct registry *registry, int link, uint8_t number, int user);

/* The parent's side: repeats one change that arrived on link. False: the worker is gone. */
bool registry_repeat(struct registry *registry, int link);

#endif
