/* The state that the files of the broker's client share.
 *
 *   state.c     finds what it holds, and asserts what always holds of that
 *   broker.c    its thread, its beginning and end
 *   say.c       the messages to the broker, sent once and again
 *   hear.c      the messages from the broker
 *   requests.c  what other threads ask for
 *   meet.c      the processes that they ask to meet
 *   find.c      the way to a broker, and start.c to a new one
 *   reap.c      the broker's end, which no other process would wait for
 *
 * Holds, whenever the mutex is free: all messages that are due have been sent, or the thread waits for room or for a
 * broker; and they are sent in order: slots, bindings, requests, questions, introductions, then MADs.
 *
 * No system call that may wait is made with the mutex held. The thread alone reads and closes the connection; any
 * thread writes. */
#ifndef VB_HOST_BROKER_STATE_H
#define VB_HOST_BROKER_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "base/random.h"
#include "host/client/broker.h"
#include "host/client/find.h"
#include "host/connections.h"
#include "host/protocol.h"

#define VB_BROKER_MOST_QUESTIONS     256
#define VB_BROKER_MOST_INTRODUCTIONS 1024

struct vb_held_slot {
	struct vb_list link;
	struct vb_slot slot;
	uint32_t request;
	bool is_said, is_adopted; /* by the broker that is there now */
	bool is_open, is_open_said;
	int64_t again_ms; /* it was refused: when to try again; 0 */
};

struct vb_held_binding {
	struct vb_list link;
	struct vb_binding is;
	bool is_listening;
	bool is_said, is_listening_said;
	uint32_t request;
	unsigned refusals; /* in a row */
	int64_t again_ms;  /* when to try again after them; 0 */
};

/* On the stack of the thread that asks, until it is answered. */
struct vb_broker_request {
	struct vb_list link;
	struct vb_message message;
	bool is_said, is_answered;
	struct vb_message answer;
	int fd;                          /* came with the answer, or -1 */
	struct vb_held_slot *slot;       /* GET_SLOT: taken with the answer */
	struct vb_held_binding *binding; /* BIND: taken with the answer */
};

struct vb_broker_question {
	struct vb_gid sgid, dgid;
	int64_t again_ms; /* when it may be asked anew */
	bool is_said, is_answered;
	struct vb_broker_peer peer; /* as answered */
};

/* A process that we want to meet, and the broker has not answered. */
struct vb_broker_introduction {
	struct vb_list link;
	uint8_t own_slot, slot;
	struct vb_gid gid;
	uint32_t request;
	bool is_said;
	int64_t again_ms; /* it was put off: when to try again; 0 */
	int pause_ms;
};

struct vb_broker_post {
	struct vb_list link;
	struct vb_message message;
};

struct vb_broker {
	struct vb_broker_finder finder;
	vb_broker_hear *hear;
	void *user;
	pthread_t thread;
	int wake_fd; /* eventfd */
	/* A pipe. Its first end is readable when the thread is to stop: a byte was written to the other end, or the
	 * program has closed that. */
	int stop_fd;
	atomic_int stop_writer; /* -1 once the program has closed it: any thread may notice it first */
	uint64_t stop_inode;
	atomic_bool is_stopping; /* as it should; else descriptors were lost */

	pthread_mutex_t mutex; /* of all below */
	pthread_cond_t answered;
	int fd;       /* -1: there is no broker */
	bool is_over; /* and there will be none: descriptors were lost */
	bool has_all; /* the broker that is there knows all slots, bindings and questions */
	bool is_back; /* and the user has been told of that broker */
	uint32_t last_request, last_number;
	struct vb_list slots, bindings, requests, introductions, posts;
	unsigned post_count, question_count, introduction_count;
	struct vb_broker_question questions[VB_BROKER_MOST_QUESTIONS];
	char why[VB_BROKER_WHY_SIZE]; /* there is no broker */
	struct vb_random random;
};

/* All with the mutex held. */

/* ---- state.c ----------------------------------------------------------------------------------------------------- */

/* NULL: there is none. */
struct vb_held_binding *vb_broker_find_binding(struct vb_broker *broker, uint32_t number);
struct vb_held_slot *vb_broker_find_slot(struct vb_broker *broker, uint8_t number);
/* Asserts what holds whenever the mutex is free. */
void vb_broker_holds(const struct vb_broker *broker);
void vb_held_slot_holds(const struct vb_held_slot *held);

/* ---- say.c ------------------------------------------------------------------------------------------------------- */

/* Sends what is due, as far as there is room. True: all of it. */
bool vb_broker_say_all(struct vb_broker *broker);
/* Something more is due; the thread sends what cannot be sent now. */
void vb_broker_hurry(struct vb_broker *broker);
/* Sends a message that is not repeated, behind those that wait already. */
void vb_broker_post(struct vb_broker *broker, const struct vb_message *message);
struct vb_message vb_broker_about(uint16_t kind, const struct vb_binding *binding);
/* A worker of the broker has replaced another: it has the slots, and nothing else. */
void vb_worker_forgot(struct vb_broker *broker);
void vb_broker_forgot(struct vb_broker *broker);

/* ---- hear.c ------------------------------------------------------------------------------------------------------ */

/* Takes a message; of fds, which came with it, those that are used become -1. True: the user is to hear *notice. */
bool vb_broker_take(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice);

/* ---- meet.c ------------------------------------------------------------------------------------------------------ */

/* As vb_broker_take. */
bool vb_broker_take_introduction(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice);
bool vb_broker_take_alone(struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice);
/* As vb_broker_take. The introduction stays asked for. */
bool vb_broker_take_awaited(
	struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice);
/* It is asked again, if it still stands. */
void vb_broker_take_wanted(struct vb_broker *broker, const struct vb_message *message);
/* It was refused for now. False: the refusal is another request's. */
bool vb_broker_put_off_introduction(
	struct vb_broker *broker, const struct vb_message *refusal, struct vb_broker_notice *notice);
/* The slot is given back: it meets no process any more. */
void vb_broker_forget_introductions(struct vb_broker *broker, uint8_t own_slot);

#endif
