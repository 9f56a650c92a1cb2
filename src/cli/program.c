/* Inspects an executable file before it runs. Reads only its headers. */
#include "cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
typedef Elf64_Ehdr elf_header;
typedef Elf64_Phdr elf_segment;
#else
#define NATIVE_CLASS ELFCLASS32
typedef Elf32_Ehdr elf_header;
typedef Elf32_Phdr elf_segment;
#endif

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_NONE /* any */
#endif

enum { SCRIPT_DEPTH = 4 }; /* interpreters of interpreters, as many as the kernel follows */

static bool is_file(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Searches PATH as execvp does: the first executable file, else the first existing one. */
static void find_on_path(const char *command, char found[PATH_MAX])
{
	const char *search = getenv("PATH");
	char candidate[PATH_MAX];

	found[0] = '\0';
	if (strchr(command, '/')) {
		if (is_file(command))
			snprintf(found, PATH_MAX, "%s", command);
		return;
	}
	for (const char *entry = search ? search : "/bin:/usr/bin"; entry;
		entry = strchr(entry, ':') ? strchr(entry, ':') + 1 : NULL) {
		int length = (int)strcspn(entry, ":");
		if (snprintf(candidate, sizeof(candidate), "%.*s%s%s", length, entry, length ? "/" : "", command) >=
			(int)sizeof(candidate))
			continue;
		if (!is_file(candidate))
			continue;
		bool is_executable = access(candidate, X_OK) == 0;
		if (is_executable || !found[0])
			memcpy(found, candidate, sizeof(candidate));
		if (is_executable)
			return;
	}
}

/* The loader's "secure execution": effective ids that differ from the real ones, or capabilities from the file. */
static bool is_privileged(const char *path)
{
	struct stat status;
	char capability[64];

	if (stat(path, &status) != 0)
		return false;
	if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
		return true;
	if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid())
		return true;
	return getuid() != 0 && getxattr(path, "security.capability", capability, sizeof(capability)) > 0;
}

static enum vb_program_kind elf_kind(int fd, const elf_header *header)
{
	elf_segment segment;

	if (header->e_ident[EI_CLASS] != NATIVE_CLASS ||
		(NATIVE_MACHINE != EM_NONE && header->e_machine != NATIVE_MACHINE))
		return VB_PROGRAM_FOREIGN;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		off_t offset = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
		if (pread(fd, &segment, sizeof(segment), offset) != (ssize_t)sizeof(segment))
			break;
		if (segment.p_type == PT_INTERP)
			return VB_PROGRAM_DYNAMIC;
	}
	return VB_PROGRAM_STATIC;
}

static enum vb_program_kind file_kind(const char *path, unsigned depth);

/* "#! /usr/bin/env python3": the interpreter decides; the program that env would start is looked up too. */
static enum vb_program_kind script_kind(const char *line, unsigned depth)
{
	char interpreter[256], argument[256], found[PATH_MAX];

	int fields = sscanf(line + 2, " %255s %255[^\n \t]", interpreter, argument);
	if (fields < 1 || depth == SCRIPT_DEPTH)
		return VB_PROGRAM_DYNAMIC; /* the kernel will report the error */
	const char *name = strrchr(interpreter, '/');
	if (fields == 2 && name && strcmp(name, "/env") == 0 && argument[0] != '-' && !strchr(argument, '=')) {
		find_on_path(argument, found);
		return found[0] ? file_kind(found, depth + 1) : VB_PROGRAM_DYNAMIC;
	}
	return is_file(interpreter) ? file_kind(interpreter, depth + 1) : VB_PROGRAM_DYNAMIC;
}

static enum vb_program_kind file_kind(const char *path, unsigned depth)
{
	union {
		elf_header header;
		char text[512];
	} start = { .text = "" };

	if (access(path, X_OK) != 0)
		return VB_PROGRAM_NOT_EXECUTABLE;
	if (is_privileged(path))
		return VB_PROGRAM_PRIVILEGED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return VB_PROGRAM_DYNAMIC; /* may be executed but not read: benefit of the doubt */
	ssize_t length = read(fd, start.text, sizeof(start.text) - 1);
	enum vb_program_kind kind = VB_PROGRAM_DYNAMIC; /* execvp gives text without #! to the shell */
	if (length >= (ssize_t)sizeof(start.header) && memcmp(start.text, ELFMAG, SELFMAG) == 0)
		kind = elf_kind(fd, &start.header);
	else if (length > 2 && start.text[0] == '#' && start.text[1] == '!')
		kind = script_kind(start.text, depth);
	close(fd);
	return kind;
}

void vb_program_inspect(const char *command, struct vb_program *program)
{
	find_on_path(command, program->path);
	program->kind = program->path[0] ? file_kind(program->path, 0) : VB_PROGRAM_MISSING;
}
