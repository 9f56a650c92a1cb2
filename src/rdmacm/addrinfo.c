/* rdma_getaddrinfo: the answers of getaddrinfo, with the kind of QP and the port space that belong to them, and the
 * source address that the kernel would take. Routes are left to rdma_resolve_route: on Ethernet they need no query. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include "rdmacm/later.h"
#include "rdmacm/objects.h"

enum { KNOWN_FLAGS = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY | LATER_RAI_DNS };

/* The kinds of QPs of a port space; 0 in hints leaves the decision to the other value. */
static int settle_type(int *qp_type, int *port_space)
{
	if (!*port_space)
		*port_space = *qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	bool is_datagram_space = *port_space == RDMA_PS_UDP || *port_space == RDMA_PS_IPOIB;
	if (!*qp_type)
		*qp_type = is_datagram_space ? IBV_QPT_UD : IBV_QPT_RC;
	switch (*port_space) {
	case RDMA_PS_TCP:
		return *qp_type == IBV_QPT_UD ? EAI_SOCKTYPE : 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return *qp_type == IBV_QPT_UD ? 0 : EAI_SOCKTYPE;
	case RDMA_PS_IB:
		return 0;
	default:
		return EAI_SERVICE;
	}
}

static int copy_address(const struct sockaddr *from, socklen_t length, struct sockaddr **to, socklen_t *to_length)
{
	*to = malloc(length);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, length);
	*to_length = length;
	return 0;
}

static int copy_name(const char *from, char **to)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

/* Without a route there is no source: the caller may know a better one. */
static int find_source(struct rdma_addrinfo *info)
{
	struct sockaddr_storage source;
	if (!info->ai_dst_len || !vb_sockaddr_length(info->ai_dst_addr) ||
		vb_sockaddr_route(info->ai_dst_addr, NULL, &source))
		return 0;
	vb_sockaddr_set_port((struct sockaddr *)&source, 0);
	return copy_address((struct sockaddr *)&source, vb_sockaddr_length((struct sockaddr *)&source),
		&info->ai_src_addr, &info->ai_src_len);
}

/* Takes the ends that the name did not give from hints. */
static int add_hints(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	int error = 0;
	if (!info->ai_src_len && hints->ai_src_len)
		error = copy_address(hints->ai_src_addr, hints->ai_src_len, &info->ai_src_addr, &info->ai_src_len);
	if (!error && !info->ai_dst_len && hints->ai_dst_len && !(info->ai_flags & RAI_PASSIVE))
		error = copy_address(hints->ai_dst_addr, hints->ai_dst_len, &info->ai_dst_addr, &info->ai_dst_len);
	if (!error && !info->ai_src_len && !(info->ai_flags & RAI_PASSIVE))
		error = find_source(info);
	if (error)
		return error;
	const struct sockaddr *known = info->ai_dst_len ? info->ai_dst_addr : info->ai_src_addr;
	info->ai_family = known ? known->sa_family : hints->ai_family;
	return 0;
}

static struct rdma_addrinfo *info_create(const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = calloc(1, sizeof(*info));
	if (!info)
		return NULL;
	info->ai_flags = hints->ai_flags;
	info->ai_qp_type = hints->ai_qp_type;
	info->ai_port_space = hints->ai_port_space;
	return info;
}

static int info_from(const struct addrinfo *found, const struct rdma_addrinfo *hints, struct rdma_addrinfo **info)
{
	int error;

	*info = info_create(hints);
	if (!*info)
		return EAI_MEMORY;
	if (hints->ai_flags & RAI_PASSIVE) {
		error = copy_address(found->ai_addr, found->ai_addrlen, &(*info)->ai_src_addr, &(*info)->ai_src_len);
		if (!error)
			error = copy_name(found->ai_canonname, &(*info)->ai_src_canonname);
	} else {
		error = copy_address(found->ai_addr, found->ai_addrlen, &(*info)->ai_dst_addr, &(*info)->ai_dst_len);
		if (!error)
			error = copy_name(found->ai_canonname, &(*info)->ai_dst_canonname);
	}
	return error ? error : add_hints(*info, hints);
}

static int from_names(
	const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **list)
{
	struct addrinfo *found;
	const struct addrinfo wanted = {
		.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			    (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
		.ai_family = hints->ai_flags & RAI_FAMILY ? hints->ai_family : AF_UNSPEC,
		.ai_socktype = hints->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM,
	};
	int error = getaddrinfo(node, service, &wanted, &found);
	if (error)
		return error;
	for (const struct addrinfo *at = found; at && !error; at = at->ai_next) {
		error = info_from(at, hints, list);
		list = *list ? &(*list)->ai_next : list;
	}
	freeaddrinfo(found);
	return error;
}

/* Sets errno where it gives more detail. */
static int failure(int error)
{
	if (error == EAI_MEMORY)
		errno = ENOMEM;
	return error;
}

VB_EXPORT int rdma_getaddrinfo(
	const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	if (vb_call_fails(VB_CALL_rdma_getaddrinfo))
		return -1;
	struct rdma_addrinfo wanted = { 0 };

	if (!node && !service && !hints)
		return vb_result(-EINVAL);
	if (hints)
		wanted = *hints;
	if (wanted.ai_flags & ~KNOWN_FLAGS)
		return EAI_BADFLAGS;
	if ((wanted.ai_flags & RAI_FAMILY) && wanted.ai_family && wanted.ai_family != AF_INET &&
		wanted.ai_family != AF_INET6)
		return EAI_FAMILY;
	int error = settle_type(&wanted.ai_qp_type, &wanted.ai_port_space);
	if (error)
		return error;

	struct rdma_addrinfo *list = NULL;
	if (node || service) {
		error = from_names(node, service, &wanted, &list);
	} else {
		list = info_create(&wanted);
		error = list ? add_hints(list, &wanted) : EAI_MEMORY;
	}
	if (error) {
		rdma_freeaddrinfo(list);
		return failure(error);
	}
	*res = list;
	return 0;
}

VB_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
