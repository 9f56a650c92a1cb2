/* vb_crc32 for processors that have no file of their own. */
#include "wire/crc32.h"

uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length)
{
	return vb_crc32_portable(crc, bytes, length);
}

vb_crc32_way *vb_crc32_way_of(unsigned index)
{
	return index == 0 ? vb_crc32_portable : NULL;
}
