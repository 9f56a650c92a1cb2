/* See ports.h. Bindings hang in two hash chains: by port, to find conflicts and listeners, and by their owner's number.
 * Conflicts follow bind(2)'s rules; their errno is rdma_bind_addr's. */
#include "broker/ports.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "base/invariant.h"
#include "base/list.h"
#include "broker/keyed_hash.h"
#include "broker/registry.h"

#define BUCKETS    65536
#define SHARE_MAX  1024  /* bindings of one port: each search goes through all of them */
#define FIRST_FREE 32768 /* first port that is given to port 0, as Linux does by default */
#define FREE_COUNT 28232
#define REMEMBERED 256

struct entry {
	struct port_binding is;
	struct vb_list by_port, by_number, by_client;
	uint64_t found; /* the count of requests when it last got one */
};

struct ports {
	struct hash_key key; /* clients choose the numbers, so the hash is keyed */
	struct vb_list by_port[BUCKETS], by_number[BUCKETS];
	struct {
		struct vb_list entries;
		unsigned count;
	} clients[REGISTRY_CLIENTS];
	uint32_t next_free; /* offset at which the last search ended */
	uint64_t found;     /* count of requests that found a listener */
	struct port_binding remembered[REMEMBERED];
	unsigned next_remembered;
};

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

static struct vb_list *port_bucket(struct ports *ports, uint16_t space, uint16_t port)
{
	return &ports->by_port[((uint32_t)space * 0x9E37u + port) % BUCKETS];
}

static struct vb_list *number_bucket(struct ports *ports, uint32_t client, uint32_t number)
{
	static const struct vb_gid nobody;
	return &ports->by_number[keyed_hash(&ports->key, &nobody, (uint64_t)client << 32 | number) % BUCKETS];
}

static struct entry *find(struct ports *ports, uint32_t client, uint32_t number)
{
	vb_list_for_each (node, number_bucket(ports, client, number)) {
		struct entry *entry = vb_container_of(node, struct entry, by_number);
		if (entry->is.client == client && entry->is.number == number)
			return entry;
	}
	return NULL;
}

static bool is_known_space(uint16_t space)
{
	return space == VB_CM_PS_TCP || space == VB_CM_PS_UDP || space == VB_CM_PS_IPOIB || space == VB_CM_PS_IB;
}

/* ---- Conflicts --------------------------------------------------------------------------------------------------- */

static bool is_any(const struct vb_gid *address)
{
	static const struct vb_gid any_ipv4 = { { [10] = 0xff, [11] = 0xff } };
	return vb_gid_is_zero(address) || vb_gid_equal(address, &any_ipv4);
}

static bool takes_ipv4(const struct port_binding *binding)
{
	return vb_gid_is_ipv4(&binding->address) || (vb_gid_is_zero(&binding->address) && !binding->is_ipv6_only);
}

static bool takes_ipv6(const struct port_binding *binding)
{
	return !vb_gid_is_ipv4(&binding->address);
}

static bool overlaps(const struct port_binding *a, const struct port_binding *b)
{
	if (!is_any(&a->address) && !is_any(&b->address))
		return vb_gid_equal(&a->address, &b->address);
	return (takes_ipv4(a) && takes_ipv4(b)) || (takes_ipv6(a) && takes_ipv6(b));
}

static bool is_of_family(const struct port_binding *a, const struct port_binding *b)
{
	return a->family && a->family == b->family;
}

static bool is_same_of_family(const struct port_binding *a, const struct port_binding *b)
{
	return is_of_family(a, b) && a->port_space == b->port_space && a->port == b->port &&
	       vb_gid_equal(&a->address, &b->address);
}

static bool is_remembered(const struct ports *ports, const struct port_binding *binding)
{
	for (unsigned i = 0; i < REMEMBERED; i++)
		if (is_same_of_family(&ports->remembered[i], binding))
			return true;
	return false;
}

bool ports_has_family(struct ports *ports, const struct port_binding *binding)
{
	vb_list_for_each (node, port_bucket(ports, binding->port_space, binding->port))
		if (is_same_of_family(&vb_container_of(node, struct entry, by_port)->is, binding))
			return true;
	return is_remembered(ports, binding);
}

