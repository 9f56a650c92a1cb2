/* The options that an rsocket begins with. An administrator may write them into files of /etc/rdma/rsocket. */
#include "rsocket/objects.h"

#include <stdio.h>

#define DIRECTORY "/etc/rdma/rsocket/"

/* Pages of a ring cost nothing until bytes come into them. */
enum {
	RECEIVE_BYTES = 1 << 20,
	SEND_BYTES = 1 << 20,
	QUEUE = 384,
	INLINE_BYTES = 64,
	POLLING_TIME_US = 10,
	WAKE_UP_MS = 5000,
	KEEPALIVE_IDLE_S = 7200,
	KEEPALIVE_INTERVAL_S = 75,
	KEEPALIVE_COUNT = 9,
};

uint32_t vb_rs_clamp(int64_t value, uint32_t least, uint32_t most)
{
	if (value < least)
		return least;
	return value > most ? most : (uint32_t)value;
}

/* The number in the file, or `otherwise`. */
static uint32_t read_number(const char *path, uint32_t otherwise, uint32_t least, uint32_t most)
{
	long long value;
	FILE *file = fopen(path, "re");
	if (!file)
		return otherwise;
	int found = fscanf(file, "%lld", &value);
	fclose(file);
	return found == 1 && value >= 0 ? vb_rs_clamp(value, least, most) : otherwise;
}

static uint32_t even(uint32_t bytes)
{
	return bytes & ~1u;
}

static struct vb_rs_defaults defaults;

static void read_defaults(void)
{
	struct vb_rs_options *options = &defaults.options;

	options->receive_bytes =
		even(read_number(DIRECTORY "mem_default", RECEIVE_BYTES, VB_RS_BUFFER_MIN, VB_RS_BUFFER_MAX));
	options->send_bytes = read_number(DIRECTORY "wmem_default", SEND_BYTES, VB_RS_BUFFER_MIN, VB_RS_BUFFER_MAX);
	options->send_queue = read_number(DIRECTORY "sqsize_default", QUEUE, VB_RS_QUEUE_MIN, VB_RS_QUEUE_MAX);
	options->receive_queue = read_number(DIRECTORY "rqsize_default", QUEUE, VB_RS_QUEUE_MIN, VB_RS_QUEUE_MAX);
	options->inline_bytes =
		read_number(DIRECTORY "inline_default", INLINE_BYTES, VB_RS_INLINE_MIN, VB_RS_INLINE_MAX);
	options->mappings = vb_rs_mappings_round(read_number(DIRECTORY "iomap_size", 0, 0, VB_RS_MAPPINGS_MAX));
	options->linger_s = -1;
	options->keepalive_idle_s = KEEPALIVE_IDLE_S;
	options->keepalive_interval_s = KEEPALIVE_INTERVAL_S;
	options->keepalive_count = KEEPALIVE_COUNT;
	defaults.polling_time_us = read_number(DIRECTORY "polling_time", POLLING_TIME_US, 0, 1000000);
	defaults.wake_up_ms = (int)read_number(DIRECTORY "wake_up_interval", WAKE_UP_MS, 1, INT_MAX);
}

const struct vb_rs_defaults *vb_rs_defaults(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, read_defaults);
	return &defaults;
}
