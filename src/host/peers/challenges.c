/* See challenges.h. Left to itself, the kernel would map the numbers next to libraries. */
#include "base/invariant.h"
#include "host/peers/challenges.h"

#include <stddef.h>
#include <sys/mman.h>
#include "host/random.h"

#define BYTES (VB_CHALLENGES * sizeof(uint64_t))
#define PAGE  65536u /* of any machine, or a multiple */
#define TRIES 8u

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Half of the tries are within the 47 bits that a process has on most machines, the others within 38. */
static void *choose(unsigned attempt)
{
	const unsigned bits = attempt % 2 ? 38 : 46;

	return (void *)(uintptr_t)(vb_host_random_seed() % (1ull << bits) / PAGE * PAGE + PAGE);
}

uint64_t *vb_challenges_create(void)
{
	void *memory = MAP_FAILED;

	for (unsigned i = 0; memory == MAP_FAILED && i < TRIES; i++)
		memory = mmap(choose(i), BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void vb_challenges_destroy(uint64_t *challenges)
{
	if (challenges)
		munmap(challenges, BYTES);
}
