/* The inside of host/, local peers: processes of this network namespace with which a host lane's lane shares memory. A
 * host lane's own slot is one as well.
 *
 *   host_peers.c             the lane's table of them: wanted peers, deadlines, opening and closing
 *   host_peer.c              one peer: its states, and what the lane is told of it
 *   host_peer_meet.c         what the broker says: introductions, and why there are none
 *   host_peer_admission.c    which introductions are taken, and for how long
 *   host_peer_messages.c     the messages that we send by the peer's socket
 *   host_peer_hear.c         the messages that come by it
 *   host_peer_exchange.c     what goes by memory, turn by turn, and sleeping
 *   host_peer_connection.c   the shared memory and the socket, from the introduction to the end
 *   host_peer_fds.c          how many descriptors all of them have, and how a socket is closed
 *   host_peers_text.c        what is said of them to the user
 *
 * A lane says which address it would like to reach by memory; where the address is of this host, the broker introduces
 * the two processes. Each says by the socket that it got whether it is willing, where its memory is and, having tried,
 * what may be lent to it. The socket is the bell, too: a byte wakes a peer that sleeps. The peer ends when the socket
 * or the process does.
 *
 * All functions are called with the host lane's mutex held, but where it is said. */
#ifndef VB_HOST_HOST_PEERS_H
#define VB_HOST_HOST_PEERS_H

#include "base/list.h"
#include "local/local.h"
#include "host/client/broker.h"
#include "port/pull.h"
#include "port/shm.h"

struct vb_summary;
struct vb_json_line;
struct vb_host_lane;
struct vb_host_peers;
struct vb_process;
struct vb_settings;

/* Why requests to a process of this host go over the wire, or are not pulled. */
enum vb_local_reason {
	VB_LOCAL_IS_USED,
	VB_LOCAL_IS_OFF,    /* VERBENA_LOCAL=off */
	VB_LOCAL_CAPTURES,  /* VERBENA_PCAP: descriptors in memory are no packets */
	VB_LOCAL_IS_FAULTY, /* VERBENA_FAULTS, likewise */
	VB_LOCAL_NO_MEMORY,
	VB_LOCAL_NO_ANSWER, /* yet; the peer may be stopped */
	VB_LOCAL_ENDED,
	VB_LOCAL_OTHER_USER, /* and so nothing is pulled */
	VB_LOCAL_FORBIDDEN,  /* Yama, a sandbox, a process that is not dumpable */
	VB_LOCAL_UNSEEN,     /* another pid namespace */
	VB_LOCAL_NO_DESCRIPTORS,
	VB_LOCAL_UNABLE,   /* the peer let go of what was to be shared, and did not say why */
	VB_LOCAL_NO_PROC,  /* and so it cannot be told which process the peer is */
	VB_LOCAL_UNWANTED, /* no QP of the peer is connected to one of ours */
	VB_LOCAL_FULL,     /* here or there */
	VB_LOCAL_IDLE,     /* no QP used it any more */
	VB_LOCAL_REASONS,
};
const char *vb_local_reason_text(enum vb_local_reason reason);
enum vb_local_reason vb_local_refusal(const struct vb_settings *settings); /* of this process */

/* ---- host_peers.c ------------------------------------------------------------------------------------------------ */

/* For a process that does not refuse, once the host lane's lane is there. */
int vb_host_peers_open(struct vb_host_lane *host_lane);
void vb_host_peers_close(struct vb_host_lane *host_lane);  /* sends what is held back; all peers are lost */
void vb_host_peers_forget(struct vb_host_lane *host_lane); /* its descriptors are not ours any more: closes none */
void vb_host_peers_forked(
	struct vb_host_lane *host_lane); /* in a forked child: closes descriptors, touches nothing else */

/* Answers the lane which wanted peers are there, as far as that can be done at once. */
void vb_host_peers_take_wanted(struct vb_host_lane *host_lane);
/* Other addresses are local now: a peer at one that is gone is none. */
void vb_host_peers_address_change(struct vb_host_lane *host_lane);
/* Ends the waits that are over: a broker that has been silent for long is not waited for; a peer that lives is, but
 * not by datagrams. */
void vb_host_peers_be_patient(struct vb_host_lane *host_lane, vb_time now);
struct vb_deadline vb_host_peers_next_deadline(const struct vb_host_lane *host_lane);
int vb_host_peers_fd(const struct vb_host_lane *host_lane); /* readable when there is something to hear; -1 */

/* ---- host_peer_meet.c: what the broker says, without any mutex --------------------------------------------------- */

/* A peer is introduced. Takes the descriptors. */
void vb_host_peers_meet(struct vb_process *process, const struct vb_broker_notice *notice);
void vb_host_peers_stay_alone(struct vb_process *process, const struct vb_broker_notice *notice);
void vb_host_peers_stay_unwanted(struct vb_process *process, const struct vb_broker_notice *notice);
void vb_host_peers_meet_later(struct vb_process *process, const struct vb_broker_notice *notice);
/* The broker is gone: what it said of processes that have not asked for us counts no more. */
void vb_host_peers_lose_broker(struct vb_process *process);

/* ---- Messages: host_peer_hear.c, host_peer_messages.c ------------------------------------------------------------ */

/* Reads the sockets: bells, messages, ends. */
void vb_host_peers_hear(struct vb_host_lane *host_lane);
void vb_host_peers_tell_segments(struct vb_host_lane *host_lane); /* there are others now */

/* ---- host_peers_text.c ------------------------------------------------------------------------------------------- */

/* One line each for the summary at exit, of all lanes together. True: something was sent or received. With the
 * host lanes' mutexes held. */
bool vb_host_peers_tell(const struct vb_process *process, unsigned lanes, const struct vb_summary *summary);
/* The same as elements of an array of JSON. */
void vb_host_peers_put(const struct vb_process *process, unsigned lanes, struct vb_json_line *json);

/* ---- host_peer_exchange.c ---------------------------------------------------------------------------------------- */

bool vb_host_peers_have_news(struct vb_host_lane *host_lane); /* of a peer that is awake, and there are such */
/* True when anything happened. */
bool vb_host_peers_receive(struct vb_host_lane *host_lane, vb_time now);
/* Takes what the peer in slot has answered so far, and executes nothing. */
void vb_host_peers_take_answers(struct vb_host_lane *host_lane, uint8_t slot, vb_time now);
/* Takes all that the peer in slot has sent so far. */
void vb_host_peers_catch_up(struct vb_host_lane *host_lane, uint8_t slot, vb_time now);
bool vb_host_peers_transmit(struct vb_host_lane *host_lane, vb_time now);
bool vb_host_peers_transmit_to(struct vb_local_peer *peer, vb_time now); /* to it alone */
bool vb_host_peers_are_awake(const struct vb_host_lane *host_lane);      /* there are some that each turn looks at */
bool vb_host_peers_are_urgent(const struct vb_host_lane *host_lane);     /* there is something to be sent at once */
bool vb_host_peers_have_more(const struct vb_host_lane *host_lane);     /* the last transmit has stopped at its bound */
void vb_host_peers_settle(struct vb_host_lane *host_lane, vb_time now); /* sends what is held back */
/* The caller stops driving and goes back to its program: peers that wait awake are told what was executed. */
void vb_host_peers_part(struct vb_host_lane *host_lane, vb_time now);
/* The caller is about to sleep: peers are to wake it. False: there is still something to do. */
bool vb_host_peers_doze(struct vb_host_lane *host_lane, vb_time now);
void vb_host_peers_rouse(struct vb_host_lane *host_lane); /* pollers look at all of them from now on */

#endif
