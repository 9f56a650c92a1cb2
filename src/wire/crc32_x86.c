/* vb_crc32 for x86-64: carry-less multiplications fold the bytes, 64 or 256 a step, into 16 that have the same CRC.
 * Folding moves 128 bits past n others: its halves are multiplied by x^(n+32) and x^(n-32), of which the constants are,
 * and one up, for the product of two reflected numbers comes out one bit low. */
#include <stdbool.h>
#include <immintrin.h>
#include "wire/crc32.h"

#define PAST_128  0xccaa009e, 0x1751997d0
#define PAST_256  0x15a546366, 0xf1da05aa
#define PAST_512  0x1c6e41596, 0x154442bd4
#define PAST_2048 0x1322d1430, 0x11542778a

enum {
	NARROW = 16, /* bytes of a register */
	NARROW_STEP = 4 * NARROW,
	FEW = 2 * NARROW, /* below, tables are as fast */
	HALF_WIDE = 32,
	WIDE = 64,
	WIDE_STEP = 4 * WIDE, /* of either */
};

/* ---- 16 bytes a register ----------------------------------------------------------------------------------------- */

__attribute__((target("pclmul"))) static inline __m128i fold(__m128i a, __m128i past, __m128i into)
{
	__m128i early = _mm_clmulepi64_si128(a, past, 0x00), late = _mm_clmulepi64_si128(a, past, 0x11);
	return _mm_xor_si128(_mm_xor_si128(early, late), into);
}

static inline __m128i load(const uint8_t *b)
{
	return _mm_loadu_si128((const __m128i *)b);
}

/* The CRC of a, which stands for all bytes before, and of the bytes after it. To reduce a by two more multiplications,
 * one after the other, would take longer than tables. */
__attribute__((target("pclmul"))) static uint32_t finish(__m128i a, const uint8_t *b, size_t length)
{
	const __m128i past = _mm_set_epi64x(PAST_128);
	uint8_t rest[NARROW];
	for (; length >= NARROW; b += NARROW, length -= NARROW)
		a = fold(a, past, load(b));
	_mm_storeu_si128((__m128i *)rest, a);
	uint32_t crc = vb_crc32_portable(~0u, rest, sizeof(rest));
	return length > 0 ? vb_crc32_portable(crc, b, length) : crc;
}

/* The first bytes, with the CRC of those before them. */
static inline __m128i load_first(uint32_t crc, const uint8_t *b)
{
	return _mm_xor_si128(load(b), _mm_cvtsi32_si128((int)~crc));
}

__attribute__((target("pclmul"))) static uint32_t fold_narrow(uint32_t crc, const uint8_t *b, size_t length)
{
	const __m128i past = _mm_set_epi64x(PAST_512), next = _mm_set_epi64x(PAST_128);
	__m128i a[4] = { load_first(crc, b), load(b + NARROW), load(b + 2 * NARROW), load(b + 3 * NARROW) };
	for (b += NARROW_STEP, length -= NARROW_STEP; length >= NARROW_STEP; b += NARROW_STEP, length -= NARROW_STEP)
		for (int i = 0; i < 4; i++)
			a[i] = fold(a[i], past, load(b + i * NARROW));
	return finish(fold(fold(fold(a[0], next, a[1]), next, a[2]), next, a[3]), b, length);
}

static uint32_t narrow(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *b = bytes;
	if (length < FEW)
		return vb_crc32_portable(crc, bytes, length);
	return length >= NARROW_STEP ? fold_narrow(crc, b, length)
				     : finish(load_first(crc, b), b + NARROW, length - NARROW);
}

/* ---- 32 bytes a register ----------------------------------------------------------------------------------------- */

#define FOR_HALF_WIDE __attribute__((target("avx2,vpclmulqdq,pclmul")))

FOR_HALF_WIDE static inline __m256i fold_2(__m256i a, __m256i past, __m256i into)
{
	__m256i early = _mm256_clmulepi64_epi128(a, past, 0x00), late = _mm256_clmulepi64_epi128(a, past, 0x11);
	return _mm256_xor_si256(_mm256_xor_si256(early, late), into);
}

FOR_HALF_WIDE static inline __m256i load_2(const uint8_t *b)
{
	return _mm256_loadu_si256((const __m256i *)b);
}

