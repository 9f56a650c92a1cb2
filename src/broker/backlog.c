/* See backlog.h. MADs fill only a part of the socket's buffer, so that answers have room. */
#include "broker/backlog.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/invariant.h"

#define UNREAD_BYTES 131072

static unsigned mads_of_all; /* beyond each client's own share */

struct entry {
	struct vb_list link;
	int fd; /* sent with the message, ours to close; -1: none */
	struct vb_message message;
};

void backlog_init(struct backlog *backlog)
{
	*backlog = (struct backlog){ 0 };
	vb_list_init(&backlog->said);
	vb_list_init(&backlog->mads);
}

/* Holds: the counts are those of the lists. */
static void check(const struct backlog *backlog)
{
	assert((backlog->said_count == 0) == vb_list_empty(&backlog->said));
	assert((backlog->mad_count == 0) == vb_list_empty(&backlog->mads));
	assert(backlog->said_count <= BACKLOG_SAID_MAX && backlog->mad_count <= BACKLOG_MADS_MAX);
}

static bool has_room_for_mads(int connection)
{
	int unread = 0;
	return ioctl(connection, SIOCOUTQ, &unread) < 0 || unread < UNREAD_BYTES;
}

static bool keep(struct vb_list *list, const struct vb_message *message, const int *fd)
{
	struct entry *entry = malloc(sizeof(*entry));
	if (!entry)
		return false;
	entry->message = *message;
	entry->fd = fd ? fcntl(*fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd && entry->fd < 0) {
		free(entry);
		return false;
	}
	vb_list_add_tail(list, &entry->link);
	return true;
}

bool backlog_say(struct backlog *backlog, int connection, const struct vb_message *message, const int *fd, uint64_t now)
{
	if (backlog->said_count == 0) {
		int rc = vb_message_send(connection, message, fd);
		if (rc != -EAGAIN)
			return rc == 0;
		backlog->blocked_since = now;
	}
	if (backlog->said_count == BACKLOG_SAID_MAX || !keep(&backlog->said, message, fd))
		return false;
	backlog->said_count++;
	check(backlog);
	return true;
}

void backlog_pass(struct backlog *backlog, int connection, const struct vb_message *message)
{
	if (!backlog_is_waiting(backlog) && has_room_for_mads(connection) &&
		vb_message_send(connection, message, NULL) != -EAGAIN)
		return;
	const bool is_own = backlog->mad_count < BACKLOG_MADS_OWN;
	if (backlog->mad_count >= BACKLOG_MADS_MAX || (!is_own && mads_of_all == BACKLOG_MADS_OF_ALL) ||
		!keep(&backlog->mads, message, NULL))
		return;
	backlog->mad_count++;
	mads_of_all += !is_own;
	assert(mads_of_all <= BACKLOG_MADS_OF_ALL);
}

static void count_one_less(struct backlog *backlog)
{
	assert(backlog->mad_count > 0);
	backlog->mad_count--;
	if (backlog->mad_count >= BACKLOG_MADS_OWN) {
		assert(mads_of_all > 0);
		mads_of_all--;
	}
}

static void drop_first(struct vb_list *list)
{
	assert(!vb_list_empty(list));
	struct entry *entry = vb_container_of(vb_list_pop(list), struct entry, link);
	if (entry->fd >= 0)
		close(entry->fd);
	free(entry);
}

/* False: the socket is full. A broken connection takes everything. */
static bool send_first(struct vb_list *list, int connection)
{
	const struct entry *entry = vb_container_of(list->next, struct entry, link);
	if (vb_message_send(connection, &entry->message, entry->fd >= 0 ? &entry->fd : NULL) == -EAGAIN)
		return false;
	drop_first(list);
	return true;
}

void backlog_flush(struct backlog *backlog, int connection, uint64_t now)
{
	while (backlog->said_count > 0 && send_first(&backlog->said, connection)) {
		backlog->said_count--;
		backlog->blocked_since = now;
	}
	while (backlog->said_count == 0 && backlog->mad_count > 0 && has_room_for_mads(connection) &&
		send_first(&backlog->mads, connection))
		count_one_less(backlog);
	check(backlog);
}

void backlog_discard(struct backlog *backlog)
{
	for (; backlog->said_count > 0; backlog->said_count--)
		drop_first(&backlog->said);
	while (backlog->mad_count > 0) {
		drop_first(&backlog->mads);
		count_one_less(backlog);
	}
	check(backlog);
}
