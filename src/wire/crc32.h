/* CRC-32 of bytes, as in Ethernet and gzip: crc is that of what came before, 0 at the beginning. */
#ifndef VB_WIRE_CRC32_H
#define VB_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* crc32_x86.c and crc32_arm.c use what the processor has for it. */
uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length);
/* The same anywhere, eight bytes a step. */
uint32_t vb_crc32_portable(uint32_t crc, const void *bytes, size_t length);

/* For tests: all the ways of doing it that this processor has, whatever vb_crc32 chooses. NULL from some index on. */
typedef uint32_t vb_crc32_way(uint32_t crc, const void *bytes, size_t length);
vb_crc32_way *vb_crc32_way_of(unsigned index);

#endif
