/* See privilege.h. */
#include "broker/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "broker/confine.h"
#include "broker/proc_file.h"

#define USUAL_START 1024

static unsigned first_unprivileged(void)
{
	char text[32];
	if (!proc_file_read("/proc/sys/net/ipv4/ip_unprivileged_port_start", text, sizeof(text)))
		return USUAL_START;
	return (unsigned)strtoul(text, NULL, 10);
}

/* A capability counts only in our own user namespace, since every user has all in a namespace of its own. */
static bool is_of_our_namespace(pid_t pid)
{
	char path[64], ours[1024], its[1024];
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	return proc_file_read("/proc/self/uid_map", ours, sizeof(ours)) && proc_file_read(path, its, sizeof(its)) &&
	       strcmp(ours, its) == 0;
}

/* The user must still be the one that connected: the process may run a set-user-ID program by now, such as su, while
 * another process holds its connection. */
static bool has_capability(const struct client *client, unsigned capability)
{
	char path[64], text[4096];
	unsigned effective;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)client->pid);
	bool is_read = proc_file_read(path, text, sizeof(text));
	const char *uids = is_read ? strstr(text, "\nUid:") : NULL, *set = uids ? strstr(uids, "\nCapEff:") : NULL;
	return set && sscanf(uids, "\nUid: %*u %u", &effective) == 1 && effective == client->uid &&
	       strtoull(set + strlen("\nCapEff:"), NULL, 16) >> capability & 1;
}

/* True if the process is alive, so its number meant this process while /proc was read. */
static bool is_alive(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	return pidfd >= 0 && poll(&end, 1, 0) == 0;
}

bool privilege_is_needed(uint16_t port)
{
	return port != 0 && port < first_unprivileged();
}

bool privilege_may_bind(const struct client *client, uint16_t port)
{
	return client->may_bind_any || !privilege_is_needed(port) || privilege_may_bind_any(client);
}

bool privilege_may_bind_any(const struct client *client)
{
	if (client->uid == 0)
		return true;
	return client->pid > 0 && has_capability(client, CAP_NET_BIND_SERVICE) && is_of_our_namespace(client->pid) &&
	       is_alive(client->pidfd);
}

void privilege_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	for (int capability = 0; capability <= 63; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_capset, &header, none);
	confine();
}
