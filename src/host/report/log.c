/* Lines on stderr: one line, one write, so that lines of several processes do not mix. */
#include "base/invariant.h"
#include "host/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host/report/log.h"

static enum vb_log_level enabled = VB_LOG_WARN;

void vb_log_set_level(enum vb_log_level level)
{
	enabled = level;
}

void vb_log(enum vb_log_level level, const char *format, ...)
{
	char line[1024];
	int saved = errno;
	va_list arguments;

	if (level > enabled)
		return;
	int length = snprintf(line, sizeof(line), "verbena: ");
	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	if ((size_t)length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	assert(length >= 0);
	line[length++] = '\n';
	/* A system call of its own: write() is a cancellation point, and the caller may hold the host lane's mutex. */
	syscall(SYS_write, STDERR_FILENO, line, (size_t)length);
	errno = saved;
}
