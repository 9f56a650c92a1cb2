/* See leftovers.h. */
#include "leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "host/protocol.h"

enum { ALONE_S = PATIENCE_S / 4, LEAVE_S = PATIENCE_S / 4, ALL = 256, PATH = 300 };

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

static bool is_here(const char *pid)
{
	char path[PATH], ours[100] = "", its[100] = "";
	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	return readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) > 0 && readlink(path, its, sizeof(its) - 1) > 0 &&
	       strcmp(ours, its) == 0;
}

static bool is_called(const char *pid, const char *name)
{
	char path[PATH], text[64] = "";
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	bool is_same = fgets(text, sizeof(text), file) && strncmp(text, name, strlen(name)) == 0;
	fclose(file);
	return is_same;
}

/* Processes of this namespace whose name begins so. */
static unsigned list_processes(const char *name, pid_t *found, unsigned most)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *entry; dir && (entry = readdir(dir)) && count < most;)
		if (isdigit((unsigned char)entry->d_name[0]) && is_called(entry->d_name, name) &&
			is_here(entry->d_name))
			found[count++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return count;
}

unsigned list_brokers(pid_t found[static MAX_BROKERS])
{
	return list_processes(VB_BROKER_PROGRAM, found, MAX_BROKERS);
}

pid_t parent_of(pid_t pid)
{
	char path[PATH];
	int parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
		parent = 0;
	fclose(file);
	return parent;
}

/* Lines of a file that hold text; with is_said they are printed. */
static unsigned count_lines(const char *path, const char *text, bool is_said)
{
	char line[512];
	unsigned count = 0;
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, text)) {
			count++;
			if (is_said)
				fprintf(stderr, "%s: %s", path, line);
		}
	if (file)
		fclose(file);
	return count;
}

static unsigned look_at_sockets(bool is_said)
{
	return count_lines("/proc/net/udp", ":12B7 ", is_said) + count_lines("/proc/net/udp6", ":12B7 ", is_said);
}

unsigned count_sockets(void)
{
	return look_at_sockets(false);
}

/* Both of the broker's begin like that. */
static unsigned look_at_names(bool is_said)
{
	return count_lines("/proc/net/unix", "@" VB_BROKER_ANY_VERSION, is_said);
}

/* ---- Saying ------------------------------------------------------------------------------------------------------ */

static void say_file(const char *title, pid_t pid, const char *name)
{
	char path[PATH], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	FILE *file = fopen(path, "r");
	if (file && fgets(text, sizeof(text), file))
		fprintf(stderr, "\t%s%s\n", title, strtok(text, "\n"));
	if (file)
		fclose(file);
}

static void say_descriptors(pid_t pid)
{
	char path[PATH], target[PATH];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	fprintf(stderr, "\tdescriptors:");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (length > 0)
			fprintf(stderr, " %s=%.*s", entry->d_name, (int)length, target);
	}
	fprintf(stderr, dir ? "\n" : " may not be seen\n");
	if (dir)
		closedir(dir);
}

void say_process(pid_t pid)
{
	fprintf(stderr, "%s %d, child of %d\n", pid == getpid() ? "this process" : "process", pid, parent_of(pid));
	say_file("stat: ", pid, "stat");
	say_file("waits in: ", pid, "wchan");
	say_descriptors(pid);
}

static void say_leftovers(const char *what)
{
	pid_t all[ALL];
	unsigned count = list_processes("", all, ALL);
	fprintf(stderr, "LEFT BEHIND: %s\n", what);
	look_at_sockets(true);
	look_at_names(true);
	for (unsigned i = 0; i < count; i++)
		say_process(all[i]);
}

/* ---- Clearing ---------------------------------------------------------------------------------------------------- */

/* A broker is two processes, but for the moments of its beginning, its end, and a death. */
static bool is_one_alone(void)
{
	pid_t found[MAX_BROKERS];
	for (double until = seconds() + ALONE_S; list_brokers(found) == 1; usleep(5000))
		if (seconds() > until)
			return true;
	return false;
}

/* None of them may see another die. */
static void kill_brokers(void)
{
	static const int signals[] = { SIGSTOP, SIGKILL };
	pid_t found[MAX_BROKERS];
	unsigned count = list_brokers(found);
	for (unsigned i = 0; i < 2 * count; i++)
		kill(found[i % count], signals[i / count]);
}

bool clear_leftovers(void)
{
	bool is_right = !is_one_alone();
	if (!is_right)
		say_leftovers("a process of the broker that is alone");
	for (double until = seconds() + LEAVE_S; seconds() < until; usleep(2000)) {
		pid_t found[MAX_BROKERS];
		/* A process that ends has its sockets a moment longer than its namespace. */
		if (list_brokers(found) == 0 && look_at_sockets(false) == 0 && look_at_names(false) == 0)
			return is_right;
		kill_brokers();
	}
	say_leftovers("what does not end");
	return false;
}
