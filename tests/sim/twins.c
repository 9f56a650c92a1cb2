/* Twins: one seed's traffic on one seed's network, first between engines that go back, then between engines that
 * recover selectively. Programs see the same of both: each completion of a queue and its order, the results of
 * atomics, and memory at the end. Besides, check_*.c compare each run with what was posted.
 *
 * For that, what is posted does not depend on time: an endpoint draws from numbers of its own, posts a bunch when all
 * of the one before has completed, and adds to cells that nobody else has. Where retries run out in one run, which both
 * may do at another time, the two are equal up to there. */
#include <stdlib.h>
#include <string.h>
#include "net/grow.h"
#include "sim.h"

#define PAIRS 2
#define BUNCH 24

_Static_assert(2 * PAIRS <= CELLS / 2, "each endpoint has a cell of either kind");

enum queue { SENDS, RECEIVES, QUEUES };

/* The completions of a queue: of each a hash of it and all before it. */
struct seen {
	uint64_t *hashes;
	uint32_t count, room;
};

struct program {
	struct vb_random random;
	uint64_t packets; /* posted */
	struct seen queues[QUEUES];
	uint64_t memory;   /* at the end */
	bool is_cut_short; /* retries ran out: nothing is posted or noted any more */
};

static struct program programs[2][2 * PAIRS];
static struct program *programs_now;

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x100000001B3u;
	return hash ^ hash >> 29;
}

void twins_open(void)
{
	programs_now = programs[world.recovery == VB_RECOVERY_GO_BACK_N ? 0 : 1];
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		vb_random_seed(&programs_now[i].random, world.seed * 16 + i);
	world.connection_count = PAIRS;
	for (unsigned i = 0; i < PAIRS; i++)
		connection_open(&world.connections[i], i, VB_QP_RC, false);
}

unsigned twins_cell(const struct endpoint *end)
{
	return endpoint_number(end) + (chance(500000) ? CELLS / 2 : 0);
}

static bool has_posted_all(const struct program *program)
{
	return program->is_cut_short || program->packets >= world.packets_wanted / (2 * PAIRS);
}

static void stop_if_all_is_posted(void)
{
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		if (!has_posted_all(&programs_now[i]))
			return;
	world.is_stopping = true;
}

static bool post_bunch(struct endpoint *end, struct program *program)
{
	unsigned first = end->tail;
	for (unsigned n = 1 + below(BUNCH); n && request_post(end); n--)
		;
	request_post_last(end);
	for (unsigned i = first; i != end->tail; i++)
		program->packets += 1 + end->posted[i % MAX_QUEUE].length / end->connection->mtu;
	return end->tail != first;
}

bool twins_post(struct endpoint *end)
{
	struct program *program = &programs_now[endpoint_number(end)];
	if (end->head != end->tail)
		return request_post_last(end);
	if (has_posted_all(program)) {
		stop_if_all_is_posted();
		return false;
	}
	struct vb_random shared = world.random;
	world.random = program->random;
	bool has_posted = post_bunch(end, program);
	program->random = world.random;
	world.random = shared;
	return has_posted;
}

static void add(struct endpoint *end, enum queue queue, uint64_t value)
{
	struct program *program = &programs_now[endpoint_number(end)];
	struct seen *seen = &program->queues[queue];
	if (program->is_cut_short)
		return;
	if (!grow_by_one(&seen->hashes, &seen->room, seen->count, sizeof(*seen->hashes)))
		broken("there is no memory for what is seen");
	uint64_t before = seen->count ? seen->hashes[seen->count - 1] : 0;
	seen->hashes[seen->count++] = mix(before, value);
}

void twins_note(struct endpoint *end, uint64_t result)
{
	if (world.is_twin)
		add(end, SENDS, result);
}

/* Which receive a message takes depends on when receives were posted, so that is not compared. */
void twins_completed(struct endpoint *end, const struct vb_wc *wc)
{
	if (!world.is_twin)
		return;
	bool is_sent = wc->wr_id >> 40;
	if (wc->status != VB_WC_SUCCESS)
		for (unsigned k = 0; k < 2; k++)
			programs_now[endpoint_number(&end->connection->ends[k])].is_cut_short = true;
	uint64_t value = mix(mix(is_sent ? wc->wr_id : 0, wc->opcode), wc->flags);
	add(end, is_sent ? SENDS : RECEIVES, mix(mix(value, wc->byte_len), is_sent ? 0 : wc->imm_or_inv));
}

static uint64_t hash_of(const struct block *block)
{
	uint64_t hash = block->size;
	for (uint64_t i = 0; i < block->size; i += 8) {
		uint64_t word;
		memcpy(&word, block->bytes + i, 8);
		hash = mix(hash, word);
	}
	return hash;
}

void twins_end(void)
{
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned k = 0; k < 2; k++) {
			struct endpoint *end = &world.connections[i].ends[k];
			programs_now[endpoint_number(end)].memory = mix(hash_of(&end->local), hash_of(&end->target));
		}
}

/* One queue, up to the end of the shorter. */
static void compare_queues(unsigned place, enum queue queue)
{
	const struct seen *a = &programs[0][place].queues[queue], *b = &programs[1][place].queues[queue];
	uint32_t both = a->count < b->count ? a->count : b->count;
	for (uint32_t i = 0; i < both; i++)
		if (a->hashes[i] != b->hashes[i])
			broken("connection %u, end %u: by selective repeat the program sees other %s from the %uth on",
				place / 2, place % 2, queue == SENDS ? "completions" : "messages", i + 1);
	if (!programs[0][place].is_cut_short && !programs[1][place].is_cut_short && a->count != b->count)
		broken("connection %u, end %u: %u %s by going back, %u by selective repeat", place / 2, place % 2,
			a->count, queue == SENDS ? "completions" : "messages", b->count);
}

bool twins_compare(void)
{
	bool are_whole = true;
	uint64_t total = 0;
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		const struct program *a = &programs[0][i], *b = &programs[1][i];
		for (enum queue queue = 0; queue < QUEUES; queue++) {
			compare_queues(i, queue);
			total += b->queues[queue].count;
		}
		are_whole &= !a->is_cut_short && !b->is_cut_short;
		if (!a->is_cut_short && !b->is_cut_short && a->memory != b->memory)
			broken("connection %u, end %u: memory is another by selective repeat", i / 2, i % 2);
	}
	trace("twins: %llu completions", (unsigned long long)total);
	for (unsigned run = 0; run < 2; run++)
		for (unsigned i = 0; i < 2 * PAIRS; i++)
			for (enum queue queue = 0; queue < QUEUES; queue++)
				free(programs[run][i].queues[queue].hashes);
	memset(programs, 0, sizeof(programs));
	return are_whole;
}
