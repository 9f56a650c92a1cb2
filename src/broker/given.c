/* See given.h. */
#include "broker/given.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "host/protocol.h"

#define FIRST 3 /* the manager's descriptors begin here (SD_LISTEN_FDS_START) */
#define COUNT 2

static bool is_called(int fd, const char *name)
{
	struct sockaddr_un wanted, address;
	socklen_t wanted_length = vb_abstract_address(&wanted, name), length = sizeof(address);
	int is_listening = 0;
	socklen_t option_length = sizeof(is_listening);
	return getsockname(fd, (struct sockaddr *)&address, &length) == 0 && length == wanted_length &&
	       memcmp(&address, &wanted, length) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &option_length) == 0 && is_listening;
}

static long number_of(const char *variable)
{
	const char *text = getenv(variable);
	return text ? strtol(text, NULL, 10) : 0;
}

/* A worker accepts until no client is left, so the sockets must not block. */
static bool move(int from, int to)
{
	return dup3(from, to, O_CLOEXEC) == to && fcntl(to, F_SETFL, O_NONBLOCK) == 0 && close(from) == 0;
}

int given_take(void)
{
	long count = number_of("LISTEN_PID") == getpid() ? number_of("LISTEN_FDS") : 0;
	if (count == 0)
		return 0;
	bool is_first = is_called(FIRST, VB_BROKER_NAME);
	if (count != COUNT || !is_called(is_first ? FIRST : FIRST + 1, VB_BROKER_NAME) ||
		!is_called(is_first ? FIRST + 1 : FIRST, VB_BROKER_ANY_VERSION))
		return -1;
	int high[COUNT];
	for (int i = 0; i < COUNT; i++) {
		high[i] = fcntl(FIRST + i, F_DUPFD_CLOEXEC, GIVEN_END);
		close(FIRST + i);
	}
	return move(high[!is_first], GIVEN_LISTENER) && move(high[is_first], GIVEN_ANY_VERSION) ? 1 : -1;
}
