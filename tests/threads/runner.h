/* Cases that each have a process of their own, second processes, and what is asked about time and memory. Knows nothing
 * of verbs, so that programs which load the library late can use it too.
 *
 * A case that fails says where and aborts, whichever of its threads found it out. */
#ifndef VB_TESTS_THREADS_RUNNER_H
#define VB_TESTS_THREADS_RUNNER_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

_Noreturn void fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define REQUIRE(claim)                                                                                                 \
	do {                                                                                                           \
		if (!(claim))                                                                                          \
			fail(__FILE__, __LINE__, "not true: %s (errno %d)", #claim, errno);                            \
	} while (0)
#define REQUIRE_EQUAL(seen, wanted)                                                                                    \
	do {                                                                                                           \
		long long seen_ = (long long)(seen), wanted_ = (long long)(wanted);                                    \
		if (seen_ != wanted_)                                                                                  \
			fail(__FILE__, __LINE__, "%s is %lld, not %lld", #seen, seen_, wanted_);                       \
	} while (0)

#define REQUIRE_LESS(seen, bound)                                                                                      \
	do {                                                                                                           \
		long long seen_ = (long long)(seen), bound_ = (long long)(bound);                                      \
		if (seen_ >= bound_)                                                                                   \
			fail(__FILE__, __LINE__, "%s is %lld, not below %lld", #seen, seen_, bound_);                  \
	} while (0)

struct test_case {
	const char *name;
	void (*run)(void);
};
#define CASE(function)                                                                                                 \
	{                                                                                                              \
#function, function                                                                                    \
	}
#define CASES(array) (array), sizeof(array) / sizeof((array)[0])

/* Runs the cases whose name contains argv[1], or all, each in a forked process; prints what became of them and a line
 * of counts. The exit status of the program: 77 where no network namespace may be made. */
int run_cases(int argc, char **argv, const struct test_case *cases, size_t count);
/* In a case: stop here, it cannot be done on this machine. */
_Noreturn void skip(const char *why);

/* A second process: this very program, executed with arguments in place of cases, and a stream socket to it. */
struct peer {
	pid_t pid;
	int socket;
};
struct peer peer_start(const char *role);
/* The socket in a process started by peer_start; -1 in one that was not. */
int peer_socket(int argc, char **argv, const char *role);
void peer_send(int socket, const void *bytes, size_t length);
void peer_receive(int socket, void *bytes, size_t length);

/* ---- Time, threads, what a process holds ------------------------------------------------------------------------- */

double seconds_now(void);
void sleep_ms(unsigned ms);
double cpu_seconds(void); /* of this process so far */
unsigned count_fds(void);
size_t heap_bytes(void);     /* allocated and not freed */
bool is_sanitized(void);     /* everything takes several times as long */
bool is_over_the_wire(void); /* VERBENA_LOCAL=off */
pthread_t thread_start(void *(*run)(void *), void *argument);
void thread_join(pthread_t thread);
/* A cheap sequence of numbers; state is the caller's. */
uint32_t next_random(uint32_t *state);

#endif
