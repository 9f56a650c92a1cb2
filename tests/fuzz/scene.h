/* What the fuzzers of the engine share: a lane with QPs of every type and state, what its program posts and its network
 * brings, drawn from the input. Memory outside of regions must stay as it is (guards here, ASan everywhere else), each
 * request must complete at most once, and nothing may spin. */
#ifndef VB_TESTS_FUZZ_SCENE_H
#define VB_TESTS_FUZZ_SCENE_H

#include <stdlib.h>
#include <string.h>
#include "engine/check.h"
#include "engine/nic.h"

#define OWED       512 /* packets that a late port has at once */
#define QPS        8
#define XRC_SEND   6
#define XRC_RECV   7
#define XRC_SRQS   3 /* the last of another domain */
#define REGION_MAX 200000
#define GUARD      1024
#define IOVA       0x100000
#define WINDOWS    2

extern struct input {
	const uint8_t *at, *end;
} input;

extern struct scene {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_srq *srq;
	struct vb_xrcd *xrcd, *other_xrcd;
	struct vb_srq *xrc_srqs[XRC_SRQS];
	struct vb_mr *mr;
	struct vb_mw *windows[WINDOWS];
	struct vb_qp *qps[QPS];
	bool is_valid; /* the region */
	bool is_late;  /* the port */
	struct {
		struct vb_tx_completion completion;
		const uint8_t *last; /* a byte that is lent with it; NULL: none */
	} owed[OWED];
	unsigned owed_count;
	uint64_t next_wr, sends_posted, sends_completed, recvs_posted, recvs_completed;
	vb_time now;
	struct vb_gid local, peer;
	uint32_t peer_qpn;        /* to which all are connected */
	uint32_t longest;         /* entry of a request, nearly */
	struct vb_epochs *epochs; /* NULL: the lane has no local peers */
	uint32_t region;          /* bytes of memory that are registered, between two guards */
	_Alignas(64) uint8_t memory[REGION_MAX + 2 * GUARD]; /* atomics want it so */
} scene;

static inline void require(bool holds)
{
	if (!holds)
		abort();
}

uint32_t take(unsigned n); /* that many bytes of the input */
void scene_open(uint32_t peer_qpn, uint32_t region, uint32_t longest, struct vb_epochs *epochs);
void scene_close(void);
void scene_happen(void); /* something */
void scene_drain(void);  /* completions and events */
void scene_transmit(void);
uint32_t near(uint32_t psn);
uint32_t some_key(void);
uint64_t some_address(void);
uint32_t some_srqn(void);

#endif
