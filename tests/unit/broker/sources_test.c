/* Who is served while others flood. */
#include "../unit.h"
#include "broker/sources.h"

#define START 1000000 /* ms */

static int setup(void **state)
{
	*state = sources_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	sources_destroy(*state);
	return 0;
}

static struct vb_gid stranger(uint32_t number)
{
	return vb_gid_from_ipv4(11, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number);
}

static const struct vb_gid honest = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } };

/* count requests a millisecond for ms of them, each of another address; how many passed. */
static unsigned flood(struct sources *sources, unsigned ms, unsigned count, uint64_t *now)
{
	static uint32_t number;
	unsigned passed = 0;
	bool must_ask;
	for (unsigned i = 0; i < ms; i++, (*now)++)
		for (unsigned k = 0; k < count; k++) {
			struct vb_gid gid = stranger(number++);
			passed += sources_take_request(sources, &gid, *now, &must_ask) == SOURCES_PASS;
		}
	return passed;
}

static void known__pass_through_a_flood(void **state)
{
	uint64_t now = START;
	bool must_ask;
	sources_prove(*state, &honest, now);
	unsigned passed = flood(*state, 6000, 20, &now);
	assert_in_range(passed, SOURCES_OTHERS_BURST, SOURCES_OTHERS_BURST + 7 * SOURCES_OTHERS_RATE);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(sources_take_request(*state, &honest, now, &must_ask), SOURCES_PASS);
		assert_false(must_ask);
	}
	assert_int_equal(sources_take_question(*state, &honest, now), SOURCES_PASS);
}

/* A local user has sixteen million addresses to speak from. */
static void loopback__is_one_source(void **state)
{
	uint64_t now = START;
	bool must_ask;
	unsigned passed = 0;
	sources_prove(*state, &honest, now);
	for (uint32_t i = 0; i < 40000; i++) {
		struct vb_gid gid = vb_gid_from_ipv4(127, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i);
		sources_prove(*state, &gid, now + 1);
		passed += sources_take_request(*state, &gid, now + 1, &must_ask) == SOURCES_PASS;
	}
	assert_true(sources_is_known(*state, &honest, now + 1));
	assert_int_equal(passed, SOURCES_KNOWN_BURST);
}

/* Asked once, and again a little later; on its answer it passes. */
static void stranger__in_a_flood_is_asked_for_a_proof(void **state)
{
	uint64_t now = START;
	bool must_ask;
	flood(*state, 1000, 20, &now);
	now--;
	assert_int_equal(sources_take_request(*state, &honest, now, &must_ask), SOURCES_WAIT);
	assert_true(must_ask);
	uint64_t number = sources_challenge(*state, &honest, now);
	assert_int_equal(sources_take_request(*state, &honest, now, &must_ask), SOURCES_WAIT);
	assert_false(must_ask);
	assert_int_equal(sources_take_request(*state, &honest, now + SOURCES_ASK_AGAIN_MS, &must_ask), SOURCES_PASS);
	assert_true(must_ask);
	struct vb_gid other = stranger(1);
	assert_false(sources_is_answer(*state, &other, number, now));
	assert_false(sources_is_answer(*state, &honest, number + 1, now));
	assert_true(sources_is_answer(*state, &honest, number, now));
	assert_true(sources_is_answer(*state, &honest, number, now + 60000));
	assert_false(sources_is_answer(*state, &honest, number, now + 180000));
	sources_prove(*state, &honest, now);
	flood(*state, 1, 100, &now);
	now--;
	assert_int_equal(sources_take_request(*state, &honest, now, &must_ask), SOURCES_PASS);
}

/* A thousand at once from one address that nobody has heard of, a hundred of which are enough to be asked. */
static void newcomer__without_a_flood_waits_for_nothing(void **state)
{
	bool must_ask, was_asked = false;
	for (unsigned i = 0; i < 2 * SOURCES_OTHERS_BURST / 4 + 1; i++) {
		assert_int_equal(sources_take_request(*state, &honest, START, &must_ask), SOURCES_PASS);
		was_asked = was_asked || must_ask;
	}
	assert_true(was_asked);
}

static void known__have_a_limit_too_and_are_forgotten(void **state)
{
	bool must_ask;
	unsigned passed = 0;
	sources_prove(*state, &honest, START);
	for (unsigned i = 0; i < 2 * SOURCES_KNOWN_BURST; i++)
		passed += sources_take_request(*state, &honest, START, &must_ask) == SOURCES_PASS;
	assert_int_equal(passed, SOURCES_KNOWN_BURST);
	assert_true(sources_is_known(*state, &honest, START + SOURCES_KNOWN_MS - 1));
	assert_false(sources_is_known(*state, &honest, START + SOURCES_KNOWN_MS));
}

static void questions__are_bounded_for_one_and_for_all(void **state)
{
	unsigned passed = 0;
	for (unsigned i = 0; i < 1000; i++)
		passed += sources_take_question(*state, &honest, START) == SOURCES_PASS;
	assert_int_equal(passed, SOURCES_QUESTION_BURST);
	passed = 0;
	for (uint32_t i = 0; i < 50000; i++) {
		struct vb_gid gid = stranger(i);
		passed += sources_take_question(*state, &gid, START) == SOURCES_PASS;
	}
	assert_int_equal(passed, SOURCES_QUESTIONS_BURST - SOURCES_QUESTION_BURST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(known__pass_through_a_flood),
		TEST(loopback__is_one_source),
		TEST(stranger__in_a_flood_is_asked_for_a_proof),
		TEST(newcomer__without_a_flood_waits_for_nothing),
		TEST(known__have_a_limit_too_and_are_forgotten),
		TEST(questions__are_bounded_for_one_and_for_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
