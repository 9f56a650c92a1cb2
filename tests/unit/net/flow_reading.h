/* Text in memory as the file "f", for readers of flows in a network of 16 endpoints. */
#ifndef VB_TESTS_UNIT_NET_FLOW_READING_H
#define VB_TESTS_UNIT_NET_FLOW_READING_H

#include <errno.h>
#include "net/flow_text.h"
#include "../unit.h"

static struct flow_list list;
static char why[200];

static inline int teardown(void **state)
{
	flow_list_free(&list);
	return 0;
}

static inline int read_bytes(const char *bytes, size_t length)
{
	/* A copy of just this size, so that sanitizers see who reads beyond it. */
	char *copy = malloc(length + !length);
	memcpy(copy, bytes, length);
	struct text text = text_of("f", copy, length, why, sizeof(why));
	why[0] = 0;
	int error = flow_list_read_text(&list, &text, 16);
	free(copy);
	return error;
}

static inline void accepted(const char *bytes, uint32_t count)
{
	uint32_t before = list.count;
	int error = read_bytes(bytes, strlen(bytes));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
	assert_int_equal(list.count, before + count);
}

static inline void refused(const char *bytes, const char *because)
{
	uint32_t before = list.count;
	assert_int_equal(read_bytes(bytes, strlen(bytes)), -EINVAL);
	assert_string_equal(why, because);
	assert_int_equal(list.count, before);
}

static inline void is_flow(uint32_t i, uint32_t src, uint32_t dst, uint64_t bytes, vb_time start, uint32_t after)
{
	const struct flow *flow = &list.flows[i];
	assert_int_equal(flow->src, src);
	assert_int_equal(flow->dst, dst);
	assert_int_equal(flow->bytes, bytes);
	assert_int_equal(flow->start, start);
	assert_int_equal(flow->waits, after != FLOW_NONE);
	for (uint32_t k = 0; k < list.wait_count; k++)
		if (list.waits[k].flow == i) {
			assert_int_equal(list.waits[k].before, after);
			assert_int_equal(list.waits[k].event, FLOW_ENDED);
		}
}

/* Every beginning of a good file, and every byte of it changed: an answer, whatever it is. */
static inline void survived(const char *good)
{
	size_t length = strlen(good);
	for (size_t i = 0; i < length; i++) {
		read_bytes(good, i);
		for (int byte = 0; byte < 256; byte += 5) {
			char changed[600];
			memcpy(changed, good, length);
			changed[i] = (char)byte;
			read_bytes(changed, length);
		}
		flow_list_cut(&list, 0);
	}
}

#endif
