/* Management datagrams between processes and the wire: the connection manager's are routed, answers go to who asked,
 * and the peers of a process that died are told. Which MAD is whose, and who may send it: route.c, relay.c; what is to be
 * said of the dead: orphans.c; requests that came before their listener: early.c.
 *
 * Holds: a MAD of the connection manager is decoded once, here, and leaves a client only in its own name. */
#include <errno.h>
#include <string.h>
#include "broker/route.h"
#include "broker/worker_state.h"

#define MADS_A_TURN 64

static int send_between(
	struct worker *worker, const struct vb_gid *from, const struct vb_gid *to, const uint8_t *mad, uint32_t length)
{
	return qp1_send(worker->qp1, from, to, discovery_scope(from, to), mad, length);
}

/* Its process is gone: its peers are told, once; who misses it finds out by asking. */
void worker_bid_farewell(struct worker *worker, unsigned number)
{
	struct vb_gid from, to;
	uint8_t mad[VB_MAD_LENGTH];
	while (orphans_next_farewell(worker->orphans, number, &from, &to, mad))
		send_between(worker, &from, &to, mad, VB_MAD_LENGTH);
}

void worker_send_mad(struct worker *worker, unsigned client, const struct vb_message *message)
{
	const struct vb_message sent = { .kind = VB_MESSAGE_SENT, .request = message->request };
	struct vb_mad_header header;
	vb_mad_header_decode(&header, message->mad);
	if (header.mgmt_class == VB_MAD_CLASS_CM) {
		worker_refuse(worker, client, message->request, EPERM, "a MAD of the connection manager is to be posted");
		return;
	}
	int rc = send_between(worker, &message->sgid, &message->gid, message->mad, message->length);
	if (rc) {
		worker_refuse(worker, client, message->request, -rc, "cannot send a MAD: %s", strerror(-rc));
		return;
	}
	relay_note(worker->asking, client, &message->gid, header.transaction_id);
	worker_say(worker, client, &sent, NULL);
}

/* Waits in the backlog while the process does not read. */
static void pass(struct worker *worker, unsigned client, const struct vb_message *message)
{
	backlog_pass(&worker->clients[client].backlog, worker->registry->clients[client].connection, message);
}

/* Told once, as a MAD is: who misses it waits for an answer in vain, and gives up later. */
static void pass_failure(struct worker *worker, unsigned client, const struct qp1_failure *failure)
{
	struct vb_message message = { .kind = VB_MESSAGE_FAILED, .gid = failure->to, .error = failure->error };
	memcpy(message.mad, failure->bytes, VB_MAD_LENGTH);
	pass(worker, client, &message);
}

void worker_post_mad(struct worker *worker, unsigned client, const struct vb_message *message)
{
	struct vb_cm_message cm;
	/* Dropped and no more: the last words of a slot that was just given back come from an honest client. */
	if (!vb_cm_decode(&cm, message->mad) ||
		!route_may_send(worker->registry, worker->asked, client, &message->gid, &cm))
		return;
	orphans_note_sent(worker->orphans, client, &message->sgid, &message->gid, &cm);
	int error = -send_between(worker, &message->sgid, &message->gid, message->mad, message->length);
	if (qp1_is_final(error))
		pass_failure(worker, client,
			&(struct qp1_failure){ .to = message->gid, .error = error, .bytes = message->mad });
}

static void pass_mad(struct worker *worker, unsigned client, const struct qp1_mad *mad)
{
	struct vb_message message = {
		.kind = VB_MESSAGE_MAD, .gid = mad->from, .sgid = mad->to, .scope = mad->scope, .length = mad->length
	};
	memcpy(message.mad, mad->bytes, VB_MAD_LENGTH);
	pass(worker, client, &message);
}

/* To whom it is for, or the refusal back to where it came from. */
static void follow(struct worker *worker, const struct qp1_mad *mad, const struct route *route)
{
	if (route->verdict == ROUTE_TO_CLIENT) {
		if (mad->cm->kind == VB_CM_REQ || mad->cm->kind == VB_CM_SIDR_REQ)
			relay_note(worker->asked, route->client, &mad->from, mad->cm->local_id);
		orphans_note_received(worker->orphans, route->client, mad);
		pass_mad(worker, route->client, mad);
	} else if (route->verdict == ROUTE_TO_NOBODY) {
		qp1_send(worker->qp1, &mad->to, &mad->from, mad->scope, route->answer, VB_MAD_LENGTH);
	}
}

static void pass_cm_mad(struct worker *worker, struct qp1_mad *mad)
{
	struct vb_cm_message message;
	if (!vb_cm_decode(&message, mad->bytes))
		return;
	mad->cm = &message;
	struct route route = route_cm(worker->ports, worker->registry, worker->asked, mad);
	if (route.verdict == ROUTE_TO_NOBODY &&
		(worker_now_ms() < worker->knows_ports_at || early_hold(&worker->early, mad, worker_now_ms())))
		return;
	follow(worker, mad, &route);
}

static void pass_answer(struct worker *worker, const struct qp1_mad *mad)
{
	uint32_t client = relay_find(worker->asking, &mad->from, mad->header.transaction_id);
	if (client != RELAY_NOBODY)
		pass_mad(worker, client, mad);
}

/* Requests that waited for somebody to listen: now somebody does, or they have waited long enough. */
void worker_serve_early(struct worker *worker, uint64_t now)
{
	const struct qp1_mad *mad;
	bool is_due;
	for (unsigned i = 0; (mad = early_look(&worker->early, i, now, &is_due));) {
		struct route route = route_cm(worker->ports, worker->registry, worker->asked, mad);
		if (route.verdict == ROUTE_TO_NOBODY && !is_due) {
			i++;
			continue;
		}
		follow(worker, mad, &route);
		early_forget(&worker->early, i);
	}
}

void worker_receive_mads(struct worker *worker)
{
	struct qp1_mad mad;
	const struct group *group = &worker->group;
	for (unsigned i = 0; i < MADS_A_TURN && qp1_receive(worker->qp1, group->own, group->family, &mad); i++) {
		if (mad.header.mgmt_class == VB_MAD_CLASS_CM)
			pass_cm_mad(worker, &mad);
		else if (!discovery_receive(worker->discovery, worker_now_ms(), &mad))
			pass_answer(worker, &mad);
	}
}

void worker_pass_failures(struct worker *worker)
{
	struct qp1_failure failure;
	for (unsigned i = 0; i < MADS_A_TURN && qp1_next_failure(worker->qp1, &failure); i++) {
		int client = route_failure(worker->registry, &failure);
		if (client >= 0)
			pass_failure(worker, (unsigned)client, &failure);
	}
}
