/* vb_release_wide_registers for x86-64. */
#include <immintrin.h>
#include "wire/crc32.h"

__attribute__((target("avx"))) static void zero_upper(void)
{
	_mm256_zeroupper();
}

void vb_release_wide_registers(void)
{
	if (__builtin_cpu_supports("avx"))
		zero_upper();
}
