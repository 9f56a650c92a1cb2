/* The dimensions in which a trainer splits its work, and their names: tensor (tp), context (cp), expert (ep), data (dp)
 * and pipeline (pp) parallel, or any others. Ranks are numbered along the first dimension first, so of "tp=8, dp=4"
 * rank 9 is the second of tp and the second of dp: trainers write this order tp-dp.
 *
 * A dimension that is a part of another, as Megatron's ep is of dp, is written as two: "ep=4, edp=8" is dp=32.
 *
 * Errors: -EINVAL and why, with what to write instead. */
#ifndef NET_DIMENSIONS_H
#define NET_DIMENSIONS_H

#include <stdint.h>

enum { DIMENSIONS_MOST = 8, DIMENSIONS_NAME = 12 };

struct rank_dimension {
	char name[DIMENSIONS_NAME];
	uint32_t size; /* 0: what the others leave */
};

struct dimensions {
	struct rank_dimension of[DIMENSIONS_MOST];
	uint32_t count; /* 0: there are none */
};

/* From text such as "tp=8, cp=2, dp, pp=4"; one may have no size. */
int dimensions_parse(struct dimensions *dimensions, const char *text, char *why, unsigned why_size);
/* Fills in the size that is left out, for so many ranks. They may be fewer than there are. */
int dimensions_complete(struct dimensions *dimensions, uint32_t ranks, char *why, unsigned why_size);
uint32_t dimensions_ranks(const struct dimensions *dimensions);

/* Numbers of the dimensions that text such as "tp-pp-dp" names, in its order; each once. */
struct dimensions_named {
	uint32_t number[DIMENSIONS_MOST], count;
};
int dimensions_name(const struct dimensions *dimensions, const char *text, struct dimensions_named *named, char *why,
	unsigned why_size);

/* How many ranks differ in these dimensions alone. */
uint32_t dimensions_size(const struct dimensions *dimensions, const struct dimensions_named *named);
/* The number of a rank if ranks were numbered along these dimensions, which are all there are. */
uint32_t dimensions_renumber(const struct dimensions *dimensions, const struct dimensions_named *order, uint32_t rank);
/* All groups of ranks that differ in these dimensions alone, one behind the other: dimensions_ranks() ranks, of which
 * each dimensions_size() are a group, in ascending order. */
void dimensions_list_groups(const struct dimensions *dimensions, const struct dimensions_named *named, uint32_t *lists);

#endif
