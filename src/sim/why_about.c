/* See why_about.h. */
#include "sim/why_about.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int why_about(char *why, size_t size, const char *format, ...)
{
	char said[320], about[200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(about, sizeof(about), format, arguments);
	va_end(arguments);
	snprintf(said, sizeof(said), "%s", why);
	snprintf(why, size, "%s: %s", about, said);
	return -EINVAL;
}
