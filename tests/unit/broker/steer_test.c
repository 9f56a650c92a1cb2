/* The broker's two BPF programs, run by an interpreter of the few instructions that they are made of. */
#include "broker/steer.h"
#include "../unit.h"

enum { OWN = 7, BTH_LENGTH = 12, AT_SLOT = 5, UDP_HEADER = 8, LO = 1, ETH = 2, MULTICAST = 0xFF };

struct datagram {
	uint8_t bytes[64];
	uint32_t length;
	uint32_t ifindex;
};

/* False: outside the datagram, which ends a program with 0. */
static bool load(const struct sock_filter *at, const struct datagram *datagram, uint32_t *a)
{
	uint32_t size = BPF_SIZE(at->code) == BPF_B ? 1 : BPF_SIZE(at->code) == BPF_H ? 2 : 4;
	if (BPF_MODE(at->code) == BPF_LEN || (int32_t)at->k == SKF_AD_OFF + SKF_AD_IFINDEX) {
		*a = BPF_MODE(at->code) == BPF_LEN ? datagram->length : datagram->ifindex;
		return true;
	}
	if (at->k + size > datagram->length)
		return false;
	*a = 0;
	for (uint32_t i = 0; i < size; i++)
		*a = *a << 8 | datagram->bytes[at->k + i];
	return true;
}

static uint32_t run(const struct sock_filter *program, unsigned length, const struct datagram *datagram)
{
	uint32_t a = 0;
	for (unsigned pc = 0; pc < length; pc++) {
		const struct sock_filter *at = &program[pc];
		switch (BPF_CLASS(at->code)) {
		case BPF_LD:
			if (!load(at, datagram, &a))
				return 0;
			break;
		case BPF_JMP:
			if (BPF_OP(at->code) == BPF_JA)
				pc += at->k;
			else
				pc += (BPF_OP(at->code) == BPF_JEQ ? a == at->k : a >= at->k) ? at->jt : at->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(at->code) == BPF_A ? a : at->k;
		default:
			fail_msg("instruction %u", pc);
		}
	}
	fail_msg("the program has no end");
	return 0;
}

/* As the network brings it. */
static struct datagram packet_to(uint8_t slot)
{
	struct datagram datagram = { .bytes = { 0x64 }, .length = 40, .ifindex = ETH };
	datagram.bytes[AT_SLOT] = slot;
	return datagram;
}

static struct datagram probe_of(const uint8_t probe[STEER_PROBE_LENGTH], uint32_t ifindex)
{
	struct datagram datagram = { .length = STEER_PROBE_LENGTH, .ifindex = ifindex };
	memcpy(datagram.bytes, probe, STEER_PROBE_LENGTH);
	return datagram;
}

static uint32_t steer(const int index[STEER_SLOTS], struct datagram datagram)
{
	struct sock_filter program[STEER_MAX_PROGRAM];
	unsigned length = steer_build_map(program, index, OWN);
	assert_true(length <= STEER_MAX_PROGRAM);
	return run(program, length, &datagram);
}

/* A socket filter sees the UDP header too. */
static bool is_let_in(uint8_t slot, struct datagram datagram)
{
	struct sock_filter filter[STEER_FILTER_SIZE];
	steer_build_filter(filter, slot);
	memmove(datagram.bytes + UDP_HEADER, datagram.bytes, sizeof(datagram.bytes) - UDP_HEADER);
	datagram.length += UDP_HEADER;
	uint32_t kept = run(filter, STEER_FILTER_SIZE, &datagram);
	assert_true(kept == 0 || kept >= 65535);
	return kept;
}

static void map__leads_each_slot_to_its_socket_and_all_others_to_the_brokers(void **state)
{
	static const unsigned taken[] = { 0, 1, 2, 3, 17, STEER_SLOTS };
	for (unsigned i = 0; i < COUNT_OF(taken); i++) {
		int index[STEER_SLOTS];
		for (unsigned slot = 0; slot < STEER_SLOTS; slot++) /* spread, and not in order */
			index[slot] = slot * 37 % STEER_SLOTS < taken[i] ? (int)(slot * 91 % 257) : -1;
		for (unsigned slot = 0; slot < STEER_SLOTS; slot++) {
			bool is_one = slot != 0 && slot != MULTICAST && index[slot] >= 0;
			assert_int_equal(steer(index, packet_to((uint8_t)slot)), is_one ? index[slot] : OWN);
		}
	}
}

static void map__sends_what_has_no_qpn_to_the_broker(void **state)
{
	int index[STEER_SLOTS] = { 0 };
	struct datagram datagram = packet_to(1);
	for (datagram.length = 0; datagram.length < BTH_LENGTH; datagram.length++)
		assert_int_equal(steer(index, datagram), OWN);
	assert_int_equal(steer(index, datagram), 0);
}

static void probe__finds_an_index_or_goes_as_others_of_its_slot(void **state)
{
	uint8_t probe[STEER_PROBE_LENGTH];
	int index[STEER_SLOTS] = { [9] = 300 };
	steer_build_index_probe(probe, 511);
	assert_int_equal(steer(index, probe_of(probe, LO)), 511);
	steer_build_slot_probe(probe, 9);
	assert_int_equal(steer(index, probe_of(probe, LO)), 300);
}

static void probe__from_outside_is_a_packet_like_any(void **state)
{
	uint8_t probe[STEER_PROBE_LENGTH];
	int index[STEER_SLOTS] = { [0 ... STEER_SLOTS - 1] = -1 };
	steer_build_index_probe(probe, 511);
	assert_int_equal(steer(index, probe_of(probe, ETH)), OWN);
	steer_build_slot_probe(probe, 9);
	assert_true(is_let_in(9, probe_of(probe, ETH)));
}

static void probe__is_received_by_nobody(void **state)
{
	uint8_t probe[STEER_PROBE_LENGTH];
	for (unsigned slot = 0; slot < STEER_SLOTS; slot++) {
		steer_build_slot_probe(probe, (uint8_t)slot);
		assert_false(is_let_in((uint8_t)slot, probe_of(probe, LO)));
	}
}

static void filter__lets_in_its_slot_and_multicast_alone(void **state)
{
	for (unsigned to = 0; to < STEER_SLOTS; to++) {
		assert_int_equal(is_let_in(3, packet_to((uint8_t)to)), to == 3 || to == MULTICAST);
		assert_int_equal(is_let_in(0, packet_to((uint8_t)to)), to == 0);
	}
	struct datagram cut = packet_to(0);
	cut.length = AT_SLOT;
	assert_false(is_let_in(0, cut));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map__leads_each_slot_to_its_socket_and_all_others_to_the_brokers),
		cmocka_unit_test(map__sends_what_has_no_qpn_to_the_broker),
		cmocka_unit_test(probe__finds_an_index_or_goes_as_others_of_its_slot),
		cmocka_unit_test(probe__from_outside_is_a_packet_like_any),
		cmocka_unit_test(probe__is_received_by_nobody),
		cmocka_unit_test(filter__lets_in_its_slot_and_multicast_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
