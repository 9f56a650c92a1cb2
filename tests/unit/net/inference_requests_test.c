/* Requests from files of both formats, and at random; and what is refused of a file, with its line. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "net/inference_requests.h"
#include "../unit.h"

static struct inference_requests requests;
static char why[400];

static int teardown(void **state)
{
	inference_requests_free(&requests);
	return 0;
}

static void expect(uint32_t number, vb_time arrival, uint32_t input, uint32_t output)
{
	assert_int_equal(requests.list[number].arrival, arrival);
	assert_int_equal(requests.list[number].input, input);
	assert_int_equal(requests.list[number].output, output);
}

/* 18:15:46.6805900 to 18:15:50.9951690. */
static void azure__has_times_from_the_first_on(void **state)
{
	assert_int_equal(inference_requests_read(&requests, TRACES "/azure.csv", 0, why, sizeof(why)), 0);
	assert_int_equal(requests.count, 5);
	expect(0, 0, 374, 44);
	expect(1, 4314579000000, 396, 109);
	expect(4, 5892655000000, 91, 16);
}

static void mooncake__is_read_line_by_line(void **state)
{
	assert_int_equal(inference_requests_read(&requests, TRACES "/mooncake.jsonl", 2, why, sizeof(why)), 0);
	assert_int_equal(requests.count, 2);
	expect(0, 0, 6758, 500);
	expect(1, 0, 7322, 490);
}

static int read_text(const char *text)
{
	char path[] = "/tmp/requests-XXXXXX";
	const int file = mkstemp(path);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
	inference_requests_free(&requests);
	const int rc = inference_requests_read(&requests, path, 0, why, sizeof(why));
	unlink(path);
	return rc;
}

static void time__goes_over_months_and_leap_years(void **state)
{
	assert_int_equal(read_text("2024-02-28 23:59:59,1,1\n2024-03-01 00:00:01.5,2,0\n"), 0);
	expect(1, (86400 + 2) * VB_S + VB_S / 2, 2, 1);
	assert_int_equal(read_text("2023-12-31 23:59:59,1,1\n2024-01-01 00:00:00,2,3\n"), 0);
	expect(1, VB_S, 2, 3);
	assert_int_equal(read_text("{\"output_length\": 7, \"x\": [1, {}], \"input_length\": 3, \"timestamp\": 5}\n"
				   "{\"timestamp\": 1005, \"input_length\": 1, \"output_length\": 1}\r\n"),
		0);
	expect(0, 0, 3, 7);
	expect(1, VB_S, 1, 1);
}

static void files__that_are_wrong_are_refused_with_the_line(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "the file has no requests" },
		{ "TIMESTAMP,ContextTokens,GeneratedTokens\n", ":1: the file has no requests" },
		{ "2023-11-16 18:15:46,374,44\nx\n", ":2: no request; write TIMESTAMP" },
		{ "2023-11-16 18:15:46,374\n", ":1: no request" },
		{ "2023-11-16 18:15:46,374,44,1\n", ":1: no request" },
		{ "2023-13-16 18:15:46,374,44\n", ":1: no request" },
		{ "2023-00-16 18:15:46,374,44\n", ":1: no request" },
		{ "2023-11-16 24:15:46,374,44\n", ":1: no request" },
		{ "2023-11-16 18:15,374,44\n", ":1: no request" },
		{ "2023-11-16 18:15:46,100000001,44\n", ":1: no request" },
		{ "2023-11-16 18:15:46,-1,44\n", ":1: no request" },
		{ "2023-11-16 18:15:46,0,44\n", ":1: a request without tokens" },
		{ "2023-11-16 18:15:46,1,1\n2023-11-16 18:15:45,1,1\n", ":2: this request comes before" },
		{ "2023-11-16 18:15:46,1,1\n2024-11-16 18:15:45,1,1\n", ":2: more than 40 days" },
		{ "{\"timestamp\": 0, \"input_length\": 1}\n", ":1: no request" },
		{ "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1} x\n", ":1: no request" },
		{ "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1\n", ":1: no request" },
		{ "{\"timestamp\": 99999999999, \"input_length\": 1, \"output_length\": 1}\n", ":1: no request" },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(read_text(wrong[i].text), -EINVAL);
		if (!strstr(why, wrong[i].why))
			fail_msg("'%s' instead of '%s'", why, wrong[i].why);
	}
	assert_int_equal(inference_requests_read(&requests, "/nowhere/at/all", 0, why, sizeof(why)), -EINVAL);
}

static void requests_at_random__are_a_gap_apart_on_average(void **state)
{
	assert_int_equal(inference_requests_make(&requests, 100000, VB_MS, 5, 6, 1), 0);
	expect(0, 0, 5, 6);
	double squares = 0;
	for (uint32_t i = 1; i < requests.count; i++) {
		const double gap = (double)(requests.list[i].arrival - requests.list[i - 1].arrival) / VB_MS;
		squares += gap * gap;
	}
	assert_true(fabs((double)requests.list[99999].arrival / VB_MS / 99999 - 1) < 0.02);
	assert_true(fabs(squares / 99999 / 2 - 1) < 0.03);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(azure__has_times_from_the_first_on, teardown),
		cmocka_unit_test_teardown(mooncake__is_read_line_by_line, teardown),
		cmocka_unit_test_teardown(time__goes_over_months_and_leap_years, teardown),
		cmocka_unit_test_teardown(files__that_are_wrong_are_refused_with_the_line, teardown),
		cmocka_unit_test_teardown(requests_at_random__are_a_gap_apart_on_average, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
