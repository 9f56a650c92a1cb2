/* Requests to a model: when they come, and how many tokens they have. From a file, in one of two formats:
 *
 *   CSV of Azure's traces of LLM inference (TIMESTAMP,ContextTokens,GeneratedTokens)
 *   JSON, a request a line, of Mooncake's traces ({"timestamp": ms, "input_length": ..., "output_length": ..., ...})
 *
 * Lines that begin with # are comments. Times are from the first request on. */
#ifndef NET_INFERENCE_REQUESTS_H
#define NET_INFERENCE_REQUESTS_H

#include <stdint.h>
#include "base/time.h"
#include "net/text.h"

struct inference_request {
	vb_time arrival;
	vb_time prefill;        /* how long its prefill takes; the reader's is 0 */
	uint32_t input, output; /* tokens, not 0 */
};

struct inference_requests {
	struct inference_request *list;
	uint32_t count, room;
};

/* The file's first `most`; 0: all. -EINVAL and why, with the line; -ENOMEM. Free them in every case. */
int inference_requests_read(
	struct inference_requests *requests, const char *path, uint32_t most, char *why, unsigned why_size);
/* The same of a text that is open; errors are the text's. */
int inference_requests_read_text(struct inference_requests *requests, struct text *text, uint32_t most);
/* So many, a `gap` apart on average, at random. -ENOMEM. */
int inference_requests_make(struct inference_requests *requests, uint32_t count, vb_time gap, uint32_t input,
	uint32_t output, uint64_t seed);
void inference_requests_free(struct inference_requests *requests);

#endif
