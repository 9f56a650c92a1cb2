/* See route.h. A UDP socket that is connected sends nothing, but the kernel has then looked up its route. */
#include "os/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>
#include "os/descriptor.h"

#define ANY_PORT 9 /* to connect to; a route is that of all ports */

static socklen_t length_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static struct sockaddr_storage with_port(const struct sockaddr *address, uint16_t port)
{
	struct sockaddr_storage copy = { 0 };

	memcpy(&copy, address, length_of(address));
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)&copy)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&copy)->sin6_port = htons(port);
	return copy;
}

int vb_route_source(const struct sockaddr *to, const struct sockaddr *from, struct sockaddr_storage *source)
{
	const struct sockaddr_storage target = with_port(to, ANY_PORT);
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);
	int error = 0;

	int fd = vb_descriptor_socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (from) {
		name = with_port(from, 0);
		error = bind(fd, (struct sockaddr *)&name, length_of(from));
	}
	if (!error)
		error = connect(fd, (const struct sockaddr *)&target, length_of(to));
	if (!error)
		error = getsockname(fd, (struct sockaddr *)&name, &length);
	error = error ? -errno : 0;
	close(fd);
	if (!error)
		*source = with_port((struct sockaddr *)&name, 0);
	return error;
}
