/* The program verbena-summary: prints the summary of a program that ran with VERBENA_STATS=1 and ended without printing
 * it. Started by the library (host/report/summary.c) with the program's process id as its argument, its stderr, and the
 * page as descriptor 3. It holds no other descriptor of the program, and ends with it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "host/report/summary_page.h"
#include "os/clock.h"

#define PAGE_FD         3
#define READER_PATIENCE 10000 /* ms for the reader of stderr to make room */
#define NOT_WRITTEN     "verbena: VERBENA_STATS_JSON: the file of a program that was killed cannot be written\n"
#define LOOK_AGAIN_S    5 /* between two checks of the program, for kernels without robust mutexes */

/* A signal to the program's process group, or to all processes, is not meant for this process. */
static void leave_program(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	if (chdir("/"))
		_exit(1);
	int null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(1);
	syscall(SYS_close_range, PAGE_FD + 1, ~0u, 0);
	prctl(PR_SET_NAME, VB_SUMMARY_PROGRAM);
}

static struct vb_summary_page *map_page(void)
{
	struct stat status;
	if (fstat(PAGE_FD, &status) || status.st_size < (off_t)sizeof(struct vb_summary_page))
		return NULL;
	void *page = mmap(NULL, sizeof(struct vb_summary_page), PROT_READ | PROT_WRITE, MAP_SHARED, PAGE_FD, 0);
	close(PAGE_FD);
	return page == MAP_FAILED ? NULL : page;
}

/* The kernel releases a dead owner's robust mutex; emulators of a kernel may not. */
static void await_end(struct vb_summary_page *page, pid_t pid)
{
	while (vb_clock_lock(&page->alive, vb_clock_ns() + LOOK_AGAIN_S * VB_CLOCK_S) == ETIMEDOUT &&
		(kill(pid, 0) == 0 || errno != ESRCH))
		;
}

/* False: stderr has no reader. */
static bool write_line(const char *line, size_t length)
{
	while (length > 0) {
		struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
		if (poll(&room, 1, READER_PATIENCE) != 1)
			return false;
		ssize_t written = write(STDERR_FILENO, line, length);
		if (written < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		line += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return true;
}

/* A line by one write, so that lines of several processes do not mix. */
static void print(const char *text, size_t length)
{
	while (length > 0) {
		const char *end = memchr(text, '\n', length);
		size_t line = end ? (size_t)(end - text) + 1 : length;
		if (!write_line(text, line))
			return;
		text += line;
		length -= line;
	}
}

/* The program's working directory may be another by now, so the name is an absolute one if it came from verbena run. */
static void append_json(const struct vb_summary_page *page, const struct vb_summary_text *json)
{
	char file[VB_SUMMARY_PATH];
	const uint32_t length = json->length;

	if (length == 0 || length > VB_SUMMARY_BYTES)
		return;
	memcpy(file, page->json_file, sizeof(file));
	file[sizeof(file) - 1] = '\0';
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0 || write(fd, json->bytes, length) != (ssize_t)length)
		print(NOT_WRITTEN, sizeof(NOT_WRITTEN) - 1);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	/* The program waits for this first process, which ends at once. */
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0;
	leave_program();
	struct vb_summary_page *page = map_page();
	if (!page)
		return 1;
	await_end(page, (pid_t)atol(argv[1]));
	uint32_t current = atomic_load(&page->current);
	if (current > 1)
		return 0;
	uint32_t length = page->texts[current].length;
	print(page->texts[current].bytes, length < VB_SUMMARY_BYTES ? length : VB_SUMMARY_BYTES);
	append_json(page, &page->json[current]);
	return 0;
}
