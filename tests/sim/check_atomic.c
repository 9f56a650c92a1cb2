/* Invariant: the atomics on a cell are one order of events that agrees with time, each executed once. Cells that are
 * added
 * to: every addition is of 1, so all results differ, and one that was posted after another completed sees more. Cells
 * that are swapped: every new value is unique, so a value is taken away at most once. */
#include <stdlib.h>
#include <string.h>
#include "sim.h"

static struct cell {
	uint64_t done, unknown; /* operations; unknown: their connection broke */
	uint64_t floor;         /* the largest result known so far, plus one */
	uint64_t last;          /* swapped: the value seen last */
	uint64_t *seen;         /* results, or values taken away: a set */
	uint64_t seen_room, seen_count;
} cells[MAX_HOSTS][CELLS];

static bool set_add(struct cell *cell, uint64_t value)
{
	if (cell->seen_count * 2 >= cell->seen_room) {
		struct cell bigger = *cell;
		bigger.seen_room = cell->seen_room ? cell->seen_room * 2 : 64;
		bigger.seen = calloc(bigger.seen_room, 8);
		bigger.seen_count = 0;
		for (uint64_t i = 0; i < cell->seen_room; i++)
			if (cell->seen[i])
				set_add(&bigger, cell->seen[i] - 1);
		free(cell->seen);
		*cell = bigger;
	}
	uint64_t i = value * 0x9E3779B97F4A7C15u >> 20;
	for (;; i++) {
		uint64_t *slot = &cell->seen[i & (cell->seen_room - 1)];
		if (*slot == value + 1)
			return false;
		if (*slot == 0) {
			*slot = value + 1;
			cell->seen_count++;
			return true;
		}
	}
}

void atomic_choose(struct endpoint *end, struct wr *wr)
{
	wr->kind = WR_ATOMIC;
	wr->cell = world.is_twin ? twins_cell(end) : below(CELLS);
	struct cell *cell = &cells[end->peer->host->index][wr->cell];
	bool is_add = wr->cell < CELLS / 2;
	wr->opcode = is_add ? VB_WR_ATOMIC_FETCH_AND_ADD : VB_WR_ATOMIC_CMP_AND_SWP;
	wr->compare = is_add ? cell->floor : cell->last;
	wr->swap_add = is_add ? 1 : wr->id;
}

void atomic_done(struct endpoint *end, struct wr *wr, uint64_t result)
{
	struct cell *cell = &cells[end->peer->host->index][wr->cell];
	cell->done++;
	twins_note(end, result);
	if (wr->cell < CELLS / 2) {
		if (!set_add(cell, result))
			broken("qpn %06x: two additions to one cell saw %llu", end->qpn, (unsigned long long)result);
		if (result < wr->compare)
			broken("qpn %06x: an addition saw %llu, when %llu was past already", end->qpn,
				(unsigned long long)result, (unsigned long long)wr->compare);
		if (result >= cell->floor)
			cell->floor = result + 1;
		return;
	}
	cell->last = result == wr->compare ? wr->swap_add : result;
	if (result == wr->compare && !set_add(cell, result))
		broken("qpn %06x: the value %llu was swapped away twice", end->qpn, (unsigned long long)result);
}

void atomic_unknown(struct endpoint *end, struct wr *wr)
{
	cells[end->peer->host->index][wr->cell].unknown++;
}

void check_atomics(void)
{
	for (unsigned h = 0; h < world.host_count; h++) {
		for (unsigned c = 0; c < CELLS / 2; c++) {
			struct cell *cell = &cells[h][c];
			uint64_t value;
			memcpy(&value, world.hosts[h].cells.bytes + c * 8, 8);
			if (value < cell->done || value > cell->done + cell->unknown)
				broken("cell %u of host %u holds %llu after %llu additions and %llu of unknown fate", c,
					h, (unsigned long long)value, (unsigned long long)cell->done,
					(unsigned long long)cell->unknown);
		}
	}
}

void atomic_reset(void)
{
	for (unsigned h = 0; h < MAX_HOSTS; h++)
		for (unsigned c = 0; c < CELLS; c++)
			free(cells[h][c].seen);
	memset(cells, 0, sizeof(cells));
}
