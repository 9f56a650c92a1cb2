/* Logarithms in fixed point: for x = m 2^e with 1 <= m < 2, ln x is e ln 2 + 2 artanh((m - 1) / (m + 1)). */
#include "net/chance.h"

enum { POINT = 60, UNIFORM_BITS = 53 };
#define ONE ((uint64_t)1 << POINT)
#define LN2 799144290325165978u /* in units of 1 / ONE */

/* artanh(s) = s + s^3/3 + s^5/5 + ...; s is below 1/3, so each term has at least three bits less than the one before.
 */
static uint64_t artanh(uint64_t s)
{
	uint64_t square = (uint64_t)((unsigned __int128)s * s >> POINT), sum = 0, power = s;
	for (uint64_t n = 1; power; n += 2) {
		sum += power / n;
		power = (uint64_t)((unsigned __int128)power * square >> POINT);
	}
	return sum;
}

uint64_t chance_exponential(uint64_t random)
{
	uint64_t x = (random >> (64 - UNIFORM_BITS)) + 1;
	int exponent = 63 - __builtin_clzll(x);
	uint64_t m = x << (POINT - exponent);
	uint64_t s = (uint64_t)(((unsigned __int128)(m - ONE) << POINT) / (m + ONE));
	unsigned __int128 most = (unsigned __int128)UNIFORM_BITS * LN2;
	unsigned __int128 logarithm = (unsigned __int128)(unsigned)exponent * LN2 + 2 * (unsigned __int128)artanh(s);
	return logarithm < most ? (uint64_t)((most - logarithm) >> (POINT - 32)) : 0;
}
