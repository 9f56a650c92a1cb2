/* Loss in runs: Gilbert's chain (E. N. Gilbert, "Capacity of a burst-noise channel", 1960). A packet that is struck is
 * followed by another such packet with a chance of 1 - 1/run, so that runs last run packets on average. One that is not
 * begins a run with the chance that makes the given share of all packets struck.
 * Holds: a packet draws one number. The same numbers give the same runs on every machine. */
#ifndef VB_BASE_BURSTS_H
#define VB_BASE_BURSTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/random.h"

#define VB_BURSTS_RUN_MAX 1000000
#define VB_BURSTS_ALL     1000000 /* parts in a million */

struct vb_bursts {
	uint64_t begins, ends; /* chances, in parts of 2^64 */
	bool is_in;            /* the last packet was struck */
};

/* Runs that follow each other without a packet between them would be one, so a share needs runs of some length. */
static inline bool vb_bursts_are_possible(uint32_t ppm, uint64_t run)
{
	return ppm == VB_BURSTS_ALL || ppm <= run * (uint64_t)(VB_BURSTS_ALL - ppm);
}

static inline uint64_t vb_bursts_chance(uint64_t part, uint64_t whole)
{
	return part >= whole ? UINT64_MAX : (uint64_t)(((unsigned __int128)part << 64) / whole);
}

/* ppm: the share of packets that are struck. run: packets, 1 .. VB_BURSTS_RUN_MAX. */
static inline void vb_bursts_init(struct vb_bursts *bursts, uint32_t ppm, uint64_t run)
{
	const bool are_all = ppm >= VB_BURSTS_ALL;

	*bursts = (struct vb_bursts){
		.begins = are_all ? UINT64_MAX : vb_bursts_chance(ppm, run * (VB_BURSTS_ALL - ppm)),
		.ends = are_all ? 0 : vb_bursts_chance(1, run),
	};
}

/* Whether the next packet is struck. */
static inline bool vb_bursts_strikes(struct vb_bursts *bursts, struct vb_random *random)
{
	uint64_t drawn = vb_random_u64(random);

	bursts->is_in = bursts->is_in ? drawn >= bursts->ends : drawn < bursts->begins;
	return bursts->is_in;
}

#endif
