/* What two processes can do at best: a 64-byte entry each way through shared memory, both ends spinning, each on a core
 * of its own. A figure of the machine, not of Verbena: beside a latency it says how near to each other the cores are.
 * Prints "ring_ns=N", one way, the median of many short runs. Usage: ring_pingpong CORE CORE */
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 64, BLOCK = 500, BLOCKS = 101, WARM_UP = 10 };

struct entry {
	alignas(64) _Atomic uint64_t sequence; /* of the message that is in it; its last store */
	uint64_t payload[7];
};

struct rings {
	struct entry there[SLOTS], back[SLOTS];
};

static void put(struct entry *ring, uint64_t sequence)
{
	struct entry *entry = &ring[sequence % SLOTS];

	memset(entry->payload, (int)sequence, sizeof(entry->payload));
	atomic_store_explicit(&entry->sequence, sequence, memory_order_release);
}

static void take(struct entry *ring, uint64_t sequence)
{
	struct entry *entry = &ring[sequence % SLOTS];

	while (atomic_load_explicit(&entry->sequence, memory_order_acquire) != sequence)
		;
	volatile uint64_t last = entry->payload[6]; /* the bytes come too */
	(void)last;
}

static void run_on(const char *core)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)atoi(core), &one);
	if (sched_setaffinity(0, sizeof(one), &one)) {
		perror(core);
		exit(1);
	}
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

static void echo(struct rings *rings)
{
	for (uint64_t i = 1; i <= (uint64_t)BLOCK * (WARM_UP + BLOCKS); i++) {
		take(rings->there, i);
		put(rings->back, i);
	}
}

static double ask(struct rings *rings)
{
	double one_way[WARM_UP + BLOCKS];
	uint64_t sequence = 0;

	for (int block = 0; block < WARM_UP + BLOCKS; block++) {
		double began = now_ns();

		for (int i = 0; i < BLOCK; i++) {
			put(rings->there, ++sequence);
			take(rings->back, sequence);
		}
		one_way[block] = (now_ns() - began) / BLOCK / 2;
	}
	qsort(one_way + WARM_UP, BLOCKS, sizeof(*one_way), by_value);
	return one_way[WARM_UP + BLOCKS / 2];
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: ring_pingpong CORE CORE\n");
		return 2;
	}
	struct rings *rings = mmap(NULL, sizeof(*rings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rings == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	run_on(argv[1]);
	run_on(argv[2]); /* either may be refused: while there is nobody who would spin for ever */
	pid_t parent = getpid(), child = fork();
	if (child < 0) {
		perror("fork");
		return 1;
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			return 1;
		run_on(argv[1]);
		echo(rings);
		return 0;
	}
	printf("ring_ns=%.1f\n", ask(rings));
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}
