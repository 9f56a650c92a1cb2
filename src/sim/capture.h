/* Captures of simulated links as pcapng; Wireshark shows each link as an interface. Time is virtual, from 0, in
 * picoseconds. Payload is zeros, as a simulation has none. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "fabric/fabric.h"

struct capture;

/* Captures these links of the network; both are borrowed. -errno. */
int capture_open(const char *path, const struct network *network, const uint32_t *links, uint32_t count,
	struct capture **capture);
void capture_packet(struct capture *capture, const struct fabric_capture *seen);
/* -errno of the first write that failed. */
int capture_close(struct capture *capture);

#endif
