/* verbena-broker: shares UDP port 4791 among the processes of one network namespace (docs/broker.md). Started by the
 * first process that needs it, or by root with --foreground.
 *
 * Two processes: this one, the parent, holds the name, the connections and the sockets in its registry, and only
 * repeats the worker's changes. When the worker dies, the parent starts another; when the parent dies, the worker takes
 * its place and starts another worker. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/given.h"
#include "broker/privilege.h"
#include "broker/registry.h"
#include "broker/worker.h"
#include "host/protocol.h"
#include "os/clock.h"

#define BACKLOG             128
#define NAME_TRIES          40 /* a broker that is ending still has the name for a moment */
#define NAME_TRY_MS         5
#define QUICK_DEATHS        5 /* this many workers died within a second: the next one has to wait */
#define QUICK_DEATH_WAIT_MS 100

static volatile sig_atomic_t worker_pid;

/* SIGTERM to the parent ends both processes. */
static void on_terminate(int signal_number)
{
	if (worker_pid > 0)
		kill(worker_pid, SIGKILL);
	_exit(128 + signal_number);
}

/* The first process of a container adopts all orphans there, our own helpers too. The worker is waited for
 * elsewhere. */
static void on_child(int signal_number)
{
	int error = errno;
	siginfo_t end = { .si_pid = 0 };
	while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid > 0 && end.si_pid != worker_pid) {
		waitpid(end.si_pid, NULL, WNOHANG);
		end.si_pid = 0;
	}
	errno = error;
}

static void set_signals(void (*on_end)(int))
{
	struct sigaction action = { .sa_handler = on_end };
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* the starter's file size limit applies to clients' shared memory: it must be an error, not a signal */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void adopt_orphans(void)
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP };
	sigaction(SIGCHLD, &action, NULL);
	on_child(SIGCHLD); /* children that ended before */
}

/* Repeats the worker's changes until it is gone; returns its exit code. */
static int attend_worker(struct registry *registry, int link, pid_t pid)
{
	assert(pid > 0);
	int status = 0;
	while (registry_repeat(registry, link))
		;
	close(link);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : WORKER_ORPHANED;
}

/* Runs workers, one after the other. A worker whose parent died comes back here too. Never returns. */
static _Noreturn void run(struct registry *registry, struct worker_options options)
{
	unsigned quick_deaths = 0;
	time_t last_death = 0;
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	for (;;) {
		assert(worker_pid == 0);
		int link[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link)) {
			vb_clock_sleep(QUICK_DEATH_WAIT_MS * VB_CLOCK_MS);
			continue;
		}
		sigprocmask(SIG_BLOCK, &ends, NULL); /* until the worker's pid is known */
		pid_t pid = fork();
		if (pid == 0) {
			close(link[0]);
			set_signals(SIG_DFL);
			enum worker_end end = worker_run(registry, link[1], &options);
			close(link[1]);
			if (end != WORKER_ORPHANED || options.is_managed)
				_exit(end);
			worker_pid = 0;
			/* again: clients see the pid that called listen last, and check that it is alive */
			listen(registry->listener, BACKLOG);
			set_signals(on_terminate);
			quick_deaths = 0;
		} else if (pid > 0) {
			worker_pid = pid;
			if (getpid() == 1)
				adopt_orphans();
			sigprocmask(SIG_UNBLOCK, &ends, NULL);
			close(link[1]);
			privilege_drop();
			if (options.report >= 0)
				close(options.report);
			int end = attend_worker(registry, link[0], pid);
			worker_pid = 0;
			if (end == WORKER_LEAVES || (end == WORKER_FAILED && !registry_has_clients(registry)))
				_exit(end);
			quick_deaths = time(NULL) - last_death <= 1 ? quick_deaths + 1 : 0;
			last_death = time(NULL);
			if (quick_deaths >= QUICK_DEATHS)
				vb_clock_sleep(QUICK_DEATH_WAIT_MS * VB_CLOCK_MS);
		} else {
			close(link[0]);
			close(link[1]);
			vb_clock_sleep(QUICK_DEATH_WAIT_MS * VB_CLOCK_MS);
		}
		options.is_first = false;
		options.report = -1;
	}
}

/* ---- Starting ---------------------------------------------------------------------------------------------------- */

static void say(int report, const char *text)
{
	if (write(report, text, strlen(text)) < 0)
		return;
}

/* Makes a listening abstract socket; -errno. */
static int take_name(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, length) || listen(fd, BACKLOG)) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

/* True if a process listens on name; who: its credentials. */
static bool find_listener(const char *name, struct ucred *who)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, name), who_length = sizeof(*who);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool is_there = fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0 &&
			getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &who_length) == 0;
	if (fd >= 0)
		close(fd);
	return is_there;
}

