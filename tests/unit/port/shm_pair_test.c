/* Two ends of shared memory, each with a thread of its own, that ask each other, answer, and sleep whenever there is
 * nothing to do: each record comes once, whole and in order, with the bytes beside it, and no bell is missed. */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/random.h"
#include "local/parts.h"
#include "port/shm.h"
#include "../unit.h"

#define TOTAL    60000u
#define BATCH    32u
#define LONGEST  3000u
#define PATIENCE 10000 /* ms; nobody sleeps for so long */

struct end {
	struct vb_shm *shm;
	struct end *other;
	int bell;
	struct vb_random random;
	uint32_t asked, executed, answered; /* of TOTAL each */
	unsigned naps;
	const char *wrong;
};

static void fail_with(struct end *end, const char *what)
{
	if (!end->wrong)
		end->wrong = what;
}

static uint8_t byte_of(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7);
}

static void fill(uint8_t *bytes, uint32_t number, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = byte_of(number, i);
}

static bool is_filled(const uint8_t *bytes, uint32_t number, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != byte_of(number, i))
			return false;
	return true;
}

/* ---- Out --------------------------------------------------------------------------------------------------------- */

static void ask(struct end *end)
{
	struct vb_local_room room;
	vb_shm_room(end->shm, VB_SHM_ASKING, &room);
	unsigned most = vb_random_below(&end->random, BATCH) + 1;
	while (end->asked < TOTAL && room.descriptor_count < room.descriptor_max && room.descriptor_count < most) {
		uint32_t length = vb_random_below(&end->random, LONGEST);
		if (vb_local_heap_left(&room) < length)
			break;
		struct vb_descriptor *descriptor = &room.descriptors[room.descriptor_count];
		descriptor->nature = (struct vb_local_nature){ VB_LOCAL_HEAPED, 0 };
		descriptor->psn = end->asked;
		descriptor->va = ~(uint64_t)end->asked;
		descriptor->length = length;
		descriptor->imm_or_inv = end->asked * 3;
		descriptor->heap.at = room.heap_at + room.heap_used;
		fill(room.heap + room.heap_used, end->asked++, length);
		vb_local_use_heap(&room, length);
		vb_local_add(&room);
	}
	vb_shm_publish(end->shm, VB_SHM_ASKING, &room);
}

static void answer(struct end *end, const struct vb_descriptor *request, struct vb_local_room *room)
{
	struct vb_answer *answer = &room->answers[room->answer_count++];
	bool has_room = vb_local_heap_left(room) >= request->length && request->length > 8;
	*answer = (struct vb_answer){ .psn = request->psn,
		.kind = has_room ? VB_ANSWER_READ : VB_ANSWER_DONE,
		.length = has_room ? request->length : 0,
		.value = request->va,
		.at = room->heap_at + room->heap_used };
	if (has_room) {
		fill(room->heap + room->heap_used, request->psn, request->length);
		vb_local_use_heap(room, request->length);
	}
}

/* ---- In ---------------------------------------------------------------------------------------------------------- */

static unsigned take_answers(struct end *end)
{
	struct vb_answer answers[BATCH];
	struct vb_local_heap heap = vb_shm_heap_of_answers(end->shm);
	unsigned count = vb_shm_take_answers(end->shm, answers, BATCH);
	for (unsigned i = 0; i < count; i++) {
		const struct vb_answer *answer = &answers[i];
		if (answer->psn != end->answered || answer->value != ~(uint64_t)end->answered)
			fail_with(end, "an answer is not the next, or not whole");
		if (answer->length && !is_filled(heap.bytes + answer->at, answer->psn, answer->length))
			fail_with(end, "an answer's bytes are not its own");
		end->answered++;
	}
	vb_shm_free_answers(end->shm, count);
	return count;
}

static unsigned execute(struct end *end)
{
	struct vb_descriptor requests[BATCH];
	struct vb_local_heap heap = vb_shm_heap_of_descriptors(end->shm);
	struct vb_local_room room;
	unsigned count = vb_shm_see_descriptors(end->shm, requests, BATCH);
	vb_shm_room(end->shm, VB_SHM_ANSWERING, &room);
	count = count < room.answer_max ? count : room.answer_max;
	for (unsigned i = 0; i < count; i++) {
		const struct vb_descriptor *request = &requests[i];
		uint32_t number = end->executed++;
		if (request->psn != number || request->va != ~(uint64_t)number || request->imm_or_inv != number * 3)
			fail_with(end, "a descriptor is not the next, or not whole");
		if (!is_filled(heap.bytes + request->heap.at, number, request->length))
			fail_with(end, "a descriptor's bytes are not its own");
		answer(end, request, &room);
	}
	room.is_awaited = count > 0;
	vb_shm_publish(end->shm, VB_SHM_ANSWERING, &room);
	vb_shm_free_descriptors(end->shm, count);
	return count;
}

