#include "rspreload/rspreload.h"
#include "kernel_rsockets.h"
#include "../unit.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child asks for a socket twice. */
static void ask_in_child(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		refuse_rsockets(EPERM);
		_exit(socket(AF_INET, SOCK_DGRAM, 0) < 0 || socket(AF_INET, SOCK_DGRAM, 0) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void forked_child__is_said_to_get_ordinary_sockets_once(void **state)
{
	char text[1024] = "";
	int ends[2], before = dup(STDERR_FILENO);

	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	ask_in_child();
	ask_in_child();
	dup2(before, STDERR_FILENO);
	close(before);
	close(ends[1]);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	char *end = strchr(text, '\n');
	assert_non_null(strstr(text, "ordinary sockets"));
	assert_string_equal(end, "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forked_child__is_said_to_get_ordinary_sockets_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
