/* Host lanes over the port in memory: nothing of a host lane is UDP's. Two of them, each of a process of its own as far
 * as they know, without a broker; their progress threads run. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "../memory_port.h"
#include "../unit.h"
#include "host/lanes/host_lane_state.h"
#include "host/process.h"

enum { MTU = 1024, BYTES = 65536, DEPTH = 16, PATIENCE_MS = 5000 };

struct end {
	struct vb_process process;
	struct vb_host_lane *host_lane;
	struct vb_device device;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	struct vb_gid gid;
	uint8_t *memory;
	int notified; /* eventfd */
};

static struct end ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void on_event(const struct vb_event *event)
{
	if (event->kind == VB_EVENT_COMPLETION)
		eventfd_write(((struct end *)vb_cq_user(event->cq))->notified, 1);
}

static void open_host_lane(struct end *end, struct vb_port *port, uint8_t n, bool has_thread)
{
	struct vb_lane_config lane = { .seed = n, .slot = n, .turn_bytes = port->largest_segment };

	end->process = (struct vb_process){ .link_fd = -1, .connections_fd = -1 };
	vb_list_init(&end->process.devices);
	assert_int_equal(vb_host_lane_create(&end->process, &end->host_lane), 0);
	end->process.host_lanes[0] = end->host_lane;
	end->process.host_lane_count = 1;
	end->host_lane->port = port;
	assert_int_equal(vb_lane_create(&lane, &end->host_lane->lane), 0);
	assert_int_equal(vb_progress_start(end->host_lane, has_thread), 0);
}

static void open_end(struct end *end, struct vb_port *port, uint8_t n, bool has_thread)
{
	end->gid = vb_gid_from_ipv4(10, 0, 0, n);
	end->memory = calloc(1, BYTES);
	end->notified = eventfd(0, EFD_NONBLOCK);
	open_host_lane(end, port, n, has_thread);
	end->device = (struct vb_device){
		.process = &end->process, .sink = { .on_event = on_event }, .info = { .name = "vb_memory" }
	};
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = n, .mtu = MTU }, &end->device.nic), 0);
	assert_int_equal(vb_nic_set_gid(end->device.nic, 0, &end->gid), 0);
	vb_process_lock(&end->process);
	vb_list_add_tail(&end->process.devices, &end->device.link);
	vb_process_unlock(&end->process);
	struct vb_mr_config mr = { .memory = end->memory,
		.iova = (uintptr_t)end->memory,
		.length = BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE };
	assert_int_equal(vb_pd_create(end->device.nic, &end->pd), 0);
	assert_int_equal(
		vb_cq_create(end->device.nic, &(struct vb_cq_config){ .capacity = 64, .user = end }, &end->cq), 0);
	assert_int_equal(vb_mr_register(end->pd, &mr, &end->mr), 0);
}

static void create_qp(struct end *end, enum vb_qp_type type)
{
	struct vb_qp_config config = { .type = type,
		.pd = end->pd,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.max_send_wr = DEPTH,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64 };

	assert_int_equal(vb_host_lane_lock(end->host_lane), 0);
	assert_int_equal(vb_qp_create(vb_host_lane_lane(end->host_lane), &config, &end->qp), 0);
	vb_host_lane_unlock(end->host_lane);
}

static void modify(struct end *end, struct vb_qp_attr *attr, enum vb_qp_state state, uint32_t mask)
{
	attr->state = state;
	assert_int_equal(vb_host_lane_lock(end->host_lane), 0);
	assert_int_equal(vb_qp_modify(end->qp, attr, VB_QP_STATE | mask, vb_host_now()), 0);
	vb_host_lane_unlock(end->host_lane);
}