static void explain_other(const struct ucred *who, char *why, size_t why_size)
{
	const struct passwd *user = getpwuid(who->uid);
	char name[64], pid[32] = "";
	if (user)
		snprintf(name, sizeof(name), "%s", user->pw_name);
	else
		snprintf(name, sizeof(name), "uid %u", who->uid);
	if (who->pid > 0) /* 0: it is in a pid namespace that we cannot see */
		snprintf(pid, sizeof(pid), "pid %d of ", who->pid);
	snprintf(why, why_size,
		"a broker is running already in this network namespace: %s%s; if a program started it, it leaves one "
		"second after its last client ends",
		pid, name);
}

/* Takes the broker's names in this network namespace. -EALREADY: another broker listens; why names its user. */
static int take_names(int *listener, char *why, size_t why_size)
{
	struct ucred who;
	int any = -EADDRINUSE;
	for (unsigned i = 0; i < NAME_TRIES && any == -EADDRINUSE; i++) {
		any = take_name(VB_BROKER_ANY_VERSION);
		if (any != -EADDRINUSE)
			break;
		if (find_listener(VB_BROKER_NAME, &who)) {
			explain_other(&who, why, why_size);
			return -EALREADY;
		}
		vb_clock_sleep(NAME_TRY_MS * VB_CLOCK_MS);
	}
	if (any == -EADDRINUSE && find_listener(VB_BROKER_ANY_VERSION, &who))
		snprintf(why, why_size,
			"a broker of another Verbena version is running (pid %d, uid %u); end its programs first",
			who.pid, who.uid);
	else if (any == -EADDRINUSE)
		snprintf(why, why_size, "another program has taken the abstract socket name %s", VB_BROKER_ANY_VERSION);
	else if (any < 0)
		snprintf(why, why_size, "cannot make the broker's socket: %s", strerror(-any));
	if (any < 0)
		return any;
	*listener = take_name(VB_BROKER_NAME);
	if (*listener < 0)
		snprintf(why, why_size, "cannot take the abstract socket name %s: %s", VB_BROKER_NAME,
			strerror(-*listener));
	return *listener < 0 ? *listener : 0;
}

static void try_oom_score(void)
{
	static const char *const scores[] = { "-900", "0" };
	for (unsigned i = 0; i < 2; i++) {
		int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
		bool is_set = fd >= 0 && write(fd, scores[i], strlen(scores[i])) > 0;
		if (fd >= 0)
			close(fd);
		if (is_set)
			return;
	}
}

/* An MPI rank is bound to one core and spins there, but the broker serves all. The kernel limits the mask to the
 * cpuset. */
