/* See process_state.h. */
#include "broker/process_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum vb_process_state process_state(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return VB_PROCESS_NOT_TOLD;
	text[length] = 0;
	const char *state = strrchr(text, ')'); /* its name, which may hold anything, ends there */
	switch (state && state[1] ? state[2] : 0) {
	case 'T':
	case 't':
		return VB_PROCESS_STOPPED;
	case 'Z':
	case 'X':
		return VB_PROCESS_GONE;
	case 0:
		return VB_PROCESS_NOT_TOLD;
	default:
		return VB_PROCESS_RUNS;
	}
}
