/* The library loaded late, as plugins do: opened and closed in a loop, closed while its thread sleeps, loaded by
 * several threads at once. This program is not linked with it; its path is in TEST_LIBRARY_OF_LATE. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include "runner.h"

#define LOADS (is_sanitized() ? 20 : 100)

struct library {
	void *handle;
	struct ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(struct ibv_device **list);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
};

static void *look_up(void *handle, const char *name)
{
	void *symbol = dlsym(handle, name);

	if (!symbol)
		fail(__FILE__, __LINE__, "%s", dlerror());
	return symbol;
}

static struct library load(void)
{
	struct library library = { .handle = dlopen(getenv("TEST_LIBRARY_OF_LATE"), RTLD_NOW | RTLD_LOCAL) };

	if (!library.handle)
		fail(__FILE__, __LINE__, "%s", dlerror());
	library.get_device_list = look_up(library.handle, "ibv_get_device_list");
	library.free_device_list = look_up(library.handle, "ibv_free_device_list");
	library.open_device = look_up(library.handle, "ibv_open_device");
	library.close_device = look_up(library.handle, "ibv_close_device");
	library.alloc_pd = look_up(library.handle, "ibv_alloc_pd");
	library.dealloc_pd = look_up(library.handle, "ibv_dealloc_pd");
	return library;
}

static struct ibv_context *open_first(const struct library *library)
{
	struct ibv_device **list = library->get_device_list(NULL);

	REQUIRE(list && list[0]);
	struct ibv_context *context = library->open_device(list[0]);
	library->free_device_list(list);
	REQUIRE(context);
	return context;
}

static void use_once(void)
{
	struct library library = load();
	struct ibv_context *context = open_first(&library);
	struct ibv_pd *pd = library.alloc_pd(context);

	REQUIRE(pd);
	REQUIRE_EQUAL(library.dealloc_pd(pd), 0);
	REQUIRE_EQUAL(library.close_device(context), 0);
	REQUIRE_EQUAL(dlclose(library.handle), 0);
}

static unsigned count_threads(void)
{
	char line[256];
	unsigned count = 0;
	FILE *status = fopen("/proc/self/status", "r");

	REQUIRE(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "Threads: %u", &count);
	fclose(status);
	return count;
}

/* The kernel counts a thread for a moment after who joined it goes on. */
static void require_threads(unsigned expected)
{
	for (int i = 0; i < 100 && count_threads() != expected; i++)
		sleep_ms(10);
	REQUIRE_EQUAL(count_threads(), expected);
}

static void loaded_used_and_closed_in_a_loop(void)
{
	use_once();
	sleep_ms(50); /* as below */
	unsigned fds = count_fds(), threads = count_threads();
	for (int i = 0; i < LOADS; i++)
		use_once();
	REQUIRE_EQUAL(count_fds(), fds);
	require_threads(threads);
}

static void closed_while_its_thread_sleeps(void)
{
	struct library library = load();
	struct ibv_context *context = open_first(&library);
	unsigned threads = count_threads();

	sleep_ms(20);
	REQUIRE_EQUAL(dlclose(library.handle), 0);
	sleep_ms(20);
	REQUIRE_EQUAL(count_threads(), threads);
	pid_t pid = fork(); /* its handlers of fork and exit are still there to run */
	REQUIRE(pid >= 0);
	if (pid == 0)
		exit(0);
	int status;
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE_EQUAL(status, 0);
	struct library again = load();
	REQUIRE(again.close_device == library.close_device);
	struct ibv_pd *pd = again.alloc_pd(context);
	REQUIRE(pd);
	REQUIRE_EQUAL(again.dealloc_pd(pd), 0);
	REQUIRE_EQUAL(again.close_device(context), 0);
	context = open_first(&again); /* the process ends with a device open and the library closed */
	REQUIRE_EQUAL(dlclose(again.handle), 0);
}

static void *load_in_thread(void *argument)
{
	for (int i = 0; i < LOADS / 5; i++)
		use_once();
	return NULL;
}

static void loaded_by_several_threads_at_once(void)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		threads[i] = thread_start(load_in_thread, NULL);
	for (unsigned i = 0; i < 4; i++)
		thread_join(threads[i]);
}

/* A process that has closed its devices may fork children that use the library. */
static void used_by_children_after_the_last_close(void)
{
	use_once();
	for (unsigned i = 0; i < 4; i++) {
		int status;
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			use_once();
			exit(0);
		}
		REQUIRE(waitpid(pid, &status, 0) == pid);
		REQUIRE_EQUAL(status, 0);
	}
	use_once();
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(loaded_used_and_closed_in_a_loop),
		CASE(closed_while_its_thread_sleeps),
		CASE(loaded_by_several_threads_at_once),
		CASE(used_by_children_after_the_last_close),
	};
	return run_cases(argc, argv, CASES(cases));
}
