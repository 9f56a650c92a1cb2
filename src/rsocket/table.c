/* Which rsocket is behind a descriptor.
 * Holds: the table has one reference to each rsocket in it; vb_rs_get takes one for the length of a call. In a forked
 * child the parent's rsockets are copies without a NIC: the first call about one puts the child's own in its place
 * (inherit.c). */
#include "rsocket/objects.h"

#include <stdlib.h>

enum { LEAF_BITS = 10, LEAF = 1 << LEAF_BITS, LEAVES = 1 << 11 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_rsocket **table[LEAVES];
static pthread_mutex_t inherit_lock = PTHREAD_MUTEX_INITIALIZER; /* before table_lock */

/* Another thread of the parent may have held a lock when the process forked. */
static void on_fork_child(void)
{
	pthread_mutex_init(&table_lock, NULL);
	pthread_mutex_init(&inherit_lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

/* With table_lock held. */
static struct vb_rsocket **place_of(int fd)
{
	if (fd < 0 || fd >= LEAF * LEAVES || !table[fd >> LEAF_BITS])
		return NULL;
	return &table[fd >> LEAF_BITS][fd & (LEAF - 1)];
}

/* With table_lock held. */
static struct vb_rsocket *keep(struct vb_rsocket *rs)
{
	if (rs)
		atomic_fetch_add(&rs->references, 1);
	return rs;
}

/* The child's own rsocket: one that another thread has made meanwhile, or a new one. */
static struct vb_rsocket *inherit(int fd)
{
	pthread_mutex_lock(&inherit_lock);
	pthread_mutex_lock(&table_lock);
	struct vb_rsocket **place = place_of(fd), *rs = *place;
	bool is_to_be_made = rs && !vb_rs_is_ours(rs);
	if (!is_to_be_made)
		keep(rs);
	pthread_mutex_unlock(&table_lock);
	if (is_to_be_made && (rs = vb_rs_inherit(rs))) {
		pthread_mutex_lock(&table_lock);
		*place = keep(rs);
		pthread_mutex_unlock(&table_lock);
	}
	pthread_mutex_unlock(&inherit_lock);
	if (!rs && !is_to_be_made)
		errno = EBADF;
	return rs;
}

struct vb_rsocket *vb_rs_get(int fd)
{
	pthread_mutex_lock(&table_lock);
	struct vb_rsocket **place = place_of(fd);
	struct vb_rsocket *rs = place ? *place : NULL;
	bool is_inherited = rs && !vb_rs_is_ours(rs);
	if (!is_inherited)
		keep(rs);
	pthread_mutex_unlock(&table_lock);
	if (is_inherited)
		return inherit(fd);
	if (!rs)
		errno = EBADF;
	return rs;
}

bool vb_rs_exists(int fd)
{
	pthread_mutex_lock(&table_lock);
	struct vb_rsocket **place = place_of(fd);
	bool is_one = place && *place;
	pthread_mutex_unlock(&table_lock);
	return is_one;
}

int vb_rs_enter(struct vb_rsocket *rs)
{
	if (rs->fd >= LEAF * LEAVES)
		return -EMFILE;
	pthread_mutex_lock(&table_lock);
	struct vb_rsocket ***leaf = &table[rs->fd >> LEAF_BITS];
	if (!*leaf)
		*leaf = calloc(LEAF, sizeof(**leaf));
	int error = *leaf ? 0 : -ENOMEM;
	if (!error)
		*place_of(rs->fd) = rs;
	pthread_mutex_unlock(&table_lock);
	return error;
}

/* inherit_lock: one that is just being inherited is the child's before it is removed. */
struct vb_rsocket *vb_rs_remove(int fd)
{
	pthread_mutex_lock(&inherit_lock);
	pthread_mutex_lock(&table_lock);
	struct vb_rsocket **place = place_of(fd);
	struct vb_rsocket *rs = place ? *place : NULL;
	if (rs)
		*place = NULL;
	pthread_mutex_unlock(&table_lock);
	pthread_mutex_unlock(&inherit_lock);
	return rs;
}
