/* The inside of fault injection: faults_parse.c sets it up, faults.c decides with it.
 * Holds: held_count packets are in delayed, late, reordered and given; delayed ones, and late ones, are in the order of
 * their times. */
#ifndef VB_PORT_FAULTS_STATE_H
#define VB_PORT_FAULTS_STATE_H

#include <net/if.h>
#include "base/bursts.h"
#include "port/faults.h"

#define VB_FAULTS_INTERFACES 16

/* Which packets the faults strike. */
struct vb_faults_scope {
	bool has_path;
	uint64_t path;
	char interface[IF_NAMESIZE]; /* empty: any */
	/* What is known of interfaces, at their index modulo the size. Index 0 is none. */
	struct {
		uint32_t index;
		bool is_struck;
	} interfaces[VB_FAULTS_INTERFACES];
};

struct vb_faults {
	uint32_t drop_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm, late_ppm;
	uint64_t burst; /* the mean run of drops in packets; 0: each packet by itself */
	vb_time delay, late_by;
	struct vb_faults_scope scope;
	bool strikes_nothing;
	uint64_t seed;
	struct vb_random random, late_random;
	struct vb_bursts bursts;
	struct vb_bottleneck neck;
	uint64_t counts[VB_FAULTS];
	unsigned held_count;
	struct vb_list delayed;   /* vb_held, earliest first: all are delayed alike */
	struct vb_list late;      /* vb_held, earliest first */
	struct vb_list reordered; /* vb_held */
	struct vb_list given;     /* released, until recycled */
	struct vb_list spare;
};

#endif
