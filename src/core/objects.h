/* A device and its queues: the objects of verbs, their work requests, and what becomes of them, whatever
 * carries them between two QPs. Functions here are those of engine/nic.h, which says how they may be called: [any],
 * [lane], [setup].
 *
 * Errors. 0 or a negative errno; outputs are written only on success. Enumerations whose values the public verbs ABI
 * also knows have the ABI's values (asserted in verbs/).
 *
 * Source: InfiniBand Architecture Specification vol. 1, chapters 9 to 11. */
#ifndef VB_CORE_OBJECTS_H
#define VB_CORE_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"
#include "base/time.h"
#include "base/timers.h"
#include "core/memory_kind.h"
#include "wire/packet.h"

struct vb_nic;
struct vb_lane;
struct vb_epochs;
struct vb_pd;
struct vb_mr;
struct vb_mw;
struct vb_cq;
struct vb_srq;
struct vb_xrcd;
struct vb_qp;

/* ---- Device ------------------------------------------------------------------------------------------------------ */

/* Limits of the create calls; verbs/ reports exactly these. */
#define VB_MAX_SGE    32
#define VB_MAX_INLINE 1024
#define VB_MAX_QP_WR  32768
#define VB_MAX_SRQ_WR 65536
#define VB_MAX_CQE    4194304
/* of all lanes that share the 16 bits of an index: fewer than those, and the reserved ones */
#define VB_MAX_QP              65000
#define VB_MAX_RD_ATOMIC       16  /* as responder, each remembered */
#define VB_MAX_INIT_RD_ATOMIC  128 /* as requester: costs nothing, and rxe grants as many */
#define VB_MAX_MESSAGE_BYTES   0x80000000u
#define VB_MAX_MESSAGE_PACKETS (1u << 23) /* half of the sequence numbers: a bound where the MTU is below 256 */
#define VB_MAX_KEYS            1048576    /* memory regions and windows of a device together: 20 index bits */
#define VB_MAX_XRC_SRQ         65535      /* of a device: 16 index bits, without number 0 */
#define VB_MAX_GIDS            32
#define VB_MAX_MCAST_ATTACH    1024 /* attachments of a lane */

struct vb_nic_config {
	uint64_t seed, seed_high; /* of keys: nobody else's knowledge, or keys can be guessed */
	uint32_t mtu;           /* active path MTU, up to 4096 bytes; a live device's is 256, 512, 1024, 2048 or 4096 */
	uint32_t large_mtu;     /* more, that its link carries: up to VB_LARGE_MTU; 0: nothing more */
	bool advertise_credits; /* end-to-end credits in ACKs; off: "no flow control" as rxe does */
	struct vb_epochs *epochs; /* the process's, where removals of keys are counted: local.h; NULL: nobody pulls */
};

int vb_nic_create(const struct vb_nic_config *config, struct vb_nic **nic); /* [setup] */
void vb_nic_destroy(struct vb_nic *nic);                                    /* [setup] all its objects are gone */
void vb_nic_set_mtu(struct vb_nic *nic, uint32_t mtu, uint32_t large_mtu);  /* [any] mtu: for QPs made afterwards */
uint32_t vb_nic_get_mtu(const struct vb_nic *nic);                          /* [any] */
uint32_t vb_nic_get_large_mtu(const struct vb_nic *nic);                    /* [any] */
/* Addresses that packets to this device may carry. gid NULL empties the entry. [any] */
int vb_nic_set_gid(struct vb_nic *nic, uint32_t index, const struct vb_gid *gid);
/* -ENODATA when the entry is empty, -EINVAL beyond the table. [any] */
int vb_nic_get_gid(const struct vb_nic *nic, uint32_t index, struct vb_gid *gid);

/* Counters that belong to a device rather than a lane are in its lanes: see core/counters.h. */

/* ---- Protection domains, memory ---------------------------------------------------------------------------------- */

enum vb_access { /* ibv_access_flags */
	VB_ACCESS_LOCAL_WRITE = 1,
	VB_ACCESS_REMOTE_WRITE = 2,
	VB_ACCESS_REMOTE_READ = 4,
	VB_ACCESS_REMOTE_ATOMIC = 8,
	VB_ACCESS_MW_BIND = 16,
	VB_ACCESS_ZERO_BASED = 32,
	VB_ACCESS_FLUSH_GLOBAL = 256,
};

