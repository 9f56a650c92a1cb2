/* What goes wrong with a link. Each packet's share of it is a hash of the seed, the link and how many it has sent. */
#ifndef FABRIC_FAULTS_H
#define FABRIC_FAULTS_H

#include "fabric/state.h"

struct fault_draw {
	bool is_lost, is_doubled, is_marked;
	vb_time later[2]; /* than it should be there; and the second of two */
};

/* Of the last packet that the link has sent. */
struct fault_draw fault_draw(const struct fabric *fabric, uint32_t link, uint32_t bytes, vb_time at);
/* Whether a switch that sends by it knows that it is down. */
bool link_is_known_down(const struct fabric *fabric, uint32_t link, vb_time at, bool is_far); /* or one further away */

#endif
