/* CRC-32 of bytes, by ISA-L. Its function for processors with 512-bit registers leaves their upper halves in use, and
 * as long as they are, every older instruction waits for them and every switch of threads saves them. */
#ifndef VB_WIRE_CRC32_H
#define VB_WIRE_CRC32_H

#include <isa-l/crc.h>
#include <stddef.h>
#include <stdint.h>

/* The processor's wide registers are free again. */
#if defined(__x86_64__)
void vb_release_wide_registers(void);
#else
static inline void vb_release_wide_registers(void) {}
#endif

static inline uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length)
{
	crc = crc32_gzip_refl(crc, bytes, length);
	vb_release_wide_registers();
	return crc;
}

#endif
