/* Jobs from files of other tools. A reader fills in the graph; the format is known by the content.
 *
 * To add a format: a file job_read_NAME.c with `is` and `read`, and its row in job_file.c. */
#ifndef NET_JOB_FILE_H
#define NET_JOB_FILE_H

#include "net/graph.h"
#include "net/text.h"

enum { JOB_FILE_NOTES = 16 };

/* Of a format that leaves it open: collectives of a rank that may be under way at once. */
enum job_streams {
	JOB_STREAM_OF_RANK,  /* one */
	JOB_STREAM_OF_GROUP, /* one of each of its groups, as with NCCL's communicators */
};

struct job_file_options {
	uint32_t gpus;         /* of the network, for files that leave the number of ranks to it; 0: unknown */
	bool heeds_processors; /* whoever plays it; otherwise a note says that cpu and nic of messages do not count */
	enum job_streams streams;
	bool heeds_priorities; /* the file's: of communications that wait for a stream, the highest is the next */
	const char *groups;    /* a file with groups of ranks, for formats that have one; NULL: none */
};

struct job_file {
	struct graph graph;
	const char *format; /* "GOAL" */
	uint32_t *where;    /* by operation: the line or node that it comes from */
	uint32_t where_room;
	const char *where_is; /* "line", "node" */
	/* Parts of the file that are not modelled, or not as it says. Each note is there once. */
	char notes[JOB_FILE_NOTES][160];
	unsigned note_count;
};

/* Reads and finishes the graph. The path is a file's, or of a Chakra trace PREFIX, for PREFIX.0.et, PREFIX.1.et and so
 * on. -EINVAL and why, with the file's name and the line or byte; -ENOMEM. Then the graph is freed, but the notes stay:
 * what was found before the error. */
int job_file_read(
	struct job_file *file, const char *path, const struct job_file_options *options, char *why, unsigned why_size);
/* The same of bytes in memory; the text's name is for errors. */
int job_file_read_text(struct job_file *file, struct text *text, const struct job_file_options *options);
void job_file_free(struct job_file *file);

/* ---- For readers ------------------------------------------------------------------------------------------------- */

struct job_format {
	const char *name, *where_is;
	/* Whether these bytes, the first of the file, are of this format. */
	bool (*is)(const char *bytes, size_t length);
	int (*read)(struct job_file *file, struct text *text, const struct job_file_options *options);
};

/* graph_add, and where the operation comes from. -ENOMEM. */
int job_file_add(struct job_file *file, const struct graph_operation *operation, uint32_t where);
__attribute__((format(printf, 2, 3))) void job_file_note(struct job_file *file, const char *format, ...);

#endif
