/* The rings of a pair, both ends of it in this process, turn by turn: what goes in comes out, once and in order, with
 * its bytes, and nothing that the other end writes makes this one leave its bounds. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "local/parts.h"
#include "port/shm.h"
#include "../unit.h"

#define ROUNDS 20000

static struct vb_shm *ends[2];
static uint8_t *memory; /* as somebody sees it who keeps to nothing */
static uint64_t chance;

static uint32_t any(uint32_t below)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(chance >> 33) % below;
}

static int open_pair(void **state)
{
	int fd = memfd_create("shm_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)vb_shm_bytes()), 0);
	for (unsigned side = 0; side < 2; side++)
		assert_int_equal(vb_shm_open(fd, side, &ends[side]), 0);
	memory = mmap(NULL, vb_shm_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	close(fd);
	chance = 1;
	return 0;
}

static int close_pair(void **state)
{
	for (unsigned side = 0; side < 2; side++)
		vb_shm_close(ends[side]);
	munmap(memory, vb_shm_bytes());
	return 0;
}

/* What the end of that number writes, by itself. */
static uint8_t *half(unsigned side)
{
	return memory + side * (vb_shm_bytes() / 2);
}

/* ---- One end's turns --------------------------------------------------------------------------------------------- */

static uint32_t next_psn, next_answered;

static struct vb_descriptor *fill(const struct vb_local_room *room, uint32_t psn)
{
	struct vb_descriptor *descriptor = &room->descriptors[room->descriptor_count];

	descriptor->nature = (struct vb_local_nature){ VB_LOCAL_NOWHERE, 0 };
	descriptor->psn = psn;
	descriptor->rkey = ~psn;
	descriptor->va = psn;
	return descriptor;
}

static void put_descriptor(struct vb_local_room *room, uint32_t psn)
{
	fill(room, psn);
	vb_local_add(room);
}

static void put_heaped(struct vb_local_room *room, uint32_t psn, uint32_t length)
{
	struct vb_descriptor *descriptor = fill(room, psn);

	descriptor->nature.place = VB_LOCAL_HEAPED;
	descriptor->length = length;
	descriptor->heap.at = room->heap_at + room->heap_used;
	memset(room->heap + room->heap_used, (int)(psn & 0xff), length);
	vb_local_use_heap(room, length);
	vb_local_add(room);
}

static void put_answer(struct vb_local_room *room, uint32_t psn)
{
	room->answers[room->answer_count++] = (struct vb_answer){ .psn = psn, .kind = VB_ANSWER_VALUE, .value = psn };
}

/* As many as there is room for, at most so many. */
static unsigned ask(struct vb_shm *shm, unsigned count)
{
	struct vb_local_room room;

	vb_shm_room(shm, VB_SHM_ASKING, &room);
	while (room.descriptor_count < room.descriptor_max && room.descriptor_count < count)
		put_descriptor(&room, next_psn++);
	vb_shm_publish(shm, VB_SHM_ASKING, &room);
	return room.descriptor_count;
}

static unsigned answer(struct vb_shm *shm, unsigned count)
{
	struct vb_local_room room;

	vb_shm_room(shm, VB_SHM_ANSWERING, &room);
	while (room.answer_count < room.answer_max && room.answer_count < count)
		put_answer(&room, next_answered++);
	vb_shm_publish(shm, VB_SHM_ANSWERING, &room);
	return room.answer_count;
}

static void fill_ring(struct vb_shm *shm)
{
	while (ask(shm, VB_SHM_LIST))
		;
}

static unsigned free_seen(struct vb_shm *shm, unsigned max)
{
	struct vb_descriptor seen[VB_SHM_RING];
	unsigned count = vb_shm_see_descriptors(shm, seen, max);

	vb_shm_free_descriptors(shm, count);
	return count;
}

/* ---- Rings ------------------------------------------------------------------------------------------------------- */

static void rings__give_each_descriptor_once_and_in_order(void **state)
{
	struct vb_descriptor seen[VB_SHM_BATCH];
	uint32_t asked = 0, expected = 0;

	next_psn = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		asked += ask(ends[0], any(VB_SHM_BATCH + 1));
		unsigned count = vb_shm_see_descriptors(ends[1], seen, any(VB_SHM_BATCH + 1));
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(seen[i].psn, expected + i);
			assert_int_equal(seen[i].rkey, ~(expected + i));
			assert_int_equal(seen[i].va, expected + i);
		}
		unsigned freed = any(count + 1);
		vb_shm_free_descriptors(ends[1], freed);
		expected += freed;
		assert_in_range(asked - expected, 0, VB_SHM_RING);
	}
	assert_true(expected > 100 * VB_SHM_RING);
}

