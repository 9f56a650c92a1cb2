/* See later.h. The thread that has given the lock away writes, so that a program that ends at once has said why. But it
 * may be the only one that drives the lane, and must not wait for a reader that does not read: then a thread of its own
 * writes. */
#include "base/invariant.h"
#include "host/report/later.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "os/descriptor.h"
#include "os/thread.h"

#define LINES      16
#define LINE_BYTES 512

struct vb_later {
	struct vb_later *next;
	unsigned count;
	struct {
		enum vb_log_level level;
		char text[LINE_BYTES];
	} lines[LINES];
};

void vb_log_later(struct vb_later **unsaid, enum vb_log_level level, const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	if (!*unsaid)
		*unsaid = calloc(1, sizeof(**unsaid));
	struct vb_later *later = *unsaid;
	assert(!later || later->count <= LINES);
	if (later && later->count < LINES) {
		va_start(arguments, format);
		vsnprintf(later->lines[later->count].text, LINE_BYTES, format, arguments);
		va_end(arguments);
		later->lines[later->count++].level = level;
	}
	errno = saved;
}

void vb_later_append(struct vb_later **unsaid, struct vb_later **taken)
{
	while (*taken)
		taken = &(*taken)->next;
	assert(unsaid != taken);
	*taken = *unsaid;
	*unsaid = NULL;
}

static void *say(void *taken)
{
	for (struct vb_later *later = taken, *next; later; later = next) {
		next = later->next;
		for (unsigned i = 0; i < later->count; i++)
			vb_log(later->lines[i].level, "%s", later->lines[i].text);
		free(later);
	}
	return NULL;
}

/* Not cancelled, as vb_log. */
static bool is_read(void)
{
	struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };

	return vb_descriptors_ready(&err, 1) != 0;
}

void vb_later_say(struct vb_later *taken)
{
	pthread_t thread;

	if (!taken)
		return;
	if (is_read() || vb_thread_start(&thread, say, taken) < 0)
		say(taken);
	else
		pthread_detach(thread);
}
