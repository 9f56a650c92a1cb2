/* The variants of node IBVERBS_1.0, of 2006, with other structure layouts than today's. They exist so that a binary of
 * that time loads, and they fail; no newer binary asks for them. ibv_register_driver of node 1.1 is of the same age. */
#include "verbs/objects.h"

#define OLD(type, name, node, body)                                                                                    \
	type vb_old_##name(void);                                                                                      \
	__asm__(".symver vb_old_" #name "," #name "@" node);                                                           \
	VB_EXPORT type vb_old_##name(void)                                                                             \
	{                                                                                                              \
		body;                                                                                                  \
	}

#define OLD_ERRNO(name)   OLD(int, name, "IBVERBS_1.0", return errno = ENOSYS)
#define OLD_MINUS(name)   OLD(int, name, "IBVERBS_1.0", errno = ENOSYS; return -1)
#define OLD_POINTER(name) OLD(void *, name, "IBVERBS_1.0", return vb_fail(ENOSYS))
#define OLD_VOID(name)    OLD(void, name, "IBVERBS_1.0", )

OLD_POINTER(ibv_alloc_pd)
OLD_POINTER(ibv_create_ah)
OLD_POINTER(ibv_create_cq)
OLD_POINTER(ibv_create_qp)
OLD_POINTER(ibv_create_srq)
OLD_POINTER(ibv_get_device_list)
OLD_POINTER(ibv_get_device_name)
OLD_POINTER(ibv_open_device)
OLD_POINTER(ibv_reg_mr)

OLD_VOID(ibv_ack_async_event)
OLD_VOID(ibv_ack_cq_events)
OLD_VOID(ibv_free_device_list)

OLD_MINUS(ibv_close_device)
OLD_MINUS(ibv_get_async_event)
OLD_MINUS(ibv_get_cq_event)
OLD_MINUS(ibv_query_gid)
OLD_MINUS(ibv_query_pkey)

OLD_ERRNO(ibv_attach_mcast)
OLD_ERRNO(ibv_dealloc_pd)
OLD_ERRNO(ibv_dereg_mr)
OLD_ERRNO(ibv_destroy_ah)
OLD_ERRNO(ibv_destroy_cq)
OLD_ERRNO(ibv_destroy_qp)
OLD_ERRNO(ibv_destroy_srq)
OLD_ERRNO(ibv_detach_mcast)
OLD_ERRNO(ibv_modify_qp)
OLD_ERRNO(ibv_modify_srq)
OLD_ERRNO(ibv_query_device)
OLD_ERRNO(ibv_query_port)
OLD_ERRNO(ibv_query_qp)
OLD_ERRNO(ibv_query_srq)
OLD_ERRNO(ibv_resize_cq)

OLD(uint64_t, ibv_get_device_guid, "IBVERBS_1.0", return 0)
OLD(void, ibv_register_driver, "IBVERBS_1.1", )
