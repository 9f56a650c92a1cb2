/* Starts a broker (helper.c) and hears whether it listens. find.c decides which of several processes starts one. */
#include "host/client/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "host/client/helper.h"
#include "host/protocol.h"
#include "os/clock.h"

#define PATIENCE_MS 10000 /* for a broker to say that it listens */

int vb_broker_fail(int error, char *why, size_t why_size, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (why_size)
		vsnprintf(why, why_size, format, arguments);
	va_end(arguments);
	return -error;
}

/* Reads report until its end, or until PATIENCE_MS is over. */
static void read_report(int report, char *text, size_t size)
{
	size_t length = 0;
	int64_t until_ns = vb_clock_ns() + PATIENCE_MS * VB_CLOCK_MS;
	struct pollfd wait = { .fd = report, .events = POLLIN };
	while (length < size - 1 && vb_clock_ns() < until_ns) {
		if (vb_clock_poll(&wait, 1, vb_clock_left_ms(until_ns)) <= 0)
			continue;
		ssize_t got = read(report, text + length, size - 1 - length);
		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	text[length] = 0;
}

/* Returns when a broker listens, ours or another that was quicker; or why there is none. */
int vb_broker_start(const char *libexec, char *why, size_t why_size)
{
	char *arguments[] = { VB_BROKER_PROGRAM, "--report-fd=3", NULL };
	char path[VB_HELPER_PATH], text[VB_BROKER_WHY_SIZE + 1];
	int report[2];
	int rc = vb_helper_find(VB_BROKER_PROGRAM, libexec, path, why, why_size);
	if (rc)
		return rc;
	if (pipe2(report, O_CLOEXEC))
		return vb_broker_fail(errno, why, why_size, "cannot start the broker: %s", strerror(errno));
	int error = vb_helper_run(path, arguments, report[1]);
	close(report[1]);
	if (error) {
		close(report[0]);
		return vb_broker_fail(error, why, why_size,
			"cannot run %s: %s; where programs may not be started, start the "
			"broker beforehand",
			path, strerror(error));
	}
	read_report(report[0], text, sizeof(text));
	close(report[0]);
	if (strcmp(text, VB_BROKER_READY) == 0 || !*text)
		return 0; /* silent: it died, or was made to; connecting tells */
	return vb_broker_fail(EADDRINUSE, why, why_size, "%s", text);
}
