/* See route.h. */
#include "broker/route.h"

#include "base/invariant.h"

/* No listener: "invalid service ID" for a connection, "not supported" for a service ID resolution. */
static struct route refuse(const struct vb_cm_message *request, enum route_verdict verdict)
{
	assert(request->kind == VB_CM_REQ || request->kind == VB_CM_SIDR_REQ);
	struct route route = { .verdict = verdict };
	struct vb_cm_message answer = { .transaction_id = request->transaction_id, .remote_id = request->local_id };
	if (request->kind == VB_CM_REQ) {
		answer.kind = VB_CM_REJ;
		answer.rej.answers = VB_CM_ANSWERS_REQ;
		answer.rej.reason = VB_CM_REJ_INVALID_SERVICE_ID;
	} else {
		answer.kind = VB_CM_SIDR_REP;
		answer.sidr_rep.status = VB_CM_SIDR_UNSUPPORTED;
		answer.sidr_rep.service_id = request->sidr_req.service_id;
	}
	vb_cm_encode(&answer, route.answer);
	return route;
}

/* The answer for a process that has ended, so that the peer does not wait in vain (IBA vol. 1, 12.9.8.3.1). */
static struct route answer_for_the_dead(const struct vb_cm_message *message)
{
	struct route route = { .verdict = ROUTE_TO_NOBODY };
	struct vb_cm_message answer = { .transaction_id = message->transaction_id,
		.local_id = message->remote_id,
		.remote_id = message->local_id };
	switch (message->kind) {
	case VB_CM_DREQ:
		answer.kind = VB_CM_DREP;
		break;
	case VB_CM_REP:
		answer.kind = VB_CM_REJ;
		answer.rej.answers = VB_CM_ANSWERS_REP;
		answer.rej.reason = VB_CM_REJ_INVALID_COMM_ID;
		break;
	default:
		return (struct route){ .verdict = ROUTE_DROPPED };
	}
	vb_cm_encode(&answer, route.answer);
	return route;
}

static struct route to_client(uint32_t client)
{
	if (client == EXCHANGES_NOBODY)
		return (struct route){ .verdict = ROUTE_DROPPED };
	assert(client < REGISTRY_CLIENTS);
	return (struct route){ .verdict = ROUTE_TO_CLIENT, .client = client };
}

/* A repeated request gets the same decision as the first. A requester that was refused does not ask again, so a
 * listener that came between the two would accept a dead request. A requester that was accepted by a server, which then
 * closed its listener, is accepted again. */
static struct route to_listener(
	struct ports *ports, const struct exchanges *asked, const struct qp1_mad *mad, uint64_t service_id)
{
	const struct vb_cm_message *cm = mad->cm;
	struct vb_gid address = vb_cm_destination(cm, &mad->from, &mad->to);
	bool is_answered = false;
	uint32_t before = exchanges_find_request(asked, &mad->from, cm->local_id, cm->transaction_id, &is_answered);
	if (before == EXCHANGES_REFUSED)
		return refuse(cm, ROUTE_REFUSED);
	uint32_t client = is_answered ? before : ports_find_listener(ports, service_id, &address, before);
	if (client == PORTS_NOBODY)
		client = before; /* a client that closed its listener since may still answer the request */
	return client == EXCHANGES_NOBODY ? refuse(cm, ROUTE_TO_NOBODY) : to_client(client);
}

struct route route_cm(
	struct ports *ports, const struct registry *registry, const struct exchanges *asked, const struct qp1_mad *mad)
{
	assert(mad->cm);
	const struct vb_cm_message *message = mad->cm;
	if (message->kind == VB_CM_REQ)
		return to_listener(ports, asked, mad, message->req.service_id);
	if (message->kind == VB_CM_SIDR_REQ)
		return to_listener(ports, asked, mad, message->sidr_req.service_id);
	/* A requester that gives up before the answer does not know the other's ID. */
	if (message->kind == VB_CM_REJ && message->remote_id == 0)
		return to_client(exchanges_find(asked, &mad->from, message->local_id));
	int user = registry->slots[message->remote_id >> 24].user;
	if (user < 0)
		return answer_for_the_dead(message);
	return to_client((uint32_t)user);
}

bool route_may_send(const struct registry *registry, const struct exchanges *asked, uint32_t client,
	const struct vb_gid *to, const struct vb_cm_message *message)
{
	const bool may_answer = message->kind == VB_CM_REP || message->kind == VB_CM_MRA ||
				message->kind == VB_CM_REJ || message->kind == VB_CM_SIDR_REP;
	const uint32_t recipient = may_answer ? exchanges_find(asked, to, message->remote_id) : EXCHANGES_NOBODY;
	if (message->local_id == 0)
		return recipient == client && (message->kind == VB_CM_REJ || message->kind == VB_CM_SIDR_REP);
	/* A client may not answer a request that was passed to another one. If the request has been forgotten, this
	 * cannot be checked and the answer is let through. */
	return registry->slots[message->local_id >> 24].user == (int)client &&
	       (recipient == client || recipient == EXCHANGES_NOBODY);
}

static int asker_of(const struct exchanges *asking, const struct qp1_failure *failure)
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, failure->bytes);
	const uint32_t client = exchanges_find(asking, &failure->to, header.transaction_id);
	return client == EXCHANGES_NOBODY ? -1 : (int)client;
}

int route_failure(const struct registry *registry, const struct exchanges *asking, const struct qp1_failure *failure)
{
	assert(failure->bytes);
	struct vb_cm_message message;
	if (!vb_cm_decode(&message, failure->bytes))
		return asker_of(asking, failure);
	return registry->slots[message.local_id >> 24].user;
}
