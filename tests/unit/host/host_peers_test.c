/* A local peer who is played by the test, of a process without a thread of its own: what he may say, what is made of
 * what he asks, and that nobody who sleeps is forgotten. In a network namespace of the test's own; skipped where none
 * may be made. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "connected.h"
#include "played_peer.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include "host/lanes/host_lane_state.h"
#include "host/peers/host_peer.h"
#include "host/process.h"
#include "wire/opcode.h"

#define SLOT        255 /* which the broker gives nobody */
#define QPS         24
#define BYTES       4096
#define PATIENCE_MS 2000

static struct vb_device *device;
static struct vb_host_lane *host_lane;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_qp *qps[QPS];  /* the peer of number i is i, of SLOT */
static struct vb_qp *datagrams; /* for which anybody is met; or NULL */
static struct vb_mr *mr;
static uint8_t memory[BYTES];
static int event_fd;
static bool is_able;

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void on_event(const struct vb_event *event)
{
	if (event->kind == VB_EVENT_COMPLETION)
		eventfd_write(event_fd, 1);
}

static const struct vb_device_sink sink = { on_event, on_port, on_gid_change, NULL };

static int open_device(void **state)
{
	struct vb_cq_config cq_config = { .capacity = 512 };
	struct vb_mr_config config = { .memory = memory,
		.iova = (uintptr_t)memory,
		.length = BYTES,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ };

	if (!is_able)
		return 0;
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(vb_device_open("vb_lo", &sink, &device), 0);
	host_lane = vb_device_host_lane(device);
	assert_int_equal(vb_pd_create(vb_device_nic(device), &pd), 0);
	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	assert_int_equal(vb_cq_create(vb_device_nic(device), &cq_config, &cq), 0);
	datagrams = receiving_datagrams_on(device, pd, cq);
	return 0;
}

static void take_no_datagrams(void)
{
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	if (datagrams)
		assert_int_equal(vb_qp_destroy(datagrams), 0);
	datagrams = NULL;
	vb_host_lane_unlock(host_lane);
}

static void connect_qps(unsigned count)
{
	struct vb_qp_attr attr = { .access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7 };

	for (unsigned i = 0; i < count; i++) {
		attr.dest_qpn = SLOT << 16 | (i + 1);
		qps[i] = connected_on(device, pd, cq, attr);
	}
}

static int close_device(void **state)
{
	if (!is_able)
		return 0;
	take_no_datagrams();
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	for (unsigned i = 0; i < QPS; i++)
		if (qps[i])
			assert_int_equal(vb_qp_destroy(qps[i]), 0);
	vb_host_lane_unlock(host_lane);
	memset(qps, 0, sizeof(qps));
	assert_int_equal(vb_cq_destroy(cq), 0);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_device_close(device);
	close(event_fd);
	return 0;
}

/* Our descriptors of a peer when its bell is shut down, right before it is closed. */
static const struct vb_host_peer *told_of_shutdown;
static unsigned shutdowns, bells_known_at_shutdown;

int shutdown(int fd, int how)
{
	if (told_of_shutdown) {
		shutdowns++;
		bells_known_at_shutdown += told_of_shutdown->bell >= 0 || told_of_shutdown->pidfd >= 0;
	}
	return (int)syscall(SYS_shutdown, fd, how);
}

#define NEEDS_NAMESPACE                                                                                                \
	if (!is_able)                                                                                                  \
	skip()

/* ---- Doing things ------------------------------------------------------------------------------------------------ */

static void sleep_ms(int ms)
{
	struct timespec span = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&span, NULL);
}

/* Until what is held back has been said. */
static void drive(void)
{
	for (int i = 0; i < 10; i++) {
		vb_device_drive(device, VB_ALL_LANES);
		usleep(20);
	}
}

static struct vb_descriptor request(unsigned qp, uint8_t opcode, uint32_t psn)
{
	return (struct vb_descriptor){ .opcode = opcode,
		.dest_qpn = vb_qp_number(qps[qp]),
		.src_qpn = SLOT << 16 | (qp + 1),
		.psn = psn,
		.length = 8,
		.va = (uintptr_t)memory,
		.rkey = vb_mr_key(mr),
		.place = opcode == VB_READ_REQUEST ? VB_LOCAL_NOWHERE : VB_LOCAL_INLINED };
}

static void post_receive(unsigned qp)
{
	const struct vb_sge sge = { (uintptr_t)memory, BYTES, vb_mr_key(mr) };
	const struct vb_recv_wr wr = { .wr_id = qp, .sges = &sge, .sge_count = 1 };

	assert_int_equal(vb_rq_post(qps[qp], &wr), 0);
}

static void post_write(unsigned qp)
{
	struct vb_sge sge = { (uintptr_t)memory, 8, vb_mr_key(mr) };
	struct vb_send_wr wr = {
		.wr_id = qp, .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1, .remote_addr = 4096, .rkey = 7
	};

	vb_sq_begin(qps[qp]);
	int rc = vb_sq_put(qps[qp], &wr);
	vb_sq_end(qps[qp], rc == 0);
	assert_int_equal(rc, 0);
	vb_host_lane_kick(host_lane);
}

static enum vb_wc_status completes(void)
{
	struct vb_wc wc;

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		vb_device_drive(device, VB_ALL_LANES);
		if (vb_cq_poll(cq, &wc, 1) == 1)
			return wc.status;
		sleep_ms(1);
	}
	return VB_WC_GENERAL_ERR;
}

static unsigned count_entries(const char *path)
{
	unsigned count = 0;
	DIR *directory = opendir(path);

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static unsigned count_mappings(void)
{
	unsigned count = 0;
	char line[512];
	FILE *file = fopen("/proc/self/maps", "re");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "played_peer") != NULL;
	fclose(file);
	return count;
}

