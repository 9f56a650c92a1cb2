/* What happens around the threads: processes that sleep, idle, fork, execute others and load the library late. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "rig.h"

#define IDLE_MS    2000
#define IDLE_CPU_S 0.02 /* a sanitizer has threads of its own that wake now and then: see idle_limit */

static double idle_limit(void)
{
	return is_sanitized() ? 10 * IDLE_CPU_S : IDLE_CPU_S;
}

/* ---- The sleeping target: the other process connects, and then does nothing at all ------------------------------- */

struct introduction {
	struct address address;
	uint64_t memory;
	uint32_t rkey;
};

static struct introduction introduce(const struct pair_end *end)
{
	return (struct introduction){ address_of(end->qp), (uintptr_t)end->buffer.bytes, end->buffer.mr->rkey };
}

static struct introduction exchange(int socket, const struct pair_end *end)
{
	struct introduction own = introduce(end), other;

	peer_send(socket, &own, sizeof(own));
	peer_receive(socket, &other, sizeof(other));
	to_init(end->qp);
	to_rts(end->qp, &other.address);
	peer_send(socket, "!", 1); /* each waits until the other is ready */
	peer_receive(socket, &(char){ 0 }, 1);
	return other;
}

/* Tells how much CPU it took when it is woken by the signal. */
static double cpu_before;
static int report_socket;

static void report_cpu(int number)
{
	double spent = cpu_seconds() - cpu_before;
	ssize_t sent = write(report_socket, &spent, sizeof(spent));

	_exit(sent == sizeof(spent) ? 0 : 1);
}

static _Noreturn void sleep_as_target(int socket)
{
	struct pair_end end = make_end(65536, 16);

	memset(end.buffer.bytes, 0x11, end.buffer.length);
	exchange(socket, &end);
	report_socket = socket;
	cpu_before = cpu_seconds();
	signal(SIGUSR1, report_cpu);
	peer_send(socket, "?", 1);
	for (;;)
		pause();
}

static void *wait_for_event(void *argument)
{
	const struct pair_end *end = argument;
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(end->channel, &cq, &context);
	return NULL;
}

/* Programs end their event threads by cancelling them (rping does). */
static _Noreturn void cancel_waiter_and_sleep(int socket)
{
	struct pair_end end = make_end(4096, 16);

	exchange(socket, &end);
	pthread_t waiter = thread_start(wait_for_event, &end);
	sleep_ms(50);
	pthread_cancel(waiter);
	thread_join(waiter);
	peer_send(socket, "?", 1);
	for (;;)
		pause();
}

static struct ibv_wc request_and_wait(struct pair_end *end, struct request request)
{
	request.local = &end->buffer;
	REQUIRE_EQUAL(post(end->qp, &request), 0);
	return wait_completion(end->cq);
}

static void end_peer(struct peer *peer)
{
	int status;

	kill(peer->pid, SIGKILL);
	REQUIRE(waitpid(peer->pid, &status, 0) == peer->pid);
	close(peer->socket);
}

/* ---- Device memory: a local peer maps it ------------------------------------------------------------------------- */

enum { SHARED = 262144 };

static struct ibv_mr *share_device_memory(struct ibv_pd *pd, struct ibv_dm **dm, const void *bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = SHARED };

	*dm = ibv_alloc_dm(pd->context, &attr);
	REQUIRE(*dm);
	REQUIRE_EQUAL(ibv_memcpy_to_dm(*dm, 0, bytes, SHARED), 0);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, *dm, 0, SHARED, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	REQUIRE(mr);
	return mr;
}

