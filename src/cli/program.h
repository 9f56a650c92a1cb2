/* The kind of program that a command names: whether the dynamic loader will load our library into it. */
#ifndef VB_CLI_PROGRAM_H
#define VB_CLI_PROGRAM_H

#include <limits.h>

enum vb_program_kind {
	VB_PROGRAM_DYNAMIC,        /* can be served */
	VB_PROGRAM_MISSING,        /* no such file, or not on PATH */
	VB_PROGRAM_NOT_EXECUTABLE, /* there, but may not be executed by this user */
	/* setuid, setgid or file capabilities: the loader ignores LD_LIBRARY_PATH and LD_PRELOAD */
	VB_PROGRAM_PRIVILEGED,
	VB_PROGRAM_STATIC,  /* no dynamic loader */
	VB_PROGRAM_FOREIGN, /* of another architecture or word size than our library */
};

struct vb_program {
	enum vb_program_kind kind;
	char path[PATH_MAX]; /* the file found; empty if missing */
};

/* Searches as execvp does; a script is judged by its interpreter. */
void vb_program_inspect(const char *command, struct vb_program *program);

#endif
