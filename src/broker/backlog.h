/* What is to be said to a client that does not read at the moment. What it asked for and what it must know is kept, and
 * goes first; MADs, which may be lost, follow: a burst of a thousand requests is more than a socket holds, and what is
 * dropped comes again after seconds only. */
#ifndef VB_BROKER_BACKLOG_H
#define VB_BROKER_BACKLOG_H

#include <stdbool.h>
#include "base/list.h"
#include "host/protocol.h"

enum {
	BACKLOG_SAID_MAX = 1024, /* more than an honest client waits for at any time */
	BACKLOG_MADS_MAX = 4096,
	BACKLOG_MADS_OWN = 64,       /* that each may keep, whatever others do */
	BACKLOG_MADS_OF_ALL = 32768, /* of all backlogs together, beyond that */
	BACKLOG_DEAF_MS = 120000,
};

struct backlog {
	unsigned said_count, mad_count;
	struct vb_list said, mads;
	uint64_t deaf_since; /* when something began to wait, or was last taken; milliseconds */
};

void backlog_init(struct backlog *backlog);
/* Sends the message and a copy of *fd (NULL: none), or keeps both until they can be sent. False: it lets too much pile
 * up, or the connection is broken. */
bool backlog_say(
	struct backlog *backlog, int connection, const struct vb_message *message, const int *fd, uint64_t now);
/* Sends a MAD, or keeps it behind those that wait; beyond BACKLOG_MADS_MAX, or when all that do not read have too
 * many, it is dropped. */
void backlog_pass(struct backlog *backlog, int connection, const struct vb_message *message);
/* The connection takes more: sends what waits, as far as there is room. */
void backlog_flush(struct backlog *backlog, int connection, uint64_t now);
void backlog_discard(struct backlog *backlog);

static inline bool backlog_is_waiting(const struct backlog *backlog)
{
	return backlog->said_count + backlog->mad_count > 0;
}

/* It has taken nothing of what was said to it for so long that whoever still asks cannot mean it. */
static inline bool backlog_is_deaf(const struct backlog *backlog, uint64_t now)
{
	return backlog->said_count > 0 && now >= backlog->deaf_since + BACKLOG_DEAF_MS;
}

#endif