static void fill_bytes(uint8_t *bytes, unsigned seed)
{
	for (unsigned i = 0; i < SHARED; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

/* Twice, and the second is allocated when they have met. */
static _Noreturn void share_and_unshare(int socket)
{
	struct pair_end end = make_end(SHARED, 16);

	exchange(socket, &end);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_dm *dm;
		fill_bytes(end.buffer.bytes, i);
		struct ibv_mr *mr = share_device_memory(end.qp->pd, &dm, end.buffer.bytes);
		peer_send(socket, &mr->rkey, sizeof(mr->rkey));
		peer_receive(socket, &(char){ 0 }, 1);
		REQUIRE_EQUAL(ibv_dereg_mr(mr), 0);
		REQUIRE_EQUAL(ibv_free_dm(dm), 0);
		peer_send(socket, "!", 1);
		peer_receive(socket, &(char){ 0 }, 1);
	}
	for (;;)
		pause();
}

/* How many mappings there are that are read alone, of so many bytes of a local peer's. */
static unsigned count_mapped(size_t bytes)
{
	unsigned long first, end;
	unsigned count = 0;
	char line[512], rights[8];
	FILE *maps = fopen("/proc/self/maps", "r");

	REQUIRE(maps);
	while (fgets(line, sizeof(line), maps))
		count += sscanf(line, "%lx-%lx %7s", &first, &end, rights) == 3 && end - first == bytes &&
			 strcmp(rights, "r--s") == 0 && strstr(line, "verbena memory");
	fclose(maps);
	return count;
}

static bool will_be_mapped(size_t bytes, unsigned count)
{
	for (unsigned ms = 0; ms < 5000 && count_mapped(bytes) != count; ms++)
		sleep_ms(1);
	return count_mapped(bytes) == count;
}

static void device_memory_is_mapped_by_who_reads_it(void)
{
	static uint8_t expected[SHARED];
	struct peer peer = peer_start("device memory");
	struct pair_end end = make_end(SHARED, 16);
	uint32_t rkey;

	exchange(peer.socket, &end);
	bool is_local = !getenv("VERBENA_LOCAL");
	for (unsigned i = 0; i < 2; i++) {
		peer_receive(peer.socket, &rkey, sizeof(rkey));
		REQUIRE(will_be_mapped(SHARED, is_local));
		memset(end.buffer.bytes, 0, SHARED);
		REQUIRE_EQUAL(
			request_and_wait(&end,
				(struct request){
					.opcode = IBV_WR_RDMA_READ, .length = SHARED - 11, .remote = 11, .rkey = rkey })
				.status,
			IBV_WC_SUCCESS);
		fill_bytes(expected, i);
		REQUIRE(memcmp(end.buffer.bytes, expected + 11, SHARED - 11) == 0);
		peer_send(peer.socket, "!", 1);
		peer_receive(peer.socket, &(char){ 0 }, 1);
		REQUIRE(will_be_mapped(SHARED, 0));
		peer_send(peer.socket, "!", 1);
	}
	end_peer(&peer);
	to_error(end.qp);
	free_end(&end);
}

/* ---- Registered memory, on request ------------------------------------------------------------------------------- */

enum { REGISTERED = 1 << 21 };

/* A page more, of which half is registered at each end. */
static uint8_t *registered_memory(struct ibv_pd *pd, struct ibv_mr **mr)
{
	uint8_t *bytes = mmap(NULL, REGISTERED + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(bytes != MAP_FAILED);
	for (unsigned i = 0; i < REGISTERED + 4096; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	*mr = ibv_reg_mr(pd, bytes + 2048, REGISTERED, ACCESS_ALL);
	REQUIRE(*mr);
	return bytes;
}

/* Twice registered, it is shared until the last region is gone. */
static _Noreturn void register_and_leave(int socket)
{
	struct pair_end end = make_end(65536, 16);
	struct ibv_mr *mr;

	exchange(socket, &end);
	uint8_t *bytes = registered_memory(end.qp->pd, &mr);
	struct ibv_mr *inside = ibv_reg_mr(end.qp->pd, bytes + 4096, REGISTERED - 8192, ACCESS_ALL);
	REQUIRE(inside);
	REQUIRE_EQUAL(ibv_dereg_mr(inside), 0);
	struct introduction own = { .memory = (uintptr_t)bytes + 2048, .rkey = mr->rkey };
	peer_send(socket, &own, sizeof(own));
	peer_receive(socket, &(char){ 0 }, 1);
	for (unsigned i = 0; i < REGISTERED + 4096; i++)
		REQUIRE_EQUAL(bytes[i], (uint8_t)(i * 7 + i / 251));
	REQUIRE_EQUAL(ibv_dereg_mr(mr), 0);
	for (;;)
		pause();
}

static void registered_memory_is_mapped_on_request(void)
{
	setenv("VERBENA_MAP", "registered", 1);
	struct peer peer = peer_start("registered memory");
	struct pair_end end = make_end(REGISTERED, 16);
	struct introduction target;

	exchange(peer.socket, &end);
	bool is_local = !getenv("VERBENA_LOCAL");
	peer_receive(peer.socket, &target, sizeof(target));
	REQUIRE(will_be_mapped(REGISTERED - 4096, is_local));
	REQUIRE_EQUAL(request_and_wait(&end, (struct request){ .opcode = IBV_WR_RDMA_READ,
						     .length = REGISTERED,
						     .remote = target.memory,
						     .rkey = target.rkey })
			      .status,
		IBV_WC_SUCCESS);
	for (unsigned i = 0; i < REGISTERED; i++)
		REQUIRE_EQUAL(end.buffer.bytes[i], (uint8_t)((i + 2048) * 7 + (i + 2048) / 251));
	peer_send(peer.socket, "!", 1);
	REQUIRE(will_be_mapped(REGISTERED - 4096, 0));
	end_peer(&peer);
	to_error(end.qp);
	free_end(&end);
}

static void a_target_whose_waiter_was_cancelled_is_written(void)
{
	/* ThreadSanitizer does not see the locks that a thread takes while it is being cancelled. */
	if (is_sanitized())
		skip("not with a sanitizer");
	struct peer peer = peer_start("cancelled");
	struct pair_end end = make_end(4096, 16);
	struct introduction target = exchange(peer.socket, &end);

	peer_receive(peer.socket, &(char){ 0 }, 1);
	for (unsigned i = 0; i < 20; i++)
		REQUIRE_EQUAL(request_and_wait(&end, (struct request){ .opcode = IBV_WR_RDMA_WRITE,
							     .length = 64,
							     .remote = target.memory,
							     .rkey = target.rkey })
				      .status,
			IBV_WC_SUCCESS);
	end_peer(&peer);
	to_error(end.qp);
	free_end(&end);
}

static void a_target_asleep_in_pause_is_read_and_written(void)
{
	struct peer peer = peer_start("target");
	struct pair_end end = make_end(65536, 16);
	struct introduction target = exchange(peer.socket, &end);
	uint64_t counter, was;

	peer_receive(peer.socket, &(char){ 0 }, 1);
	for (unsigned i = 0; i < 200; i++) {
		memset(end.buffer.bytes, (int)i, 32768);
		REQUIRE_EQUAL(request_and_wait(&end, (struct request){ .opcode = IBV_WR_RDMA_WRITE,
							     .length = 32768,
							     .remote = target.memory,
							     .rkey = target.rkey })
				      .status,
			IBV_WC_SUCCESS);
		REQUIRE_EQUAL(request_and_wait(&end, (struct request){ .opcode = IBV_WR_RDMA_READ,
							     .length = 32768,
							     .offset = 32768,
							     .remote = target.memory + 8,
							     .rkey = target.rkey })
				      .status,
			IBV_WC_SUCCESS);
		REQUIRE(memcmp(end.buffer.bytes, end.buffer.bytes + 32768, 32760) == 0);
		REQUIRE_EQUAL(end.buffer.bytes[65535], 0x11);
		REQUIRE_EQUAL(request_and_wait(&end, (struct request){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
							     .length = 8,
							     .remote = target.memory + 40000,
							     .rkey = target.rkey,
							     .compare_add = 3 })
				      .status,
			IBV_WC_SUCCESS);
		memcpy(&counter, end.buffer.bytes, 8);
		was = 0x1111111111111111 + 3 * i;
		REQUIRE_EQUAL(counter, was);
	}
	sleep_ms(IDLE_MS); /* and does not burn its core when nobody asks */
	double spent;
	REQUIRE_EQUAL(kill(peer.pid, SIGUSR1), 0);
	peer_receive(peer.socket, &spent, sizeof(spent));
	REQUIRE(spent < 1);
	end_peer(&peer);
	to_error(end.qp);
	free_end(&end);
}

/* ---- Idleness ---------------------------------------------------------------------------------------------------- */

static double cpu_while_idle(void)
{
	sleep_ms(100); /* the progress thread takes the lane back from the pollers */
	double before = cpu_seconds();
	sleep_ms(IDLE_MS);
	return cpu_seconds() - before;
}

static void *block_in_get_cq_event(void *argument)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(argument, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void an_idle_process_uses_no_cpu(void)
{
	struct pair pair = make_pair(65536, 16);
	double freshly = cpu_while_idle();

	for (unsigned i = 0; i < 500; i++)
		REQUIRE_EQUAL(request_and_wait(&pair.a, (struct request){ .opcode = IBV_WR_RDMA_WRITE,
								.length = 65536,
								.remote = (uintptr_t)pair.b.buffer.bytes,
								.rkey = pair.b.buffer.mr->rkey })
				      .status,
			IBV_WC_SUCCESS);
	double after_traffic = cpu_while_idle();
	/* With one thread blocked for a completion that does not come. */
	REQUIRE_EQUAL(post_receive(pair.b.qp, 0, &pair.b.buffer, 0, 64), 0);
	REQUIRE_EQUAL(ibv_req_notify_cq(pair.b.cq, 0), 0);
	pthread_t blocked = thread_start(block_in_get_cq_event, pair.b.channel);
	double while_blocked = cpu_while_idle();
	to_error(pair.b.qp);
	thread_join(blocked);

	printf("  CPU in %.1f s: %.1f ms when fresh, %.1f ms after traffic, %.1f ms blocked\n", IDLE_MS / 1e3,
		freshly * 1e3, after_traffic * 1e3, while_blocked * 1e3);
	REQUIRE(freshly < idle_limit());
	REQUIRE(after_traffic < idle_limit());
	REQUIRE(while_blocked < idle_limit());
	free_pair(&pair);
}

/* ---- Forks ------------------------------------------------------------------------------------------------------- */

/* Traffic of one thread that must not notice what the others do. */
struct traffic {
	struct pair pair;
	atomic_bool is_over;
	atomic_uint count;
	pthread_t thread;
};

static void *write_on(void *argument)
{
	struct traffic *t = argument;

	while (!atomic_load(&t->is_over)) {
		struct ibv_wc wc = request_and_wait(&t->pair.a, (struct request){ .opcode = IBV_WR_RDMA_WRITE,
									.length = 8192,
									.remote = (uintptr_t)t->pair.b.buffer.bytes,
									.rkey = t->pair.b.buffer.mr->rkey });
		REQUIRE_EQUAL(wc.status, IBV_WC_SUCCESS);
		atomic_fetch_add(&t->count, 1);
	}
	return NULL;
}

static void traffic_start(struct traffic *t)
{
	*t = (struct traffic){ .pair = make_pair(8192, 16) };
	t->thread = thread_start(write_on, t);
}

static void traffic_must_go_on(struct traffic *t)
{
	unsigned before = atomic_load(&t->count);
	double began = seconds_now();

	while (atomic_load(&t->count) < before + 10) {
		REQUIRE(seconds_now() - began < 10);
		sleep_ms(1);
	}
}

static void traffic_stop(struct traffic *t)
{
	atomic_store(&t->is_over, true);
	thread_join(t->thread);
	free_pair(&t->pair);
}

static int wait_for(pid_t pid)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Every verb in a child answers with an errno: a NULL or a code, never a crash, never a wait. */
static void use_verbs_in_child(struct pair_end *end)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct ibv_async_event event;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	void *context;

	alarm(20);
	REQUIRE(!ibv_alloc_pd(end->context) && errno == EPERM);
	REQUIRE(!ibv_reg_mr(end->pd, end->buffer.bytes, 4096, 0) && errno == EPERM);
	REQUIRE(!ibv_create_cq(end->context, 16, NULL, NULL, 0) && errno == EPERM);
	REQUIRE(!ibv_create_comp_channel(end->context) && errno == EPERM);
	REQUIRE(!ibv_create_srq(end->pd, &(struct ibv_srq_init_attr){ .attr = { .max_wr = 1, .max_sge = 1 } }));
	REQUIRE(!ibv_create_qp(end->pd,
		&(struct ibv_qp_init_attr){
			.send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1 } }));
	REQUIRE(!ibv_create_ah(end->pd, &(struct ibv_ah_attr){ .is_global = 1, .port_num = 1 }));
	REQUIRE(post(end->qp, &(struct request){ .opcode = IBV_WR_SEND, .local = &end->buffer, .length = 8 }) != 0);
	REQUIRE(post_receive(end->qp, 0, &end->buffer, 0, 64) != 0);
	REQUIRE(ibv_poll_cq(end->cq, 1, &wc) < 0);
	REQUIRE(ibv_req_notify_cq(end->cq, 0) != 0);
	REQUIRE(ibv_get_cq_event(end->channel, &cq, &context) == -1);
	REQUIRE(ibv_get_async_event(end->context, &event) == -1);
	REQUIRE(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE) != 0);
	REQUIRE(ibv_rereg_mr(end->buffer.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	REQUIRE_EQUAL(ibv_dereg_mr(end->buffer.mr), EPERM);
	REQUIRE_EQUAL(ibv_destroy_qp(end->qp), EPERM);
	REQUIRE_EQUAL(ibv_destroy_cq(end->cq), EPERM);
	REQUIRE_EQUAL(ibv_dealloc_pd(end->pd), EPERM);
}

static void a_forked_childs_verbs_return_an_errno(void)
{
	struct traffic traffic;

	traffic_start(&traffic);
	for (unsigned i = 0; i < 4; i++) {
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			use_verbs_in_child(&traffic.pair.a);
			if (i % 2)
				REQUIRE_EQUAL(ibv_close_device(traffic.pair.a.context), 0);
			if (i < 2)
				_exit(0);
			exit(0);
		}
		REQUIRE_EQUAL(wait_for(pid), 0);
		traffic_must_go_on(&traffic);
	}
	traffic_stop(&traffic);
}

/* One message from a to b, both of this process. */
static void exchange_message(struct pair *pair)
{
	memset(pair->a.buffer.bytes, 0x44, 4096);
	memset(pair->b.buffer.bytes, 0, 4096);
	REQUIRE_EQUAL(post_receive(pair->b.qp, 0, &pair->b.buffer, 0, 4096), 0);
	REQUIRE_EQUAL(request_and_wait(&pair->a, (struct request){ .opcode = IBV_WR_SEND, .length = 4096 }).status,
		IBV_WC_SUCCESS);
	REQUIRE_EQUAL(wait_completion(pair->b.cq).status, IBV_WC_SUCCESS);
	REQUIRE(memcmp(pair->a.buffer.bytes, pair->b.buffer.bytes, 4096) == 0);
}

/* A child may be a program like any other, beside what its parent left it: forking servers are made so. */
static void a_forked_child_opens_a_device_of_its_own(void)
{
	struct traffic traffic;

#ifdef __SANITIZE_THREAD__
	skip("ThreadSanitizer knows no threads of a child's child");
#endif
	traffic_start(&traffic);
	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			alarm(20);
			struct pair own = make_pair(65536, 16);
			exchange_message(&own);
			use_verbs_in_child(&traffic.pair.a); /* what is the parent's stays so */
			exchange_message(&own);
			pid_t grandchild = fork();
			REQUIRE(grandchild >= 0);
			if (grandchild == 0) {
				use_verbs_in_child(&own.a);
				struct pair third = make_pair(65536, 16);
				exchange_message(&third);
				free_pair(&third);
				exit(0);
			}
			REQUIRE_EQUAL(wait_for(grandchild), 0);
			if (i > 0)
				REQUIRE_EQUAL(ibv_close_device(traffic.pair.a.context), 0);
			exchange_message(&own);
			free_pair(&own);
			if (i == 1)
				_exit(0);
			exit(0);
		}
		REQUIRE_EQUAL(wait_for(pid), 0);
		traffic_must_go_on(&traffic);
	}
	traffic_stop(&traffic);
}

