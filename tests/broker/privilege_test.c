/* Ports that take a privilege, and the broker that has none. */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "raw.h"

static int bind_port(int fd, uint32_t number, uint16_t port_space, uint16_t port)
{
	const struct vb_message message = { .kind = VB_MESSAGE_BIND,
		.request = 4,
		.binding = { .number = number, .port_space = port_space, .port = port } };
	assert_int_equal(vb_message_send(fd, &message, NULL), 0);
	return answer_of(fd);
}

/* A process of that user that connects, waits, and ends when link is closed; it may get a user namespace of its own. */
static int connect_from_process(uid_t uid, bool with_namespace, int *link)
{
	int ends[2], fd = -1;
	char byte;
	unsigned count;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	if (fork() == 0) {
		close(ends[0]);
		if (setgid(uid) || setuid(uid) || (with_namespace && unshare(CLONE_NEWUSER)))
			_exit(1);
		fd = connect_raw();
		vb_pass_send(ends[1], "", 1, &fd, 1, 0);
		_exit(recv(ends[1], &byte, 1, 0) != 0);
	}
	close(ends[1]);
	*link = ends[0];
	return vb_pass_receive(ends[0], &byte, 1, &fd, 1, &count, 0) ? -1 : fd;
}

void ports__below_1024_take_a_privilege(void **state)
{
	static const uint16_t spaces[] = { VB_CM_PS_TCP, VB_CM_PS_UDP, VB_CM_PS_IPOIB, VB_CM_PS_IB };
	int link;
	if (!is_root())
		skip();
	start_clients(1);
	int user = connect_from_process(1001, false, &link), root = connect_raw();
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(bind_port(root, i, spaces[i], 1023), 0);
		assert_int_equal(bind_port(user, i, spaces[i], 1022), EACCES);
		assert_int_equal(bind_port(user, 10 + i, spaces[i], 1024), 0);
		assert_int_equal(bind_port(user, 20 + i, spaces[i], 0), 0);
	}
	close(user);
	close(root);
	close(link);
}

/* Who makes a user namespace has all capabilities, in it. */
void ports__below_1024_are_not_for_root_of_another_namespace(void **state)
{
	int link;
	if (!is_root())
		skip();
	start_clients(1);
	int user = connect_from_process(1001, true, &link);
	if (user < 0) {
		print_message("skipped: no user namespace may be made here\n");
		skip();
	}
	assert_int_equal(bind_port(user, 1, VB_CM_PS_TCP, 1022), EACCES);
	close(user);
	close(link);
}

/* By a user's process that was given it, as a service is. */
void ports__below_1024_are_for_who_has_the_capability(void **state)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	if (!is_root())
		skip();
	start_clients(1);
	assert_int_equal(seteuid(1001), 0);
	int user = connect_raw();
	assert_int_equal(bind_port(user, 1, VB_CM_PS_TCP, 1021), EACCES);
	assert_int_equal(syscall(SYS_capget, &header, sets), 0);
	sets[0].effective |= 1u << CAP_NET_BIND_SERVICE;
	assert_int_equal(syscall(SYS_capset, &header, sets), 0);
	assert_int_equal(bind_port(user, 1, VB_CM_PS_TCP, 1021), 0);
	assert_int_equal(seteuid(0), 0);
	close(user);
}

/* Who has connected, and left the connection to somebody else before it runs su, say. */
void ports__below_1024_are_not_for_who_runs_a_program_of_root(void **state)
{
	if (!is_root())
		skip();
	start_clients(1);
	int fd = connect_as(1001);
	assert_welcome(fd);
	assert_int_equal(bind_port(fd, 1, VB_CM_PS_TCP, 80), EACCES);
	close(fd);
}

static unsigned long long status_of(pid_t pid, const char *name)
{
	char path[64], line[256];
	unsigned long long value = ~0ull;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoull(line + strlen(name), NULL, 16);
	fclose(file);
	return value;
}

void broker__has_no_privileges_and_few_system_calls(void **state)
{
	pid_t both[2];
	start_clients(2);
	for (unsigned round = 0; round < 3; round++) { /* the first, and those who take a dead one's place */
		find_both(&both[0], &both[1]);
		usleep(50000);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(status_of(both[i], "CapEff:"), 0);
			assert_int_equal(status_of(both[i], "CapPrm:"), 0);
			assert_int_equal(status_of(both[i], "NoNewPrivs:"), 1);
			assert_int_equal(status_of(both[i], "Seccomp:"), IS_SANITIZED ? 0 : 2);
		}
		kill(both[round % 2], SIGKILL);
		find_both_without(both[round % 2], &both[0], &both[1]);
	}
	check_steering();
}
