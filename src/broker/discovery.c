/* See discovery.h. */
#include "broker/discovery.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/invariant.h"
#include "base/list.h"
#include "broker/addresses.h"
#include "broker/keyed_hash.h"
#include "wire/mad.h"

#define ENTRIES        DISCOVERY_QUESTIONS
#define NOBODY         DISCOVERY_CLIENTS
#define TRIES          3
#define TRY_MS         100
#define REMEMBER_MS    (10 * 60 * 1000)
#define REMEMBER_NO_MS 5000

static const struct discovery_facts nobody;

enum state { EMPTY, ASKING, IS_VERBENA, IS_OTHER };

struct entry {
	struct vb_list link; /* in the chain of gid, unless EMPTY */
	enum state state;
	struct vb_gid gid, sgid;
	uint32_t scope; /* interface of a link-local address, else 0 */
	struct discovery_facts facts;
	uint64_t transaction_id;
	uint64_t due_ms; /* time of the next try, or when the answer expires */
	unsigned tries;
	unsigned asked_by; /* the client that asked, or NOBODY */
	uint64_t waiting[DISCOVERY_CLIENTS / 64];
};

struct discovery {
	struct qp1 *qp1;
	discovery_answer *answer;
	discovery_process *process;
	void *user;
	uint32_t receive_buffer;
	unsigned next_victim;
	unsigned asking;                       /* entries in that state */
	unsigned questions[DISCOVERY_CLIENTS]; /* entries being asked for each client */
	struct hash_key key;
	struct vb_list chains[ENTRIES];
	struct entry entries[ENTRIES];
};

static uint64_t random_number(void)
{
	uint64_t number = 0;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint64_t)random() << 32 | (uint64_t)random();
	return number;
}

/* The fields of this exchange are already filled in. */
static void send_facts(struct discovery *discovery, const struct qp1_mad *way, struct vb_discovery *facts)
{
	uint8_t mad[VB_MAD_LENGTH];
	facts->version = VB_DISCOVERY_VERSION;
	facts->receive_buffer = discovery->receive_buffer;
	facts->features = VB_FEATURE_TRAINS | VB_FEATURE_HELLOS;
	vb_discovery_encode(facts, mad);
	qp1_send(discovery->qp1, &way->from, &way->to, way->scope, mad, way->length);
}

static void send_question(struct discovery *discovery, const struct qp1_mad *way, uint64_t transaction_id)
{
	struct vb_discovery question = { .transaction_id = transaction_id };
	send_facts(discovery, way, &question);
}

static void send_answer(struct discovery *discovery, const struct qp1_mad *way, const struct vb_discovery *question)
{
	struct vb_discovery answer = {
		.is_response = true, .transaction_id = question->transaction_id, .qpn = question->qpn
	};
	if (question->qpn)
		answer.process = discovery->process(discovery->user, question->qpn);
	send_facts(discovery, way, &answer);
}

/* ---- What is known ----------------------------------------------------------------------------------------------- */

static struct vb_list *chain_of(struct discovery *discovery, const struct vb_gid *gid)
{
	return &discovery->chains[keyed_hash(&discovery->key, gid, 0) % ENTRIES];
}

static struct entry *find_entry(struct discovery *discovery, const struct vb_gid *gid, uint32_t scope)
{
	vb_list_for_each (node, chain_of(discovery, gid)) {
		struct entry *entry = vb_container_of(node, struct entry, link);
		if (entry->scope == scope && vb_gid_equal(&entry->gid, gid))
			return entry;
	}
	return NULL;
}

/* An empty entry, else the next one without a waiting client is replaced. NULL: all are being asked. */
static struct entry *new_entry(struct discovery *discovery, const struct vb_gid *gid, uint32_t scope)
{
	struct entry *entry = NULL;
	for (unsigned i = 0; i < ENTRIES && !entry; i++)
		if (discovery->entries[i].state == EMPTY)
			entry = &discovery->entries[i];
	for (unsigned i = 0; i < ENTRIES && !entry; i++) {
		struct entry *victim = &discovery->entries[discovery->next_victim++ % ENTRIES];
		if (victim->state != ASKING)
			entry = victim;
	}
	assert(entry || discovery->asking == ENTRIES);
	assert(!entry || entry->state == EMPTY || entry->asked_by == NOBODY);
	if (entry) {
		if (entry->state != EMPTY)
			vb_list_remove(&entry->link);
		memset(entry, 0, sizeof(*entry));
		vb_list_add_tail(chain_of(discovery, gid), &entry->link);
		entry->gid = *gid;
		entry->scope = scope;
		entry->asked_by = NOBODY;
	}
	return entry;
}

static void settle(
	struct discovery *discovery, struct entry *entry, const struct discovery_facts *facts, uint64_t now_ms)
{
	assert(entry->state == ASKING && discovery->asking > 0);
	entry->state = facts->is_verbena ? IS_VERBENA : IS_OTHER;
	discovery->asking--;
	if (entry->asked_by < NOBODY) {
		assert(discovery->questions[entry->asked_by] > 0);
		discovery->questions[entry->asked_by]--;
	}
	entry->asked_by = NOBODY;
	entry->facts = *facts;
	entry->due_ms = now_ms + (facts->is_verbena ? REMEMBER_MS : REMEMBER_NO_MS);
	for (unsigned client = 0; client < DISCOVERY_CLIENTS; client++)
		if (entry->waiting[client / 64] >> client % 64 & 1)
			discovery->answer(discovery->user, client, &entry->gid, facts);
	memset(entry->waiting, 0, sizeof(entry->waiting));
}