/* ---- What stderr says of a parent's objects in a child ----------------------------------------------------------- */

static void use(struct pair_end *end)
{
	use_verbs_in_child(end);
	use_verbs_in_child(end);
}

static void use_by_qp_alone(struct pair_end *end)
{
	REQUIRE_EQUAL(ibv_query_qp(end->qp, &(struct ibv_qp_attr){ 0 }, IBV_QP_STATE, &(struct ibv_qp_init_attr){ 0 }),
		EPERM);
}

/* Which is the child's own, and needs no device. Programs that allocate in several processes do so. */
static void use_device_memory(struct pair_end *end)
{
	struct ibv_dm *dm = ibv_alloc_dm(end->context, &(struct ibv_alloc_dm_attr){ .length = 1 << 17 });
	uint32_t word = 7, is = 0;

	REQUIRE(dm);
	REQUIRE_EQUAL(ibv_memcpy_to_dm(dm, 4096, &word, sizeof(word)), 0);
	REQUIRE_EQUAL(ibv_memcpy_from_dm(&is, dm, 4096, sizeof(is)), 0);
	REQUIRE_EQUAL(is, 7);
	REQUIRE_EQUAL(ibv_free_dm(dm), 0);
}

/* As the destructors of a program do when its child exits. */
static void close_all(struct pair_end *end)
{
	REQUIRE_EQUAL(ibv_destroy_qp(end->qp), EPERM);
	REQUIRE_EQUAL(ibv_dereg_mr(end->buffer.mr), EPERM);
	REQUIRE_EQUAL(ibv_destroy_cq(end->cq), EPERM);
	REQUIRE_EQUAL(ibv_destroy_comp_channel(end->channel), EPERM);
	REQUIRE_EQUAL(ibv_dealloc_pd(end->pd), EPERM);
	REQUIRE_EQUAL(ibv_close_device(end->context), 0);
}

