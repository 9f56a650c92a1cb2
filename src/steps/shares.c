/* See shares.h. */
#include "steps/shares.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

struct transfer {
	uint32_t slot, class;
	double left;              /* bytes, at `at` */
	vb_time at, ends;         /* ends: by its rate */
	struct max_min_flow flow; /* rate 0: not found yet, or it waits */
	double at_once;           /* bytes */
	struct stall stall;
	bool waits; /* for a link */
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

const struct step_load *shares_load(const struct shares *shares, uint32_t class)
{
	return &shares->loads->classes[class];
}

static const struct step_load *load_of(const struct shares *shares, const struct transfer *transfer)
{
	return shares_load(shares, transfer->class);
}

static void mark_changed(struct shares *shares, const struct transfer *transfer)
{
	shares->changed[load_of(shares, transfer)->component] = shares->has_changed = true;
}

/* It has no rate until it goes on. */
static void wait_for_link(const struct shares *shares, struct transfer *transfer, uint64_t rate, vb_time now)
{
	const double sends = transfer->left < transfer->at_once ? transfer->left : transfer->at_once;
	const uint64_t at = rate ? rate : load_of(shares, transfer)->alone;
	transfer->waits = true;
	transfer->flow.rate = 0;
	transfer->stall = (struct stall){
		.since = now, .left = (vb_time)(sends / (double)at * (double)VB_S), .rate = at, .again = -1
	};
}

void shares_begin(struct shares *shares, uint32_t slot, uint32_t class, double bytes, double at_once, vb_time now)
{
	const struct step_load *load = shares_load(shares, class);
	struct transfer *transfer = &shares->transfers[shares->count];
	assert(shares->count < shares->slots);
	assert(load->hop_count > 0);
	*transfer = (struct transfer){ .slot = slot,
		.class = class,
		.left = bytes,
		.at_once = at_once,
		.at = now,
		.ends = now,
		.flow = { .hops = load->hops, .hop_count = load->hop_count } };
	shares->count++;
	if (load->is_down)
		wait_for_link(shares, transfer, 0, now);
	mark_changed(shares, transfer);
}

static void advance(struct transfer *transfer, uint64_t rate, vb_time now)
{
	transfer->left -= (double)rate * (double)(now - transfer->at) / (double)VB_S;
	if (transfer->left < 0)
		transfer->left = 0;
	transfer->at = now;
}

/* One whose rate is as it was keeps the time of its end, which was rounded once. */
static void move_on(struct transfer *transfer, uint64_t was, vb_time now)
{
	if (transfer->flow.rate == was)
		return;
	advance(transfer, was, now);
	transfer->ends = step_later(now, transfer->left / (double)transfer->flow.rate * (double)VB_S);
}

static int settle(struct shares *shares, uint32_t component, vb_time now)
{
	struct transfer *only = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; i < shares->count; i++) {
		struct transfer *transfer = &shares->transfers[i];
		if (load_of(shares, transfer)->component != component || transfer->waits)
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
		if (load_of(shares, &shares->transfers[i])->component == component && !shares->transfers[i].waits)
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
		if (!shares->transfers[i].waits && (!next || shares->transfers[i].ends < next->ends))
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
			mark_changed(shares, transfer);
		else
			shares->transfers[kept++] = *transfer;
	}
	assert(kept + 1 == shares->count);
	shares->count = kept;
}

/* ---- Links that are down ----------------------------------------------------------------------------------------- */

bool shares_change_next(const struct shares *shares, vb_time now, vb_time *at)
{
	*at = shares->loads->until > now ? shares->loads->until : -1;
	for (uint32_t i = 0; i < shares->count; i++) {
		const struct transfer *transfer = &shares->transfers[i];
		if (transfer->waits && transfer->stall.again > now && (*at < 0 || transfer->stall.again < *at))
			*at = transfer->stall.again;
	}
	return shares->count > 0 && *at >= 0;
}

/* Its ways are those of other loads now. */
static void follow(const struct shares *shares, struct transfer *transfer, vb_time now)
{
	const struct step_load *load = load_of(shares, transfer);
	const struct resending *resending = &shares->loads->resending;
	const uint64_t rate = transfer->flow.rate;
	if (!transfer->waits)
		advance(transfer, rate, now);
	transfer->flow = (struct max_min_flow){ .hops = load->hops, .hop_count = load->hop_count };
	if (!transfer->waits && load->is_down) {
		wait_for_link(shares, transfer, rate, now);
	} else if (transfer->waits) {
		const vb_time again = stall_again(resending, &transfer->stall, 0, now);
		transfer->stall.again = load->is_down || again >= stall_end(resending, &transfer->stall) ? -1 : again;
	}
}

static int take_next(struct shares *shares, vb_time now)
{
	struct max_min *solver = max_min_open(shares->loads->next->limits, shares->loads->next->limit_count);
	if (!solver)
		return -ENOMEM;
	max_min_close(shares->solver);
	shares->solver = solver;
	shares->loads = shares->loads->next;
	for (uint32_t i = 0; i < shares->count; i++) {
		follow(shares, &shares->transfers[i], now);
		mark_changed(shares, &shares->transfers[i]);
	}
	return 0;
}

int shares_change(struct shares *shares, vb_time now)
{
	int error = 0;
	while (!error && shares->loads->next && shares->loads->until <= now)
		error = take_next(shares, now);
	for (uint32_t i = 0; i < shares->count; i++) {
		struct transfer *transfer = &shares->transfers[i];
		if (!transfer->waits || transfer->stall.again != now)
			continue;
		transfer->waits = false;
		transfer->at = now;
		mark_changed(shares, transfer);
	}
	return error;
}

bool shares_wait(const struct shares *shares)
{
	return shares->count > 0;
}
