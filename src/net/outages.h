/* When links are down, and who knows of it. */
#ifndef NET_OUTAGES_H
#define NET_OUTAGES_H

#include "net/network.h"

bool fault_is_down(const struct network_fault *fault, vb_time at);
/* Any but the link's times: packets that are lost, doubled, late or marked. */
bool fault_is_of_packets(const struct network_fault *fault);
/* Whether any link is ever down. */
bool network_has_outages(const struct network *network);
/* The first moment after this one when the link goes down or is up again, or a switch learns of it; -1: there is none.
 */
vb_time fault_next_change(const struct network_fault *fault, vb_time after);

bool link_is_down(const struct network *network, uint32_t link, vb_time at);
/* Whether a switch that would send on the link knows that it is down; is_far: a switch further away. */
bool link_is_known_down(const struct network *network, uint32_t link, vb_time at, bool is_far);

#endif
