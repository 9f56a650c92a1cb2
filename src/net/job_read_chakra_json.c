/* JSON that has to do with Chakra traces, and is refused with what to do instead. */
#include "net/job_formats.h"
#include <string.h>
#include "net/json_text.h"
#include "net/why.h"

enum { BEGINNING = 4096 };

/* The object's first keys tell: "schema" with "...chakra..." is a host trace of PyTorch, "workload_graph" what
 * ASTRA-sim's feeder takes. */
static bool find_key(const char *bytes, size_t length, const char *wanted)
{
	struct json json = { bytes, bytes + (length < BEGINNING ? length : BEGINNING) };
	struct span key, value;
	if (!json_take(&json, '{'))
		return false;
	while (json_take_string(&json, &key) && json_take(&json, ':')) {
		const bool is_it = key.length == strlen(wanted) && memcmp(key.at, wanted, key.length) == 0;
		if (is_it && wanted[0] == 'w')
			return true;
		if (is_it && json_take_string(&json, &value)) {
			for (size_t i = 0; i + 6 <= value.length; i++)
				if (memcmp(value.at + i, "chakra", 6) == 0)
					return true;
			return false;
		}
		if (!json_pass(&json) || !json_take(&json, ','))
			return false;
	}
	return false;
}

static bool is_json(const char *bytes, size_t length)
{
	return find_key(bytes, length, "schema") || find_key(bytes, length, "workload_graph");
}

static int refuse_json(struct job_file *job, struct text *text, const struct job_file_options *options)
{
	(void)job;
	(void)options;
	if (find_key(text->at, (size_t)(text->end - text->at), "schema"))
		return why_not(text->why, text->why_size,
			"%s: PyTorch's trace of the host, before it is linked with that of the GPU: run "
			"chakra_trace_link, then chakra_converter, and name the .et files that this writes",
			text->name);
	return why_not(text->why, text->why_size,
		"%s: a Chakra trace as JSON (workload_graph): only protobuf's form, PREFIX.RANK.et, is read",
		text->name);
}

const struct job_format job_format_chakra_json = { "Chakra JSON", "node", is_json, refuse_json };
