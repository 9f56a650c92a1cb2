/* CRC-32 of bytes, as in Ethernet and gzip: crc is that of what came before, 0 at the beginning. */
#ifndef VB_WIRE_CRC32_H
#define VB_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* By the processor's own instructions, where it has them: crc32_x86.c, crc32_arm.c. */
uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length);
/* By tables, eight bytes a step; for any processor. */
uint32_t vb_crc32_portable(uint32_t crc, const void *bytes, size_t length);

/* For tests: each way of doing it that this processor has, also those that vb_crc32 does not choose. NULL from some
 * index on. */
typedef uint32_t vb_crc32_way(uint32_t crc, const void *bytes, size_t length);
vb_crc32_way *vb_crc32_way_of(unsigned index);

#endif
