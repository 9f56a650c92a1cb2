/* The best that two sleeping processes can do, each on a core of its own: they wake each other by an eventfd in epoll,
 * and copy by process_vm_readv. These are figures of the machine, not of Verbena; event mode is measured against them.
 * Usage: asleep_pair CORE CORE. Prints
 *   wake_us=N from the bell until what the sleeper then stores is seen, the median
 *   cpu=N CPU seconds of both for each GB in messages of 1 MiB, one copy each, of which every 64th is rung for
 *   calls=N and system calls, of which 954 copy */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, DEPTH = 128, EACH = 64, WAKES = 500, MESSAGES = 2048, QUIET_NS = 100000 };

static struct shared {
	_Alignas(64) _Atomic uint64_t answered; /* what the sleeper stores */
	_Alignas(64) _Atomic uint64_t done;     /* messages copied */
	_Atomic uint64_t calls;
} * shared;

struct bell {
	int fd, epoll;
};

static unsigned long calls;

static void check(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

static struct bell make_bell(void)
{
	struct bell bell = { eventfd(0, EFD_CLOEXEC), epoll_create1(EPOLL_CLOEXEC) };
	struct epoll_event event = { .events = EPOLLIN };

	check(bell.fd >= 0 && bell.epoll >= 0 && !epoll_ctl(bell.epoll, EPOLL_CTL_ADD, bell.fd, &event), "a bell");
	return bell;
}

static void ring(const struct bell *bell)
{
	calls++;
	check(!eventfd_write(bell->fd, 1), "eventfd_write");
}

static void sleep_on(const struct bell *bell)
{
	struct epoll_event event;
	eventfd_t count;

	calls += 2;
	check(epoll_wait(bell->epoll, &event, 1, -1) == 1 && !eventfd_read(bell->fd, &count), "sleeping");
}

static void run_on(const char *core)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)atoi(core), &one);
	check(!sched_setaffinity(0, sizeof(one), &one), core);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static double median_wake(const struct bell *bell)
{
	double ns[WAKES];

	for (uint64_t i = 0; i < WAKES; i++) {
		for (double quiet = now_ns() + QUIET_NS; now_ns() < quiet;)
			;
		double begin = now_ns();
		ring(bell);
		while (atomic_load(&shared->answered) != i + 1)
			;
		ns[i] = now_ns() - begin;
	}
	qsort(ns, WAKES, sizeof(*ns), by_value);
	return ns[WAKES / 2];
}

static double cpu_of(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The half that sleeps first, and copies. */
static void serve(pid_t peer, const struct bell *own, const struct bell *other, uint8_t *to, uint8_t *from)
{
	for (uint64_t i = 0; i < WAKES; i++) {
		sleep_on(own);
		atomic_store(&shared->answered, i + 1);
	}
	sleep_on(own);
	calls = 0;
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct iovec here = { to, MIB }, there = { from + i % 2 * MIB, MIB };
		calls++;
		check(process_vm_readv(peer, &here, 1, &there, 1, 0) == MIB, "process_vm_readv");
		atomic_store(&shared->done, i + 1);
		if ((i + 1) % EACH == 0)
			ring(other);
	}
	atomic_store(&shared->calls, calls);
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: asleep_pair CORE CORE\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *from = malloc(2 * MIB), *to = malloc(MIB);
	check(shared != MAP_FAILED && from && to, "memory");
	memset(from, 1, 2 * MIB);
	memset(to, 2, MIB);
	struct bell target = make_bell(), sender = make_bell();
	pid_t parent = getpid(), child = fork();
	check(child >= 0, "fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		run_on(argv[2]);
		serve(parent, &target, &sender, to, from);
		_exit(0);
	}
	run_on(argv[1]);
	double wake = median_wake(&target), cpu = cpu_of(RUSAGE_SELF);
	calls = 0;
	ring(&target);
	for (uint64_t done = 0; done < MESSAGES; done = atomic_load(&shared->done))
		sleep_on(&sender);
	cpu = cpu_of(RUSAGE_SELF) - cpu;
	check(waitpid(child, &status, 0) == child && status == 0, "the other half");
	cpu += cpu_of(RUSAGE_CHILDREN);
	double gb = (double)MESSAGES * MIB / 1e9;
	printf("wake_us=%.1f cpu=%.4f calls=%.0f\n", wake / 1e3, cpu / gb,
		(double)(calls + atomic_load(&shared->calls)) / gb);
	free(from);
	free(to);
	return 0;
}
