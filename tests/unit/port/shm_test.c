/* Memory that two processes share, as both its ends. */
#include "../unit.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "port/shm.h"

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
			.kind = VB_ANSWER_READ, .length = VB_LOCAL_PART, .at = room.heap_at + room.heap_used };
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
	struct vb_shm *ends[2];

	for (unsigned side = 0; side < 2; side++)
		assert_int_equal(vb_shm_open(file, side, &ends[side]), 0);
	fill_heap(ends[0], ends[1]);
	fill_heap(ends[1], ends[0]);
	for (unsigned side = 0; side < 2; side++)
		vb_shm_close(ends[side]);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__refuses_memory_that_is_too_short),
		cmocka_unit_test(heaps__go_as_far_as_the_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
