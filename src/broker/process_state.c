/* See process_state.h. */
#include "broker/process_state.h"

#include <stdio.h>
#include <string.h>
#include "broker/proc_file.h"

enum vb_process_state process_state(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (pid <= 0 || !proc_file_read(path, text, sizeof(text)))
		return VB_PROCESS_NOT_TOLD;
	const char *state = strrchr(text, ')'); /* the name before it may contain any character */
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
