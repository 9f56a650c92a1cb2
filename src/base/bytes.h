/* Bytes on the wire are big-endian; loads and stores here need no alignment. */
#ifndef VB_BASE_BYTES_H
#define VB_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t vb_load_be16(const void *from)
{
	const uint8_t *b = from;
	return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t vb_load_be24(const void *from)
{
	const uint8_t *b = from;
	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline uint32_t vb_load_be32(const void *from)
{
	uint32_t v;
	memcpy(&v, from, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t vb_load_be64(const void *from)
{
	uint64_t v;
	memcpy(&v, from, sizeof(v));
	return __builtin_bswap64(v);
}

static inline void vb_store_be16(void *to, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(to, &v, sizeof(v));
}

static inline void vb_store_be24(void *to, uint32_t v)
{
	uint8_t *b = to;
	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

static inline void vb_store_be32(void *to, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(to, &v, sizeof(v));
}

static inline void vb_store_be64(void *to, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(to, &v, sizeof(v));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Verbena runs on little-endian machines");

#endif
