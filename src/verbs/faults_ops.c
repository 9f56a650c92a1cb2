/* The operations of a context when VERBENA_FAULTS names calls: each asks first whether it must fail. A context without
 * such faults has the plain operations, so that posting and polling pay nothing.
 * Not here: functions that are no operations, which ask by themselves; counting (host/call_faults.c). */
#include "verbs/faults.h"
#include "verbs/objects.h"

/* FAULTY(result, failed, name, plain, parameters, arguments): failed is what the call returns then. */
#define FAULTY(type, failed, name, plain, parameters, arguments)                                                       \
	static type faulty_##name parameters                                                                           \
	{                                                                                                              \
		return vb_call_fails(VB_CALL_ibv_##name) ? (failed) : plain arguments;                                 \
	}

/* clang-format off */
FAULTY(int, errno, query_port, vb_context_ops_query_port,
	(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size), (context, port, attr, size))
FAULTY(int, errno, query_device_ex, vb_context_ops_query_device_ex,
	(struct ibv_context *context, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
		size_t size), (context, input, attr, size))
FAULTY(int, errno, query_rt_values_ex, vb_context_ops_query_rt_values,
	(struct ibv_context *context, struct ibv_values_ex *values), (context, values))
FAULTY(struct ibv_cq_ex *, NULL, create_cq_ex, vb_cq_ops_create_ex,
	(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr), (context, attr))
FAULTY(struct ibv_qp *, NULL, create_qp_ex, vb_qp_ops_create_ex,
	(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr), (context, attr))
FAULTY(struct ibv_qp *, NULL, open_qp, vb_qp_ops_open,
	(struct ibv_context *context, struct ibv_qp_open_attr *attr), (context, attr))
FAULTY(struct ibv_srq *, NULL, create_srq_ex, vb_srq_ops_create_ex,
	(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr), (context, attr))
FAULTY(int, errno, get_srq_num, vb_srq_ops_get_num, (struct ibv_srq *srq, uint32_t *number), (srq, number))
FAULTY(struct ibv_xrcd *, NULL, open_xrcd, vb_xrcd_ops_open,
	(struct ibv_context *context, struct ibv_xrcd_init_attr *attr), (context, attr))
FAULTY(int, errno, close_xrcd, vb_xrcd_ops_close, (struct ibv_xrcd *xrcd), (xrcd))
FAULTY(struct ibv_td *, NULL, alloc_td, vb_td_ops_alloc,
	(struct ibv_context *context, struct ibv_td_init_attr *attr), (context, attr))
FAULTY(int, errno, dealloc_td, vb_td_ops_dealloc, (struct ibv_td *td), (td))
FAULTY(struct ibv_pd *, NULL, alloc_parent_domain, vb_pd_ops_alloc_parent,
	(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr), (context, attr))
FAULTY(struct ibv_dm *, NULL, alloc_dm, vb_dm_ops_alloc,
	(struct ibv_context *context, struct ibv_alloc_dm_attr *attr), (context, attr))
FAULTY(int, errno, free_dm, vb_dm_ops_free, (struct ibv_dm *dm), (dm))
FAULTY(struct ibv_mr *, NULL, reg_dm_mr, vb_dm_ops_reg_mr,
	(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access),
	(pd, dm, offset, length, access))
FAULTY(struct ibv_mr *, NULL, alloc_null_mr, vb_mr_ops_alloc_null, (struct ibv_pd *pd), (pd))
FAULTY(int, errno, advise_mr, vb_mr_ops_advise,
	(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges, uint32_t count),
	(pd, advice, flags, sges, count))
FAULTY(struct ibv_flow *, NULL, create_flow, vb_flow_ops_create,
	(struct ibv_qp *qp, struct ibv_flow_attr *attr), (qp, attr))
FAULTY(int, errno, destroy_flow, vb_flow_ops_destroy, (struct ibv_flow *flow), (flow))
FAULTY(struct ibv_counters *, NULL, create_counters, vb_counters_ops_create,
	(struct ibv_context *context, struct ibv_counters_init_attr *attr), (context, attr))
FAULTY(int, errno, destroy_counters, vb_counters_ops_destroy, (struct ibv_counters *counters), (counters))
FAULTY(int, errno, attach_counters_point_flow, vb_counters_ops_attach,
	(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow),
	(counters, attr, flow))
FAULTY(int, errno, read_counters, vb_counters_ops_read,
	(struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags),
	(counters, values, count, flags))
FAULTY(struct ibv_wq *, NULL, create_wq, vb_wq_ops_create,
	(struct ibv_context *context, struct ibv_wq_init_attr *attr), (context, attr))
FAULTY(int, errno, modify_wq, vb_wq_ops_modify, (struct ibv_wq *wq, struct ibv_wq_attr *attr), (wq, attr))
FAULTY(int, errno, destroy_wq, vb_wq_ops_destroy, (struct ibv_wq *wq), (wq))
FAULTY(struct ibv_rwq_ind_table *, NULL, create_rwq_ind_table, vb_ind_table_ops_create,
	(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr), (context, attr))
FAULTY(int, errno, destroy_rwq_ind_table, vb_ind_table_ops_destroy, (struct ibv_rwq_ind_table *table), (table))
FAULTY(struct ibv_mw *, NULL, alloc_mw, vb_mw_ops_alloc, (struct ibv_pd *pd, enum ibv_mw_type type), (pd, type))
FAULTY(int, errno, dealloc_mw, vb_mw_ops_dealloc, (struct ibv_mw *mw), (mw))
FAULTY(int, errno, bind_mw, vb_qp_ops_bind_mw,
	(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind), (qp, mw, bind))
FAULTY(int, -errno, poll_cq, vb_cq_ops_poll, (struct ibv_cq *cq, int n, struct ibv_wc *wc), (cq, n, wc))
FAULTY(int, errno, req_notify_cq, vb_cq_ops_req_notify, (struct ibv_cq *cq, int solicited), (cq, solicited))
FAULTY(int, (*bad = wr, errno), post_srq_recv, vb_srq_ops_post_recv,
	(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad), (srq, wr, bad))
FAULTY(int, (*bad = wr, errno), post_srq_ops, vb_srq_ops_post_ops,
	(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad), (srq, wr, bad))
FAULTY(int, (*bad = wr, errno), post_send, vb_qp_ops_post_send,
	(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad), (qp, wr, bad))
FAULTY(int, (*bad = wr, errno), post_recv, vb_qp_ops_post_recv,
	(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad), (qp, wr, bad))
FAULTY(int, errno, start_poll, vb_cq_ex_start_poll,
	(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr), (cq, attr))
FAULTY(int, errno, next_poll, vb_cq_ex_next_poll, (struct ibv_cq_ex *cq), (cq))
/* clang-format on */

void vb_faults_set_operations(struct verbs_context *verbs)
{
	if (!vb_call_faults_get()->count)
		return;
#define SET(name) verbs->name = faulty_##name
	SET(query_port), SET(query_device_ex), SET(create_cq_ex), SET(create_qp_ex), SET(open_qp);
	SET(create_srq_ex), SET(get_srq_num), SET(post_srq_ops), SET(open_xrcd), SET(close_xrcd);
	SET(alloc_td), SET(dealloc_td), SET(alloc_parent_domain), SET(alloc_dm), SET(free_dm), SET(reg_dm_mr);
	SET(alloc_null_mr), SET(advise_mr), SET(create_counters), SET(destroy_counters);
	SET(attach_counters_point_flow), SET(read_counters), SET(create_wq), SET(modify_wq), SET(destroy_wq);
	SET(create_rwq_ind_table), SET(destroy_rwq_ind_table);
	verbs->query_rt_values = faulty_query_rt_values_ex;
	verbs->ibv_create_flow = faulty_create_flow;
	verbs->ibv_destroy_flow = faulty_destroy_flow;
#undef SET
#define SET(name) verbs->context.ops.name = faulty_##name
	SET(alloc_mw), SET(dealloc_mw), SET(bind_mw), SET(poll_cq), SET(req_notify_cq);
	SET(post_srq_recv), SET(post_send), SET(post_recv);
#undef SET
}

static int faulty_wr_complete(struct ibv_qp_ex *qp)
{
	if (!vb_call_fails(VB_CALL_ibv_wr_complete))
		return vb_qp_ex_complete(qp);
	const int error = errno;
	qp->wr_abort(qp);
	return error;
}

void vb_faults_set_builder(struct ibv_qp_ex *qp)
{
	if (vb_call_faults_get()->count)
		qp->wr_complete = faulty_wr_complete;
}

void vb_faults_set_poller(struct ibv_cq_ex *cq)
{
	if (!vb_call_faults_get()->count)
		return;
	cq->start_poll = faulty_start_poll;
	cq->next_poll = faulty_next_poll;
}
