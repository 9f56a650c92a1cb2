/* A listener's requests, its connections that nobody has accepted, and the thread that makes these of those. */
#ifndef VB_RSOCKET_LISTEN_H
#define VB_RSOCKET_LISTEN_H

#include "rsocket/objects.h"

/* A request, or the connection that was made of it. */
struct vb_rs_request {
	struct vb_list link;
	struct rdma_cm_id *id;
	struct vb_rs_hello hello;
	struct vb_rsocket *rs; /* NULL: still a request */
};

/* ---- Requests (requests.c): under the listener's lock ------------------------------------------------------------ */

struct vb_rs_request *vb_rs_request_of(struct vb_list *link);
void vb_rs_refuse(struct rdma_cm_id *id);
void vb_rs_refuse_requests(struct vb_rsocket *rs);
/* The oldest connection that nobody has accepted, taken out of the listener; NULL: there is none. */
struct vb_rsocket *vb_rs_pop_made(struct vb_rsocket *rs);

/* ---- Listeners that a thread serves (listeners.c) ---------------------------------------------------------------- */

int vb_rs_listeners_open(void); /* once a process. 0 or -errno */
/* With its lock held. It is in the list afterwards, or the thread will not serve it. */
void vb_rs_listeners_add(struct vb_rsocket *rs);
void vb_rs_listeners_remove(struct vb_rsocket *rs);
bool vb_rs_listeners_has(const struct vb_rsocket *rs);
/* Sleeps until one has something to do, and keeps that; NULL: it is just being closed. */
struct vb_rsocket *vb_rs_listeners_wait(void);

/* ---- Listening (listen.c) ---------------------------------------------------------------------------------------- */

/* The request becomes a connection with the listener's options. 0 or -errno, and then its id is gone. */
int vb_rs_make_connection(struct vb_rs_request *request, int domain, const struct vb_rs_options *options);

#endif
