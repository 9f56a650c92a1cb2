/* What leaves next, and how a packet is put into a batch. */
#ifndef VB_ENGINE_SCHEDULER_H
#define VB_ENGINE_SCHEDULER_H

#include "engine/send_queue.h"

void vb_schedule(struct vb_qp *qp);       /* it may have data to send, when its time comes */
void vb_schedule_now(struct vb_qp *qp);   /* or something that does not wait for that */
void vb_schedule_reply(struct vb_qp *qp); /* an ack, NAK or CNP that does not wait */
/* An ack that is held back is so no longer. */
void vb_schedule_no_ack(struct vb_qp *qp);
void vb_unschedule(struct vb_qp *qp); /* nothing of it is to leave */

#endif
