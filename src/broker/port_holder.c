/* See port_holder.h: the socket's inode and user are in /proc/net/udp and udp6. The process is found among the
 * descriptors of the processes that we may inspect. A kernel socket (rxe's) has no process. */
#include "broker/port_holder.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the first socket on the port; false: there is none. */
static bool find_socket(const char *table, uint16_t port, unsigned *uid, unsigned long *inode)
{
	char line[512];
	bool is_found = false;
	FILE *file = fopen(table, "re");
	if (!file)
		return false;
	while (!is_found && fgets(line, sizeof(line), file)) {
		unsigned local_port;
		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*d %lu", &local_port, uid, inode) == 3)
			is_found = local_port == port;
	}
	fclose(file);
	return is_found;
}

static bool has_descriptor(const char *pid, const char *wanted)
{
	char path[300], target[64];
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	bool is_found = false;
	for (struct dirent *entry; !is_found && (entry = readdir(dir));) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (length > 0) {
			target[length] = 0;
			is_found = strcmp(target, wanted) == 0;
		}
	}
	closedir(dir);
	return is_found;
}

/* "name (pid 12)" of a process that has the socket open. */
static bool find_process(unsigned long inode, char *name, size_t name_size)
{
	char wanted[64], path[300], command[64] = "";
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	DIR *dir = opendir("/proc");
	if (!dir)
		return false;
	bool is_found = false;
	for (struct dirent *entry; !is_found && (entry = readdir(dir));) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !has_descriptor(entry->d_name, wanted))
			continue;
		is_found = true;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		FILE *file = fopen(path, "re");
		if (file) {
			if (fgets(command, sizeof(command), file))
				command[strcspn(command, "\n")] = 0;
			fclose(file);
		}
		snprintf(name, name_size, "%s (pid %s)", command, entry->d_name);
	}
	closedir(dir);
	return is_found;
}

void port_holder_explain(uint16_t port, char *why, size_t why_size)
{
	unsigned uid;
	unsigned long inode;
	char process[400];
	if (!find_socket("/proc/net/udp6", port, &uid, &inode) && !find_socket("/proc/net/udp", port, &uid, &inode))
		snprintf(why, why_size, "UDP port %u is taken, by whom cannot be seen", port);
	else if (find_process(inode, process, sizeof(process)))
		snprintf(why, why_size, "UDP port %u is held by %.60s of uid %u; stop it to use Verbena here", port,
			process, uid);
	else if (uid == geteuid() && uid != 0)
		snprintf(why, why_size,
			"UDP port %u is held by a process of this user (uid %u) that we may not look into; "
			"stop it to use Verbena here",
			port, uid);
	else if (uid == 0)
		snprintf(why, why_size,
			"UDP port %u is held by uid 0 and no process that we may see: probably the "
			"kernel's rxe (rdma link show), or a process of root",
			port);
	else
		snprintf(why, why_size,
			"UDP port %u is held by a process of uid %u, another user: it can only be "
			"shared through a broker that root started",
			port, uid);
}
