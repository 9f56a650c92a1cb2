/* See backlog.h. MADs never fill more than a part of the socket, so that there is room for answers. */
#include "broker/backlog.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define UNREAD_BYTES 131072

struct entry {
	struct vb_list link;
	struct vb_message message;
};

void backlog_init(struct backlog *backlog)
{
	backlog->count = 0;
	vb_list_init(&backlog->waiting);
}

static bool has_room(int connection)
{
	int unread = 0;
	return ioctl(connection, SIOCOUTQ, &unread) < 0 || unread < UNREAD_BYTES;
}

/* False: not now. A connection that is broken takes everything. */
static bool try_send(int connection, const struct vb_message *message)
{
	return has_room(connection) && vb_message_send(connection, message, NULL) != -EAGAIN;
}

void backlog_send(struct backlog *backlog, int connection, const struct vb_message *message)
{
	if (backlog->count == 0 && try_send(connection, message))
		return;
	struct entry *entry = backlog->count < BACKLOG_MAX ? malloc(sizeof(*entry)) : NULL;
	if (!entry)
		return;
	entry->message = *message;
	vb_list_add_tail(&backlog->waiting, &entry->link);
	backlog->count++;
}

static void drop_first(struct backlog *backlog)
{
	free(vb_container_of(vb_list_pop(&backlog->waiting), struct entry, link));
	backlog->count--;
}

void backlog_flush(struct backlog *backlog, int connection)
{
	while (backlog->count > 0 &&
		try_send(connection, &vb_container_of(backlog->waiting.next, struct entry, link)->message))
		drop_first(backlog);
}

void backlog_discard(struct backlog *backlog)
{
	while (backlog->count > 0)
		drop_first(backlog);
}
