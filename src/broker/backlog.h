/* Messages for a client that does not read at the moment. Answers and notices are kept and go first. MADs, which may be
 * lost, follow; they are kept too, because a burst of a thousand requests is more than a socket holds, and dropped ones
 * come again only after seconds. */
#ifndef VB_BROKER_BACKLOG_H
#define VB_BROKER_BACKLOG_H

#include <stdbool.h>
#include "base/list.h"
#include "host/protocol.h"

enum {
	BACKLOG_SAID_MAX = 1024, /* more than an honest client ever waits for */
	BACKLOG_MADS_MAX = 4096,
	BACKLOG_MADS_OWN = 64,       /* reserved for each client */
	BACKLOG_MADS_OF_ALL = 32768, /* of all clients together, beyond that */
	BACKLOG_BLOCKED_MS = 120000,
};

struct backlog {
	unsigned said_count, mad_count;
	struct vb_list said, mads;
	uint64_t blocked_since; /* when a message began to wait, or one was last taken; milliseconds */
};

void backlog_init(struct backlog *backlog);
/* Sends the message and a copy of *fd (NULL: none), or keeps both until they can be sent. False: too much waits for
 * this client, or the connection is broken. */
bool backlog_say(
	struct backlog *backlog, int connection, const struct vb_message *message, const int *fd, uint64_t now);
/* Sends a MAD, or keeps it behind those that wait. Beyond BACKLOG_MADS_MAX, or if all backlogs together have too many,
 * it is dropped. */
void backlog_pass(struct backlog *backlog, int connection, const struct vb_message *message);
/* The connection is writable again: sends waiting messages as far as there is room. */
void backlog_flush(struct backlog *backlog, int connection, uint64_t now);
void backlog_discard(struct backlog *backlog);

static inline bool backlog_is_waiting(const struct backlog *backlog)
{
	return backlog->said_count + backlog->mad_count > 0;
}

/* True if the client has read nothing for so long that its further requests need no answer. */
static inline bool backlog_is_blocked(const struct backlog *backlog, uint64_t now)
{
	return backlog->said_count > 0 && now >= backlog->blocked_since + BACKLOG_BLOCKED_MS;
}

#endif
