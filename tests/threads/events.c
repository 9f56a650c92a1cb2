/* Completion channels and asynchronous events: who is woken, by what, and who waits for whom. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include "rig.h"

static unsigned scaled(unsigned count)
{
	return is_sanitized() ? count / 5 : count;
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	return poll(&wait, 1, timeout_ms) == 1;
}

static void set_nonblocking(int fd)
{
	REQUIRE_EQUAL(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/* The one event that must now be there, acknowledged. */
static void take_event(struct pair_end *end)
{
	struct ibv_cq *cq;
	void *context;

	REQUIRE_EQUAL(ibv_get_cq_event(end->channel, &cq, &context), 0);
	REQUIRE(cq == end->cq);
	ibv_ack_cq_events(cq, 1);
}

static void send_bytes(struct pair_end *from, unsigned flags)
{
	struct request request = {
		.opcode = IBV_WR_SEND, .id = 1000, .local = &from->buffer, .length = 16, .flags = flags
	};

	REQUIRE_EQUAL(post(from->qp, &request), 0);
}

static void fill_receives(struct pair_end *end, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		REQUIRE_EQUAL(post_receive(end->qp, i, &end->buffer, 64 * i, 64), 0);
}

/* ---- Blocking threads -------------------------------------------------------------------------------------------- */

/* Sleeps for the next receive completion; sends are taken on the way. */
static void sleep_for_receive(struct pair_end *end)
{
	for (;;) {
		struct ibv_wc wc;
		int got;
		while ((got = ibv_poll_cq(end->cq, 1, &wc)) > 0) {
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode != IBV_WC_RECV)
				continue;
			REQUIRE_EQUAL(post_receive(end->qp, wc.wr_id, &end->buffer, 64 * wc.wr_id, 64), 0);
			return;
		}
		REQUIRE_EQUAL(got, 0);
		take_event(end);
		REQUIRE_EQUAL(ibv_req_notify_cq(end->cq, 0), 0);
	}
}

struct pong {
	struct pair_end *end;
	unsigned rounds;
};

static void *answer(void *argument)
{
	struct pong *pong = argument;

	for (unsigned i = 0; i < pong->rounds; i++) {
		sleep_for_receive(pong->end);
		send_bytes(pong->end, 0);
	}
	return NULL;
}

static void two_blocked_threads_play_ping_pong(void)
{
	struct pair pair = make_pair(4096, 32);
	struct pong pong = { &pair.b, scaled(5000) };

	fill_receives(&pair.a, 8);
	fill_receives(&pair.b, 8);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.a.cq, 0), 0);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 0), 0);
	pthread_t thread = thread_start(answer, &pong);
	for (unsigned i = 0; i < pong.rounds; i++) {
		send_bytes(&pair.a, 0);
		sleep_for_receive(&pair.a);
	}
	thread_join(thread);
	free_pair(&pair);
}

/* Several threads sleep on one channel with several queues behind it; each event wakes one of them, once. */
#define SLEEPERS 3
#define QUEUES   4

struct dormitory {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cqs[QUEUES];
	atomic_uint events, completions;
	atomic_bool is_over;
};

static void *sleep_on_channel(void *argument)
{
	struct dormitory *d = argument;

	for (;;) {
		struct ibv_cq *cq;
		void *context;
		struct ibv_wc wc;
		REQUIRE_EQUAL(ibv_get_cq_event(d->channel, &cq, &context), 0);
		REQUIRE(context == d);
		atomic_fetch_add(&d->events, 1);
		ibv_ack_cq_events(cq, 1);
		if (atomic_load(&d->is_over))
			return NULL;
		REQUIRE_EQUAL(ibv_req_notify_cq(cq, 0), 0);
		while (ibv_poll_cq(cq, 1, &wc) > 0) {
			REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
			atomic_fetch_add(&d->completions, 1);
		}
	}
}

