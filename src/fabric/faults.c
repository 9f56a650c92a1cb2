/* See faults.h. */
#include "base/invariant.h"
#include "fabric/faults.h"
#include "net/chance.h"
#include "net/outages.h"

enum { TO_LOSE = 0xFA17, TO_DOUBLE, TO_MARK, TO_BE_LATE, JITTER, LATE_BY = JITTER + 2 };

static const struct network_fault *fault_of(const struct fabric *fabric, uint32_t number)
{
	assert(fabric->links[number].is_faulty);
	return &fabric->network->faults[fabric->network->links[number].fault];
}

static uint64_t draw(const struct fabric *fabric, uint32_t number, uint64_t what)
{
	return fabric_chance(fabric->config->seed ^ what, number, fabric->links[number].packets);
}

static bool is_chosen(const struct fabric *fabric, uint32_t number, uint64_t what, uint32_t ppm)
{
	return ppm && (uint32_t)draw(fabric, number, what) % 1000000 < ppm;
}

static bool is_wrong(uint64_t drawn, double bit_error_rate, uint32_t bytes)
{
	double whole = 1, rate = 1 - bit_error_rate; /* (1 - rate)^bits by squaring: the same on every machine */
	for (uint32_t bits = bytes * 8; bits > 0; bits >>= 1, rate *= rate)
		if (bits & 1)
			whole *= rate;
	return (double)(drawn >> 32) >= whole * 4294967296.0;
}

static vb_time within(const struct fabric *fabric, uint32_t number, uint64_t what, vb_time span)
{
	return span ? (vb_time)chance_below(draw(fabric, number, what), (uint64_t)span + 1) : 0;
}

struct fault_draw fault_draw(const struct fabric *fabric, uint32_t number, uint32_t bytes, vb_time at)
{
	const struct network_fault *fault = fault_of(fabric, number);
	struct fault_draw drawn = {
		.is_lost = fault_is_down(fault, at) || is_chosen(fabric, number, TO_LOSE, fault->loss_ppm) ||
			   (fault->loss_every && fabric->links[number].packets % fault->loss_every == 0)
	};
	if (!drawn.is_lost && fault->bit_error_rate > 0)
		drawn.is_lost = is_wrong(draw(fabric, number, TO_LOSE), fault->bit_error_rate, bytes);
	if (drawn.is_lost)
		return drawn;
	drawn.is_doubled = is_chosen(fabric, number, TO_DOUBLE, fault->duplicate_ppm);
	drawn.is_marked = is_chosen(fabric, number, TO_MARK, fault->mark_ppm);
	for (unsigned i = 0; i < (drawn.is_doubled ? 2 : 1); i++)
		drawn.later[i] = within(fabric, number, JITTER + i, fault->jitter);
	if (is_chosen(fabric, number, TO_BE_LATE, fault->late_ppm))
		drawn.later[0] += within(fabric, number, LATE_BY, fault->late_by);
	return drawn;
}
