/* See summary.h. */
#include "base/invariant.h"
#include "host/report/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "host/call_faults.h"
#include "host/client/helper.h"
#include "host/process.h"
#include "host/report/summary_page.h"
#include "os/clock.h"
#include "os/thread.h"

#define LINE_BYTES   1024
#define COST_DIVISOR 100 /* keeping takes at most 1/100 of the time of a core */

/* Of this process. */
static struct vb_summary_page *page; /* NULL: a sudden end is not told */
static bool has_begun, has_watcher;
static sem_t is_watched; /* or cannot be */

static bool wants_json(void)
{
	return *vb_settings_get()->text[VB_SETTING_STATS_JSON];
}

/* The file's name with the process's ID in the place of %p. */
static void name_json_file(char file[VB_SUMMARY_PATH])
{
	const char *name = vb_settings_get()->text[VB_SETTING_STATS_JSON], *mark = strstr(name, "%p");

	if (mark)
		snprintf(file, VB_SUMMARY_PATH, "%.*s%d%s", (int)(mark - name), name, (int)getpid(), mark + 2);
	else
		snprintf(file, VB_SUMMARY_PATH, "%s", name);
}

/* ---- Saying ------------------------------------------------------------------------------------------------------ */

void vb_summary_add(const struct vb_summary *summary, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	summary->say(summary->user, line);
}

static void print(void *user, const char *line)
{
	struct vb_pcap *pcap = user;

	if (vb_settings_get()->stats)
		vb_log(VB_LOG_ERROR, "%s", line);
	if (pcap)
		vb_pcap_add_line(pcap, line);
}

struct vb_summary vb_summary_to_print(struct vb_pcap *pcap)
{
	static struct vb_summary_text text;
	static struct vb_json_line line;
	struct vb_summary summary = { .use = VB_SUMMARY_LAST, .say = print, .user = pcap };

	if (wants_json()) {
		vb_json_line_begin(&line, &text, true);
		summary.json = &line;
	}
	summary.has_connections = vb_connections_counters(&summary.connections);
	return summary;
}