static void rings__give_each_answer_once_and_in_order(void **state)
{
	struct vb_answer taken[VB_SHM_BATCH];
	uint32_t expected = 0;

	next_answered = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		answer(ends[1], any(VB_SHM_BATCH + 1));
		unsigned count = vb_shm_take_answers(ends[0], taken, any(VB_SHM_BATCH + 1));
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(taken[i].psn, expected + i);
			assert_int_equal(taken[i].value, expected + i);
		}
		unsigned freed = any(count + 1);
		vb_shm_free_answers(ends[0], freed);
		expected += freed;
	}
	assert_true(expected > 100 * VB_SHM_RING);
	assert_false(vb_shm_has_news(ends[1]));
}

static void rings__show_what_is_not_freed_again(void **state)
{
	struct vb_descriptor seen[4];

	next_psn = 5;
	assert_int_equal(ask(ends[0], 3), 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vb_shm_see_descriptors(ends[1], seen, 4), 3);
		assert_int_equal(seen[0].psn, 5);
	}
	vb_shm_free_descriptors(ends[1], 1);
	assert_int_equal(vb_shm_see_descriptors(ends[1], seen, 4), 2);
	assert_int_equal(seen[0].psn, 6);
	assert_true(vb_shm_has_news(ends[1]));
	vb_shm_free_descriptors(ends[1], 2);
	assert_false(vb_shm_has_news(ends[1]));
}

static void rings__have_room_for_as_many_as_are_free(void **state)
{
	struct vb_local_room room;

	fill_ring(ends[0]);
	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	assert_int_equal(room.descriptor_max, 0);
	assert_int_equal(room.answer_max, VB_SHM_BATCH);
	assert_int_equal(free_seen(ends[1], 3), 3);
	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	assert_int_equal(room.descriptor_max, 3);
	assert_int_equal(free_seen(ends[1], VB_SHM_RING), VB_SHM_RING - 3);
	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	assert_int_equal(room.descriptor_max, VB_SHM_LIST);
	for (unsigned left = VB_SHM_RING; left; left -= VB_SHM_BATCH)
		assert_int_equal(answer(ends[0], VB_SHM_BATCH), VB_SHM_BATCH);
	vb_shm_room(ends[0], VB_SHM_ANSWERING, &room);
	assert_int_equal(room.answer_max, 0);
	assert_int_equal(room.descriptor_max, 0);
}

static void rings__go_both_ways_at_once(void **state)
{
	struct vb_descriptor seen;

	next_psn = 100;
	ask(ends[0], 1);
	ask(ends[1], 1);
	assert_int_equal(vb_shm_see_descriptors(ends[1], &seen, 1), 1);
	assert_int_equal(seen.psn, 100);
	assert_int_equal(vb_shm_see_descriptors(ends[0], &seen, 1), 1);
	assert_int_equal(seen.psn, 101);
}

/* ---- Heaps ------------------------------------------------------------------------------------------------------- */

static bool holds(const struct vb_local_heap *heap, uint32_t at, uint32_t length, uint8_t byte)
{
	if ((uint64_t)at + length > heap->length)
		return false;
	for (uint32_t i = 0; i < length; i++)
		if (heap->bytes[at + i] != byte)
			return false;
	return true;
}

/* What is not freed stays as it was put, however often the heap begins again. */
static void heap__keeps_bytes_until_their_record_is_freed(void **state)
{
	struct vb_local_heap heap = vb_shm_heap_of_descriptors(ends[1]);
	struct vb_descriptor seen[VB_SHM_BATCH];
	uint32_t expected = 0;
	uint64_t bytes = 0;

	next_psn = 0;
	for (unsigned round = 0; round < 4000; round++) {
		struct vb_local_room room;
		vb_shm_room(ends[0], VB_SHM_ASKING, &room);
		uint32_t length = any(4) ? 1 + any(4000) : 1 + any(VB_LOCAL_PART);
		while (room.descriptor_count < room.descriptor_max && length <= vb_local_heap_left(&room) && any(4)) {
			put_heaped(&room, next_psn++, length);
			bytes += length;
		}
		vb_shm_publish(ends[0], VB_SHM_ASKING, &room);
		unsigned count = vb_shm_see_descriptors(ends[1], seen, 1 + any(VB_SHM_BATCH));
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(seen[i].psn, expected + i);
			assert_true(holds(&heap, seen[i].heap.at, seen[i].length, (uint8_t)(expected + i)));
		}
		unsigned freed = any(3) ? count : any(count + 1);
		vb_shm_free_descriptors(ends[1], freed);
		expected += freed;
	}
	assert_true(bytes > 50ull * VB_SHM_HEAP);
}

