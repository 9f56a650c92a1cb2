/* The one place that writes error texts, so that reporting one takes a single line. */
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
