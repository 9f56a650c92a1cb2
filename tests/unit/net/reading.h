/* Text in memory as the file "f", for readers of topologies. */
#ifndef VB_TESTS_UNIT_NET_READING_H
#define VB_TESTS_UNIT_NET_READING_H

#include <errno.h>
#include "net/topology_text.h"
#include "paths.h"

static struct network network;
static struct hosts hosts;
static char why[200];
static const struct topology like = { .profile = { .name = "p", .latency = 5, .port_bytes = 9 },
	.nic = { .name = "n" } };

static inline int teardown(void **state)
{
	network_free(&network);
	return 0;
}

static inline int read_bytes(const char *bytes, size_t length)
{
	teardown(NULL);
	/* A copy of just this size, so that sanitizers see who reads beyond it. */
	char *copy = malloc(length + !length);
	memcpy(copy, bytes, length);
	struct text text = text_of("f", copy, length, why, sizeof(why));
	why[0] = 0;
	int error = topology_read_text(&text, &like, &network, &hosts);
	free(copy);
	return error;
}

static inline void accepted(const char *bytes)
{
	int error = read_bytes(bytes, strlen(bytes));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
}

static inline void refused(const char *bytes, const char *because)
{
	assert_int_equal(read_bytes(bytes, strlen(bytes)), -EINVAL);
	assert_string_equal(why, because);
	assert_null(network.links);
}

#endif