static void heap__has_a_part_free_when_nothing_is_under_way(void **state)
{
	struct vb_local_room room;

	for (unsigned round = 0; round < 200; round++) {
		uint32_t used = 0;
		for (;;) {
			vb_shm_room(ends[0], VB_SHM_ASKING, &room);
			uint32_t length = 1 + any(VB_LOCAL_PART);
			if (vb_local_heap_left(&room) < length || room.descriptor_max == 0)
				break;
			put_heaped(&room, next_psn++, length);
			vb_shm_publish(ends[0], VB_SHM_ASKING, &room);
			used += length;
		}
		assert_true(used > VB_SHM_HEAP / 4);
		while (free_seen(ends[1], VB_SHM_BATCH))
			;
		vb_shm_room(ends[0], VB_SHM_ASKING, &room);
		assert_true(room.heap_bytes >= VB_LOCAL_PART);
	}
}

/* Descriptors lie in memory of both from the first byte on: where their bytes end is known by ourselves. */
static void hostile__places_of_what_is_not_published_yet_free_nothing(void **state)
{
	struct vb_descriptor *shared = NULL;
	struct vb_local_room room;

	for (unsigned round = 0; round < 3 * VB_SHM_HEAP / 1024; round++) {
		vb_shm_room(ends[0], VB_SHM_ASKING, &room);
		assert_true(room.descriptor_max > 0 && room.heap_bytes >= 1000);
		shared = room.descriptors;
		put_heaped(&room, next_psn++, 1000);
		shared->heap.at = any(UINT32_MAX);
		shared->length = any(UINT32_MAX);
		vb_shm_publish(ends[0], VB_SHM_ASKING, &room);
		assert_int_equal(free_seen(ends[1], VB_SHM_BATCH), 1);
	}
}

/* A descriptor is there when it is published, not when its place is written to; at the ring's end a room ends. */
static void descriptor__is_seen_when_it_is_published(void **state)
{
	struct vb_descriptor seen;
	struct vb_local_room room;

	for (unsigned i = 0; i < 3 * VB_SHM_RING; i++) {
		vb_shm_room(ends[0], VB_SHM_ASKING, &room);
		assert_int_equal(room.descriptor_max,
			VB_SHM_RING - i % VB_SHM_RING < VB_SHM_LIST ? VB_SHM_RING - i % VB_SHM_RING : VB_SHM_LIST);
		put_descriptor(&room, i);
		assert_int_equal(vb_shm_see_descriptors(ends[1], &seen, 1), 0);
		assert_false(vb_shm_has_news(ends[1]));
		vb_shm_publish(ends[0], VB_SHM_ASKING, &room);
		assert_int_equal(vb_shm_see_descriptors(ends[1], &seen, 1), 1);
		assert_int_equal(seen.psn, i);
		vb_shm_free_descriptors(ends[1], 1);
	}
}

/* The cache's lines that were used last: it is not gone through from end to end. */
static void heap__begins_anew_when_it_is_empty(void **state)
{
	struct vb_local_room room;
	uint32_t farthest = 0;

	for (unsigned i = 0; i < 4 * VB_SHM_HEAP / 1024; i++) {
		vb_shm_room(ends[0], VB_SHM_ASKING, &room);
		put_heaped(&room, i, 1000);
		farthest = room.heap_at > farthest ? room.heap_at : farthest;
		vb_shm_publish(ends[0], VB_SHM_ASKING, &room);
		free_seen(ends[1], 1);
	}
	assert_in_range(farthest, 1, VB_SHM_HEAP / 2 + 1024);
}

static uint32_t heap_left_after(unsigned freed)
{
	struct vb_local_room room;

	for (unsigned i = 0; i < freed; i++)
		free_seen(ends[1], 1);
	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	return room.heap_bytes;
}