void ports_remember_family(struct ports *ports, const struct port_binding *binding)
{
	if (binding->family && !is_remembered(ports, binding))
		ports->remembered[ports->next_remembered++ % REMEMBERED] = *binding;
}

/* As Linux's rdma_cm does: a loopback address counts as all addresses. */
static int conflict_of(const struct port_binding *a, const struct port_binding *b)
{
	bool is_of_all = is_any(&a->address) || is_any(&b->address) || vb_gid_is_loopback(&a->address) ||
			 vb_gid_is_loopback(&b->address);
	return is_of_all ? -EADDRNOTAVAIL : -EADDRINUSE;
}

/* 0: the binding may have the port. */
static int find_conflict(struct ports *ports, const struct port_binding *wanted)
{
	unsigned count = 0;
	vb_list_for_each (node, port_bucket(ports, wanted->port_space, wanted->port)) {
		const struct port_binding *other = &vb_container_of(node, struct entry, by_port)->is;
		if (other->port_space != wanted->port_space || other->port != wanted->port)
			continue;
		if (++count == SHARE_MAX)
			return -EADDRINUSE;
		if (!overlaps(other, wanted) || is_of_family(other, wanted))
			continue;
		if (!other->is_shared || !wanted->is_shared || other->is_listening)
			return conflict_of(other, wanted);
	}
	return 0;
}

/* Searches from where the last search ended, at first from a random port, so that a port just given back rests. */
static bool choose_port(struct ports *ports, struct port_binding *binding)
{
	assert(ports->next_free < FREE_COUNT);
	bool is_shared = binding->is_shared;
	bool is_found = false;
	binding->is_shared = false; /* a free port has no other binding to share with */
	for (uint32_t i = 1; i <= FREE_COUNT && !is_found; i++) {
		uint32_t offset = (ports->next_free + i) % FREE_COUNT;
		binding->port = (uint16_t)(FIRST_FREE + offset);
		is_found = find_conflict(ports, binding) == 0;
		if (is_found)
			ports->next_free = offset;
	}
	binding->is_shared = is_shared;
	return is_found;
}

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

int ports_bind(struct ports *ports, struct port_binding *binding)
{
	if (!is_known_space(binding->port_space))
		return -EPROTONOSUPPORT;
	if (binding->client >= REGISTRY_CLIENTS || find(ports, binding->client, binding->number))
		return -EINVAL;
	if (ports->clients[binding->client].count == PORTS_MAX)
		return -ENOBUFS;
	binding->is_listening = false;
	int rc = binding->port ? find_conflict(ports, binding) : choose_port(ports, binding) ? 0 : -EADDRINUSE;
	if (rc < 0)
		return rc;
	assert(binding->port != 0);
	struct entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->is = *binding;
	vb_list_add_tail(port_bucket(ports, binding->port_space, binding->port), &entry->by_port);
	vb_list_add_tail(number_bucket(ports, binding->client, binding->number), &entry->by_number);
	vb_list_add_tail(&ports->clients[binding->client].entries, &entry->by_client);
	ports->clients[binding->client].count++;
	assert(ports->clients[binding->client].count <= PORTS_MAX);
	return 0;
}

int ports_listen(struct ports *ports, uint32_t client, uint32_t number, bool is_accepting)
{
	struct entry *entry = find(ports, client, number);
	if (!entry)
		return -EINVAL;
	vb_list_for_each (node, port_bucket(ports, entry->is.port_space, entry->is.port)) {
		const struct port_binding *other = &vb_container_of(node, struct entry, by_port)->is;
		if (other != &entry->is && other->is_listening && other->port_space == entry->is.port_space &&
			other->port == entry->is.port && overlaps(other, &entry->is) &&
			!is_of_family(other, &entry->is))
			return conflict_of(other, &entry->is);
	}
	assert(is_known_space(entry->is.port_space) && entry->is.port != 0);
	entry->is.is_listening = true;
	entry->is.is_accepting = is_accepting;
	return 0;
}

