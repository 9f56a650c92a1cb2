/* Keepalive: a connection that was idle for TCP_KEEPIDLE seconds is probed by a WRITE of no bytes, which the peer's NIC
 * acknowledges without its program. Without an acknowledgement the NIC gives up after its retries, and the connection
 * ends with ETIMEDOUT. So TCP_KEEPINTVL and TCP_KEEPCNT change nothing.
 * Holds: one thread serves all rsockets; it starts with the first that asks for it. */
#include "rsocket/objects.h"

#include <time.h>
#include "os/clock.h"
#include "os/thread.h"

/* Order: an rsocket's lock, then this one. The thread takes this one first, and so only tries the other. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t list_changed;
static struct vb_list watched = { &watched, &watched };
static bool is_running;

/* The child has neither this thread nor its parent's connections. */
static void on_fork_child(void)
{
	pthread_mutex_init(&list_lock, NULL);
	vb_list_init(&watched);
	is_running = false;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

enum { RETRY_US = 100000, LONGEST_US = 60 * 1000000 };

static int64_t idle_us(const struct vb_rsocket *rs)
{
	return (int64_t)rs->options.keepalive_idle_s * 1000000;
}

static void ask(struct vb_rsocket *rs)
{
	struct vb_rs_post post = { .op = VB_RS_WRITE };

	vb_rs_progress_all(rs, NULL);
	/* Messages under way are as good as a probe. */
	if (!vb_rs_is_connected(rs) || rs->under_way || !rs->slots)
		return;
	int error = vb_rs_stream_post(rs, &post);
	if (error)
		vb_rs_end(rs, -error);
}

/* Probes those that are due. With list_lock held. Returns when the next one is due. */
static int64_t ask_all(int64_t now_us)
{
	int64_t next_us = now_us + LONGEST_US;

	vb_list_for_each_safe (link, &watched) {
		struct vb_rsocket *rs = vb_container_of(link, struct vb_rsocket, keepalive);
		if (rs->keepalive_due_us <= now_us) {
			rs->keepalive_due_us = now_us + RETRY_US;
			if (pthread_mutex_trylock(&rs->lock) == 0) {
				ask(rs);
				rs->keepalive_due_us = now_us + idle_us(rs);
				pthread_mutex_unlock(&rs->lock);
			}
		}
		if (rs->keepalive_due_us < next_us)
			next_us = rs->keepalive_due_us;
	}
	return next_us;
}

static void *serve(void *unused)
{
	pthread_mutex_lock(&list_lock);
	for (;;) {
		int64_t next_us = ask_all(vb_clock_us());
		vb_clock_cond_wait(&list_changed, &list_lock, next_us * 1000);
	}
	return NULL;
}

/* With list_lock held. */
static int start_thread(void)
{
	pthread_t thread;

	vb_clock_cond_init(&list_changed);
	int error = vb_thread_start(&thread, serve, NULL);
	if (error)
		return error;
	pthread_detach(thread);
	is_running = true;
	return 0;
}

int vb_rs_keepalive_start(struct vb_rsocket *rs)
{
	pthread_mutex_lock(&list_lock);
	int error = is_running ? 0 : start_thread();
	if (!error && !vb_list_linked(&rs->keepalive)) {
		rs->keepalive_due_us = vb_clock_us() + idle_us(rs);
		vb_list_add_tail(&watched, &rs->keepalive);
		pthread_cond_signal(&list_changed);
	}
	pthread_mutex_unlock(&list_lock);
	return error;
}

void vb_rs_keepalive_stop(struct vb_rsocket *rs)
{
	pthread_mutex_lock(&list_lock);
	vb_list_remove(&rs->keepalive);
	pthread_mutex_unlock(&list_lock);
}