int vb_pd_create(struct vb_nic *nic, struct vb_pd **pd); /* [any] */
int vb_pd_destroy(struct vb_pd *pd);                     /* [any] -EBUSY while MRs, MWs, QPs or SRQs are left */

struct vb_mr_config {
	void *memory;                      /* where the bytes are, in the kind's terms */
	uint64_t iova;                     /* what work requests and peers call the first byte */
	uint64_t length;                   /* may be 0 */
	uint32_t access;                   /* enum vb_access; the caller has masked optional bits out */
	const struct vb_memory_kind *kind; /* NULL: ordinary memory of this process */
	uint32_t segment; /* the holder's name of the shared memory that all of it lies in (local.h); 0: of none */
};

/* -EINVAL: REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE, or a range that wraps. -ENOMEM: table full. [any] */
int vb_mr_register(struct vb_pd *pd, const struct vb_mr_config *config, struct vb_mr **mr);
uint32_t vb_mr_key(const struct vb_mr *mr); /* lkey and rkey alike [any] */
/* Deregistration is in two steps, since lookups take no lock: after _invalidate no new access begins; when the holder
 * has then had each lane to itself once, and what that had handed out to its port has come back (vb_lane_mark), none is
 * in flight and _free may be called. _invalidate gives -EBUSY while a window is bound to it. [any] */
int vb_mr_invalidate(struct vb_mr *mr);
/* Before that, in each lane that sends datagrams, or did: those that name the key and have not left take their bytes
 * with them, for a NIC would have sent them. Without memory for it they fail. [lane] */
void vb_lane_keep_datagrams(struct vb_lane *lane, uint32_t lkey);
bool vb_lane_sends_datagrams(const struct vb_lane *lane); /* [any] */
void vb_mr_free(struct vb_mr *mr);
/* Change what mr describes; call between _invalidate and first use. pd NULL keeps the domain. The key stays. [any] */
int vb_mr_revalidate(struct vb_mr *mr, struct vb_pd *pd, const struct vb_mr_config *config);

/* Type 1: bound by BIND_MW of ibv_bind_mw, key changes at each bind. Type 2 (2B): by a work request whose new key
 * differs in the low 8 bits, only while unbound; unbound by LOCAL_INV, SEND with invalidate or its QP's destruction. */
int vb_mw_create(struct vb_pd *pd, int type, struct vb_mw **mw); /* [any] */
int vb_mw_destroy(struct vb_mw *mw); /* [setup] invalidates; needs the same grace as an MR; frees */
uint32_t vb_mw_key(const struct vb_mw *mw);
/* Announces the key that the next bind of a type-1 window is to have; every call announces another, for several binds
 * may be posted before the first is executed. 0: 255 are, and no more can be told apart. [any] */
uint32_t vb_mw_next_key(struct vb_mw *mw);
/* The bind with the key announced last was not posted. [any] */
void vb_mw_forget_key(struct vb_mw *mw, uint32_t key);

/* ---- Completion queues ------------------------------------------------------------------------------------------- */

enum vb_wc_status { /* ibv_wc_status */
	VB_WC_SUCCESS = 0,
	VB_WC_LOC_LEN_ERR = 1,
	VB_WC_LOC_QP_OP_ERR = 2,
	VB_WC_LOC_PROT_ERR = 4,
	VB_WC_WR_FLUSH_ERR = 5,
	VB_WC_MW_BIND_ERR = 6,
	VB_WC_BAD_RESP_ERR = 7,
	VB_WC_LOC_ACCESS_ERR = 8,
	VB_WC_REM_INV_REQ_ERR = 9,
	VB_WC_REM_ACCESS_ERR = 10,
	VB_WC_REM_OP_ERR = 11,
	VB_WC_RETRY_EXC_ERR = 12,
	VB_WC_RNR_RETRY_EXC_ERR = 13,
	VB_WC_FATAL_ERR = 19,
	VB_WC_GENERAL_ERR = 21,
	VB_WC_TM_ERR = 22,
	VB_WC_TM_RNDV_INCOMPLETE = 23,
};

