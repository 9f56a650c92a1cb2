/* The private nodes: symbols that hardware drivers import from the library. The drivers must load, since perftest, UCX
 * and libfabric link them, but they drive no device of ours. So registering does nothing, and calls for a driver's own
 * objects fail. Programs call two of the symbols, which do work: ibv_query_gid_type (gid.c), ibv_wr_opcode_str
 * (text.c).
 *
 * A driver asks for the node of the release that it was built with, and accepts no other. So all nodes stand side by
 * side, with many names and few answers. The drivers' arguments are never looked at.
 * To add a node: a row in the macros of nodes below, in libibverbs.map, and its driver's name at the end. */
#include "verbs/objects.h"

/* Exports an answer under name in a node of its own. dlsym finds the newest. */
#define IN(node, name, answer) __asm__(".symver " #answer "," #name "@IBVERBS_PRIVATE_" #node);
#define NEWEST(name, answer)   __asm__(".symver " #answer "," #name "@@IBVERBS_PRIVATE_65");

/* Names in the order of their first node, whose number it is. That is not the release number. */
#define SINCE_65(name, answer) NEWEST(name, answer)
#define SINCE_64(name, answer) IN(64, name, answer) SINCE_65(name, answer)
#define SINCE_59(name, answer) IN(59, name, answer) SINCE_64(name, answer)
#define SINCE_57(name, answer) IN(57, name, answer) SINCE_59(name, answer)
#define SINCE_34(name, answer) IN(34, name, answer) SINCE_57(name, answer)
#define SINCE_33(name, answer) IN(33, name, answer) SINCE_34(name, answer)
#define SINCE_25(name, answer) IN(25, name, answer) SINCE_33(name, answer)

/* ---- The answers ------------------------------------------------------------------------------------------------- */

/* A command to a kernel device that does not exist. */
int vb_private_refused(void);
VB_EXPORT int vb_private_refused(void)
{
	return errno = EOPNOTSUPP;
}

void *vb_private_refused_pointer(void);
VB_EXPORT void *vb_private_refused_pointer(void)
{
	return vb_fail(EOPNOTSUPP);
}

int vb_private_refused_file(void);
VB_EXPORT int vb_private_refused_file(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

void vb_private_ignored(void);
VB_EXPORT void vb_private_ignored(void) {}

unsigned int vb_private_num_attrs(unsigned int num_attrs);
VB_EXPORT unsigned int vb_private_num_attrs(unsigned int num_attrs)
{
	return num_attrs;
}

int vb_private_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);
VB_EXPORT int vb_private_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	return vb_query_gid_type(context, port, index, type);
}

const char *vb_private_wr_opcode_str(enum ibv_wr_opcode opcode);
VB_EXPORT const char *vb_private_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return vb_wr_opcode_str(opcode);
}

/* Drivers read it: destroying may go on after the device has gone. */
extern bool vb_private_allow_disassociate;
VB_EXPORT bool vb_private_allow_disassociate;

/* ---- The names --------------------------------------------------------------------------------------------------- */

SINCE_25(ibv_query_gid_type, vb_private_query_gid_type)
SINCE_34(ibv_wr_opcode_str, vb_private_wr_opcode_str)
SINCE_25(verbs_allow_disassociate_destroy, vb_private_allow_disassociate)
SINCE_25(__ioctl_final_num_attrs, vb_private_num_attrs)
SINCE_34(__verbs_log, vb_private_ignored)
SINCE_25(verbs_init_cq, vb_private_ignored)
SINCE_25(verbs_set_ops, vb_private_ignored)
SINCE_25(verbs_uninit_context, vb_private_ignored)
SINCE_25(_verbs_init_and_alloc_context, vb_private_refused_pointer)
SINCE_25(verbs_open_device, vb_private_refused_pointer)
SINCE_25(ibv_read_ibdev_sysfs_file, vb_private_refused_file)
SINCE_25(execute_ioctl, vb_private_refused)

/* Called from the drivers' constructors. */
IN(25, verbs_register_driver_25, vb_private_ignored)
IN(33, verbs_register_driver_33, vb_private_ignored)
IN(34, verbs_register_driver_34, vb_private_ignored)
IN(57, verbs_register_driver_57, vb_private_ignored)
IN(59, verbs_register_driver_59, vb_private_ignored)
IN(64, verbs_register_driver_64, vb_private_ignored)
NEWEST(verbs_register_driver_65, vb_private_ignored)

