/* The TCP connection beside the NIC: the ends meet before and after every step, and learn each other's addresses. */
#include <netdb.h>
#include <stdarg.h>
#include <sys/socket.h>
#include "verify.h"

void fail(const struct end *end, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "verify: %s, step %llu: ", end->doing ? end->doing : "start", (unsigned long long)end->step);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

void tell(const struct end *end, const void *bytes, size_t length)
{
	if (send(end->socket, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
		fail(end, "the other end has gone");
}

void hear(const struct end *end, void *bytes, size_t length)
{
	if (recv(end->socket, bytes, length, MSG_WAITALL) != (ssize_t)length)
		fail(end, "the other end has given up");
}

void exchange(const struct end *end, const void *mine, void *theirs, size_t length)
{
	tell(end, mine, length);
	hear(end, theirs, length);
}

/* Both ends have got this far, and mean the same step. */
void meet(const struct end *end)
{
	uint64_t theirs;

	exchange(end, &end->step, &theirs, sizeof(theirs));
	if (theirs != end->step)
		fail(end, "the other end is at step %llu", (unsigned long long)theirs);
}

int connect_tcp(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET, .ai_flags = AI_PASSIVE }, *found;
	int on = 1;

	if (getaddrinfo(host, port, &hints, &found))
		return -1;
	int fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (host) {
		if (connect(fd, found->ai_addr, found->ai_addrlen))
			return -1;
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1))
		return -1;
	return accept(fd, NULL, NULL);
}
