#include <stdlib.h>
#include "fabric/state.h"
#include "../unit.h"

static struct shard shard;

static int setup(void **state)
{
	shard = (struct shard){ .free_packet = NO_PACKET, .free_long = NO_PACKET };
	return 0;
}

static int teardown(void **state)
{
	free(shard.packets);
	free(shard.headers);
	free(shard.long_headers);
	return 0;
}

/* With something in each of the opcode's headers. */
static struct vb_packet make(uint8_t opcode)
{
	const struct vb_opcode *row = &vb_opcodes[opcode];
	struct vb_packet headers = { .opcode = opcode,
		.ackreq = true,
		.becn = opcode & 1,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = 0xABCDEF,
		.psn = 0xFFFFFF };
	for (const uint8_t *header = row->headers; *header != VB_END; header++) {
		if (*header == VB_AETH) {
			headers.msn = 0x123456;
			headers.syndrome = 0x7F;
		} else if (*header == VB_RETH) {
			headers.va = 0x1122334455667788;
			headers.rkey = 0x99AABBCC;
			headers.dma_length = 0xDDEEFF00;
		} else if (*header == VB_ATOMICETH) {
			headers.compare = UINT64_MAX;
		} else if (*header == VB_IMMDT) {
			headers.imm = 0x01020304;
		}
	}
	if (row->payload != VB_PAYLOAD_NONE)
		headers.payload_length = row->payload == VB_PAYLOAD_EIGHT ? 8 : VB_MAX_MTU;
	return headers;
}

static void expect_kept(const struct vb_packet *headers)
{
	const struct packet its = { .src = 0xFFFFFD, .dst = 0xFFFFFC, .flow = 0xFFFF, .wire_bytes = 4242 };
	uint32_t packet = packet_get(&shard);
	assert_true(packet_fill(&shard, packet, &its, headers));
	struct vb_packet kept = packet_headers(&shard, packet);
	assert_memory_equal(&kept, headers, sizeof(kept));
	assert_int_equal(shard.packets[packet].src, 0xFFFFFD);
	assert_int_equal(shard.packets[packet].dst, 0xFFFFFC);
	assert_int_equal(shard.packets[packet].flow, 0xFFFF);
	uint32_t copy = packet_copy(&shard, packet);
	packet_put(&shard, packet); /* which a copy outlives */
	packet = packet_get(&shard);
	const struct vb_packet other = make(VB_WRITE_FIRST);
	assert_true(packet_fill(&shard, packet, &its, &other));
	kept = packet_headers(&shard, copy);
	assert_memory_equal(&kept, headers, sizeof(kept));
	packet_put(&shard, packet);
	packet_put(&shard, copy);
}

static void headers__of_every_opcode_are_kept(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (!vb_opcode_exists((uint8_t)opcode))
			continue;
		const struct vb_packet headers = make((uint8_t)opcode);
		expect_kept(&headers);
	}
}

static void headers__out_of_the_ordinary_are_kept(void **state)
{
	struct vb_packet headers = make(VB_WRITE_MIDDLE);
	headers.holder = UINT64_MAX;
	expect_kept(&headers);
	headers = make(VB_ACKNOWLEDGE);
	headers.pkey = 0x8001;
	expect_kept(&headers);
}

static void headers__take_no_further_room_where_a_message_goes_on_or_is_acknowledged(void **state)
{
	const uint8_t opcodes[] = { VB_WRITE_MIDDLE, VB_WRITE_LAST, VB_SEND_ONLY, VB_ACKNOWLEDGE };
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		const struct vb_packet headers = make(opcodes[i]);
		assert_true(packet_fill(&shard, packet_get(&shard), &(struct packet){ 0 }, &headers));
	}
	assert_int_equal(shard.long_count, 0);
}

static void room__is_used_again(void **state)
{
	const struct vb_packet headers = make(VB_WRITE_FIRST);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t packets[3];
		for (unsigned k = 0; k < 3; k++) {
			packets[k] = packet_get(&shard);
			assert_true(packet_fill(&shard, packets[k], &(struct packet){ 0 }, &headers));
		}
		for (unsigned k = 0; k < 3; k++)
			packet_put(&shard, packets[k]);
	}
	assert_int_equal(shard.packet_count, 3);
	assert_int_equal(shard.long_count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(headers__of_every_opcode_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(headers__out_of_the_ordinary_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			headers__take_no_further_room_where_a_message_goes_on_or_is_acknowledged, setup, teardown),
		cmocka_unit_test_setup_teardown(room__is_used_again, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
