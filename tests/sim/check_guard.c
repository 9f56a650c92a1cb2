/* Invariant: nothing outside a registered region is touched. Each lies between two guards. */
#include "sim.h"

static uint8_t guard_byte(uint64_t i)
{
	return (uint8_t)(0xA5 ^ i * 7);
}

void guard_write(uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		bytes[i] = guard_byte(i);
}

void check_guard(const struct block *block)
{
	for (uint64_t i = 0; block->bytes && i < GUARD; i++)
		if (block->bytes[(int64_t)i - GUARD] != guard_byte(i) || block->bytes[block->size + i] != guard_byte(i))
			broken("memory beside a region of %llu bytes was touched", (unsigned long long)block->size);
}

void check_guards(void)
{
	for (unsigned i = 0; i < world.connection_count; i++) {
		for (int k = 0; k < 2; k++) {
			check_guard(&world.connections[i].ends[k].local);
			check_guard(&world.connections[i].ends[k].target);
			check_guard(&world.connections[i].ends[k].recvs);
		}
	}
	for (unsigned i = 0; i < world.host_count; i++) {
		for (unsigned p = 0; p < POOLS; p++)
			check_guard(&world.hosts[i].pools[p].recvs);
		check_guard(&world.hosts[i].cells);
	}
}
