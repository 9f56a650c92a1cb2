/* vb_crc32 for 64-bit ARM, by the CRC instructions where the processor has them, as all since ARMv8.1 do. */
#include "wire/crc32.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#define HAS_CRC32 (1ul << 7) /* of AT_HWCAP */

static uint32_t add_8(uint32_t crc, uint64_t bytes)
{
	__asm__(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(crc) : "r"(bytes));
	return crc;
}

static uint32_t add_4(uint32_t crc, uint32_t bytes)
{
	__asm__(".arch_extension crc\n\tcrc32w %w0, %w0, %w1" : "+r"(crc) : "r"(bytes));
	return crc;
}

static uint32_t add_1(uint32_t crc, uint8_t byte)
{
	__asm__(".arch_extension crc\n\tcrc32b %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
	return crc;
}

static bool has_instructions(void)
{
	static int has; /* 1: yes, -1: no */
	int known = __atomic_load_n(&has, __ATOMIC_RELAXED);
	if (known == 0) {
		known = getauxval(AT_HWCAP) & HAS_CRC32 ? 1 : -1;
		__atomic_store_n(&has, known, __ATOMIC_RELAXED);
	}
	return known > 0;
}

uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length)
{
	if (!has_instructions())
		return vb_crc32_portable(crc, bytes, length);
	const uint8_t *b = bytes;
	uint64_t eight;
	uint32_t four;
	crc = ~crc;
	for (; length >= 8; b += 8, length -= 8) {
		memcpy(&eight, b, 8);
		crc = add_8(crc, eight);
	}
	if (length >= 4) {
		memcpy(&four, b, 4);
		crc = add_4(crc, four);
		b += 4;
		length -= 4;
	}
	for (; length > 0; b++, length--)
		crc = add_1(crc, *b);
	return ~crc;
}

vb_crc32_way *vb_crc32_way_of(unsigned index)
{
	return index == 0 ? vb_crc32 : index == 1 ? vb_crc32_portable : NULL;
}
