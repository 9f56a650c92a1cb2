/* A GID: sixteen bytes that are an IPv6 address; IPv4 is mapped as ::ffff:a.b.c.d. In RoCEv2 it is the IP address. */
#ifndef VB_BASE_GID_H
#define VB_BASE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct vb_gid {
	uint8_t raw[16];
};

static inline bool vb_gid_equal(const struct vb_gid *a, const struct vb_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

static inline bool vb_gid_is_ipv4(const struct vb_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static inline bool vb_gid_is_zero(const struct vb_gid *gid)
{
	static const struct vb_gid zero;
	return vb_gid_equal(gid, &zero);
}

static inline bool vb_gid_is_multicast(const struct vb_gid *gid)
{
	return vb_gid_is_ipv4(gid) ? (gid->raw[12] & 0xf0) == 0xe0 : gid->raw[0] == 0xff;
}

static inline bool vb_gid_is_loopback(const struct vb_gid *gid)
{
	static const struct vb_gid ipv6 = { { [15] = 1 } };
	return vb_gid_is_ipv4(gid) ? gid->raw[12] == 127 : vb_gid_equal(gid, &ipv6);
}

static inline struct vb_gid vb_gid_from_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct vb_gid){ { [10] = 0xff, [11] = 0xff, [12] = a, [13] = b, [14] = c, [15] = d } };
}

#endif