static void use_all_cores(void)
{
	cpu_set_t all;
	memset(&all, 0xFF, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
}

/* Detaches from the process that started us: session, cores, directory, descriptors. Returns report's new number. */
static int leave_starter(int report)
{
	pid_t pid = fork();
	if (pid !=
		0) { /* wait for the process between: else it would be a zombie of an application that adopts orphans */
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	setsid();
	use_all_cores();
	if (fork() != 0)
		_exit(0);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		if (fd != report)
			dup2(null, fd);
	if (dup2(report, 3) != 3)
		_exit(1);
	return 3;
}

static void raise_limit(int resource)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

/* A set-user-ID program that starts us has its caller's real ids, and that user could signal us by them. */
static void leave_real_ids(void)
{
	gid_t group = getegid();
	uid_t user = geteuid();
	if (setresgid(group, group, group) || setresuid(user, user, user))
		_exit(1);
}

static void set_up_process(void)
{
	leave_real_ids();
	if (chdir("/"))
		_exit(1);
	umask(077);
	raise_limit(RLIMIT_NOFILE);
	raise_limit(RLIMIT_FSIZE);
	try_oom_score();
}

/* For a broker that is not root's: true if its starter admits other users. */
static bool is_any_user_welcome(void)
{
	const char *setting = secure_getenv("VERBENA_BROKER");
	return setting && strcmp(setting, "any") == 0;
}

/* For a broker in the foreground, since others have no stderr. */
static bool says_clients(void)
{
	const char *level = getenv("VERBENA_LOG");
	return level && (strcmp(level, "info") == 0 || strcmp(level, "debug") == 0);
}

static _Noreturn void start(bool stays, bool is_shared, bool is_managed, const struct trusted *trusted, int report)
{
	char why[VB_BROKER_WHY_SIZE];
	int listener = GIVEN_LISTENER;
	int rc = is_managed ? 0 : take_names(&listener, why, sizeof(why));
	if (rc)
		say(report, rc == -EALREADY && !stays ? VB_BROKER_READY : why);
	if (rc)
		_exit(rc == -EALREADY && !stays ? 0 : 1);

	assert(listener >= 0);
	static struct registry registry;
	registry_init(&registry, listener);
	if (getrandom(&registry.last_slot, 1, 0) != 1)
		registry.last_slot = 0;
	set_signals(on_terminate);
	run(&registry, (struct worker_options){ .trusted = *trusted,
			       .stays = stays,
			       .says_clients = stays && says_clients(),
			       .is_shared = is_shared,
			       .is_managed = is_managed,
			       .is_first = true,
			       .report = report });
}

/* Waits for the broker's report, and prints it on stderr if it is a failure. */
static int print_report(int report)
{
	char text[VB_BROKER_WHY_SIZE + 1];
	size_t length = 0;
	ssize_t got;
	while (length < sizeof(text) - 1 && (got = read(report, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = 0;
	if (strcmp(text, VB_BROKER_READY) == 0)
		return 0;
	fprintf(stderr, VB_BROKER_PROGRAM ": %s\n", length ? text : "died while starting");
	return 1;
}

static int usage(FILE *out, int code)
{
	fputs("usage: verbena-broker [--foreground] [--share] [--trust USER]...\n"
	      "Shares UDP port 4791 (RoCEv2) among the RDMA processes of this network namespace.\n"
	      "Verbena starts one by itself; it leaves a second after its last process.\n"
	      "\n"
	      "  --foreground   stay, in the foreground and also when nobody needs it. Started by root,\n"
	      "                 this is how several users share one host.\n"
	      "  --share        serve every user, as root's broker does; without it (or VERBENA_BROKER=any in\n"
	      "                 the environment) a broker serves its own user and root.\n"
	      "  --trust USER   let programs of USER, a name or a number, have sockets of the port: faster,\n"
	      "                 but each of them can disturb the others. Others are brought what they\n"
	      "                 receive by a forwarder.\n"
	      "  --help         print this\n",
		out);
	return code;
}

/* A user's name or number. */
static bool add_trusted(struct trusted *trusted, const char *user)
{
	char *end;
	const struct passwd *entry = getpwnam(user);
	unsigned long uid = entry ? entry->pw_uid : strtoul(user, &end, 10);
	bool is_known = entry || (*user && !*end && uid < UINT32_MAX);
	if (!is_known || trusted->count == sizeof(trusted->uids) / sizeof(trusted->uids[0])) {
		fprintf(stderr, VB_BROKER_PROGRAM ": --trust %s: %s\n", user, is_known ? "too many" : "no such user");
		return false;
	}
	trusted->uids[trusted->count++] = (uid_t)uid;
	return true;
}

int main(int argc, char **argv)
{
	struct trusted trusted = { 0 };
	bool stays = false, is_shared = is_any_user_welcome();
	int report = -1, given = given_take();
	if (given < 0) {
		fputs(VB_BROKER_PROGRAM ": the sockets that the service manager gives are not @" VB_BROKER_NAME
					" and @" VB_BROKER_ANY_VERSION "\n",
			stderr);
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--foreground") == 0)
			stays = true;
		else if (strcmp(argv[i], "--share") == 0)
			is_shared = true;
		else if (strcmp(argv[i], "--trust") == 0 && i + 1 < argc) {
			if (!add_trusted(&trusted, argv[++i]))
				return 2; /* the reason is already printed */
		} else if (sscanf(argv[i], "--report-fd=%d", &report) == 1 && report > 2)
			; /* the report goes to the process that started us */
		else
			return strcmp(argv[i], "--help") == 0 ? usage(stdout, 0) : usage(stderr, 2);
	}
	if (report < 0) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC)) {
			perror(VB_BROKER_PROGRAM);
			return 1;
		}
		pid_t pid = fork();
		if (pid < 0) {
			perror(VB_BROKER_PROGRAM);
			return 1;
		}
		if (stays ? pid == 0 : pid > 0) {
			close(ends[1]);
			if (stays && fork() != 0)
				_exit(0); /* the process that prints the report must not be a child to wait for */
			return print_report(ends[0]);
		}
		close(ends[0]);
		if (stays)
			waitpid(pid, NULL, 0);
		report = ends[1];
	}
	if (!stays)
		report = leave_starter(report);
	else
		report = dup2(report, 3) == 3 ? 3 : -1;
	syscall(SYS_close_range, given ? GIVEN_END : 4u, ~0u, 0);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	set_up_process();
	start(stays, is_shared, given, &trusted, report);
}
