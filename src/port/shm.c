/* Rings of shared memory: shm.h.
 * Holds: a record is published by its one word that has the ring's lap in it, after all its other bytes. Descriptors
 * are put together where they stay, and are not read here again. A place of the ring, and the bytes beside its record,
 * are written again when the other end has freed them, in the order of publishing. An end that publishes or frees looks
 * then whether the other one dozes, and an end that dozes looks then whether something was published, with full fences
 * between, so that one of the two sees it.
 * Not here: what a record means (local/local.h). */
#include "port/shm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "base/invariant.h"

#define LINE 64u
/* Records: the end that publishes one fetches the place of that behind the next, which takes as long as these do. */
#define AHEAD 2u

/* Reasons to wake a dozing end; TOLD is none until vb_shm_urge. */
enum { PUBLISHED = 1, FREED = 2, TOLD = 4 };

/* Counters that one end writes and the other reads. */
struct side {
	_Alignas(LINE) _Atomic uint32_t descriptors_freed; /* of the other end's; free running */
	_Atomic uint32_t answers_freed;
	_Alignas(LINE) _Atomic uint32_t dozes_for; /* the other end takes it back when it wakes this one */
	_Alignas(4096) struct vb_descriptor descriptors[VB_SHM_RING];
	_Alignas(4096) struct vb_answer answers[VB_SHM_RING];
	_Alignas(4096) uint8_t heap[VB_SHM_HEAP], answer_heap[VB_SHM_HEAP];
};

/* Positions in a heap count up for ever; modulo its size they are offsets. One line stays free, or full would be
 * empty. */
struct outgoing {
	uint32_t published, freed;
	uint32_t fetched;                       /* places of the next ones, to write there */
	uint64_t heap_end, heap_begin, skipped; /* skipped: bytes at the heap's end that are too few for a room */
	uint64_t last_end;
	uint64_t ends[VB_SHM_RING]; /* where the bytes beside each record, or before it, end */
};

struct vb_shm {
	struct side *own, *other;
	struct side *memory;
	size_t size;
	uint64_t file; /* its number */
	struct outgoing descriptors, answers;
	uint32_t descriptors_seen, answers_seen; /* and freed */
	uint32_t done;                           /* since vb_shm_must_wake: PUBLISHED, FREED, TOLD */
	uint32_t heap_ends[VB_SHM_BATCH];
	struct vb_answer answer_scratch[VB_SHM_BATCH];
};

/* A process that shares memory with itself has it mapped twice, and TSan does not see that both are one place. */
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static char introductions[4096];

static void *introduction_of(const struct vb_shm *shm)
{
	return &introductions[shm->file % sizeof(introductions)];
}

static void said(const struct vb_shm *shm)
{
	__tsan_release(introduction_of(shm));
}

static void heard(const struct vb_shm *shm)
{
	__tsan_acquire(introduction_of(shm));
}
#else
static void said(const struct vb_shm *shm) {}

static void heard(const struct vb_shm *shm) {}
#endif

size_t vb_shm_bytes(void)
{
	return 2 * sizeof(struct side);
}

/* The file's number; 0: it is too short. */
static uint64_t file_as_long(int memory, size_t size)
{
	struct stat file;

	return fstat(memory, &file) == 0 && (size_t)file.st_size >= size ? file.st_ino : 0;
}

int vb_shm_open(int memory, unsigned side, struct vb_shm **opened)
{
	bool is_mirror = memory < 0;

	uint64_t file = is_mirror ? 0 : file_as_long(memory, vb_shm_bytes());

	if (!is_mirror && !file)
		return -EINVAL; /* to touch memory behind its end would kill this process */
	struct vb_shm *shm = aligned_alloc(LINE, (sizeof(*shm) + LINE - 1) / LINE * LINE);

	if (!shm)
		return -ENOMEM;
	memset(shm, 0, sizeof(*shm));
	shm->file = file;
	shm->size = is_mirror ? sizeof(struct side) : vb_shm_bytes();
	shm->memory = mmap(NULL, shm->size, PROT_READ | PROT_WRITE,
		is_mirror ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, memory, 0);
	if (shm->memory == MAP_FAILED) {
		int error = errno;
		free(shm);
		return -error;
	}
	madvise(shm->memory, shm->size, MADV_DONTFORK); /* a forked child has no part in it */
	shm->own = &shm->memory[is_mirror ? 0 : side & 1];
	shm->other = &shm->memory[is_mirror ? 0 : !(side & 1)];
	*opened = shm;
	return 0;
}