static _Noreturn void stay(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static pid_t child_that_stays(void)
{
	pid_t child = fork();

	if (child == 0)
		stay();
	return child;
}

/* So that no handler of fork() is called in it. */
static pid_t child_unknown_to_libc(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		stay();
	return child;
}

/* ---- Introduction ------------------------------------------------------------------------------------------------ */

/* The played peer has executed this request. */
static void answers_done(const struct played_peer *who, const struct vb_descriptor *request, bool is_awaited)
{
	struct vb_local_room room;

	vb_shm_free_descriptors(who->shm, 1);
	vb_shm_room(who->shm, VB_SHM_ANSWERING, &room);
	room.answers[room.answer_count++] = (struct vb_answer){
		.dest_qpn = request->src_qpn, .src_qpn = request->dest_qpn, .psn = request->psn, .kind = VB_ANSWER_DONE
	};
	room.is_awaited = is_awaited;
	vb_shm_publish(who->shm, VB_SHM_ANSWERING, &room);
}

static void introduction__leads_to_requests_by_memory(void **state)
{
	struct vb_descriptor seen;
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	post_write(0);
	assert_int_equal(vb_shm_see_descriptors(who.shm, &seen, 1), 1);
	assert_int_equal(seen.opcode, VB_WRITE_ONLY);
	assert_int_equal(seen.dest_qpn, SLOT << 16 | 1);
	answers_done(&who, &seen, true);
	assert_true(wakes(&who));
	assert_int_equal(completes(), VB_WC_SUCCESS);
	part(&who);
}

/* A WRITE of a peer that sleeps is executed, and answered. */
static bool rings_as_it_answers(const struct played_peer *who, uint32_t psn)
{
	struct vb_descriptor write = request(0, VB_WRITE_ONLY, psn);
	struct saying ignored;

	write.flags = VB_LOCAL_UNAWAITED;
	vb_shm_doze(who->shm, false);
	asks(who, &write, 1);
	for (int ms = 0; ms < PATIENCE_MS && !vb_shm_has_news(who->shm); ms++)
		drive();
	return hears(who, &ignored) > 0;
}

/* As if there were one: then a deadline may be far. */
static void pretend_to_have_a_thread(bool has_thread)
{
	vb_ownership_init(&vb_state_of(host_lane)->ownership, has_thread);
}

static void bell__rings_late_for_what_nobody_waits_for(void **state)
{
	bool was_in_time = false;
	struct played_peer who;
	struct saying said;
	unsigned answers = 0;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	while (hears(&who, &said) > 0)
		;
	assert_true(rings_as_it_answers(&who, 0)); /* there is no thread */
	answers = takes_answers(&who, VB_ANSWER_DONE);
	pretend_to_have_a_thread(true);
	for (uint32_t psn = 1; psn < 20 && !was_in_time; psn++) {
		vb_time since = vb_host_now();
		bool rings = rings_as_it_answers(&who, psn);
		was_in_time = vb_time_since(since, vb_host_now()) < 3 * VB_MS; /* else the bell may be due */
		assert_false(rings && was_in_time);
		if (was_in_time) {
			struct vb_deadline next = vb_host_peers_next_deadline(host_lane);
			assert_true(next.is_set && vb_time_before(next.at, vb_time_add(vb_host_now(), 30 * VB_MS)));
		}
		for (int ms = 0; ms < PATIENCE_MS && !rings; ms++) {
			sleep_ms(1);
			drive();
			rings = hears(&who, &said) > 0;
		}
		assert_true(rings);
		answers += takes_answers(&who, VB_ANSWER_DONE);
		assert_int_equal(answers, psn + 1);
	}
	pretend_to_have_a_thread(false);
	assert_true(was_in_time);
	part(&who);
}

/* The peer's answer lies in memory, and rang no bell. */
static void farewell__takes_what_was_answered(void **state)
{
	struct vb_qp_attr error = { .state = VB_QPS_ERR };
	struct vb_descriptor seen;
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	post_write(0);
	assert_int_equal(vb_shm_see_descriptors(who.shm, &seen, 1), 1);
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	answers_done(&who, &seen, false);
	vb_host_lane_take_leave(host_lane, qps[0]);
	assert_int_equal(vb_qp_modify(qps[0], &error, VB_QP_STATE, vb_host_now()), 0);
	vb_host_lane_unlock(host_lane);
	assert_int_equal(completes(), VB_WC_SUCCESS);
	part(&who);
}

static pid_t child_that_stays_as(uid_t uid)
{
	int ready[2];
	char byte = 0;

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0 && (uid == geteuid() || setresuid(uid, uid, uid) == 0) && write(ready[1], &byte, 1) == 1)
		stay();
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void hears_a(const struct played_peer *who, uint8_t kind, struct saying *said)
{
	assert_int_equal(hears(who, said), sizeof(*said));
	assert_int_equal(said->kind, kind);
}

static void hears_nothing(const struct played_peer *who)
{
	struct saying said;

	assert_int_equal(hears(who, &said), -EAGAIN);
}

/* Nothing of our memory but a number to be read. */
static void introduction__greets_with_a_riddle_alone(void **state)
{
	struct played_peer who;
	struct saying said;

	NEEDS_NAMESPACE;
	introduce(device, &who, SLOT, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	hears_a(&who, SAYS_HELLO, &said);
	assert_int_equal(said.pid, getpid());
	assert_int_not_equal(said.riddle, 0);
	assert_int_not_equal(*(const uint64_t *)(uintptr_t)said.riddle, device->process->epochs->nonce);
	assert_int_equal(said.epochs, 0);
	hears_nothing(&who);
	part(&who);
}

static void introduction__reads_the_others_riddle_and_says_what_it_pulls(void **state)
{
	struct played_peer who;
	struct saying said;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device), shown = memory_of(device);
	introduce(device, &who, SLOT, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	hears_a(&who, SAYS_HELLO, &said);
	says(&who, &hello, sizeof(hello));
	drive();
	hears_a(&who, SAYS_PROOF, &said);
	assert_int_equal(said.riddle, played_peers_riddle);
	hears_nothing(&who);
	says(&who, &shown, sizeof(shown));
	drive();
	hears_a(&who, SAYS_VERDICT, &said);
	assert_int_equal(said.reason, VB_LOCAL_IS_USED);
	assert_in_range(said.lend_from, VB_LOCAL_LEND_MIN, VB_LOCAL_PART + 1);
	part(&who);
}

static void introduction__shows_its_memory_to_who_reads_the_riddle(void **state)
{
	struct played_peer who;
	struct saying said;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	introduce(device, &who, SLOT, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	hears_a(&who, SAYS_HELLO, &said);
	const struct saying proof = { .kind = SAYS_PROOF, .riddle = *(const uint64_t *)(uintptr_t)said.riddle };
	says(&who, &hello, sizeof(hello));
	drive();
	hears_a(&who, SAYS_PROOF, &said);
	says(&who, &proof, sizeof(proof));
	drive();
	hears_a(&who, SAYS_MEMORY, &said);
	assert_int_equal(said.epochs, (uintptr_t)device->process->epochs);
	assert_int_equal(said.nonce, device->process->epochs->nonce);
	const struct saying verdict = { .kind = SAYS_VERDICT, .reason = VB_LOCAL_IS_USED, .lend_from = 8192 };
	says(&who, &verdict, sizeof(verdict));
	drive();
	assert_int_equal(host_lane->peers->by_slot[SLOT]->engine.lend_from, 8192);
	says(&who, &proof, sizeof(proof)); /* a number is taken once */
	drive();
	assert_true(has_been_left(&who));
	part(&who);
}

/* By its word alone nobody gets more of us: no epochs, no segment, nothing that is lent. */
static void introduction__shows_nothing_to_who_says_that_it_reads_us(void **state)
{
	struct played_peer who;
	struct saying said;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	const struct saying verdict = { .kind = SAYS_VERDICT, .reason = VB_LOCAL_IS_USED, .lend_from = 4096 };
	introduce(device, &who, SLOT, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	hears_a(&who, SAYS_HELLO, &said);
	says(&who, &hello, sizeof(hello));
	says(&who, &verdict, sizeof(verdict));
	drive();
	hears_a(&who, SAYS_PROOF, &said);
	hears_nothing(&who);
	const struct vb_host_peer *peer = host_lane->peers->by_slot[SLOT];
	assert_false(peer->proof == VB_PROOF_GIVEN || peer->engine.lend_from || peer->engine.maps_segments);
	const struct saying guess = { .kind = SAYS_PROOF, .riddle = device->process->epochs->nonce };
	says(&who, &guess, sizeof(guess));
	says(&who, &verdict, sizeof(verdict));
	drive();
	hears_nothing(&who);
	assert_false(peer->proof == VB_PROOF_GIVEN || peer->engine.lend_from || peer->engine.maps_segments);
	says(&who, &guess, sizeof(guess)); /* there is one try */
	drive();
	assert_true(has_been_left(&who));
	part(&who);
}

static uint8_t verdict_on(const struct saying *hello, bool is_same_user, int pidfd)
{
	struct played_peer who;
	struct saying said;

	introduce(device, &who, SLOT, is_same_user, pidfd);
	assert_int_equal(hears(&who, &said), sizeof(said));
	says(&who, hello, sizeof(*hello));
	drive();
	assert_int_equal(hears(&who, &said), sizeof(said));
	assert_int_equal(said.kind, SAYS_VERDICT);
	assert_int_equal(said.lend_from, 0);
	part(&who);
	drive();
	return said.reason;
}

static void introduction__with_another_user_names_no_riddle(void **state)
{
	struct played_peer who;
	struct saying said;

	NEEDS_NAMESPACE;
	introduce(device, &who, SLOT, false, (int)syscall(SYS_pidfd_open, getpid(), 0));
	hears_a(&who, SAYS_HELLO, &said);
	assert_int_equal(said.riddle, 0);
	assert_int_equal(said.epochs, 0);
	part(&who);
}

static void introduction__pulls_from_nobody_of_another_user(void **state)
{
	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert_int_equal(verdict_on(&hello, false, pidfd), VB_LOCAL_OTHER_USER);
}

/* It was of our user when it connected to the broker. */
static void introduction__pulls_from_nobody_who_has_become_another_user(void **state)
{
	NEEDS_NAMESPACE;
	if (geteuid() != 0)
		skip();
	struct saying hello = hello_of(device);
	pid_t child = child_that_stays_as(1001);
	hello.pid = (uint32_t)child;
	assert_int_equal(verdict_on(&hello, true, (int)syscall(SYS_pidfd_open, child, 0)), VB_LOCAL_OTHER_USER);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* In a chroot of which /proc is no part. */
static void introduction__without_proc_says_what_is_missing(void **state)
{
	int status;
	if (geteuid() != 0)
		skip();
	pid_t pid = fork();
	if (pid == 0) {
		int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(77);
		while (umount2("/proc", MNT_DETACH) == 0)
			;
		_exit(vb_host_peer_judge(self, true));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), VB_LOCAL_NO_PROC);
	assert_non_null(strstr(vb_local_reason_text(VB_LOCAL_NO_PROC), "mount -t proc proc /proc"));
}

/* A process that may not look into another's memory could let us do it, and read from ours what we found. */
static void introduction__pulls_from_nobody_but_who_was_introduced(void **state)
{
	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	pid_t child = child_that_stays();
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(verdict_on(&hello, true, pidfd), VB_LOCAL_UNSEEN);
	assert_int_equal(verdict_on(&hello, true, -1), VB_LOCAL_UNSEEN);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static enum vb_local_reason reason_of(void)
{
	return host_lane->peers->by_slot[SLOT]->reason;
}

/* He may be stopped: to go over the wire would end in an error. */
static void introduction__waits_for_a_greeting_as_long_as_it_lives(void **state)
{
	struct played_peer who;
	struct vb_wc wc;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	introduce(device, &who, SLOT, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	connect_qps(1);
	post_write(0);
	for (int seconds = 11; seconds < 60; seconds += 11) {
		assert_int_equal(vb_host_lane_lock(host_lane), 0);
		vb_host_peers_be_patient(host_lane, vb_time_add(vb_host_now(), seconds * VB_S));
		vb_host_lane_unlock(host_lane);
		drive();
	}
	sleep_ms(1000); /* by the wire all retries would have been in vain */
	drive();
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 0);
	assert_int_equal(reason_of(), VB_LOCAL_NO_ANSWER);
	says(&who, &hello, sizeof(hello));
	drive();
	assert_int_equal(reason_of(), VB_LOCAL_IS_USED);
	struct vb_descriptor seen;
	assert_int_equal(vb_shm_see_descriptors(who.shm, &seen, 1), 1);
	part(&who);
}

static void introduction__of_who_leaves_without_a_word_says_so(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	introduce(device, &who, SLOT, true, -1);
	part(&who);
	drive();
	assert_int_equal(reason_of(), VB_LOCAL_UNABLE);
}

/* A broker that dies between telling us and telling him leaves us with a socket at whose other end nobody is. */
static void introduction__that_is_void_is_asked_for_again(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	introduce(device, &who, SLOT, true, -1);
	connect_qps(1);
	post_write(0);
	const struct vb_host_peer *known = host_lane->peers->by_slot[SLOT];
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	assert_true(known->is_awaited);
	assert_int_equal(known->state, VB_PEER_INTRODUCED);
	part(&who);
	vb_host_peers_hear(host_lane);
	assert_int_equal(known->state, VB_PEER_ASKED);
	assert_true(known->is_awaited);
	vb_host_lane_unlock(host_lane);
	for (int ms = 0; ms < PATIENCE_MS && known->is_awaited; ms++) {
		drive(); /* the broker knows of nobody there */
		sleep_ms(1);
	}
	assert_false(known->is_awaited);
	assert_int_equal(known->state, VB_PEER_IDLE);
}

/* He does not wait for what we say, which then is unread at his end: the kernel tells of that first. */
static void introduction__of_who_refuses_and_leaves_says_why(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	struct saying hello = hello_of(device);
	hello.reason = VB_LOCAL_IS_FAULTY;
	introduce(device, &who, SLOT, true, -1);
	says(&who, &hello, sizeof(hello));
	part(&who);
	drive();
	assert_int_equal(reason_of(), VB_LOCAL_IS_FAULTY);
}

static void introduction__of_who_refuses_leaves_the_wire(void **state)
{
	struct played_peer who;
	struct vb_descriptor seen;

	NEEDS_NAMESPACE;
	struct saying hello = hello_of(device);
	hello.reason = VB_LOCAL_CAPTURES;
	introduce(device, &who, SLOT, true, -1);
	says(&who, &hello, sizeof(hello));
	drive();
	assert_true(has_been_left(&who));
	assert_int_equal(reason_of(), VB_LOCAL_CAPTURES);
	connect_qps(1);
	post_write(0);
	drive();
	assert_int_equal(vb_shm_see_descriptors(who.shm, &seen, 1), 0);
	part(&who);
}

/* The second time is void while the first one lives. */
static void introduction__twice_keeps_the_first(void **state)
{
	struct played_peer first, second;
	struct vb_descriptor seen;

	NEEDS_NAMESPACE;
	meet(device, &first, SLOT);
	introduce(device, &second, SLOT, true, -1);
	assert_true(has_been_left(&second));
	connect_qps(1);
	post_write(0);
	assert_int_equal(vb_shm_see_descriptors(first.shm, &seen, 1), 1);
	part(&second);
	part(&first);
}

/* Though a child of his has his end, and nobody has looked since. */
static void introduction__replaces_a_dead_process(void **state)
{
	struct played_peer first, second;
	struct vb_descriptor seen;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	pid_t child = child_that_stays();
	introduce(device, &first, SLOT, true, (int)syscall(SYS_pidfd_open, child, 0));
	says(&first, &hello, sizeof(hello));
	drive();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	meet(device, &second, SLOT);
	assert_false(has_been_left(&second));
	connect_qps(1);
	post_write(0);
	assert_int_equal(vb_shm_see_descriptors(second.shm, &seen, 1), 1);
	part(&first);
	part(&second);
}

/* ---- Who is met -------------------------------------------------------------------------------------------------- */

static enum vb_local_reason answer_to_introduction(struct played_peer *who, uint8_t slot)
{
	struct saying said;

	introduce(device, who, slot, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	hears_a(who, SAYS_HELLO, &said);
	return said.reason;
}

/* The number of some that are not ours. */
static uint8_t another_slot(unsigned i)
{
	return (uint8_t)((host_lane->slot.number + i) % 254 + 1);
}

/* Nobody here has asked for it. */
static void introduction__that_no_qp_wants_is_not_taken(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	take_no_datagrams();
	unsigned before = count_entries("/proc/self/fd"), mapped = count_mappings();
	assert_int_equal(answer_to_introduction(&who, SLOT), VB_LOCAL_UNWANTED);
	assert_true(has_been_left(&who));
	part(&who);
	assert_int_equal(count_entries("/proc/self/fd"), before);
	assert_int_equal(count_mappings(), mapped);
	connect_qps(1); /* to that slot */
	assert_int_equal(answer_to_introduction(&who, SLOT - 1), VB_LOCAL_UNWANTED);
	part(&who);
	assert_int_equal(answer_to_introduction(&who, SLOT), VB_LOCAL_IS_USED);
	assert_false(has_been_left(&who));
	part(&who);
}

/* Else the broker goes on introducing whoever sends it datagrams, and each is refused. */
static void introduction__is_for_nobody_when_the_last_datagram_qp_has_failed(void **state)
{
	NEEDS_NAMESPACE;
	drive();
	assert_true(host_lane->peers->is_open);
	modify_on(device, datagrams, &(struct vb_qp_attr){ .state = VB_QPS_ERR }, 0);
	drive();
	assert_false(host_lane->peers->is_open);
}

static uint8_t answer_to_unusable(int file)
{
	struct saying said = { 0 };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	const struct vb_broker_notice notice = { .kind = VB_BROKER_INTRODUCTION,
		.own_slot = host_lane->slot.number,
		.slot = SLOT,
		.side = 0,
		.is_same_user = true,
		.socket = ends[0],
		.memory = file,
		.pidfd = -1 };
	vb_host_peers_meet(device->process, &notice);
	assert_int_equal(recv(ends[1], &said, sizeof(said), MSG_DONTWAIT), sizeof(said));
	assert_int_equal(said.kind, SAYS_HELLO);
	assert_int_equal(recv(ends[1], &said, sizeof(said), MSG_DONTWAIT), 0);
	close(ends[1]);
	return said.reason;
}

/* The other is told, and does not wait for a greeting. */
static void introduction__that_cannot_be_taken_is_refused(void **state)
{
	NEEDS_NAMESPACE;
	unsigned before = count_entries("/proc/self/fd");
	assert_int_equal(answer_to_unusable(memfd_create("played_peer", MFD_CLOEXEC)), VB_LOCAL_UNABLE);
	assert_int_equal(reason_of(), VB_LOCAL_NO_MEMORY);
	assert_int_equal(count_entries("/proc/self/fd"), before);
}

/* Not at once, over and over. */
static void introduction__of_who_is_unable_is_not_asked_for_again(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	struct saying hello = hello_of(device);
	hello.reason = VB_LOCAL_UNABLE;
	introduce(device, &who, SLOT, true, -1);
	connect_qps(1);
	post_write(0);
	const struct vb_host_peer *known = host_lane->peers->by_slot[SLOT];
	says(&who, &hello, sizeof(hello));
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	vb_host_peers_hear(host_lane);
	assert_false(known->is_awaited);
	assert_int_equal(known->state, VB_PEER_IDLE);
	assert_int_equal(known->reason, VB_LOCAL_UNABLE);
	vb_host_lane_unlock(host_lane);
	part(&who);
}

static void introductions__have_a_share_of_the_descriptors(void **state)
{
	enum { FILES = 512, SHARE = FILES / 16, TRIES = 60 };
	struct played_peer all[TRIES];
	struct rlimit before, few;
	unsigned taken = 0;

	NEEDS_NAMESPACE;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned round = 0; round < 2; round++) { /* what was used is given back */
		few = (struct rlimit){ FILES, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		unsigned open = count_entries("/proc/self/fd");
		taken = 0;
		for (unsigned i = 0; i < TRIES; i++) {
			enum vb_local_reason reason = answer_to_introduction(&all[i], another_slot(i));
			assert_true(reason == VB_LOCAL_IS_USED || reason == VB_LOCAL_FULL);
			taken += reason == VB_LOCAL_IS_USED;
		}
		assert_int_equal(count_entries("/proc/self/fd") - open - TRIES, SHARE); /* our ends are besides */
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		for (unsigned i = 0; i < TRIES; i++)
			part(&all[i]);
		drive();
		assert_int_equal(taken, SHARE / 2);
	}
}

/* However many may send datagrams. */
static void introduction__for_a_connection_finds_room(void **state)
{
	enum { MANY = 40 };
	struct played_peer all[MANY], who;
	unsigned taken = 0, left = 0;

	NEEDS_NAMESPACE;
	for (unsigned i = 0; i < MANY; i++)
		taken += answer_to_introduction(&all[i], another_slot(i)) == VB_LOCAL_IS_USED;
	assert_int_equal(taken, 32);
	connect_qps(1);
	assert_int_equal(answer_to_introduction(&who, SLOT), VB_LOCAL_IS_USED);
	for (unsigned i = 0; i < MANY; i++)
		left += has_been_left(&all[i]);
	assert_int_equal(left, MANY - 32 + 1); /* one made room */
	part(&who);
	for (unsigned i = 0; i < MANY; i++)
		part(&all[i]);
}

static void look_after_seconds(int seconds)
{
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	vb_host_peers_be_patient(host_lane, vb_time_add(vb_host_now(), seconds * VB_S));
	vb_host_lane_unlock(host_lane);
}

/* As if a question were still to be answered, which the broker here has answered already. */
static struct vb_host_peer *awaited(void)
{
	connect_qps(1);
	post_write(0);
	struct vb_host_peer *who = host_lane->peers->by_slot[SLOT];
	for (int ms = 0; ms < PATIENCE_MS && who->is_awaited; ms++) {
		drive();
		sleep_ms(1);
	}
	assert_false(who->is_awaited);
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	vb_host_peer_become(who, VB_PEER_ASKED);
	vb_host_peer_await(who, vb_host_now());
	vb_host_lane_unlock(host_lane);
	return who;
}

/* The broker that said so may have died with the other's question: what another says of it counts from then on. */
static void introduction__that_is_awaited_has_its_time_from_each_broker(void **state)
{
	NEEDS_NAMESPACE;
	const struct vb_broker_notice unwanted = {
		.kind = VB_BROKER_AWAITED, .own_slot = host_lane->slot.number, .slot = SLOT
	};
	const struct vb_host_peer *who = awaited();
	vb_host_peers_stay_unwanted(host_lane->process, &unwanted);
	vb_host_peers_lose_broker(host_lane->process);
	look_after_seconds(4);
	const bool outlives_a_broker = who->is_awaited;
	vb_host_peers_stay_unwanted(host_lane->process, &unwanted);
	sleep_ms(100);
	const vb_time said = vb_host_now();
	vb_host_peers_stay_unwanted(host_lane->process, &unwanted);
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	vb_host_peers_be_patient(host_lane, vb_time_add(said, 3 * VB_S - 10 * VB_MS));
	const bool has_its_time = who->is_awaited;
	vb_host_lane_unlock(host_lane);
	look_after_seconds(4);
	assert_true(outlives_a_broker);
	assert_true(has_its_time);
	assert_false(who->is_awaited);
}

static void introduction__that_nobody_uses_is_let_go(void **state)
{
	struct played_peer who;
	struct saying said = { 0 };

	NEEDS_NAMESPACE;
	unsigned before = count_entries("/proc/self/fd");
	meet(device, &who, SLOT);
	look_after_seconds(6);
	look_after_seconds(12);
	while (said.kind != SAYS_PARTED)
		assert_int_equal(hears(&who, &said), sizeof(said));
	assert_true(has_been_left(&who));
	part(&who);
	assert_int_equal(count_entries("/proc/self/fd"), before);
	connect_qps(1); /* and is kept while a QP is connected there */
	meet(device, &who, SLOT);
	look_after_seconds(6);
	look_after_seconds(12);
	assert_false(has_been_left(&who));
	part(&who);
}

/* Who lets go lives: nothing fails for it. */
static void end__of_who_lets_go_is_no_death(void **state)
{
	const struct saying parted = { .kind = SAYS_PARTED };
	struct played_peer who;
	struct vb_wc wc;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	says(&who, &parted, sizeof(parted));
	drive();
	assert_true(has_been_left(&who));
	assert_int_equal(reason_of(), VB_LOCAL_IDLE);
	assert_int_equal(vb_qp_state(qps[0]), VB_QPS_RTS);
	assert_int_equal(vb_cq_poll(cq, &wc, 1), 0);
	part(&who);
}

/* An address that goes for a moment takes nobody's connection away. */
static void introduction__is_kept_for_a_connection_whose_address_went(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	drive();
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	host_lane->peers->by_slot[SLOT]->gid_count = 0; /* as vb_host_peers_address_change leaves it */
	vb_host_lane_unlock(host_lane);
	look_after_seconds(6);
	look_after_seconds(12);
	assert_false(has_been_left(&who));
	part(&who);
}

/* The other let go before its own QP was there: it finds the question when it asks. */
static void end__of_who_lets_go_is_asked_about_for_a_connection(void **state)
{
	const struct saying parted = { .kind = SAYS_PARTED };
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	drive();
	const struct vb_host_peer *known = host_lane->peers->by_slot[SLOT];
	says(&who, &parted, sizeof(parted));
	assert_int_equal(vb_host_lane_lock(host_lane), 0);
	assert_int_equal(known->state, VB_PEER_READY);
	vb_host_peers_hear(host_lane);
	assert_int_equal(known->state, VB_PEER_ASKED);
	vb_host_lane_unlock(host_lane);
	part(&who);
}

static void says_with_descriptor(const struct played_peer *who, const void *bytes, size_t length)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec io = { (void *)bytes, length };
	struct msghdr header = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
	int fd = dup(0);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	assert_int_equal(sendmsg(who->bell, &header, MSG_NOSIGNAL), length);
	close(fd);
}

/* As kernels without SO_PASSRIGHTS let them come. */
static void descriptors__that_nobody_asked_for_are_closed(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	unsigned before = count_entries("/proc/self/fd"), after = 0;
	for (unsigned i = 0; i < 40; i++) {
		const bool is_same_user = i % 2;
		introduce(device, &who, SLOT, is_same_user, (int)syscall(SYS_pidfd_open, getpid(), 0));
		says_with_descriptor(&who, &hello, i % 4 < 2 ? sizeof(hello) : 1);
		says_with_descriptor(&who, "!", 1);
		drive();
		part(&who);
		drive();
	}
	for (int ms = 0; ms < PATIENCE_MS && (after = count_entries("/proc/self/fd")) != before; ms++)
		sleep_ms(1);
	assert_int_equal(after, before);
}

/* ---- What he may not say ----------------------------------------------------------------------------------------- */

static void is_left_who_says(const struct saying *saying, size_t length, bool is_greeted)
{
	struct played_peer who;

	if (is_greeted)
		meet(device, &who, SLOT);
	else
		introduce(device, &who, SLOT, true, -1);
	says(&who, saying, length);
	drive();
	assert_true(has_been_left(&who));
	part(&who);
}

static void hostile__greetings_end_it(void **state)
{
	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	struct saying other = hello;
	for (int is_greeted = 0; is_greeted < 2; is_greeted++) {
		is_left_who_says(&hello, sizeof(hello) - 1, is_greeted);
		is_left_who_says(&hello, 5, is_greeted);
		other.kind = 77;
		is_left_who_says(&other, sizeof(other), is_greeted);
		other = hello;
		other.reason = VB_LOCAL_REASONS;
		is_left_who_says(&other, sizeof(other), is_greeted);
		other.reason = 255;
		is_left_who_says(&other, sizeof(other), is_greeted);
		other = hello;
	}
	is_left_who_says(&hello, sizeof(hello), true); /* a second time */
	other.kind = SAYS_VERDICT;
	is_left_who_says(&other, sizeof(other), false); /* before he has greeted */
	struct saying two[2] = { hello, hello };
	is_left_who_says(two, sizeof(two), false);
}

/* He rings before he has greeted, and without any reason: nothing comes of it. */
static void hostile__bells_change_nothing(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	const struct saying hello = hello_of(device);
	introduce(device, &who, SLOT, true, (int)syscall(SYS_pidfd_open, getpid(), 0));
	for (int i = 0; i < 100; i++)
		assert_int_equal(send(who.bell, "!", 1, 0), 1);
	drive();
	says(&who, &hello, sizeof(hello));
	for (int i = 0; i < 100; i++)
		assert_int_equal(send(who.bell, "?", 1, 0), 1);
	drive();
	assert_false(has_been_left(&who));
	connect_qps(1);
	struct vb_descriptor write = request(0, VB_WRITE_ONLY, 0);
	asks(&who, &write, 1);
	drive();
	assert_int_equal(takes_answers(&who, VB_ANSWER_DONE), 1);
	part(&who);
}

#define LENT     8192
#define LENDERS  8
#define SOON_NS  250000 /* what he may be told of later is said by a bell after 300 us */
#define ATTEMPTS 20

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* What was executed is said with each message that is pulled, and who sleeps is woken when half of them are. */
static void bell__is_one_for_several_messages_that_are_pulled(void **state)
{
	static uint8_t place[LENT], source[LENT];
	struct vb_mr_config config = { .memory = place,
		.iova = (uintptr_t)place,
		.length = LENT,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE };
	struct played_peer who;
	struct saying bell;
	struct vb_mr *place_mr;
	bool is_soon = false;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(LENDERS);
	assert_int_equal(vb_mr_register(pd, &config, &place_mr), 0);
	while (hears(&who, &bell) > 0)
		;
	for (uint32_t attempt = 0; attempt < ATTEMPTS && !is_soon; attempt++) {
		for (unsigned i = 0; i < LENDERS; i++) {
			struct vb_descriptor lent = request(i, VB_WRITE_ONLY, attempt);
			lent.place = VB_LOCAL_LENT;
			lent.length = LENT;
			lent.va = (uintptr_t)place;
			lent.rkey = vb_mr_key(place_mr);
			lent.lent.address = (uintptr_t)source;
			lent.lent.epoch = device->process->epochs->epochs[lent.src_qpn & 0xffff];
			asks(&who, &lent, 1);
		}
		vb_shm_doze(who.shm, false);
		int64_t began = now_ns();
		vb_device_drive(device, VB_ALL_LANES);
		unsigned done = takes_answers(&who, VB_ANSWER_DONE);
		int heard = hears(&who, &bell);
		is_soon = now_ns() - began < SOON_NS;
		assert_true(done > 0 && done < LENDERS);
		assert_true(!is_soon || heard == -EAGAIN);
		for (int i = 0; i < LENDERS && heard < 0; i++) {
			vb_device_drive(device, VB_ALL_LANES);
			heard = hears(&who, &bell);
		}
		assert_int_equal(heard, 1);
		drive();
		assert_int_equal(done + takes_answers(&who, VB_ANSWER_DONE), LENDERS);
		vb_shm_rouse(who.shm);
	}
	assert_true(is_soon);
	assert_int_equal(vb_mr_invalidate(place_mr), 0);
	vb_mr_free(place_mr);
	part(&who);
}

/* A message that cannot be pulled from where he says fails him alone. */
static void hostile__lends_what_is_not_there(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(2);
	struct vb_descriptor lent = request(0, VB_WRITE_ONLY, 0), write = request(1, VB_WRITE_ONLY, 0);
	lent.place = VB_LOCAL_LENT;
	lent.length = BYTES * 2;
	asks(&who, &lent, 1); /* longer than the region */
	drive();
	assert_int_equal(takes_answers(&who, VB_ANSWER_REFUSED), 1);
	asks(&who, &write, 1);
	drive();
	assert_int_equal(takes_answers(&who, VB_ANSWER_DONE), 1);
	part(&who);
}

/* ---- Nobody is forgotten ----------------------------------------------------------------------------------------- */

static _Atomic unsigned waits_ended;

static void *wait_for_events(void *argument)
{
	struct vb_wc wc;
	eventfd_t count;

	for (;;) {
		vb_cq_request_notify(cq, false);
		if (!vb_device_wait(device, VB_ALL_LANES, event_fd, NULL))
			return NULL;
		if (eventfd_read(event_fd, &count) == 0 && count >= 1000)
			return NULL;
		while (vb_cq_poll(cq, &wc, 1) > 0)
			waits_ended++;
	}
}

static bool waits_end(unsigned count)
{
	for (int ms = 0; ms < PATIENCE_MS && waits_ended < count; ms++)
		sleep_ms(1);
	return waits_ended >= count;
}

static pthread_t start_waiter(void)
{
	pthread_t waiter;

	waits_ended = 0;
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_events, NULL), 0);
	sleep_ms(10);
	return waiter;
}

static void end_waiter(pthread_t waiter)
{
	eventfd_write(event_fd, 1000);
	pthread_join(waiter, NULL);
}

static void waiter__is_woken_by_what_comes(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	pthread_t waiter = start_waiter();
	for (unsigned i = 0; i < 50; i++) {
		post_receive(0);
		struct vb_descriptor send_only = request(0, VB_SEND_ONLY, i);
		asks(&who, &send_only, 1);
		assert_true(waits_end(i + 1));
	}
	end_waiter(waiter);
	part(&who);
}

static void *write_later(void *argument)
{
	sleep_ms(2);
	eventfd_write(*(int *)argument, 1);
	return NULL;
}

/* Waits beside the one that drives, for something else, and goes. */
static void wait_beside(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_later, &fd), 0);
	assert_true(vb_device_wait(device, VB_ALL_LANES, fd, NULL));
	pthread_join(thread, NULL);
	close(fd);
}

/* Whoever looked last, and took the bell meant for the waiter, leaves the local peer as one that rings again. */
static void waiter__is_woken_though_others_looked_and_went(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	pthread_t waiter = start_waiter();
	for (unsigned i = 0; i < 30; i++) {
		wait_beside();
		sleep_ms(2);
		assert_int_equal(vb_host_lane_lock(host_lane), 0);
		assert_int_equal(send(who.bell, "!", 1, MSG_NOSIGNAL), 1); /* he has made room */
		vb_host_lane_turn(host_lane, VB_LOOKS_AT_ALL);
		vb_host_lane_unlock(host_lane);
		sleep_ms(2);
		post_receive(0);
		struct vb_descriptor send_only = request(0, VB_SEND_ONLY, i);
		asks(&who, &send_only, 1);
		assert_true(waits_end(i + 1));
	}
	end_waiter(waiter);
	part(&who);
}

/* The answers that he has not read fill their ring. Those for which there is no room are said when he has. */
static void answers__that_had_no_room_are_said_when_there_is(void **state)
{
	struct played_peer who;
	unsigned done = 0, places = 6, reads = VB_SHM_RING - places;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(QPS);
	for (unsigned i = 0; i < reads; i++) {
		struct vb_descriptor read = request(0, VB_READ_REQUEST, i);
		asks(&who, &read, 1);
		vb_device_drive(device, VB_ALL_LANES);
	}
	drive();
	for (unsigned i = 1; i < QPS; i++) {
		struct vb_descriptor write = request(i, VB_WRITE_ONLY, 0);
		asks(&who, &write, 1);
	}
	drive();
	pthread_t waiter = start_waiter();
	assert_int_equal(takes_answers(&who, VB_ANSWER_READ), reads);
	wakes(&who);
	for (int ms = 0; ms < PATIENCE_MS && done < QPS - 1 - places; ms++, sleep_ms(1))
		done += takes_answers(&who, VB_ANSWER_DONE);
	assert_int_equal(done, QPS - 1 - places);
	end_waiter(waiter);
	part(&who);
}

/* ---- Leaving ----------------------------------------------------------------------------------------------------- */

static void end__of_the_local_peer_ends_what_is_under_way(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	post_write(0);
	part(&who);
	assert_int_equal(completes(), VB_WC_RETRY_EXC_ERR);
}

static void *drive_cancelled(void *argument)
{
	pthread_cancel(pthread_self());
	drive();
	return NULL;
}

/* Nobody leaves with the mutex. */
static void end__seen_by_a_cancelled_thread_stops_nobody(void **state)
{
	struct played_peer who;
	struct timespec until;
	pthread_t thread;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	part(&who);
	assert_int_equal(pthread_create(&thread, NULL, drive_cancelled, NULL), 0);
	pthread_join(thread, NULL);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	assert_int_equal(pthread_mutex_timedlock(&host_lane->mutex, &until), 0);
	pthread_mutex_unlock(&host_lane->mutex);
}

static void end__of_ours_says_what_was_executed(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	post_receive(0);
	struct vb_descriptor send_only = request(0, VB_SEND_ONLY, 0);
	asks(&who, &send_only, 1);
	vb_device_drive(device, VB_ALL_LANES);
	close_device(state);
	assert_int_equal(takes_answers(&who, VB_ANSWER_DONE), 1);
	assert_true(has_been_left(&who));
	part(&who);
	open_device(state);
}

/* A child whose making libc does not know of keeps our end open; the local peer hears of ours all the same. */
static void end__of_ours_is_seen_though_a_child_has_the_socket(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	pid_t child = child_unknown_to_libc();
	close_device(state);
	assert_true(has_been_left(&who));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	part(&who);
	open_device(state);
}

static void fork__takes_nothing_away_from_the_parent(void **state)
{
	struct played_peer who;
	int status;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	connect_qps(1);
	pid_t child = fork();
	if (child == 0) {
		vb_device_drive(device, VB_ALL_LANES);
		exit(count_mappings() == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(has_been_left(&who));
	struct vb_descriptor write = request(0, VB_WRITE_ONLY, 0);
	asks(&who, &write, 1);
	drive();
	assert_int_equal(takes_answers(&who, VB_ANSWER_DONE), 1);
	part(&who);
}

/* A thread that has the mutex, and is in the middle of a change while another forks. */
static void *change_list(void *barrier)
{
	vb_host_lane_lock(host_lane);
	struct vb_list *peers = &host_lane->peers->connected, *first = peers->next;
	peers->next = NULL;
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	peers->next = first;
	vb_host_lane_unlock(host_lane);
	return NULL;
}

static void fork__goes_by_no_list_that_may_be_half_changed(void **state)
{
	struct played_peer who;
	pthread_barrier_t barrier;
	pthread_t thread;
	int status;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, change_list, &barrier), 0);
	pthread_barrier_wait(&barrier);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	part(&who);
}

/* As above: then its number is soon another descriptor's, which a child of that moment would close. */
static void end__forgets_a_bell_before_it_is_closed(void **state)
{
	struct played_peer who;

	NEEDS_NAMESPACE;
	meet(device, &who, SLOT);
	told_of_shutdown = host_lane->peers->by_slot[SLOT];
	bells_known_at_shutdown = shutdowns = 0;
	part(&who);
	drive();
	assert_int_equal(shutdowns, 1);
	assert_int_equal(bells_known_at_shutdown, 0);
	told_of_shutdown = NULL;
}

static void meet__again_and_again_leaves_nothing_behind(void **state)
{
	struct played_peer who;
	unsigned descriptors = 0, mappings = 0;

	NEEDS_NAMESPACE;
	for (int i = 0; i < 200; i++) {
		meet(device, &who, SLOT);
		connect_qps(1);
		post_write(0);
		if (i % 2)
			part(&who);
		close_device(state);
		if (i % 2 == 0)
			part(&who);
		open_device(state);
		if (i == 10) {
			descriptors = count_entries("/proc/self/fd");
			mappings = count_mappings();
		}
	}
	assert_int_equal(count_entries("/proc/self/fd"), descriptors);
	assert_int_equal(count_mappings(), mappings);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(introduction__leads_to_requests_by_memory),
		TEST(bell__rings_late_for_what_nobody_waits_for),
		TEST(farewell__takes_what_was_answered),
		TEST(introduction__greets_with_a_riddle_alone),
		TEST(introduction__reads_the_others_riddle_and_says_what_it_pulls),
		TEST(introduction__shows_its_memory_to_who_reads_the_riddle),
		TEST(introduction__shows_nothing_to_who_says_that_it_reads_us),
		TEST(introduction__with_another_user_names_no_riddle),
		TEST(introduction__pulls_from_nobody_of_another_user),
		TEST(introduction__pulls_from_nobody_who_has_become_another_user),
		TEST(introduction__without_proc_says_what_is_missing),
		TEST(introduction__pulls_from_nobody_but_who_was_introduced),
		TEST(introduction__of_who_refuses_leaves_the_wire),
		TEST(introduction__of_who_refuses_and_leaves_says_why),
		TEST(introduction__that_is_void_is_asked_for_again),
		TEST(introduction__waits_for_a_greeting_as_long_as_it_lives),
		TEST(introduction__of_who_leaves_without_a_word_says_so),
		TEST(introduction__twice_keeps_the_first),
		TEST(introduction__replaces_a_dead_process),
		TEST(introduction__that_no_qp_wants_is_not_taken),
		TEST(introduction__is_for_nobody_when_the_last_datagram_qp_has_failed),
		TEST(introduction__that_cannot_be_taken_is_refused),
		TEST(introduction__of_who_is_unable_is_not_asked_for_again),
		TEST(introductions__have_a_share_of_the_descriptors),
		TEST(introduction__for_a_connection_finds_room),
		TEST(introduction__that_is_awaited_has_its_time_from_each_broker),
		TEST(introduction__that_nobody_uses_is_let_go),
		TEST(end__of_who_lets_go_is_no_death),
		TEST(introduction__is_kept_for_a_connection_whose_address_went),
		TEST(end__of_who_lets_go_is_asked_about_for_a_connection),
		TEST(descriptors__that_nobody_asked_for_are_closed),
		TEST(hostile__greetings_end_it),
		TEST(bell__is_one_for_several_messages_that_are_pulled),
		TEST(hostile__bells_change_nothing),
		TEST(hostile__lends_what_is_not_there),
		TEST(waiter__is_woken_by_what_comes),
		TEST(waiter__is_woken_though_others_looked_and_went),
		TEST(answers__that_had_no_room_are_said_when_there_is),
		TEST(end__of_the_local_peer_ends_what_is_under_way),
		TEST(end__seen_by_a_cancelled_thread_stops_nobody),
		TEST(end__of_ours_says_what_was_executed),
		TEST(end__of_ours_is_seen_though_a_child_has_the_socket),
		TEST(fork__takes_nothing_away_from_the_parent),
		TEST(fork__goes_by_no_list_that_may_be_half_changed),
		TEST(end__forgets_a_bell_before_it_is_closed),
		TEST(meet__again_and_again_leaves_nothing_behind),
	};

	if (argc > 1)
		setenv("VERBENA_LIBEXEC", argv[1], 1);
	setenv("VERBENA_PROGRESS", "off", 1);
	setenv("VERBENA_LOG", "error", 1);
	alarm(100);
	is_able = argc > 1 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
