/* The inside of host/, neighbours: processes of this network namespace with which a driver's lane shares memory. A
 * driver's own slot is one as well.
 *
 *   neighbours.c       who they are: wished for, introduced by the broker, gone
 *   introductions.c    which of them are taken, how many, and for how long
 *   greetings.c        what is said by the socket
 *   exchange.c         what goes between, turn by turn, and sleeping
 *   neighbours_text.c  what is said of them
 *
 * A lane says whom it would like to know; where that is an address of ours, the broker introduces the two. Each says
 * by the socket that they got whether it is willing, where its memory is and, having tried, what may be lent to it.
 * The socket is the bell too: a byte for whoever sleeps. Its end, or that of the process, is the neighbour's.
 *
 * All with the driver's mutex held, but where it is said. */
#ifndef VB_HOST_NEIGHBOURS_H
#define VB_HOST_NEIGHBOURS_H

#include "base/list.h"
#include "engine/local.h"
#include "host/client/broker.h"
#include "port/pull.h"
#include "port/shm.h"

struct vb_summary;
struct vb_driver;
struct vb_neighbours;
struct vb_process;
struct vb_settings;

/* Why requests to somebody of this host go over the wire, or are not pulled. */
enum vb_local_reason {
	VB_LOCAL_IS_USED,
	VB_LOCAL_IS_OFF,    /* VERBENA_LOCAL=off */
	VB_LOCAL_CAPTURES,  /* VERBENA_PCAP: what is in memory is no packet */
	VB_LOCAL_IS_FAULTY, /* VERBENA_FAULTS, likewise */
	VB_LOCAL_NO_MEMORY,
	VB_LOCAL_NO_ANSWER, /* yet; he may be stopped */
	VB_LOCAL_ENDED,
	VB_LOCAL_OTHER_USER, /* and so nothing is pulled */
	VB_LOCAL_FORBIDDEN,  /* Yama, a sandbox, a process that is not dumpable */
	VB_LOCAL_UNSEEN,     /* another pid namespace */
	VB_LOCAL_NO_DESCRIPTORS,
	VB_LOCAL_UNABLE,   /* he has let go of what was to be shared, and did not say why */
	VB_LOCAL_NO_PROC,  /* and so it cannot be told who he is */
	VB_LOCAL_UNWANTED, /* no QP of his has one of ours for its peer */
	VB_LOCAL_FULL,     /* here or there */
	VB_LOCAL_IDLE,     /* nobody used it any more */
	VB_LOCAL_REASONS,
};
const char *vb_local_reason_text(enum vb_local_reason reason);
enum vb_local_reason vb_local_refusal(const struct vb_settings *settings); /* of this process */

/* Of a process that does not refuse. With the lane there, which is to say whom it wishes to know. */
int vb_neighbours_open(struct vb_driver *driver);
void vb_neighbours_close(struct vb_driver *driver);  /* what is held back is said; all of them are lost */
void vb_neighbours_forget(struct vb_driver *driver); /* its descriptors are not ours any more: closes none */
void vb_neighbours_forked(struct vb_driver *driver); /* in a forked child: closes descriptors, touches nothing else */

/* neighbours.c */
/* Answers the lane's wishes, as far as that can be done at once. */
void vb_neighbours_take_wishes(struct vb_driver *driver);
/* The broker introduces somebody. Takes the descriptors. Without any mutex. */
void vb_neighbours_meet(struct vb_process *process, const struct vb_broker_notice *notice);
void vb_neighbours_stay_alone(struct vb_process *process, const struct vb_broker_notice *notice);
void vb_neighbours_stay_unwanted(struct vb_process *process, const struct vb_broker_notice *notice);
/* The broker is gone, and what it said of who asks for whom counts no more. Without any mutex. */
void vb_neighbours_lose_broker(struct vb_process *process);
void vb_neighbours_meet_later(struct vb_process *process, const struct vb_broker_notice *notice);
/* Addresses are others now: of those that are gone, nobody is a neighbour. */
void vb_neighbours_address_change(struct vb_driver *driver);
/* A broker that has been silent for long is not waited for; whoever lives is, but not by datagrams. */
void vb_neighbours_be_patient(struct vb_driver *driver, vb_time now);
int vb_neighbours_fd(const struct vb_driver *driver); /* readable when there is something to hear; -1 */

/* greetings.c */
/* Reads what is said by sockets: bells, greetings, ends. */
void vb_neighbours_hear(struct vb_driver *driver);
void vb_neighbours_tell_segments(struct vb_driver *driver); /* there are others now */

/* neighbours_text.c */
/* One line each for the summary at exit, of all lanes together. True: something was sent or received. With their
 * mutexes held. */
bool vb_neighbours_tell(const struct vb_process *process, unsigned lanes, const struct vb_summary *summary);

/* exchange.c */
bool vb_neighbours_have_news(struct vb_driver *driver); /* of somebody who is awake; there are such */
/* True when anything happened. */
bool vb_neighbours_receive(struct vb_driver *driver, vb_time now);
/* All that the one in slot has said so far. */
void vb_neighbours_catch_up(struct vb_driver *driver, uint8_t slot, vb_time now);
bool vb_neighbours_transmit(struct vb_driver *driver, vb_time now);
bool vb_neighbours_transmit_to(struct vb_neighbour *neighbour, vb_time now); /* alone */
bool vb_neighbours_are_awake(const struct vb_driver *driver);     /* there are some that each turn looks at */
bool vb_neighbours_are_urgent(const struct vb_driver *driver);    /* there is something to be sent at once */
bool vb_neighbours_have_more(const struct vb_driver *driver);     /* the last transmit has stopped at its bound */
void vb_neighbours_settle(struct vb_driver *driver, vb_time now); /* what is held back is said */
/* Whoever has driven goes back to his program: who waits awake is told what was executed, for it wakes nobody. */
void vb_neighbours_part(struct vb_driver *driver, vb_time now);
/* Whoever drives is about to sleep: they wake him. False: there is still something to do. */
bool vb_neighbours_doze(struct vb_driver *driver, vb_time now);
void vb_neighbours_rouse(struct vb_driver *driver); /* pollers look at all of them from now on */
struct vb_deadline vb_neighbours_next_deadline(const struct vb_driver *driver);

#endif
