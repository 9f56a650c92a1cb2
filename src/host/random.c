/* See random.h. */
#include "host/random.h"
#include "host/host.h"

#include <sys/random.h>
#include <unistd.h>

uint64_t vb_host_random_seed(void)
{
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)vb_host_now() ^ (uint64_t)getpid() << 32;
	return seed;
}
