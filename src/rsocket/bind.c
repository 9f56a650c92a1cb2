/* Binding a stream to an address, and the options that its id has to know first. */
#include "rsocket/objects.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "os/descriptor.h"
#include "rdmacm/family.h"

static int set_family(struct vb_rsocket *rs)
{
	if (!rs->family && getrandom(&rs->family, sizeof(rs->family), 0) != sizeof(rs->family))
		return -errno;
	vb_id_set_family(rs->id, rs->family);
	return 0;
}

int vb_rs_set_id_options(struct vb_rsocket *rs)
{
	int on = 1, only = rs->options.is_ipv6_only;

	if (rs->options.is_reuse && rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (rs->domain == AF_INET6 &&
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only)))
		return -errno;
	return 0;
}

static bool is_ours(const struct sockaddr *addr)
{
	union vb_rs_address name = { .any.sa_family = AF_UNSPEC };

	memcpy(&name, addr, addr->sa_family == AF_INET ? sizeof(name.ipv4) : sizeof(name.ipv6));
	name.ipv4.sin_port = 0;
	int fd = vb_descriptor_socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && bind(fd, &name.any, vb_rs_address_length(&name)) == 0;
	if (fd >= 0)
		close(fd);
	return is;
}

/* librdmacm says EADDRNOTAVAIL, too, when the port is taken at all addresses. A socket says so of addresses of other
 * hosts alone. */
static int bind_error(const struct sockaddr *addr)
{
	int error = errno;
	return error == EADDRNOTAVAIL && is_ours(addr) ? -EADDRINUSE : -error;
}

int vb_rs_bind_stream(struct vb_rsocket *rs, const struct sockaddr *addr)
{
	if (rs->state != VB_RS_IDLE)
		return -EINVAL;
	int error = vb_rs_set_id_options(rs);
	if (error)
		return error;
	error = set_family(rs);
	if (error)
		return error;
	if (rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		return bind_error(addr);
	vb_rs_set_state(rs, VB_RS_BOUND);
	return 0;
}

/* Like a socket that was never bound, it gets any address and a free port. */
int vb_rs_bind_any(struct vb_rsocket *rs)
{
	union vb_rs_address any = { .any.sa_family = (sa_family_t)rs->domain };
	return rs->state == VB_RS_IDLE ? vb_rs_bind_stream(rs, &any.any) : 0;
}
