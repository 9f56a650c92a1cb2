/* See broker.h. The thread that talks to the broker, and its beginning and end. */
#include "base/invariant.h"
#include "host/client/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "host/client/reap.h"
#include "host/client/start.h"
#include "host/report/log.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/thread.h"

#define BACKOFF_FIRST_MS 20 /* between two searches for a new broker */
#define BACKOFF_MAX_MS   2000
#define MESSAGES_A_TURN  64
#define NAME             "verbena-broker"

/* ---- Telling the user -------------------------------------------------------------------------------------------- */

static void hear(const struct vb_broker *broker, const struct vb_broker_notice *notice)
{
	if (broker->hear)
		broker->hear(broker->user, notice);
}

static bool is_all_adopted(const struct vb_broker *broker)
{
	vb_list_for_each (node, &broker->slots)
		if (!vb_container_of(node, struct vb_held_slot, link)->is_adopted)
			return false;
	return true;
}

static void tell_if_back(struct vb_broker *broker)
{
	const struct vb_broker_notice back = { .kind = VB_BROKER_BACK };

	pthread_mutex_lock(&broker->mutex);
	bool is_news = !broker->is_back && broker->fd >= 0 && is_all_adopted(broker);
	if (is_news)
		broker->is_back = true;
	pthread_mutex_unlock(&broker->mutex);
	if (is_news)
		hear(broker, &back);
}

/* Reads the messages that are there. False: the broker is gone. */
static bool listen_to(struct vb_broker *broker)
{
	for (unsigned i = 0; i < MESSAGES_A_TURN; i++) {
		struct vb_broker_notice notice;
		struct vb_message message;
		int fds[VB_MESSAGE_FDS];
		int rc = vb_message_receive_all(broker->fd, &message, fds);
		if (rc && rc != -EMFILE) /* this process lacks descriptors: the broker is there */
			return rc == -EAGAIN;
		pthread_mutex_lock(&broker->mutex);
		bool is_news = vb_broker_take(broker, &message, fds, &notice);
		pthread_mutex_unlock(&broker->mutex);
		for (unsigned k = 0; k < VB_MESSAGE_FDS; k++)
			if (fds[k] >= 0)
				close(fds[k]);
		if (is_news)
			hear(broker, &notice);
	}
	return true;
}

/* ---- The thread -------------------------------------------------------------------------------------------------- */

static void lose(struct vb_broker *broker)
{
	const struct vb_broker_notice gone = { .kind = VB_BROKER_GONE };

	pthread_mutex_lock(&broker->mutex);
	int fd = broker->fd;
	assert(fd >= 0);
	broker->fd = -1; /* before the number may be another file's, for a forked child closes what it finds here */
	close(fd);
	vb_broker_forgot(broker);
	vb_broker_holds(broker);
	pthread_mutex_unlock(&broker->mutex);
	hear(broker, &gone);
}

/* Finds the next broker or starts one. False: the thread is to stop. */
static bool find_next(struct vb_broker *broker)
{
	char why[VB_BROKER_WHY_SIZE] = "";
	int fd;

	for (int wait = BACKOFF_FIRST_MS;; wait = wait * 2 < BACKOFF_MAX_MS ? wait * 2 : BACKOFF_MAX_MS) {
		/* Random, so that the processes that lost the same broker do not all come back at once. */
		if (!vb_broker_pause(
			    &broker->finder, wait / 2 + (int)vb_random_below(&broker->random, (uint32_t)wait / 2 + 1)))
			return false;
		int rc = vb_broker_find(&broker->finder, &fd, why, sizeof(why));
		if (rc == -ECANCELED)
			return false;
		pthread_mutex_lock(&broker->mutex);
		assert(broker->fd < 0);
		if (rc == 0)
			broker->fd = fd;
		snprintf(broker->why, sizeof(broker->why), "%s", rc ? why : "");
		pthread_mutex_unlock(&broker->mutex);
		if (rc == 0) {
			vb_broker_reap(fd);
			return true;
		}
		vb_log(VB_LOG_INFO, "no new broker yet: %s", why);
	}
}

/* The earlier of two times; 0 is none. */
static int64_t earlier(int64_t one_ms, int64_t other_ms)
{
	return !one_ms || (other_ms && other_ms < one_ms) ? other_ms : one_ms;
}

/* Milliseconds until a slot, a port or an introduction that was refused is asked for again; -1: none was. */
static int next_try(const struct vb_broker *broker)
{
	int64_t at_ms = 0, now = vb_clock_ms();

	vb_list_for_each (node, &broker->slots) {
		const struct vb_held_slot *held = vb_container_of(node, struct vb_held_slot, link);
		at_ms = earlier(at_ms, held->is_said ? 0 : held->again_ms);
	}
	vb_list_for_each (node, &broker->bindings) {
		const struct vb_held_binding *held = vb_container_of(node, struct vb_held_binding, link);
		at_ms = earlier(at_ms, held->is_said ? 0 : held->again_ms);
	}
	vb_list_for_each (node, &broker->introductions) {
		const struct vb_broker_introduction *introduction =
			vb_container_of(node, struct vb_broker_introduction, link);
		at_ms = earlier(at_ms, introduction->is_said ? 0 : introduction->again_ms);
	}
	if (!at_ms)
		return -1;
	return at_ms > now ? (int)(at_ms - now) : 0;
}

/* The thread stops though no function of ours told it to: the program has closed our descriptors, or some of them. None
 * of the numbers is used any more. */
