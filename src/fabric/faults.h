/* Faults of links. Each packet's faults follow from a hash of the seed, the link, and how many packets the link has
 * sent. */
#ifndef FABRIC_FAULTS_H
#define FABRIC_FAULTS_H

#include "fabric/state.h"

struct fault_draw {
	bool is_lost, is_doubled, is_marked;
	vb_time later[2]; /* how late it arrives; and its duplicate */
};

/* For the packet that the link has just sent. */
struct fault_draw fault_draw(const struct fabric *fabric, uint32_t link, uint32_t bytes, vb_time at);

#endif
