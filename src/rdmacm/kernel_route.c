/* The kernel's routing table: the local address from which a packet would go to another address. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "rdmacm/objects.h"

/* Connecting a UDP socket sends nothing, but makes the kernel choose the source. */
int vb_sockaddr_route(const struct sockaddr *remote, const struct sockaddr *local, struct sockaddr_storage *source)
{
	struct sockaddr_storage target, from;
	socklen_t length = sizeof(*source);
	int error = 0;

	memcpy(&target, remote, vb_sockaddr_length(remote));
	if (vb_sockaddr_port(remote) == 0)
		vb_sockaddr_set_port((struct sockaddr *)&target, 1); /* connect() requires one */
	int fd = socket(remote->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (local) {
		memcpy(&from, local, vb_sockaddr_length(local));
		vb_sockaddr_set_port((struct sockaddr *)&from, 0);
		error = bind(fd, (struct sockaddr *)&from, vb_sockaddr_length(local));
	}
	if (!error)
		error = connect(fd, (struct sockaddr *)&target, vb_sockaddr_length(remote));
	if (!error)
		error = getsockname(fd, (struct sockaddr *)source, &length);
	error = error ? -errno : 0;
	close(fd);
	return error;
}
