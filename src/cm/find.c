/* Communication IDs, and how ids are found: by our ID, by the peer's, by the peer's QP, by the service that they serve.
 * Holds: the tables contain each id that a message may refer to, and no id twice. */
#include <string.h>
#include "base/invariant.h"
#include "cm/id.h"

/* Seeded, so that a peer that chooses the words cannot choose the bucket. */
uint64_t vb_cm_hash(const struct vb_cm *cm, uint64_t a, uint64_t b, const struct vb_gid *gid)
{
	uint64_t words[4] = { a, b }, hash = cm->hash_seed;
	if (gid)
		memcpy(words + 2, gid, sizeof(*gid));
	for (int i = 0; i < 4; i++) {
		hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
		hash ^= hash >> 29;
	}
	return hash;
}

/* A permutation of the numbers, by a Feistel network: no number comes back before all have been used, and a peer that
 * knows some numbers cannot derive the others. */
static uint32_t scramble(const struct vb_cm *cm, uint32_t number)
{
	const uint32_t half = VB_CM_NUMBER_BITS / 2, mask = (1u << half) - 1;
	uint32_t left = number >> half, right = number & mask;
	for (uint64_t round = 1; round <= 4; round++) {
		uint32_t mixed = left ^ ((uint32_t)vb_secret_of(&cm->secret, round << 32 | right) & mask);
		left = right;
		right = mixed;
	}
	return left << half | right;
}

void vb_cm_id_number(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	assert(id->state == VB_CM_IDLE);
	assert(cm->by_local.count < VB_CM_NUMBERS - 1);
	do {
		cm->next_number = (cm->next_number + 1) & (VB_CM_NUMBERS - 1);
		id->local_id = cm->slot << VB_CM_NUMBER_BITS | scramble(cm, cm->next_number);
	} while (id->local_id == 0 || vb_cm_find_local(cm, id->local_id));
	vb_cm_table_add(&cm->by_local, &id->by_local, vb_cm_hash(cm, id->local_id, 0, NULL));
}

void vb_cm_id_link_remote(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	assert(id->by_local.is_linked);
	vb_cm_table_add(&cm->by_remote, &id->by_remote, vb_cm_hash(cm, id->remote_id, id->is_sidr, &id->path.remote));
}

void vb_cm_id_link_qp(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	assert(id->state != VB_CM_TIMEWAIT); /* which forgets the peer's QP */
	vb_cm_table_add(&cm->by_qp, &id->by_qp, vb_cm_hash(cm, id->remote_qpn, id->remote_guid, &id->path.remote));
}

void vb_cm_id_link_service(struct vb_cm_id *id)
{
	assert(id->state == VB_CM_LISTEN);
	vb_cm_table_add(&id->cm->by_service, &id->by_service, vb_cm_hash(id->cm, id->service_id, 0, NULL));
}

void vb_cm_id_unlink(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	vb_cm_table_remove(&cm->by_local, &id->by_local);
	vb_cm_table_remove(&cm->by_remote, &id->by_remote);
	vb_cm_table_remove(&cm->by_qp, &id->by_qp);
	vb_cm_table_remove(&cm->by_service, &id->by_service);
}

struct vb_cm_id *vb_cm_find_local(struct vb_cm *cm, uint32_t local_id)
{
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_local, vb_cm_hash(cm, local_id, 0, NULL));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_local);
		if (id->local_id == local_id)
			return id;
	}
	return NULL;
}

struct vb_cm_id *vb_cm_find_remote(struct vb_cm *cm, const struct vb_gid *remote, uint32_t remote_id, bool is_sidr)
{
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_remote, vb_cm_hash(cm, remote_id, is_sidr, remote));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_remote);
		if (id->remote_id == remote_id && id->is_sidr == is_sidr && vb_gid_equal(&id->path.remote, remote))
			return id;
	}
	return NULL;
}

struct vb_cm_id *vb_cm_find_qp(struct vb_cm *cm, const struct vb_gid *remote, uint64_t guid, uint32_t qpn)
{
	if (qpn == 0)
		return NULL;
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_qp, vb_cm_hash(cm, qpn, guid, remote));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_qp);
		if (id->remote_qpn == qpn && id->remote_guid == guid && vb_gid_equal(&id->path.remote, remote))
			return id;
	}
	return NULL;
}

/* How well a listener's address fits; 0: not at all. */
static int fitness(const struct vb_gid *listens, const struct vb_gid *address)
{
	struct vb_gid any_ipv4 = vb_gid_from_ipv4(0, 0, 0, 0);
	if (vb_gid_equal(listens, address))
		return 3;
	if (vb_gid_equal(listens, &any_ipv4) && vb_gid_is_ipv4(address))
		return 2;
	return vb_gid_is_zero(listens) ? 1 : 0;
}

struct vb_cm_id *vb_cm_find_listener(struct vb_cm *cm, uint64_t service_id, const struct vb_gid *address)
{
	struct vb_cm_id *best = NULL;
	struct vb_cm_node *node = vb_cm_table_find(&cm->by_service, vb_cm_hash(cm, service_id, 0, NULL));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = vb_container_of(node, struct vb_cm_id, by_service);
		int fits = id->service_id == service_id ? fitness(&id->path.local, address) : 0;
		if (fits > (best ? fitness(&best->path.local, address) : 0))
			best = id;
	}
	assert(!best || best->state == VB_CM_LISTEN);
	return best;
}
