/* See job_file.h. */
#include "net/job_file.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/grow.h"
#include "net/job_formats.h"
#include "net/why.h"

int job_file_add(struct job_file *file, const struct graph_operation *operation, uint32_t where)
{
	if (!grow_by_one(&file->where, &file->where_room, file->graph.count, sizeof(*file->where)))
		return -ENOMEM;
	file->where[file->graph.count] = where;
	return graph_add(&file->graph, operation);
}

void job_file_note(struct job_file *file, const char *format, ...)
{
	char note[sizeof(file->notes[0])];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	for (unsigned i = 0; i < file->note_count; i++)
		if (strcmp(file->notes[i], note) == 0)
			return;
	if (file->note_count < JOB_FILE_NOTES)
		memcpy(file->notes[file->note_count++], note, sizeof(note));
}

static void name_operation(void *user, uint32_t operation, char *text, unsigned size)
{
	const struct job_file *file = user;
	snprintf(text, size, "%s %u of rank %u", file->where_is, file->where[operation],
		file->graph.operations[operation].rank);
}

static void free_graph(struct job_file *file)
{
	graph_free(&file->graph);
	free(file->where);
	file->where = NULL;
	file->where_room = 0;
}

static int read_as(struct job_file *file, const struct job_format *format, struct text *text,
	const struct job_file_options *options)
{
	char why[500];
	file->format = format->name;
	file->where_is = format->where_is;
	int error = format->read(file, text, options);
	if (error)
		return error;
	if (file->graph.count == 0)
		return why_not(text->why, text->why_size, "%s: it has no operations", text->name);
	const struct graph_names names = { name_operation, file };
	error = graph_finish(&file->graph, &names, why, sizeof(why));
	if (error == -EINVAL)
		why_not(text->why, text->why_size, "%s: %s", text->name, why);
	return error;
}

static int find_format(const struct text *text, const struct job_format **format)
{
	static const struct job_format *const formats[] = { &job_format_goal, &job_format_chakra_json,
		&job_format_chakra, &job_format_aicb };
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i]->is(text->at, (size_t)(text->end - text->at))) {
			*format = formats[i];
			return 0;
		}
	if (text->at == text->end)
		return why_not(text->why, text->why_size, "%s: it is empty", text->name);
	return why_not(text->why, text->why_size,
		"%s: no job: it is not GOAL text (num_ranks N, rank 0 { ... }), nor a Chakra trace (PREFIX.RANK.et), "
		"nor AICB's text (HYBRID_TRANSFORMER_FWD_IN_BCKWD, MICRO)",
		text->name);
}

static int open_text(
	struct text *text, const char *path, const struct job_format **format, char *why, unsigned why_size)
{
	const bool is_trace = job_chakra_is_file_name(path);
	const int error = is_trace ? 0 : text_open(text, path, why, why_size);
	if (!is_trace && !(error == -EINVAL && job_chakra_is_prefix(path)))
		return error;
	if (why_size > 0)
		why[0] = 0; /* that there is no file of this name is no error */
	*text = text_of(path, "", 0, why, why_size);
	*format = &job_format_chakra;
	return 0;
}

int job_file_read_text(struct job_file *file, struct text *text, const struct job_file_options *options)
{
	const struct job_format *format = NULL;
	*file = (struct job_file){ 0 };
	int error = find_format(text, &format);
	if (!error)
		error = read_as(file, format, text, options);
	if (error)
		free_graph(file);
	return error;
}

int job_file_read(
	struct job_file *file, const char *path, const struct job_file_options *options, char *why, unsigned why_size)
{
	const struct job_format *format = NULL;
	struct text text;
	*file = (struct job_file){ 0 };
	int error = open_text(&text, path, &format, why, why_size);
	if (error)
		return error;
	if (!format) {
		error = job_file_read_text(file, &text, options);
	} else {
		error = read_as(file, format, &text, options);
		if (error)
			free_graph(file);
	}
	text_close(&text);
	return error;
}

void job_file_free(struct job_file *file)
{
	free_graph(file);
	*file = (struct job_file){ 0 };
}
