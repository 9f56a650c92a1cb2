/* What the tests of verbs begin with: an opened device, a domain, queues, memory, and two QPs connected to one another.
 */
#ifndef VB_TEST_VERBS_FIXTURE_H
#define VB_TEST_VERBS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

#define BUFFER_BYTES 16384
#define ALL_ACCESS                                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
		IBV_ACCESS_MW_BIND)
#define QKEY 0x1234

struct fixture {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *left, *right;
	_Alignas(64) uint8_t buffer[BUFFER_BYTES];
};

int fixture_open(void **state);  /* no QPs */
int fixture_close(void **state); /* destroys whatever is left, in order, and checks that nothing leaks */
int fixture_connect_rc(void **state);

struct ibv_qp *fixture_create_qp(struct fixture *f, enum ibv_qp_type type, struct ibv_srq *srq);
void fixture_init_qp(struct ibv_qp *qp);
void fixture_connect(struct ibv_qp *qp, uint32_t dest_qpn);
void fixture_start_ud(struct ibv_qp *qp);
/* The next completion, driving until it comes. */
struct ibv_wc fixture_complete(struct ibv_cq *cq);
struct ibv_sge fixture_sge(struct fixture *f, unsigned offset, uint32_t length);
int fixture_post_recv(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge *sge);
int fixture_post(struct ibv_qp *qp, struct ibv_send_wr wr);
bool fixture_is_readable(int fd);
struct ibv_ah_attr fixture_ah_attr(void);

#endif
