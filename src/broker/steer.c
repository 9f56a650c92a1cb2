/* Classic BPF for steer.h. In a steering program offsets count from the UDP payload, in a socket filter from the UDP
 * header. A load outside the datagram ends a program with 0, which would be index 0, a client's: hence the check of the
 * length first. */
#include "broker/steer.h"

#include <string.h>
#include "base/bytes.h"
#include "base/invariant.h"

/* An opcode that no transport uses, so that ordinary packets leave both programs after one comparison. */
#define PROBE_OPCODE   0xFF
#define PROBE_MAGIC_A  0x56424e41u
#define PROBE_MAGIC_B  0x9d3c61e5u
#define PROBE_BY_INDEX 1
#define LOOPBACK       1 /* interface index of lo in every network namespace: probes come from nowhere else */
#define BTH_LENGTH     12
#define UDP_HEADER     8
#define MULTICAST_SLOT 0xFF

enum { AT_OPCODE = 0, AT_SLOT = 5, AT_MAGIC_A = 8, AT_MAGIC_B = 12, AT_KIND = 16, AT_INDEX = 18, PROBE_MIN = 20 };

#define LOAD_LENGTH()             ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0))
#define LOAD(size, at)            ((struct sock_filter)BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)(at)))
#define RETURN(value)             ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value)))
#define JUMP(how, value, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | (how) | BPF_K, (value), (yes), (no)))

struct entry {
	uint8_t slot;
	uint16_t index;
};

struct writer {
	struct sock_filter *program;
	unsigned length;
	unsigned own_index;
};

static void emit(struct writer *w, struct sock_filter instruction)
{
	assert(w->length < STEER_MAX_PROGRAM);
	w->program[w->length++] = instruction;
}

/* A binary search; the accumulator holds the slot. Conditional jumps reach 255 instructions, BPF_JA any number. */
static void emit_search(struct writer *w, const struct entry *entries, unsigned count)
{
	if (count == 0) {
		emit(w, RETURN(w->own_index));
		return;
	}
	if (count == 1) {
		emit(w, JUMP(BPF_JEQ, entries[0].slot, 0, 1));
		emit(w, RETURN(entries[0].index));
		emit(w, RETURN(w->own_index));
		return;
	}
	unsigned half = count / 2;
	assert(entries[half - 1].slot < entries[half].slot);
	emit(w, JUMP(BPF_JGE, entries[half].slot, 0, 1));
	unsigned far = w->length;
	emit(w, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	emit_search(w, entries, half);
	w->program[far].k = w->length - far - 1;
	emit_search(w, entries + half, count - half);
}

unsigned steer_build_map(
	struct sock_filter program[STEER_MAX_PROGRAM], const int index[STEER_SLOTS], unsigned own_index)
{
	struct writer w = { program, 0, own_index };
	struct entry entries[STEER_SLOTS];
	unsigned count = 0;
	for (unsigned slot = 1; slot < STEER_SLOTS - 1; slot++)
		if (index[slot] >= 0)
			entries[count++] = (struct entry){ (uint8_t)slot, (uint16_t)index[slot] };

	emit(&w, LOAD_LENGTH());
	emit(&w, JUMP(BPF_JGE, BTH_LENGTH, 1, 0));
	emit(&w, RETURN(own_index));
	emit(&w, LOAD(BPF_B, AT_OPCODE));
	emit(&w, JUMP(BPF_JEQ, PROBE_OPCODE, 0, 12));
	emit(&w, LOAD_LENGTH());
	emit(&w, JUMP(BPF_JGE, PROBE_MIN, 0, 10));
	emit(&w, LOAD(BPF_W, AT_MAGIC_A));
	emit(&w, JUMP(BPF_JEQ, PROBE_MAGIC_A, 0, 8));
	emit(&w, LOAD(BPF_W, AT_MAGIC_B));
	emit(&w, JUMP(BPF_JEQ, PROBE_MAGIC_B, 0, 6));
	emit(&w, LOAD(BPF_W, SKF_AD_OFF + SKF_AD_IFINDEX));
	emit(&w, JUMP(BPF_JEQ, LOOPBACK, 0, 4));
	emit(&w, LOAD(BPF_B, AT_KIND));
	emit(&w, JUMP(BPF_JEQ, PROBE_BY_INDEX, 0, 2));
	emit(&w, LOAD(BPF_H, AT_INDEX));
	emit(&w, (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0));
	emit(&w, LOAD(BPF_B, AT_SLOT));
	emit_search(&w, entries, count);
	return w.length;
}

void steer_build_filter(struct sock_filter filter[STEER_FILTER_SIZE], uint8_t slot)
{
	/* A filter accepts by returning how many bytes to keep: any number above a datagram's length. */
	const struct sock_filter accept = RETURN(0x56420000u), drop = RETURN(0);
	/* The broker's own socket drops multicast: group.c. */
	const struct sock_filter multicast = slot ? accept : drop;
	const struct sock_filter program[STEER_FILTER_SIZE] = {
		LOAD(BPF_B, UDP_HEADER + AT_OPCODE),
		JUMP(BPF_JEQ, PROBE_OPCODE, 0, 8),
		LOAD_LENGTH(),
		JUMP(BPF_JGE, UDP_HEADER + PROBE_MIN, 0, 6),
		LOAD(BPF_W, UDP_HEADER + AT_MAGIC_A),
		JUMP(BPF_JEQ, PROBE_MAGIC_A, 0, 4),
		LOAD(BPF_W, UDP_HEADER + AT_MAGIC_B),
		JUMP(BPF_JEQ, PROBE_MAGIC_B, 0, 2),
		LOAD(BPF_W, SKF_AD_OFF + SKF_AD_IFINDEX),
		JUMP(BPF_JEQ, LOOPBACK, 5, 0),
		LOAD(BPF_B, UDP_HEADER + AT_SLOT),
		JUMP(BPF_JEQ, slot, 0, 1),
		accept,
		JUMP(BPF_JEQ, MULTICAST_SLOT, 0, 1),
		multicast,
		drop,
	};
	_Static_assert(sizeof(program) == STEER_FILTER_SIZE * sizeof(struct sock_filter), "one room for all");
	memcpy(filter, program, sizeof(program));
}

static void build_probe(uint8_t probe[STEER_PROBE_LENGTH])
{
	memset(probe, 0, STEER_PROBE_LENGTH);
	probe[AT_OPCODE] = PROBE_OPCODE;
	vb_store_be32(probe + AT_MAGIC_A, PROBE_MAGIC_A);
	vb_store_be32(probe + AT_MAGIC_B, PROBE_MAGIC_B);
}

void steer_build_index_probe(uint8_t probe[STEER_PROBE_LENGTH], uint16_t index)
{
	build_probe(probe);
	probe[AT_KIND] = PROBE_BY_INDEX;
	vb_store_be16(probe + AT_INDEX, index);
}

void steer_build_slot_probe(uint8_t probe[STEER_PROBE_LENGTH], uint8_t slot)
{
	build_probe(probe);
	probe[AT_SLOT] = slot;
}
