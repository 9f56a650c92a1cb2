/* What VERBENA_FAULTS does to a context: its calls fail (faults_ops.c), and events come (fault_events.c). Nothing is
 * changed without such faults. */
#ifndef VB_VERBS_FAULTS_H
#define VB_VERBS_FAULTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct context_object;

void vb_faults_set_operations(struct verbs_context *verbs);
void vb_faults_set_builder(struct ibv_qp_ex *qp);
void vb_faults_set_poller(struct ibv_cq_ex *cq);
/* 0 or -errno. */
int vb_fault_events_start(struct context_object *context);
void vb_fault_events_stop(struct context_object *context, bool is_forked);

#endif