/* ---- Both -------------------------------------------------------------------------------------------------------- */

static bool take_turn(struct end *end)
{
	uint32_t before = end->asked;
	unsigned done = take_answers(end) + execute(end);
	ask(end);
	if (vb_shm_must_wake(end->shm) && eventfd_write(end->other->bell, 1))
		fail_with(end, "the bell cannot be rung");
	return done || end->asked != before;
}

static void sleep_until_woken(struct end *end)
{
	struct pollfd bell = { end->bell, POLLIN, 0 };
	eventfd_t rings;
	vb_shm_doze(end->shm, true);
	if (!take_turn(end)) {
		end->naps++;
		if (poll(&bell, 1, PATIENCE) != 1)
			fail_with(end, "nobody rings");
	}
	vb_shm_rouse(end->shm);
	if (poll(&bell, 1, 0) == 1)
		eventfd_read(end->bell, &rings);
}

static void *run(void *argument)
{
	struct end *end = argument;
	while (!end->wrong && (end->answered < TOTAL || end->executed < TOTAL)) {
		if (!take_turn(end))
			sleep_until_woken(end);
	}
	return NULL;
}

static void open_ends(struct end ends[2])
{
	int memory = memfd_create("shm", MFD_CLOEXEC);
	assert_return_code(ftruncate(memory, (off_t)vb_shm_bytes()), 0);
	for (unsigned i = 0; i < 2; i++) {
		ends[i] = (struct end){ .other = &ends[1 - i], .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
		vb_random_seed(&ends[i].random, i);
		assert_int_equal(vb_shm_open(memory, i, &ends[i].shm), 0);
	}
	close(memory);
}

static void close_ends(struct end ends[2])
{
	for (unsigned i = 0; i < 2; i++) {
		vb_shm_close(ends[i].shm);
		close(ends[i].bell);
	}
}

static void records__come_once_and_whole_between_threads_that_sleep(void **state)
{
	struct end ends[2];
	pthread_t other;
	open_ends(ends);
	assert_int_equal(pthread_create(&other, NULL, run, &ends[1]), 0);
	run(&ends[0]);
	pthread_join(other, NULL);
	for (unsigned i = 0; i < 2; i++) {
		if (ends[i].wrong)
			fail_msg("end %u, %u asked, %u executed, %u answered: %s", i, ends[i].asked, ends[i].executed,
				ends[i].answered, ends[i].wrong);
		assert_int_equal(ends[i].executed, TOTAL);
		assert_int_equal(ends[i].answered, TOTAL);
	}
	assert_true(ends[0].naps + ends[1].naps > 0);
	close_ends(ends);
}

/* A datagram without payload has its addresses there, in no place that the descriptor names for payload. */
static void heap__comes_back_from_records_whose_place_says_nothing(void **state)
{
	struct end ends[2];
	struct vb_local_room room;
	struct vb_descriptor request;
	open_ends(ends);
	for (unsigned i = 0; i < 3 * VB_SHM_HEAP / 64; i++) {
		vb_shm_room(ends[0].shm, VB_SHM_ASKING, &room);
		assert_true(room.heap_bytes >= 64 && room.descriptor_max > 0);
		room.descriptors[0].nature = (struct vb_local_nature){ VB_LOCAL_NOWHERE, 0 };
		room.descriptors[0].heap.at = room.heap_at;
		vb_local_use_heap(&room, 32);
		vb_local_add(&room);
		vb_shm_publish(ends[0].shm, VB_SHM_ASKING, &room);
		assert_int_equal(vb_shm_see_descriptors(ends[1].shm, &request, 1), 1);
		vb_shm_free_descriptors(ends[1].shm, 1);
	}
	close_ends(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records__come_once_and_whole_between_threads_that_sleep),
		cmocka_unit_test(heap__comes_back_from_records_whose_place_says_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
