/* See placement.h. */
#include "net/placement.h"
#include "net/why.h"

int placement_spread(uint32_t *gpu_of, uint32_t ranks, uint32_t gpus, uint32_t switches, char *why, unsigned why_size)
{
	const uint32_t each = gpus ? gpus : 1, hosts = ranks / each;
	if (hosts == 0 || switches == 0 || hosts % switches)
		return why_not(why, why_size, "%u hosts cannot be dealt out to %u switches evenly", hosts, switches);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		const uint32_t host = rank / each, place = host % switches * (hosts / switches) + host / switches;
		gpu_of[rank] = place * each + rank % each;
	}
	return 0;
}