/* They free none of the bytes before them. */
static void heap__goes_with_records_that_have_no_bytes(void **state)
{
	struct vb_local_room room;

	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	put_descriptor(&room, 0);
	put_heaped(&room, 1, VB_SHM_HEAP / 4);
	put_descriptor(&room, 2);
	put_heaped(&room, 3, VB_SHM_HEAP / 4 * 3 - 64);
	put_descriptor(&room, 4);
	vb_shm_publish(ends[0], VB_SHM_ASKING, &room);
	assert_int_equal(heap_left_after(0), 0);
	assert_int_equal(heap_left_after(1), 0);
	assert_in_range(heap_left_after(1), VB_SHM_HEAP / 4 - 128, VB_SHM_HEAP / 4);
	assert_in_range(heap_left_after(1), VB_SHM_HEAP / 4 - 128, VB_SHM_HEAP / 4);
	assert_in_range(heap_left_after(1), VB_SHM_HEAP - 64, VB_SHM_HEAP);
}

static void heap__of_answers_is_another(void **state)
{
	struct vb_local_heap heap = vb_shm_heap_of_answers(ends[0]);
	struct vb_local_room room;
	struct vb_answer taken;

	vb_shm_room(ends[1], VB_SHM_ANSWERING, &room);
	memset(room.heap, 0x5a, 3000);
	room.answers[room.answer_count++] =
		(struct vb_answer){ .kind = VB_ANSWER_READ, .length = 3000, .at = room.heap_at };
	vb_local_use_heap(&room, 3000);
	vb_shm_publish(ends[1], VB_SHM_ANSWERING, &room);
	vb_shm_room(ends[1], VB_SHM_ASKING, &room);
	assert_int_equal(room.heap_at, 0);
	memset(room.heap, 0xa5, 4000);
	assert_int_equal(vb_shm_take_answers(ends[0], &taken, 1), 1);
	assert_true(holds(&heap, taken.at, taken.length, 0x5a));
	vb_shm_room(ends[1], VB_SHM_ANSWERING, &room);
	assert_int_equal(room.heap_at, 3008);
}

/* ---- Sleeping ---------------------------------------------------------------------------------------------------- */

static bool asks_and_wakes(struct vb_shm *shm)
{
	struct vb_local_room room;

	vb_shm_room(shm, VB_SHM_ASKING, &room);
	put_descriptor(&room, 0);
	vb_shm_publish(shm, VB_SHM_ASKING, &room);
	return vb_shm_must_wake(shm);
}

static bool answers_and_wakes(struct vb_shm *shm, bool is_awaited)
{
	struct vb_local_room room;

	vb_shm_room(shm, VB_SHM_ANSWERING, &room);
	put_answer(&room, 0);
	room.is_awaited = is_awaited;
	vb_shm_publish(shm, VB_SHM_ANSWERING, &room);
	return vb_shm_must_wake(shm);
}

static bool frees_and_wakes(struct vb_shm *shm, unsigned descriptors, unsigned answers)
{
	vb_shm_free_descriptors(shm, descriptors);
	vb_shm_free_answers(shm, answers);
	return vb_shm_must_wake(shm);
}

static void doze__is_ended_by_what_is_published_once(void **state)
{
	assert_false(asks_and_wakes(ends[0]));
	vb_shm_doze(ends[1], false);
	assert_true(asks_and_wakes(ends[0]));
	assert_false(asks_and_wakes(ends[0]));
	vb_shm_doze(ends[1], false);
	assert_true(answers_and_wakes(ends[0], true));
	assert_false(answers_and_wakes(ends[0], true));
	vb_shm_doze(ends[1], false);
	vb_shm_rouse(ends[1]);
	assert_false(asks_and_wakes(ends[0]));
	assert_false(answers_and_wakes(ends[1], true)); /* the other one never slept */
}

static void doze__is_ended_by_what_is_freed_if_so_wished(void **state)
{
	ask(ends[1], 3);
	answer(ends[1], 3);
	vb_shm_doze(ends[1], false);
	assert_false(frees_and_wakes(ends[0], 1, 1));
	vb_shm_doze(ends[1], true);
	assert_false(frees_and_wakes(ends[0], 0, 0));
	assert_true(frees_and_wakes(ends[0], 1, 0));
	assert_false(frees_and_wakes(ends[0], 1, 1));
	vb_shm_doze(ends[1], true);
	assert_true(frees_and_wakes(ends[0], 0, 1));
	vb_shm_doze(ends[1], true);
	assert_true(asks_and_wakes(ends[0]));
}

