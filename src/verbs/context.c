/* An opened device: the context with its tables of operations, and the objects that a program makes in it. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "host/connections.h"
#include "host/lanes/cpus.h"
#include "verbs/faults.h"
#include "verbs/objects.h"

/* The structure grows at its front, so inline code of every release counts from its end. */
_Static_assert(offsetof(struct verbs_context, context) - offsetof(struct verbs_context, query_port) == 320 &&
		       sizeof(struct verbs_context) >= 648,
	"where inline code of any release looks");

/* For librdmacm. */
VB_EXPORT struct vb_device *vb_connections_device(struct ibv_context *context)
{
	return vb_host_of(context);
}

/* Only what inline code of the header calls is filled in; an extended operation that is NULL reads as EOPNOTSUPP. */
static void set_operations(struct verbs_context *verbs)
{
	verbs->sz = sizeof(*verbs);
	verbs->query_port = vb_context_ops_query_port;
	verbs->query_device_ex = vb_context_ops_query_device_ex;
	verbs->query_rt_values = vb_context_ops_query_rt_values;
	verbs->create_cq_ex = vb_cq_ops_create_ex;
	verbs->create_qp_ex = vb_qp_ops_create_ex;
	verbs->open_qp = vb_qp_ops_open;
	verbs->create_srq_ex = vb_srq_ops_create_ex;
	verbs->get_srq_num = vb_srq_ops_get_num;
	verbs->post_srq_ops = vb_srq_ops_post_ops;
	verbs->open_xrcd = vb_xrcd_ops_open;
	verbs->close_xrcd = vb_xrcd_ops_close;
	verbs->alloc_td = vb_td_ops_alloc;
	verbs->dealloc_td = vb_td_ops_dealloc;
	verbs->alloc_parent_domain = vb_pd_ops_alloc_parent;
	verbs->alloc_dm = vb_dm_ops_alloc;
	verbs->free_dm = vb_dm_ops_free;
	verbs->reg_dm_mr = vb_dm_ops_reg_mr;
	verbs->alloc_null_mr = vb_mr_ops_alloc_null;
	verbs->advise_mr = vb_mr_ops_advise;
	verbs->ibv_create_flow = vb_flow_ops_create;
	verbs->ibv_destroy_flow = vb_flow_ops_destroy;
	verbs->create_counters = vb_counters_ops_create;
	verbs->destroy_counters = vb_counters_ops_destroy;
	verbs->attach_counters_point_flow = vb_counters_ops_attach;
	verbs->read_counters = vb_counters_ops_read;
	verbs->create_wq = vb_wq_ops_create;
	verbs->modify_wq = vb_wq_ops_modify;
	verbs->destroy_wq = vb_wq_ops_destroy;
	verbs->create_rwq_ind_table = vb_ind_table_ops_create;
	verbs->destroy_rwq_ind_table = vb_ind_table_ops_destroy;

	struct ibv_context *context = &verbs->context;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->ops.alloc_mw = vb_mw_ops_alloc;
	context->ops.dealloc_mw = vb_mw_ops_dealloc;
	context->ops.bind_mw = vb_qp_ops_bind_mw;
	context->ops.poll_cq = vb_cq_ops_poll;
	context->ops.req_notify_cq = vb_cq_ops_req_notify;
	context->ops.post_srq_recv = vb_srq_ops_post_recv;
	context->ops.post_send = vb_qp_ops_post_send;
	context->ops.post_recv = vb_qp_ops_post_recv;
}

/* Programs copy and mark cmd_fd, though it leads nowhere here: it must be a descriptor. */
VB_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (vb_call_fails(VB_CALL_ibv_open_device))
		return NULL;
	if (!device)
		return vb_fail(EINVAL);
	struct context_object *object = calloc(1, sizeof(*object));
	if (!object)
		return vb_fail(ENOMEM);
	int err = vb_event_queue_init(&object->async);
	if (err)
		goto out_free;

	struct ibv_context *context = &object->verbs.context;
	object->device = (struct device_object *)device;
	context->device = device;
	context->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	context->async_fd = object->async.fd;
	context->num_comp_vectors = (int)vb_cpus_possible(); /* as many as with rxe and siw; all are the same here */
	pthread_mutex_init(&context->mutex, NULL);
	pthread_mutex_init(&object->objects_lock, NULL);
	pthread_mutex_init(&object->rereg_lock, NULL);
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		vb_list_init(&object->objects[kind]);
	vb_list_init(&object->domains);
	set_operations(&object->verbs);
	vb_faults_set_operations(&object->verbs);

	struct vb_device_sink sink = { vb_sink_on_event, vb_sink_on_port, vb_sink_on_gid_change, object };
	err = vb_device_open(device->name, &sink, &object->host);
	if (err)
		goto out_queue;
	err = vb_fault_events_start(object);
	if (err)
		goto out_device;
	vb_device_object_get(object->device);
	return context;

out_device:
	vb_device_close(object->host);
out_queue:
	close(context->cmd_fd);
	vb_event_queue_deinit(&object->async);
out_free:
	free(object);
	return vb_fail(-err);
}