enum vb_wc_opcode { /* ibv_wc_opcode */
	VB_WC_SEND = 0,
	VB_WC_RDMA_WRITE = 1,
	VB_WC_RDMA_READ = 2,
	VB_WC_COMP_SWAP = 3,
	VB_WC_FETCH_ADD = 4,
	VB_WC_BIND_MW = 5,
	VB_WC_LOCAL_INV = 6,
	VB_WC_FLUSH = 8,
	VB_WC_ATOMIC_WRITE = 9,
	VB_WC_RECV = 128,
	VB_WC_RECV_RDMA_WITH_IMM = 129,
	VB_WC_TM_ADD = 130, /* and what follows: tags.h */
	VB_WC_TM_DEL = 131,
	VB_WC_TM_SYNC = 132,
	VB_WC_TM_RECV = 133,
	VB_WC_TM_NO_TAG = 134,
};

enum vb_wc_flags { /* ibv_wc_flags */
	VB_WC_GRH = 1,
	VB_WC_WITH_IMM = 2,
	VB_WC_WITH_INV = 8,
	VB_WC_TM_SYNC_REQ = 16,
	VB_WC_TM_MATCH = 32,
	VB_WC_TM_DATA_VALID = 64,
};

struct vb_wc {
	uint64_t wr_id;
	uint32_t status;     /* enum vb_wc_status */
	uint32_t opcode;     /* enum vb_wc_opcode */
	uint32_t vendor_err; /* enum vb_cause_kind of an error */
	uint32_t byte_len;
	uint32_t imm_or_inv; /* immediate in network order, or the invalidated rkey */
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t flags;   /* enum vb_wc_flags */
	uint8_t sl;       /* UD receive: 0xA for IPv4, 0x9 for IPv6, as ConnectX reports it */
	uint32_t tm_priv; /* of a message that matched a tag, in network order */
	uint64_t tm_tag;
	vb_time timestamp;
	void *qp_user; /* struct vb_qp_config.user */

	/* The engine's: polling this completion gives back send queue slots up to sq_index. NULL: none. */
	struct vb_qp *qp;
	uint32_t sq_index;
};

struct vb_cq_config {
	uint32_t capacity; /* 1 .. VB_MAX_CQE */
	bool ignore_overrun;
	void *user; /* handed back in events */
};

int vb_cq_create(struct vb_nic *nic, const struct vb_cq_config *config, struct vb_cq **cq); /* [any] */
int vb_cq_destroy(struct vb_cq *cq);                   /* [setup] -EBUSY while QPs use it */
int vb_cq_resize(struct vb_cq *cq, uint32_t capacity); /* [any] -EINVAL when more completions wait than would fit */
uint32_t vb_cq_capacity(const struct vb_cq *cq);
bool vb_cq_is_empty(const struct vb_cq *cq); /* [any] a glance without the lock */
/* Takes up to n completions. -EIO after an overrun. [any] */
int vb_cq_poll(struct vb_cq *cq, struct vb_wc *wc, int n);
/* The same, each shown to taker where it lies, with the queue's lock held, as the index-th of to. [any] */
typedef void vb_cq_taker(void *to, uint32_t index, const struct vb_wc *wc);
int vb_cq_take(struct vb_cq *cq, int n, vb_cq_taker *taker, void *to);
/* The next completion (or the next solicited or failed one) raises VB_EVENT_COMPLETION once. true: it is there already
 * and came after the holder had polled, so the caller notifies, and nothing else will. [any] */
bool vb_cq_request_notify(struct vb_cq *cq, bool solicited_only);
void *vb_cq_user(const struct vb_cq *cq);

/* ---- Receive work requests, shared receive queues ---------------------------------------------------------------- */