static void doze__is_not_ended_by_answers_that_are_not_awaited_until_it_is_urged(void **state)
{
	ask(ends[1], 1);
	vb_shm_doze(ends[1], true);
	assert_false(answers_and_wakes(ends[0], false));
	assert_true(vb_shm_has_told(ends[0]));
	assert_false(vb_shm_has_published(ends[0]));
	vb_shm_urge(ends[0]);
	assert_true(vb_shm_must_wake(ends[0]));
	assert_false(vb_shm_has_told(ends[0]));
	vb_shm_doze(ends[1], false);
	assert_false(answers_and_wakes(ends[0], false));
	assert_false(frees_and_wakes(ends[0], 1, 0)); /* it does not sleep for room */
	assert_true(vb_shm_has_told(ends[0]));
	assert_true(asks_and_wakes(ends[0])); /* and finds the answer, too */
	assert_false(vb_shm_has_told(ends[0]));
}

/* An end that is awake looks before it sleeps, and so does one that is woken for another reason. */
static void doze__has_heard_all_that_was_told_before_it(void **state)
{
	ask(ends[1], 2);
	assert_false(answers_and_wakes(ends[0], false));
	assert_true(vb_shm_has_told(ends[0]));
	assert_false(frees_and_wakes(ends[0], 1, 0));
	assert_false(vb_shm_has_told(ends[0]));
	vb_shm_doze(ends[1], true);
	assert_false(answers_and_wakes(ends[0], false));
	assert_true(frees_and_wakes(ends[0], 1, 0));
	assert_false(vb_shm_has_told(ends[0]));
}

/* Else there would be no room for the answers that are awaited. */
static void doze__is_ended_by_answers_that_nearly_fill_the_ring(void **state)
{
	unsigned answers = 0;

	vb_shm_doze(ends[1], false);
	while (answers < VB_SHM_RING && !answers_and_wakes(ends[0], false))
		answers++;
	assert_in_range(answers, VB_SHM_RING / 2, VB_SHM_RING - 2);
}

/* One who frees and publishes asks once. */
static void doze__is_ended_once_by_all_of_a_turn(void **state)
{
	ask(ends[1], 1);
	vb_shm_doze(ends[1], false);
	vb_shm_free_descriptors(ends[0], 1);
	ask(ends[0], 1);
	vb_shm_free_answers(ends[0], 0);
	assert_true(vb_shm_must_wake(ends[0]));
	assert_false(vb_shm_must_wake(ends[0]));
}

/* Either he who publishes sees that the other sleeps, or that one sees it before he does. */
static void doze__finds_what_was_published_before(void **state)
{
	assert_false(asks_and_wakes(ends[0]));
	vb_shm_doze(ends[1], false);
	assert_true(vb_shm_has_news(ends[1]));
	free_seen(ends[1], 1);
	assert_false(vb_shm_has_news(ends[1]));
	assert_false(answers_and_wakes(ends[1], true));
	vb_shm_doze(ends[0], false);
	assert_true(vb_shm_has_news(ends[0]));
}

/* ---- With ourselves ---------------------------------------------------------------------------------------------- */

static void mirror__gives_back_what_is_put_into_it(void **state)
{
	struct vb_descriptor seen[VB_SHM_BATCH];
	struct vb_answer taken[VB_SHM_BATCH];
	struct vb_shm *own;
	uint32_t asked = 0, answered = 0;

	assert_int_equal(vb_shm_open(-1, 0, &own), 0);
	struct vb_local_heap heap = vb_shm_heap_of_descriptors(own);
	next_psn = next_answered = 0;
	for (unsigned round = 0; round < 3000; round++) {
		struct vb_local_room room;
		vb_shm_room(own, VB_SHM_ASKING, &room);
		for (unsigned i = any(VB_SHM_BATCH);
			i && room.descriptor_count < room.descriptor_max && vb_local_heap_left(&room) >= 9000; i--)
			put_heaped(&room, next_psn++, 1 + any(9000));
		vb_shm_publish(own, VB_SHM_ASKING, &room);
		answer(own, any(VB_SHM_BATCH));
		unsigned count = vb_shm_see_descriptors(own, seen, VB_SHM_BATCH);
		for (unsigned i = 0; i < count; i++, asked++) {
			assert_int_equal(seen[i].psn, asked);
			assert_true(holds(&heap, seen[i].heap.at, seen[i].length, (uint8_t)asked));
		}
		vb_shm_free_descriptors(own, count);
		count = vb_shm_take_answers(own, taken, VB_SHM_BATCH);
		for (unsigned i = 0; i < count; i++, answered++)
			assert_int_equal(taken[i].psn, answered);
		vb_shm_free_answers(own, count);
	}
	assert_true(asked > 10 * VB_SHM_RING && answered > 10 * VB_SHM_RING);
	vb_shm_close(own);
}

