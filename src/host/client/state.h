/* What the files of the broker's client share; nobody else looks inside.
 *
 *   state.c     what it holds, found
 *   broker.c    its thread, its beginning and end
 *   say.c       what is to be said, once and again
 *   hear.c      what the broker says
 *   requests.c  what other threads ask for
 *   meet.c      whom they ask to meet
 *   find.c      the way to a broker, and start.c to a new one
 *   reap.c      its end, where nobody else would wait for it
 *
 * Holds, whenever the mutex is free: what is to be said has been said, or the thread waits for room or for a broker;
 * and nothing is said out of turn: slots, bindings, requests, questions, meetings, then MADs.
 *
 * The mutex is held for no system call that may wait. The connection is the thread's to read and to close; everybody
 * writes. */
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

#define VB_BROKER_MOST_QUESTIONS 256
#define VB_BROKER_MOST_MEETINGS  1024

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

/* On its owner's stack until it is answered. */
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
	bool is_said, is_answered, is_verbena;
	uint32_t receive_buffer; /* as answered */
};

/* Whom we want to meet, and have not been told of. */
struct vb_broker_meeting {
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
	/* A pipe, whose first end is readable when the thread is to stop: something was written to the other, or the
	 * program has closed that. */
	int stop_fd, stop_writer;
	uint64_t stop_inode;
	atomic_bool is_stopping; /* as it should; else descriptors were lost */

	pthread_mutex_t mutex; /* of all below */
	pthread_cond_t answered;
	int fd;       /* -1: there is no broker */
	bool is_over; /* and there will be none: descriptors were lost */
	bool has_all; /* the broker that is there knows all slots, bindings and questions */
	bool is_back; /* that has been told */
	uint32_t last_request, last_number;
	struct vb_list slots, bindings, requests, meetings, posts;
	unsigned post_count, question_count, meeting_count;
	struct vb_broker_question questions[VB_BROKER_MOST_QUESTIONS];
	char why[VB_BROKER_WHY_SIZE]; /* there is no broker */
	struct vb_random random;
};

/* All with the mutex held. */

/* ---- state.c ---------------------------------------------------------------------------------------------- */

/* NULL: there is none. */
struct vb_held_binding *vb_broker_find_binding(struct vb_broker *broker, uint32_t number);
struct vb_held_slot *vb_broker_find_slot(struct vb_broker *broker, uint8_t number);

/* ---- say.c ------------------------------------------------------------------------------------------------ */

/* As far as there is room. True: all is said. */
bool vb_broker_say_all(struct vb_broker *broker);
/* Something more is to be said; what cannot be said now is the thread's to say. */
void vb_broker_hurry(struct vb_broker *broker);
/* Says what stands by itself, behind what waits already. */
void vb_broker_post(struct vb_broker *broker, const struct vb_message *message);
struct vb_message vb_broker_about(uint16_t kind, const struct vb_binding *binding);
/* A worker has replaced another: it has the slots, and nothing else. */
void vb_worker_forgot(struct vb_broker *broker);
void vb_broker_forgot(struct vb_broker *broker);

/* ---- hear.c ----------------------------------------------------------------------------------------------- */

/* Takes a message; of fds, which came with it, those that are used become -1. What the user is to hear; false:
 * nothing. */
bool vb_broker_take(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice);

/* ---- meet.c ----------------------------------------------------------------------------------------------- */

/* As vb_broker_take. */
bool vb_broker_take_meeting(struct vb_broker *broker, const struct vb_message *message, int fds[VB_MESSAGE_FDS],
	struct vb_broker_notice *notice);
bool vb_broker_take_alone(struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice);
/* The same. The question stays. */
bool vb_broker_take_awaited(
	struct vb_broker *broker, const struct vb_message *message, struct vb_broker_notice *notice);
/* It is asked again, if it still stands. */
void vb_broker_take_wanted(struct vb_broker *broker, const struct vb_message *message);
/* It was refused: not now. False: it is another request's refusal. */
bool vb_broker_put_off_meeting(
	struct vb_broker *broker, const struct vb_message *refusal, struct vb_broker_notice *notice);
/* The slot is given back: it meets nobody. */
void vb_broker_forget_meetings(struct vb_broker *broker, uint8_t own_slot);

#endif
