/* What the command line of `link` says. */
#ifndef TESTS_LINK_OPTIONS_H
#define TESTS_LINK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "channel.h"

#define LINK_PATHS_MAX 64
enum link_direction { LINK_FORWARD, LINK_BACKWARD, LINK_DIRECTIONS };

struct link_line {
	uint64_t rate, queue; /* as of struct link_queue */
};

struct link_options {
	struct link_line lines[LINK_DIRECTIONS];
	struct link_faults faults[LINK_DIRECTIONS][LINK_PATHS_MAX];
	unsigned paths;
	uint64_t seed;
	unsigned mtu;
	const char *far_command; /* for sh -c; or NULL */
	unsigned far_port;       /* TCP, on which it listens when it is ready; 0: nobody waits */
	const char *json;        /* a file, "-" for stdout; or NULL */
	bool is_quiet, holds, shows_help;
	bool is_of_user;      /* not root, but for a user namespace: set by main */
	char *const *command; /* of the near end; ends with NULL, as argv does */
};

extern const char link_help[];

/* False: why (why_size bytes) says what is wrong. Borrows from argv. */
bool link_options_parse(struct link_options *options, int argc, char **argv, char *why, unsigned why_size);

#endif
