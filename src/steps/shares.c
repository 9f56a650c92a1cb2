/* See shares.h. */
#include "steps/shares.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

struct transfer {
	uint32_t slot, class;
	double left;              /* bytes, at `at` */
	vb_time at, ends;         /* ends: by its rate */
	struct max_min_flow flow; /* rate 0: not found yet */
};

struct shares {
	const struct step_loads *loads;
	struct max_min *solver;
	struct transfer *transfers; /* in the order in which they began */
	struct max_min_flow **flows;
	uint64_t *were; /* rates */
	bool *changed;  /* by component */
	bool has_changed;
	uint32_t count, slots;
};

struct shares *shares_open(const struct step_loads *loads, uint32_t slots)
{
	struct shares *shares = calloc(1, sizeof(*shares));
	if (!shares)
		return NULL;
	*shares = (struct shares){ .loads = loads,
		.solver = max_min_open(loads->limits, loads->limit_count),
		.transfers = calloc((size_t)slots + 1, sizeof(*shares->transfers)),
		.flows = calloc((size_t)slots + 1, sizeof(struct max_min_flow *)),
		.were = calloc((size_t)slots + 1, sizeof(*shares->were)),
		.changed = calloc((size_t)loads->class_count + 1, sizeof(*shares->changed)),
		.slots = slots };
	if (shares->solver && shares->transfers && shares->flows && shares->were && shares->changed)
		return shares;
	shares_close(shares);
	return NULL;
}

void shares_close(struct shares *shares)
{
	if (!shares)
		return;
	max_min_close(shares->solver);
	free(shares->transfers);
	free(shares->flows);
	free(shares->were);
	free(shares->changed);
	free(shares);
}

static const struct step_load *load_of(const struct shares *shares, const struct transfer *transfer)
{
	return &shares->loads->classes[transfer->class];
}

void shares_begin(struct shares *shares, uint32_t slot, uint32_t class, double bytes, vb_time now)
{
	const struct step_load *load = &shares->loads->classes[class];
	assert(shares->count < shares->slots);
	assert(load->hop_count > 0);
	shares->transfers[shares->count++] = (struct transfer){ .slot = slot,
		.class = class,
		.left = bytes,
		.at = now,
		.ends = now,
		.flow = { .hops = load->hops, .hop_count = load->hop_count } };
	shares->changed[load->component] = shares->has_changed = true;
}

/* One whose rate is as it was keeps the time of its end, which was rounded once. */
static void move_on(struct transfer *transfer, uint64_t was, vb_time now)
{
	if (transfer->flow.rate == was)
		return;
	transfer->left -= (double)was * (double)(now - transfer->at) / (double)VB_S;
	if (transfer->left < 0)
		transfer->left = 0;
	transfer->at = now;
	transfer->ends = step_later(now, transfer->left / (double)transfer->flow.rate * (double)VB_S);
}

static int settle(struct shares *shares, uint32_t component, vb_time now)
{
	struct transfer *only = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; i < shares->count; i++) {
		struct transfer *transfer = &shares->transfers[i];
		if (load_of(shares, transfer)->component != component)
			continue;
		only = transfer;
		shares->were[count] = transfer->flow.rate;
		shares->flows[count++] = &transfer->flow;
	}
	if (count == 1)
		only->flow.rate = load_of(shares, only)->alone;
	else if (count && max_min_find(shares->solver, shares->flows, count))
		return -ENOMEM;
	count = 0;
	for (uint32_t i = 0; i < shares->count; i++)
		if (load_of(shares, &shares->transfers[i])->component == component)
			move_on(&shares->transfers[i], shares->were[count++], now);
	return 0;
}

int shares_settle(struct shares *shares, vb_time now)
{
	int error = 0;
	for (uint32_t i = 0; shares->has_changed && !error && i < shares->loads->class_count; i++)
		if (shares->changed[i]) {
			shares->changed[i] = false;
			error = settle(shares, i, now);
		}
	shares->has_changed = false;
	return error;
}

bool shares_next(const struct shares *shares, vb_time *at, uint32_t *slot)
{
	const struct transfer *next = NULL;
	for (uint32_t i = 0; i < shares->count; i++)
		if (!next || shares->transfers[i].ends < next->ends)
			next = &shares->transfers[i];
	if (!next)
		return false;
	*at = next->ends;
	*slot = next->slot;
	return true;
}

void shares_end(struct shares *shares, uint32_t slot)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < shares->count; i++) {
		const struct transfer *transfer = &shares->transfers[i];
		if (transfer->slot == slot)
			shares->changed[load_of(shares, transfer)->component] = shares->has_changed = true;
		else
			shares->transfers[kept++] = *transfer;
	}
	assert(kept + 1 == shares->count);
	shares->count = kept;
}
