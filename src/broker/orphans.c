/* See orphans.h. An end is found by its communication ID once it has one; a passive end also by the peer's ID and
 * address. */
#include "broker/orphans.h"

#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/list.h"
#include "broker/keyed_hash.h"
#include "broker/registry.h"
#include "wire/cm.h"

#define BUCKETS     16384
#define OF_A_CLIENT 16384  /* connections of a client; further ones end without a farewell */
#define OWN         256    /* reserved for each client */
#define OF_ALL      131072 /* of all together, beyond that */

struct end {
	struct vb_list by_client;
	struct vb_list by_local; /* in the chain of local_id, once it is known */
	struct vb_list by_asker; /* a passive end: in the chain of remote_id */
	uint32_t client;
	struct vb_gid local, remote;
	uint32_t local_id, remote_id; /* 0: not known yet */
	uint32_t remote_qpn;
	uint64_t transaction_id; /* of the REQ */
	bool is_passive;
	struct orphans_request *request; /* not answered yet, and another client may take it; or NULL */
	struct vb_list by_request;       /* in the list of ends with a request */
};

struct orphans {
	struct {
		struct vb_list ends;
		unsigned count;
	} clients[REGISTRY_CLIENTS];
	struct hash_key key; /* peers choose the IDs */
	unsigned beyond;     /* ends beyond the clients' own shares */
	unsigned kept;       /* kept requests, at most ORPHANS_KEPT */
	struct vb_list with_request;
	struct vb_list by_local[BUCKETS], by_asker[BUCKETS];
};

static struct vb_list *local_chain(struct orphans *orphans, uint32_t client, uint32_t local_id)
{
	static const struct vb_gid nobody;
	return &orphans->by_local[keyed_hash(&orphans->key, &nobody, (uint64_t)client << 32 | local_id) % BUCKETS];
}

static struct vb_list *asker_chain(struct orphans *orphans, uint32_t client, const struct vb_gid *remote, uint32_t id)
{
	return &orphans->by_asker[keyed_hash(&orphans->key, remote, (uint64_t)client << 32 | id) % BUCKETS];
}

static struct end *find_local(struct orphans *orphans, uint32_t client, uint32_t local_id)
{
	vb_list_for_each (node, local_chain(orphans, client, local_id)) {
		struct end *end = vb_container_of(node, struct end, by_local);
		if (end->client == client && end->local_id == local_id)
			return end;
	}
	return NULL;
}

/* The end that the last request of a peer's communication ID made. */
static struct end *find_asked(struct orphans *orphans, uint32_t client, const struct vb_gid *remote, uint32_t remote_id)
{
	vb_list_for_each (node, asker_chain(orphans, client, remote, remote_id)) {
		struct end *end = vb_container_of(node, struct end, by_asker);
		if (end->client == client && end->remote_id == remote_id && vb_gid_equal(&end->remote, remote))
			return end;
	}
	return NULL;
}

/* The end whose request was received and is not answered yet. */
static struct end *find_request(
	struct orphans *orphans, uint32_t client, const struct vb_gid *remote, uint32_t remote_id)
{
	struct end *end = find_asked(orphans, client, remote, remote_id);
	assert(!end || end->is_passive);
	return end && !end->local_id ? end : NULL;
}

static void copy_request(struct orphans_request *to, const struct qp1_mad *mad)
{
	to->mad = *mad;
	to->cm = *mad->cm;
	memcpy(to->bytes, mad->bytes, VB_MAD_LENGTH);
	to->mad.length = VB_MAD_LENGTH;
	to->mad.cm = &to->cm;
	to->mad.bytes = to->bytes;
}

static void keep(struct orphans *orphans, struct end *end, const struct qp1_mad *mad)
{
	assert(!end->request);
	end->request = orphans->kept < ORPHANS_KEPT ? malloc(sizeof(*end->request)) : NULL;
	if (!end->request)
		return;
	copy_request(end->request, mad);
	vb_list_add_tail(&orphans->with_request, &end->by_request);
	orphans->kept++;
	assert(orphans->kept <= ORPHANS_KEPT);
}

