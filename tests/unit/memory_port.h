/* A second port, in memory: two ends, each the other's network. It is all that UDP's is not: it takes a few packets at
 * a time, sends them in a later call than the one that hands them over, reads their bytes only then, and says that it
 * is done with them in another order, later still. Several threads may have an end each. */
#ifndef VB_TESTS_MEMORY_PORT_H
#define VB_TESTS_MEMORY_PORT_H

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/list.h"
#include "port/port.h"

enum { MEMORY_PORT_ROOM = 13, MEMORY_PORT_INBOX = 512, MEMORY_PORT_TRAIN = 5 };

struct memory_letter {
	struct vb_packet packet;
	struct vb_path path;
	struct vb_tx_completion completion;
	struct vb_iov iov[VB_MAX_SGE];
	unsigned iov_count;
	uint8_t payload[VB_MAX_MTU];
};

struct memory_port {
	struct vb_port port;
	struct memory_port *peer;
	pthread_mutex_t *mutex; /* of both ends: inbox */
	int fd;
	struct memory_letter held[MEMORY_PORT_ROOM]; /* handed over, and not sent */
	unsigned held_count;
	struct vb_tx_completion sent[MEMORY_PORT_ROOM], finished[MEMORY_PORT_ROOM];
	unsigned sent_count, most_held;
	bool is_stopped;        /* nothing leaves; under mutex, as the inbox */
	vb_time holds_back;     /* what has come is given out so much later, of which the descriptor says nothing; 0: at
				   once */
	unsigned send_takes_us; /* 0: no time */
	unsigned sends;         /* that took it */
	struct vb_deadline due;
	struct memory_letter *inbox; /* ring of MEMORY_PORT_INBOX */
	unsigned head, next, tail;   /* free running: oldest that is lent, next to give out, next free */
	uint64_t counters[VB_PORT_COUNTER_COUNT];
};

static inline struct memory_port *memory_port_of(const struct vb_port *port)
{
	return vb_container_of((struct vb_port *)port, struct memory_port, port);
}

static inline void memory_port_deliver(struct memory_port *to, const struct memory_letter *letter)
{
	if (to->tail - to->head == MEMORY_PORT_INBOX)
		return; /* as any network does */
	struct memory_letter *arrived = &to->inbox[to->tail++ % MEMORY_PORT_INBOX];
	*arrived = *letter;
	arrived->packet.payload = arrived->payload;
	uint8_t *at = arrived->payload;
	for (unsigned i = 0; i < letter->iov_count; at += letter->iov[i++].length)
		memcpy(at, letter->iov[i].base, letter->iov[i].length);
}

/* What was handed over leaves, in order; the completions of what left before come back, in none. */
static inline void memory_port_depart(struct memory_port *p)
{
	if (!p->held_count || p->is_stopped)
		return;
	for (unsigned i = 0; i < p->held_count; i++) {
		memory_port_deliver(p->peer, &p->held[i]);
		unsigned place = (i * 7 + p->sent_count) % (p->sent_count + 1);
		p->sent[p->sent_count++] = p->sent[place];
		p->sent[place] = p->held[i].completion;
	}
	p->counters[VB_PORT_TX_SEGMENTS] += p->held_count;
	p->held_count = 0;
	eventfd_write(p->peer->fd, 1);
	eventfd_write(p->fd, 1);
}

/* Something else is behind the descriptor, as when a forwarder is replaced. With the host lane's mutex held. */
static inline void memory_port_change_fd(struct vb_port *port)
{
	struct memory_port *p = memory_port_of(port);
	pthread_mutex_lock(p->mutex);
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	int other = port->fds_version++ % 2 ? dup3(fd, p->fd, O_CLOEXEC) : fd;
	close(other == fd ? p->fd : fd);
	p->fd = other;
	pthread_mutex_unlock(p->mutex);
}

static inline void memory_port_stop(struct vb_port *port, bool is_stopped)
{
	struct memory_port *p = memory_port_of(port);
	pthread_mutex_lock(p->mutex);
	p->is_stopped = is_stopped;
	eventfd_write(p->fd, 1);
	pthread_mutex_unlock(p->mutex);
}

static inline unsigned memory_port_receive(struct vb_port *port, vb_time now)
{
	struct memory_port *p = memory_port_of(port);
	eventfd_t ignored;
	pthread_mutex_lock(p->mutex);
	eventfd_read(p->fd, &ignored);
	memory_port_depart(p);
	p->head = p->next;
	unsigned count = p->tail - p->next;
	pthread_mutex_unlock(p->mutex);
	if (count && p->holds_back && !p->due.is_set)
		p->due = (struct vb_deadline){ vb_time_add(now, p->holds_back), true };
	if (p->due.is_set && !vb_deadline_due(p->due, now))
		return 0;
	p->due.is_set = false;
	return count;
}