static void leave(struct pair_end *end)
{
	exit(0);
}

static void execute_another(struct pair_end *end)
{
	execl("/bin/true", "true", NULL);
}

/* Those that begin with the text. */
static unsigned count_lines(FILE *file, const char *text)
{
	char line[1024];
	unsigned count = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		count += strncmp(line, text, strlen(text)) == 0;
	return count;
}

static void a_forked_child_is_told_once_to_open_the_device_again(void)
{
	static const struct {
		void (*act)(struct pair_end *end);
		unsigned lines;
	} children[] = { { use, 1 }, { use_by_qp_alone, 1 }, { use_device_memory, 0 }, { close_all, 0 }, { leave, 0 },
		{ execute_another, 0 } };
	struct pair pair = make_pair(65536, 16);
	FILE *said = tmpfile();
	char wanted[256];

	REQUIRE(said);
	for (unsigned i = 0; i < sizeof(children) / sizeof(children[0]); i++) {
		rewind(said);
		REQUIRE_EQUAL(ftruncate(fileno(said), 0), 0);
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			REQUIRE(dup2(fileno(said), STDERR_FILENO) == STDERR_FILENO);
			children[i].act(&pair.a);
			_exit(0);
		}
		REQUIRE_EQUAL(wait_for(pid), 0);
		snprintf(wanted, sizeof(wanted),
			"verbena: process %d was forked from one that had opened Verbena's devices: open the device "
			"again in the child\n",
			(int)pid);
		REQUIRE_EQUAL(count_lines(said, wanted), children[i].lines);
		REQUIRE_EQUAL(count_lines(said, "verbena: "), children[i].lines);
	}
	fclose(said);
	exchange_message(&pair);
	free_pair(&pair);
}

