/* api [--seed N] [--seconds S] [--threads T]
 * See fuzz.h. Within S seconds no call crashes or hangs, and each answers what its manual page allows; valid traffic
 * beside it goes on; at the end everything is destroyed, and no descriptor and no thread stays behind.
 *
 * A failure names the seed, from which each thread's own calls follow, though not how they meet. A call that does not
 * return is told with what all threads were doing. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>

enum { MOST_THREADS = 32, MADE_ONCE = 6 /* descriptors and threads: they do not add up */ };

static unsigned thread_count = 4;
static double seconds = 10;
static struct worker workers[MOST_THREADS];
static atomic_uint finished;
static const struct calls *const all[] = { &object_calls, &queue_calls, &connection_calls, &socket_calls };

/* ---- The threads ------------------------------------------------------------------------------------------------- */

static const struct call *choose(struct worker *worker)
{
	unsigned total = 0;
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (unsigned k = 0; k < all[i]->count; k++)
			total += all[i]->calls[k].weight;
	unsigned roll = below(worker, total);
	for (unsigned i = 0;; i++)
		for (unsigned k = 0; k < all[i]->count; roll -= all[i]->calls[k++].weight)
			if (roll < all[i]->calls[k].weight)
				return &all[i]->calls[k];
}

static void note_time(struct worker *worker, const struct call *call)
{
	double span = seconds_now() - atomic_load(&worker->since);
	if (span <= worker->longest)
		return;
	worker->longest = span;
	worker->slowest = call;
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;
	while (!atomic_load(&is_over)) {
		const struct call *call = choose(worker);
		atomic_store(&worker->since, seconds_now());
		atomic_store(&worker->doing, call);
		call->run(worker);
		give_back_all(worker);
		note_time(worker, call);
		atomic_fetch_add(&worker->calls, 1);
	}
	atomic_store(&worker->doing, NULL);
	atomic_fetch_add(&finished, 1);
	return NULL;
}

/* ---- Who watches ------------------------------------------------------------------------------------------------- */

static double longest_call(void)
{
	return is_sanitized() ? 60 : 20;
}

static void look_for_hangs(void)
{
	double now = seconds_now();
	bool is_hanging = false;
	for (unsigned i = 0; i < thread_count; i++)
		is_hanging |= atomic_load(&workers[i].doing) && now - atomic_load(&workers[i].since) > longest_call();
	if (!is_hanging)
		return;
	for (unsigned i = 0; i < thread_count; i++) {
		const struct call *call = atomic_load(&workers[i].doing);
		fprintf(stderr, "thread %u: %s for %.1f s\n", i, call ? call->name : "nothing",
			now - atomic_load(&workers[i].since));
	}
	fail(__FILE__, __LINE__, "a call does not return (seed %llu)", (unsigned long long)fuzz_seed);
}

static unsigned count_threads(void)
{
	unsigned count = 0;
	DIR *directory = opendir("/proc/self/task");
	REQUIRE(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

/* One of those that the adapter sends through: it has one for each slot and flow, and keeps them. */
static bool is_sender(int fd)
{
	struct sockaddr_in6 name = { 0 };
	int type = 0;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) }) == 0 && type == SOCK_DGRAM &&
	       getsockname(fd, (struct sockaddr *)&name, &(socklen_t){ sizeof(name) }) == 0 &&
	       (name.sin6_family == AF_INET || name.sin6_family == AF_INET6) && ntohs(name.sin6_port) >= 0xC000;
}

static unsigned look_at_descriptors(bool is_told)
{
	char path[64], target[128];
	unsigned count = 0;
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		if (length <= 0 || is_sender(fd))
			continue;
		count++;
		if (is_told)
			fprintf(stderr, "descriptor %d: %.*s\n", fd, (int)length, target);
	}
	return count;
}

static unsigned count_descriptors(void)
{
	return look_at_descriptors(false);
}

/* Lanes are made on the way, and stay: with a thread, some descriptors, and the end of a socket to each other one. */
static unsigned further_lanes(void)
{
	const char *lanes = getenv("VERBENA_LANES");
	return (lanes ? (unsigned)atoi(lanes) : 8) - 1;
}

static unsigned descriptors_of_lanes(void)
{
	return further_lanes() * (8 + further_lanes() + 1);
}

/* What ends in the background has its time. */
static void require_at_most(unsigned (*count)(void), unsigned most, const char *what)
{
	double began = seconds_now();
	while (count() > most) {
		if (seconds_now() - began > longest_call()) {
			look_at_descriptors(true);
			fail(__FILE__, __LINE__, "%u %s stay behind, with %u from before", count(), what, most);
		}
		sleep_ms(20);
	}
}

/* ---- The case ---------------------------------------------------------------------------------------------------- */

/* What the library makes once, it has mostly made after this. */
static void warm_up(void)
{
	atomic_store(&is_over, true);
	honest_start();
	honest_stop();
	atomic_store(&is_over, false);
}

static void sum_up(void)
{
	unsigned long calls = 0, successes = 0;
	for (unsigned i = 0; i < thread_count; i++) {
		calls += atomic_load(&workers[i].calls);
		successes += atomic_load(&workers[i].successes);
	}
	printf("  seed %llu: %lu calls of %u threads, %lu of what they asked was done\n", (unsigned long long)fuzz_seed,
		calls, thread_count, successes);
	const struct worker *slowest = &workers[0];
	for (unsigned i = 1; i < thread_count; i++)
		slowest = workers[i].longest > slowest->longest ? &workers[i] : slowest;
	printf("  the longest took %.3f s: %s\n", slowest->longest, slowest->slowest->name);
	REQUIRE(successes > 0);
}

static void anything_may_be_called(void)
{
	alarm(0); /* hangs are looked for here */
	printf("  --seed %llu --seconds %g --threads %u\n", (unsigned long long)fuzz_seed, seconds, thread_count);
	warm_up();
	unsigned fds = count_descriptors(), tasks = count_threads();
	world_open();
	honest_start();
	for (unsigned i = 0; i < thread_count; i++) {
		workers[i] = (struct worker){ .number = i, .random = fuzz_seed * MOST_THREADS + i };
		workers[i].thread = thread_start(run_worker, &workers[i]);
	}
	for (double end = seconds_now() + seconds; seconds_now() < end; sleep_ms(50))
		look_for_hangs();
	atomic_store(&is_over, true);
	while (atomic_load(&finished) < thread_count) {
		look_for_hangs();
		sleep_ms(5);
	}
	for (unsigned i = 0; i < thread_count; i++)
		thread_join(workers[i].thread);
	sum_up();
	world_close();
	honest_stop();
	require_at_most(count_descriptors, fds + MADE_ONCE + descriptors_of_lanes(), "descriptors");
	require_at_most(count_threads, tasks + MADE_ONCE + further_lanes(), "threads");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = { CASE(anything_may_be_called) };
	fuzz_seed = (uint64_t)(seconds_now() * 1e6);
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		bool is_seed =
			!strcmp(argv[i], "--seed") && sscanf(value, "%llu", (unsigned long long *)&fuzz_seed) == 1;
		bool is_time = !strcmp(argv[i], "--seconds") && sscanf(value, "%lf", &seconds) == 1;
		bool is_count = !strcmp(argv[i], "--threads") && sscanf(value, "%u", &thread_count) == 1 &&
				thread_count >= 1 && thread_count <= MOST_THREADS;
		if (!is_seed && !is_time && !is_count) {
			fprintf(stderr, "usage: api [--seed N] [--seconds S] [--threads T]\n");
			return 2;
		}
	}
	return run_cases(1, argv, CASES(cases));
}