static void connect(struct end *end, const struct end *peer, enum vb_qp_type type)
{
	struct vb_qp_attr attr = { .path_mtu = MTU,
		.port = 1,
		.dest_qpn = vb_qp_number(peer->qp),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.access = VB_ACCESS_REMOTE_WRITE,
		.av = { .sgid = end->gid, .dgid = peer->gid } };
	bool is_rc = type == VB_QP_RC;

	modify(end, &attr, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	modify(end, &attr, VB_QPS_RTR,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
			(is_rc ? VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER : 0));
	modify(end, &attr, VB_QPS_RTS,
		VB_QP_SQ_PSN |
			(is_rc ? VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC : 0));
}

static void open_ends(enum vb_qp_type type, bool has_thread)
{
	struct vb_port *ports[2];

	memory_port_pair(&mutex, ports);
	for (unsigned i = 0; i < 2; i++) {
		open_end(&ends[i], ports[i], (uint8_t)(i + 1), i == 1 || has_thread);
		create_qp(&ends[i], type);
	}
	connect(&ends[0], &ends[1], type);
	connect(&ends[1], &ends[0], type);
}

static void destroy_qp(struct end *end)
{
	assert_int_equal(vb_host_lane_lock(end->host_lane), 0);
	assert_int_equal(vb_qp_destroy(end->qp), 0);
	vb_host_lane_unlock(end->host_lane);
	end->qp = NULL;
}

static void close_ends(void)
{
	for (unsigned i = 0; i < 2; i++)
		if (ends[i].qp)
			destroy_qp(&ends[i]);
	for (unsigned i = 0; i < 2; i++)
		vb_progress_stop(ends[i].host_lane); /* the other writes to this one's port until then */
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = &ends[i];
		vb_host_lane_destroy(end->host_lane);
		assert_int_equal(vb_mr_invalidate(end->mr), 0);
		vb_mr_free(end->mr);
		assert_int_equal(vb_cq_destroy(end->cq), 0);
		assert_int_equal(vb_pd_destroy(end->pd), 0);
		vb_nic_destroy(end->device.nic);
		close(end->notified);
		free(end->memory);
	}
}

static void post_at(struct end *end, struct vb_send_wr wr, uint32_t length)
{
	struct vb_sge sge = { (uintptr_t)end->memory, length, vb_mr_key(end->mr) };

	wr.sges = &sge;
	wr.sge_count = 1;
	vb_sq_begin(end->qp);
	assert_int_equal(vb_sq_put(end->qp, &wr), 0);
	vb_sq_end(end->qp, true);
	vb_host_lane_kick(end->host_lane);
}

static void post(struct vb_send_wr wr, uint32_t length)
{
	post_at(&ends[0], wr, length);
}

static void post_write(uint64_t wr_id, uint32_t length)
{
	post((struct vb_send_wr){ .wr_id = wr_id,
		     .opcode = VB_WR_RDMA_WRITE,
		     .flags = VB_SEND_SIGNALED,
		     .remote_addr = (uintptr_t)ends[1].memory,
		     .rkey = vb_mr_key(ends[1].mr) },
		length);
}