static void several_threads_sleep_on_one_channel(void)
{
	struct pair_end hub = make_end(4096, 16), far = make_end(4096, 16);
	struct dormitory d = { .channel = hub.channel };
	struct ibv_qp *qps[QUEUES], *far_qps[QUEUES];
	pthread_t threads[SLEEPERS];
	unsigned count = scaled(4000);

	for (unsigned i = 0; i < QUEUES; i++) {
		REQUIRE((d.cqs[i] = ibv_create_cq(hub.context, 64, &d, d.channel, 0)));
		REQUIRE_EQUAL(ibv_req_notify_cq(d.cqs[i], 0), 0);
		qps[i] = make_qp(hub.pd, (struct qp_size){ .send_cq = d.cqs[i], .depth = 16 });
		far_qps[i] = make_qp(far.pd, (struct qp_size){ .send_cq = far.cq, .depth = 16 });
		connect_pair(qps[i], far_qps[i]);
	}
	for (unsigned i = 0; i < SLEEPERS; i++)
		threads[i] = thread_start(sleep_on_channel, &d);
	for (unsigned i = 0; i < count; i++) {
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &hub.buffer,
			.length = 8,
			.remote = (uintptr_t)far.buffer.bytes,
			.rkey = far.buffer.mr->rkey };
		double began = seconds_now();
		while (i - atomic_load(&d.completions) >= 16)
			if (seconds_now() - began > 20)
				fail(__FILE__, __LINE__, "%u of %u completions, %u events", d.completions, i, d.events);
		REQUIRE_EQUAL(post(qps[i % QUEUES], &request), 0);
	}
	while (atomic_load(&d.completions) < count)
		sleep_ms(1);
	REQUIRE(atomic_load(&d.events) <= count);
	atomic_store(&d.is_over, true);
	for (unsigned i = 0; i < SLEEPERS; i++) { /* one more event wakes one more sleeper */
		struct ibv_cq *cq = d.cqs[i];
		REQUIRE_EQUAL(ibv_req_notify_cq(cq, 0), 0);
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.local = &hub.buffer,
			.length = 8,
			.remote = (uintptr_t)far.buffer.bytes,
			.rkey = far.buffer.mr->rkey };
		REQUIRE_EQUAL(post(qps[i], &request), 0);
	}
	for (unsigned i = 0; i < SLEEPERS; i++)
		thread_join(threads[i]);
	for (unsigned i = 0; i < QUEUES; i++) {
		REQUIRE_EQUAL(ibv_destroy_qp(qps[i]), 0);
		REQUIRE_EQUAL(ibv_destroy_qp(far_qps[i]), 0);
		REQUIRE_EQUAL(ibv_destroy_cq(d.cqs[i]), 0);
	}
	free_end(&hub);
	free_end(&far);
}

/* ---- What makes an event ----------------------------------------------------------------------------------------- */

static void solicited_only_sleeps_through_the_rest(void)
{
	struct pair pair = make_pair(4096, 32);
	struct ibv_wc wc;

	fill_receives(&pair.b, 8);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 1), 0);
	send_bytes(&pair.a, 0);
	wait_success(pair.a.cq, 1000);
	REQUIRE(!is_readable(pair.b.channel->fd, 50));
	send_bytes(&pair.a, IBV_SEND_SOLICITED);
	take_event(&pair.b);
	REQUIRE(!is_readable(pair.b.channel->fd, 0)); /* one arming, one event */
	wait_success(pair.b.cq, 0);
	wait_success(pair.b.cq, 1);
	/* Any completion after arming for any; a failed one even when armed for solicited ones. */
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 1), 0);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 0), 0);
	send_bytes(&pair.a, 0);
	take_event(&pair.b);
	wait_success(pair.b.cq, 2);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 1), 0);
	to_error(pair.b.qp);
	take_event(&pair.b);
	for (unsigned i = 3; i < 8; i++) {
		wc = wait_completion(pair.b.cq);
		REQUIRE_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
		REQUIRE_EQUAL(wc.wr_id, i);
	}
	free_pair(&pair);
}

static void nonblocking_descriptors_say_eagain(void)
{
	struct pair pair = make_pair(4096, 32);
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	set_nonblocking(pair.b.channel->fd);
	set_nonblocking(pair.b.context->async_fd);
	errno = 0;
	REQUIRE_EQUAL(ibv_get_cq_event(pair.b.channel, &cq, &context), -1);
	REQUIRE_EQUAL(errno, EAGAIN);
	errno = 0;
	REQUIRE_EQUAL(ibv_get_async_event(pair.b.context, &event), -1);
	REQUIRE_EQUAL(errno, EAGAIN);
	fill_receives(&pair.b, 1);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 0), 0);
	send_bytes(&pair.a, 0);
	/* Nobody polls: the event comes by itself. */
	REQUIRE(is_readable(pair.b.channel->fd, 5000));
	take_event(&pair.b);
	REQUIRE_EQUAL(ibv_get_cq_event(pair.b.channel, &cq, &context), -1);
	wait_success(pair.b.cq, 0);
	free_pair(&pair);
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static atomic_int signals_taken;

