/* The private node: what hardware drivers import from the library. They must load, for perftest, UCX and libfabric link
 * them, but no device of ours is theirs: registering does nothing, and what works on a driver's own objects fails.
 * ibv_query_gid_type, the one private symbol that programs call, is in gid.c. Signatures are the drivers' business:
 * their arguments are never looked at. */
#include "verbs/objects.h"

/* Whether destroying may go on after the device has gone; drivers read it. */
extern bool verbs_allow_disassociate_destroy;
VB_EXPORT bool verbs_allow_disassociate_destroy;

/* A command to a kernel device that does not exist. */
#define REFUSED(name)                                                                                                  \
	int name(void);                                                                                                \
	VB_EXPORT int name(void)                                                                                       \
	{                                                                                                              \
		return errno = EOPNOTSUPP;                                                                             \
	}

#define REFUSED_POINTER(name)                                                                                          \
	void *name(void);                                                                                              \
	VB_EXPORT void *name(void)                                                                                     \
	{                                                                                                              \
		return vb_fail(EOPNOTSUPP);                                                                            \
	}

#define IGNORED(name)                                                                                                  \
	void name(void);                                                                                               \
	VB_EXPORT void name(void) {}

/* Called from the drivers' constructors. */
IGNORED(verbs_register_driver_34)
IGNORED(__verbs_log)
IGNORED(verbs_init_cq)
IGNORED(verbs_set_ops)
IGNORED(verbs_uninit_context)

REFUSED_POINTER(_verbs_init_and_alloc_context)
REFUSED_POINTER(verbs_open_device)

int ibv_read_ibdev_sysfs_file(void);
VB_EXPORT int ibv_read_ibdev_sysfs_file(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

unsigned int __ioctl_final_num_attrs(unsigned int num_attrs);
VB_EXPORT unsigned int __ioctl_final_num_attrs(unsigned int num_attrs)
{
	return num_attrs;
}

REFUSED(execute_ioctl)
REFUSED(ibv_cmd_advise_mr)
REFUSED(ibv_cmd_alloc_dm)
REFUSED(ibv_cmd_alloc_mw)
REFUSED(ibv_cmd_alloc_pd)
REFUSED(ibv_cmd_attach_mcast)
REFUSED(ibv_cmd_close_xrcd)
REFUSED(ibv_cmd_create_ah)
REFUSED(ibv_cmd_create_counters)
REFUSED(ibv_cmd_create_cq)
REFUSED(ibv_cmd_create_cq_ex)
REFUSED(ibv_cmd_create_flow)
REFUSED(ibv_cmd_create_flow_action_esp)
REFUSED(ibv_cmd_create_qp)
REFUSED(ibv_cmd_create_qp_ex)
REFUSED(ibv_cmd_create_qp_ex2)
REFUSED(ibv_cmd_create_rwq_ind_table)
REFUSED(ibv_cmd_create_srq)
REFUSED(ibv_cmd_create_srq_ex)
REFUSED(ibv_cmd_create_wq)
REFUSED(ibv_cmd_dealloc_mw)
REFUSED(ibv_cmd_dealloc_pd)
REFUSED(ibv_cmd_dereg_mr)
REFUSED(ibv_cmd_destroy_ah)
REFUSED(ibv_cmd_destroy_counters)
REFUSED(ibv_cmd_destroy_cq)
REFUSED(ibv_cmd_destroy_flow)
REFUSED(ibv_cmd_destroy_flow_action)
REFUSED(ibv_cmd_destroy_qp)
REFUSED(ibv_cmd_destroy_rwq_ind_table)
REFUSED(ibv_cmd_destroy_srq)
REFUSED(ibv_cmd_destroy_wq)
REFUSED(ibv_cmd_detach_mcast)
REFUSED(ibv_cmd_free_dm)
REFUSED(ibv_cmd_get_context)
REFUSED(ibv_cmd_modify_cq)
REFUSED(ibv_cmd_modify_flow_action_esp)
REFUSED(ibv_cmd_modify_qp)
REFUSED(ibv_cmd_modify_qp_ex)
REFUSED(ibv_cmd_modify_srq)
REFUSED(ibv_cmd_modify_wq)
REFUSED(ibv_cmd_open_qp)
REFUSED(ibv_cmd_open_xrcd)
REFUSED(ibv_cmd_poll_cq)
REFUSED(ibv_cmd_post_recv)
REFUSED(ibv_cmd_post_send)
REFUSED(ibv_cmd_post_srq_recv)
REFUSED(ibv_cmd_query_context)
REFUSED(ibv_cmd_query_device_any)
REFUSED(ibv_cmd_query_mr)
REFUSED(ibv_cmd_query_port)
REFUSED(ibv_cmd_query_qp)
REFUSED(ibv_cmd_query_srq)
REFUSED(ibv_cmd_read_counters)
REFUSED(ibv_cmd_reg_dm_mr)
REFUSED(ibv_cmd_reg_dmabuf_mr)
REFUSED(ibv_cmd_reg_mr)
REFUSED(ibv_cmd_req_notify_cq)
REFUSED(ibv_cmd_rereg_mr)
REFUSED(ibv_cmd_resize_cq)
