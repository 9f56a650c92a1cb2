/* A service manager that has the broker's listening sockets, and starts it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/protocol.h"

static int listen_on(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* As systemd does: from descriptor 3 on, blocking. */
static pid_t start_managed(const int fds[2])
{
	char path[4200], pid_text[32];
	snprintf(path, sizeof(path), "%s/" VB_BROKER_PROGRAM, client_libexec);
	pid_t pid = fork();
	if (pid == 0) {
		int high[2] = { dup(fds[0]), dup(fds[1]) };
		snprintf(pid_text, sizeof(pid_text), "%d", getpid());
		setenv("LISTEN_PID", pid_text, 1);
		setenv("LISTEN_FDS", "2", 1);
		dup2(high[0], 3);
		dup2(high[1], 4);
		execl(path, VB_BROKER_PROGRAM, "--foreground", NULL);
		_exit(127);
	}
	return pid;
}

void sockets_given__clients_wait_for_the_next_broker(void **state)
{
	pid_t parent, worker;
	for (unsigned order = 0; order < 2; order++) {
		int fds[2] = { listen_on(order ? VB_BROKER_ANY_VERSION : VB_BROKER_NAME),
			listen_on(order ? VB_BROKER_NAME : VB_BROKER_ANY_VERSION) };
		unsigned first = client_count;
		pid_t broker = start_managed(fds);
		start_clients(3);
		check_steering();
		find_both(&parent, &worker);
		assert_int_equal(parent, broker);
		kill(parent, SIGKILL); /* the manager starts both anew: the worker does not take its place */
		assert_int_equal(waitpid(broker, NULL, 0), broker);
		assert_true(wait_for_brokers(0, PATIENCE_S));
		usleep(300000); /* in which a client would have started one */
		assert_true(wait_for_brokers(0, 0.1));
		broker = start_managed(fds);
		start_clients(1);
		for (unsigned i = first; i < first + 3; i++)
			for (double until = seconds() + PATIENCE_S;
				clients[i].last.recoveries == 0 && seconds() < until;)
				assert_true(client_do(&clients[i], ORDER_COLLECT));
		check_steering();
		kill(broker, SIGTERM);
		assert_int_equal(waitpid(broker, NULL, 0), broker);
		close(fds[0]);
		close(fds[1]);
		assert_int_equal(tear_down(state), 0);
	}
}

void sockets_given__of_other_names_are_refused(void **state)
{
	int fds[2] = { listen_on(VB_BROKER_NAME), listen_on("verbena-broker.other") }, status;
	pid_t broker = start_managed(fds);
	assert_int_equal(waitpid(broker, &status, 0), broker);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	close(fds[0]);
	close(fds[1]);
}
