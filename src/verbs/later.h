/* What rdma-core added to its headers after those of Debian 12, whose values are its public interface: programs built with
 * later ones find it here. Not included where the headers have it themselves. */
#ifndef VB_VERBS_LATER_H
#define VB_VERBS_LATER_H

#include <stddef.h>
#include <stdint.h>

#define LATER_DEVICE_FLUSH_GLOBAL (1ull << 38) /* IB_UVERBS_DEVICE_FLUSH_GLOBAL */
#define LATER_DEVICE_ATOMIC_WRITE (1ull << 40) /* IB_UVERBS_DEVICE_ATOMIC_WRITE */
#define LATER_ACCESS_FLUSH_GLOBAL (1u << 8)    /* IBV_ACCESS_FLUSH_GLOBAL */
#define LATER_QP_EX_WITH_FLUSH	  (1ull << 11) /* IBV_QP_EX_WITH_FLUSH */

struct ibv_qp_ex;

/* The first operation behind those of ibv_qp_ex: ibv_wr_flush. */
typedef void (*later_wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length, uint8_t type,
	uint8_t level);
#define LATER_WR_FLUSH 0 /* in qp_object.later_ops */

#endif
