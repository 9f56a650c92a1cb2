/* Time: a 64-bit count of picoseconds. It wraps after 213 days, so two times are only ever compared through the
 * functions below. vb_time_before() looks at the signed difference, which is wrong for times more than 106 days apart.
 * Do not compare values that may be old: ask vb_time_since() or vb_time_is_due(). A live process starts its count near
 * zero when it loads the library; a simulation counts from zero. */
#ifndef VB_BASE_TIME_H
#define VB_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t vb_time; /* a point in time, picoseconds, wraps */

#define VB_PS ((vb_time)1)
#define VB_NS (1000 * VB_PS)
#define VB_US (1000 * VB_NS)
#define VB_MS (1000 * VB_US)
#define VB_S  (1000 * VB_MS)

static inline vb_time vb_time_add(vb_time at, vb_time span)
{
	return (vb_time)((uint64_t)at + (uint64_t)span);
}

/* a - b; right as long as the two are less than 106 days apart. */
static inline vb_time vb_time_diff(vb_time a, vb_time b)
{
	return (vb_time)((uint64_t)a - (uint64_t)b);
}

static inline bool vb_time_before(vb_time a, vb_time b)
{
	return vb_time_diff(a, b) < 0;
}

/* How long ago past was; past must not lie ahead. Saturates at 106 days. */
static inline vb_time vb_time_since(vb_time past, vb_time now)
{
	uint64_t span = (uint64_t)now - (uint64_t)past;
	return span > INT64_MAX ? INT64_MAX : (vb_time)span;
}

/* No deadline is set further ahead than this: the longest timeouts are hours. So a deadline that seems further ahead
 * has passed, however long ago. */
#define VB_HORIZON (24 * 3600 * VB_S)

static inline bool vb_time_is_due(vb_time at, vb_time now)
{
	return (uint64_t)at - (uint64_t)now - 1 >= (uint64_t)VB_HORIZON;
}

/* A deadline that may be absent. Time wraps, so no value of it can mean "never". */
struct vb_deadline {
	vb_time at;
	bool is_set;
};

static inline bool vb_deadline_due(struct vb_deadline deadline, vb_time now)
{
	return deadline.is_set && vb_time_is_due(deadline.at, now);
}

static inline struct vb_deadline vb_deadline_earlier(struct vb_deadline a, struct vb_deadline b)
{
	if (!a.is_set)
		return b;
	if (!b.is_set)
		return a;
	return vb_time_before(a.at, b.at) ? a : b;
}

#endif