/* ---- A hostile end ----------------------------------------------------------------------------------------------- */

/* The word by which an end says how many it has freed is the one that changes when it frees. */
static _Atomic uint32_t *find_freed_word(unsigned side)
{
	uint8_t before[4096];
	_Atomic uint32_t *found = NULL;

	memcpy(before, half(side), sizeof(before));
	vb_shm_free_descriptors(ends[side], 1);
	for (unsigned at = 0; at < sizeof(before); at += sizeof(uint32_t))
		if (memcmp(before + at, half(side) + at, sizeof(uint32_t)) != 0)
			found = (_Atomic uint32_t *)(void *)(half(side) + at);
	assert_non_null(found);
	return found;
}

static void hostile__freed_counts_that_cannot_be_free_nothing(void **state)
{
	static const uint32_t lies[] = { VB_SHM_RING + 1, 1000, 0x7fffffff, 0x80000000, 0xffffffff };
	struct vb_local_room room;

	ask(ends[0], 1);
	_Atomic uint32_t *freed = find_freed_word(1);
	assert_int_equal(*freed, 1);
	fill_ring(ends[0]);
	for (unsigned i = 0; i < COUNT_OF(lies); i++) {
		*freed = 1 + lies[i];
		vb_shm_room(ends[0], VB_SHM_ASKING, &room);
		assert_int_equal(room.descriptor_max, 0);
	}
	*freed = 3; /* what he has not seen he may free */
	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	assert_int_equal(room.descriptor_max, 2);
	*freed = 1; /* nor is anything taken back */
	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	assert_int_equal(room.descriptor_max, 2);
}

static bool lies_in_own_heap(const struct vb_local_room *room, const uint8_t *begin)
{
	return room->heap == begin + room->heap_at && (uint64_t)room->heap_at + room->heap_bytes <= VB_SHM_HEAP &&
	       room->heap_used <= room->heap_bytes;
}

/* Of records nothing is said, for the engine believes none; but what it gets has the bounds of ours. */
static void turn(struct vb_shm *shm, const uint8_t *heap, const uint8_t *answer_heap)
{
	struct vb_descriptor seen[VB_SHM_BATCH];
	struct vb_answer taken[VB_SHM_BATCH];
	struct vb_local_room room;

	unsigned count = vb_shm_see_descriptors(shm, seen, VB_SHM_BATCH);
	assert_in_range(count, 0, VB_SHM_BATCH);
	vb_shm_free_descriptors(shm, any(count + 1));
	count = vb_shm_take_answers(shm, taken, VB_SHM_BATCH);
	assert_in_range(count, 0, VB_SHM_BATCH);
	vb_shm_free_answers(shm, count);
	vb_shm_room(shm, VB_SHM_ANSWERING, &room);
	assert_in_range(room.answer_max, 0, VB_SHM_BATCH);
	assert_true(lies_in_own_heap(&room, answer_heap));
	while (room.answer_count < room.answer_max && any(4))
		put_answer(&room, 0);
	vb_shm_publish(shm, VB_SHM_ANSWERING, &room);
	vb_shm_room(shm, VB_SHM_ASKING, &room);
	assert_in_range(room.descriptor_max, 0, VB_SHM_BATCH);
	assert_true(lies_in_own_heap(&room, heap));
	uint32_t length = 1 + any(3000);
	while (room.descriptor_count < room.descriptor_max && vb_local_heap_left(&room) >= length && any(8))
		put_heaped(&room, 0, length);
	vb_shm_publish(shm, VB_SHM_ASKING, &room);
	vb_shm_doze(shm, any(2));
}

/* Records and counts are where words are few; most of what is written goes there. */
static void scribble(unsigned side)
{
	size_t bytes = vb_shm_bytes() / 2, records = bytes - 2 * VB_SHM_HEAP;

	for (unsigned i = any(200); i; i--) {
		uint32_t word = any(3) ? any(512) : any(0x7fffffff) * 2 + any(2);
		size_t at = any(4) ? any(1024) : any((uint32_t)(any(2) ? records : bytes) - 4);
		memcpy(half(side) + at / 4 * 4, &word, sizeof(word));
	}
	if (any(50) == 0)
		memset(half(side), (int)any(256), records);
}

