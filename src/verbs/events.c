/* Completion events and asynchronous events: from the host's sink to the program.
 * Holds: a queue's descriptor is readable exactly while an event waits in it. So both change under the queue's lock: a
 * thread that queues an event writes a count, and one that takes an event reads it. A blocked reader sleeps outside the
 * lock. There is one exception: a blocked reader drives the lane before it sleeps, and events that it brings that way
 * are not counted until it has taken one. Mostly there is just that one, which saves two system calls.
 * Not here: the channel's creation (channel.c). */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/clock.h"
#include "os/descriptor.h"
#include "verbs/objects.h"
#include "verbs/wait.h"

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

int vb_event_queue_init(struct event_queue *queue)
{
	queue->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (queue->fd < 0)
		return -errno;
	queue->losses = vb_host_losses();
	pthread_mutex_init(&queue->lock, NULL);
	vb_list_init(&queue->waiting);
	return 0;
}

void vb_event_queue_deinit(struct event_queue *queue)
{
	if (queue->losses == vb_host_losses())
		vb_descriptor_close(queue->fd, VB_TYPE_ANONYMOUS);
	pthread_mutex_destroy(&queue->lock);
}

static _Thread_local struct event_queue *awaited __attribute__((tls_model("initial-exec"))); /* by the calling thread */

/* Bare system calls: the C library's functions are cancellation points, and a thread that is cancelled here would never
 * release the queue's lock. They fail only if the program closed our descriptor. A program that closes all descriptors
 * may have a file of its own at that number: vb_host_losses() tells. */
static void write_count(struct event_queue *queue, uint64_t count)
{
	if (queue->losses != vb_host_losses())
		vb_eventfd_ring(queue->fd, count);
	else
		syscall(SYS_write, queue->fd, &count, sizeof(count));
}

static void count_up(struct event_queue *queue)
{
	atomic_fetch_add_explicit(&queue->count, 1, memory_order_relaxed);
	if (awaited == queue)
		queue->uncounted++;
	else
		write_count(queue, 1);
}

static void count_down(struct event_queue *queue)
{
	uint64_t one;

	assert(atomic_load_explicit(&queue->count, memory_order_relaxed));
	atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
	if (queue->uncounted)
		queue->uncounted--;
	else if (queue->losses != vb_host_losses())
		vb_eventfd_take(queue->fd);
	else
		syscall(SYS_read, queue->fd, &one, sizeof(one));
}

/* The calling thread takes no event any more: counts the events that it brought, for other threads. */
static void stop_awaiting(void *argument)
{
	struct event_queue *queue = argument;

	awaited = NULL;
	pthread_mutex_lock(&queue->lock);
	if (queue->uncounted)
		write_count(queue, queue->uncounted);
	queue->uncounted = 0;
	pthread_mutex_unlock(&queue->lock);
}

static bool is_nonblocking(const struct event_queue *queue)
{
	int flags = fcntl(queue->fd, F_GETFL);
	return flags < 0 || (flags & O_NONBLOCK);
}

/* Signals that a thread's own instructions raise. None of them is for a sleeping thread. */
static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP ||
	       signal == SIGSYS || signal == SIGABRT;
}

/* As with read(), a signal whose handler was installed with SA_RESTART does not end a blocked call. The signal that
 * came is unknown, so one handler without SA_RESTART makes every signal end it. */