/* Of each kind that a_forked_childs_verbs_return_an_errno leaves out. */
static void a_forked_child_destroys_nothing_of_its_parents(void)
{
	struct pair_end end = make_end(4096, 16);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT
	};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(end.context);
	struct ibv_srq *srq = ibv_create_srq(end.pd, &srq_attr);
	struct ibv_mw *mw = ibv_alloc_mw(end.pd, IBV_MW_TYPE_1);
	struct ibv_dm *dm = ibv_alloc_dm(end.context, &(struct ibv_alloc_dm_attr){ .length = 64 });
	struct ibv_td *td = ibv_alloc_td(end.context, &td_attr);
	struct ibv_pd *parent =
		ibv_alloc_parent_domain(end.context, &(struct ibv_parent_domain_init_attr){ .pd = end.pd, .td = td });
	struct ibv_xrcd *xrcd = ibv_open_xrcd(end.context, &xrcd_attr);
	uint32_t word = 7;

	REQUIRE(channel && srq && mw && dm && td && parent && xrcd);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		alarm(20);
		REQUIRE_EQUAL(ibv_destroy_comp_channel(channel), EPERM);
		REQUIRE_EQUAL(ibv_destroy_srq(srq), EPERM);
		REQUIRE_EQUAL(ibv_dealloc_mw(mw), EPERM);
		REQUIRE_EQUAL(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), EPERM);
		REQUIRE_EQUAL(ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)), EPERM);
		REQUIRE_EQUAL(ibv_free_dm(dm), EPERM);
		REQUIRE_EQUAL(ibv_dealloc_pd(parent), EPERM);
		REQUIRE_EQUAL(ibv_dealloc_td(td), EPERM);
		REQUIRE_EQUAL(ibv_close_xrcd(xrcd), EPERM);
		_exit(0);
	}
	REQUIRE_EQUAL(wait_for(pid), 0);
	REQUIRE_EQUAL(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), 0);
	REQUIRE_EQUAL(ibv_free_dm(dm), 0);
	REQUIRE_EQUAL(ibv_dealloc_mw(mw), 0);
	REQUIRE_EQUAL(ibv_destroy_srq(srq), 0);
	REQUIRE_EQUAL(ibv_destroy_comp_channel(channel), 0);
	REQUIRE_EQUAL(ibv_dealloc_pd(parent), 0);
	REQUIRE_EQUAL(ibv_dealloc_td(td), 0);
	REQUIRE_EQUAL(ibv_close_xrcd(xrcd), 0);
	free_end(&end);
}

