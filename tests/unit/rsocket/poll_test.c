/* Waiters and a completion that comes while they look: what they arm, take and poll is the test's. */
#include "rsocket/pollers.h"
#include "../unit.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "os/clock.h"

enum { LONGEST_US = 1000000 }; /* far less than the wake_up_ms below */

/* ---- A completion queue and its channel -------------------------------------------------------------------------- */

static struct {
	unsigned entries, taken, to_come;
	bool is_armed; /* the queue's own view */
	bool has_thief;
	int channel;
} queue;

static void complete(void)
{
	if (!queue.to_come)
		return;
	queue.to_come--;
	queue.entries++;
	if (queue.is_armed)
		eventfd_write(queue.channel, 1);
	queue.is_armed = false;
}

static int arm(struct ibv_cq *cq, int solicited_only)
{
	queue.is_armed = true;
	if (!queue.taken)
		complete();
	return 0;
}

static struct ibv_context context = { .ops.req_notify_cq = arm };
static struct ibv_cq cq = { .context = &context };

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **found, void **cq_context)
{
	eventfd_t count;

	*found = &cq;
	return eventfd_read(queue.channel, &count);
}

void ibv_ack_cq_events(struct ibv_cq *acknowledged, unsigned count) {}

enum { LANES = 5 };

static unsigned looks_at_lanes, looks_here, sleeps;

unsigned vb_cq_lanes(struct ibv_cq *of)
{
	return LANES;
}

int vb_poll_asleep(struct ibv_context *of, unsigned lanes, struct pollfd *fds, unsigned count, int timeout_ms)
{
	assert_ptr_equal(of, &context);
	assert_int_equal(lanes, LANES);
	sleeps++;
	return poll(fds, count, timeout_ms);
}

/* What was found empty gets the next entry, of which nobody is told who has not armed. */
bool vb_rs_stream_poll(struct vb_rsocket *rs, unsigned *driven)
{
	if (driven && *driven == LANES)
		looks_here++;
	else
		looks_at_lanes++;
	if (driven)
		*driven |= LANES;
	if (!queue.entries) {
		if (queue.taken)
			complete();
		return false;
	}
	queue.taken += queue.entries;
	queue.entries = 0;
	return true;
}

/* ---- What the other files of rsockets promise -------------------------------------------------------------------- */

static struct vb_rsocket *only, *another;

bool vb_rs_datagram_progress(struct vb_rsocket *rs, bool is_all)
{
	eventfd_t count;
	bool was_any = is_all && eventfd_read(queue.channel, &count) == 0;

	if (was_any)
		rs->is_armed = false;
	vb_rs_stream_poll(rs, NULL);
	return was_any;
}

void vb_rs_datagram_add_lanes(const struct vb_rsocket *rs, struct vb_rs_lanes *to)
{
	*to = (struct vb_rs_lanes){ &context, LANES };
}

bool vb_rs_datagram_arm(struct vb_rsocket *rs)
{
	if (rs->is_armed)
		return false;
	rs->is_armed = true;
	arm(&cq, 0);
	return true;
}

/* After we have looked and armed, another thread may take what comes, and wakes us then. */
short vb_rs_datagram_ready(const struct vb_rsocket *rs)
{
	short ready = queue.taken >= 2 ? POLLIN : 0;

	if (queue.has_thief && rs->is_armed) {
		queue.taken = 2;
		vb_rs_wake_pollers();
	}
	return ready;
}

uint32_t vb_rs_stream_room(const struct vb_rsocket *rs)
{
	return 0;
}

bool vb_rs_take_events(struct vb_rsocket *rs)
{
	return false;
}

struct vb_rsocket *vb_rs_get(int fd)
{
	return fd == only->fd ? only : another && fd == another->fd ? another : NULL;
}

bool vb_rs_exists(int fd)
{
	return fd == only->fd || (another && fd == another->fd);
}

void vb_rs_put(struct vb_rsocket *rs) {}

void vb_rs_note_accepting(struct vb_rsocket *rs) {}

const struct vb_rs_defaults *vb_rs_defaults(void)
{
	static const struct vb_rs_defaults defaults = { .wake_up_ms = 5000 };
	return &defaults;
}

/* ---- Waiters ----------------------------------------------------------------------------------------------------- */

static bool has_both(const struct vb_rsocket *rs)
{
	return queue.taken >= 2;
}

