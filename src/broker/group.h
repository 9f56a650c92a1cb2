/* The reuseport group on UDP port 4791: one socket a slot in use, and the broker's own, which gets everything
 * that belongs to no slot, and QP1's MADs. Holds: the program attached maps each slot to its socket's index, and the
 * broker's own socket is the last of the group, so that its end moves nobody.
 *
 * The kernel fills a hole with the last socket. Were that a slot in use, its datagrams would go astray until the map
 * says where it went. So when a slot is given up whose socket others are behind, an empty one keeps its place: the slot
 * is vacant. The next newcomer gets that place; vacant ones that nobody is behind are closed. Where indices are not
 * known, probes tell (steer.h). */
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
	unsigned count;              /* sockets in the group */
	int fd[STEER_SLOTS];         /* by slot, or -1 */
	int index[STEER_SLOTS];      /* by slot, or -1: not known */
	bool is_vacant[STEER_SLOTS]; /* fd keeps a place and is nobody's */
	uint32_t default_buffer;     /* effective, of a socket that asked for the usual */
};

/* Joins the port with the broker's own socket. The sockets of a broker that died may be there: group_strangers.
 * -errno with the reason in why. */
int group_open(struct group *group, char *why, size_t why_size);

/* Sockets in the group that are nobody's we know. */
unsigned group_strangers(const struct group *group);

/* Of the slots that we do not know those to which the program of a broker that died still steers: their owners may
 * come. Before the first change of the map. */
void group_find_survivors(struct group *group, bool survives[STEER_SLOTS]);

/* A socket for slot, which has none or is vacant, steered to. It takes the place of group_vacant_place(slot), whose
 * socket nobody else may hold any more. -errno: no slot in use is affected. */
int group_add(struct group *group, uint8_t slot, uint32_t receive_buffer, uint32_t *effective_buffer);
/* The vacant slot whose place a newcomer would take; 0: none. */
uint8_t group_vacant_place(const struct group *group, uint8_t slot);
/* Closes slot's socket, which nobody else holds any more. Afterwards slot is vacant, or gone if it was the last. False:
 * somebody has meddled with the group, and a group_repair is due. */
bool group_remove(struct group *group, uint8_t slot);
/* A vacant slot that nobody is behind, to be removed; 0: none. */
uint8_t group_last_is_vacant(const struct group *group);
/* Takes fd, a socket of slot that an earlier broker or worker made; not steered to before group_repair. -EINVAL when it
 * is not such a socket, -EEXIST when the slot is in use: fd stays the caller's. */
int group_adopt(struct group *group, uint8_t slot, int fd);
/* The same for a vacant slot's, from an earlier worker. */
void group_adopt_vacant(struct group *group, uint8_t slot, int fd);
bool group_is_same_socket(const struct group *group, uint8_t slot, int fd);
uint32_t group_receive_buffer(int fd);

/* Finds the index of every socket by probing, and attaches the map. Traffic goes on; but each socket's drop count
 * (SO_RXQ_OVFL) grows by the few probes that it swallowed. */
int group_repair(struct group *group);
/* True when our own socket is where it should be, which it is not after somebody left or stayed unexpectedly, and a
 * probe sent to slot (0: none) arrives. Disturbs nobody, not even the drop counts of other sockets. */
bool group_verify(struct group *group, uint8_t slot);

#endif
