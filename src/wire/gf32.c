/* Shifts by whole words, from tables of two digits, and the multiplication for any processor.
 * The tables are checked against single steps by tests/unit/wire/gf32_test.c. */
#include "wire/gf32.h"

/* clang-format off */
static const uint32_t forward_low[32] = { /* x^(32 i) */
	0x80000000, 0xEDB88320, 0xB1E6B092, 0x6655004F, 0xA06A2517, 0xBA8CCBE8, 0x32B39DA3, 0xAD2A31B3,
	0xED627DAE, 0x78ED02D5, 0xA700E96A, 0xBA1ACA03, 0x15141C31, 0x1ED8F66E, 0xD95EFD26, 0xE3720ACB,
	0x88D14467, 0xAA2215EA, 0x329ECC11, 0x5705A9CA, 0x4721589F, 0xE3AB4F2A, 0xC0B95347, 0xC65A272C,
	0xE5B592B8, 0x6F8346E1, 0xD777606E, 0xEBE7E356, 0x6325605C, 0xF5449B3F, 0x00CC3374, 0xA53FF440,
};
static const uint32_t forward_high[34] = { /* x^(1024 i) */
	0x80000000, 0xD7BBFE6A, 0xEC447F11, 0xB72D2B3C, 0x8E7EA170, 0x7E91368A, 0x05616C82, 0x3277F3E0,
	0x6427800E, 0xB1436B58, 0x5EF840E2, 0xB3A2BE1C, 0xBF110F7E, 0x3EA21CF9, 0x118F848E, 0x34163BD1,
	0x4D47BAE0, 0x913D3AB9, 0xA84BDC84, 0x81B96886, 0x0B19AE7F, 0x9A48A5C8, 0xAF5619BC, 0x7DFA90F7,
	0x6347A4BD, 0x7F21B2EE, 0xD91EF3CB, 0x92B4C92C, 0x13D40D42, 0x5A8C432B, 0x5B6CDA72, 0xC1FA498F,
	0x09FE548F, 0x0D63715D,
};
static const uint32_t back_low[32] = { /* x^-(32 i) */
	0x80000000, 0x5B358FD3, 0x2E9BB40B, 0x36511375, 0x12A59A49, 0x278D6E4E, 0x21280F27, 0x24AC08D5,
	0x8DF9403D, 0xD50CBCF7, 0xEBD369B3, 0x3C790F42, 0x9D764201, 0x4CC54C19, 0xE364FE50, 0x6FEF6BF6,
	0x5139DE12, 0xBB26D682, 0x1A28419B, 0xB34F4A13, 0x17958E0B, 0x9887F8D0, 0xA3B110EE, 0xA06CD294,
	0xDB1C4863, 0x18760B90, 0xF11D96DD, 0x23744737, 0xC31EC6B9, 0x1332AF98, 0x6D1A2FF6, 0x16438DE9,
};
static const uint32_t back_high[34] = { /* x^-(1024 i) */
	0x80000000, 0xBA340226, 0x29C45641, 0x2C87538C, 0x12FBC105, 0x948E59AF, 0x8B712BC1, 0x3C4F050E,
	0xECD30C55, 0xB856AE08, 0x930588DC, 0x93E27F2F, 0x3C4C471A, 0xBC2E9B14, 0x25CD5760, 0x401EF0DB,
	0x3755EBD8, 0xBB5B9E1E, 0xE264A9E0, 0xE28939FA, 0xC3A68B42, 0xEE3102B3, 0x219C9D64, 0xAB9EF0A3,
	0x75CC86FA, 0x2BDE52B6, 0xEBCCE135, 0x761D3AC8, 0x84773A36, 0x48D9880A, 0x4E1B970F, 0xDDF1F7E9,
	0x24EE460C, 0xAC57B1EB,
};
/* clang-format on */

uint32_t vb_gf32_multiply_portable(uint32_t a, uint32_t b)
{
	uint32_t product = 0;
	for (int i = 31; i >= 0; i--) {
		product ^= -(b >> i & 1) & a;
		a = a >> 1 ^ (-(a & 1) & VB_GF32_POLYNOMIAL);
	}
	return product;
}

static uint32_t shift(uint32_t a, uint32_t words, const uint32_t *low, const uint32_t *high)
{
	return vb_gf32_multiply(vb_gf32_multiply(a, low[words % 32]), high[words / 32]);
}

uint32_t vb_gf32_forward(uint32_t a, uint32_t words)
{
	return shift(a, words, forward_low, forward_high);
}

uint32_t vb_gf32_back(uint32_t a, uint32_t words)
{
	return shift(a, words, back_low, back_high);
}
