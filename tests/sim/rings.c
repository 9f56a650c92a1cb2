/* A direction's two FIFOs, and their bytes. What was taken is overwritten as soon as its taker has said so: it is
 * another's then. */
#include <stdlib.h>
#include <string.h>
#include "local.h"

static void ring_open(struct ring *ring)
{
	static const unsigned rooms[] = { 2, 3, 5, 16, 64, RING_MAX };
	unsigned start = chance(500000) ? 0u - 5 : below(1000); /* counts wrap */
	*ring = (struct ring){ rooms[below(6)], start, start, start, start };
}

static void area_open(struct area *area, uint32_t from, uint32_t to)
{
	*area = (struct area){ .from = from, .to = to, .next = from };
}

static uint32_t area_size(void)
{
	static const uint32_t parts[] = { 1, 1, 2, 4, 16 };
	return VB_LOCAL_PART * parts[below(5)] + 64 * below(100);
}

void way_open(struct way *way)
{
	memset(way, 0, sizeof(*way));
	ring_open(&way->descriptors);
	ring_open(&way->answers);
	uint32_t requested = area_size();
	way->heap_bytes = requested + area_size();
	way->heap = malloc(way->heap_bytes);
	area_open(&way->requested, 0, requested);
	area_open(&way->answered, requested, way->heap_bytes);
}

void way_close(struct way *way)
{
	free(way->heap);
	way->heap = NULL;
}

static unsigned room_in(const struct ring *ring)
{
	return ring->room - (ring->put - ring->freed);
}

/* Where the next bytes may lie, without a break: that many. */
static uint32_t find_room(struct area *area)
{
	if (area->loan_head == area->loan_tail) {
		area->next = area->from;
		return area->to - area->from;
	}
	uint32_t oldest = area->loans[area->loan_head % RING_MAX].from;
	if (area->next <= oldest)
		return oldest - area->next;
	uint32_t behind = area->to - area->next, before = oldest - area->from;
	if (behind >= before)
		return behind;
	area->next = area->from;
	return before;
}

/* Now and then fewer than there are: then there will be others without anybody's doing. */
static unsigned some_of(struct way *way, unsigned n)
{
	unsigned some = chance(700000) ? n : below(n + 1);
	way->has_more |= some < n;
	return some;
}

struct vb_local_room way_room(
	struct way *way, struct area *area, struct vb_descriptor *descriptors, struct vb_answer *answers)
{
	uint32_t bytes = find_room(area);
	way->has_more = false;
	return (struct vb_local_room){ .descriptors = descriptors,
		.answers = answers,
		.descriptor_max = area == &way->requested ? some_of(way, room_in(&way->descriptors)) : 0,
		.answer_max = some_of(way, room_in(&way->answers)),
		.heap = way->heap + area->next,
		.heap_at = area->next,
		.heap_bytes = bytes };
}

bool way_put(struct way *way, struct area *area, const struct vb_local_room *room)
{
	bool is_request = area == &way->requested;
	unsigned count = is_request ? room->descriptor_count : room->answer_count;
	if (room->descriptor_count > room->descriptor_max || room->answer_count > room->answer_max ||
		room->heap_used > room->heap_bytes)
		broken("more was put than there is room for");
	for (unsigned i = 0; i < room->descriptor_count; i++)
		way->descriptor[way->descriptors.put++ % RING_MAX] = room->descriptors[i];
	for (unsigned i = 0; i < room->answer_count; i++)
		way->answer[way->answers.put++ % RING_MAX] = room->answers[i];
	if (room->heap_used && count == 0)
		broken("bytes were put for nobody");
	if (room->heap_used)
		area->loans[area->loan_tail++ % RING_MAX] = (struct loan){ area->next, area->next + room->heap_used,
			is_request ? way->descriptors.put : way->answers.put };
	area->next += room->heap_used;
	way->is_awaited |= room->is_awaited;
	return room->descriptor_count + room->answer_count > 0;
}

static bool tell(unsigned *told, unsigned count)
{
	bool is_news = *told != count;
	*told = count;
	return is_news;
}

bool way_tell_answers(struct way *way)
{
	return tell(&way->answers.told, way->answers.put);
}

bool way_tell_descriptors(struct way *way)
{
	return tell(&way->descriptors.told, way->descriptors.put);
}

static void area_free(struct way *way, struct area *area, unsigned freed)
{
	for (; area->loan_head != area->loan_tail; area->loan_head++) {
		const struct loan *loan = &area->loans[area->loan_head % RING_MAX];
		if ((int)(freed - loan->records) < 0)
			break;
		memset(way->heap + loan->from, 0xDD, loan->to - loan->from);
	}
}

bool way_free_taken(struct way *way)
{
	for (unsigned i = way->descriptors.freed; i != way->descriptors.taken; i++)
		memset(&way->descriptor[i % RING_MAX], 0xDD, sizeof(struct vb_descriptor));
	for (unsigned i = way->answers.freed; i != way->answers.taken; i++)
		memset(&way->answer[i % RING_MAX], 0xDD, sizeof(struct vb_answer));
	bool is_news = tell(&way->descriptors.freed, way->descriptors.taken);
	is_news |= tell(&way->answers.freed, way->answers.taken);
	area_free(way, &way->requested, way->descriptors.freed);
	area_free(way, &way->answered, way->answers.freed);
	return is_news;
}