static void let_go(struct orphans *orphans, struct end *end)
{
	assert((end->request != NULL) == vb_list_linked(&end->by_request));
	assert(!end->request || orphans->kept > 0);
	orphans->kept -= end->request != NULL;
	vb_list_remove(&end->by_request);
	free(end->request);
	end->request = NULL;
}

static void file_under(struct orphans *orphans, struct end *end, uint32_t local_id)
{
	assert(!vb_list_linked(&end->by_local));
	end->local_id = local_id;
	vb_list_add_tail(local_chain(orphans, end->client, local_id), &end->by_local);
}

static void drop(struct orphans *orphans, struct end *end)
{
	if (!end)
		return;
	assert(vb_list_linked(&end->by_client));
	assert(orphans->clients[end->client].count > 0);
	if (--orphans->clients[end->client].count >= OWN) {
		assert(orphans->beyond > 0);
		orphans->beyond--;
	}
	let_go(orphans, end);
	vb_list_remove(&end->by_client);
	vb_list_remove(&end->by_local);
	vb_list_remove(&end->by_asker);
	free(end);
}

static bool has_room(const struct orphans *orphans, uint32_t client)
{
	return client < REGISTRY_CLIENTS && orphans->clients[client].count < OF_A_CLIENT &&
	       (orphans->clients[client].count < OWN || orphans->beyond < OF_ALL);
}

static struct end *add(struct orphans *orphans, const struct end *like)
{
	struct end *end = has_room(orphans, like->client) ? malloc(sizeof(*end)) : NULL;
	if (!end)
		return NULL;
	orphans->beyond += orphans->clients[like->client].count >= OWN;
	*end = *like;
	vb_list_init(&end->by_local);
	vb_list_init(&end->by_asker);
	vb_list_init(&end->by_request);
	vb_list_add_tail(&orphans->clients[end->client].ends, &end->by_client);
	if (end->is_passive)
		vb_list_add_head(asker_chain(orphans, end->client, &end->remote, end->remote_id), &end->by_asker);
	else
		file_under(orphans, end, end->local_id);
	orphans->clients[end->client].count++;
	assert(orphans->clients[end->client].count <= OF_A_CLIENT);
	assert(orphans->beyond <= OF_ALL);
	return end;
}

/* ---- What passes by ---------------------------------------------------------------------------------------------- */

void orphans_note_sent(struct orphans *orphans, uint32_t client, const struct vb_gid *from, const struct vb_gid *to,
	const struct vb_cm_message *message)
{
	struct end *end;
	switch (message->kind) {
	case VB_CM_REQ:
		if (!find_local(orphans, client, message->local_id))
			add(orphans, &(struct end){ .client = client,
					     .local = *from,
					     .remote = *to,
					     .local_id = message->local_id,
					     .transaction_id = message->transaction_id });
		break;
	case VB_CM_REP:
		end = find_request(orphans, client, to, message->remote_id);
		if (end && message->local_id) {
			file_under(orphans, end, message->local_id);
			let_go(orphans, end);
		}
		break;
	case VB_CM_REJ:
		drop(orphans, find_request(orphans, client, to, message->remote_id));
		drop(orphans, find_local(orphans, client, message->local_id));
		break;
	case VB_CM_DREQ:
	case VB_CM_DREP:
		drop(orphans, find_local(orphans, client, message->local_id));
		break;
	default:
		break;
	}
}

/* An RTU names both IDs, and ours was sent to that address only. */
static bool is_of(const struct end *end, const struct qp1_mad *mad)
{
	return end && end->is_passive && end->remote_id == mad->cm->local_id && vb_gid_equal(&end->remote, &mad->from);
}