SINCE_25(ibv_cmd_advise_mr, vb_private_refused)
SINCE_25(ibv_cmd_alloc_dm, vb_private_refused)
SINCE_59(ibv_cmd_alloc_dmah, vb_private_refused)
SINCE_25(ibv_cmd_alloc_mw, vb_private_refused)
SINCE_25(ibv_cmd_alloc_pd, vb_private_refused)
SINCE_25(ibv_cmd_attach_mcast, vb_private_refused)
SINCE_25(ibv_cmd_close_xrcd, vb_private_refused)
SINCE_25(ibv_cmd_create_ah, vb_private_refused)
SINCE_65(ibv_cmd_create_comp_cntr, vb_private_refused)
SINCE_25(ibv_cmd_create_counters, vb_private_refused)
SINCE_25(ibv_cmd_create_cq, vb_private_refused)
SINCE_25(ibv_cmd_create_cq_ex, vb_private_refused)
SINCE_34(ibv_cmd_create_cq_ex2, vb_private_refused)
SINCE_25(ibv_cmd_create_flow, vb_private_refused)
SINCE_25(ibv_cmd_create_flow_action_esp, vb_private_refused)
SINCE_25(ibv_cmd_create_qp, vb_private_refused)
SINCE_25(ibv_cmd_create_qp_ex, vb_private_refused)
SINCE_25(ibv_cmd_create_qp_ex2, vb_private_refused)
SINCE_25(ibv_cmd_create_rwq_ind_table, vb_private_refused)
SINCE_25(ibv_cmd_create_srq, vb_private_refused)
SINCE_25(ibv_cmd_create_srq_ex, vb_private_refused)
SINCE_25(ibv_cmd_create_wq, vb_private_refused)
SINCE_25(ibv_cmd_dealloc_mw, vb_private_refused)
SINCE_25(ibv_cmd_dealloc_pd, vb_private_refused)
SINCE_25(ibv_cmd_dereg_mr, vb_private_refused)
SINCE_25(ibv_cmd_destroy_ah, vb_private_refused)
SINCE_65(ibv_cmd_destroy_comp_cntr, vb_private_refused)
SINCE_25(ibv_cmd_destroy_counters, vb_private_refused)
SINCE_25(ibv_cmd_destroy_cq, vb_private_refused)
SINCE_25(ibv_cmd_destroy_flow, vb_private_refused)
SINCE_25(ibv_cmd_destroy_flow_action, vb_private_refused)
SINCE_25(ibv_cmd_destroy_qp, vb_private_refused)
SINCE_25(ibv_cmd_destroy_rwq_ind_table, vb_private_refused)
SINCE_25(ibv_cmd_destroy_srq, vb_private_refused)
SINCE_25(ibv_cmd_destroy_wq, vb_private_refused)
SINCE_25(ibv_cmd_detach_mcast, vb_private_refused)
SINCE_59(ibv_cmd_export_dmabuf_fd, vb_private_refused)
SINCE_25(ibv_cmd_free_dm, vb_private_refused)
SINCE_59(ibv_cmd_free_dmah, vb_private_refused)
SINCE_25(ibv_cmd_get_context, vb_private_refused)
SINCE_65(ibv_cmd_inc_comp_cntr, vb_private_refused)
SINCE_65(ibv_cmd_inc_err_comp_cntr, vb_private_refused)
SINCE_25(ibv_cmd_modify_cq, vb_private_refused)
SINCE_25(ibv_cmd_modify_flow_action_esp, vb_private_refused)
SINCE_25(ibv_cmd_modify_qp, vb_private_refused)
SINCE_25(ibv_cmd_modify_qp_ex, vb_private_refused)
SINCE_25(ibv_cmd_modify_srq, vb_private_refused)
SINCE_25(ibv_cmd_modify_wq, vb_private_refused)
SINCE_25(ibv_cmd_open_qp, vb_private_refused)
SINCE_25(ibv_cmd_open_xrcd, vb_private_refused)
SINCE_25(ibv_cmd_poll_cq, vb_private_refused)
SINCE_25(ibv_cmd_post_recv, vb_private_refused)
SINCE_25(ibv_cmd_post_send, vb_private_refused)
SINCE_25(ibv_cmd_post_srq_recv, vb_private_refused)
SINCE_65(ibv_cmd_qp_attach_comp_cntr, vb_private_refused)
SINCE_65(ibv_cmd_query_comp_cntr_caps, vb_private_refused)
SINCE_25(ibv_cmd_query_context, vb_private_refused)
IN(25, ibv_cmd_query_device, vb_private_refused)
IN(33, ibv_cmd_query_device, vb_private_refused)
IN(34, ibv_cmd_query_device, vb_private_refused)
SINCE_33(ibv_cmd_query_device_any, vb_private_refused)
IN(25, ibv_cmd_query_device_ex, vb_private_refused)
SINCE_25(ibv_cmd_query_mr, vb_private_refused)
SINCE_25(ibv_cmd_query_port, vb_private_refused)
SINCE_59(ibv_cmd_query_port_speed, vb_private_refused)
SINCE_25(ibv_cmd_query_qp, vb_private_refused)
SINCE_25(ibv_cmd_query_srq, vb_private_refused)
SINCE_65(ibv_cmd_read_comp_cntr, vb_private_refused)
SINCE_25(ibv_cmd_read_counters, vb_private_refused)
SINCE_65(ibv_cmd_read_err_comp_cntr, vb_private_refused)
SINCE_25(ibv_cmd_reg_dm_mr, vb_private_refused)
SINCE_34(ibv_cmd_reg_dmabuf_mr, vb_private_refused)
SINCE_25(ibv_cmd_reg_mr, vb_private_refused)
SINCE_59(ibv_cmd_reg_mr_ex, vb_private_refused)
SINCE_25(ibv_cmd_req_notify_cq, vb_private_refused)
SINCE_25(ibv_cmd_rereg_mr, vb_private_refused)
SINCE_25(ibv_cmd_resize_cq, vb_private_refused)
SINCE_65(ibv_cmd_set_comp_cntr, vb_private_refused)
SINCE_65(ibv_cmd_set_err_comp_cntr, vb_private_refused)
SINCE_64(ibv_dmabuf_heap_alloc, vb_private_refused_pointer)
SINCE_64(ibv_dmabuf_heap_cc_shared_init, vb_private_refused_pointer)
SINCE_64(ibv_dmabuf_heap_destroy, vb_private_ignored)
SINCE_64(ibv_dmabuf_heap_free, vb_private_ignored)
IN(25, ibv_get_fw_ver, vb_private_refused)
