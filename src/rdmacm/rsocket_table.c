/* Which rsocket is behind a descriptor.
 * Holds: the table has one reference of each rsocket in it; vb_rs_get and vb_rs_put are a call's. In a forked child the
 * rsockets of the parent are known by number only: their memory is a copy and their NIC is not there. A child of a
 * parent that had neither is as any other process. */
#include "rdmacm/rsocket_objects.h"

#include <stdlib.h>
#include <time.h>

enum { LEAF_BITS = 10, LEAF = 1 << LEAF_BITS, LEAVES = 1 << 11 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rsocket **table[LEAVES];
static atomic_uint entered;
static atomic_bool is_forked, has_device;

/* The child may make no use of a lock that another thread of the parent held. */
static void on_fork_child(void)
{
	pthread_mutex_init(&table_lock, NULL);
	vb_rs_forget_pollers();
	if (entered || has_device)
		is_forked = true;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

bool vb_rs_is_forked(void)
{
	return is_forked;
}

void vb_rs_note_device(void)
{
	has_device = true;
}

/* With table_lock held. */
static struct rsocket **place_of(int fd)
{
	if (fd < 0 || fd >= LEAF * LEAVES || !table[fd >> LEAF_BITS])
		return NULL;
	return &table[fd >> LEAF_BITS][fd & (LEAF - 1)];
}

struct rsocket *vb_rs_get(int fd)
{
	pthread_mutex_lock(&table_lock);
	struct rsocket **place = place_of(fd);
	struct rsocket *rs = place ? *place : NULL;
	if (rs && !is_forked)
		atomic_fetch_add(&rs->references, 1);
	pthread_mutex_unlock(&table_lock);
	if (rs && !is_forked)
		return rs;
	errno = rs ? VB_RS_FORKED_ERRNO : EBADF;
	return NULL;
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
	if (!error) {
		*place_of(rs->fd) = rs;
		entered++;
	}
	pthread_mutex_unlock(&table_lock);
	return error;
}

struct rsocket *vb_rs_remove(int fd)
{
	pthread_mutex_lock(&table_lock);
	struct rsocket **place = place_of(fd);
	struct rsocket *rs = place ? *place : NULL;
	if (rs) {
		*place = NULL;
		entered--;
	}
	pthread_mutex_unlock(&table_lock);
	return rs;
}

int64_t vb_rs_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