bool orphans_note_received(struct orphans *orphans, uint32_t client, const struct qp1_mad *mad, bool may_another)
{
	const struct vb_cm_message *message = mad->cm;
	struct end *end;
	switch (message->kind) {
	case VB_CM_REQ:
		end = find_asked(orphans, client, &mad->from, message->local_id);
		if (end && end->transaction_id == message->transaction_id)
			break;
		end = add(orphans, &(struct end){ .client = client,
					   .local = mad->to,
					   .remote = mad->from,
					   .remote_id = message->local_id,
					   .remote_qpn = message->req.qpn,
					   .is_passive = true,
					   .transaction_id = message->transaction_id });
		if (end && may_another)
			keep(orphans, end, mad);
		break;
	case VB_CM_REP:
		end = find_local(orphans, client, message->remote_id);
		if (!end || end->is_passive)
			break;
		end->remote_id = message->local_id;
		end->remote_qpn = message->rep.qpn;
		return end->transaction_id == message->transaction_id && vb_gid_equal(&end->remote, &mad->from);
	case VB_CM_RTU:
		return is_of(find_local(orphans, client, message->remote_id), mad);
	case VB_CM_REJ:
		end = message->remote_id ? find_local(orphans, client, message->remote_id) : NULL;
		drop(orphans, end ? end : find_asked(orphans, client, &mad->from, message->local_id));
		break;
	default: /* a DREQ may be lost on its way to the process; its answer will pass here */
		break;
	}
	return false;
}

bool orphans_note_passed_to_another(struct orphans *orphans, uint32_t client, const struct qp1_mad *mad)
{
	struct end *end = find_request(orphans, client, &mad->from, mad->cm->local_id);
	drop(orphans, end);
	return end != NULL;
}

/* ---- Farewell ---------------------------------------------------------------------------------------------------- */

static void write_farewell(const struct end *end, uint8_t mad[VB_MAD_LENGTH])
{
	assert(end->local_id || end->is_passive);
	struct vb_cm_message message = {
		.local_id = end->local_id, .remote_id = end->remote_id, .transaction_id = end->transaction_id
	};
	if (end->local_id && end->remote_id) {
		message.kind = VB_CM_DREQ;
		message.dreq.remote_qpn = end->remote_qpn;
	} else {
		message.kind = VB_CM_REJ;
		message.rej.answers = end->is_passive ? VB_CM_ANSWERS_REQ : VB_CM_ANSWERS_OTHER;
		message.rej.reason = end->is_passive ? VB_CM_REJ_CONSUMER : VB_CM_REJ_TIMEOUT;
	}
	vb_cm_encode(&message, mad);
}

bool orphans_next_request(struct orphans *orphans, uint32_t client, struct orphans_request *request)
{
	vb_list_for_each (node, &orphans->with_request) {
		struct end *end = vb_container_of(node, struct end, by_request);
		if (end->client != client)
			continue;
		assert(end->request);
		copy_request(request, &end->request->mad);
		drop(orphans, end);
		return true;
	}
	return false;
}

bool orphans_next_farewell(
	struct orphans *orphans, uint32_t client, struct vb_gid *from, struct vb_gid *to, uint8_t mad[VB_MAD_LENGTH])
{
	if (client >= REGISTRY_CLIENTS || vb_list_empty(&orphans->clients[client].ends))
		return false;
	struct end *end = vb_container_of(orphans->clients[client].ends.next, struct end, by_client);
	*from = end->local;
	*to = end->remote;
	assert(!end->request); /* those went first, to another client */
	write_farewell(end, mad);
	drop(orphans, end);
	return true;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct orphans *orphans_create(void)
{
	struct orphans *orphans = calloc(1, sizeof(*orphans));
	if (!orphans)
		return NULL;
	orphans->key = hash_key_new();
	vb_list_init(&orphans->with_request);
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		vb_list_init(&orphans->clients[i].ends);
	for (unsigned i = 0; i < BUCKETS; i++) {
		vb_list_init(&orphans->by_local[i]);
		vb_list_init(&orphans->by_asker[i]);
	}
	return orphans;
}

void orphans_destroy(struct orphans *orphans)
{
	for (unsigned i = 0; orphans && i < REGISTRY_CLIENTS; i++)
		vb_list_for_each_safe (node, &orphans->clients[i].ends)
			drop(orphans, vb_container_of(node, struct end, by_client));
	assert(!orphans || orphans->kept == 0);
	assert(!orphans || orphans->beyond == 0);
	free(orphans);
}
