/* Short ways for the clients to make, connect and use queue pairs on vb_lo. They see nothing of ours but
 * infiniband/verbs.h. All addresses are vb_lo's, so the two ends of a connection may live in one process or in two. */
#ifndef VB_TESTS_THREADS_RIG_H
#define VB_TESTS_THREADS_RIG_H

#include <infiniband/verbs.h>
#include "runner.h"

struct ibv_context *open_lo(void);

struct address {
	union ibv_gid gid;
	uint32_t qpn;
};

struct qp_size {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	uint32_t depth;        /* of both queues; 0: 128 */
	enum ibv_qp_type type; /* 0: RC */
	bool signals_some;     /* only what asks for it is signalled */
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
/* The same, again while the queue is full. A slot is free when its completion has been polled, so a CQ as large as the
 * queue cannot overrun. */
void post_when_room(struct ibv_qp *qp, const struct request *request);
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