void vb_shm_close(struct vb_shm *shm)
{
	munmap(shm->memory, shm->size);
	free(shm);
}

/* ---- Records: one word of each says of which lap it is ----------------------------------------------------------- */

typedef uint64_t __attribute__((may_alias)) word;

#define ANSWER_WORD (offsetof(struct vb_answer, holder) / sizeof(word))

_Static_assert(ANSWER_WORD == 1, "the word that holds the lap");
_Static_assert((VB_SHM_RING & (VB_SHM_RING - 1)) == 0, "places are counts modulo the ring");

/* Differs from the mark of the lap before, and from memory that was not written yet. */
static uint16_t lap_of(uint32_t count)
{
	return (uint16_t)(count / VB_SHM_RING | 0x8000);
}

static const struct vb_descriptor *descriptor_at(const struct vb_shm *shm, uint32_t count)
{
	return &shm->other->descriptors[count % VB_SHM_RING];
}

static const word *answer_at(const struct vb_shm *shm, uint32_t count)
{
	return (const word *)&shm->other->answers[count % VB_SHM_RING];
}

static bool is_there(const struct vb_shm *shm, uint32_t count)
{
	return __atomic_load_n(&descriptor_at(shm, count)->holder, __ATOMIC_ACQUIRE) == lap_of(count);
}

static bool is_answered(const struct vb_shm *shm, uint32_t count, word *first)
{
	*first = __atomic_load_n(&answer_at(shm, count)[ANSWER_WORD], __ATOMIC_ACQUIRE);
	return (uint16_t)(*first >> 48) == lap_of(count);
}

/* False: the record is not published yet. */
static bool get_descriptor(const struct vb_shm *shm, uint32_t count, struct vb_descriptor *descriptor)
{
	if (!is_there(shm, count))
		return false;
	heard(shm);
	memcpy(descriptor, descriptor_at(shm, count), sizeof(*descriptor));
	return true;
}

static bool get_answer(const struct vb_shm *shm, uint32_t count, struct vb_answer *answer)
{
	word first;

	if (!is_answered(shm, count, &first))
		return false;
	heard(shm);
	memcpy(answer, &shm->other->answers[count % VB_SHM_RING], sizeof(*answer));
	memcpy((word *)answer + ANSWER_WORD, &first, sizeof(first));
	return true;
}

/* ---- In ---------------------------------------------------------------------------------------------------------- */

bool vb_shm_has_published(const struct vb_shm *shm)
{
	return shm->done & PUBLISHED;
}

bool vb_shm_has_told(const struct vb_shm *shm)
{
	return shm->done & TOLD;
}

void vb_shm_urge(struct vb_shm *shm)
{
	if (shm->done & TOLD)
		shm->done = (shm->done & ~TOLD) | PUBLISHED;
}

/* An end that is woken, or is awake, looks at all that there is before it sleeps: then nothing told is left to say. */
bool vb_shm_must_wake(struct vb_shm *shm)
{
	uint32_t done = shm->done & (PUBLISHED | FREED);

	if (!done)
		return false;
	shm->done &= TOLD;
	atomic_thread_fence(memory_order_seq_cst);
	uint32_t dozes_for = atomic_load_explicit(&shm->other->dozes_for, memory_order_relaxed);
	if (dozes_for == 0 || dozes_for & done)
		shm->done = 0;
	return dozes_for & done && atomic_exchange(&shm->other->dozes_for, 0) != 0;
}

bool vb_shm_dozes(const struct vb_shm *shm)
{
	return atomic_load_explicit(&shm->other->dozes_for, memory_order_relaxed) != 0;
}

unsigned vb_shm_see_descriptors(struct vb_shm *shm, struct vb_descriptor *descriptors, unsigned max)
{
	unsigned count = 0;

	while (count < max && get_descriptor(shm, shm->descriptors_seen + count, &descriptors[count]))
		count++;
	return count;
}

void vb_shm_free_descriptors(struct vb_shm *shm, unsigned count)
{
	if (count == 0)
		return;
	said(shm);
	shm->descriptors_seen += count;
	atomic_store_explicit(&shm->own->descriptors_freed, shm->descriptors_seen, memory_order_release);
	shm->done |= FREED;
}

unsigned vb_shm_take_answers(struct vb_shm *shm, struct vb_answer *answers, unsigned max)
{
	unsigned count = 0;

	while (count < max && get_answer(shm, shm->answers_seen + count, &answers[count]))
		count++;
	return count;
}

