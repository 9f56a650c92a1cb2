/* How large flows are: distributions by a few points of the share that is no larger, straight lines between. */
#ifndef NET_SIZES_H
#define NET_SIZES_H

#include <stdint.h>
#include "net/text.h"

enum { SIZES_ALL = 100 * 1000 * 1000 }; /* of shares: a hundred per cent */

struct size_point {
	uint64_t bytes;
	uint32_t share; /* of flows that have so many bytes at most, of SIZES_ALL */
};

struct sizes {
	const struct size_point *points;
	struct size_point *owned; /* points, or NULL */
	uint32_t count;
};

/* A built-in by its name, or a file of lines "bytes,percent"; -EINVAL and why, -ENOMEM. */
int sizes_find(const char *name, struct sizes *sizes, char *why, unsigned why_size);
int sizes_read(struct text *text, struct sizes *sizes);
void sizes_free(struct sizes *sizes);

/* The name of a built-in; NULL behind the last. */
const char *sizes_name(uint32_t index);

/* A size by 64 random bits; 1 at least. */
uint64_t sizes_draw(const struct sizes *sizes, uint64_t random);
uint64_t sizes_mean_millibytes(const struct sizes *sizes);

#endif
