/* Random numbers that are not uniform, computed in integers: mathematical libraries differ in their last bits, and the
 * order of events would differ with them. */
#ifndef NET_CHANCE_H
#define NET_CHANCE_H

#include <stdint.h>

/* Uniform in 0 .. below - 1, from 64 random bits; below is any number but 0. */
static inline uint64_t chance_below(uint64_t random, uint64_t below)
{
	return (uint64_t)((unsigned __int128)random * below >> 64);
}

/* Exponential with mean 1, in units of 2^-32, from 64 random bits: the negative logarithm of a number that is uniform
 * in 2^-53 .. 1. */
uint64_t chance_exponential(uint64_t random);

#endif