/* One write, so that lines of several processes do not mix. A file that cannot be written is said, once a process. */
static void append_to_file(const char *file, const struct vb_summary_text *text)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);

	if (fd < 0 || syscall(SYS_write, fd, text->bytes, (size_t)text->length) != (long)text->length)
		vb_log(VB_LOG_ERROR, "VERBENA_STATS_JSON=%s: %s", file, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void vb_summary_write_json(const struct vb_summary *summary)
{
	char file[VB_SUMMARY_PATH];

	if (!summary->json || summary->use != VB_SUMMARY_LAST)
		return;
	name_json_file(file);
	append_to_file(file, summary->json->text);
}

void vb_summary_say_none_opened(void)
{
	struct vb_summary summary = vb_summary_to_print(NULL);

	vb_summary_add(&summary, "%s", VB_SUMMARY_NONE_OPENED);
	vb_call_faults_tell(&summary);
	if (!summary.json)
		return;
	vb_json_line_begin(summary.json, summary.json->text, false);
	vb_call_faults_put(summary.json);
	vb_json_line_end(summary.json);
	vb_summary_write_json(&summary);
}

/* ---- Keeping ----------------------------------------------------------------------------------------------------- */

/* As vb_log writes a line; one that does not fit is left out. */
static void append(void *user, const char *line)
{
	struct vb_summary_text *text = user;

	if (!vb_settings_get()->stats)
		return;
	assert(text->length <= sizeof(text->bytes));
	const size_t room = sizeof(text->bytes) - text->length;
	const int length = snprintf(text->bytes + text->length, room, "verbena: %s\n", line);

	if (length > 0 && (size_t)length < room)
		text->length += (uint32_t)length;
}

/* The host lanes stand still meanwhile. */
static void tell(struct vb_process *p, struct vb_summary_text *text, struct vb_summary_text *json)
{
	struct vb_summary summary = { .use = VB_SUMMARY_SO_FAR, .say = append, .user = text };
	struct vb_json_line line;

	text->length = 0;
	if (wants_json()) {
		vb_json_line_begin(&line, json, true);
		summary.json = &line;
	}
	summary.has_connections = vb_connections_counters(&summary.connections);
	vb_process_lock(p);
	vb_paths_tell(p, VB_ALL_LANES, &summary);
	vb_process_unlock(p);
}

/* The program may begin to print its summary meanwhile, at any point: then this text does not count. */
void vb_summary_keep(struct vb_process *p)
{
	if (!page)
		return;
	uint32_t before = atomic_load(&page->current);
	const uint32_t spare = before == 0;
	assert(before <= 1 || before == VB_SUMMARY_NOTHING);
	if (atomic_load(&p->is_said))
		return;
	tell(p, &page->texts[spare], &page->json[spare]);
	atomic_compare_exchange_strong(&page->current, &before, spare);
}

bool vb_summary_is_mine_to_say(struct vb_process *p)
{
	if (p && atomic_exchange(&p->is_said, true))
		return false;
	if (page)
		atomic_store(&page->current, VB_SUMMARY_NOTHING);
	return true;
}

/* ---- The watch --------------------------------------------------------------------------------------------------- */

struct watcher {
	int file; /* the page's */
	char path[VB_HELPER_PATH];
};

static void log_no_watcher(const char *why)
{
	vb_log(VB_LOG_INFO, "VERBENA_STATS: the summary is printed at an ordinary end alone: %s", why);
}

/* In the calling thread: it holds the loader's lock if it runs a constructor, and another thread would wait for
 * that. */
static bool find_watcher(struct watcher *watcher)
{
	const char *libexec = vb_settings_get()->text[VB_SETTING_LIBEXEC];
	char why[512] = "";
	int rc = vb_helper_find(VB_SUMMARY_PROGRAM, libexec, watcher->path, why, sizeof(why));

	if (rc < 0)
		log_no_watcher(*why ? why : strerror(-rc));
	return rc == 0;
}

static bool start_watcher(const struct watcher *watcher)
{
	char pid[16];
	char *arguments[] = { VB_SUMMARY_PROGRAM, pid, NULL };

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	int error = vb_helper_run(watcher->path, arguments, watcher->file);
	if (error)
		log_no_watcher(strerror(error));
	return error == 0;
}

/* Returns how long to sleep, in ms. */
static int64_t keep(void)
{
	const vb_time begin = vb_host_now();
	struct vb_process *p = vb_process_hold();

	if (p)
		vb_summary_keep(p);
	vb_process_release();
	const int64_t pause = COST_DIVISOR * vb_time_since(begin, vb_host_now()) / VB_MS;
	return pause > VB_SUMMARY_AGE_MS ? pause : VB_SUMMARY_AGE_MS;
}

/* Ends with the program. Where there is no watcher the page is dropped once that is known. */
static void *watch(void *watcher)
{
	assert(page);
	pthread_mutex_lock(&page->alive);
	const bool is_started = start_watcher(watcher);
	if (!is_started)
		pthread_mutex_unlock(&page->alive);
	has_watcher = is_started;
	sem_post(&is_watched);
	while (is_started) {
		const int64_t pause = keep();
		vb_clock_sleep(pause * VB_CLOCK_MS);
	}
	return NULL;
}

static int make_page(void)
{
	int file = vb_host_make_memory(sizeof(*page));
	void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	pthread_mutexattr_t attributes;

	if (memory == MAP_FAILED) {
		if (file >= 0)
			close(file);
		return -1;
	}
	assert(!page);
	page = memory;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&page->alive, &attributes);
	pthread_mutexattr_destroy(&attributes);
	append(&page->texts[0], VB_SUMMARY_NONE_OPENED);
	if (wants_json()) {
		struct vb_json_line line;
		vb_json_line_begin(&line, &page->json[0], false);
		vb_json_line_end(&line);
		name_json_file(page->json_file);
	}
	return file;
}

static void drop_page(void)
{
	assert(page);
	munmap(page, sizeof(*page));
	page = NULL;
}

/* The watcher becomes a child of process 1 or of a subreaper. If that is this very program, its wait() would meet the
 * watcher; and with process 1 of a container the watcher would end, too. */
static bool would_adopt_it(void)
{
	int is_subreaper = 0;

	return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) == 0 && is_subreaper);
}

static void await_watcher(struct watcher *watcher)
{
	pthread_t thread;

	sem_init(&is_watched, 0, 0);
	if (vb_thread_start(&thread, watch, watcher) < 0)
		return;
	pthread_detach(thread);
	while (sem_wait(&is_watched) < 0 && errno == EINTR)
		;
}

void vb_summary_begin(void)
{
	struct watcher watcher;
	int cancelled_before;

	if (page || has_begun || would_adopt_it() || fcntl(STDERR_FILENO, F_GETFD) < 0)
		return;
	assert(!has_watcher);
	has_begun = true;
	if (!find_watcher(&watcher) || (watcher.file = make_page()) < 0)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled_before);
	await_watcher(&watcher);
	pthread_setcancelstate(cancelled_before, NULL);
	close(watcher.file);
	if (!has_watcher)
		drop_page();
}

void vb_summary_forked(void)
{
	if (page)
		drop_page();
	has_begun = has_watcher = false;
}
