/* MADs that wait until their process has read those before them: a burst of a thousand requests is more than a socket
 * holds, and what is dropped comes again after seconds only. */
#ifndef VB_BROKER_BACKLOG_H
#define VB_BROKER_BACKLOG_H

#include <stdbool.h>
#include "base/list.h"
#include "host/protocol.h"

enum { BACKLOG_MAX = 4096 };

struct backlog {
	unsigned count;
	struct vb_list waiting;
};

void backlog_init(struct backlog *backlog);
/* Sends the message, or keeps it behind those that wait; beyond BACKLOG_MAX it is dropped. */
void backlog_send(struct backlog *backlog, int connection, const struct vb_message *message);
/* The connection takes more: sends what waits, as far as there is room. */
void backlog_flush(struct backlog *backlog, int connection);
void backlog_discard(struct backlog *backlog);

static inline bool backlog_is_waiting(const struct backlog *backlog)
{
	return backlog->count > 0;
}

#endif