struct vb_sge { /* laid out as ibv_sge */
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct vb_recv_wr {
	uint64_t wr_id;
	const struct vb_sge *sges;
	uint32_t sge_count;
};

struct vb_srq_config {
	uint32_t max_wr, max_sge, limit;
	void *user;
	/* NULL: an ordinary SRQ. Else peers name it by its number: through the QPs of this domain */
	struct vb_xrcd *xrcd;
	struct vb_cq *cq;  /* of an XRC SRQ, or one with tags: where its receives complete, whichever QP they come by */
	uint32_t max_tags; /* not 0: messages begin with a tag header, see tags.h; up to VB_MAX_TAGS */
};

int vb_srq_create(struct vb_pd *pd, const struct vb_srq_config *config, struct vb_srq **srq); /* [any] */
/* [setup] -EBUSY while QPs use it. An XRC SRQ: with every lane of the device to oneself; its receives are gone, also
 * the one that a message is arriving into, and peers that name it are refused. */
int vb_srq_destroy(struct vb_srq *srq);
uint32_t vb_srq_number(const struct vb_srq *srq);                    /* 24 bits; 0: not an XRC SRQ */
int vb_srq_resize(struct vb_srq *srq, uint32_t max_wr);              /* [any] */
int vb_srq_set_limit(struct vb_srq *srq, uint32_t limit);            /* [any] */
void vb_srq_query(struct vb_srq *srq, struct vb_srq_config *config); /* [any] limit 0 when disarmed */
int vb_srq_post(struct vb_srq *srq, const struct vb_recv_wr *wr);    /* [any] -ENOMEM full, -EINVAL too many SGEs */
void *vb_srq_user(const struct vb_srq *srq);

/* An XRC domain: its SRQs are open to whoever sends to its QPs. */
int vb_xrcd_create(struct vb_nic *nic, struct vb_xrcd **xrcd); /* [any] */
int vb_xrcd_destroy(struct vb_xrcd *xrcd);                     /* [any] -EBUSY while SRQs or QPs are left */

/* ---- Queue pairs ------------------------------------------------------------------------------------------------- */

enum vb_qp_type { /* ibv_qp_type */
	VB_QP_RC = 2,
	VB_QP_UC = 3,
	VB_QP_UD = 4,
	VB_QP_RAW = 8,       /* Ethernet frames: raw.h */
	VB_QP_XRC_SEND = 9,  /* a requester alone */
	VB_QP_XRC_RECV = 10, /* a responder alone; receives and memory are those of the SRQ that a request names */
};

enum vb_qp_state { /* ibv_qp_state */
	VB_QPS_RESET = 0,
	VB_QPS_INIT = 1,
	VB_QPS_RTR = 2,
	VB_QPS_RTS = 3,
	VB_QPS_SQD = 4,
	VB_QPS_SQE = 5,
	VB_QPS_ERR = 6,
	VB_QPS_COUNT = 7,
};

enum vb_qp_attr_mask { /* ibv_qp_attr_mask */
	VB_QP_STATE = 1 << 0,
	VB_QP_CUR_STATE = 1 << 1,
	VB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	VB_QP_ACCESS_FLAGS = 1 << 3,
	VB_QP_PKEY_INDEX = 1 << 4,
	VB_QP_PORT = 1 << 5,
	VB_QP_QKEY = 1 << 6,
	VB_QP_AV = 1 << 7,
	VB_QP_PATH_MTU = 1 << 8,
	VB_QP_TIMEOUT = 1 << 9,
	VB_QP_RETRY_CNT = 1 << 10,
	VB_QP_RNR_RETRY = 1 << 11,
	VB_QP_RQ_PSN = 1 << 12,
	VB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	VB_QP_ALT_PATH = 1 << 14,
	VB_QP_MIN_RNR_TIMER = 1 << 15,
	VB_QP_SQ_PSN = 1 << 16,
	VB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	VB_QP_PATH_MIG_STATE = 1 << 18,
	VB_QP_CAP = 1 << 19,
	VB_QP_DEST_QPN = 1 << 20,
	VB_QP_RATE_LIMIT = 1 << 25,
};

/* Where packets go and what their IP header says. */
struct vb_av {
	struct vb_gid sgid, dgid;
	uint32_t flow_label; /* 20 bits */
	uint8_t sgid_index;
	uint8_t hop_limit; /* 0 means 64 */
	uint8_t traffic_class;
	uint8_t sl, port, static_rate; /* kept for queries */
};

struct vb_qp_attr {
	/* Fields that packets carry, or are compared with: a cache line. */
	struct vb_av av;
	uint32_t dest_qpn;
	uint32_t access; /* enum vb_access: REMOTE_* bits */
	uint32_t qkey;
	uint8_t timeout; /* code */
	uint8_t retry_cnt, rnr_retry;
	uint8_t min_rnr_timer; /* code */
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint16_t pkey_index;

