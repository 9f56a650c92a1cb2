/* The inside of fault injection: faults_parse.c sets it up, faults.c decides with it.
 * Holds: held_count packets are in delayed, reordered and given; delayed ones are in the order of their times. */
#ifndef VB_PORT_FAULTS_STATE_H
#define VB_PORT_FAULTS_STATE_H

#include "port/faults.h"

struct vb_faults {
	uint32_t drop_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
	vb_time delay;
	uint64_t seed;
	struct vb_random random;
	struct vb_bottleneck neck;
	uint64_t counts[VB_FAULTS];
	unsigned held_count;
	struct vb_list delayed;   /* vb_held, earliest first: all are delayed alike */
	struct vb_list reordered; /* vb_held */
	struct vb_list given;     /* released, until recycled */
	struct vb_list spare;
};

#endif
