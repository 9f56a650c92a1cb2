/* Traces that a test has written are read as a job. */
#ifndef VB_TESTS_UNIT_NET_TRACE_READING_H
#define VB_TESTS_UNIT_NET_TRACE_READING_H

#include <errno.h>
#include "net/job_file.h"
#include "trace_writing.h"

static struct job_file file;
static struct job_file_options options;
static char why[500], groups_path[100];

static inline void close_job(void)
{
	job_file_free(&file);
	options = (struct job_file_options){ 0 };
}

static inline int teardown(void **state)
{
	close_job();
	remove_traces();
	if (*groups_path)
		unlink(groups_path);
	*groups_path = 0;
	return 0;
}

static inline void write_groups(const char *text)
{
	snprintf(groups_path, sizeof(groups_path), "%s/groups.json", directory);
	write_file(groups_path, text, strlen(text));
	options.groups = groups_path;
}

static inline void read_path(const char *path)
{
	why[0] = 0;
	const int error = job_file_read(&file, path, &options, why, sizeof(why));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
	assert_string_equal(file.format, "Chakra");
}

static inline void expect_refused(const char *path, const char *because)
{
	assert_int_equal(job_file_read(&file, path, &options, why, sizeof(why)), -EINVAL);
	if (!strstr(why, because))
		fail_msg("%s, without %s", why, because);
	assert_null(file.graph.operations);
	assert_null(file.where);
}

static inline void expect_note(const char *note)
{
	for (unsigned i = 0; i < file.note_count; i++)
		if (strcmp(file.notes[i], note) == 0)
			return;
	fail_msg("%u notes, without: %s", file.note_count, note);
}

static inline const struct graph_operation *operation(uint32_t number)
{
	assert_true(number < file.graph.count);
	return &file.graph.operations[number];
}

#endif
