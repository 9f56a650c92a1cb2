/* vb_gf32_multiply for processors that have no file of their own. */
#include "wire/gf32.h"

uint32_t vb_gf32_multiply(uint32_t a, uint32_t b)
{
	return vb_gf32_multiply_portable(a, b);
}