static void take_one(uint64_t wr_id)
{
	struct vb_wc wc;

	assert_int_equal(vb_cq_poll(ends[0].cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
}

static void write_and_wait(uint64_t wr_id)
{
	eventfd_t ignored;

	vb_cq_request_notify(ends[0].cq, false);
	post_write(wr_id, BYTES);
	assert_true(vb_device_wait(&ends[0].device, VB_ALL_LANES, ends[0].notified, NULL));
	eventfd_read(ends[0].notified, &ignored);
	take_one(wr_id);
}

static void fill(unsigned round)
{
	for (unsigned i = 0; i < BYTES; i++)
		ends[0].memory[i] = (uint8_t)(i * 7 + i / 253 + round);
}

/* The waiter drives one end, the progress thread the other; without a thread the waiter is all there is. */
static void waiter__drives_any_port(void **state)
{
	for (unsigned has_thread = 0; has_thread < 2; has_thread++) {
		open_ends(VB_QP_RC, has_thread);
		for (unsigned i = 0; i < 20; i++) {
			fill(i);
			write_and_wait(i);
			assert_memory_equal(ends[0].memory, ends[1].memory, BYTES);
		}
		close_ends();
	}
}

static void poller__drives_any_port(void **state)
{
	open_ends(VB_QP_RC, true);
	for (unsigned i = 0; i < 200; i++) {
		post_write(i, BYTES / 4);
		while (vb_cq_is_empty(ends[0].cq))
			vb_device_drive(&ends[0].device, VB_ALL_LANES);
		take_one(i);
	}
	close_ends();
}

enum { SEND_TAKES_US = 100 };

struct glimpse {
	unsigned sends;
	enum vb_owner owner;
	vb_time polled_at;
};

/* Without what vb_host_lane_unlock does beside. */
static struct glimpse look(struct vb_host_lane *d)
{
	pthread_mutex_lock(&d->mutex);
	const struct vb_ownership *o = &vb_state_of(d)->ownership;
	struct glimpse seen = { memory_port_of(d->port)->sends, vb_ownership_owner(o), o->polled_at };
	pthread_mutex_unlock(&d->mutex);
	return seen;
}

/* A turn that sends much takes longer than pollers may be away, and is none of their absences. */
static void poller__is_there_at_the_end_of_a_long_turn(void **state)
{
	open_ends(VB_QP_RC, true);
	struct vb_host_lane *d = ends[0].host_lane;
	pthread_mutex_lock(&d->mutex);
	memory_port_of(d->port)->send_takes_us = SEND_TAKES_US;
	pthread_mutex_unlock(&d->mutex);
	for (unsigned long_turns = 0; long_turns < 20;) {
		post_write(0, BYTES / 4);
		while (vb_cq_is_empty(ends[0].cq)) {
			struct glimpse before = look(d);
			vb_time begin = vb_host_now();
			vb_device_drive(&ends[0].device, VB_ALL_LANES);
			struct glimpse after = look(d);
			if (after.sends == before.sends || before.owner != VB_OWNER_POLLERS ||
				after.owner != VB_OWNER_POLLERS)
				continue;
			assert_true(vb_time_since(begin, after.polled_at) >= SEND_TAKES_US * VB_US);
			long_turns++;
		}
		take_one(0);
	}
	close_ends();
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, PATIENCE_MS) == 1;
}

/* Nobody of the program's is there: the threads sleep on the ports. */
static void thread__goes_on_when_descriptors_change(void **state)
{
	eventfd_t ignored;

	open_ends(VB_QP_RC, true);
	for (unsigned i = 0; i < 6; i++) {
		struct end *end = &ends[i % 2];
		assert_int_equal(vb_host_lane_lock(end->host_lane), 0);
		memory_port_change_fd(end->host_lane->port);
		vb_host_lane_unlock(end->host_lane);
		vb_cq_request_notify(ends[0].cq, false);
		post_write(i, BYTES);
		assert_true(is_readable(ends[0].notified));
		eventfd_read(ends[0].notified, &ignored);
		take_one(i);
	}
	close_ends();
}

static void await_message(struct end *end, bool waits)
{
	struct vb_wc wc;
	eventfd_t ignored;

	if (waits)
		assert_true(vb_device_wait(&end->device, VB_ALL_LANES, end->notified, NULL));
	assert_true(is_readable(end->notified));
	eventfd_read(end->notified, &ignored);
	assert_int_equal(vb_cq_poll(end->cq, &wc, 1), 1);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
}

/* It has what came long ago, and its descriptor says nothing of it: as with packets that are late on purpose. */
static void port__is_looked_at_when_it_wanted_to_be(void **state)
{
	open_ends(VB_QP_UC, true);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vb_host_lane_lock(ends[i].host_lane), 0);
		memory_port_of(ends[i].host_lane->port)->holds_back = 2 * VB_MS;
		vb_host_lane_unlock(ends[i].host_lane);
	}
	for (unsigned i = 0; i < 20; i++) {
		struct end *from = &ends[i % 2], *to = &ends[(i + 1) % 2];
		struct vb_sge sge = { (uintptr_t)to->memory, 64, vb_mr_key(to->mr) };
		assert_int_equal(vb_rq_post(to->qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
		vb_cq_request_notify(to->cq, false);
		alarm(60);
		post_at(from, (struct vb_send_wr){ .opcode = VB_WR_SEND }, 64);
		await_message(to, i % 4 >= 2);
	}
	alarm(0);
	close_ends();
}

static unsigned handed_out(struct end *end)
{
	assert_int_equal(vb_host_lane_lock(end->host_lane), 0);
	unsigned count = vb_lane_handed_out(vb_host_lane_lane(end->host_lane));
	vb_host_lane_unlock(end->host_lane);
	return count;
}

/* A stopped port has the bytes; grace waits until it has let go of them, and a destroyed QP's are still there. */
static void *let_go_later(void *port)
{
	static const struct timespec later = { .tv_nsec = 50000000 };

	nanosleep(&later, NULL);
	memory_port_stop(port, false);
	return NULL;
}

static void grace__waits_for_what_is_at_the_port(void **state)
{
	pthread_t thread;

	open_ends(VB_QP_UC, true);
	memory_port_stop(ends[0].host_lane->port, true);
	for (unsigned i = 0; i < 4; i++)
		post((struct vb_send_wr){ .opcode = VB_WR_SEND, .flags = VB_SEND_INLINE }, 64);
	assert_int_equal(handed_out(&ends[0]), 4);
	destroy_qp(&ends[0]);
	assert_int_equal(handed_out(&ends[0]), 4);
	assert_int_equal(pthread_create(&thread, NULL, let_go_later, ends[0].host_lane->port), 0);
	vb_device_grace(&ends[0].device);
	assert_int_equal(handed_out(&ends[0]), 0);
	pthread_join(thread, NULL);
	close_ends();
}

/* As verbs/ posts. */
static void post_small(uint64_t wr_id)
{
	struct vb_sge sge = { (uintptr_t)ends[0].memory, 8, vb_mr_key(ends[0].mr) };
	struct vb_send_wr wr = { .wr_id = wr_id,
		.opcode = VB_WR_RDMA_WRITE,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.remote_addr = (uintptr_t)ends[1].memory,
		.rkey = vb_mr_key(ends[1].mr) };

	vb_sq_begin(ends[0].qp);
	assert_int_equal(vb_sq_put(ends[0].qp, &wr), 0);
	vb_host_lane_end_post(ends[0].host_lane, ends[0].qp);
}

/* Without what vb_host_lane_unlock does beside. */
static unsigned at_port(struct end *end)
{
	pthread_mutex_lock(&end->host_lane->mutex);
	unsigned count = vb_lane_handed_out(end->host_lane->lane);
	pthread_mutex_unlock(&end->host_lane->mutex);
	return count;
}

/* The port keeps what it has, so nothing is acknowledged meanwhile. The thread may just look whether there is
 * something to do, and takes along what has been posted; so it is tried again. */
static void open_with_held_posts(unsigned posts)
{
	for (unsigned tries = 0;; tries++) {
		open_ends(VB_QP_RC, true);
		memory_port_stop(ends[0].host_lane->port, true);
		for (unsigned i = 0; i < posts; i++)
			post_small(i);
		if (at_port(&ends[0]) == 1)
			return;
		assert_true(tries < 100);
		memory_port_stop(ends[0].host_lane->port, false);
		close_ends();
	}
}

static void take_all(unsigned posts)
{
	memory_port_stop(ends[0].host_lane->port, false);
	for (unsigned i = 0; i < posts; i++) {
		while (vb_cq_is_empty(ends[0].cq))
			vb_device_drive(&ends[0].device, VB_ALL_LANES);
		take_one(i);
	}
}

/* A poll gives way to a thread that waits for the mutex, which may wait for a core too. */
static void post__rides_behind_others_until_the_next_poll(void **state)
{
	open_with_held_posts(4);
	const vb_time until = vb_time_add(vb_host_now(), PATIENCE_MS * VB_MS);
	while (at_port(&ends[0]) == 1 && vb_time_before(vb_host_now(), until))
		vb_device_drive(&ends[0].device, VB_ALL_LANES);
	assert_int_equal(at_port(&ends[0]), 4);
	take_all(4);
	close_ends();
}

static void post__that_rides_is_settled_with_the_rest(void **state)
{
	open_with_held_posts(2);
	pthread_mutex_lock(&ends[0].host_lane->mutex);
	vb_host_lane_settle(ends[0].host_lane);
	pthread_mutex_unlock(&ends[0].host_lane->mutex);
	assert_int_equal(at_port(&ends[0]), 2);
	take_all(2);
	close_ends();
}

/* Whether it polled before, or never did: the thread takes care of what it left. */
static void post__rides_not_for_good_when_the_program_goes_away(void **state)
{
	static const struct timespec a_moment = { .tv_nsec = 1000000 };

	for (unsigned polls = 0; polls <= 400; polls += 400) {
		open_ends(VB_QP_RC, true);
		for (unsigned i = 0; i < polls; i++)
			vb_device_drive(&ends[0].device, VB_ALL_LANES);
		for (uint64_t round = 0; round < 50; round++) {
			for (unsigned i = 0; i < 4; i++)
				post_small(4 * round + i);
			for (unsigned i = 0; i < 4; i++) {
				for (unsigned ms = 0; ms < PATIENCE_MS && vb_cq_is_empty(ends[0].cq); ms++)
					nanosleep(&a_moment, NULL);
				take_one(4 * round + i);
			}
		}
		close_ends();
	}
}

/* A reader of stderr who does not read. */
static int block_stderr(int *saved)
{
	char zeros[4096] = { 0 };
	int ends_of_pipe[2];

	assert_int_equal(pipe2(ends_of_pipe, O_NONBLOCK), 0);
	while (write(ends_of_pipe[1], zeros, sizeof(zeros)) > 0)
		;
	fcntl(ends_of_pipe[1], F_SETFL, 0);
	*saved = dup(STDERR_FILENO);
	dup2(ends_of_pipe[1], STDERR_FILENO);
	close(ends_of_pipe[1]);
	return ends_of_pipe[0];
}

/* All that was written, without the zeros; ends with the line's end. */
static void read_line(int fd, char *line, size_t size)
{
	size_t length = 0;
	char byte;

	while (is_readable(fd) && read(fd, &byte, 1) == 1 && byte != '\n')
		if (byte && length + 1 < size)
			line[length++] = byte;
	line[length] = '\0';
}

static bool lock_in_time(struct vb_host_lane *d)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	return pthread_mutex_timedlock(&d->mutex, &until) == 0;
}

