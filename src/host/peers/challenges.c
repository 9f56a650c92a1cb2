/* See challenges.h. Left to itself, the kernel would map the numbers next to libraries. */
#include "base/invariant.h"
#include "host/peers/challenges.h"

#include <stddef.h>
#include <sys/mman.h>
#include "host/random.h"

#define BYTES (VB_CHALLENGES * sizeof(uint64_t))
#define PAGE  65536u /* of any machine, or a multiple */
#define TRIES 8u

/* Half of the tries are within the 47 bits that a process has on most machines, the others within 38. */
static void *choose(unsigned attempt)
{
	const unsigned bits = attempt % 2 ? 38 : 46;

	return (void *)(uintptr_t)(vb_host_random_seed() % (1ull << bits) / PAGE * PAGE + PAGE);
}

/* The place is a wish: a sanitizer's mmap turns one outside of its program's memory into 0, and MAP_FIXED_NOREPLACE
 * would then map page 0 for root. */
uint64_t *vb_challenges_create(void)
{
	for (unsigned i = 0;; i++) {
		void *wish = choose(i);
		void *memory = mmap(wish, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return NULL;
		if (memory == wish || i == TRIES)
			return memory;
		munmap(memory, BYTES);
	}
}

void vb_challenges_destroy(uint64_t *challenges)
{
	if (challenges)
		munmap(challenges, BYTES);
}
