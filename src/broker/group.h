/* The reuseport group on UDP port 4791: one socket for each slot in use, and the broker's own, which gets QP1's MADs
 * and everything without a slot. Holds: the attached program maps each slot to its socket's index. The broker's own
 * socket is the last of the group, so that closing it moves no other.
 *
 * The kernel fills a hole with the last socket. If that were a slot's, its datagrams would be misdelivered until the
 * map is replaced. So when a slot is given up and its socket is not the last, an empty socket keeps its place: the slot
 * is vacant. The next new slot gets that place; vacant ones at the end are closed. Unknown indices are found by probes
 * (steer.h). */
#ifndef VB_BROKER_GROUP_H
#define VB_BROKER_GROUP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "broker/steer.h"

struct group {
	sa_family_t family; /* AF_INET6 dual-stack, or AF_INET without IPv6 */
	int own;            /* not locked: programs are attached through it */
	int probe, fence;   /* sends probes; receives a datagram that shows that earlier ones have arrived */
	struct sockaddr_in fence_address;
	bool is_unsteered;           /* the kernel runs no programs: the port is wire_slot's alone */
	uint8_t wire_slot;           /* of those slots; 0: the broker's own socket has the port */
	unsigned count;              /* sockets in the group */
	int fd[STEER_SLOTS];         /* by slot, or -1 */
	int index[STEER_SLOTS];      /* by slot, or -1: not known */
	bool is_vacant[STEER_SLOTS]; /* fd keeps a place and belongs to no process */
	uint32_t default_buffer;     /* effective size for a socket that asked for the usual one */
};

/* Joins the port with the broker's own socket. Sockets of a broker that died may be in it: group_unknown_slots. -errno
 * with the reason in why. */
int group_open(struct group *group, char *why, size_t why_size);

/* The number of sockets in the group that belong to no known slot. */
unsigned group_unknown_slots(const struct group *group);

/* Finds the unknown slots to which a dead broker's program still steers: their owners may connect. Call before the
 * first change of the map. */
void group_find_survivors(struct group *group, bool survives[STEER_SLOTS]);

/* Makes a socket for slot, which has none or is vacant, and steers to it. It takes the place of
 * group_vacant_place(slot), whose socket no other process may hold any more. -errno: no slot in use is affected. */
int group_add(struct group *group, uint8_t slot, uint32_t receive_buffer, uint32_t *effective_buffer);
/* The vacant slot whose place the next new slot takes; 0: none. */
uint8_t group_vacant_place(const struct group *group, uint8_t slot);
/* Closes slot's socket, which no other process may hold any more. Afterwards slot is vacant, or gone if it was the
 * last. False: the group was changed from outside, and a group_repair is due. */
bool group_remove(struct group *group, uint8_t slot);
/* A vacant slot at the end of the group, to be removed; 0: none. */
uint8_t group_last_is_vacant(const struct group *group);
/* Takes fd, a socket of slot that an earlier broker or worker made; not steered to before group_repair. -EINVAL: it is
 * no such socket. -EEXIST: the slot is in use. On error fd stays the caller's. */
int group_adopt(struct group *group, uint8_t slot, int fd);
/* The same for a vacant slot's socket, from an earlier worker. */
void group_adopt_vacant(struct group *group, uint8_t slot, int fd);
bool group_is_same_socket(const struct group *group, uint8_t slot, int fd);
uint32_t group_receive_buffer(int fd);

/* Finds the index of every socket by probing, and attaches the map. Traffic goes on, but each socket's drop count
 * (SO_RXQ_OVFL) grows by the few probes that it dropped. */
int group_repair(struct group *group);
/* True if our own socket is at its expected index, and a probe sent to slot (0: none) arrives. It is not after a socket
 * unexpectedly left or stayed. Does not change the drop counts of other sockets. */
bool group_verify(struct group *group, uint8_t slot);

#endif
