/* Numbers and addresses as a person reads them. */
#include "base/invariant.h"
#include "host/report/text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

const char *vb_text_gid(const struct vb_gid *gid, char text[VB_TEXT_GID])
{
	bool is_ipv4 = vb_gid_is_ipv4(gid);

	inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? gid->raw + 12 : gid->raw, text, VB_TEXT_GID);
	return text;
}

static const char *scaled(double value, double step, const char *const *units, unsigned count, char *text, size_t size)
{
	unsigned unit = 0;

	assert(value >= 0);
	while (unit + 1 < count && value >= step) {
		value /= step;
		unit++;
	}
	snprintf(text, size, value < 10 && unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

const char *vb_text_bytes(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };

	return scaled((double)bytes, 1000, units, 5, text, size);
}

const char *vb_text_rate(double bits, char *text, size_t size)
{
	static const char *const units[] = { "b/s", "kb/s", "Mb/s", "Gb/s" };

	return scaled(bits, 1000, units, 4, text, size);
}

const char *vb_text_span(vb_time span, char *text, size_t size)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };

	return scaled(span > 0 ? (double)span / VB_NS : 0, 1000, units, 4, text, size);
}

void vb_line_add(struct vb_line *line, const char *format, ...)
{
	va_list arguments;

	assert(line->size > 0);
	if (line->at >= line->size)
		return;
	va_start(arguments, format);
	int length = vsnprintf(line->text + line->at, line->size - line->at, format, arguments);
	va_end(arguments);
	line->at += length > 0 ? (size_t)length : 0;
}
