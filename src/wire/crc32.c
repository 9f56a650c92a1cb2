/* vb_crc32_portable: eight tables, one for each distance of a byte from the end of its eight. A CRC is linear, so an
 * entry is the sum of those of its bits, and the bits of all tables are consecutive powers of x. */
#include "wire/crc32.h"

#include <string.h>

#define BITS(i, b7, b6, b5, b4, b3, b2, b1, b0)                                                                        \
	(((i)&128 ? b7 : 0) ^ ((i)&64 ? b6 : 0) ^ ((i)&32 ? b5 : 0) ^ ((i)&16 ? b4 : 0) ^ ((i)&8 ? b3 : 0) ^           \
		((i)&4 ? b2 : 0) ^ ((i)&2 ? b1 : 0) ^ ((i)&1 ? b0 : 0))

#define POWERS_0(i)                                                                                                    \
	BITS(i, 0xEDB88320, 0x76DC4190, 0x3B6E20C8, 0x1DB71064, 0x0EDB8832, 0x076DC419, 0xEE0E612C, 0x77073096)
#define POWERS_1(i)                                                                                                    \
	BITS(i, 0x3B83984B, 0xF0794F05, 0x958424A2, 0x4AC21251, 0xC8D98A08, 0x646CC504, 0x32366282, 0x191B3141)
#define POWERS_2(i)                                                                                                    \
	BITS(i, 0xE1351B80, 0x709A8DC0, 0x384D46E0, 0x1C26A370, 0x0E1351B8, 0x0709A8DC, 0x0384D46E, 0x01C26A37)
#define POWERS_3(i)                                                                                                    \
	BITS(i, 0xED59B63B, 0x9B14583D, 0xA032AF3E, 0x5019579F, 0xC5B428EF, 0x8F629757, 0xAA09C88B, 0xB8BC6765)
#define POWERS_4(i)                                                                                                    \
	BITS(i, 0xB1E6B092, 0x58F35849, 0xC1C12F04, 0x60E09782, 0x30704BC1, 0xF580A6C0, 0x7AC05360, 0x3D6029B0)
#define POWERS_5(i)                                                                                                    \
	BITS(i, 0x1EB014D8, 0x0F580A6C, 0x07AC0536, 0x03D6029B, 0xEC53826D, 0x9B914216, 0x4DC8A10B, 0xCB5CD3A5)
#define POWERS_6(i)                                                                                                    \
	BITS(i, 0x8816EAF2, 0x440B7579, 0xCFBD399C, 0x67DE9CCE, 0x33EF4E67, 0xF44F2413, 0x979F1129, 0xA6770BB4)
#define POWERS_7(i)                                                                                                    \
	BITS(i, 0x533B85DA, 0x299DC2ED, 0xF9766256, 0x7CBB312B, 0xD3E51BB5, 0x844A0EFA, 0x4225077D, 0xCCAA009E)

#define FOUR(f, i)    f(i), f((i) + 1), f((i) + 2), f((i) + 3)
#define SIXTEEN(f, i) FOUR(f, i), FOUR(f, (i) + 4), FOUR(f, (i) + 8), FOUR(f, (i) + 12)
#define HALF(f, i)                                                                                                     \
	SIXTEEN(f, i), SIXTEEN(f, (i) + 16), SIXTEEN(f, (i) + 32), SIXTEEN(f, (i) + 48), SIXTEEN(f, (i) + 64),         \
		SIXTEEN(f, (i) + 80), SIXTEEN(f, (i) + 96), SIXTEEN(f, (i) + 112)
#define ALL(f)                                                                                                         \
	{                                                                                                              \
		HALF(f, 0), HALF(f, 128)                                                                               \
	}

static const uint32_t table[8][256] = {
	ALL(POWERS_0),
	ALL(POWERS_1),
	ALL(POWERS_2),
	ALL(POWERS_3),
	ALL(POWERS_4),
	ALL(POWERS_5),
	ALL(POWERS_6),
	ALL(POWERS_7),
};

static uint32_t look_up_4(unsigned first, uint32_t word)
{
	return table[first + 3][word & 0xFF] ^ table[first + 2][word >> 8 & 0xFF] ^
	       table[first + 1][word >> 16 & 0xFF] ^ table[first][word >> 24];
}

uint32_t vb_crc32_portable(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *b = bytes;
	uint32_t words[2];
	crc = ~crc;
	for (; length >= 8; b += 8, length -= 8) {
		memcpy(words, b, 8);
		crc = look_up_4(4, words[0] ^ crc) ^ look_up_4(0, words[1]);
	}
	if (length >= 4) {
		memcpy(words, b, 4);
		crc = look_up_4(0, words[0] ^ crc);
		b += 4;
		length -= 4;
	}
	for (; length > 0; b++, length--)
		crc = table[0][(crc ^ *b) & 0xFF] ^ crc >> 8;
	return ~crc;
}
