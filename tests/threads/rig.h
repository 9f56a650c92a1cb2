/* What the threaded clients share: a runner that gives each case a process of its own, and short ways to make, connect
 * and use queue pairs on vb_lo. The clients see nothing of ours but infiniband/verbs.h.
 *
 * A case that fails says where and aborts, whichever of its threads found it out. All addresses are vb_lo's, so the two
 * ends of a connection may live in one process or in two. */
#ifndef VB_TESTS_THREADS_RIG_H
#define VB_TESTS_THREADS_RIG_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

_Noreturn void fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define REQUIRE(claim)                                                                                                 \
	do {                                                                                                           \
		if (!(claim))                                                                                          \
			fail(__FILE__, __LINE__, "not true: %s (errno %d)", #claim, errno);                            \
	} while (0)
#define REQUIRE_EQUAL(seen, wanted)                                                                                    \
	do {                                                                                                           \
		long long seen_ = (long long)(seen), wanted_ = (long long)(wanted);                                    \
		if (seen_ != wanted_)                                                                                  \
			fail(__FILE__, __LINE__, "%s is %lld, not %lld", #seen, seen_, wanted_);                       \
	} while (0)

#define REQUIRE_LESS(seen, bound)                                                                                      \
	do {                                                                                                           \
		long long seen_ = (long long)(seen), bound_ = (long long)(bound);                                      \
		if (seen_ >= bound_)                                                                                   \
			fail(__FILE__, __LINE__, "%s is %lld, not below %lld", #seen, seen_, bound_);                  \
	} while (0)

struct test_case {
	const char *name;
	void (*run)(void);
};
#define CASE(function) { #function, function }
#define CASES(array) (array), sizeof(array) / sizeof((array)[0])

/* Runs the cases whose name contains argv[1], or all, each in a forked process; prints what became of them and a line
 * of counts. The exit status of the program: 77 where no network namespace may be made. */
int run_cases(int argc, char **argv, const struct test_case *cases, size_t count);
/* In a case: stop here, it cannot be done on this machine. */
_Noreturn void skip(const char *why);

/* A second process: this very program, executed with arguments in place of cases, and a stream socket to it. */
struct peer {
	pid_t pid;
	int socket;
};
struct peer peer_start(const char *role);
/* The socket in a process started by peer_start; -1 in one that was not. */
int peer_socket(int argc, char **argv, const char *role);
void peer_send(int socket, const void *bytes, size_t length);
void peer_receive(int socket, void *bytes, size_t length);

/* ---- Time, threads, what a process holds ---------------------------------------------------------------------------- */

double seconds_now(void);
void sleep_ms(unsigned ms);
double cpu_seconds(void); /* of this process so far */
unsigned count_fds(void);
size_t heap_bytes(void); /* allocated and not freed */
bool is_sanitized(void); /* everything takes several times as long */
pthread_t thread_start(void *(*run)(void *), void *argument);
void thread_join(pthread_t thread);
/* A cheap sequence of numbers; state is the caller's. */
uint32_t next_random(uint32_t *state);

/* ---- Verbs ---------------------------------------------------------------------------------------------------------- */

struct ibv_context *open_lo(void);

struct address {
	union ibv_gid gid;
	uint32_t qpn;
};

struct qp_size {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	uint32_t depth;		/* of both queues; 0: 128 */
	enum ibv_qp_type type;	/* 0: RC */
	bool signals_some;	/* only what asks for it is signalled */
	bool has_wr_api;
};
struct ibv_qp *make_qp(struct ibv_pd *pd, struct qp_size size);
struct address address_of(struct ibv_qp *qp);
void to_init(struct ibv_qp *qp);
/* From INIT to RTS. UD ignores the peer. */
void to_rts(struct ibv_qp *qp, const struct address *peer);
void connect_pair(struct ibv_qp *a, struct ibv_qp *b);
/* All the way from any state back to connected. */
void reconnect_pair(struct ibv_qp *a, struct ibv_qp *b);
void to_error(struct ibv_qp *qp);

#define ACCESS_ALL                                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Memory with its region: registered with ACCESS_ALL, pages of its own. */
struct buffer {
	uint8_t *bytes;
	size_t length;
	struct ibv_mr *mr;
};
struct buffer make_buffer(struct ibv_pd *pd, size_t length);
void free_buffer(struct buffer *buffer);

/* One signalled request; the errno of ibv_post_send. */
struct request {
	enum ibv_wr_opcode opcode;
	uint64_t id;
	const struct buffer *local;
	size_t offset, length;
	uint64_t remote; /* of WRITE, READ, atomics */
	uint32_t rkey;
	unsigned flags; /* beside IBV_SEND_SIGNALED */
	uint32_t imm;
	uint64_t compare_add, swap;
};
int post(struct ibv_qp *qp, const struct request *request);
/* How many requests may still be posted before completions must be taken: a queue's slots are free again before their
 * completions have been polled, so a full queue alone does not keep a CQ from overrunning. */
struct credits {
	atomic_int left;
};
void credits_take(struct credits *credits);
void credits_give(struct credits *credits);
/* The same as post, with a credit. */
void post_with_credit(struct ibv_qp *qp, const struct request *request, struct credits *credits);
int post_receive(struct ibv_qp *qp, uint64_t id, const struct buffer *local, size_t offset, size_t length);
/* The next completion; fails the case after ten seconds. */
struct ibv_wc wait_completion(struct ibv_cq *cq);
void wait_success(struct ibv_cq *cq, uint64_t id);

/* Two connected RC queue pairs with a CQ each, in one context or in two. */
struct pair_end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct buffer buffer;
};
struct pair {
	struct pair_end a, b;
};
struct pair make_pair(size_t buffer_length, uint32_t depth);
void free_pair(struct pair *pair);
struct pair_end make_end(size_t buffer_length, uint32_t depth);
void free_end(struct pair_end *end);

#endif