VB_EXPORT bool vb_signal_ends_wait(void)
{
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction action;
		if (is_fault(signal) || sigaction(signal, NULL, &action) || (action.sa_flags & SA_RESTART))
			continue;
		if ((action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
			return true;
	}
	return false;
}

/* ---- Completion events ------------------------------------------------------------------------------------------- */

/* The calling thread has raised a completion event since it began to wait. */
static _Thread_local atomic_uint raised __attribute__((tls_model("initial-exec")));

VB_EXPORT int vb_poll_asleep(
	struct ibv_context *context, unsigned lanes, struct pollfd *fds, unsigned count, int timeout_ms)
{
	_Static_assert(VB_ASLEEP_FDS == VB_WAIT_FDS, "as promised");
	if (vb_refuses_forked(context))
		return vb_clock_poll(fds, count, timeout_ms);
	atomic_store_explicit(&raised, 0, memory_order_relaxed);
	return vb_device_poll(vb_host_of(context), lanes, fds, count, timeout_ms, &raised);
}

/* If the program arms a CQ again before it fetches the event, several are due; so `notices` is a count. */
void vb_cq_notify(struct cq_object *cq)
{
	if (!cq->ibv.channel)
		return;
	struct event_queue *queue = &((struct channel_object *)cq->ibv.channel)->queue;
	atomic_store_explicit(&raised, 1, memory_order_relaxed);
	pthread_mutex_lock(&queue->lock);
	if (cq->notices++ == 0)
		vb_list_add_tail(&queue->waiting, &cq->waiting);
	count_up(queue);
	pthread_mutex_unlock(&queue->lock);
}

static struct cq_object *completion_take(struct event_queue *queue)
{
	struct cq_object *cq = NULL;
	pthread_mutex_lock(&queue->lock);
	struct vb_list *link = vb_list_pop(&queue->waiting);
	if (link) {
		cq = vb_container_of(link, struct cq_object, waiting);
		if (--cq->notices)
			vb_list_add_tail(&queue->waiting, &cq->waiting);
		cq->comp_delivered++;
		count_down(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	return cq;
}

static struct cq_object *wait_and_take(struct channel_object *channel)
{
	struct event_queue *queue = &channel->queue;
	struct cq_object *found;
	bool is_over;

	do {
		is_over = !vb_device_wait(vb_host_of(channel->ibv.context), atomic_load(&channel->lanes), queue->fd,
				  &queue->count) &&
			  vb_signal_ends_wait();
		found = completion_take(queue);
	} while (!found && !is_over && !vb_device_has_lost_descriptors(vb_host_of(channel->ibv.context)));
	return found;
}

/* NULL: a signal has ended the wait, or the program has closed our descriptors. */
static struct cq_object *await_completion(struct channel_object *channel)
{
	struct cq_object *found;

	awaited = &channel->queue;
	pthread_cleanup_push(stop_awaiting, &channel->queue);
	found = wait_and_take(channel);
	pthread_cleanup_pop(1);
	return found;
}

VB_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	if (vb_call_fails(VB_CALL_ibv_get_cq_event))
		return -1;
	struct channel_object *channel = (struct channel_object *)ibv;
	if (vb_refuses_forked(ibv->context)) {
		errno = VB_FORKED_ERRNO;
		return -1;
	}
	struct cq_object *found = completion_take(&channel->queue);
	if (!found && is_nonblocking(&channel->queue)) {
		errno = EAGAIN;
		return -1;
	}
	if (!found && !(found = await_completion(channel))) {
		errno = vb_device_has_lost_descriptors(vb_host_of(ibv->context)) ? EBADF : EINTR;
		return -1;
	}
	vb_host_lane_notified();
	*cq = ibv_cq_ex_to_cq(&found->ibv);
	*cq_context = found->ibv.cq_context;
	return 0;
}

VB_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- Asynchronous events ----------------------------------------------------------------------------------------- */

struct async_entry {
	struct vb_list link;
	struct ibv_async_event event;
	const void *element; /* NULL for events of the port */
	uint32_t *delivered; /* the element's count */
};

static void async_queue(
	struct context_object *context, struct ibv_async_event event, const void *element, uint32_t *delivered)
{
	struct async_entry *entry = malloc(sizeof(*entry));
	if (!entry)
		return;
	*entry = (struct async_entry){ .event = event, .element = element, .delivered = delivered };
	struct event_queue *queue = &context->async;
	pthread_mutex_lock(&queue->lock);
	vb_list_add_tail(&queue->waiting, &entry->link);
	count_up(queue);
	pthread_mutex_unlock(&queue->lock);
}

static bool async_take(struct event_queue *queue, struct ibv_async_event *event)
{
	pthread_mutex_lock(&queue->lock);
	struct vb_list *link = vb_list_pop(&queue->waiting);
	struct async_entry *entry = NULL;
	if (link) {
		entry = vb_container_of(link, struct async_entry, link);
		if (entry->delivered)
			++*entry->delivered;
		*event = entry->event;
		count_down(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	free(entry);
	return link != NULL;
}

/* Sleeps in poll() and does not drive the lane: asynchronous events are not urgent. */
VB_EXPORT int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	if (vb_call_fails(VB_CALL_ibv_get_async_event))
		return -1;
	struct event_queue *queue = &vb_context_of(ibv)->async;
	if (vb_refuses_forked(ibv)) {
		errno = VB_FORKED_ERRNO;
		return -1;
	}
	while (!async_take(queue, event)) {
		if (is_nonblocking(queue)) {
			errno = EAGAIN;
			return -1;
		}
		struct pollfd wait = { .fd = queue->fd, .events = POLLIN };
		if (vb_clock_poll(&wait, 1, -1) < 0 && (errno != EINTR || vb_signal_ends_wait()))
			return -1;
	}
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

VB_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct ibv_cq *cq = event->element.cq;
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct ibv_qp *qp = event->element.qp;
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct ibv_srq *srq = event->element.srq;
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	}
	case IBV_EVENT_WQ_FATAL: {
		struct ibv_wq *wq = event->element.wq;
		acknowledge(&wq->mutex, &wq->cond, &wq->events_completed);
		break;
	}
	default: /* events of the port and the device need no acknowledgement */
		break;
	}
}

/* ---- The sink ---------------------------------------------------------------------------------------------------- */

static void queue_qp_event(struct qp_object *qp, enum vb_event_kind kind)
{
	struct ibv_async_event event = { .element.qp = &qp->ibv, .event_type = (enum ibv_event_type)kind };
	async_queue(vb_context_of(qp->ibv.context), event, qp, &qp->async_delivered);
}

/* A work queue has one event: its end. */
static void on_wq_event(struct wq_object *wq, enum vb_event_kind kind)
{
	struct ibv_async_event event = { .element.wq = &wq->ibv, .event_type = IBV_EVENT_WQ_FATAL };
	if (kind == VB_EVENT_QP_FATAL)
		async_queue(vb_context_of(wq->ibv.context), event, wq, &wq->async_delivered);
}

/* Every handle of a QP gets the event. */
static void on_qp_event(struct qp_object *owner, enum vb_event_kind kind)
{
	if (owner->wq) {
		on_wq_event(owner->wq, kind);
		return;
	}
	if (!owner->is_closed)
		queue_qp_event(owner, kind);
	vb_list_for_each (node, &owner->opened)
		queue_qp_event(vb_container_of(node, struct qp_object, opened_link), kind);
}

void vb_sink_on_event(const struct vb_event *event)
{
	switch (event->kind) {
	case VB_EVENT_COMPLETION:
		vb_cq_notify(vb_cq_user(event->cq));
		break;
	case VB_EVENT_CQ_ERR: {
		struct cq_object *cq = vb_cq_user(event->cq);
		struct ibv_async_event out = { .element.cq = ibv_cq_ex_to_cq(&cq->ibv),
			.event_type = IBV_EVENT_CQ_ERR };
		async_queue(vb_context_of(cq->ibv.context), out, cq, &cq->async_delivered);
		break;
	}
	case VB_EVENT_SRQ_LIMIT_REACHED: {
		struct srq_object *srq = vb_srq_user(event->srq);
		struct ibv_async_event out = { .element.srq = &srq->ibv,
			.event_type = (enum ibv_event_type)event->kind };
		async_queue(vb_context_of(srq->ibv.context), out, srq, &srq->async_delivered);
		break;
	}
	case VB_EVENT_QP_SILENT:
	case VB_EVENT_QP_MOVED:
	case VB_EVENT_QP_DIED: /* the host has said why */
		break;
	case VB_EVENT_QP_FATAL:
	case VB_EVENT_QP_REQ_ERR:
	case VB_EVENT_QP_ACCESS_ERR:
	case VB_EVENT_COMM_EST:
	case VB_EVENT_SQ_DRAINED:
	case VB_EVENT_QP_LAST_WQE_REACHED:
		on_qp_event(vb_qp_user(event->qp), event->kind);
		break;
	}
}

void vb_sink_on_port(void *user, bool is_active)
{
	struct ibv_async_event event = { .element.port_num = VB_PORT,
		.event_type = is_active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR };
	async_queue(user, event, NULL, NULL);
}

void vb_sink_on_gid_change(void *user)
{
	struct ibv_async_event event = { .element.port_num = VB_PORT, .event_type = IBV_EVENT_GID_CHANGE };
	async_queue(user, event, NULL, NULL);
}

void vb_async_event_queue(struct context_object *context, enum ibv_event_type type, struct vb_list *link)
{
	struct ibv_async_event event = { .element.port_num = VB_PORT, .event_type = type };
	const void *element = NULL;
	uint32_t *delivered = NULL;

	if (link && type == IBV_EVENT_CQ_ERR) {
		struct cq_object *cq = vb_container_of(link, struct cq_object, link);
		event.element.cq = ibv_cq_ex_to_cq(&cq->ibv);
		element = cq;
		delivered = &cq->async_delivered;
	} else if (link && (type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED)) {
		struct srq_object *srq = vb_container_of(link, struct srq_object, link);
		event.element.srq = &srq->ibv;
		element = srq;
		delivered = &srq->async_delivered;
	} else if (link && type == IBV_EVENT_WQ_FATAL) {
		struct wq_object *wq = vb_container_of(link, struct wq_object, link);
		event.element.wq = &wq->ibv;
		element = wq;
		delivered = &wq->async_delivered;
	} else if (link) {
		struct qp_object *qp = vb_container_of(link, struct qp_object, link);
		event.element.qp = &qp->ibv;
		element = qp;
		delivered = &qp->async_delivered;
	}
	async_queue(context, event, element, delivered);
}

/* ---- The end of an object ---------------------------------------------------------------------------------------- */

/* Discards the events of element, or all. */
static void async_discard(struct context_object *context, const void *element, bool all)
{
	struct event_queue *queue = &context->async;
	pthread_mutex_lock(&queue->lock);
	vb_list_for_each_safe (node, &queue->waiting) {
		struct async_entry *entry = vb_container_of(node, struct async_entry, link);
		if (!all && entry->element != element)
			continue;
		vb_list_remove(&entry->link);
		free(entry);
		count_down(queue);
	}
	pthread_mutex_unlock(&queue->lock);
}

void vb_async_events_discard(struct context_object *context)
{
	async_discard(context, NULL, true);
}

static void completion_discard(struct cq_object *cq)
{
	if (!cq->ibv.channel)
		return;
	struct event_queue *queue = &((struct channel_object *)cq->ibv.channel)->queue;
	pthread_mutex_lock(&queue->lock);
	vb_list_remove(&cq->waiting);
	for (; cq->notices; cq->notices--)
		count_down(queue);
	pthread_mutex_unlock(&queue->lock);
}

void vb_cq_events_finish(struct cq_object *cq)
{
	completion_discard(cq);
	async_discard(vb_context_of(cq->ibv.context), cq, false);
	pthread_mutex_lock(&cq->ibv.mutex);
	while (cq->ibv.comp_events_completed != cq->comp_delivered ||
		cq->ibv.async_events_completed != cq->async_delivered)
		pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
	pthread_mutex_unlock(&cq->ibv.mutex);
}

void vb_qp_events_finish(struct qp_object *qp)
{
	async_discard(vb_context_of(qp->ibv.context), qp, false);
	pthread_mutex_lock(&qp->ibv.mutex);
	while (qp->ibv.events_completed != qp->async_delivered)
		pthread_cond_wait(&qp->ibv.cond, &qp->ibv.mutex);
	pthread_mutex_unlock(&qp->ibv.mutex);
}

void vb_wq_events_finish(struct wq_object *wq)
{
	async_discard(vb_context_of(wq->ibv.context), wq, false);
	pthread_mutex_lock(&wq->ibv.mutex);
	while (wq->ibv.events_completed != wq->async_delivered)
		pthread_cond_wait(&wq->ibv.cond, &wq->ibv.mutex);
	pthread_mutex_unlock(&wq->ibv.mutex);
}

void vb_srq_events_finish(struct srq_object *srq)
{
	async_discard(vb_context_of(srq->ibv.context), srq, false);
	pthread_mutex_lock(&srq->ibv.mutex);
	while (srq->ibv.events_completed != srq->async_delivered)
		pthread_cond_wait(&srq->ibv.cond, &srq->ibv.mutex);
	pthread_mutex_unlock(&srq->ibv.mutex);
}