static atomic_bool is_listing_over;

static void *list_devices(void *argument)
{
	while (!is_listing_over)
		ibv_free_device_list(ibv_get_device_list(NULL));
	return NULL;
}

static void a_child_forked_while_devices_are_listed_can_list_them(void)
{
	pthread_t thread;
#ifdef __SANITIZE_THREAD__
	skip("ThreadSanitizer ends a child whose thread gets the stack of one that its parent had");
#endif
	ibv_free_device_list(ibv_get_device_list(NULL));
	REQUIRE_EQUAL(pthread_create(&thread, NULL, list_devices, NULL), 0);
	for (unsigned i = 0; i < 50; i++) {
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			alarm(20);
			struct ibv_device **list = ibv_get_device_list(NULL);
			_exit(list && list[0] ? 0 : 1);
		}
		REQUIRE_EQUAL(wait_for(pid), 0);
	}
	is_listing_over = true;
	pthread_join(thread, NULL);
}

/* A thread that is in the middle of something stays behind, with the locks it holds. */
static void a_forked_child_waits_for_no_lock(void)
{
	struct pair_end end = make_end(4096, 16);
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(end.context, &attr);
	struct ibv_poll_cq_attr polled = { 0 };

	REQUIRE(cq);
	struct ibv_qp *qp =
		make_qp(end.pd, (struct qp_size){ .send_cq = ibv_cq_ex_to_cq(cq), .depth = 8, .has_wr_api = true });
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	connect_pair(qp, end.qp);
	REQUIRE_EQUAL(post_receive(qp, 0, &end.buffer, 0, 64), 0);
	to_error(qp);
	REQUIRE_EQUAL(ibv_start_poll(cq, &polled), 0); /* the flushed receive */
	ibv_wr_start(ex);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		alarm(20);
		REQUIRE_EQUAL(ibv_start_poll(cq, &polled), EPERM);
		REQUIRE(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &(struct ibv_wc){ 0 }) < 0);
		ibv_wr_start(ex);
		ibv_wr_abort(ex);
		ibv_wr_start(ex);
		ibv_wr_rdma_write(ex, end.buffer.mr->rkey, (uintptr_t)end.buffer.bytes);
		ibv_wr_set_sge(ex, end.buffer.mr->lkey, (uintptr_t)end.buffer.bytes, 8);
		REQUIRE_EQUAL(ibv_wr_complete(ex), EPERM);
		REQUIRE(post(qp, &(struct request){ .opcode = IBV_WR_SEND, .local = &end.buffer, .length = 8 }) != 0);
		REQUIRE_EQUAL(ibv_close_device(end.context), 0);
		_exit(0);
	}
	REQUIRE_EQUAL(wait_for(pid), 0);
	ibv_wr_abort(ex);
	ibv_end_poll(cq);
	REQUIRE_EQUAL(ibv_destroy_qp(qp), 0);
	REQUIRE_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	free_end(&end);
}

/* A child has memory of its own: what it does to the registered pages is not seen here, and our traffic not there. */
static void a_forked_child_shares_no_memory(void)
{
	struct traffic traffic;
	struct pair_end *target;

	traffic_start(&traffic);
	target = &traffic.pair.b;
	struct buffer private = make_buffer(target->pd, 4096);
	memset(private.bytes, 0x22, private.length);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		memset(private.bytes, 0x33, private.length);
		pause();
	}
	struct pair_end from = make_end(4096, 16);
	struct ibv_qp *to = make_qp(target->pd, (struct qp_size){ .send_cq = target->cq, .depth = 4 });
	connect_pair(from.qp, to);
	REQUIRE_EQUAL(request_and_wait(&from, (struct request){ .opcode = IBV_WR_RDMA_READ,
						      .length = 4096,
						      .remote = (uintptr_t) private.bytes,
						      .rkey = private.mr->rkey })
			      .status,
		IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4096; i++)
		REQUIRE_EQUAL(from.buffer.bytes[i], 0x22);
	kill(pid, SIGKILL);
	wait_for(pid);
	REQUIRE_EQUAL(ibv_destroy_qp(to), 0);
	free_end(&from);
	free_buffer(&private);
	traffic_must_go_on(&traffic);
	traffic_stop(&traffic);
}

static void many_forks_under_traffic(void)
{
	struct traffic traffic[2];

	traffic_start(&traffic[0]);
	traffic_start(&traffic[1]);
	for (unsigned i = 0; i < (is_sanitized() ? 10 : 60); i++) {
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0 && i % 2)
			_exit(0);
		if (pid == 0)
			exit(0);
		if (i % 5 == 0)
			traffic_must_go_on(&traffic[i % 2]);
		REQUIRE_EQUAL(wait_for(pid), 0);
	}
	traffic_must_go_on(&traffic[0]);
	traffic_must_go_on(&traffic[1]);
	traffic_stop(&traffic[0]);
	traffic_stop(&traffic[1]);
}