static void hostile__writes_anything_while_we_go_on(void **state)
{
	struct vb_local_room room;

	vb_shm_room(ends[0], VB_SHM_ASKING, &room);
	const uint8_t *heap = room.heap;
	vb_shm_room(ends[0], VB_SHM_ANSWERING, &room);
	const uint8_t *answer_heap = room.heap;
	for (unsigned round = 0; round < ROUNDS; round++) {
		scribble(1);
		turn(ends[0], heap, answer_heap);
		vb_shm_has_news(ends[0]);
	}
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static int file_of(size_t bytes)
{
	int file = memfd_create("shm_test", MFD_CLOEXEC);

	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t)bytes), 0);
	return file;
}

static void open__refuses_memory_that_is_too_short(void **state)
{
	int file = file_of(vb_shm_bytes() - 1);
	struct vb_shm *shm;

	assert_int_equal(vb_shm_open(file, 0, &shm), -EINVAL);
	close(file);
}

/* One answer at a time, a part of bytes beside each, until all of the heap has been gone through. */
static void fill_heap(struct vb_shm *own, struct vb_shm *other)
{
	for (unsigned i = 0; i < 2 * VB_SHM_HEAP / VB_LOCAL_PART; i++) {
		struct vb_local_room room;
		struct vb_answer answer;
		vb_shm_room(own, VB_SHM_ANSWERING, &room);
		assert_true(vb_local_heap_left(&room) >= VB_LOCAL_PART);
		room.answers[room.answer_count++] = (struct vb_answer){
			.kind = VB_ANSWER_READ, .length = VB_LOCAL_PART, .at = room.heap_at + room.heap_used
		};
		memset(room.heap, (int)i, VB_LOCAL_PART);
		vb_local_use_heap(&room, VB_LOCAL_PART);
		vb_shm_publish(own, VB_SHM_ANSWERING, &room);
		assert_int_equal(vb_shm_take_answers(other, &answer, 1), 1);
		assert_int_equal(vb_shm_heap_of_answers(other).bytes[answer.at + VB_LOCAL_PART - 1], (uint8_t)i);
		vb_shm_free_answers(other, 1);
	}
}

static void heaps__go_as_far_as_the_memory(void **state)
{
	int file = file_of(vb_shm_bytes());
	struct vb_shm *two[2];

	for (unsigned side = 0; side < 2; side++)
		assert_int_equal(vb_shm_open(file, side, &two[side]), 0);
	fill_heap(two[0], two[1]);
	fill_heap(two[1], two[0]);
	for (unsigned side = 0; side < 2; side++)
		vb_shm_close(two[side]);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__refuses_memory_that_is_too_short),
		cmocka_unit_test(heaps__go_as_far_as_the_memory),
		cmocka_unit_test_setup_teardown(rings__give_each_descriptor_once_and_in_order, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(rings__give_each_answer_once_and_in_order, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(rings__show_what_is_not_freed_again, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(rings__have_room_for_as_many_as_are_free, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(rings__go_both_ways_at_once, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(heap__keeps_bytes_until_their_record_is_freed, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(heap__has_a_part_free_when_nothing_is_under_way, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(heap__begins_anew_when_it_is_empty, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
			hostile__places_of_what_is_not_published_yet_free_nothing, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(descriptor__is_seen_when_it_is_published, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(heap__goes_with_records_that_have_no_bytes, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(heap__of_answers_is_another, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(doze__is_ended_by_what_is_published_once, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(doze__is_ended_by_what_is_freed_if_so_wished, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
			doze__is_not_ended_by_answers_that_are_not_awaited_until_it_is_urged, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(doze__has_heard_all_that_was_told_before_it, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
			doze__is_ended_by_answers_that_nearly_fill_the_ring, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(doze__is_ended_once_by_all_of_a_turn, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(doze__finds_what_was_published_before, open_pair, close_pair),
		cmocka_unit_test(mirror__gives_back_what_is_put_into_it),
		cmocka_unit_test_setup_teardown(
			hostile__freed_counts_that_cannot_be_free_nothing, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(hostile__writes_anything_while_we_go_on, open_pair, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
