/* What is written to stderr, for tests that have listen_in and listen_no_more as setup and teardown. */
#ifndef VB_TESTS_HOST_HEARD_H
#define VB_TESTS_HOST_HEARD_H

#include <fcntl.h>
#include <unistd.h>
#include "../unit.h"

static char said[65536];
static int pipe_fds[2], saved_stderr;

static int listen_in(void **state)
{
	saved_stderr = dup(STDERR_FILENO);
	if (pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC) < 0)
		return -1;
	dup2(pipe_fds[1], STDERR_FILENO);
	return 0;
}

static int listen_no_more(void **state)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pipe_fds[0]);
	return close(pipe_fds[1]);
}

/* What was said since the last time. */
static const char *heard(void)
{
	ssize_t length = read(pipe_fds[0], said, sizeof(said) - 1);
	said[length > 0 ? length : 0] = '\0';
	return said;
}

#endif
