/* The kernel's routing table: the local address from which a packet would go to another address. A file of its own,
 * which the tests of this room replace. */
#include "os/route.h"
#include "rdmacm/objects.h"

int vb_sockaddr_route(const struct sockaddr *remote, const struct sockaddr *local, struct sockaddr_storage *source)
{
	return vb_route_source(remote, local, source);
}
