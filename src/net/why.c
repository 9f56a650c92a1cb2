/* The one place that writes error texts, so that reporting one takes a single line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "net/why.h"

int why_not(char *why, unsigned why_size, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, why_size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

int why_not_among(char *why, unsigned why_size, const char *(*name_of)(uint32_t number), const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, why_size, format, arguments);
	va_end(arguments);
	const char *name;
	for (uint32_t i = 0; (name = name_of(i)); i++) {
		const size_t used = strlen(why);
		snprintf(why + used, why_size - used, "%s %s", i ? "," : "; there are", name);
	}
	return -EINVAL;
}
