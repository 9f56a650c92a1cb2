/* The asynchronous events that VERBENA_FAULTS orders. A thread of the context sleeps until each is due.
 * Holds: an event about an object names the oldest one of its kind. It is queued under the lock of the context's
 * objects, so the object is not gone before its destruction discards the event. Not here: the queue (events.c). */
#include <stdlib.h>
#include "os/clock.h"
#include "os/thread.h"
#include "verbs/faults.h"
#include "verbs/objects.h"

struct fault_events {
	struct context_object *context;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_over;
	vb_time began;
	bool is_done[VB_CALL_FAULTS_MAX];
};

static bool is_about(int event, enum object_kind *kind)
{
	switch (event) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		*kind = OBJECT_QP;
		return true;
	case IBV_EVENT_CQ_ERR:
		*kind = OBJECT_CQ;
		return true;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*kind = OBJECT_SRQ;
		return true;
	case IBV_EVENT_WQ_FATAL:
		*kind = OBJECT_WQ;
		return true;
	default:
		return false;
	}
}

/* With the lock of the context's objects. NULL: there is none yet. */
static struct vb_list *oldest(struct context_object *context, enum object_kind kind)
{
	struct vb_list *head = &context->objects[kind];
	return vb_list_empty(head) ? NULL : head->next;
}

/* A QP that has failed is in the error state. The lane's lock comes before that of the objects, and which lane it is
 * the QP says; so the QP is looked up again. */
static bool fail_oldest_qp(struct context_object *context)
{
	pthread_mutex_lock(&context->objects_lock);
	struct vb_list *link = oldest(context, OBJECT_QP);
	struct vb_host_lane *lane = link ? vb_container_of(link, struct qp_object, link)->host_lane : NULL;
	pthread_mutex_unlock(&context->objects_lock);
	if (!lane || vb_host_lane_lock(lane))
		return false;
	pthread_mutex_lock(&context->objects_lock);
	link = oldest(context, OBJECT_QP);
	struct qp_object *qp = link ? vb_container_of(link, struct qp_object, link) : NULL;
	const bool is_it = qp && qp->host_lane == lane;
	if (is_it) {
		const struct vb_qp_attr attr = { .state = VB_QPS_ERR };
		vb_host_lane_take_leave(lane, qp->qp);
		if (vb_qp_modify(qp->qp, &attr, IBV_QP_STATE, vb_host_now()) == 0)
			qp->ibv.state = IBV_QPS_ERR;
		vb_async_event_queue(context, IBV_EVENT_QP_FATAL, link);
	}
	pthread_mutex_unlock(&context->objects_lock);
	vb_host_lane_unlock(lane);
	return is_it;
}

static bool queue_about_object(struct context_object *context, int event, enum object_kind kind)
{
	pthread_mutex_lock(&context->objects_lock);
	struct vb_list *link = oldest(context, kind);
	if (link)
		vb_async_event_queue(context, (enum ibv_event_type)event, link);
	pthread_mutex_unlock(&context->objects_lock);
	return link != NULL;
}

/* False: there is no object that it could be about, and it waits for one. */
static bool strike(struct context_object *context, int event)
{
	enum object_kind kind;

	if (event == IBV_EVENT_QP_FATAL)
		return fail_oldest_qp(context);
	if (is_about(event, &kind))
		return queue_about_object(context, event, kind);
	if (event == IBV_EVENT_PORT_ERR || event == IBV_EVENT_PORT_ACTIVE)
		atomic_store(&context->has_port_fault, event == IBV_EVENT_PORT_ERR);
	if (event == IBV_EVENT_DEVICE_FATAL)
		vb_calls_break(true);
	vb_async_event_queue(context, (enum ibv_event_type)event, NULL);
	return true;
}

/* Returns when to look again. */
static int64_t strike_due(struct fault_events *events)
{
	const struct vb_call_faults *faults = vb_call_faults_get();
	const vb_time passed = vb_time_since(events->began, vb_host_now());
	const int64_t look_again = 10 * VB_MS; /* for an object */
	int64_t next = INT64_MAX;

	for (unsigned i = 0; i < faults->count; i++) {
		if (!faults->faults[i].is_event || events->is_done[i])
			continue;
		int64_t left = (int64_t)(faults->faults[i].after - passed);
		if (left <= 0) {
			events->is_done[i] = strike(events->context, faults->faults[i].value);
			if (events->is_done[i]) {
				vb_call_faults_event_struck(i);
				continue;
			}
			left = look_again;
		}
		next = left < next ? left : next;
	}
	return next;
}

static void *run(void *argument)
{
	struct fault_events *events = argument;

	pthread_mutex_lock(&events->lock);
	while (!events->is_over) {
		pthread_mutex_unlock(&events->lock);
		const int64_t left = strike_due(events);
		pthread_mutex_lock(&events->lock);
		if (events->is_over)
			break;
		if (left == INT64_MAX)
			pthread_cond_wait(&events->changed, &events->lock);
		else {
			const int64_t due = vb_clock_ns() + (int64_t)(left / VB_NS) + 1;
			const struct timespec until = { due / 1000000000, due % 1000000000 };
			pthread_cond_timedwait(&events->changed, &events->lock, &until);
		}
	}
	pthread_mutex_unlock(&events->lock);
	return NULL;
}

static bool has_events(const struct vb_call_faults *faults)
{
	for (unsigned i = 0; i < faults->count; i++)
		if (faults->faults[i].is_event)
			return true;
	return false;
}

int vb_fault_events_start(struct context_object *context)
{
	pthread_condattr_t attributes;

	if (!has_events(vb_call_faults_get()))
		return 0;
	struct fault_events *events = calloc(1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	events->context = context;
	events->began = vb_host_now();
	pthread_mutex_init(&events->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&events->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	int rc = vb_thread_start(&events->thread, run, events);
	if (rc)
		free(events);
	else
		context->fault_events = events;
	return rc;
}

/* In a forked child the thread does not exist. */
void vb_fault_events_stop(struct context_object *context, bool is_forked)
{
	struct fault_events *events = context->fault_events;

	vb_calls_break(false);
	if (!events)
		return;
	if (!is_forked) {
		pthread_mutex_lock(&events->lock);
		events->is_over = true;
		pthread_cond_signal(&events->changed);
		pthread_mutex_unlock(&events->lock);
		pthread_join(events->thread, NULL);
	}
	free(events);
}
