/* Management datagrams between processes and the wire: those of the connection manager are routed, answers go to the
 * client that asked, and the peers of a dead process are told. route.c and exchanges.c decide where a MAD goes and
 * which client may send it; orphans.c remembers connections for their farewells; early.c keeps requests that came
 * before their listener; sources.c and traffic.c limit and queue requests.
 *
 * Holds: a MAD of the connection manager is decoded once, here, and leaves a client only in its own name. A MAD of an
 * exchange under way never waits for new requests. */
#include <errno.h>
#include <string.h>
#include "base/invariant.h"
#include "broker/addresses.h"
#include "broker/route.h"
#include "broker/worker_state.h"

/* Between two reads of clients' messages. */
#define READ_A_TURN     1024
#define KNOWN_A_TURN    256
#define OTHERS_A_TURN   64
#define FAILURES_A_TURN 64

static int send_between(
	struct worker *worker, const struct vb_gid *from, const struct vb_gid *to, const uint8_t *mad, uint32_t length)
{
	uint32_t scope = qp1_is_link_local(to) ? addresses_interface(from, vb_clock_ms()) : 0;
	return qp1_send(worker->qp1, from, to, scope, mad, length);
}

static void pass_cm_mad(struct worker *worker, const struct qp1_mad *mad);

/* If other members of the family listen too, requests of the one that ended go to them. */
static void pass_requests_on(struct worker *worker, unsigned number)
{
	struct orphans_request request;
	while (orphans_next_request(worker->orphans, number, &request)) {
		assert(request.mad.cm == &request.cm);
		exchanges_note_request(worker->asked, EXCHANGES_NOBODY, &request.mad.from, request.cm.local_id,
			request.cm.transaction_id);
		pass_cm_mad(worker, &request.mad);
	}
}

/* The client's process is gone: tells its peers, once. A peer that misses it learns it by its next request. */
void worker_bid_farewell(struct worker *worker, unsigned number)
{
	assert(ports_count(worker->ports, number) == 0); /* else it would inherit its own requests */
	pass_requests_on(worker, number);
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
		worker_refuse(
			worker, client, message->request, EPERM, "a MAD of the connection manager is to be posted");
		return;
	}
	int rc = send_between(worker, &message->sgid, &message->gid, message->mad, message->length);
	if (rc) {
		worker_refuse(worker, client, message->request, -rc, "cannot send a MAD: %s", strerror(-rc));
		return;
	}
	exchanges_note(worker->asking, client, &message->gid, header.transaction_id);
	worker_say(worker, client, &sent, NULL);
}

/* Passes a MAD to a client; it waits in the backlog while the process does not read. */
static void pass(struct worker *worker, unsigned client, const struct vb_message *message)
{
	assert(worker->registry->clients[client].is_used);
	backlog_pass(&worker->clients[client].backlog, worker->registry->clients[client].connection, message);
}

/* Sent once, like a MAD. A client that misses it waits for an answer in vain, and gives up later. */
static void pass_failure(struct worker *worker, unsigned client, const struct qp1_failure *failure)
{
	struct vb_message message = { .kind = VB_MESSAGE_FAILED, .gid = failure->to, .error = failure->error };
	assert(qp1_is_final(failure->error));
	memcpy(message.mad, failure->bytes, VB_MAD_LENGTH);
	pass(worker, client, &message);
}