static void drop(struct ports *ports, struct entry *entry)
{
	assert(vb_list_linked(&entry->by_port));
	vb_list_remove(&entry->by_port);
	vb_list_remove(&entry->by_number);
	vb_list_remove(&entry->by_client);
	assert(ports->clients[entry->is.client].count > 0);
	ports->clients[entry->is.client].count--;
	free(entry);
}

void ports_unbind(struct ports *ports, uint32_t client, uint32_t number)
{
	struct entry *entry = find(ports, client, number);
	if (entry)
		drop(ports, entry);
}

unsigned ports_count(const struct ports *ports, uint32_t client)
{
	return client < REGISTRY_CLIENTS ? ports->clients[client].count : 0;
}

void ports_forget_client(struct ports *ports, uint32_t client)
{
	if (client >= REGISTRY_CLIENTS)
		return;
	vb_list_for_each_safe (node, &ports->clients[client].entries)
		drop(ports, vb_container_of(node, struct entry, by_client));
	assert(ports->clients[client].count == 0);
}

/* ---- Listeners --------------------------------------------------------------------------------------------------- */

/* The better listener: one bound to the address itself, then one that accepts, then the one that had the request
 * before, then the one that has waited longest. */
static bool is_better(const struct entry *one, const struct entry *other, uint32_t before)
{
	bool is_exact = !is_any(&one->is.address), other_is_exact = !is_any(&other->is.address);

	if (is_exact != other_is_exact)
		return is_exact;
	if (one->is.is_accepting != other->is.is_accepting)
		return one->is.is_accepting;
	if ((one->is.client == before) != (other->is.client == before))
		return one->is.client == before;
	return one->found < other->found;
}

static bool hears(const struct port_binding *one, const struct port_binding *to)
{
	return one->is_listening && one->port_space == to->port_space && one->port == to->port &&
	       (vb_gid_equal(&one->address, &to->address) || (is_any(&one->address) && overlaps(one, to)));
}

bool ports_are_of_a_family(struct ports *ports, uint64_t service_id, const struct vb_gid *address)
{
	const struct port_binding to = {
		.port_space = (uint16_t)(service_id >> 16), .port = (uint16_t)service_id, .address = *address
	};
	if (service_id >> 32)
		return false;
	vb_list_for_each (node, port_bucket(ports, to.port_space, to.port)) {
		const struct entry *one = vb_container_of(node, struct entry, by_port);
		if (one->is.family && hears(&one->is, &to))
			return true;
	}
	return false;
}

uint32_t ports_find_listener(struct ports *ports, uint64_t service_id, const struct vb_gid *address, uint32_t before)
{
	const struct port_binding to = {
		.port_space = (uint16_t)(service_id >> 16), .port = (uint16_t)service_id, .address = *address
	};
	struct entry *best = NULL;
	if (service_id >> 32)
		return PORTS_NOBODY;
	vb_list_for_each (node, port_bucket(ports, to.port_space, to.port)) {
		struct entry *one = vb_container_of(node, struct entry, by_port);
		if (hears(&one->is, &to) && (!best || is_better(one, best, before)))
			best = one;
	}
	if (!best)
		return PORTS_NOBODY;
	assert(best->found <= ports->found);
	best->found = ++ports->found;
	assert(best->is.client < REGISTRY_CLIENTS);
	return best->is.client;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct ports *ports_create(void)
{
	struct ports *ports = calloc(1, sizeof(*ports));
	if (!ports)
		return NULL;
	for (unsigned i = 0; i < BUCKETS; i++) {
		vb_list_init(&ports->by_port[i]);
		vb_list_init(&ports->by_number[i]);
	}
	for (unsigned i = 0; i < REGISTRY_CLIENTS; i++)
		vb_list_init(&ports->clients[i].entries);
	ports->key = hash_key_new();
	if (getrandom(&ports->next_free, sizeof(ports->next_free), GRND_NONBLOCK) < 0)
		ports->next_free = 0;
	ports->next_free %= FREE_COUNT;
	return ports;
}

void ports_destroy(struct ports *ports)
{
	for (uint32_t i = 0; ports && i < REGISTRY_CLIENTS; i++)
		ports_forget_client(ports, i);
	free(ports);
}
