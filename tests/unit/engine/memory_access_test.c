/* Ordinary memory: how payload lands in it, and its atomics. */
#include <pthread.h>
#include "device.h"

enum { BYTES = 256 };

static _Alignas(64) uint8_t memory[BYTES];

/* ---- Placing ---- */

static void place__writes_exactly_the_payload_at_any_alignment(void **state)
{
	uint8_t payload[80], expected[BYTES];
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i + 1);
	for (uint32_t start = 0; start < 16; start++) {
		for (uint32_t shift = 0; shift < 3; shift++) {
			for (uint32_t length = 0; length <= 72; length++) {
				for (int ends = 0; ends < 2; ends++) {
					memset(memory, 0xEE, BYTES);
					memset(expected, 0xEE, BYTES);
					memcpy(expected + start, payload + shift, length);
					struct vb_reach reach = { .bytes = memory + start };
					vb_place(&reach, payload + shift, length, ends);
					assert_memory_equal(memory, expected, BYTES);
				}
			}
		}
	}
}

static void place__phantom_payload_copies_nothing(void **state)
{
	struct vb_reach reach = { .bytes = memory };
	memset(memory, 0xEE, BYTES);
	vb_place(&reach, NULL, 8, true);
	assert_int_equal(memory[0], 0xEE);
}

/* A writer places messages whose bytes are all the same number; a reader polls the last byte. */
enum { MESSAGES = 40000 };

struct polled {
	_Alignas(64) uint8_t bytes[67];
	atomic_uint torn;
	atomic_uchar done;
};

static void *poll_last_byte(void *arg)
{
	struct polled *polled = arg;
	for (uint32_t n = 1; n <= MESSAGES; n++) {
		uint8_t wanted = n % 251;
		while (__atomic_load_n(&polled->bytes[66], __ATOMIC_ACQUIRE) != wanted)
			sched_yield();
		for (int i = 0; i < 67; i++)
			if (polled->bytes[i] != wanted)
				atomic_fetch_add(&polled->torn, 1);
		atomic_store(&polled->done, wanted);
	}
	return NULL;
}

static void place__the_last_byte_of_a_message_comes_last(void **state)
{
	static struct polled polled;
	pthread_t thread;
	uint8_t payload[67];
	struct vb_reach first = { .bytes = polled.bytes }, last = { .bytes = polled.bytes + 32 };
	assert_int_equal(pthread_create(&thread, NULL, poll_last_byte, &polled), 0);
	for (uint32_t n = 1; n <= MESSAGES; n++) {
		memset(payload, n % 251, sizeof(payload));
		vb_place(&first, payload, 32, false); /* two packets of a message */
		vb_place(&last, payload + 32, 35, true);
		while (atomic_load(&polled.done) != n % 251)
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(polled.torn, 0);
}

static void *watch_word(void *arg)
{
	struct polled *polled = arg;
	while (!atomic_load(&polled->done)) {
		uint64_t word = __atomic_load_n((uint64_t *)polled->bytes, __ATOMIC_ACQUIRE);
		if (word != (word & 0xFF) * 0x0101010101010101u)
			atomic_fetch_add(&polled->torn, 1);
	}
	return NULL;
}

static void place__an_aligned_word_is_one_store(void **state)
{
	static struct polled polled;
	pthread_t thread;
	uint8_t payload[9];
	struct vb_reach reach = { .bytes = polled.bytes };
	assert_int_equal(pthread_create(&thread, NULL, watch_word, &polled), 0);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		memset(payload, (int)n, sizeof(payload));
		vb_place(&reach, payload + 1, 8, n & 1);
	}
	atomic_store(&polled.done, 1);
	pthread_join(thread, NULL);
	assert_int_equal(polled.torn, 0);
}

/* ---- Atomics ---- */

static void atomics__give_the_value_before(void **state)
{
	uint64_t word = UINT64_MAX;
	struct vb_reach reach = { .bytes = (uint8_t *)&word };
	assert_true(vb_fetch_add(&reach, 3) == UINT64_MAX);
	assert_int_equal(word, 2);
	assert_int_equal(vb_compare_swap(&reach, 1, 9), 2);
	assert_int_equal(word, 2);
	assert_int_equal(vb_compare_swap(&reach, 2, 9), 2);
	assert_int_equal(word, 9);
}

static void *add_many(void *arg)
{
	struct vb_reach reach = { .bytes = arg };
	for (int i = 0; i < 100000; i++) {
		vb_fetch_add(&reach, 1);
		for (uint64_t seen = 0, before; (before = vb_compare_swap(&reach, seen, seen + 1)) != seen;)
			seen = before;
	}
	return NULL;
}

static void atomics__of_two_threads_lose_nothing(void **state)
{
	static uint64_t word;
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, &word), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(word, 400000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place__writes_exactly_the_payload_at_any_alignment),
		cmocka_unit_test(place__phantom_payload_copies_nothing),
		cmocka_unit_test(place__the_last_byte_of_a_message_comes_last),
		cmocka_unit_test(place__an_aligned_word_is_one_store),
		cmocka_unit_test(atomics__give_the_value_before),
		cmocka_unit_test(atomics__of_two_threads_lose_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