static void try_again(struct discovery *discovery, struct entry *entry, uint64_t now_ms)
{
	assert(entry->tries <= TRIES);
	if (entry->tries == TRIES) {
		settle(discovery, entry, &nobody, now_ms);
		return;
	}
	entry->tries++;
	entry->due_ms = now_ms + TRY_MS;
	const struct qp1_mad way = {
		.from = entry->sgid, .to = entry->gid, .scope = entry->scope, .length = VB_MAD_LENGTH
	};
	send_question(discovery, &way, entry->transaction_id);
}

void discovery_ask(struct discovery *discovery, uint64_t now_ms, unsigned client, const struct vb_gid *sgid,
	const struct vb_gid *dgid, bool may_ask)
{
	assert(client < DISCOVERY_CLIENTS);
	if (addresses_interface(dgid, now_ms)) {
		const struct discovery_facts ours = { true, true, discovery->receive_buffer };
		discovery->answer(discovery->user, client, dgid, &ours);
		return;
	}
	if (vb_gid_is_multicast(dgid) || vb_gid_is_zero(dgid) || vb_gid_is_ipv4(sgid) != vb_gid_is_ipv4(dgid)) {
		discovery->answer(discovery->user, client, dgid, &nobody);
		return;
	}
	uint32_t scope = qp1_is_link_local(dgid) ? addresses_interface(sgid, now_ms) : 0;
	struct entry *entry = find_entry(discovery, dgid, scope);
	if (entry && entry->state != ASKING && entry->due_ms > now_ms) {
		discovery->answer(discovery->user, client, dgid, &entry->facts);
		return;
	}
	bool is_asked = entry && entry->state == ASKING;
	if (!entry && may_ask)
		entry = new_entry(discovery, dgid, scope);
	if (!entry || (!is_asked && !may_ask)) {
		discovery->answer(discovery->user, client, dgid, &nobody);
		return;
	}
	entry->waiting[client / 64] |= 1ull << client % 64;
	if (is_asked)
		return;
	assert(discovery->asking < ENTRIES);
	entry->state = ASKING;
	discovery->asking++;
	entry->asked_by = client;
	discovery->questions[client]++;
	assert(discovery->questions[client] <= discovery->asking);
	entry->sgid = *sgid;
	entry->tries = 0;
	entry->transaction_id = random_number();
	try_again(discovery, entry, now_ms);
}

void discovery_forget_client(struct discovery *discovery, unsigned client)
{
	assert(client < DISCOVERY_CLIENTS);
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct entry *entry = &discovery->entries[i];
		entry->waiting[client / 64] &= ~(1ull << client % 64);
		if (entry->asked_by == client)
			entry->asked_by = NOBODY;
	}
	discovery->questions[client] = 0;
}

unsigned discovery_questions(const struct discovery *discovery, unsigned client)
{
	return discovery->questions[client];
}

int discovery_advance(struct discovery *discovery, uint64_t now_ms)
{
	uint64_t next = UINT64_MAX;
	for (unsigned i = 0; i < ENTRIES && discovery->asking; i++) {
		struct entry *entry = &discovery->entries[i];
		if (entry->state == ASKING && entry->due_ms <= now_ms)
			try_again(discovery, entry, now_ms);
		if (entry->state == ASKING && entry->due_ms < next)
			next = entry->due_ms;
	}
	assert(discovery->asking == 0 || next != UINT64_MAX);
	return next == UINT64_MAX ? -1 : next > now_ms ? (int)(next - now_ms) : 0;
}

void discovery_challenge(struct discovery *discovery, const struct qp1_mad *mad, uint64_t number)
{
	const struct qp1_mad back = { .from = mad->to, .to = mad->from, .scope = mad->scope, .length = VB_MAD_LENGTH };
	if (!vb_gid_is_multicast(&mad->to))
		send_question(discovery, &back, number);
}

bool discovery_receive(struct discovery *discovery, uint64_t now_ms, const struct qp1_mad *mad)
{
	struct vb_discovery facts;
	if (!vb_discovery_decode(&facts, mad->bytes))
		return false;
	if (!facts.is_response) {
		/* As long as the question, so that the asker learns the path's MTU in both directions. */
		const struct qp1_mad back = {
			.from = mad->to, .to = mad->from, .scope = mad->scope, .length = mad->length
		};
		if (!vb_gid_is_multicast(&mad->to))
			send_answer(discovery, &back, &facts);
		return true;
	}
	struct entry *entry = find_entry(discovery, &mad->from, mad->scope);
	if (!entry || entry->state != ASKING || entry->transaction_id != facts.transaction_id)
		return false;
	const struct discovery_facts theirs = { true, facts.features & VB_FEATURE_HELLOS, facts.receive_buffer };
	settle(discovery, entry, &theirs, now_ms);
	return true;
}

struct discovery *discovery_create(struct qp1 *qp1, discovery_answer *answer, discovery_process *process, void *user)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	if (!discovery)
		return NULL;
	discovery->key = hash_key_new();
	for (unsigned i = 0; i < ENTRIES; i++)
		vb_list_init(&discovery->chains[i]);
	discovery->qp1 = qp1;
	discovery->answer = answer;
	discovery->process = process;
	discovery->user = user;
	return discovery;
}

void discovery_destroy(struct discovery *discovery)
{
	free(discovery);
}

void discovery_set_receive_buffer(struct discovery *discovery, uint32_t bytes)
{
	discovery->receive_buffer = bytes;
}