void worker_post_mad(struct worker *worker, unsigned client, const struct vb_message *message)
{
	struct vb_cm_message cm;
	/* Only dropped, since an honest client may still send for a slot that it has just given back. */
	if (!vb_cm_decode(&cm, message->mad) ||
		!route_may_send(worker->registry, worker->asked, client, &message->gid, &cm))
		return;
	orphans_note_sent(worker->orphans, client, &message->sgid, &message->gid, &cm);
	if (cm.kind == VB_CM_REP || cm.kind == VB_CM_REJ || cm.kind == VB_CM_SIDR_REP)
		exchanges_note_answered(worker->asked, client, &message->gid, cm.remote_id);
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

/* Tells the client that had the request until now, as if the requester had given it up. */
static void take_back(struct worker *worker, unsigned client, const struct qp1_mad *request)
{
	const struct vb_cm_message given_up = { .kind = VB_CM_REJ,
		.transaction_id = request->cm->transaction_id,
		.local_id = request->cm->local_id,
		.rej.answers = VB_CM_ANSWERS_OTHER,
		.rej.reason = VB_CM_REJ_TIMEOUT };
	uint8_t bytes[VB_MAD_LENGTH];
	struct qp1_mad mad = *request;
	vb_cm_encode(&given_up, bytes);
	mad.bytes = bytes;
	mad.length = VB_MAD_LENGTH;
	pass_mad(worker, client, &mad);
}

/* Notes which client's answer counts now: another one of its family may have had the request before. */
static void note_asked(struct worker *worker, const struct qp1_mad *mad, uint32_t client)
{
	uint32_t before = exchanges_find(worker->asked, &mad->from, mad->cm->local_id);
	if (before != EXCHANGES_NOBODY && before != client &&
		orphans_note_passed_to_another(worker->orphans, before, mad))
		take_back(worker, before, mad);
	exchanges_note_request(worker->asked, client, &mad->from, mad->cm->local_id, mad->cm->transaction_id);
}

static bool is_request(const struct vb_cm_message *message)
{
	return message->kind == VB_CM_REQ || message->kind == VB_CM_SIDR_REQ;
}

static bool has_heirs(struct worker *worker, const struct qp1_mad *mad)
{
	struct vb_gid address;
	if (mad->cm->kind != VB_CM_REQ)
		return false;
	address = vb_cm_destination(mad->cm, &mad->from, &mad->to);
	return ports_are_of_a_family(worker->ports, mad->cm->req.service_id, &address);
}

/* Passes the MAD to its client, or sends the refusal back. */
static void follow(struct worker *worker, const struct qp1_mad *mad, const struct route *route)
{
	if (route->verdict == ROUTE_TO_CLIENT) {
		if (is_request(mad->cm))
			note_asked(worker, mad, route->client);
		if (orphans_note_received(worker->orphans, route->client, mad, has_heirs(worker, mad)))
			sources_prove(worker->sources, &mad->from, vb_clock_ms());
		pass_mad(worker, route->client, mad);
	} else if (route->verdict != ROUTE_DROPPED) {
		if (is_request(mad->cm))
			exchanges_note_request(worker->asked, EXCHANGES_REFUSED, &mad->from, mad->cm->local_id,
				mad->cm->transaction_id);
		qp1_send(worker->qp1, &mad->to, &mad->from, mad->scope, route->answer, VB_MAD_LENGTH);
	}
}

/* mad must be decoded. */
static void pass_cm_mad(struct worker *worker, const struct qp1_mad *mad)
{
	const uint64_t now = vb_clock_ms();
	/* Unknown addresses may fill only a part of it. */
	const unsigned most = sources_is_known(worker->sources, &mad->from, now) ? EARLY_MAX : EARLY_MAX / 2;
	struct route route = route_cm(worker->ports, worker->registry, worker->asked, mad);
	if (route.verdict == ROUTE_TO_NOBODY &&
		(now < worker->knows_ports_at || early_hold(&worker->early, mad, now, most)))
		return;
	follow(worker, mad, &route);
}

static void pass_answer(struct worker *worker, const struct qp1_mad *mad)
{
	uint32_t client = exchanges_find(worker->asking, &mad->from, mad->header.transaction_id);
	if (client != EXCHANGES_NOBODY)
		pass_mad(worker, client, mad);
}

/* Serves requests that waited for a listener, if there is one now or they have waited long enough. */
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

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

static void prove(struct worker *worker, const struct vb_gid *gid, uint64_t now)
{
	sources_prove(worker->sources, gid, now);
	traffic_release(worker->traffic, gid, now);
}

/* Takes a MAD that begins an exchange; only its header has been read. */
static void take_request(struct worker *worker, const struct qp1_mad *mad, uint64_t now)
{
	bool must_ask;
	enum sources_verdict verdict = sources_take_request(worker->sources, &mad->from, now, &must_ask);
	if (must_ask)
		discovery_challenge(worker->discovery, mad, sources_challenge(worker->sources, &mad->from, now));
	if (verdict == SOURCES_PASS)
		traffic_put(worker->traffic,
			sources_is_known(worker->sources, &mad->from, now) ? TRAFFIC_OF_KNOWN : TRAFFIC_OF_OTHERS, mad);
	else if (verdict == SOURCES_WAIT)
		traffic_hold(worker->traffic, mad, now);
}

/* A MAD of an exchange under way is passed at once. One of an exchange that is over counts as a new request, and its
 * sender is told. */
static void take_cm_mad(struct worker *worker, struct qp1_mad *mad, uint64_t now)
{
	struct vb_cm_message message;
	bool must_ask;
	if (mad->header.attribute_id == VB_CM_REQ || mad->header.attribute_id == VB_CM_SIDR_REQ) {
		take_request(worker, mad, now);
		return;
	}
	if (!vb_cm_decode(&message, mad->bytes))
		return;
	mad->cm = &message;
	bool is_under_way = message.remote_id == 0 || worker->registry->slots[message.remote_id >> 24].owner >= 0;
	if (is_under_way || sources_take_request(worker->sources, &mad->from, now, &must_ask) == SOURCES_PASS)
		pass_cm_mad(worker, mad);
}

static void take_discovery(struct worker *worker, const struct qp1_mad *mad, uint64_t now)
{
	if (mad->header.method == VB_MAD_METHOD_GET) {
		bool is_known = sources_is_known(worker->sources, &mad->from, now);
		if (sources_take_question(worker->sources, &mad->from, now) == SOURCES_PASS)
			traffic_put(worker->traffic, is_known ? TRAFFIC_OF_KNOWN : TRAFFIC_OF_OTHERS, mad);
	} else if (sources_is_answer(worker->sources, &mad->from, mad->header.transaction_id, now) ||
		   discovery_receive(worker->discovery, now, mad)) {
		prove(worker, &mad->from, now);
	} else {
		pass_answer(worker, mad);
	}
}

static void take(struct worker *worker, struct qp1_mad *mad, uint64_t now)
{
	if (mad->is_local && !sources_is_known(worker->sources, &mad->from, now))
		prove(worker, &mad->from, now);
	if (mad->header.mgmt_class == VB_MAD_CLASS_CM)
		take_cm_mad(worker, mad, now);
	else if (mad->header.mgmt_class == VB_MAD_CLASS_VENDOR)
		take_discovery(worker, mad, now);
	else
		pass_answer(worker, mad);
}

static void serve_waiting(struct worker *worker, enum traffic_class class, unsigned most)
{
	struct qp1_mad mad;
	for (unsigned i = 0; i < most && traffic_take(worker->traffic, class, &mad); i++) {
		struct vb_cm_message message;
		if (mad.header.mgmt_class != VB_MAD_CLASS_CM) {
			discovery_receive(worker->discovery, vb_clock_ms(), &mad);
		} else if (vb_cm_decode(&message, mad.bytes)) {
			mad.cm = &message;
			pass_cm_mad(worker, &mad);
		}
	}
}

void worker_receive_mads(struct worker *worker)
{
	assert(!worker->is_orphaned);
	struct qp1_mad mad;
	const struct group *group = &worker->group;
	const uint64_t now = vb_clock_ms();
	for (unsigned i = 0; i < READ_A_TURN && qp1_receive(worker->qp1, group->own, group->family, &mad); i++)
		take(worker, &mad, now);
	serve_waiting(worker, TRAFFIC_OF_KNOWN, KNOWN_A_TURN);
	serve_waiting(worker, TRAFFIC_OF_OTHERS, OTHERS_A_TURN);
}

void worker_pass_failures(struct worker *worker)
{
	struct qp1_failure failure;
	for (unsigned i = 0; i < FAILURES_A_TURN && qp1_next_failure(worker->qp1, &failure); i++) {
		int client = route_failure(worker->registry, worker->asking, &failure);
		if (client >= 0)
			pass_failure(worker, (unsigned)client, &failure);
	}
}