static void on_signal(int number)
{
	atomic_fetch_add(&signals_taken, 1);
}

static void handle(int number, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	REQUIRE_EQUAL(sigaction(number, &action, NULL), 0);
}

struct sleeper {
	struct pair_end *end;
	int rc, error;
	atomic_bool is_back;
};

static void *sleep_for_event(void *argument)
{
	struct sleeper *sleeper = argument;
	struct ibv_cq *cq;
	void *context;

	sleeper->rc = ibv_get_cq_event(sleeper->end->channel, &cq, &context);
	sleeper->error = errno;
	if (sleeper->rc == 0)
		ibv_ack_cq_events(cq, 1);
	atomic_store(&sleeper->is_back, true);
	return NULL;
}

static void a_signal_ends_a_wait(void)
{
	struct pair pair = make_pair(4096, 32);
	struct sleeper sleeper = { .end = &pair.b };

	handle(SIGUSR1, 0);
	pthread_t thread = thread_start(sleep_for_event, &sleeper);
	while (!atomic_load(&sleeper.is_back)) {
		pthread_kill(thread, SIGUSR1);
		sleep_ms(5);
	}
	thread_join(thread);
	REQUIRE_EQUAL(sleeper.rc, -1);
	REQUIRE_EQUAL(sleeper.error, EINTR);
	free_pair(&pair);
}

/* read() of a kernel's channel is restarted after such a signal, and programs with an alarm rely on it. */
static void a_signal_that_restarts_does_not_end_a_wait(void)
{
	struct pair pair = make_pair(4096, 32);
	struct sleeper sleeper = { .end = &pair.b };

	handle(SIGUSR1, SA_RESTART);
	fill_receives(&pair.b, 1);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 0), 0);
	pthread_t thread = thread_start(sleep_for_event, &sleeper);
	for (unsigned i = 0; i < 20; i++) {
		sleep_ms(5);
		pthread_kill(thread, SIGUSR1);
	}
	REQUIRE(atomic_load(&signals_taken) > 0);
	REQUIRE(!atomic_load(&sleeper.is_back));
	send_bytes(&pair.a, 0);
	thread_join(thread);
	REQUIRE_EQUAL(sleeper.rc, 0);
	wait_success(pair.b.cq, 0);
	free_pair(&pair);
}

/* ---- Asynchronous events ----------------------------------------------------------------------------------------- */

struct watcher {
	struct ibv_context *context;
	atomic_uint seen;
	unsigned wanted;
};