	enum vb_qp_state state, cur_state;
	uint32_t path_mtu; /* bytes */
	uint32_t rq_psn, sq_psn;
	uint8_t port;
	bool notify_drained, is_draining;
};

struct vb_qp_config {
	enum vb_qp_type type;
	struct vb_pd *pd;                /* XRC_RECV has none */
	struct vb_cq *send_cq, *recv_cq; /* XRC_SEND has no recv_cq, XRC_RECV neither; RAW may lack any */
	struct vb_srq *srq;              /* or NULL; XRC has none */
	struct vb_xrcd *xrcd;            /* of XRC_RECV */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	bool signal_all;
	uint32_t number; /* that vb_lane_next_number gave; 0: the lane chooses one */
	void *user;
};

/* The number that the next QP would have: it is for a QP that is made later, and no other will be given it soon.
 * [lane] */
uint32_t vb_lane_next_number(struct vb_lane *lane);
bool vb_lane_has_qp(const struct vb_lane *lane, uint32_t number); /* [lane] */
uint32_t vb_qp_number(const struct vb_qp *qp);
enum vb_qp_state vb_qp_state(const struct vb_qp *qp); /* [any] */
void *vb_qp_user(const struct vb_qp *qp);
/* Counts of completed work, which a program may read instead of completions. Any number of QPs may count into one. */
struct vb_work_count {
	bool is_bytes; /* of their data, not work requests */
	_Atomic uint64_t done, failed;
};

enum vb_counted { /* ibv_qp_attach_comp_cntr_op, whose numbers these are the bits of */
	VB_COUNTED_SEND = 0,
	VB_COUNTED_RECV = 1,
	VB_COUNTED_READ = 2,
	/* 3, READs of others, is not offered: a requester may ask in pieces, and who answers cannot tell. */
	VB_COUNTED_WRITE = 4,
	VB_COUNTED_REMOTE_WRITE = 5, /* WRITEs of others, when all their data is there */
	VB_COUNTED_KINDS = 6,
};
#define VB_COUNTED_MASK 0x37

/* Work of these kinds that completes (bits of VB_COUNTED_MASK) goes into count too, signalled or not, until the QP is
 * destroyed. -EINVAL: not in RESET or INIT; -EBUSY: a kind is counted already; -ENOMEM. [lane] */
int vb_qp_count_work(struct vb_qp *qp, struct vb_work_count *count, uint32_t kinds);

enum vb_wr_opcode { /* ibv_wr_opcode */
	VB_WR_RDMA_WRITE = 0,
	VB_WR_RDMA_WRITE_WITH_IMM = 1,
	VB_WR_SEND = 2,
	VB_WR_SEND_WITH_IMM = 3,
	VB_WR_RDMA_READ = 4,
	VB_WR_ATOMIC_CMP_AND_SWP = 5,
	VB_WR_ATOMIC_FETCH_AND_ADD = 6,
	VB_WR_LOCAL_INV = 7,
	VB_WR_BIND_MW = 8,
	VB_WR_SEND_WITH_INV = 9,
	VB_WR_FLUSH = 14,
	VB_WR_ATOMIC_WRITE = 15, /* eight bytes: from its SGEs or inline; without SGEs, swap */
};

/* The guarantee that a FLUSH asks for, and its range: FETH, annex A19.4.1. */
enum vb_flush_type {             /* ibv_placement_type */
	VB_FLUSH_GLOBAL = 1,     /* everybody sees it */
	VB_FLUSH_PERSISTENT = 2, /* it survives a loss of power */
};

enum vb_flush_level { /* ibv_selectivity_level */
	VB_FLUSH_RANGE = 0,
	VB_FLUSH_REGION = 1,
};

enum vb_send_flags { /* ibv_send_flags */
	VB_SEND_FENCE = 1,
	VB_SEND_SIGNALED = 2,
	VB_SEND_SOLICITED = 4,
	VB_SEND_INLINE = 8,
};

struct vb_send_wr {
	uint64_t wr_id;
	enum vb_wr_opcode opcode;
	uint32_t flags;            /* enum vb_send_flags */
	const struct vb_sge *sges; /* borrowed for the call; with INLINE the bytes at addr are copied too */
	uint32_t sge_count;
	uint32_t imm_or_inv; /* immediate in network order; or the rkey to invalidate (SEND_WITH_INV, LOCAL_INV) */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add, swap;
	const struct vb_av *av; /* UD; copied */
	uint32_t remote_qpn, remote_qkey;
	uint32_t remote_srqn;            /* XRC */
	uint32_t flush_length;           /* FLUSH: of the range from remote_addr */
	uint8_t flush_type, flush_level; /* enum vb_flush_type, vb_flush_level; the peer judges them */
	struct {                         /* BIND_MW; length 0 unbinds */
		struct vb_mw *mw;
		struct vb_mr *mr;
		uint64_t addr, length;
		uint32_t access;
		uint32_t rkey; /* type 2: the new key; type 1: what vb_mw_next_key said */
	} bind;
};

/* Posting sends: begin takes the send queue's lock, put appends one request, end(true) publishes what was put and
 * rings the doorbell, end(false) forgets it. put: -EINVAL wrong state, opcode, SGE count or inline length; -ENOMEM
 * queue full. [any] */
void vb_sq_begin(struct vb_qp *qp);
int vb_sq_put(struct vb_qp *qp, const struct vb_send_wr *wr);
void vb_sq_end(struct vb_qp *qp, bool publish);
/* -EINVAL: in RESET, with an SRQ or XRC, or too many SGEs; -ENOMEM: full. [any] */
int vb_rq_post(struct vb_qp *qp, const struct vb_recv_wr *wr);

/* Where a received train came from. */
struct vb_path {
	struct vb_gid src, dst;
	uint16_t src_port;
	uint8_t traffic_class; /* with the ECN bits */
	uint8_t hop_limit;
	uint32_t ifindex;
};

struct vb_iov { /* laid out as struct iovec */
	void *base;
	size_t length;
};

/* Facts about a peer address. [lane] */
struct vb_peer_facts {
	bool is_verbena;         /* takes trains and any IPv4 identification */
	bool takes_hellos;       /* its QPs may recover selectively, and are asked whether they do */
	uint32_t receive_buffer; /* of one of its slots, bytes; 0 = unknown */
	bool is_asked; /* the answer is on its way: UC and UD, which have no window to an unknown peer, wait for it */
};

/* ---- Events ------------------------------------------------------------------------------------------------------ */

enum vb_event_kind {
	VB_EVENT_CQ_ERR = 0, /* up to LAST_WQE_REACHED: ibv_event_type */
	VB_EVENT_QP_FATAL = 1,
	VB_EVENT_QP_REQ_ERR = 2,
	VB_EVENT_QP_ACCESS_ERR = 3,
	VB_EVENT_COMM_EST = 4,
	VB_EVENT_SQ_DRAINED = 5,
	VB_EVENT_SRQ_LIMIT_REACHED = 15,
	VB_EVENT_QP_LAST_WQE_REACHED = 16,
	VB_EVENT_COMPLETION = 32, /* a CQ that had asked to be notified; not an asynchronous event */
	VB_EVENT_QP_SILENT = 34,  /* for the holder alone, if its lane tells it: the peer answers nothing, and will soon
				     have failed to */
	VB_EVENT_QP_MOVED = 35,   /* for the holder alone: it goes on over another pair of addresses, or is back */
	VB_EVENT_QP_DIED = 33,    /* for the holder alone: the QP went to ERR or SQE by itself; see vb_qp_cause */
};

struct vb_event {
	enum vb_event_kind kind;
	struct vb_qp *qp;   /* QP events */
	struct vb_cq *cq;   /* CQ_ERR, COMPLETION */
	struct vb_srq *srq; /* SRQ events */
	struct vb_nic *nic; /* the device of that object */
};

/* The next event; false when there is none. The holder drains them before it gives the lane away, so that no object
 * is destroyed with an event waiting. [lane] */
bool vb_lane_next_event(struct vb_lane *lane, struct vb_event *event);

/* Why a QP died, as data. X(NAME, "text") */
#define VB_CAUSES(X)                                                                                                   \
	X(NONE, "no error")                                                                                            \
	X(RETRY_EXCEEDED, "retry exceeded")                                                                            \
	X(RNR_RETRY_EXCEEDED, "RNR retry exceeded: the peer had no receive posted")                                    \
	X(NAK_INVALID_REQUEST, "the peer refused the request as invalid")                                              \
	X(NAK_REMOTE_ACCESS, "the peer refused access to its memory (rkey, bounds or permission)")                     \
	X(NAK_REMOTE_OPERATION, "the peer could not complete the request")                                             \
	X(PEER_DIED, "the peer's process, on this host, has ended")                                                    \
	X(BAD_RESPONSE, "the peer's response made no sense")                                                           \
	X(LOCAL_SGE, "a scatter/gather entry of the work request has a bad lkey, bounds or permission")                \
	X(LOCAL_LENGTH, "message longer than allowed")                                                                 \
	X(LOCAL_OPERATION, "work request not allowed on this QP")                                                      \
	X(LOCAL_FAULT, "memory of the work request is not mapped")                                                     \
	X(MW_BIND, "memory window bind refused")                                                                       \
	X(REMOTE_BAD_RKEY, "the peer used a bad rkey, bounds or permission on us")                                     \
	X(REMOTE_BAD_REQUEST, "the peer sent an invalid request")                                                      \
	X(REMOTE_BAD_SRQ, "the peer named an XRC SRQ that is not in the QP's domain")                                  \
	X(RECV_TOO_SHORT, "the peer's message is longer than the posted receive")                                      \
	X(RECV_SGE, "a posted receive has a bad lkey, bounds or permission")                                           \
	X(CQ_OVERRUN, "its completion queue overran")                                                                  \
	X(DESCRIPTORS_LOST, "this program has closed the descriptors of Verbena's sockets")

enum vb_cause_kind {
#define X(name, text) VB_CAUSE_##name,
	VB_CAUSES(X)
#undef X
		VB_CAUSE_COUNT,
};

struct vb_cause {
	enum vb_cause_kind kind;
	enum vb_wc_status status;
	uint32_t psn;              /* of the packet concerned */
	unsigned tries;            /* timeouts and retries since the last progress */
	vb_time stuck_for;         /* since the packet concerned was first sent */
	bool was_heard;            /* any packet of the peer ever arrived on this QP */
	vb_time silent_for;        /* since the last one */
	uint32_t largest_acked;    /* wire bytes of the largest packet that was ever acknowledged */
	uint32_t stuck_wire_bytes; /* wire bytes of the packet concerned */
	struct {                   /* what was asked of whose memory, when access to it was refused */
		const char *what;  /* "READ"; NULL: not known */
		uint64_t addr;
		uint32_t rkey, length;
	} access;
};

const char *vb_cause_text(enum vb_cause_kind kind);
void vb_qp_cause(const struct vb_qp *qp, struct vb_cause *cause); /* [lane] */
/* For how long a reliable QP has heard nothing of the peer that it waits for: something is to be acknowledged, or a
 * receive is posted. -1: it does not wait, or has never heard anything. [lane] */
vb_time vb_qp_silent_for(const struct vb_qp *qp, vb_time now);
/* The host of the peer is known to run Verbena. [lane] */
bool vb_qp_peer_is_verbena(const struct vb_qp *qp);

/* A snapshot of the lane's counters, core/counters.h: values[VB_COUNTER_COUNT]. [lane] */
void vb_lane_counters(const struct vb_lane *lane, uint64_t *values);

/* True when something was posted that no transmit has looked at yet. [any] */
bool vb_lane_has_doorbells(const struct vb_lane *lane);
unsigned vb_lane_handed_out(const struct vb_lane *lane); /* packets between transmit and transmit_done [lane] */
/* A mark in what is handed out, and whether all of what was handed out before it has come back. [lane] */
uint32_t vb_lane_mark(struct vb_lane *lane);
bool vb_lane_is_back(const struct vb_lane *lane, uint32_t mark);
/* All of the lane's, one a call, while none comes or goes; place is 0 at first. NULL: no more. [lane] */
struct vb_qp *vb_lane_next_qp(const struct vb_lane *lane, uint32_t *place);
/* Whether it was ever told that, of who is there. */
bool vb_lane_has_peer(const struct vb_lane *lane, const struct vb_gid *gid);
/* The thread that drives the lane cannot go on: all QPs in RTR and beyond go to ERR, as after QP_FATAL. [lane] */
void vb_lane_fail_qps(struct vb_lane *lane, enum vb_cause_kind cause, vb_time now);

#endif