static inline bool memory_port_next_train(struct vb_port *port, struct vb_train *train)
{
	struct memory_port *p = memory_port_of(port);
	pthread_mutex_lock(p->mutex);
	for (train->count = 0; p->next != p->tail && train->count < MEMORY_PORT_TRAIN; p->next++) {
		const struct memory_letter *letter = &p->inbox[p->next % MEMORY_PORT_INBOX];
		train->path = letter->path; /* there is but one */
		train->packets[train->count++] = letter->packet;
	}
	pthread_mutex_unlock(p->mutex);
	p->counters[VB_PORT_RX_SEGMENTS] += train->count;
	return train->count > 0;
}

static inline void memory_port_send(struct vb_port *port, struct vb_batch *batch, vb_time now)
{
	struct memory_port *p = memory_port_of(port);
	if (p->send_takes_us) {
		usleep(p->send_takes_us);
		p->sends++;
	}
	for (unsigned i = 0; i < batch->count; i++) {
		const struct vb_outgoing *out = &batch->out[i];
		struct memory_letter *letter = &p->held[p->held_count++];
		letter->packet = out->packet;
		letter->path = (struct vb_path){
			.src = out->av->sgid, .dst = out->av->dgid, .src_port = out->flow, .hop_limit = 64
		};
		letter->completion = batch->completions[i];
		letter->iov_count = out->iov_count;
		memcpy(letter->iov, &batch->iov[out->iov_first], out->iov_count * sizeof(letter->iov[0]));
	}
	memset(batch, 0xEE, sizeof(*batch)); /* it is the host lane's, who fills it anew */
	p->most_held = p->held_count > p->most_held ? p->held_count : p->most_held;
	port->room = MEMORY_PORT_ROOM - p->held_count - p->sent_count;
	eventfd_write(p->fd, 1);
}

static inline const struct vb_tx_completion *memory_port_finished(struct vb_port *port, unsigned *count)
{
	struct memory_port *p = memory_port_of(port);
	*count = p->held_count ? 0 : p->sent_count; /* not in the turn that handed something over */
	memcpy(p->finished, p->sent, *count * sizeof(p->sent[0]));
	p->sent_count -= *count;
	port->room = MEMORY_PORT_ROOM - p->held_count - p->sent_count;
	return p->finished;
}

static inline unsigned memory_port_fds(const struct vb_port *port, int fds[VB_PORT_FDS])
{
	fds[0] = memory_port_of(port)->fd;
	return 1;
}

static inline struct vb_deadline memory_port_next_deadline(const struct vb_port *port)
{
	return memory_port_of(port)->due;
}

static inline void memory_port_counters(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	memcpy(values, memory_port_of(port)->counters, sizeof(memory_port_of(port)->counters));
}

static inline void memory_port_abandon(struct vb_port *port, bool closes)
{
	if (closes)
		close(memory_port_of(port)->fd);
}

static inline void memory_port_close(struct vb_port *port)
{
	struct memory_port *p = memory_port_of(port);
	close(p->fd);
	free(p->inbox);
	free(p);
}

static inline struct memory_port *memory_port_open(pthread_mutex_t *mutex)
{
	static const struct vb_port_ops operations = {
		.receive = memory_port_receive,
		.next_train = memory_port_next_train,
		.send = memory_port_send,
		.finished = memory_port_finished,
		.fds = memory_port_fds,
		.next_deadline = memory_port_next_deadline,
		.counters = memory_port_counters,
		.abandon = memory_port_abandon,
		.close = memory_port_close,
	};
	struct memory_port *p = calloc(1, sizeof(*p));
	p->port = (struct vb_port){ .ops = &operations, .room = MEMORY_PORT_ROOM, .largest_segment = 4096 };
	p->mutex = mutex;
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->inbox = calloc(MEMORY_PORT_INBOX, sizeof(*p->inbox));
	return p;
}

static inline void memory_port_pair(pthread_mutex_t *mutex, struct vb_port *ends[2])
{
	struct memory_port *a = memory_port_open(mutex), *b = memory_port_open(mutex);
	a->peer = b;
	b->peer = a;
	ends[0] = &a->port;
	ends[1] = &b->port;
}

#endif
