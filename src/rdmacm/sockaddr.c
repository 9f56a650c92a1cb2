/* Socket addresses and GIDs, which carry the same content in RoCEv2.
 * Holds: callers have asked vb_sockaddr_length, so every address is IPv4 or IPv6. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include "rdmacm/objects.h"

static const struct sockaddr_in *in4(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *)addr;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *)addr;
}

socklen_t vb_sockaddr_length(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

struct vb_gid vb_sockaddr_gid(const struct sockaddr *addr)
{
	struct vb_gid gid = vb_gid_from_ipv4(0, 0, 0, 0);
	if (addr->sa_family == AF_INET)
		memcpy(gid.raw + 12, &in4(addr)->sin_addr, 4);
	else
		memcpy(gid.raw, &in6(addr)->sin6_addr, sizeof(gid.raw));
	return gid;
}

void vb_sockaddr_fill(struct sockaddr_storage *addr, const struct vb_gid *gid, uint16_t port, uint32_t scope)
{
	memset(addr, 0, sizeof(*addr));
	if (vb_gid_is_ipv4(gid)) {
		struct sockaddr_in *to = (struct sockaddr_in *)addr;
		to->sin_family = AF_INET;
		to->sin_port = htons(port);
		memcpy(&to->sin_addr, gid->raw + 12, 4);
	} else {
		struct sockaddr_in6 *to = (struct sockaddr_in6 *)addr;
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(port);
		to->sin6_scope_id = scope;
		memcpy(&to->sin6_addr, gid->raw, sizeof(gid->raw));
	}
}

uint16_t vb_sockaddr_port(const struct sockaddr *addr)
{
	return ntohs(addr->sa_family == AF_INET ? in4(addr)->sin_port : in6(addr)->sin6_port);
}

void vb_sockaddr_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

bool vb_sockaddr_is_any(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY)
					  : IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
}

bool vb_sockaddr_is_multicast(const struct sockaddr *addr)
{
	struct vb_gid gid = vb_sockaddr_gid(addr);
	return vb_gid_is_multicast(&gid);
}

uint32_t vb_sockaddr_scope(const struct sockaddr *addr)
{
	if (addr->sa_family != AF_INET6)
		return 0;
	const struct in6_addr *ip = &in6(addr)->sin6_addr;
	return IN6_IS_ADDR_LINKLOCAL(ip) || IN6_IS_ADDR_MC_LINKLOCAL(ip) ? in6(addr)->sin6_scope_id : 0;
}
