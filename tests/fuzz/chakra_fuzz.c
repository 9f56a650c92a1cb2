/* Any bytes as a Chakra trace of two ranks: those up to the first 0xFF 'N' are the first rank's file, those up to the
 * next a groups file, the rest is the second rank's file; without the marks both ranks have one file. It is refused
 * with a reason, or it is a job whose operations are of its ranks and that can be opened. As the times of a model's
 * operations it is refused with a reason, or has none that is too long. Nothing may be leaked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "net/graph_job.h"
#include "net/job_file.h"
#include "steps/compute_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static char directory[] = "/tmp/vb-chakra-XXXXXX", prefix[100], first[110], second[110], groups[110], why[300];

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void remove_files(void)
{
	unlink(first);
	unlink(second);
	unlink(groups);
	rmdir(directory);
}

static void make_directory(void)
{
	require(mkdtemp(directory));
	snprintf(prefix, sizeof(prefix), "%s/t", directory);
	snprintf(first, sizeof(first), "%s.0.et", prefix);
	snprintf(second, sizeof(second), "%s.1.et", prefix);
	snprintf(groups, sizeof(groups), "%s.json", prefix);
	atexit(remove_files);
}

static void write_file(const char *path, const uint8_t *bytes, size_t length)
{
	FILE *file = fopen(path, "wb");
	require(file && fwrite(bytes, 1, length, file) == length);
	require(fclose(file) == 0);
}

/* Up to the mark, which is passed, or to the end. */
static size_t part_of(const uint8_t **bytes, const uint8_t *end, const uint8_t **part)
{
	*part = *bytes;
	for (const uint8_t *at = *bytes; at + 1 < end; at++)
		if (at[0] == 0xFF && at[1] == 'N') {
			*bytes = at + 2;
			return (size_t)(at - *part);
		}
	*bytes = end;
	return (size_t)(end - *part);
}

static void check_graph(const struct graph *graph)
{
	struct graph_job job;
	require(graph->ranks == 2 && graph->count > 0);
	for (uint32_t i = 0; i < graph->count; i++)
		require(graph->operations[i].rank < 2 &&
			(i == 0 || graph->operations[i].rank >= graph->operations[i - 1].rank));
	require(graph_job_open(&job, graph, &(struct hosts){ 0 }, &(struct nccl_settings){ 0 }) == 0);
	graph_job_close(&job);
}

/* The same files as a step's compute-times. */
static void check_times(void)
{
	struct compute_trace trace;
	why[0] = 0;
	const int error = compute_trace_read(prefix, &trace, why, sizeof(why));
	require(error == 0 || (error == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
	require(error || (trace.computations >= trace.unmatched && trace.us >= trace.unmatched_us));
	require(memchr(trace.such_as, 0, sizeof(trace.such_as)));
	for (unsigned i = 0; !error && i < 2 * STEP_WORKS; i++)
		require(trace.times.of[i / 2][i % 2] <= COMPUTE_TIME_MOST);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct job_file_options options = { 0 };
	struct job_file file;
	const uint8_t *at = bytes, *part;
	if (!*prefix)
		make_directory();
	size_t size = part_of(&at, bytes + length, &part);
	write_file(first, part, size);
	if (at < bytes + length) {
		size = part_of(&at, bytes + length, &part);
		write_file(groups, part, size);
		options.groups = groups;
		size = part_of(&at, bytes + length, &part);
	}
	write_file(second, part, size);
	why[0] = 0;
	const int error = job_file_read(&file, prefix, &options, why, sizeof(why));
	require(error == 0 || (error == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
	if (error == 0)
		check_graph(&file.graph);
	else
		require(!file.graph.operations && !file.where);
	for (unsigned i = 0; i < file.note_count; i++)
		require(file.notes[i][0] && memchr(file.notes[i], 0, sizeof(file.notes[i])));
	job_file_free(&file);
	check_times();
	return 0;
}
