/* The steps of a healthy connection: every size, atomics, bursts, receives that come late. */
#include "verify.h"

/* Around the boundaries of 1, 4 and 8 bytes and of every path MTU; then several packets, several windows. */
static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 5, 7, 8, 13, 255, 256, 257, 1023, 1024, 1025, 2049, 4095, 4096, 4097,
	8191, 10007, 65535, 65537, 300001 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const char *name_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		return "write";
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return "write with immediate";
	case IBV_WR_SEND:
		return "send";
	case IBV_WR_SEND_WITH_IMM:
		return "send with immediate";
	case IBV_WR_RDMA_READ:
		return "read";
	default:
		return "other";
	}
}

void run_sizes(struct end *end, enum ibv_wr_opcode opcode, uint32_t largest, bool is_active)
{
	uint64_t state = (uint64_t)opcode << 8;

	end->doing = name_of(opcode);
	for (unsigned i = 0; i < SIZES && sizes[i] <= largest; i++) {
		struct message message = { .opcode = opcode, .length = sizes[i] };

		draw_place(&message, &state, 0, SPAN);
		run_step(end, &message, 1, is_active, false);
	}
}

static void draw_atomic(struct message *message, uint64_t *state)
{
	message->length = sizeof(uint64_t);
	message->local = message->local / 8 * 8 + 8;
	message->remote = message->remote / 8 * 8 + 8;
	message->local_pieces = 1;
	message->operand = next_random(state);
}

/* The passive end's word before step, which a compare-and-swap that is to succeed must name. */
static uint64_t word_at(struct end *end, uint64_t step, uint32_t offset)
{
	uint64_t word;

	fill(end->other, step, false);
	memcpy(&word, end->other + offset, sizeof(word));
	return word;
}

void run_atomics(struct end *end, bool is_active)
{
	uint64_t state = 77;

	end->doing = "atomic";
	for (unsigned i = 0; i < 12; i++) {
		struct message message = { .opcode = i % 3 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD };

		draw_place(&message, &state, 0, SPAN);
		draw_atomic(&message, &state);
		message.compare = word_at(end, end->step + 1, message.remote) + (i % 3 == 2);
		run_step(end, &message, 1, is_active, false);
	}
}

/* Many requests of all kinds outstanding at once, each in a slot of its own. */
void run_bursts(struct end *end, const enum ibv_wr_opcode *opcodes, unsigned kinds, bool is_active)
{
	uint64_t state = 99;

	end->doing = "burst";
	for (unsigned round = 0; round < 8; round++) {
		struct message messages[BURST] = { 0 };

		for (unsigned i = 0; i < BURST; i++) {
			messages[i].opcode = opcodes[next_random(&state) % kinds];
			messages[i].length = (uint32_t)(next_random(&state) % (SLOT - 256));
			draw_place(&messages[i], &state, i * SLOT, SLOT - 16);
			messages[i].is_fenced = end->qp->qp_type == IBV_QPT_RC && next_random(&state) % 4 == 0;
			if (is_atomic(messages[i].opcode))
				draw_atomic(&messages[i], &state);
		}
		run_step(end, messages, BURST, is_active, false);
	}
}

void run_late_receive(struct end *end, bool is_active)
{
	uint64_t state = 55;

	end->doing = "send before its receive";
	for (unsigned i = 0; i < 3; i++) {
		struct message message = { .opcode = IBV_WR_SEND_WITH_IMM, .length = 5000 * i };

		draw_place(&message, &state, 0, SPAN);
		run_step(end, &message, 1, is_active, true);
	}
}