/* Who explains a death is held up by stderr, and nobody else is. */
static void death__is_told_when_the_mutex_has_been_given_away(void **state)
{
	static const struct timespec a_moment = { .tv_nsec = 1000000 };
	char line[1024], qpn[64];
	int saved, reader;

	open_ends(VB_QP_RC, true);
	snprintf(qpn, sizeof(qpn), "vb_memory qpn 0x%x: the peer refused", vb_qp_number(ends[0].qp));
	reader = block_stderr(&saved);
	post((struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .remote_addr = 1, .rkey = 1 }, 8);
	for (unsigned i = 0; i < PATIENCE_MS && vb_qp_state(ends[0].qp) != VB_QPS_ERR; i++)
		nanosleep(&a_moment, NULL);
	assert_int_equal(vb_qp_state(ends[0].qp), VB_QPS_ERR);
	nanosleep(&a_moment, NULL);
	bool is_free = lock_in_time(ends[0].host_lane);
	if (is_free)
		pthread_mutex_unlock(&ends[0].host_lane->mutex);
	do { /* the peer's has died too */
		read_line(reader, line, sizeof(line));
	} while (*line && !strstr(line, qpn));
	dup2(saved, STDERR_FILENO);
	assert_true(is_free);
	assert_true(*line);
	close(saved);
	close_ends();
	close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiter__drives_any_port),
		cmocka_unit_test(poller__drives_any_port),
		cmocka_unit_test(poller__is_there_at_the_end_of_a_long_turn),
		cmocka_unit_test(thread__goes_on_when_descriptors_change),
		cmocka_unit_test(port__is_looked_at_when_it_wanted_to_be),
		cmocka_unit_test(grace__waits_for_what_is_at_the_port),
		cmocka_unit_test(post__rides_behind_others_until_the_next_poll),
		cmocka_unit_test(post__that_rides_is_settled_with_the_rest),
		cmocka_unit_test(post__rides_not_for_good_when_the_program_goes_away),
		cmocka_unit_test(death__is_told_when_the_mutex_has_been_given_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
