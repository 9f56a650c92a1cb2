/* What is run of a scenario file, by the options. */
#include "../unit.h"
#include <unistd.h>
#include "sim/session.h"

static char path[] = "/tmp/verbena-session-XXXXXX";

static int set_up(void **state)
{
	static const char text[] = "network: {topology: switch, endpoints: 8}\nworkload:\n"
				   "  - {kind: allreduce, endpoints: 4, bytes: 20kB}\n"
				   "  - {kind: alltoall, first: 4, endpoints: 4, bytes: 20kB}\n";
	const int file = mkstemp(path);
	const bool is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
	return is_written ? close(file) : -1;
}

static int tear_down(void **state)
{
	return unlink(path);
}

static uint32_t runs_alone(const struct sim_options *options)
{
	struct session session;
	assert_int_equal(session_open(&session, path, options, NULL, 0), SIM_EXIT_OK);
	assert_int_equal(session_run(&session, options), SIM_EXIT_OK);
	const uint32_t runs = session.simulation.runs_alone;
	session_close(&session);
	return runs;
}

/* A line of a comparison has no place for their times; its JSON has. */
static void jobs__are_run_alone_where_it_is_told(void **state)
{
	assert_int_equal(runs_alone(&(struct sim_options){ 0 }), 2);
	assert_int_equal(runs_alone(&(struct sim_options){ .skips_alone = true }), 0);
	assert_int_equal(runs_alone(&(struct sim_options){ .is_comparison = true }), 0);
	assert_int_equal(runs_alone(&(struct sim_options){ .is_comparison = true, .is_json = true }), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(jobs__are_run_alone_where_it_is_told) };
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
