/* GOAL text, as LogGOPSim and ATLAHS write it (spcl/LogGOPSim, txt2bin.re):
 *
 *   num_ranks 2
 *   rank 0 {
 *   l1: calc 100 cpu 0
 *   l2: send 4096b to 1 tag 7 cpu 0 nic 0
 *   l2 requires l1
 *   }
 */
#include "net/job_formats.h"
#include <string.h>

static bool is_goal(const char *bytes, size_t length)
{
	static const char head[] = "num_ranks";
	return length >= sizeof(head) && memcmp(bytes, head, sizeof(head) - 1) == 0;
}

static int read_goal(struct job_file *file, struct text *text, const struct job_file_options *options)
{
	(void)file;
	(void)options;
	return text_wrong(text, "GOAL is not read yet");
}

const struct job_format job_format_goal = { "GOAL", "line", is_goal, read_goal };
