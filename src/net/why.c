/* The one place where complaints are written, so that each is one line where it arises. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "net/why.h"

int why_not(char *why, unsigned why_size, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, why_size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}
