/* See keeper.h.
 * Holds: children have the signal mask that `link` was started with. ^C reaches the programs, which share
 * the terminal, and does not end the link by itself: a shell is one of these programs. */
#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "os/clock.h"
#include "place.h"
#include "report.h"

#define FAR_STARTS (20 * VB_CLOCK_S)
#define FAR_ENDS   VB_CLOCK_S /* after the near one, by itself; and once more when it was asked to */

struct child {
	pid_t pid;
	bool has_ended;
	int status; /* of the exit */
};

struct keeper {
	const struct link_options *options;
	struct link_report *report;
	struct link_place places[2]; /* near, far */
	struct child near, far, relay;
	sigset_t mask; /* that `link` was started with */
	bool shows_processes, is_stopped;
	pid_t outer;
};

static volatile int relay_is_over;

static void end_relay(int signal)
{
	relay_is_over = signal;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "link: %s: %s\n", what, strerror(-error));
	return LINK_FAILED;
}

/* ---- Children ---------------------------------------------------------------------------------------------------- */

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void reap(struct keeper *keeper)
{
	struct child *children[] = { &keeper->near, &keeper->far, &keeper->relay };
	int status;

	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		for (unsigned i = 0; i < 3; i++) {
			if (children[i]->pid == pid) {
				children[i]->has_ended = true;
				children[i]->status = status_of(status);
			}
		}
	}
}

/* Waits for a child's end or a request to stop, at most that long. */
static void wait_for_news(struct keeper *keeper, int64_t ns)
{
	struct timespec timeout = { .tv_sec = ns / VB_CLOCK_S, .tv_nsec = ns % VB_CLOCK_S };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	int signal = sigtimedwait(&set, NULL, &timeout);
	keeper->is_stopped |= signal == SIGTERM || signal == SIGHUP;
	reap(keeper);
}

static void become_ordinary(const struct keeper *keeper)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	sigprocmask(SIG_SETMASK, &keeper->mask, NULL);
}

static _Noreturn void relay(const struct keeper *keeper)
{
	const int devices[2] = { keeper->places[0].device_fd, keeper->places[1].device_fd };

	signal(SIGUSR1, end_relay);
	int error = link_relay_run(
		keeper->options, devices, keeper->places[0].takes_udp_trains, keeper->report, &relay_is_over);
	_exit(error ? fail("relay", error) : 0);
}

/* Words before a command that is to run in a place. */
static void words_for(const struct keeper *keeper, unsigned place, bool is_outside, char *words, size_t size)
{
	pid_t pid = is_outside || !keeper->shows_processes ? keeper->outer : 1;
	char user[64] = "";

	if (is_outside && keeper->options->is_of_user)
		snprintf(user, sizeof(user), "-t %d -U --preserve-credentials ", (int)pid);
	snprintf(words, size, "nsenter %s--net=/proc/%d/fd/%d", user, (int)pid, keeper->places[place].namespace_fd);
}

static void set_environment(const struct keeper *keeper)
{
	char words[160];

	setenv("LINK_NEAR", LINK_NEAR_IPV4, 1);
	setenv("LINK_FAR", LINK_FAR_IPV4, 1);
	words_for(keeper, 0, false, words, sizeof(words));
	setenv("LINK_IN_NEAR", words, 1);
	words_for(keeper, 1, false, words, sizeof(words));
	setenv("LINK_IN_FAR", words, 1);
}

static _Noreturn void program(const struct keeper *keeper, unsigned place, char *const *command)
{
	int error = link_place_enter(&keeper->places[place]);

	if (error)
		_exit(fail("entering a namespace", error));
	set_environment(keeper);
	become_ordinary(keeper);
	execvp(command[0], command);
	error = -errno;
	fail(command[0], error);
	_exit(error == -ENOENT ? 127 : 126);
}

/* 0 or -errno. */
static int start(struct keeper *keeper, struct child *child, unsigned place, char *const *command)
{
	fflush(NULL);
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (child->pid > 0)
		return 0;
	if (!command)
		relay(keeper);
	program(keeper, place, command);
}

/* ---- From beginning to end --------------------------------------------------------------------------------------- */

