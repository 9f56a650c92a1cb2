/* Distributions of sizes, among them the built-in ones. All arithmetic is in integers, so every machine gets the same.
 * The built-in points are published facts, as discretised for the simulations of the HPCC paper (Li et al., SIGCOMM
 * 2019; the repository alibaba-edu/High-Precision-Congestion-Control). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/flow_text.h"
#include "net/grow.h"
#include "net/sizes.h"
#include "net/why.h"

#define PERCENT(n) (uint32_t)((n)*1000000 + 0.5)

/* Web search, Alizadeh et al., Data Center TCP, SIGCOMM 2010. */
static const struct size_point web_search[] = { { 0, 0 }, { 10000, PERCENT(15) }, { 20000, PERCENT(20) },
	{ 30000, PERCENT(30) }, { 50000, PERCENT(40) }, { 80000, PERCENT(53) }, { 200000, PERCENT(60) },
	{ 1000000, PERCENT(70) }, { 2000000, PERCENT(80) }, { 5000000, PERCENT(90) }, { 10000000, PERCENT(97) },
	{ 30000000, PERCENT(100) } };

/* Hadoop at Facebook, Roy et al., Inside the Social Network's (Datacenter) Network, SIGCOMM 2015. */
static const struct size_point fb_hadoop[] = { { 0, 0 }, { 100, PERCENT(1) }, { 200, PERCENT(2) }, { 300, PERCENT(5) },
	{ 350, PERCENT(15) }, { 400, PERCENT(20) }, { 500, PERCENT(30) }, { 600, PERCENT(40) }, { 700, PERCENT(50) },
	{ 1000, PERCENT(60) }, { 2000, PERCENT(67) }, { 7000, PERCENT(70) }, { 30000, PERCENT(72) },
	{ 50000, PERCENT(82) }, { 80000, PERCENT(87) }, { 120000, PERCENT(90) }, { 300000, PERCENT(95) },
	{ 1000000, PERCENT(97.5) }, { 2000000, PERCENT(99) }, { 10000000, PERCENT(100) } };

/* Storage at Alibaba, Li et al., HPCC, SIGCOMM 2019. */
static const struct size_point ali_storage_2019[] = { { 0, 0 }, { 4000, PERCENT(22.93) }, { 8000, PERCENT(69.21) },
	{ 16000, PERCENT(80.61) }, { 32000, PERCENT(90.47) }, { 64000, PERCENT(93.53) }, { 128000, PERCENT(96.77) },
	{ 256000, PERCENT(97.53) }, { 2000000, PERCENT(100) } };

#define BUILT_IN(name, points)                                                                                         \
	{                                                                                                              \
		name, points, sizeof(points) / sizeof((points)[0])                                                     \
	}
static const struct {
	const char *name;
	const struct size_point *points;
	uint32_t count;
} built_in[] = {
	BUILT_IN("WebSearch", web_search),
	BUILT_IN("FB_Hadoop", fb_hadoop),
	BUILT_IN("AliStorage2019", ali_storage_2019),
};
enum { BUILT_INS = sizeof(built_in) / sizeof(built_in[0]) };

const char *sizes_name(uint32_t index)
{
	return index < BUILT_INS ? built_in[index].name : NULL;
}

static int read_points(struct text *text, struct sizes *sizes, uint32_t *room)
{
	struct span line, bytes, percent;
	for (bool is_first = true; text_next(text, '#', &line); is_first = false) {
		if (is_first && ((*line.at >= 'a' && *line.at <= 'z') || (*line.at >= 'A' && *line.at <= 'Z')))
			continue; /* the line with the column names */
		struct size_point point;
		uint64_t share;
		if (!span_take(&line, ',', &bytes) || !span_number(bytes, FLOW_MOST_BYTES, &point.bytes) ||
			!span_take(&line, ',', &percent) ||
			!span_decimal(percent, SIZES_ALL / 100, SIZES_ALL, &share) || line.length)
			return text_wrong(text, "expected bytes,percent");
		point.share = (uint32_t)share;
		const struct size_point *last = sizes->count ? &sizes->owned[sizes->count - 1] : NULL;
		if (last && (point.bytes < last->bytes || point.share < last->share))
			return text_wrong(text, "less than on the line before");
		if (!grow_by_one(&sizes->owned, room, sizes->count, sizeof(*sizes->owned)))
			return -ENOMEM;
		sizes->owned[sizes->count++] = point;
	}
	if (sizes->count == 0 || sizes->owned[sizes->count - 1].share != SIZES_ALL)
		return text_wrong(text, "does not end with 100 percent");
	if (sizes->owned[sizes->count - 1].bytes == 0)
		return text_wrong(text, "all flows would have no bytes");
	return 0;
}

int sizes_read(struct text *text, struct sizes *sizes)
{
	uint32_t room = 0;
	*sizes = (struct sizes){ 0 };
	int error = read_points(text, sizes, &room);
	if (error)
		sizes_free(sizes);
	sizes->points = sizes->owned;
	return error;
}

int sizes_find(const char *name, struct sizes *sizes, char *why, unsigned why_size)
{
	for (uint32_t i = 0; i < BUILT_INS; i++)
		if (strcmp(name, built_in[i].name) == 0) {
			*sizes = (struct sizes){ .points = built_in[i].points, .count = built_in[i].count };
			return 0;
		}
	struct text text;
	int error = text_open(&text, name, why, why_size);
	if (error)
		return error;
	error = sizes_read(&text, sizes);
	text_close(&text);
	return error;
}

void sizes_free(struct sizes *sizes)
{
	free(sizes->owned);
	*sizes = (struct sizes){ 0 };
}

/* The point before a point: its predecessor, or the same bytes with no share, so that all sizes up to there are equal.
 */
static struct size_point before(const struct sizes *sizes, uint32_t i)
{
	return i ? sizes->points[i - 1] : (struct size_point){ .bytes = sizes->points[0].bytes };
}

uint64_t sizes_draw(const struct sizes *sizes, uint64_t random)
{
	enum { FINER = 20 };
	uint64_t at = (uint64_t)((unsigned __int128)random * ((uint64_t)SIZES_ALL << FINER) >> 64);
	uint32_t i = 0;
	while (at >= (uint64_t)sizes->points[i].share << FINER)
		i++;
	struct size_point low = before(sizes, i), high = sizes->points[i];
	assert(i < sizes->count && high.share > low.share);
	unsigned __int128 part = at - ((uint64_t)low.share << FINER);
	uint64_t bytes =
		low.bytes + (uint64_t)((high.bytes - low.bytes) * part / ((uint64_t)(high.share - low.share) << FINER));
	return bytes ? bytes : 1;
}

uint64_t sizes_mean_millibytes(const struct sizes *sizes)
{
	unsigned __int128 sum = 0;
	for (uint32_t i = 0; i < sizes->count; i++) {
		struct size_point low = before(sizes, i), high = sizes->points[i];
		sum += (unsigned __int128)(low.bytes + high.bytes) * (high.share - low.share);
	}
	return (uint64_t)(sum * 1000 / (2 * (uint64_t)SIZES_ALL));
}