static struct vb_list *first_object(struct context_object *object, int kind)
{
	pthread_mutex_lock(&object->objects_lock);
	struct vb_list *head = &object->objects[kind];
	struct vb_list *link = vb_list_empty(head) ? NULL : head->next;
	pthread_mutex_unlock(&object->objects_lock);
	return link;
}

static int destroy_object(int kind, struct vb_list *link)
{
	switch (kind) {
	case OBJECT_QP:
		vb_qp_leave_groups(vb_container_of(link, struct qp_object, link));
		return ibv_destroy_qp(&vb_container_of(link, struct qp_object, link)->ibv);
	case OBJECT_FLOW:
		return vb_flow_ops_destroy(&vb_container_of(link, struct flow_object, link)->ibv);
	case OBJECT_COUNTERS:
		return vb_counters_ops_destroy(&vb_container_of(link, struct counters_object, link)->ibv);
	case OBJECT_IND_TABLE:
		return vb_ind_table_ops_destroy(&vb_container_of(link, struct ind_table_object, link)->ibv);
	case OBJECT_WQ:
		return vb_wq_ops_destroy(&vb_container_of(link, struct wq_object, link)->ibv);
	case OBJECT_SRQ:
		return ibv_destroy_srq(&vb_container_of(link, struct srq_object, link)->ibv);
	case OBJECT_XRCD:
		return vb_xrcd_ops_close(&vb_container_of(link, struct xrcd_object, link)->ibv);
	case OBJECT_MW:
		return vb_mw_ops_dealloc(&vb_container_of(link, struct mw_object, link)->ibv);
	case OBJECT_MR:
		return ibv_dereg_mr(&vb_container_of(link, struct mr_object, link)->ibv);
	case OBJECT_COMP_CNTR:
		return later_destroy_comp_cntr(&vb_container_of(link, struct comp_cntr_object, link)->ibv);
	case OBJECT_DMAH:
		return later_dealloc_dmah(&vb_container_of(link, struct dmah_object, link)->ibv);
	case OBJECT_DM:
		return vb_dm_ops_free(&vb_container_of(link, struct dm_object, link)->ibv);
	case OBJECT_CQ:
		return ibv_destroy_cq(ibv_cq_ex_to_cq(&vb_container_of(link, struct cq_object, link)->ibv));
	case OBJECT_AH:
		return ibv_destroy_ah(&vb_container_of(link, struct ah_object, link)->ibv);
	case OBJECT_TD:
		return vb_td_ops_dealloc(&vb_container_of(link, struct td_object, link)->ibv);
	case OBJECT_PARENT_DOMAIN:
	case OBJECT_PD:
		return ibv_dealloc_pd(&vb_container_of(link, struct pd_object, link)->ibv);
	case OBJECT_CHANNEL:
		return ibv_destroy_comp_channel(&vb_container_of(link, struct channel_object, link)->ibv);
	}
	return EINVAL;
}

/* Counts all delivered events of the objects left behind as acknowledged: the program will not do it. */
static void forgive_events(struct context_object *object)
{
	vb_list_for_each (node, &object->objects[OBJECT_QP]) {
		struct qp_object *qp = vb_container_of(node, struct qp_object, link);
		qp->ibv.events_completed = qp->async_delivered;
	}
	vb_list_for_each (node, &object->objects[OBJECT_WQ]) {
		struct wq_object *wq = vb_container_of(node, struct wq_object, link);
		wq->ibv.events_completed = wq->async_delivered;
	}
	vb_list_for_each (node, &object->objects[OBJECT_SRQ]) {
		struct srq_object *srq = vb_container_of(node, struct srq_object, link);
		srq->ibv.events_completed = srq->async_delivered;
	}
	vb_list_for_each (node, &object->objects[OBJECT_CQ]) {
		struct cq_object *cq = vb_container_of(node, struct cq_object, link);
		cq->ibv.comp_events_completed = cq->comp_delivered;
		cq->ibv.async_events_completed = cq->async_delivered;
	}
}

/* Objects that the program has left are destroyed first, each before those that it depends on. In a forked child no
 * object can be destroyed, since the lane is the parent's and a thread of the parent may have held an object's lock:
 * the child only closes its copies of the descriptors. */
VB_EXPORT int ibv_close_device(struct ibv_context *context)
{
	if (vb_call_fails(VB_CALL_ibv_close_device))
		return errno;
	struct context_object *object = vb_context_of(context);
	const unsigned losses = object->async.losses; /* the same for all of its descriptors */
	bool is_forked = vb_is_forked(context);
	vb_fault_events_stop(object, is_forked);
	if (!is_forked) {
		vb_calls_pass(true); /* those of the library itself */
		forgive_events(object);
		for (int kind = 0; kind < OBJECT_KINDS; kind++) {
			for (struct vb_list *link; (link = first_object(object, kind));) {
				if (destroy_object(kind, link))
					vb_object_remove(context, link);
			}
		}
	}
	vb_calls_pass(false);
	vb_device_close(object->host);
	if (!is_forked)
		vb_async_events_discard(object);
	vb_event_queue_deinit(&object->async);
	vb_close_unless_lost(context->cmd_fd, losses);
	pthread_mutex_destroy(&context->mutex);
	pthread_mutex_destroy(&object->objects_lock);
	pthread_mutex_destroy(&object->rereg_lock);
	vb_device_object_put(object->device);
	free(object);
	return 0;
}
