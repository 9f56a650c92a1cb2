/* IP addresses of both families, as sockets and as GIDs name them. Pure. */
#include "rsocket/objects.h"

#include <string.h>

socklen_t vb_rs_address_length(const union vb_rs_address *address)
{
	switch (address->any.sa_family) {
	case AF_INET:
		return sizeof(address->ipv4);
	case AF_INET6:
		return sizeof(address->ipv6);
	default:
		return 0;
	}
}

bool vb_rs_address_equal(const union vb_rs_address *a, const union vb_rs_address *b, bool with_port)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	/* The port has the same offset in both families. */
	if (with_port && a->ipv4.sin_port != b->ipv4.sin_port)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->ipv4.sin_addr.s_addr == b->ipv4.sin_addr.s_addr;
	return !memcmp(&a->ipv6.sin6_addr, &b->ipv6.sin6_addr, sizeof(a->ipv6.sin6_addr));
}

bool vb_rs_address_convert(union vb_rs_address *address, sa_family_t family)
{
	union vb_rs_address old = *address;
	union ibv_gid gid = vb_rs_address_gid(&old);

	if (old.any.sa_family == family)
		return true;
	if (family == AF_INET && !IN6_IS_ADDR_V4MAPPED(&old.ipv6.sin6_addr))
		return false;
	memset(address, 0, sizeof(*address));
	address->any.sa_family = family;
	address->ipv4.sin_port = old.ipv4.sin_port;
	if (family == AF_INET)
		memcpy(&address->ipv4.sin_addr, gid.raw + 12, 4);
	else
		memcpy(&address->ipv6.sin6_addr, gid.raw, 16);
	return true;
}

union ibv_gid vb_rs_address_gid(const union vb_rs_address *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xFF, [11] = 0xFF } };

	if (address->any.sa_family == AF_INET)
		memcpy(gid.raw + 12, &address->ipv4.sin_addr, 4);
	else
		memcpy(gid.raw, &address->ipv6.sin6_addr, 16);
	return gid;
}

int vb_rs_copy_address(const union vb_rs_address *from, struct sockaddr *addr, socklen_t *length)
{
	if (!addr)
		return 0;
	if (!length)
		return -EFAULT;
	socklen_t full = from->any.sa_family == AF_INET ? sizeof(from->ipv4) : sizeof(from->ipv6);
	memcpy(addr, from, *length < full ? *length : full);
	*length = full;
	return 0;
}