static void forget_all(struct vb_broker *broker)
{
	const struct vb_broker_notice lost = { .kind = VB_BROKER_LOST };

	pthread_mutex_lock(&broker->mutex);
	broker->fd = broker->wake_fd = broker->stop_fd = broker->finder.stop_fd = broker->stop_writer = -1;
	broker->is_over = true;
	snprintf(broker->why, sizeof(broker->why), "this program has closed Verbena's descriptors");
	vb_broker_holds(broker);
	pthread_cond_broadcast(&broker->answered);
	pthread_mutex_unlock(&broker->mutex);
	hear(broker, &lost);
}

static bool is_invalid(const struct pollfd *waits, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (waits[i].revents & POLLNVAL)
			return true;
	return false;
}

static void *run(void *argument)
{
	struct vb_broker *broker = argument;

	pthread_setname_np(pthread_self(), NAME);
	while (broker->fd >= 0 || find_next(broker)) {
		struct pollfd waits[3] = { { .fd = broker->stop_fd, .events = POLLIN },
			{ .fd = broker->wake_fd, .events = POLLIN }, { .fd = broker->fd, .events = POLLIN } };
		pthread_mutex_lock(&broker->mutex);
		if (next_try(broker) == 0)
			broker->has_all = false;
		bool is_said = vb_broker_say_all(broker);
		int timeout = is_said ? next_try(broker) : -1;
		vb_broker_holds(broker);
		pthread_mutex_unlock(&broker->mutex);
		waits[2].events |= is_said ? 0 : POLLOUT;
		tell_if_back(broker);
		if (vb_clock_poll(waits, 3, timeout) < 0)
			continue;
		if (waits[0].revents || is_invalid(waits, 3))
			break;
		if (waits[1].revents && !vb_eventfd_take(broker->wake_fd))
			break;
		if (waits[2].revents && !listen_to(broker))
			lose(broker);
	}
	if (!atomic_load(&broker->is_stopping))
		forget_all(broker);
	return NULL;
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static void close_fds(const struct vb_broker *broker)
{
	vb_descriptor_close(broker->fd, S_IFSOCK);
	vb_descriptor_close(broker->wake_fd, VB_TYPE_ANONYMOUS);
	vb_descriptor_close(broker->stop_fd, S_IFIFO);
	vb_descriptor_close(broker->stop_writer, S_IFIFO);
}

static void free_broker(struct vb_broker *broker)
{
	assert(vb_list_empty(&broker->requests)); /* they are on stacks of threads that wait */
	close_fds(broker);
	for (struct vb_list *node; (node = vb_list_pop(&broker->slots));)
		free(vb_container_of(node, struct vb_held_slot, link));
	for (struct vb_list *node; (node = vb_list_pop(&broker->bindings));)
		free(vb_container_of(node, struct vb_held_binding, link));
	for (struct vb_list *node; (node = vb_list_pop(&broker->introductions));)
		free(vb_container_of(node, struct vb_broker_introduction, link));
	for (struct vb_list *node; (node = vb_list_pop(&broker->posts));)
		free(vb_container_of(node, struct vb_broker_post, link));
	pthread_cond_destroy(&broker->answered);
	pthread_mutex_destroy(&broker->mutex);
	free(broker->finder.libexec);
	free(broker);
}

static void open_fds(struct vb_broker *broker)
{
	int ends[2] = { -1, -1 };
	struct stat status = { 0 };

	broker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
		fstat(ends[1], &status);
	broker->stop_fd = broker->finder.stop_fd = ends[0];
	broker->stop_writer = ends[1];
	broker->stop_inode = status.st_ino;
}

static struct vb_broker *create(const struct vb_broker_config *config)
{
	struct vb_broker *broker = calloc(1, sizeof(*broker));

	if (!broker)
		return NULL;
	broker->fd = -1;
	broker->is_back = true;
	broker->hear = config->hear;
	broker->user = config->user;
	open_fds(broker);
	broker->finder.accepts_any = config->accepts_any;
	broker->finder.libexec = config->libexec && *config->libexec ? strdup(config->libexec) : NULL;
	vb_random_seed(&broker->random, (uint64_t)vb_clock_ms() ^ (uint64_t)getpid() << 32);
	vb_list_init(&broker->slots);
	vb_list_init(&broker->bindings);
	vb_list_init(&broker->requests);
	vb_list_init(&broker->introductions);
	vb_list_init(&broker->posts);
	pthread_mutex_init(&broker->mutex, NULL);
	vb_clock_cond_init(&broker->answered);
	vb_broker_holds(broker);
	return broker;
}

int vb_broker_connect(const struct vb_broker_config *config, struct vb_broker **result, char *why, size_t why_size)
{
	struct vb_broker *broker = create(config);
	int rc;

	if (!broker)
		return vb_broker_fail(ENOMEM, why, why_size, "out of memory");
	if (broker->wake_fd < 0 || broker->stop_fd < 0)
		rc = vb_broker_fail(EMFILE, why, why_size, "no more descriptors");
	else
		rc = vb_broker_find(&broker->finder, &broker->fd, why, why_size);
	assert((rc == 0) == (broker->fd >= 0));
	if (rc == 0)
		vb_broker_reap(broker->fd);
	if (rc == 0 && vb_thread_start(&broker->thread, run, broker))
		rc = vb_broker_fail(EAGAIN, why, why_size, "cannot start a thread");
	if (rc)
		free_broker(broker);
	else
		*result = broker;
	return rc;
}

int vb_broker_alarm_fd(const struct vb_broker *broker)
{
	return broker->stop_fd;
}

void vb_broker_disconnect(struct vb_broker *broker)
{
	atomic_store(&broker->is_stopping, true);
	vb_broker_end(broker);
	pthread_join(broker->thread, NULL);
	vb_broker_say_all(broker); /* for example that a slot is given back; if there is room */
	free_broker(broker);
}

void vb_broker_forked(struct vb_broker *broker)
{
	close_fds(broker);
}
