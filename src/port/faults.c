/* Fault injection: drops, doubles, holds back and damages received packets with given chances, from a seed.
 * Holds: each packet in scope draws the same random numbers whichever faults are enabled, so that switching one on
 * leaves the others where they were. A packet out of scope draws none, so that the faults of a path do not depend on
 * what goes over other paths. Delayed packets stay in order; a reordered one lets a few that follow it past. Not here:
 * reading VERBENA_FAULTS (faults_parse.c), counting (framing.c asks vb_faults_count). */
#include "port/faults_state.h"

#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "port/port.h"

static void free_held(struct vb_list *list)
{
	for (struct vb_list *node = vb_list_pop(list); node; node = vb_list_pop(list))
		free(vb_container_of(node, struct vb_held, node));
}

void vb_faults_free(struct vb_faults *faults)
{
	if (!faults)
		return;
	free_held(&faults->delayed);
	free_held(&faults->late);
	free_held(&faults->reordered);
	free_held(&faults->given);
	free_held(&faults->spare);
	free(faults);
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

struct verdict {
	bool drops, duplicates, reorders, corrupts, is_late;
	uint32_t corrupt_bit;
	unsigned to_pass; /* when it reorders */
};

static bool drops(struct vb_faults *faults)
{
	if (!faults->burst)
		return vb_random_chance(&faults->random, faults->drop_ppm);
	bool was_in_burst = faults->bursts.is_in;
	bool strikes = vb_bursts_strikes(&faults->bursts, &faults->random);
	faults->counts[VB_FAULT_BURSTS] += strikes && !was_in_burst;
	return strikes;
}

static struct verdict decide(struct vb_faults *faults, size_t length)
{
	struct vb_random *random = &faults->random;
	return (struct verdict){
		.drops = drops(faults),
		.duplicates = vb_random_chance(random, faults->duplicate_ppm),
		.reorders = vb_random_chance(random, faults->reorder_ppm),
		.corrupts = vb_random_chance(random, faults->corrupt_ppm) && length != 0,
		.corrupt_bit = vb_random_below(random, length ? (uint32_t)length * 8 : 1),
		.to_pass = 1 + vb_random_below(random, VB_FAULTS_PASSED_MAX),
		.is_late = vb_random_chance(&faults->late_random, faults->late_ppm),
	};
}

static bool is_interface_struck(struct vb_faults_scope *scope, uint32_t index)
{
	char name[IF_NAMESIZE];
	unsigned at = index % VB_FAULTS_INTERFACES;

	if (index == 0)
		return false;
	if (scope->interfaces[at].index != index) {
		scope->interfaces[at].index = index;
		scope->interfaces[at].is_struck = if_indextoname(index, name) && strcmp(name, scope->interface) == 0;
	}
	return scope->interfaces[at].is_struck;
}

static bool are_struck(struct vb_faults *faults, const struct vb_path *path)
{
	struct vb_faults_scope *scope = &faults->scope;

	if (faults->strikes_nothing || (scope->has_path && path->src_port % VB_FAULTS_PATHS != scope->path))
		return false;
	return !scope->interface[0] || is_interface_struck(scope, path->ifindex);
}

/* ---- Holding back ------------------------------------------------------------------------------------------------ */

/* NULL: too many are held, and the packet is lost as in any full queue. */
static struct vb_held *hold(
	struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length, vb_time due)
{
	bool has_room = faults->held_count < VB_FAULTS_HELD_MAX;
	struct vb_list *spare = has_room ? vb_list_pop(&faults->spare) : NULL;
	struct vb_held *held = spare      ? vb_container_of(spare, struct vb_held, node)
			       : has_room ? malloc(sizeof(*held))
					  : NULL;
	if (!held) {
		faults->counts[VB_FAULT_DROPPED]++;
		return NULL;
	}
	faults->held_count++;
	assert(faults->held_count <= VB_FAULTS_HELD_MAX);
	vb_list_init(&held->node);
	held->path = *path;
	held->due = due;
	held->to_pass = 0;
	held->is_reordered = false;
	held->length = (uint32_t)length;
	memcpy(held->bytes, bytes, length);
	return held;
}

static uint32_t ip_length(const struct vb_path *path, size_t length)
{
	enum { IPV4 = 20, IPV6 = 40, UDP = 8 };
	return (uint32_t)length + UDP + (vb_gid_is_ipv4(&path->dst) ? IPV4 : IPV6);
}

/* False: the bottleneck has no room. Else *leaves_at, and the path may say that it was marked. */
static bool go_through_bottleneck(
	struct vb_faults *faults, struct vb_path *path, size_t length, vb_time now, vb_time *leaves_at)
{
	enum { ECN = 3 };
	*leaves_at = now;
	if (!faults->neck.rate)
		return true;
	enum vb_bottleneck_fate fate = vb_bottleneck_admit(
		&faults->neck, ip_length(path, length), path->traffic_class & ECN, &faults->random, now, leaves_at);
	if (fate == VB_BOTTLENECK_MARKS)
		path->traffic_class |= ECN;
	return fate != VB_BOTTLENECK_DROPS;
}

static void hold_late(
	struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length, vb_time on_time)
{
	struct vb_held *held = hold(faults, path, bytes, length, vb_time_add(on_time, faults->late_by));
	if (!held)
		return;
	faults->counts[VB_FAULT_LATE]++;
	vb_list_add_tail(&faults->late, &held->node);
}

static void hold_delayed(struct vb_faults *faults, const struct vb_path *from, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	struct vb_path path = *from;
	vb_time leaves_at;
	if (!go_through_bottleneck(faults, &path, length, now, &leaves_at))
		return;
	vb_time due = vb_time_add(leaves_at, faults->delay);
	if (verdict->is_late) {
		hold_late(faults, &path, bytes, length, due);
		return;
	}
	struct vb_held *held = hold(faults, &path, bytes, length, due);
	if (!held)
		return;
	faults->counts[VB_FAULT_DELAYED] += faults->delay != 0;
	faults->counts[VB_FAULT_REORDERED] += verdict->reorders;
	held->is_reordered = verdict->reorders;
	held->to_pass = verdict->to_pass;
	vb_list_add_tail(&faults->delayed, &held->node);
}

/* From here on others may pass it; at due it goes on in any case. */
static void start_reordering(struct vb_faults *faults, struct vb_held *held, vb_time now)
{
	assert(held->to_pass >= 1 && held->to_pass <= VB_FAULTS_PASSED_MAX);
	held->due = vb_time_add(now, VB_FAULTS_REORDER_WAIT);
	vb_list_add_tail(&faults->reordered, &held->node);
}

static void hold_reordered(struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	struct vb_held *held = hold(faults, path, bytes, length, now);
	if (!held)
		return;
	faults->counts[VB_FAULT_REORDERED]++;
	held->to_pass = verdict->to_pass;
	start_reordering(faults, held, now);
}

/* A packet has been delivered past all that are being reordered. */
static void pass(struct vb_faults *faults, vb_time now)
{
	vb_list_for_each (node, &faults->reordered) {
		struct vb_held *held = vb_container_of(node, struct vb_held, node);
		if (held->to_pass == 0)
			continue;
		if (--held->to_pass == 0)
			held->due = now;
	}
}

/* The second copy of a doubled packet is neither reordered nor late. */
static void hold_all_delayed(struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	const struct verdict plain = { 0 };

	hold_delayed(faults, path, bytes, length, now, verdict);
	if (verdict->duplicates)
		hold_delayed(faults, path, bytes, length, now, &plain);
}

static unsigned deliver_now(struct vb_faults *faults, const struct vb_path *path, const uint8_t *bytes, size_t length,
	vb_time now, const struct verdict *verdict)
{
	unsigned copies = verdict->duplicates ? 2 : 1;

	if (verdict->is_late)
		hold_late(faults, path, bytes, length, now);
	else if (verdict->reorders)
		hold_reordered(faults, path, bytes, length, now, verdict);
	copies -= verdict->is_late || verdict->reorders;
	for (unsigned i = 0; i < copies; i++)
		pass(faults, now);
	return copies;
}

unsigned vb_faults_admit(
	struct vb_faults *faults, const struct vb_path *path, uint8_t *bytes, size_t length, vb_time now)
{
	if (length > VB_MAX_PACKET_BYTES || !are_struck(faults, path))
		return 1;
	struct verdict verdict = decide(faults, length);
	if (verdict.drops) {
		faults->counts[VB_FAULT_DROPPED]++;
		return 0;
	}
	faults->counts[VB_FAULT_CORRUPTED] += verdict.corrupts;
	faults->counts[VB_FAULT_DOUBLED] += verdict.duplicates;
	if (verdict.corrupts)
		bytes[verdict.corrupt_bit / 8] ^= (uint8_t)(1u << verdict.corrupt_bit % 8);
	if (faults->delay == 0 && faults->neck.rate == 0)
		return deliver_now(faults, path, bytes, length, now, &verdict);
	hold_all_delayed(faults, path, bytes, length, now, &verdict);
	return 0;
}

const struct vb_bottleneck *vb_faults_bottleneck(const struct vb_faults *faults)
{
	return &faults->neck;
}

void vb_faults_be_of_messages(struct vb_faults *faults)
{
	faults->drop_ppm += faults->corrupt_ppm;
	faults->corrupt_ppm = 0;
	faults->neck.rate = 0;
	faults->strikes_nothing = faults->scope.has_path || faults->scope.interface[0];
	if (faults->burst)
		vb_bursts_init(&faults->bursts, faults->drop_ppm, faults->burst);
}

static struct vb_held *give(struct vb_faults *faults, struct vb_held *held)
{
	assert(faults->held_count > 0);
	vb_list_remove(&held->node);
	vb_list_add_tail(&faults->given, &held->node);
	return held;
}

static struct vb_held *release_reordered(struct vb_faults *faults, vb_time now)
{
	vb_list_for_each (node, &faults->reordered) {
		struct vb_held *held = vb_container_of(node, struct vb_held, node);
		if (vb_time_is_due(held->due, now))
			return give(faults, held);
	}
	return NULL;
}

static struct vb_held *release_delayed(struct vb_faults *faults, vb_time now)
{
	while (!vb_list_empty(&faults->delayed)) {
		struct vb_held *held = vb_container_of(faults->delayed.next, struct vb_held, node);
		if (!vb_time_is_due(held->due, now))
			return NULL;
		if (!held->is_reordered) {
			pass(faults, now);
			return give(faults, held);
		}
		vb_list_remove(&held->node);
		start_reordering(faults, held, now);
	}
	return NULL;
}

static struct vb_held *release_late(struct vb_faults *faults, vb_time now)
{
	if (vb_list_empty(&faults->late))
		return NULL;
	struct vb_held *held = vb_container_of(faults->late.next, struct vb_held, node);
	return vb_time_is_due(held->due, now) ? give(faults, held) : NULL;
}

struct vb_held *vb_faults_release(struct vb_faults *faults, vb_time now)
{
	struct vb_held *held = release_reordered(faults, now);
	if (!held)
		held = release_delayed(faults, now);
	return held ? held : release_late(faults, now);
}

void vb_faults_recycle(struct vb_faults *faults)
{
	for (struct vb_list *node = vb_list_pop(&faults->given); node; node = vb_list_pop(&faults->given)) {
		vb_list_add_head(&faults->spare, node);
		assert(faults->held_count > 0);
		faults->held_count--;
	}
	assert(vb_list_empty(&faults->given));
}

static struct vb_deadline first_of(const struct vb_list *list)
{
	if (vb_list_empty(list))
		return (struct vb_deadline){ 0 };
	return (struct vb_deadline){ vb_container_of(list->next, struct vb_held, node)->due, true };
}

struct vb_deadline vb_faults_deadline(const struct vb_faults *faults)
{
	struct vb_deadline earliest = vb_deadline_earlier(first_of(&faults->delayed), first_of(&faults->late));
	vb_list_for_each (node, &faults->reordered) {
		struct vb_deadline due = { vb_container_of(node, struct vb_held, node)->due, true };
		earliest = vb_deadline_earlier(earliest, due);
	}
	return earliest;
}

static unsigned count_in_order(const struct vb_list *list)
{
	const struct vb_held *before = NULL;
	unsigned count = 0;
	vb_list_for_each (node, list) {
		const struct vb_held *held = vb_container_of(node, struct vb_held, node);
		assert(!before || !vb_time_before(held->due, before->due));
		before = held;
		count++;
	}
	return count;
}

void vb_faults_check(const struct vb_faults *faults)
{
	unsigned count = count_in_order(&faults->delayed) + count_in_order(&faults->late);
	vb_list_for_each (node, &faults->reordered)
		count++;
	vb_list_for_each (node, &faults->given)
		count++;
	assert(count == faults->held_count && count <= VB_FAULTS_HELD_MAX);
}

uint64_t vb_faults_count(const struct vb_faults *faults, enum vb_fault kind)
{
	return faults->counts[kind];
}
