/* See traffic.h. */
#include "broker/traffic.h"

#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "broker/keyed_hash.h"

struct copy {
	struct qp1_mad mad;
	uint8_t bytes[VB_MAD_LENGTH];
};

struct held {
	uint64_t until; /* 0: nothing is held here */
	struct copy copy;
};

struct traffic {
	struct {
		unsigned first, count;
		struct copy waiting[TRAFFIC_WAITING];
	} classes[TRAFFIC_CLASSES];
	struct hash_key key;
	struct held_set {
		unsigned next;
		struct held ways[TRAFFIC_HELD_WAYS];
	} held[TRAFFIC_HELD_SETS];
};

static void copy_mad(struct copy *copy, const struct qp1_mad *mad)
{
	assert(!mad->cm); /* a decoded message would not outlive the read */
	copy->mad = *mad;
	memcpy(copy->bytes, mad->bytes, VB_MAD_LENGTH);
}

void traffic_put(struct traffic *traffic, enum traffic_class class, const struct qp1_mad *mad)
{
	assert(traffic->classes[class].count <= TRAFFIC_WAITING);
	unsigned at = traffic->classes[class].first + traffic->classes[class].count;
	if (traffic->classes[class].count == TRAFFIC_WAITING)
		return;
	copy_mad(&traffic->classes[class].waiting[at % TRAFFIC_WAITING], mad);
	traffic->classes[class].count++;
}

bool traffic_take(struct traffic *traffic, enum traffic_class class, struct qp1_mad *mad)
{
	assert(class < TRAFFIC_CLASSES);
	const struct copy *copy = &traffic->classes[class].waiting[traffic->classes[class].first];
	if (traffic->classes[class].count == 0)
		return false;
	*mad = copy->mad;
	mad->bytes = copy->bytes;
	traffic->classes[class].first = (traffic->classes[class].first + 1) % TRAFFIC_WAITING;
	traffic->classes[class].count--;
	assert(traffic->classes[class].count < TRAFFIC_WAITING && traffic->classes[class].first < TRAFFIC_WAITING);
	return true;
}

bool traffic_is_waiting(const struct traffic *traffic)
{
	for (unsigned i = 0; i < TRAFFIC_CLASSES; i++)
		if (traffic->classes[i].count)
			return true;
	return false;
}

static struct held_set *set_of(struct traffic *traffic, const struct vb_gid *from)
{
	return &traffic->held[keyed_hash(&traffic->key, from, 0) % TRAFFIC_HELD_SETS];
}

void traffic_hold(struct traffic *traffic, const struct qp1_mad *mad, uint64_t now)
{
	struct held_set *set = set_of(traffic, &mad->from);
	struct held *held = &set->ways[set->next++ % TRAFFIC_HELD_WAYS];
	copy_mad(&held->copy, mad);
	held->until = now + TRAFFIC_HELD_MS;
}

void traffic_release(struct traffic *traffic, const struct vb_gid *from, uint64_t now)
{
	struct held_set *set = set_of(traffic, from);
	for (unsigned i = 0; i < TRAFFIC_HELD_WAYS; i++) {
		struct held *held = &set->ways[(set->next + i) % TRAFFIC_HELD_WAYS];
		if (held->until <= now || !vb_gid_equal(&held->copy.mad.from, from))
			continue;
		held->until = 0;
		held->copy.mad.bytes = held->copy.bytes;
		traffic_put(traffic, TRAFFIC_OF_KNOWN, &held->copy.mad);
	}
}

struct traffic *traffic_create(void)
{
	struct traffic *traffic = calloc(1, sizeof(*traffic));
	if (traffic)
		traffic->key = hash_key_new();
	return traffic;
}

void traffic_destroy(struct traffic *traffic)
{
	free(traffic);
}
