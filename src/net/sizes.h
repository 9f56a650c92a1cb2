/* How large flows are: a distribution is given by points, each the share of flows that are no larger; it is linear
 * between them. */
#ifndef NET_SIZES_H
#define NET_SIZES_H

#include <stdint.h>
#include "net/text.h"

enum { SIZES_ALL = 100 * 1000 * 1000 }; /* shares are in units of 10^-6 per cent */

struct size_point {
	uint64_t bytes;
	uint32_t share; /* of flows with at most so many bytes, of SIZES_ALL */
};

struct sizes {
	const struct size_point *points;
	struct size_point *owned; /* the points, if they are to be freed */
	uint32_t count;
};

/* A built-in by its name, or a file with lines "bytes,percent"; -EINVAL and why, -ENOMEM. */
int sizes_find(const char *name, struct sizes *sizes, char *why, unsigned why_size);
int sizes_read(struct text *text, struct sizes *sizes);
void sizes_free(struct sizes *sizes);

/* The name of a built-in; NULL after the last. */
const char *sizes_name(uint32_t index);

/* A size from 64 random bits; at least 1. */
uint64_t sizes_draw(const struct sizes *sizes, uint64_t random);
uint64_t sizes_mean_millibytes(const struct sizes *sizes);

#endif
