/* See json_line.h. */
#include "host/report/json_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "base/invariant.h"

void vb_json_line_add(struct vb_json_line *line, const char *format, ...)
{
	struct vb_summary_text *text = line->text;
	va_list arguments;

	assert(text->length <= sizeof(text->bytes));
	const size_t room = sizeof(text->bytes) - text->length;
	va_start(arguments, format);
	const int length = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= room)
		line->is_cut = true;
	else
		text->length += (uint32_t)length;
}

/* A program may have any name: what is not plain becomes a question mark. */
static void add_name(struct vb_json_line *line, const char *name)
{
	for (; *name; name++) {
		const bool is_plain = *name >= ' ' && *name <= '~' && *name != '"' && *name != '\\';
		vb_json_line_add(line, "%c", is_plain ? *name : '?');
	}
}

void vb_json_line_begin(struct vb_json_line *line, struct vb_summary_text *text, bool has_opened)
{
	*line = (struct vb_json_line){ .text = text };
	text->length = 0;
	vb_json_line_add(line, "{\"program\":\"");
	add_name(line, program_invocation_short_name);
	vb_json_line_add(line, "\",\"pid\":%d,\"opened\":%s", (int)getpid(), has_opened ? "true" : "false");
}

void vb_json_line_counters(
	struct vb_json_line *line, const char *name, const char *const *names, const uint64_t *values, unsigned count)
{
	vb_json_line_add(line, ",\"%s\":{", name);
	for (unsigned i = 0; i < count; i++)
		vb_json_line_add(line, "%s\"%s\":%llu", i ? "," : "", names[i], (unsigned long long)values[i]);
	vb_json_line_add(line, "}");
}

void vb_json_line_end(struct vb_json_line *line)
{
	vb_json_line_add(line, "}\n");
	if (line->is_cut)
		line->text->length = 0;
}
