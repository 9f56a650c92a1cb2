/* The paths of a QP: multipath.h.
 * Not here: which packet was lost (selective.c), the sockets of source ports (port/send_pool.c). */
#include <stdlib.h>
#include "roce/multipath.h"
#include "base/invariant.h"
#include "roce/holder.h"
#include "roce/roce.h"
#include "roce/selective.h"

enum { RENEWED_EVERY = 16384 }; /* packets */

struct vb_multipath *vb_multipath_of(const struct vb_qp *qp)
{
	const struct vb_selective *s = vb_roce(qp)->selective;
	return s ? s->paths : NULL;
}

/* Drawn from what belongs to the QP alone, so that a run repeats bit for bit. */
static uint16_t draw(const struct vb_qp *qp, uint32_t number)
{
	uint64_t mixed = ((uint64_t)qp->flow << 32 | number) * 0x9E3779B97F4A7C15u + qp->qpn;
	mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u;
	return (uint16_t)(0xC000 | (mixed >> 32 & 0x3FFF));
}

static uint8_t shift_of(uint32_t flowlet)
{
	return flowlet > 1 ? (uint8_t)(31 - __builtin_clz(flowlet)) : 0;
}

/* Sockets have source ports by the low bits: neighbours have different ones. */
struct vb_multipath *vb_multipath_create(const struct vb_qp *qp)
{
	const struct vb_lane_config *config = &vb_roce_lane_of(qp)->config;
	uint16_t stored = config->paths == VB_PATHS_ALL ? 0 : config->paths;
	if (config->paths <= 1)
		return NULL;
	struct vb_multipath *paths = calloc(1, sizeof(*paths) + stored * sizeof(paths->path[0]));
	if (!paths)
		return NULL;
	paths->count = config->paths;
	paths->shift = shift_of(config->flowlet_packets);
	paths->rails.rail[0].paths = stored;
	for (uint16_t i = 0; i < stored; i++)
		paths->path[i].port = (uint16_t)(0xC000 | ((qp->flow + i) & 0x3FFF));
	return paths;
}

static uint32_t path_of(const struct vb_multipath *paths, uint32_t psn, uint32_t n)
{
	return ((psn >> paths->shift) + n) % paths->count;
}

uint32_t vb_multipath_path(const struct vb_multipath *paths, uint32_t psn)
{
	return path_of(paths, psn, 0);
}

/* n: it is sent again for the n-th time. */
static void take(const struct vb_qp *qp, struct vb_outgoing *out, uint32_t psn, uint32_t n)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	assert(paths);
	if (paths->count == VB_PATHS_ALL) {
		out->flow = draw(qp, (psn >> paths->shift) + (n << 24));
		return;
	}
	uint32_t path = path_of(paths, psn, n);
	out->flow = paths->path[path].port;
	vb_rails_take(qp, paths, path, out);
}

void vb_multipath_take(const struct vb_qp *qp, struct vb_outgoing *out, uint32_t psn)
{
	take(qp, out, psn, 0);
}

void vb_multipath_go_by_another(struct vb_qp *qp, struct vb_outgoing *out, uint32_t psn)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	if (!paths)
		return;
	if (paths->count != VB_PATHS_ALL)
		vb_rails_undo(qp, paths, out);
	out->av = &qp->attr.av;
	take(qp, out, psn, ++vb_roce(qp)->selective->again);
}

static void give_another_port(struct vb_qp *qp, struct vb_multipath *paths, uint32_t path)
{
	paths->path[path].port = draw(qp, ++paths->draws + (1u << 31));
	paths->path[path].rtt = 0;
}

void vb_multipath_leave(struct vb_qp *qp, uint32_t psn)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	if (!paths || paths->count == VB_PATHS_ALL)
		return;
	paths->left++;
	give_another_port(qp, paths, vb_multipath_path(paths, psn));
}

void vb_multipath_renew(struct vb_qp *qp, uint32_t psn)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	if (!paths || paths->count == VB_PATHS_ALL || ((psn - paths->renewed_psn) & VB_PSN_MASK) < RENEWED_EVERY)
		return;
	paths->renewed_psn = psn;
	give_another_port(qp, paths, paths->next);
	paths->next = (uint16_t)((paths->next + 1) % paths->count);
	assert(paths->next < paths->count);
}

void vb_multipath_note_rtt(struct vb_qp *qp, uint32_t psn, vb_time rtt)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	const uint64_t ns = (uint64_t)rtt / VB_NS;
	if (!paths || paths->count == VB_PATHS_ALL)
		return;
	const uint32_t path = vb_multipath_path(paths, psn);
	paths->path[path].rtt = ns < UINT32_MAX ? (uint32_t)ns + 1 : UINT32_MAX;
	vb_rails_note_rtt(paths, path, rtt);
}

struct vb_paths_account vb_multipath_account(const struct vb_qp *qp)
{
	const struct vb_multipath *paths = vb_multipath_of(qp);
	struct vb_paths_account account = { 0 };
	if (!paths)
		return account;
	account.count = paths->count;
	account.left = paths->left;
	for (uint16_t i = 0; paths->count != VB_PATHS_ALL && i < paths->count; i++) {
		vb_time rtt = (vb_time)paths->path[i].rtt * VB_NS;
		if (rtt && (account.least_rtt == 0 || rtt < account.least_rtt))
			account.least_rtt = rtt;
		if (rtt > account.most_rtt)
			account.most_rtt = rtt;
	}
	assert(account.least_rtt <= account.most_rtt);
	return account;
}