void vb_shm_free_answers(struct vb_shm *shm, unsigned count)
{
	if (count == 0)
		return;
	said(shm);
	shm->answers_seen += count;
	atomic_store_explicit(&shm->own->answers_freed, shm->answers_seen, memory_order_release);
	shm->done |= FREED;
}

bool vb_shm_has_news(const struct vb_shm *shm)
{
	word answer;

	return is_there(shm, shm->descriptors_seen) || is_answered(shm, shm->answers_seen, &answer);
}

struct vb_local_heap vb_shm_heap_of_descriptors(const struct vb_shm *shm)
{
	return (struct vb_local_heap){ shm->other->heap, VB_SHM_HEAP };
}

struct vb_local_heap vb_shm_heap_of_answers(const struct vb_shm *shm)
{
	return (struct vb_local_heap){ shm->other->answer_heap, VB_SHM_HEAP };
}

/* ---- Out --------------------------------------------------------------------------------------------------------- */

/* Notes what the other end has freed. An impossible count is a peer's error, and changes nothing. */
static void take_back(struct outgoing *out, uint32_t freed)
{
	if (freed - out->freed > out->published - out->freed || freed == out->freed)
		return;
	out->freed = freed;
	uint64_t end = out->ends[(freed - 1) % VB_SHM_RING];
	if (end > out->heap_begin) /* else no bytes lay beside them since the heap began anew */
		out->heap_begin = end;
}

static unsigned places_left(struct outgoing *out, const _Atomic uint32_t *freed)
{
	unsigned left = VB_SHM_RING - (out->published - out->freed);

	if (left < VB_SHM_BATCH) {
		take_back(out, atomic_load_explicit(freed, memory_order_acquire));
		left = VB_SHM_RING - (out->published - out->freed);
	}
	return left < VB_SHM_BATCH ? left : VB_SHM_BATCH;
}

static uint64_t heap_left(const struct outgoing *out)
{
	return VB_SHM_HEAP - LINE - (out->heap_end - out->heap_begin);
}

/* One piece of the heap: the rest before its end or, if that is too short for a part, the free bytes at its start. An
 * empty heap begins anew, in lines that are warm. To ask for what is freed costs a line that the other end writes. */
static void find_heap(struct outgoing *out, const _Atomic uint32_t *freed, uint8_t *heap, struct vb_local_room *room)
{
	if (heap_left(out) < VB_SHM_HEAP / 2)
		take_back(out, atomic_load_explicit(freed, memory_order_acquire));
	if (out->heap_begin == out->heap_end)
		out->heap_begin = out->heap_end = (out->heap_end + VB_SHM_HEAP - 1) / VB_SHM_HEAP * VB_SHM_HEAP;
	uint64_t at = out->heap_end % VB_SHM_HEAP, left = heap_left(out), to_end = VB_SHM_HEAP - at;
	out->skipped = 0;
	if (to_end < VB_LOCAL_PART && left > 2 * to_end) {
		out->skipped = to_end;
		left -= to_end;
		at = 0;
	} else if (left > to_end) {
		left = to_end;
	}
	room->heap = heap + at;
	room->heap_at = (uint32_t)at;
	room->heap_bytes = (uint32_t)left;
}

void vb_shm_room(struct vb_shm *shm, enum vb_shm_use use, struct vb_local_room *room)
{
	heard(shm);
	*room = (struct vb_local_room){ .answers = shm->answer_scratch,
		.answer_max = places_left(&shm->answers, &shm->other->answers_freed) };
	if (use == VB_SHM_ASKING) {
		unsigned at = shm->descriptors.published % VB_SHM_RING;
		unsigned left = places_left(&shm->descriptors, &shm->other->descriptors_freed);
		room->descriptors = &shm->own->descriptors[at];
		room->heap_ends = shm->heap_ends;
		left = left < VB_SHM_LIST ? left : VB_SHM_LIST;
		room->descriptor_max = left < VB_SHM_RING - at ? left : VB_SHM_RING - at;
		find_heap(&shm->descriptors, &shm->other->descriptors_freed, shm->own->heap, room);
	} else {
		find_heap(&shm->answers, &shm->other->answers_freed, shm->own->answer_heap, room);
	}
}

static void use_heap(struct outgoing *out, uint32_t used)
{
	if (used == 0)
		return;
	out->heap_end += out->skipped + used;
	out->skipped = 0;
	assert(out->heap_end - out->heap_begin <= VB_SHM_HEAP - LINE);
}