static void *watch(void *argument)
{
	struct watcher *w = argument;

	while (atomic_load(&w->seen) < w->wanted) {
		struct ibv_async_event event;
		REQUIRE_EQUAL(ibv_get_async_event(w->context, &event), 0);
		if (event.event_type == IBV_EVENT_QP_ACCESS_ERR)
			atomic_fetch_add(&w->seen, 1);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

static void a_blocked_watcher_sees_every_qp_die(void)
{
	struct pair_end a = make_end(4096, 16), b = make_end(4096, 16);
	struct watcher watcher = { .context = b.context, .wanted = 20 };
	pthread_t thread = thread_start(watch, &watcher);

	for (unsigned i = 0; i < watcher.wanted; i++) {
		struct ibv_qp *from = make_qp(a.pd, (struct qp_size){ .send_cq = a.cq, .depth = 4 });
		struct ibv_qp *to = make_qp(b.pd, (struct qp_size){ .send_cq = b.cq, .depth = 4 });
		struct request bad = { .opcode = IBV_WR_RDMA_WRITE,
			.local = &a.buffer,
			.length = 8,
			.remote = (uintptr_t)b.buffer.bytes,
			.rkey = b.buffer.mr->rkey ^ 0x5500 };
		connect_pair(from, to);
		REQUIRE_EQUAL(post(from, &bad), 0);
		REQUIRE_EQUAL(wait_completion(a.cq).status, IBV_WC_REM_ACCESS_ERR);
		while (atomic_load(&watcher.seen) <= i)
			sleep_ms(1);
		REQUIRE_EQUAL(ibv_destroy_qp(from), 0);
		REQUIRE_EQUAL(ibv_destroy_qp(to), 0);
	}
	thread_join(thread);
	free_end(&a);
	free_end(&b);
}

/* ---- Who waits for whom ------------------------------------------------------------------------------------------ */

struct destroyer {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	atomic_bool is_done;
};

static void *destroy(void *argument)
{
	struct destroyer *d = argument;

	if (d->cq)
		REQUIRE_EQUAL(ibv_destroy_cq(d->cq), 0);
	if (d->qp)
		REQUIRE_EQUAL(ibv_destroy_qp(d->qp), 0);
	atomic_store(&d->is_done, true);
	return NULL;
}

static void destroying_a_cq_waits_for_its_acks(void)
{
	struct pair_end end = make_end(4096, 16);
	struct ibv_cq *cq = ibv_create_cq(end.context, 16, NULL, end.channel, 0), *of;
	void *context;

	REQUIRE(cq);
	struct ibv_qp *qp = make_qp(end.pd, (struct qp_size){ .send_cq = cq, .depth = 8 });
	connect_pair(qp, end.qp);
	for (unsigned i = 0; i < 3; i++) { /* two are delivered, the third stays in the channel */
		struct request request = { .opcode = IBV_WR_RDMA_WRITE,
			.id = i,
			.local = &end.buffer,
			.length = 8,
			.remote = (uintptr_t)end.buffer.bytes + 64,
			.rkey = end.buffer.mr->rkey };
		REQUIRE_EQUAL(ibv_req_notify_cq(cq, 0), 0);
		REQUIRE_EQUAL(post(qp, &request), 0);
		wait_success(cq, i);
		if (i < 2)
			REQUIRE_EQUAL(ibv_get_cq_event(end.channel, &of, &context), 0);
	}
	REQUIRE_EQUAL(ibv_destroy_qp(qp), 0);
	struct destroyer destroyer = { .cq = cq };
	pthread_t thread = thread_start(destroy, &destroyer);
	sleep_ms(50);
	REQUIRE(!atomic_load(&destroyer.is_done));
	ibv_ack_cq_events(cq, 1);
	sleep_ms(50);
	REQUIRE(!atomic_load(&destroyer.is_done));
	ibv_ack_cq_events(cq, 1);
	thread_join(thread);
	REQUIRE(!is_readable(end.channel->fd, 0));
	free_end(&end);
}

static void destroying_a_qp_waits_for_its_acks(void)
{
	struct pair_end a = make_end(4096, 16), b = make_end(4096, 16);
	struct request bad = { .opcode = IBV_WR_RDMA_WRITE,
		.local = &a.buffer,
		.length = 8,
		.remote = (uintptr_t)b.buffer.bytes,
		.rkey = b.buffer.mr->rkey ^ 0x5500 };
	struct ibv_qp *to = make_qp(b.pd, (struct qp_size){ .send_cq = b.cq, .depth = 4 });
	struct ibv_async_event event;

	connect_pair(a.qp, to);
	REQUIRE_EQUAL(post(a.qp, &bad), 0);
	REQUIRE_EQUAL(wait_completion(a.cq).status, IBV_WC_REM_ACCESS_ERR);
	do { /* the last of them stays unacknowledged */
		REQUIRE_EQUAL(ibv_get_async_event(b.context, &event), 0);
		if (event.event_type != IBV_EVENT_QP_ACCESS_ERR)
			ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_QP_ACCESS_ERR);
	REQUIRE(event.element.qp == to);
	struct destroyer destroyer = { .qp = to };
	pthread_t thread = thread_start(destroy, &destroyer);
	sleep_ms(50);
	REQUIRE(!atomic_load(&destroyer.is_done));
	ibv_ack_async_event(&event);
	thread_join(thread);
	free_end(&a);
	free_end(&b);
}

/* Queues die with events armed, unread and being read by another thread. */
static void *read_and_ack(void *argument)
{
	struct pair_end *end = argument;
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		REQUIRE_EQUAL(ibv_get_cq_event(end->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		if (context)
			return NULL;
	}
}

static void queues_die_under_a_reader_of_their_channel(void)
{
	struct pair_end end = make_end(4096, 16);
	pthread_t reader = thread_start(read_and_ack, &end);
	int last;

	for (unsigned i = 0, rounds = scaled(1500); i <= rounds; i++) {
		struct ibv_cq *cq = ibv_create_cq(end.context, 16, i == rounds ? &last : NULL, end.channel, 0);
		REQUIRE(cq);
		struct ibv_qp *qp = make_qp(end.pd, (struct qp_size){ .send_cq = cq, .depth = 8 });
		to_init(qp);
		REQUIRE_EQUAL(post_receive(qp, i, &end.buffer, 0, 64), 0);
		REQUIRE_EQUAL(ibv_req_notify_cq(cq, 0), 0);
		to_error(qp);
		if (i == rounds)
			thread_join(reader);
		REQUIRE_EQUAL(ibv_destroy_qp(qp), 0);
		REQUIRE_EQUAL(ibv_destroy_cq(cq), 0);
	}
	free_end(&end);
}

/* ---- Cancelled threads ------------------------------------------------------------------------------------------- */

static void cancel_and_join(pthread_t thread)
{
	void *result;

	REQUIRE_EQUAL(pthread_cancel(thread), 0);
	REQUIRE_EQUAL(pthread_join(thread, &result), 0);
	REQUIRE(result == PTHREAD_CANCELED);
}

static void *post_what_kills(void *argument)
{
	struct pair_end *end = argument;
	struct ibv_sge nobodys = { .addr = (uintptr_t)end->buffer.bytes, .length = 8, .lkey = 1 };
	struct ibv_send_wr wr = { .sg_list = &nobodys, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	REQUIRE_EQUAL(
		pthread_cancel(pthread_self()), 0); /* pending: the next cancellation point is the last thing done */
	REQUIRE_EQUAL(ibv_post_send(end->qp, &wr, &bad), 0);
	pthread_testcancel();
	return NULL;
}

/* That the QP died is said on stderr with the lane's mutex held. */
static void a_cancelled_poster_leaves_no_lock(void)
{
	struct pair pair = make_pair(4096, 16);
	void *result;

	REQUIRE_EQUAL(pthread_join(thread_start(post_what_kills, &pair.a), &result), 0);
	REQUIRE(result == PTHREAD_CANCELED);
	free_pair(&pair);
}

static void *poll_until_cancelled(void *argument)
{
	struct ibv_cq_ex *cq = argument;
	struct ibv_poll_cq_attr attr = { 0 };

	for (;;) {
		for (unsigned i = 0; i < 1000; i++)
			REQUIRE_EQUAL(ibv_start_poll(cq, &attr), ENOENT);
		pthread_testcancel();
	}
	return NULL;
}

/* After some time of empty polls the library sleeps for a moment within them. */
static void a_cancelled_poller_leaves_the_queue_to_others(void)
{
	struct pair_end end = make_end(4096, 16);
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(end.context, &attr);
	struct ibv_poll_cq_attr none = { 0 };

	REQUIRE(cq);
	pthread_t poller = thread_start(poll_until_cancelled, cq);
	usleep(40000);
	cancel_and_join(poller);
	REQUIRE_EQUAL(ibv_start_poll(cq, &none), ENOENT);
	REQUIRE_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	free_end(&end);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(two_blocked_threads_play_ping_pong),
		CASE(several_threads_sleep_on_one_channel),
		CASE(solicited_only_sleeps_through_the_rest),
		CASE(nonblocking_descriptors_say_eagain),
		CASE(a_signal_ends_a_wait),
		CASE(a_signal_that_restarts_does_not_end_a_wait),
		CASE(a_blocked_watcher_sees_every_qp_die),
		CASE(destroying_a_cq_waits_for_its_acks),
		CASE(destroying_a_qp_waits_for_its_acks),
		CASE(queues_die_under_a_reader_of_their_channel),
		CASE(a_cancelled_poster_leaves_no_lock),
		CASE(a_cancelled_poller_leaves_the_queue_to_others),
	};
	return run_cases(argc, argv, CASES(cases));
}