static int make_places(struct keeper *keeper)
{
	const char *what = "";

	keeper->shows_processes = link_place_show_processes();
	for (unsigned number = 0; number < 2; number++) {
		int error = link_place_make(&keeper->places[number], number, keeper->options->mtu, &what);
		if (error)
			return fail(what, error);
	}
	int error = start(keeper, &keeper->relay, 0, NULL);
	return error ? fail("fork", error) : 0;
}

/* The keeper itself is in the far namespace, which it made last. */
static int start_far(struct keeper *keeper)
{
	char *const command[] = { "sh", "-c", (char *)keeper->options->far_command, NULL };
	int error = start(keeper, &keeper->far, 1, command);

	if (error)
		return fail("fork", error);
	int64_t until = vb_clock_ns() + FAR_STARTS;
	while (keeper->options->far_port && !link_place_listens(keeper->options->far_port)) {
		wait_for_news(keeper, 10 * VB_CLOCK_MS);
		if (keeper->is_stopped || keeper->far.has_ended || vb_clock_ns() > until) {
			fprintf(stderr, "link: the far command does not listen on TCP port %u\n",
				keeper->options->far_port);
			return LINK_FAILED;
		}
	}
	return 0;
}

static void hold(struct keeper *keeper)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	char words[160], ignored[256];

	for (unsigned place = 0; place < 2; place++) {
		words_for(keeper, place, true, words, sizeof(words));
		puts(words);
	}
	fflush(stdout);
	while (!keeper->is_stopped && !keeper->relay.has_ended) {
		if (poll(&input, 1, 0) > 0 && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0)
			return;
		wait_for_news(keeper, 50 * VB_CLOCK_MS);
	}
}

/* The exit status. */
static int run_near(struct keeper *keeper)
{
	__atomic_store_n(&keeper->report->is_begun, true, __ATOMIC_RELEASE);
	if (keeper->options->holds) {
		hold(keeper);
		return 0;
	}
	int error = start(keeper, &keeper->near, 0, keeper->options->command);
	if (error)
		return fail("fork", error);
	while (!keeper->near.has_ended && !keeper->is_stopped && !keeper->relay.has_ended)
		wait_for_news(keeper, VB_CLOCK_S);
	if (keeper->near.has_ended)
		return keeper->near.status;
	return keeper->is_stopped ? 128 + SIGTERM : LINK_FAILED;
}

static void wait_for(struct keeper *keeper, const struct child *child, int64_t ns)
{
	int64_t until = vb_clock_ns() + ns;

	while (child->pid && !child->has_ended && vb_clock_ns() < until)
		wait_for_news(keeper, 20 * VB_CLOCK_MS);
}

/* What still runs may end by itself, then is asked to, and is killed when the keeper ends. */
static void end(struct keeper *keeper)
{
	if (!keeper->is_stopped)
		wait_for(keeper, &keeper->far, FAR_ENDS);
	kill(-1, SIGTERM);
	wait_for(keeper, &keeper->near, FAR_ENDS);
	wait_for(keeper, &keeper->far, FAR_ENDS);
	kill(keeper->relay.pid, SIGUSR1);
	wait_for(keeper, &keeper->relay, FAR_ENDS);
}

static void tell(struct keeper *keeper, FILE *json)
{
	struct link_report *report = keeper->report;

	report->dropped_before[LINK_BACKWARD] = link_place_dropped();
	if (link_place_enter(&keeper->places[0]) == 0)
		report->dropped_before[LINK_FORWARD] = link_place_dropped();
	if (!keeper->options->is_quiet)
		link_report_print(report, keeper->options, stderr);
	if (json)
		link_report_print_json(report, keeper->options, json);
	fflush(NULL);
}

static void take_signals(struct keeper *keeper)
{
	sigset_t set;

	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &keeper->mask);
}

int link_keeper_run(const struct link_options *options, struct link_report *report, pid_t outer, FILE *json)
{
	struct keeper keeper = { .options = options, .report = report, .outer = outer };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_signals(&keeper);
	int status = make_places(&keeper);
	if (!status && options->far_command)
		status = start_far(&keeper);
	if (!status)
		status = run_near(&keeper);
	if (keeper.relay.pid > 0) {
		end(&keeper);
		tell(&keeper, json);
	}
	return status;
}