FOR_HALF_WIDE static uint32_t fold_half_wide(uint32_t crc, const uint8_t *b, size_t length)
{
	const __m256i past = _mm256_broadcastsi128_si256(_mm_set_epi64x(PAST_2048));
	const __m256i next = _mm256_broadcastsi128_si256(_mm_set_epi64x(PAST_256));
	__m256i a[8];
	for (int i = 0; i < 8; i++)
		a[i] = load_2(b + i * HALF_WIDE);
	a[0] = _mm256_xor_si256(a[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)~crc)));
	for (b += WIDE_STEP, length -= WIDE_STEP; length >= WIDE_STEP; b += WIDE_STEP, length -= WIDE_STEP)
		for (int i = 0; i < 8; i++)
			a[i] = fold_2(a[i], past, load_2(b + i * HALF_WIDE));
	__m256i sum = a[0];
	for (int i = 1; i < 8; i++)
		sum = fold_2(sum, next, a[i]);
	for (; length >= HALF_WIDE; b += HALF_WIDE, length -= HALF_WIDE)
		sum = fold_2(sum, next, load_2(b));
	__m128i one = fold(_mm256_castsi256_si128(sum), _mm_set_epi64x(PAST_128), _mm256_extracti128_si256(sum, 1));
	_mm256_zeroupper(); /* as below */
	return finish(one, b, length);
}

static uint32_t half_wide(uint32_t crc, const void *bytes, size_t length)
{
	return length >= WIDE_STEP ? fold_half_wide(crc, bytes, length) : narrow(crc, bytes, length);
}

/* ---- 64 bytes a register ----------------------------------------------------------------------------------------- */

#define FOR_WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul")))

FOR_WIDE static inline __m512i fold_4(__m512i a, __m512i past, __m512i into)
{
	__m512i early = _mm512_clmulepi64_epi128(a, past, 0x00), late = _mm512_clmulepi64_epi128(a, past, 0x11);
	return _mm512_ternarylogic_epi64(early, late, into, 0x96); /* xor of three */
}

FOR_WIDE static inline __m512i load_4(const uint8_t *b)
{
	return _mm512_loadu_si512(b);
}

FOR_WIDE static uint32_t fold_wide(uint32_t crc, const uint8_t *b, size_t length)
{
	const __m512i past = _mm512_broadcast_i32x4(_mm_set_epi64x(PAST_2048));
	const __m512i next = _mm512_broadcast_i32x4(_mm_set_epi64x(PAST_512));
	const __m128i next_of_4 = _mm_set_epi64x(PAST_128);
	__m512i a[4] = { _mm512_xor_si512(load_4(b), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc))),
		load_4(b + WIDE), load_4(b + 2 * WIDE), load_4(b + 3 * WIDE) };
	for (b += WIDE_STEP, length -= WIDE_STEP; length >= WIDE_STEP; b += WIDE_STEP, length -= WIDE_STEP)
		for (int i = 0; i < 4; i++)
			a[i] = fold_4(a[i], past, load_4(b + i * WIDE));
	__m512i sum = fold_4(fold_4(fold_4(a[0], next, a[1]), next, a[2]), next, a[3]);
	for (; length >= WIDE; b += WIDE, length -= WIDE)
		sum = fold_4(sum, next, load_4(b));
	__m128i one = fold(_mm512_extracti32x4_epi32(sum, 0), next_of_4, _mm512_extracti32x4_epi32(sum, 1));
	one = fold(
		fold(one, next_of_4, _mm512_extracti32x4_epi32(sum, 2)), next_of_4, _mm512_extracti32x4_epi32(sum, 3));
	/* As long as the upper halves are in use, older instructions wait for them and a switch of threads saves
	 * them. */
	_mm256_zeroupper();
	return finish(one, b, length);
}

static uint32_t wide(uint32_t crc, const void *bytes, size_t length)
{
	return length >= WIDE_STEP ? fold_wide(crc, bytes, length) : narrow(crc, bytes, length);
}

/* ---- Which of them ----------------------------------------------------------------------------------------------- */

static bool has_narrow(void)
{
	return __builtin_cpu_supports("pclmul");
}

static bool has_half_wide(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2") && has_narrow();
}

static bool has_wide(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") && has_narrow();
}

static bool has_tables(void)
{
	return true;
}

vb_crc32_way *vb_crc32_way_of(unsigned index)
{
	static const struct {
		vb_crc32_way *way;
		bool (*is_there)(void);
	} ways[] = { { wide, has_wide }, { half_wide, has_half_wide }, { narrow, has_narrow },
		{ vb_crc32_portable, has_tables } };

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (ways[i].is_there() && index-- == 0)
			return ways[i].way;
	return NULL;
}

uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length)
{
	if (length >= WIDE_STEP && has_wide())
		return fold_wide(crc, bytes, length);
	if (length >= WIDE_STEP && has_half_wide())
		return fold_half_wide(crc, bytes, length);
	return has_narrow() ? narrow(crc, bytes, length) : vb_crc32_portable(crc, bytes, length);
}
