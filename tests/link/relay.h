/* The link itself: reads packets of one device, and writes them to the other when their time has come. */
#ifndef TESTS_LINK_RELAY_H
#define TESTS_LINK_RELAY_H

#include <stdint.h>
#include "options.h"

#define LINK_LATE_STEPS   1024 /* counted by the microsecond up to this, and the rest together */
#define LINK_PACKETS_HELD 262144

struct link_direction_report {
	struct link_counts paths[LINK_PATHS_MAX];
	uint64_t longest_queue; /* bytes, of the line */
	uint64_t refused;       /* by the device that they were for, as when it was taken down, although delivered */
	uint64_t malformed, had_no_memory; /* packets that are no IP packets or too long; more than may be held */
};

/* Lies in memory that the processes of `link` share, so that it is there however the relay ends. */
struct link_report {
	struct link_direction_report directions[LINK_DIRECTIONS];
	uint64_t late[LINK_LATE_STEPS + 1]; /* packets by how late they were written, microseconds */
	int64_t late_most_ns;
	uint64_t dropped_before[LINK_DIRECTIONS]; /* by a device whose queue was full, before the link saw them */
	double seconds, cpu_seconds;
	bool is_begun; /* set by another process: dead-after and alive-after count from when the relay sees it */
};

/* devices: of the near and of the far end, non-blocking, with struct virtio_net_hdr; takes_udp: they know trains of
 * UDP. Ends when a signal has set *is_over. 0 or -errno. */
int link_relay_run(const struct link_options *options, const int devices[2], bool takes_udp, struct link_report *report,
	volatile int *is_over);

#endif
