/* A lane's table of QPs, and their numbers.
 * Holds: each QP has a place of its own; no number returns soon. */
#include "core/lane.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/random.h"
#include "core/peers.h"
#include "core/qp.h"

#define RESERVED 3 /* indices, at most: vb_lane_next_number */

void vb_lane_init(struct vb_lane *lane, uint64_t seed)
{
	struct vb_random random;
	lane->qps = lane->few;
	lane->qp_mask = VB_LANE_FEW - 1;
	vb_random_seed(&random, seed);
	lane->next_index = vb_random_below(&random, lane->index_count / 2);
	vb_timers_init(&lane->timers);
	vb_list_init(&lane->ready);
	vb_list_init(&lane->notices);
	vb_list_init(&lane->failing);
	vb_list_init(&lane->leaving);
	lane->handed_out.wanted = lane->handed_out.generation - 1;
	vb_list_init(&lane->datagram_qps);
	vb_list_init(&lane->wanted);
	vb_list_init(&lane->watched);
	atomic_init(&lane->doorbells, NULL);
	atomic_init(&lane->flushes, NULL);
}

void vb_lane_deinit(struct vb_lane *lane)
{
	assert(lane->qp_count == 0 && vb_list_empty(&lane->failing));
	if (lane->qps != lane->few)
		free(lane->qps);
	vb_peers_deinit(lane);
	vb_timers_deinit(&lane->timers);
}

void vb_lane_counters(const struct vb_lane *lane, uint64_t *values)
{
	memcpy(values, lane->counters, sizeof(lane->counters));
}

struct vb_qp *vb_lane_next_qp(const struct vb_lane *lane, uint32_t *place)
{
	while (*place <= lane->qp_mask) {
		struct vb_qp *qp = lane->qps[(*place)++];
		if (qp)
			return qp;
	}
	return NULL;
}

struct vb_qp *vb_lane_find_qp(const struct vb_lane *lane, uint32_t qpn)
{
	struct vb_qp *qp = lane->qps[qpn & lane->qp_mask];
	return qp && qp->qpn == qpn ? qp : NULL;
}

bool vb_lane_has_qp(const struct vb_lane *lane, uint32_t number)
{
	return vb_lane_find_qp(lane, number) != NULL;
}

/* Twice the places: whose were different stay so. */
static bool double_places(struct vb_lane *lane)
{
	uint32_t before = lane->qp_mask + 1, places = 2 * before;
	struct vb_qp **qps = calloc(places, sizeof(*qps));
	if (!qps)
		return false;
	for (uint32_t i = 0; i < before; i++)
		if (lane->qps[i])
			qps[lane->qps[i]->qpn & (places - 1)] = lane->qps[i];
	if (lane->qps != lane->few)
		free(lane->qps);
	lane->qps = qps;
	lane->qp_mask = places - 1;
	assert((places & (places - 1)) == 0);
	return true;
}

static bool has_place(const struct vb_lane *lane)
{
	uint32_t places = lane->qp_mask + 1;
	return 2 * (lane->qp_count + 1) <= places || places == VB_LANE_PLACES;
}

static uint32_t most_qps(const struct vb_lane *lane)
{
	uint32_t indices = lane->index_count - RESERVED;
	return indices < VB_MAX_QP ? indices : VB_MAX_QP;
}

/* Round robin, so that no number returns soon. 0, 1 and 0xFFFFFF are reserved, hence no index 0, 1 or 0xFFFF. */
uint32_t vb_lane_next_number(struct vb_lane *lane)
{
	for (;;) {
		uint32_t index = lane->first_index + lane->next_index++ % lane->index_count;
		if (index >= 2 && index != 0xffff)
			return (uint32_t)lane->slot << 16 | index;
	}
}

static bool is_taken(const struct vb_lane *lane, uint32_t number)
{
	return lane->qps[number & lane->qp_mask] != NULL;
}

/* A number that was chosen before may need more places than there are QPs. */
static int choose_number(struct vb_lane *lane, uint32_t given, uint32_t *number)
{
	*number = given ? given : vb_lane_next_number(lane);
	while (is_taken(lane, *number)) {
		if (!given)
			*number = vb_lane_next_number(lane);
		else if (lane->qp_mask + 1 == VB_LANE_PLACES)
			return -EADDRINUSE;
		else if (!double_places(lane))
			return -ENOMEM;
	}
	return 0;
}

int vb_lane_add_qp(struct vb_lane *lane, struct vb_qp *qp, uint32_t given)
{
	if (lane->qp_count >= most_qps(lane))
		return -ENOSPC;
	if (!has_place(lane) && !double_places(lane))
		return -ENOMEM;
	int error = choose_number(lane, given, &qp->qpn);
	if (error)
		return error;
	assert(!is_taken(lane, qp->qpn) && qp->qpn >> 16 == lane->slot);
	lane->qps[qp->qpn & lane->qp_mask] = qp;
	lane->qp_count++;
	assert(lane->qp_count <= lane->qp_mask + 1);
	return 0;
}

void vb_lane_remove_qp(struct vb_lane *lane, struct vb_qp *qp)
{
	assert(vb_lane_find_qp(lane, qp->qpn) == qp);
	lane->qps[qp->qpn & lane->qp_mask] = NULL;
	lane->qp_count--;
	assert(!vb_lane_has_qp(lane, qp->qpn));
}