/* A child that outlives its parent keeps nothing of it: the parent's slot is free, and others get on. */
static void an_orphan_holds_nothing(void)
{
	int orphan[2];

	REQUIRE_EQUAL(pipe(orphan), 0);
	pid_t parent = fork();
	if (parent == 0) {
		struct pair pair = make_pair(4096, 16);
		(void)pair;
		pid_t child = fork();
		if (child == 0) {
			alarm(60);
			unsigned fds = count_fds();
			REQUIRE(write(orphan[1], &fds, sizeof(fds)) == sizeof(fds));
			for (;;)
				pause();
		}
		REQUIRE(write(orphan[1], &child, sizeof(child)) == sizeof(child));
		sleep_ms(200);
		_exit(0);
	}
	REQUIRE_EQUAL(wait_for(parent), 0);
	struct pair pair = make_pair(4096, 16); /* in this process, which had opened nothing before */
	REQUIRE_EQUAL(request_and_wait(&pair.a, (struct request){ .opcode = IBV_WR_RDMA_WRITE,
							.length = 64,
							.remote = (uintptr_t)pair.b.buffer.bytes,
							.rkey = pair.b.buffer.mr->rkey })
			      .status,
		IBV_WC_SUCCESS);
	free_pair(&pair);
	int values[2];
	REQUIRE(read(orphan[0], values, sizeof(values)) == sizeof(values));
	kill(values[0] > values[1] ? values[0] : values[1], SIGKILL); /* a pid is larger than a count of descriptors */
}

/* ---- exec -------------------------------------------------------------------------------------------------------- */

static _Noreturn void show_descriptors(int socket)
{
	unsigned fds = count_fds(); /* three, and the socket */

	peer_send(socket, &fds, sizeof(fds));
	_exit(0);
}

static unsigned fds_of_executed(void)
{
	unsigned fds;
	struct peer peer = peer_start("descriptors");

	peer_receive(peer.socket, &fds, sizeof(fds));
	REQUIRE_EQUAL(wait_for(peer.pid), 0);
	close(peer.socket);
	return fds;
}

static void executed_programs_inherit_nothing(void)
{
	unsigned without = fds_of_executed();
	struct traffic traffic;

	traffic_start(&traffic);
	for (unsigned i = 0; i < 10; i++) {
		REQUIRE_EQUAL(fds_of_executed(), without);
		traffic_must_go_on(&traffic);
	}
	for (unsigned i = 0; i < 10; i++)
		REQUIRE_EQUAL(system("exit 3"), 3 << 8);
	FILE *command = popen("echo here", "r");
	char line[16] = "";
	REQUIRE(command && fgets(line, sizeof(line), command) && strcmp(line, "here\n") == 0);
	REQUIRE_EQUAL(pclose(command), 0);
	traffic_must_go_on(&traffic);
	traffic_stop(&traffic);
}

/* ---- A local peer's end ------------------------------------------------------------------------------------------ */

static _Noreturn void fork_and_sleep(int socket)
{
	struct pair_end end = make_end(4096, 16);

	exchange(socket, &end);
	pid_t child = fork();
	if (child)
		peer_send(socket, &child, sizeof(child));
	alarm(60);
	for (;;)
		pause();
}

/* Nor has it to have heard of us before it was stopped. */
static void a_local_peer_stopped_at_once_is_no_error(void)
{
	if (is_over_the_wire())
		skip("packets are given up");
	struct peer peer = peer_start("forks");
	struct pair_end end = make_end(4096, 16);
	struct introduction target = exchange(peer.socket, &end);
	struct request write = { .opcode = IBV_WR_RDMA_WRITE,
		.local = &end.buffer,
		.length = 64,
		.remote = target.memory,
		.rkey = target.rkey };
	struct ibv_wc wc;
	pid_t child;

	REQUIRE_EQUAL(kill(peer.pid, SIGSTOP), 0);
	REQUIRE_EQUAL(post(end.qp, &write), 0);
	for (unsigned i = 0; i < 2000; i++) {
		int found = ibv_poll_cq(end.cq, 1, &wc);
		REQUIRE(found == 0 || wc.status == IBV_WC_SUCCESS);
		if (found)
			break; /* it was executed just before */
		sleep_ms(1);
	}
	REQUIRE_EQUAL(kill(peer.pid, SIGCONT), 0);
	REQUIRE_EQUAL(request_and_wait(&end, write).status, IBV_WC_SUCCESS);
	peer_receive(peer.socket, &child, sizeof(child));
	kill(child, SIGKILL);
	end_peer(&peer);
	free_end(&end);
}

/* What was under way is told to have failed, soon, but not at once: whoever leaves first with all that he wants may
 * not fail a program that has polled less. Nor does a forked child that lives on hide its parent's death. */
