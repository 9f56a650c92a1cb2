/* Additions of rdma-core to its public headers after those of Debian 12 (44), up to 65, under names of our own: so the
 * tree builds with the headers of any release. A structure or function has its name there, with later_ for ibv_. LATER
 * gives functions the symbol that programs ask for. tests/unit/verbs/layout.tsv has the offsets. */
#ifndef VB_VERBS_LATER_H
#define VB_VERBS_LATER_H

#include <stddef.h>
#include <stdint.h>

#define LATER_DEVICE_FLUSH_GLOBAL       (1ull << 38) /* IB_UVERBS_DEVICE_FLUSH_GLOBAL */
#define LATER_DEVICE_ATOMIC_WRITE       (1ull << 40) /* IB_UVERBS_DEVICE_ATOMIC_WRITE */
#define LATER_ACCESS_FLUSH_GLOBAL       (1u << 8)    /* IBV_ACCESS_FLUSH_GLOBAL */
#define LATER_QP_EX_WITH_FLUSH          (1ull << 11) /* IBV_QP_EX_WITH_FLUSH */
#define LATER_EVENT_DEVICE_SPEED_CHANGE 20           /* IBV_EVENT_DEVICE_SPEED_CHANGE */
#define LATER_WR_FLUSH_OPCODE           14           /* IBV_WR_FLUSH */

#define LATER_ODP_FLUSH        (1u << 6) /* IBV_ODP_SUPPORT_FLUSH */
#define LATER_ODP_ATOMIC_WRITE (1u << 7) /* IBV_ODP_SUPPORT_ATOMIC_WRITE */

struct ibv_context;
struct ibv_dm;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;
struct ibv_qp_ex;

#define LATER(type, name, ...) type later_##name(__VA_ARGS__) __asm__("ibv_" #name)

/* ---- Operations of extended QPs ---------------------------------------------------------------------------------- */

/* The first operation behind those of ibv_qp_ex: ibv_wr_flush. */
typedef void (*later_wr_flush)(
	struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length, uint8_t type, uint8_t level);
#define LATER_WR_FLUSH 0 /* in qp_object.later_ops */

/* ---- Ports ------------------------------------------------------------------------------------------------------- */

#define LATER_PORT_ATTR_SPEED_EX 52 /* offset of active_speed_ex, which is behind the structure of release 44 */
#define LATER_PORT_ATTR_BYTES    56

LATER(int, query_port_speed, struct ibv_context *context, uint32_t port, uint64_t *speed); /* in 100 Mbit/s */

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

struct later_dmah {
	struct ibv_context *context;
};

enum { LATER_TPH_MEM_TYPE_VM, LATER_TPH_MEM_TYPE_PM };
enum {
	LATER_DMAH_CPU_ID = 1 << 0,
	LATER_DMAH_PH = 1 << 1,
	LATER_DMAH_TPH_MEM_TYPE = 1 << 2,
};

struct later_dmah_init_attr {
	uint32_t comp_mask;
	uint32_t cpu_id;
	uint8_t ph;
	uint8_t tph_mem_type;
};

struct later_buf; /* no program looks inside */

enum { /* ibv_mr_init_attr_mask */
	LATER_MR_IOVA = 1 << 0,
	LATER_MR_ADDR = 1 << 1,
	LATER_MR_FD = 1 << 2,
	LATER_MR_FD_OFFSET = 1 << 3,
	LATER_MR_DMAH = 1 << 4,
	LATER_MR_BUF = 1 << 5,
};

/* Of release 59. buf came with 64, so it is read only if the mask names it. */
struct later_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct later_dmah *dmah;
	struct later_buf *buf;
};

/* IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC */
#define LATER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED (1u << 2)

LATER(struct later_dmah *, alloc_dmah, struct ibv_context *context, struct later_dmah_init_attr *attr);
LATER(int, dealloc_dmah, struct later_dmah *dmah);
LATER(struct ibv_mr *, reg_mr_ex, struct ibv_pd *pd, struct later_mr_init_attr *attr);
LATER(int, dm_export_dmabuf_fd, struct ibv_dm *dm);
LATER(void *, alloc_buf, struct ibv_pd *pd, size_t size, struct later_buf **buf);
LATER(void, free_buf, struct later_buf *buf);
LATER(struct ibv_mr *, reg_buf_mr, struct ibv_pd *pd, struct later_buf *buf, void *addr, size_t length, int access);
LATER(int, export_buf_dmabuf_fd, struct later_buf *buf);

/* ---- Completion counters ----------------------------------------------------------------------------------------- */

struct later_comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops;
};

struct later_comp_cntr {
	struct ibv_context *context;
	uint32_t handle;
};

enum later_comp_cntr_type { LATER_COMP_CNTR_WRS, LATER_COMP_CNTR_BYTES };

struct later_comp_cntr_init_attr {
	uint32_t comp_mask;
	enum later_comp_cntr_type type;
	uint32_t flags;
};

struct later_qp_attach_comp_cntr_attr {
	uint32_t comp_mask;
	uint32_t op_mask; /* bits of enum vb_counted */
};

int later_query_comp_cntr_caps(struct ibv_context *context, struct later_comp_cntr_caps *caps,
	size_t caps_size) __asm__("_ibv_query_comp_cntr_caps");
LATER(struct later_comp_cntr *, create_comp_cntr, struct ibv_context *context, struct later_comp_cntr_init_attr *attr);
LATER(int, destroy_comp_cntr, struct later_comp_cntr *counter);
LATER(int, set_comp_cntr, struct later_comp_cntr *counter, uint64_t value);
LATER(int, set_err_comp_cntr, struct later_comp_cntr *counter, uint64_t value);
LATER(int, inc_comp_cntr, struct later_comp_cntr *counter, uint64_t amount);
LATER(int, inc_err_comp_cntr, struct later_comp_cntr *counter, uint64_t amount);
LATER(int, read_comp_cntr, struct later_comp_cntr *counter, uint64_t *value);
LATER(int, read_err_comp_cntr, struct later_comp_cntr *counter, uint64_t *value);
LATER(int, qp_attach_comp_cntr, struct ibv_qp *qp, struct later_comp_cntr *counter,
	struct later_qp_attach_comp_cntr_attr *attr);

#endif
