/* For tests of user ids: a user namespace that maps one id. By root alone, for it writes the map. */
#ifndef VB_TESTS_USER_NAMESPACE_H
#define VB_TESTS_USER_NAMESPACE_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool write_text(const char *path, const char *text, size_t length)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = file >= 0 && write(file, text, length) == (ssize_t)length;

	if (file >= 0)
		close(file);
	return is_written;
}

/* In the child that is to have it: becomes the user `outside` of the parent's namespace, in a new one that calls it
 * `inside` and maps nobody else. False where that is not allowed. */
static inline bool own_user_namespace(unsigned inside, unsigned outside)
{
	char path[64], map[64], byte = 0;
	int asked[2], status;

	if (pipe2(asked, O_CLOEXEC))
		return false;
	pid_t self = getpid(), writer = fork();
	if (writer == 0) { /* stays in the parent's namespace, as root */
		if (read(asked[0], &byte, 1) != 1)
			_exit(1);
		int length = snprintf(map, sizeof(map), "%u %u 1\n", inside, outside);
		snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)self);
		bool is_mapped = write_text(path, map, (size_t)length);
		snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)self);
		_exit(is_mapped && write_text(path, map, (size_t)length) ? 0 : 1);
	}
	bool is_made = writer > 0 && unshare(CLONE_NEWUSER) == 0 && write(asked[1], &byte, 1) == 1;
	close(asked[0]);
	close(asked[1]);
	return writer > 0 && waitpid(writer, &status, 0) == writer && is_made && status == 0 &&
	       setresgid(inside, inside, inside) == 0 && setresuid(inside, inside, inside) == 0;
}

#endif