static void a_local_peers_death_is_told_soon_and_not_at_once(void)
{
	if (is_over_the_wire())
		skip("packets are sent again for longer");
	struct peer peer = peer_start("forks");
	struct pair_end end = make_end(4096, 16);
	struct introduction target = exchange(peer.socket, &end);
	struct request write = {
		.opcode = IBV_WR_RDMA_WRITE, .length = 64, .remote = target.memory, .rkey = target.rkey
	};
	struct ibv_wc wc;
	pid_t child;

	REQUIRE_EQUAL(request_and_wait(&end, write).status, IBV_WC_SUCCESS); /* and so they have met */
	if (is_sanitized()) { /* unless it took too long to greet, and then they have now */
		sleep_ms(1000);
		REQUIRE_EQUAL(request_and_wait(&end, write).status, IBV_WC_SUCCESS);
	}
	peer_receive(peer.socket, &child, sizeof(child));
	REQUIRE_EQUAL(kill(peer.pid, SIGSTOP), 0);
	sleep_ms(50); /* until all its threads have */
	write.local = &end.buffer;
	REQUIRE_EQUAL(post(end.qp, &write), 0);
	sleep_ms(1000);
	REQUIRE_EQUAL(ibv_poll_cq(end.cq, 1, &wc), 0);
	double began = seconds_now();
	end_peer(&peer);
	sleep_ms(200);
	REQUIRE_EQUAL(ibv_poll_cq(end.cq, 1, &wc), 0);
	REQUIRE_EQUAL(wait_completion(end.cq).status, IBV_WC_RETRY_EXC_ERR);
	REQUIRE(seconds_now() - began < (is_sanitized() ? 5 : 1.5));
	kill(child, SIGKILL);
	free_end(&end);
}

/* ---- Two processes, several threads each ------------------------------------------------------------------------- */

enum { CONNECTIONS = 4 };

struct connection {
	struct pair_end end;
	struct introduction other;
	unsigned count;
};

static void *write_and_read_back(void *argument)
{
	struct connection *c = argument;
	uint32_t random = (uint32_t)(uintptr_t)c;

	for (unsigned i = 0; i < c->count; i++) {
		size_t length = 1 + next_random(&random) % 16384;
		memset(c->end.buffer.bytes, (int)i, length);
		REQUIRE_EQUAL(request_and_wait(&c->end, (struct request){ .opcode = IBV_WR_RDMA_WRITE,
								.length = length,
								.remote = c->other.memory,
								.rkey = c->other.rkey })
				      .status,
			IBV_WC_SUCCESS);
		REQUIRE_EQUAL(request_and_wait(&c->end, (struct request){ .opcode = IBV_WR_RDMA_READ,
								.length = length,
								.offset = 16384,
								.remote = c->other.memory,
								.rkey = c->other.rkey })
				      .status,
			IBV_WC_SUCCESS);
		REQUIRE(memcmp(c->end.buffer.bytes, c->end.buffer.bytes + 16384, length) == 0);
	}
	return NULL;
}

/* Both sides do the same: the halves of a connection's memory do not overlap. */
static void run_connections(int socket, unsigned count)
{
	struct connection connections[CONNECTIONS];
	pthread_t threads[CONNECTIONS];

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		connections[i] = (struct connection){ .end = make_end(65536, 16), .count = count };
		struct introduction other = exchange(socket, &connections[i].end);
		other.memory += 32768; /* the upper half is the other side's to write */
		connections[i].other = other;
	}
	for (unsigned i = 0; i < CONNECTIONS; i++)
		threads[i] = thread_start(write_and_read_back, &connections[i]);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		thread_join(threads[i]);
	peer_send(socket, "!", 1);
	peer_receive(socket, &(char){ 0 }, 1);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		free_end(&connections[i].end);
}

static void two_processes_with_four_threads_each(void)
{
	struct peer peer = peer_start("connections");

	run_connections(peer.socket, is_sanitized() ? 200 : 1000);
	REQUIRE_EQUAL(wait_for(peer.pid), 0);
	close(peer.socket);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(a_target_asleep_in_pause_is_read_and_written),
		CASE(a_target_whose_waiter_was_cancelled_is_written),
		CASE(device_memory_is_mapped_by_who_reads_it),
		CASE(registered_memory_is_mapped_on_request),
		CASE(an_idle_process_uses_no_cpu),
		CASE(a_forked_childs_verbs_return_an_errno),
		CASE(a_forked_child_opens_a_device_of_its_own),
		CASE(a_forked_child_is_told_once_to_open_the_device_again),
		CASE(a_forked_child_destroys_nothing_of_its_parents),
		CASE(a_child_forked_while_devices_are_listed_can_list_them),
		CASE(a_forked_child_waits_for_no_lock),
		CASE(a_forked_child_shares_no_memory),
		CASE(many_forks_under_traffic),
		CASE(an_orphan_holds_nothing),
		CASE(executed_programs_inherit_nothing),
		CASE(a_local_peer_stopped_at_once_is_no_error),
		CASE(a_local_peers_death_is_told_soon_and_not_at_once),
		CASE(two_processes_with_four_threads_each),
	};
	int socket;

	if ((socket = peer_socket(argc, argv, "target")) >= 0)
		sleep_as_target(socket);
	if ((socket = peer_socket(argc, argv, "registered memory")) >= 0)
		register_and_leave(socket);
	if ((socket = peer_socket(argc, argv, "device memory")) >= 0)
		share_and_unshare(socket);
	if ((socket = peer_socket(argc, argv, "cancelled")) >= 0)
		cancel_waiter_and_sleep(socket);
	if ((socket = peer_socket(argc, argv, "descriptors")) >= 0)
		show_descriptors(socket);
	if ((socket = peer_socket(argc, argv, "forks")) >= 0)
		fork_and_sleep(socket);
	if ((socket = peer_socket(argc, argv, "connections")) >= 0) {
		run_connections(socket, is_sanitized() ? 200 : 1000);
		return 0;
	}
	return run_cases(argc, argv, CASES(cases));
}
