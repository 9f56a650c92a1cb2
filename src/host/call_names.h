/* The calls and events that VERBENA_FAULTS can name. This is the one table of them. */
#ifndef VB_HOST_CALL_NAMES_H
#define VB_HOST_CALL_NAMES_H

/* clang-format off */

/* X(name): functions of both libraries that can fail, as a program names them. ibv_reg_mr_iova2, which macros of the
 * header call for it, counts as ibv_reg_mr or ibv_reg_mr_iova. */
#define VB_CALL_NAMES(X)                                                                                               \
	X(ibv_get_device_list) X(ibv_open_device) X(ibv_close_device)                                                  \
	X(ibv_query_device) X(ibv_query_device_ex) X(ibv_query_rt_values_ex) X(ibv_query_port)                         \
	X(ibv_query_gid) X(ibv_query_gid_ex) X(ibv_query_gid_table) X(ibv_query_pkey) X(ibv_get_pkey_index)            \
	X(ibv_query_port_speed)                                                                                        \
	X(ibv_alloc_pd) X(ibv_dealloc_pd) X(ibv_alloc_parent_domain) X(ibv_alloc_td) X(ibv_dealloc_td)                 \
	X(ibv_reg_mr) X(ibv_reg_mr_iova) X(ibv_reg_dmabuf_mr) X(ibv_reg_mr_ex)                     \
	X(ibv_rereg_mr) X(ibv_dereg_mr) X(ibv_alloc_null_mr) X(ibv_advise_mr)                                          \
	X(ibv_alloc_dm) X(ibv_free_dm) X(ibv_reg_dm_mr) X(ibv_alloc_dmah) X(ibv_dealloc_dmah)                          \
	X(ibv_memcpy_to_dm) X(ibv_memcpy_from_dm) X(ibv_dm_export_dmabuf_fd)                                           \
	X(ibv_alloc_buf) X(ibv_reg_buf_mr)                                                                             \
	X(ibv_alloc_mw) X(ibv_dealloc_mw) X(ibv_bind_mw)                                                               \
	X(ibv_create_ah) X(ibv_init_ah_from_wc) X(ibv_create_ah_from_wc) X(ibv_destroy_ah)                             \
	X(ibv_create_comp_channel) X(ibv_destroy_comp_channel) X(ibv_get_cq_event) X(ibv_get_async_event)              \
	X(ibv_create_cq) X(ibv_create_cq_ex) X(ibv_resize_cq) X(ibv_destroy_cq) X(ibv_poll_cq) X(ibv_req_notify_cq)    \
	X(ibv_start_poll) X(ibv_next_poll)                                                                             \
	X(ibv_create_srq) X(ibv_create_srq_ex) X(ibv_modify_srq) X(ibv_query_srq) X(ibv_destroy_srq)                   \
	X(ibv_get_srq_num) X(ibv_post_srq_recv) X(ibv_post_srq_ops) X(ibv_open_xrcd) X(ibv_close_xrcd)                 \
	X(ibv_create_qp) X(ibv_create_qp_ex) X(ibv_open_qp) X(ibv_modify_qp) X(ibv_query_qp) X(ibv_destroy_qp)         \
	X(ibv_query_ece) X(ibv_set_ece) X(ibv_attach_mcast) X(ibv_detach_mcast)                                        \
	X(ibv_post_send) X(ibv_post_recv) X(ibv_wr_complete)                                                           \
	X(ibv_create_flow) X(ibv_destroy_flow) X(ibv_create_counters) X(ibv_destroy_counters)                          \
	X(ibv_attach_counters_point_flow) X(ibv_read_counters)                                                         \
	X(ibv_create_wq) X(ibv_modify_wq) X(ibv_destroy_wq) X(ibv_create_rwq_ind_table) X(ibv_destroy_rwq_ind_table)   \
	X(ibv_query_comp_cntr_caps) X(ibv_create_comp_cntr) X(ibv_destroy_comp_cntr) X(ibv_qp_attach_comp_cntr)        \
	X(ibv_set_comp_cntr) X(ibv_set_err_comp_cntr) X(ibv_inc_comp_cntr) X(ibv_inc_err_comp_cntr)                    \
	X(ibv_read_comp_cntr) X(ibv_read_err_comp_cntr) X(ibv_fork_init)                                               \
	X(rdma_create_event_channel) X(rdma_create_id) X(rdma_destroy_id) X(rdma_get_devices)                          \
	X(rdma_getaddrinfo) X(rdma_create_ep) X(rdma_bind_addr) X(rdma_resolve_addr) X(rdma_resolve_route)             \
	X(rdma_listen) X(rdma_get_request) X(rdma_connect) X(rdma_accept) X(rdma_reject) X(rdma_establish)             \
	X(rdma_disconnect) X(rdma_notify) X(rdma_get_cm_event) X(rdma_ack_cm_event) X(rdma_migrate_id)                 \
	X(rdma_set_option) X(rdma_create_qp) X(rdma_create_qp_ex) X(rdma_create_srq) X(rdma_create_srq_ex)             \
	X(rdma_init_qp_attr) X(rdma_join_multicast) X(rdma_join_multicast_ex) X(rdma_leave_multicast)                  \
	X(rdma_reject_ece) X(rdma_set_local_ece) X(rdma_get_remote_ece)                                                \
	X(rdma_resolve_addrinfo) X(rdma_query_addrinfo) X(rdma_write_cm_event)

/* X(name, the number of ibv_event_type). A device's and a port's; a QP's, a CQ's, an SRQ's and a WQ's. */
#define VB_EVENT_NAMES(X)                                                                                              \
	X(port_down, 10) X(port_up, 9) X(port_err, 10) X(port_active, 9) X(lid_change, 11) X(pkey_change, 12)          \
	X(sm_change, 13) X(client_reregister, 17) X(gid_change, 18) X(device_fatal, 8)                                 \
	X(qp_fatal, 1) X(qp_req_err, 2) X(qp_access_err, 3) X(cq_err, 0) X(srq_err, 14) X(srq_limit, 15)               \
	X(wq_fatal, 19)

/* Errors that a call can be told to return. */
#define VB_ERROR_NAMES(X)                                                                                              \
	X(EPERM) X(ENOENT) X(EINTR) X(EIO) X(ENXIO) X(EBADF) X(EAGAIN) X(ENOMEM) X(EACCES) X(EFAULT) X(EBUSY)          \
	X(EEXIST) X(ENODEV) X(EINVAL) X(ENFILE) X(EMFILE) X(ENOSPC) X(EPIPE) X(ERANGE) X(ENOSYS) X(ENODATA)            \
	X(EPROTO) X(EOVERFLOW) X(EMSGSIZE) X(EPROTONOSUPPORT) X(EOPNOTSUPP) X(EAFNOSUPPORT) X(EADDRINUSE)              \
	X(EADDRNOTAVAIL) X(ENETDOWN) X(ENETUNREACH) X(ECONNABORTED) X(ECONNRESET) X(ENOBUFS) X(EISCONN)                \
	X(ENOTCONN) X(ETIMEDOUT) X(ECONNREFUSED) X(EHOSTUNREACH) X(EALREADY) X(EINPROGRESS) X(ECANCELED)

/* clang-format on */

#endif
