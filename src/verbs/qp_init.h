/* The two forms of a QP's initial attributes, for both libraries. */
#ifndef VB_VERBS_QP_INIT_H
#define VB_VERBS_QP_INIT_H

#include <infiniband/verbs.h>

/* The extended form of plain attributes, in the protection domain pd. */
static inline struct ibv_qp_init_attr_ex vb_qp_init_extended(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
}

#endif
