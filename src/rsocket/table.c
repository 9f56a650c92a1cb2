/* Which rsocket is behind a descriptor.
 * Holds: the table has one reference of each rsocket in it; vb_rs_get and vb_rs_put are a call's. In a forked child the
 * parent's are copies whose NIC is not there: the first call about one puts the child's own in its place
 * (inherit.c). */
#include "rsocket/objects.h"

#include <stdlib.h>
#include <time.h>

enum { LEAF_BITS = 10, LEAF = 1 << LEAF_BITS, LEAVES = 1 << 11 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rsocket **table[LEAVES];
static pthread_mutex_t inherit_lock = PTHREAD_MUTEX_INITIALIZER; /* before table_lock */
static uint32_t generation;                                      /* counts the forks down to this process */
static atomic_uint children;

/* The child may make no use of a lock that another thread of the parent held, and has none of its threads. */
static void on_fork_child(void)
{
	generation++;
	pthread_mutex_init(&table_lock, NULL);
	pthread_mutex_init(&inherit_lock, NULL);
	vb_rs_forget_pollers();
	vb_rs_forget_listeners();
	vb_rs_forget_keepalives();
}

static void on_fork_parent(void)
{
	atomic_fetch_add(&children, 1);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(vb_rs_before_fork, on_fork_parent, on_fork_child);
}

uint32_t vb_rs_generation(void)
{
	return generation;
}

bool vb_rs_is_ours(const struct rsocket *rs)
{
	return rs->generation == generation;
}

uint32_t vb_rs_children(void)
{
	return atomic_load(&children);
}

/* With table_lock held. */
static struct rsocket **place_of(int fd)
{
	if (fd < 0 || fd >= LEAF * LEAVES || !table[fd >> LEAF_BITS])
		return NULL;
	return &table[fd >> LEAF_BITS][fd & (LEAF - 1)];
}

/* With table_lock held. */
static struct rsocket *keep(struct rsocket *rs)
{
	if (rs)
		atomic_fetch_add(&rs->references, 1);
	return rs;
}

/* What another thread has taken over meanwhile, or the one that we make of it. */
static struct rsocket *inherit(int fd)
{
	pthread_mutex_lock(&inherit_lock);
	pthread_mutex_lock(&table_lock);
	struct rsocket **place = place_of(fd), *rs = *place;
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

struct rsocket *vb_rs_get(int fd)
{
	pthread_mutex_lock(&table_lock);
	struct rsocket **place = place_of(fd);
	struct rsocket *rs = place ? *place : NULL;
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

bool vb_rs_is(int fd)
{
	pthread_mutex_lock(&table_lock);
	struct rsocket **place = place_of(fd);
	bool is_one = place && *place;
	pthread_mutex_unlock(&table_lock);
	return is_one;
}

void vb_rs_put(struct rsocket *rs)
{
	if (atomic_fetch_sub(&rs->references, 1) == 1)
		vb_rs_destroy(rs);
}

int vb_rs_enter(struct rsocket *rs)
{
	if (rs->fd >= LEAF * LEAVES)
		return -EMFILE;
	pthread_mutex_lock(&table_lock);
	struct rsocket ***leaf = &table[rs->fd >> LEAF_BITS];
	if (!*leaf)
		*leaf = calloc(LEAF, sizeof(**leaf));
	int error = *leaf ? 0 : -ENOMEM;
	if (!error)
		*place_of(rs->fd) = rs;
	pthread_mutex_unlock(&table_lock);
	return error;
}

/* One that is just being taken over is the child's before it goes. */
struct rsocket *vb_rs_remove(int fd)
{
	pthread_mutex_lock(&inherit_lock);
	pthread_mutex_lock(&table_lock);
	struct rsocket **place = place_of(fd);
	struct rsocket *rs = place ? *place : NULL;
	if (rs)
		*place = NULL;
	pthread_mutex_unlock(&table_lock);
	pthread_mutex_unlock(&inherit_lock);
	return rs;
}

int64_t vb_rs_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
