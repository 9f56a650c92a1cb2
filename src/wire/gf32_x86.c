/* vb_gf32_multiply for x86-64: PCLMULQDQ and a Barrett reduction where the processor has it. */
#include <immintrin.h>
#include "wire/gf32.h"

#define BARRETT_QUOTIENT 0x1F7011641 /* floor(x^64 / G), reflected */
#define BARRETT_MODULUS  0x1DB710641 /* G, reflected, with its x^32 */

__attribute__((target("pclmul"))) static inline __m128i carryless(uint64_t a, uint64_t b)
{
	return _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)a), _mm_cvtsi64_si128((int64_t)b), 0);
}

__attribute__((target("pclmul"))) static uint32_t multiply(uint32_t a, uint32_t b)
{
	/* 63 bits, reflected; one up, so that bit 63 is x^0. */
	uint64_t product = (uint64_t)_mm_cvtsi128_si64(carryless(a, b)) << 1;
	uint64_t quotient = (uint64_t)_mm_cvtsi128_si64(carryless((uint32_t)product, BARRETT_QUOTIENT));
	uint64_t multiple = (uint64_t)_mm_cvtsi128_si64(carryless((uint32_t)quotient, BARRETT_MODULUS));
	return (uint32_t)((product ^ multiple) >> 32);
}

uint32_t vb_gf32_multiply(uint32_t a, uint32_t b)
{
	return __builtin_cpu_supports("pclmul") ? multiply(a, b) : vb_gf32_multiply_portable(a, b);
}