static struct vb_rsocket rsocket_of(int type)
{
	struct vb_rsocket rs = { .type = type,
		.state = VB_RS_CONNECTED,

		.peer_state = VB_RS_PEER_READY,
		.cq = &cq,
		.completions = (struct ibv_comp_channel *)&queue };

	memset(&queue, 0, sizeof(queue));
	queue.to_come = 2;
	queue.channel = rs.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	vb_list_init(&rs.made);
	vb_list_init(&rs.requests);
	pthread_mutex_init(&rs.lock, NULL);
	pthread_cond_init(&rs.changed, NULL);
	return rs;
}

static void wait_in_time(int type)
{
	struct vb_rsocket rs = rsocket_of(type);
	int64_t began = vb_clock_us();

	pthread_mutex_lock(&rs.lock);
	assert_int_equal(vb_rs_wait(&rs, has_both, false, 0), 0);
	pthread_mutex_unlock(&rs.lock);
	assert_true(vb_clock_us() - began < LONGEST_US);
	close(rs.fd);
}

static void wait__hears_of_a_completion_that_comes_while_it_looks(void **state)
{
	wait_in_time(SOCK_STREAM);
	wait_in_time(SOCK_DGRAM);
}

/* One that is never ready is among them, as an epoll instance is. */
static void poll_in_time(struct vb_rsocket *rs)
{
	struct pollfd fds[] = { { .fd = rs->fd, .events = POLLIN },
		{ .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN } };
	int64_t began = vb_clock_us();

	only = rs;
	assert_int_equal(rpoll(fds, 2, 10000), 1);
	assert_true(vb_clock_us() - began < LONGEST_US);
	assert_int_equal(fds[0].revents, POLLIN);
	close(fds[0].fd);
	close(fds[1].fd);
}

static void poll__hears_of_a_completion_that_comes_while_it_looks(void **state)
{
	struct vb_rsocket rs = rsocket_of(SOCK_DGRAM);
	poll_in_time(&rs);
}

static void poll__hears_of_what_another_thread_took_since_it_looked(void **state)
{
	struct vb_rsocket rs = rsocket_of(SOCK_DGRAM);
	queue.to_come = 0;
	queue.has_thief = true;
	poll_in_time(&rs);
}

/* Each look of one call at many that share their lanes. */
static void poll__looks_once_at_the_lanes_of_many(void **state)
{
	struct vb_rsocket first = rsocket_of(SOCK_STREAM), second = first;
	queue.to_come = 0;
	second.fd = eventfd(0, EFD_CLOEXEC);
	only = &first;
	another = &second;
	looks_at_lanes = looks_here = sleeps = 0;
	struct pollfd fds[] = { { .fd = first.fd, .events = POLLIN }, { .fd = second.fd, .events = POLLIN } };
	assert_int_equal(rpoll(fds, 2, 0), 0);
	assert_int_equal(looks_at_lanes, 2); /* before it arms them, and then */
	assert_int_equal(looks_here, 1 + 3);
	assert_int_equal(sleeps, 0);
	looks_at_lanes = 0;
	assert_int_equal(rpoll(fds, 2, 20), 0);
	assert_in_range(sleeps, 1, 3);
	another = NULL;
	close(first.fd);
	close(second.fd);
}

static void select__hears_of_a_completion_that_comes_while_it_looks(void **state)
{
	struct vb_rsocket rs = rsocket_of(SOCK_DGRAM);
	struct timeval timeout = { .tv_sec = 10 };
	int other = eventfd(0, EFD_CLOEXEC);
	int64_t began = vb_clock_us();
	fd_set in;

	only = &rs;
	FD_ZERO(&in);
	FD_SET(rs.fd, &in);
	FD_SET(other, &in);
	assert_int_equal(rselect(other + 1, &in, NULL, NULL, &timeout), 1);
	assert_true(vb_clock_us() - began < LONGEST_US);
	close(rs.fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait__hears_of_a_completion_that_comes_while_it_looks),
		cmocka_unit_test(poll__hears_of_a_completion_that_comes_while_it_looks),
		cmocka_unit_test(poll__hears_of_what_another_thread_took_since_it_looked),
		cmocka_unit_test(poll__looks_once_at_the_lanes_of_many),
		cmocka_unit_test(select__hears_of_a_completion_that_comes_while_it_looks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
