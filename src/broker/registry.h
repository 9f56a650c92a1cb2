/* Who is connected and who has which slot. The parent and the worker both hold this, descriptors included, and agree:
 * the worker changes it only through registry_* on its link, which the parent repeats and confirms. So a worker can be
 * replaced from the parent's copy, and a lost parent from the worker's. That they agree is asserted with each
 * change. */
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
	int pidfd; /* of the process at its other end; -1 where it cannot be had */
	pid_t pid;
	uid_t uid;         /* VB_USER_UNKNOWN (os/user.h) of whom the id says nothing */
	bool may_bind_any; /* port: it had the privilege when it came, and may have given it up since */
};

struct client_slot {
	int owner; /* who has its socket: index in clients, -1: free */
	int user;  /* whose it is: the owner, or the process for whom the owner, a courier, carries; -1: has not come */
	int fd;    /* of a free one: it keeps a place in the group (group.h), or -1 */
	uint32_t request; /* that it answered, so that a repeated request gets the same slot */
	uint32_t receive_buffer;
	bool is_carried;
	pid_t user_pid; /* is_carried: by which the user is known to another broker */
	uid_t user_uid;
};

struct registry {
	int listener;
	struct client clients[REGISTRY_CLIENTS];
	struct client_slot slots[REGISTRY_SLOTS];
	uint8_t last_slot; /* handed out; the next one is looked for after it */
};

void registry_init(struct registry *registry, int listener);

bool registry_has_clients(const struct registry *registry);

/* The worker's changes; link is its end of the socket pair. The descriptors given become the registry's; those dropped
 * are closed here, except a slot's, which is left to the caller. -errno: the parent is gone, nothing changed there. */
int registry_add_client(struct registry *registry, int link, int number, const struct client *client);
int registry_drop_client(struct registry *registry, int link, int number);
int registry_add_slot(struct registry *registry, int link, uint8_t number, const struct client_slot *slot);
int registry_drop_slot(struct registry *registry, int link, uint8_t number);
int registry_set_user(struct registry *registry, int link, uint8_t number, int user);

/* The parent's side: repeats one change that arrived on link. False: the worker is gone. */
bool registry_repeat(struct registry *registry, int link);

#endif
