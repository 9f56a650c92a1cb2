/* The requests of a listener that are no connections yet, and the connections that nobody has accepted.
 * Holds: a request whose private data is not an rsocket's is rejected and never seen by the program.
 * Not here: making a connection of a request (listen.c). */
#include "rsocket/listen.h"

#include <stdlib.h>

struct vb_rs_request *vb_rs_request_of(struct vb_list *link)
{
	return vb_container_of(link, struct vb_rs_request, link);
}

void vb_rs_refuse(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void queue_request(struct vb_rsocket *rs, struct rdma_cm_id *id, const struct vb_rs_hello *hello)
{
	struct vb_rs_request *request = rs->state == VB_RS_LISTENING ? malloc(sizeof(*request)) : NULL;
	if (!request) {
		vb_rs_refuse(id);
		return;
	}
	*request = (struct vb_rs_request){ .id = id, .hello = *hello };
	vb_list_add_tail(&rs->requests, &request->link);
	vb_rs_changed(rs);
}

void vb_rs_take_request(struct vb_rsocket *rs, struct rdma_cm_event *event)
{
	struct vb_rs_hello hello;
	struct rdma_cm_id *id = event->id;

	int error = vb_rs_hello_decode(&hello, event->param.conn.private_data, event->param.conn.private_data_len);
	rdma_ack_cm_event(event);
	if (error)
		vb_rs_refuse(id);
	else
		queue_request(rs, id, &hello);
}

static struct vb_rs_request *find_request(const struct vb_rsocket *rs, const struct rdma_cm_id *id)
{
	vb_list_for_each (link, &rs->requests) {
		if (vb_rs_request_of(link)->id == id)
			return vb_rs_request_of(link);
	}
	return NULL;
}

/* A request that just becomes a connection is not in the list: accepting it will fail. */
void vb_rs_lose_request(struct vb_rsocket *rs, struct rdma_cm_event *event)
{
	struct vb_rs_request *request = find_request(rs, event->id);

	rdma_ack_cm_event(event);
	if (!request)
		return;
	vb_list_remove(&request->link);
	vb_rs_refuse(request->id);
	free(request);
}

void vb_rs_refuse_requests(struct vb_rsocket *rs)
{
	for (struct vb_list *link; (link = vb_list_pop(&rs->requests));) {
		vb_rs_refuse(vb_rs_request_of(link)->id);
		free(vb_rs_request_of(link));
	}
}

struct vb_rsocket *vb_rs_pop_made(struct vb_rsocket *rs)
{
	struct vb_list *link = vb_list_pop(&rs->made);
	if (!link)
		return NULL;
	struct vb_rsocket *made = vb_rs_request_of(link)->rs;
	free(vb_rs_request_of(link));
	rs->made_count--;
	return made;
}
