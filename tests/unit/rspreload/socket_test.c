#include "rspreload/rspreload.h"
#include "../unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

/* A listener, who asks it, and what it accepts. */
static int have_three_rsockets(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

	return bind(server, (struct sockaddr *)&address, length) || listen(server, 1) ||
	       getsockname(server, (struct sockaddr *)&address, &length) ||
	       connect(client, (struct sockaddr *)&address, length) || accept(server, NULL, NULL) < 0;
}

static void summary__counts_what_was_accepted_too(void **state)
{
	char text[1024] = "";
	int ends[2], status;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		setenv("VERBENA_STATS", "1", 1);
		exit(have_three_rsockets());
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	assert_non_null(strstr(text, "had 3 rsockets and 0 ordinary"));
}

/* A child of vfork has its parent's memory, and descriptors of its own. */
static void vfork__changes_nothing_of_the_parents(void **state)
{
	int rs = socket(AF_INET, SOCK_STREAM, 0), pipes[2], status;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(vb_rsocket_of(rs), rs);
	pid_t child = vfork();
	if (!child) {
		if (dup2(rs, pipes[0]) != pipes[0] || close(rs) || dup2(pipes[1], rs) != rs || dup(pipes[0]) < 0 ||
			fcntl(pipes[0], F_DUPFD, 100) != 100)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(vb_rsocket_of(rs), rs);
	assert_int_equal(vb_rsocket_of(pipes[0]), -1);
	assert_int_equal(close(pipes[0]), 0);
	assert_int_equal(close(pipes[1]), 0);
	assert_int_equal(close(rs), 0);
	assert_int_equal(vb_rsocket_of(rs), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(summary__counts_what_was_accepted_too),
		cmocka_unit_test(vfork__changes_nothing_of_the_parents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
