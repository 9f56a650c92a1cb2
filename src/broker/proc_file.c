/* See proc_file.h. */
#include "broker/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

bool proc_file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0;
}
