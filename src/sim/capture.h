/* Captures of simulated links: pcapng, of which Wireshark shows each link as an interface of its own. Time is virtual,
 * from 0, in picoseconds. Payload is zeros, as nobody made any. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "fabric/fabric.h"

struct capture;

/* Of these links of the network, both borrowed. -errno. */
int capture_open(const char *path, const struct network *network, const uint32_t *links, uint32_t count,
	struct capture **capture);
void capture_packet(struct capture *capture, const struct fabric_capture *seen);
/* -errno of the first write that failed. */
int capture_close(struct capture *capture);

#endif
