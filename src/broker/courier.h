/* Couriers: each a process of the broker's user, which holds the socket of a slot and passes what arrives on to a
 * process that may not have it. Whoever holds a socket of the group can take all the others' datagrams from them: he
 * may connect it, bind it to a device, or detach the group's program, and nobody sees who did. So only the broker's
 * own user and those it trusts hold one.
 *
 * To the broker a courier is a client like any other: it outlives the broker, and hands its socket to the next. It
 * reads nothing from whom it serves, and ends when he does. */
#ifndef VB_BROKER_COURIER_H
#define VB_BROKER_COURIER_H

#include <stdint.h>
#include <sys/types.h>

struct courier_task {
	uint8_t slot; /* that it is to have; 0: any */
	pid_t pid;    /* for whom, as the broker sees him */
	uid_t uid;
	uint32_t number; /* of the courier, by which the worker knows for which connection it was started */
	uint32_t receive_buffer;
};

/* Starts one, a child of the caller. Returns his end of the channel (port/carried.h), or -errno. */
int courier_start(const struct courier_task *task);

#endif
