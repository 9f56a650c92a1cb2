/* Polynomials over GF(2) modulo the CRC-32 polynomial, in the form that the reflected CRC register has: bit 31 is x^0,
 * bit 0 is x^31. A CRC is linear, so moving a difference past n bytes is multiplying it by x^(8n), and moving it back
 * is multiplying by x^-(8n). */
#ifndef VB_WIRE_GF32_H
#define VB_WIRE_GF32_H

#include <stdint.h>

#define VB_GF32_POLYNOMIAL 0xEDB88320u
#define VB_GF32_ONE        0x80000000u
#define VB_GF32_WORDS_MAX  2175u /* the largest words of the two below: 68 * 32 - 1 */

/* a times b. gf32_x86.c multiplies without carries, if the processor can. */
uint32_t vb_gf32_multiply(uint32_t a, uint32_t b);
/* The same in 32 steps, for any processor. */
uint32_t vb_gf32_multiply_portable(uint32_t a, uint32_t b);

uint32_t vb_gf32_forward(uint32_t a, uint32_t words); /* a x^(32 words) */
uint32_t vb_gf32_back(uint32_t a, uint32_t words);    /* a x^-(32 words) */

#endif
