/* See calibration.h. Both ends copy at the same time, each on its core, but each fetches from the other core's cache
 * what that has written, which on some machines is slower than all else. So it is measured with two threads, as it will
 * be used. */
#include "base/invariant.h"
#include "host/peers/calibration.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "base/copy.h"
#include "local/local.h"
#include "os/clock.h"
#include "os/thread.h"

#define PLACES 4  /* of the heap */
#define COPIES 16 /* of one try */
#define TRIES  6
#define SPINS  20000      /* after which the other thread most likely waits for this core */
#define MOST   100000000u /* ns for all of it: where many more want the cores, two threads meet once in a while */

/* Source, heap, target. */
struct trial {
	uint8_t *memory;
	uint32_t length;
	uint64_t until;
	atomic_uint written, read;
};

static uint8_t *source(const struct trial *trial, unsigned i)
{
	return trial->memory + i % PLACES * VB_LOCAL_PART;
}

static uint8_t *heap(const struct trial *trial, unsigned i)
{
	return trial->memory + (PLACES + i % PLACES) * VB_LOCAL_PART;
}

static uint8_t *target(const struct trial *trial, unsigned i)
{
	return trial->memory + (2 * PLACES + i % PLACES) * VB_LOCAL_PART;
}

static bool is_late(const struct trial *trial)
{
	return (uint64_t)vb_clock_ns() >= trial->until;
}

/* False: there is no time for longer. */
static bool await(const struct trial *trial, const atomic_uint *count, unsigned wanted)
{
	for (unsigned spins = 0; (int)(atomic_load_explicit(count, memory_order_acquire) - wanted) < 0; spins++)
		if (spins >= SPINS && (is_late(trial) || sched_yield()))
			return false;
	return true;
}

static void *write_heap(void *argument)
{
	struct trial *trial = argument;

	for (unsigned i = 0; i < COPIES; i++) {
		if (i >= PLACES && !await(trial, &trial->read, i - PLACES + 1))
			break;
		vb_copy(heap(trial, i), source(trial, i), trial->length);
		atomic_store_explicit(&trial->written, i + 1, memory_order_release);
	}
	return NULL;
}

static uint64_t time_heap(struct trial *trial)
{
	pthread_t writer;

	atomic_store(&trial->written, 0);
	atomic_store(&trial->read, 0);
	if (vb_thread_start(&writer, write_heap, trial) < 0)
		return UINT64_MAX;
	await(trial, &trial->written, 1);
	uint64_t begin = (uint64_t)vb_clock_ns();
	unsigned i = 0;
	for (; i < COPIES && await(trial, &trial->written, i + 1); i++) {
		vb_copy(target(trial, i), heap(trial, i), trial->length);
		atomic_store_explicit(&trial->read, i + 1, memory_order_release);
	}
	uint64_t took = (uint64_t)vb_clock_ns() - begin;
	pthread_join(writer, NULL);
	return i == COPIES ? took : UINT64_MAX;
}

static uint64_t time_pulls(const struct trial *trial, unsigned offset)
{
	uint64_t begin = (uint64_t)vb_clock_ns();

	for (unsigned i = 0; i < COPIES; i++) {
		uint64_t proof[2]; /* is in pages of its own, which cost as much as those of the payload */
		const struct iovec to[] = { { target(trial, i) + offset, trial->length }, { proof, sizeof(proof) } };
		const struct iovec from[] = { { source(trial, i), trial->length }, { heap(trial, i), sizeof(proof[0]) },
			{ heap(trial, i + 1), sizeof(proof[1]) } };
		if (process_vm_readv(getpid(), to, 2, from, 3, 0) != (ssize_t)(trial->length + sizeof(proof)))
			return UINT64_MAX;
	}
	return (uint64_t)vb_clock_ns() - begin;
}

/* Where there is no time to find out, a pull is said to pay for the longest messages alone. */
static bool pays(uint8_t *memory, uint32_t length, uint64_t until)
{
	struct trial trial = { .memory = memory, .length = length, .until = until };
	uint64_t by_heap = UINT64_MAX, by_pull = UINT64_MAX;

	assert(length <= VB_LOCAL_PART);
	for (unsigned i = 0; i < TRIES; i++) {
		if (is_late(&trial))
			return length == VB_LOCAL_PART;
		uint64_t heap_took = time_heap(&trial), pulls_took = time_pulls(&trial, 0);
		by_heap = heap_took < by_heap ? heap_took : by_heap;
		by_pull = pulls_took < by_pull ? pulls_took : by_pull;
	}
	return by_pull / 5 <= by_heap / 4; /* a pull may take 5/4 as long: it uses one core, the heap two */
}

/* Addresses that are near in their pages: base/copy.h. */
static bool suffers_near(uint8_t *memory)
{
	const struct trial trial = { .memory = memory, .length = VB_LOCAL_PART / 2 };
	uint64_t apart = UINT64_MAX, near = UINT64_MAX;

	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t apart_took = time_pulls(&trial, 0), near_took = time_pulls(&trial, VB_COPY_NEAR / 4);
		apart = apart_took < apart ? apart_took : apart;
		near = near_took < near ? near_took : near;
	}
	return near / 3 > apart / 2;
}

static uint32_t pays_from = VB_LOCAL_PART + 1;
static bool is_slow_near;

static void measure(void)
{
	static const uint32_t sizes[] = { VB_LOCAL_PART, 32768, 16384 };
	size_t length = 3 * PLACES * VB_LOCAL_PART;
	uint64_t until = (uint64_t)vb_clock_ns() + MOST;
	uint8_t *memory = aligned_alloc(VB_COPY_PAGE, length);

	if (!memory)
		return;
	memset(memory, 1, length);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && pays(memory, sizes[i], until); i++)
		pays_from = sizes[i];
	is_slow_near = suffers_near(memory);
	free(memory);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

uint32_t vb_pull_pays_from(void)
{
	pthread_once(&once, measure);
	return pays_from;
}

bool vb_pull_is_slow_near(void)
{
	pthread_once(&once, measure);
	return is_slow_near;
}