static void note(struct outgoing *out)
{
	out->ends[out->published++ % VB_SHM_RING] = out->last_end;
}

/* Makes the line ours before it is written: else a thread that writes to it and then takes a lock waits for it. */
static void fetch_to_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const uint8_t *)line)); /* old processors ignore it */
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Fetches as many places as were published: the next records are put together meanwhile. */
static void fetch_places(struct vb_shm *shm, unsigned count)
{
	struct outgoing *out = &shm->descriptors;
	uint32_t until = out->published + (count > 1 ? 2 * count : AHEAD) + 1;

	if ((int32_t)(out->fetched - out->published) < 0)
		out->fetched = out->published;
	while ((int32_t)(until - out->fetched) > 0)
		fetch_to_write(&shm->own->descriptors[out->fetched++ % VB_SHM_RING]);
}

/* heap_begin: where the bytes beside them begin. */
static void publish_descriptors(struct vb_shm *shm, const struct vb_local_room *room, uint64_t heap_begin)
{
	struct outgoing *out = &shm->descriptors;

	for (unsigned i = 0; i < room->descriptor_count; i++) {
		uint16_t lap = lap_of(out->published);
		if (room->heap_ends[i])
			out->last_end = heap_begin + room->heap_ends[i];
		note(out);
		__atomic_store_n(&room->descriptors[i].holder, lap, __ATOMIC_RELEASE);
	}
	fetch_places(shm, room->descriptor_count);
}

/* The position at which bytes of that offset end, which were put there lately. */
static uint64_t end_of(const struct outgoing *out, uint32_t at, uint32_t length)
{
	uint64_t back = (out->heap_end - at) % VB_SHM_HEAP, lines = (length + LINE - 1) & ~(uint64_t)(LINE - 1);

	return out->heap_end - back + lines;
}

static void publish_answer(struct vb_shm *shm, struct vb_answer *answer)
{
	uint32_t count = shm->answers.published;
	bool has_bytes = answer->kind == VB_ANSWER_READ && answer->length > sizeof(answer->bytes) &&
			 answer->at != VB_LOCAL_NO_BYTES;

	answer->holder = lap_of(count);
	if (has_bytes)
		shm->answers.last_end = end_of(&shm->answers, answer->at, answer->length);
	note(&shm->answers);
	word *to = (word *)&shm->own->answers[count % VB_SHM_RING], *from = (word *)answer;
	memcpy(to, from, ANSWER_WORD * sizeof(word));
	memcpy(to + ANSWER_WORD + 1, from + ANSWER_WORD + 1, sizeof(*answer) - (ANSWER_WORD + 1) * sizeof(word));
	__atomic_store_n(&to[ANSWER_WORD], from[ANSWER_WORD], __ATOMIC_RELEASE);
}

/* A record may name any place: nothing of this room is in use once the last record is free. */
static void end_heap(struct outgoing *out, uint32_t used)
{
	if (used && out->published != out->freed)
		out->ends[(out->published - 1) % VB_SHM_RING] = out->last_end = out->heap_end;
}

void vb_shm_publish(struct vb_shm *shm, enum vb_shm_use use, const struct vb_local_room *room)
{
	said(shm);
	struct outgoing *out = use == VB_SHM_ASKING ? &shm->descriptors : &shm->answers;

	uint64_t heap_begin = out->heap_end + out->skipped;

	use_heap(out, room->heap_used);
	for (unsigned i = 0; i < room->answer_count; i++)
		publish_answer(shm, &room->answers[i]);
	if (room->descriptor_count > 0)
		publish_descriptors(shm, room, heap_begin);
	end_heap(out, room->heap_used);
	bool is_nearly_full = shm->answers.published - shm->answers.freed > VB_SHM_RING - VB_SHM_BATCH;
	if (room->descriptor_count > 0 || room->is_awaited || (is_nearly_full && room->answer_count > 0))
		shm->done |= PUBLISHED;
	else if (room->answer_count > 0)
		shm->done |= TOLD;
}

/* ---- Sleeping ---------------------------------------------------------------------------------------------------- */

void vb_shm_doze(struct vb_shm *shm, bool wants_room)
{
	atomic_store_explicit(&shm->own->dozes_for, wants_room ? PUBLISHED | FREED : PUBLISHED, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

void vb_shm_rouse(struct vb_shm *shm)
{
	atomic_store_explicit(&shm->own->dozes_for, 0, memory_order_relaxed);
}
