/* The reuseport group on UDP port 4791: one socket a slot in use, and the broker's own, which gets everything
 * that belongs to no slot, and QP1's MADs. Holds: the program attached maps each slot to its socket's index, and the
 * broker's own socket is the last of the group. The kernel fills a hole with the last socket, so that the death of
 * the broker moves nobody, and of a client only the broker. Where indices are not known, probes tell (steer.h). */
#ifndef VB_BROKER_GROUP_H
#define VB_BROKER_GROUP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "broker/steer.h"

struct group {
	sa_family_t family; /* AF_INET6 dual-stack, or AF_INET where there is no IPv6 */
	int own;            /* not locked: programs are attached through it */
	int probe, fence;   /* sender of probes; where a datagram shows that those before it have arrived */
	struct sockaddr_in fence_address;
	unsigned count;          /* sockets in the group */
	int fd[STEER_SLOTS];     /* by slot, or -1 */
	int index[STEER_SLOTS];  /* by slot, or -1: not known */
	uint32_t default_buffer; /* effective, of a socket that asked for the usual */
};

/* Joins the port with the broker's own socket. The sockets of a broker that died may be there: group_strangers.
 * -errno with the reason in why. */
int group_open(struct group *group, char *why, size_t why_size);

/* Sockets in the group that are nobody's we know. */
unsigned group_strangers(const struct group *group);

/* A socket for slot, steered to. -errno: the group is as it was. */
int group_add(struct group *group, uint8_t slot, uint32_t receive_buffer, uint32_t *effective_buffer);
/* Closes slot's socket, which nobody else holds any more, and closes the gap. */
void group_remove(struct group *group, uint8_t slot);
/* Takes fd, a socket of slot that an earlier broker or worker made; not steered to before group_repair. -EINVAL when it
 * is not such a socket, -EEXIST when the slot is in use: fd stays the caller's. */
int group_adopt(struct group *group, uint8_t slot, int fd);
bool group_is_same_socket(const struct group *group, uint8_t slot, int fd);
uint32_t group_receive_buffer(int fd);

/* Finds the index of every socket by probing, and attaches the map. Traffic goes on; but each socket's drop count
 * (SO_RXQ_OVFL) grows by the few probes that it swallowed. */
int group_repair(struct group *group);
/* True when our own socket is where it should be, which it is not after somebody left or stayed unexpectedly, and a
 * probe sent to slot (0: none) arrives. Disturbs nobody, not even the drop counts of other sockets. */
bool group_verify(struct group *group, uint8_t slot);

#endif
