/* See outages.h. */
#include "net/outages.h"

bool fault_is_down(const struct network_fault *fault, vb_time at)
{
	if (fault->down_at == 0 && fault->up_at == 0)
		return false;
	if (network_fault_is_for_good(fault))
		return at >= fault->down_at;
	if (fault->flap_period && at >= fault->down_at)
		at = fault->down_at + (at - fault->down_at) % fault->flap_period;
	return at >= fault->down_at && at < fault->up_at;
}

bool fault_is_of_packets(const struct network_fault *fault)
{
	return fault->loss_ppm || fault->loss_every || fault->bit_error_rate > 0 || fault->duplicate_ppm ||
	       fault->mark_ppm || fault->jitter || (fault->late_ppm && fault->late_by);
}

bool network_has_outages(const struct network *network)
{
	for (uint32_t i = 0; i < network->fault_count; i++)
		if (network_fault_is_for_good(&network->faults[i]) ||
			network->faults[i].up_at > network->faults[i].down_at)
			return true;
	return false;
}

/* When the link next goes down or up. */
static vb_time next_turn(const struct network_fault *fault, vb_time after)
{
	if (fault->down_at == 0 && fault->up_at == 0)
		return -1;
	if (after < fault->down_at)
		return fault->down_at;
	if (network_fault_is_for_good(fault))
		return -1;
	const vb_time lasts = fault->up_at - fault->down_at;
	if (!fault->flap_period)
		return after < fault->up_at ? fault->up_at : -1;
	const vb_time begun = after - (after - fault->down_at) % fault->flap_period;
	return after < begun + lasts && lasts < fault->flap_period ? begun + lasts : begun + fault->flap_period;
}

vb_time fault_next_change(const struct network_fault *fault, vb_time after)
{
	const vb_time later[] = { 0, fault->detection, fault->detection + fault->convergence };
	vb_time first = -1;
	for (unsigned i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		const vb_time turn = next_turn(fault, after - later[i]);
		if (turn >= 0 && (first < 0 || turn + later[i] < first))
			first = turn + later[i];
	}
	return first;
}

static const struct network_fault *fault_of(const struct network *network, uint32_t link)
{
	const uint32_t fault = network->links[link].fault;
	return fault == NETWORK_NONE ? NULL : &network->faults[fault];
}

bool link_is_down(const struct network *network, uint32_t link, vb_time at)
{
	const struct network_fault *fault = fault_of(network, link);
	return fault && fault_is_down(fault, at);
}

bool link_is_known_down(const struct network *network, uint32_t link, vb_time at, bool is_far)
{
	const struct network_fault *fault = fault_of(network, link);
	return fault && fault_is_down(fault, at - fault->detection - (is_far ? fault->convergence : 0));
}
