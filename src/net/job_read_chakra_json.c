/* JSON that has to do with Chakra traces, and is refused with what to do instead. */
#include "net/job_formats.h"
#include <string.h>
#include "net/json_text.h"
#include "net/why.h"

enum { BEGINNING = 4096 };

static bool has_part(const struct span *text, const char *part)
{
	const size_t length = strlen(part);
	for (size_t at = 0; at + length <= text->length; at++)
		if (memcmp(text->at + at, part, length) == 0)
			return true;
	return false;
}

/* Whether it is an object that has this key among its first ones, and, if `part` is not NULL, a string with that part.
 */
static bool find_key(const char *bytes, size_t length, const char *wanted, const char *part)
{
	struct json json = { bytes, bytes + (length < BEGINNING ? length : BEGINNING) };
	struct span key, value;
	if (!json_take(&json, '{'))
		return false;
	while (json_take_string(&json, &key) && json_take(&json, ':')) {
		const bool is_it = key.length == strlen(wanted) && memcmp(key.at, wanted, key.length) == 0;
		if (is_it && !part)
			return true;
		if (is_it && json_take_string(&json, &value))
			return has_part(&value, part);
		if (!json_pass(&json) || !json_take(&json, ','))
			return false;
	}
	return false;
}

/* PyTorch's trace of the host. */
static bool is_of_host(const char *bytes, size_t length)
{
	return find_key(bytes, length, "schema", "chakra");
}

/* Kineto's trace, of PyTorch's profiler. */
static bool is_of_profiler(const char *bytes, size_t length)
{
	return find_key(bytes, length, "schemaVersion", NULL) || find_key(bytes, length, "traceEvents", NULL);
}

/* The last is ASTRA-sim's feeder's. */
static bool is_json(const char *bytes, size_t length)
{
	return is_of_host(bytes, length) || is_of_profiler(bytes, length) ||
	       find_key(bytes, length, "workload_graph", NULL);
}

static int refuse_json(struct job_file *job, struct text *text, const struct job_file_options *options)
{
	(void)job;
	(void)options;
	const size_t length = (size_t)(text->end - text->at);
	if (is_of_profiler(text->at, length))
		return why_not(text->why, text->why_size,
			"%s: the profiler's trace (Kineto), before it is linked with PyTorch's trace of the host: run "
			"chakra_trace_link, then chakra_converter, and name the .et files that this writes",
			text->name);
	if (is_of_host(text->at, length))
		return why_not(text->why, text->why_size,
			"%s: PyTorch's trace of the host, before it is linked with that of the GPU: run "
			"chakra_trace_link, then chakra_converter, and name the .et files that this writes",
			text->name);
	return why_not(text->why, text->why_size,
		"%s: a Chakra trace as JSON (workload_graph): only protobuf's form, PREFIX.RANK.et, is read",
		text->name);
}

const struct job_format job_format_chakra_json = { "Chakra JSON", "node", is_json, refuse_json };
