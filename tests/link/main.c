/* link: two network namespaces joined by a link of a rate, a delay and faults. --help says how it is used.
 *
 *   main.c      the process that a person starts: it waits for the keeper, and takes it along when it ends
 *   keeper.c    the first process of a PID namespace: makes all, starts all, ends all
 *   place.c     namespaces and their TUN devices
 *   relay.c     the process that moves packets from one device to the other
 *   cut.c, channel.c, timeline.c    a train cut into packets; what becomes of each; when it is delivered
 *   join.c                          packets that are delivered at one time, joined again
 *   options.c, report.c             what is asked, and what is told */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "keeper.h"
#include "place.h"

static volatile sig_atomic_t keeper_pid;

static void pass_on(int signal)
{
	if (keeper_pid > 0)
		kill(keeper_pid, SIGTERM);
}

/* Without SA_RESTART the wait would end at once, and there is nothing to do but to wait again. */
static void take_signals(void)
{
	struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };

	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "link: %s: %s\n", what, strerror(error));
	return LINK_FAILED;
}

/* Writes the process ID of the keeper into the pipe, which the keeper waits for. */
static int keep(const struct link_options *options, struct link_report *report, FILE *json)
{
	int fds[2], status;
	pid_t outer;

	if (pipe(fds))
		return fail("pipe", errno);
	pid_t pid = fork();
	if (pid < 0)
		return fail("fork", errno);
	if (pid == 0) {
		close(fds[1]);
		if (read(fds[0], &outer, sizeof(outer)) != sizeof(outer))
			_exit(LINK_FAILED);
		close(fds[0]);
		_exit(link_keeper_run(options, report, outer, json));
	}
	keeper_pid = pid;
	take_signals();
	close(fds[0]);
	if (write(fds[1], &pid, sizeof(pid)) != sizeof(pid))
		return fail("pipe", errno);
	close(fds[1]);
	if (waitpid(pid, &status, 0) < 0)
		return fail("wait", errno);
	return WIFEXITED(status) ? WEXITSTATUS(status) : LINK_FAILED;
}

static int run(struct link_options *options, FILE *json)
{
	const char *what = "";
	struct link_report *report =
		mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (report == MAP_FAILED)
		return fail("memory", errno);
	options->is_of_user = geteuid() != 0;
	int error = link_place_leave(&what);
	return error ? fail(what, -error) : keep(options, report, json);
}

int main(int argc, char **argv)
{
	struct link_options options;
	char why[256];
	FILE *json = NULL;

	if (!link_options_parse(&options, argc, argv, why, sizeof(why))) {
		fprintf(stderr, "link: %s\n", why);
		return LINK_FAILED;
	}
	if (options.shows_help) {
		fputs(link_help, stdout);
		return 0;
	}
	if (options.json)
		json = strcmp(options.json, "-") == 0 ? stdout : fopen(options.json, "we");
	if (options.json && !json)
		return fail(options.json, errno);
	return run(&options, json);
}
