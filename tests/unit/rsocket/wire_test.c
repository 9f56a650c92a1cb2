#include "rsocket/wire.h"
#include "../unit.h"

#include <errno.h>
#include <string.h>

static const struct vb_rs_hello hello = {
	.has_mappings = true,
	.credits = 384,
	.mappings = 512,
	.targets = { 0x0102030405060708, 0x11121314, 2 },
	.data = { 0x2122232425262728, 0x31323334, 65536 },
};

static const uint8_t hello_bytes[VB_RS_HELLO_LENGTH] = { 1, 2, 1, 0x80, 0, 0, 0, 0x82, 1, 2, 3, 4, 5, 6, 7, 8, 0x11,
	0x12, 0x13, 0x14, 0, 0, 0, 2, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0, 1, 0,
	0 };

static void hello__lies_on_the_wire_as_librdmacm_has_it(void **state)
{
	uint8_t bytes[VB_RS_HELLO_LENGTH];
	memset(bytes, 0xEE, sizeof(bytes));
	vb_rs_hello_encode(&hello, bytes);
	assert_memory_equal(bytes, hello_bytes, sizeof(bytes));
}

static void hello__comes_back_with_room_behind_it(void **state)
{
	uint8_t bytes[56] = { 0 };
	struct vb_rs_hello seen;
	memcpy(bytes, hello_bytes, sizeof(hello_bytes));
	assert_int_equal(vb_rs_hello_decode(&seen, bytes, sizeof(bytes)), 0);
	assert_true(seen.has_mappings && !seen.is_big_endian);
	assert_int_equal(seen.credits, 384);
	assert_int_equal(seen.mappings, 512);
	assert_true(seen.targets.addr == hello.targets.addr && seen.data.addr == hello.data.addr);
	assert_int_equal(seen.targets.key, hello.targets.key);
	assert_int_equal(seen.data.length, 65536);
}

static void hello__of_another_program_is_refused(void **state)
{
	struct {
		size_t at;
		uint8_t value;
	} wrong[] = { { 0, 0 }, { 0, 2 } };
	struct vb_rs_hello seen;
	uint8_t bytes[VB_RS_HELLO_LENGTH];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(bytes, hello_bytes, sizeof(bytes));
		bytes[wrong[i].at] = wrong[i].value;
		assert_int_equal(vb_rs_hello_decode(&seen, bytes, sizeof(bytes)), -EPROTO);
	}
	assert_int_equal(vb_rs_hello_decode(&seen, hello_bytes, sizeof(hello_bytes) - 1), -EPROTO);
	assert_int_equal(vb_rs_hello_decode(&seen, NULL, 0), -EPROTO);
}

static void hello__that_leads_nowhere_is_refused(void **state)
{
	struct vb_rs_hello bad[] = { hello, hello, hello, hello }, seen;
	uint8_t bytes[VB_RS_HELLO_LENGTH];

	bad[0].targets.length = 0;
	bad[1].targets.length = VB_RS_TARGETS_MAX + 1;
	bad[2].data.length = 0;
	bad[3].credits = 0;
	for (int i = 0; i < 4; i++) {
		vb_rs_hello_encode(&bad[i], bytes);
		assert_int_equal(vb_rs_hello_decode(&seen, bytes, sizeof(bytes)), -EPROTO);
	}
}

static void mappings__are_rounded_up_to_what_eight_bits_say(void **state)
{
	assert_int_equal(vb_rs_mappings_round(0), 0);
	assert_int_equal(vb_rs_mappings_round(127), 127);
	assert_int_equal(vb_rs_mappings_round(128), 128);
	assert_int_equal(vb_rs_mappings_round(129), 256);
	assert_int_equal(vb_rs_mappings_round(257), 512);
	assert_int_equal(vb_rs_mappings_round(UINT32_MAX), VB_RS_MAPPINGS_MAX);
}

static void region__is_written_in_the_peers_byte_order(void **state)
{
	static const uint8_t big[] = { 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 2 };
	static const uint8_t little[] = { 8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 2, 0, 0, 0 };
	uint8_t bytes[VB_RS_REGION_LENGTH];
	vb_rs_region_encode(&hello.targets, true, bytes);
	assert_memory_equal(bytes, big, sizeof(bytes));
	vb_rs_region_encode(&hello.targets, false, bytes);
	assert_memory_equal(bytes, little, sizeof(bytes));
}

static void message__is_three_bits_and_twenty_nine(void **state)
{
	assert_int_equal(vb_rs_message(VB_RS_DATA, 65536), 65536);
	assert_int_equal(vb_rs_message(VB_RS_CREDITS, 0x12345), 0x80012345);
	assert_int_equal(vb_rs_message(VB_RS_CONTROL, VB_RS_SHUTDOWN), 0xE0000002);
	assert_int_equal(vb_rs_message_op(0xC0000007), VB_RS_MAPPING);
	assert_int_equal(vb_rs_message_value(0xC0000007), 7);
}

/* ---- Rings ------------------------------------------------------------------------------------------------------- */

static struct vb_rs_sender new_sender(uint32_t size, uint32_t first, uint16_t credits)
{
	struct vb_rs_hello peer = { .credits = credits, .data = { 1000, 7, first } };
	struct vb_rs_sender sender;
	vb_rs_sender_init(&sender, size, &peer);
	return sender;
}

static void sender__stops_where_its_ring_its_target_or_its_credits_end(void **state)
{
	struct vb_rs_sender ring = new_sender(100, 1000, 10);
	assert_int_equal(vb_rs_sender_room(&ring), 100);
	vb_rs_sender_take(&ring, 60, false);
	assert_int_equal(vb_rs_sender_room(&ring), 40);
	vb_rs_sender_free(&ring, 60);
	assert_int_equal(vb_rs_sender_room(&ring), 40); /* to the ring's end */
	vb_rs_sender_take(&ring, 40, false);
	assert_int_equal(vb_rs_sender_room(&ring), 60);

	struct vb_rs_sender target = new_sender(100, 30, 10);
	assert_int_equal(vb_rs_sender_room(&target), 30);
	vb_rs_sender_take(&target, 30, true);
	assert_int_equal(vb_rs_sender_room(&target), 0);

	struct vb_rs_sender credits = new_sender(100, 100, 1);
	vb_rs_sender_take(&credits, 1, true);
	assert_int_equal(vb_rs_sender_room(&credits), 0);
	credits.limit++;
	assert_int_equal(vb_rs_sender_room(&credits), 99); /* of the target: what goes inline leaves our ring alone */
}

static void sender__waits_for_room_that_is_worth_it(void **state)
{
	struct vb_rs_sender sender = new_sender(100, 1000, 10);
	vb_rs_sender_take(&sender, 50, false);
	vb_rs_sender_take(&sender, 50, false);
	vb_rs_sender_free(&sender, 24);
	assert_int_equal(vb_rs_sender_room(&sender), 0);
	vb_rs_sender_free(&sender, 1);
	assert_int_equal(vb_rs_sender_room(&sender), 25);
	/* Nothing more will ever lie together before the ring's end. */
	sender.put_at = 95;
	sender.free = 5;
	assert_int_equal(vb_rs_sender_room(&sender), 5);
}

static void sender__goes_through_its_targets_in_order(void **state)
{
	struct vb_rs_sender sender = new_sender(1000, 10, 100);
	struct vb_rs_region second = { 5000, 8, 10 }, third = { 9000, 9, 10 };

	assert_true(vb_rs_sender_grant(&sender, &second));
	assert_false(vb_rs_sender_grant(&sender, &third)); /* both are in use */
	struct vb_rs_region place = vb_rs_sender_take(&sender, 4, false);
	assert_true(place.addr == 1000 && place.key == 7);
	place = vb_rs_sender_take(&sender, 6, false);
	assert_true(place.addr == 1004);
	assert_true(vb_rs_sender_grant(&sender, &third));
	place = vb_rs_sender_take(&sender, 10, false);
	assert_true(place.addr == 5000 && place.key == 8);
	place = vb_rs_sender_take(&sender, 1, false);
	assert_true(place.addr == 9000 && place.key == 9);
}

static void sender__that_used_all_goes_on_with_the_next_grant(void **state)
{
	struct vb_rs_sender sender = new_sender(1000, 10, 100);
	struct vb_rs_region second = { 5000, 8, 10 };
	vb_rs_sender_take(&sender, 10, false);
	assert_int_equal(vb_rs_sender_room(&sender), 0);
	assert_true(vb_rs_sender_grant(&sender, &second));
	assert_int_equal(vb_rs_sender_room(&sender), 10);
	assert_true(vb_rs_sender_take(&sender, 1, false).addr == 5000);
}

static void receiver__refuses_more_than_it_granted(void **state)
{
	struct vb_rs_receiver receiver;
	vb_rs_receiver_init(&receiver, 200, 16);
	assert_false(vb_rs_receiver_arrive(&receiver, 201));
	assert_true(vb_rs_receiver_arrive(&receiver, 200));
	assert_false(vb_rs_receiver_arrive(&receiver, 1));
	assert_int_equal(receiver.ready, 200);
}

static void receiver__grants_a_half_only_when_it_was_read(void **state)
{
	struct vb_rs_receiver receiver;
	bool has_half;
	uint32_t at;

	vb_rs_receiver_init(&receiver, 200, 16);
	assert_true(vb_rs_receiver_arrive(&receiver, 100));
	assert_true(vb_rs_receiver_arrive(&receiver, 100));
	vb_rs_receiver_consume(&receiver, 99);
	assert_false(vb_rs_receiver_credits_due(&receiver));
	vb_rs_receiver_consume(&receiver, 1);
	assert_true(vb_rs_receiver_credits_due(&receiver));
	assert_int_equal(vb_rs_receiver_take_credits(&receiver, &has_half, &at), 18);
	assert_true(has_half && at == 0);
	assert_int_equal(vb_rs_receiver_together(&receiver), 100);
}

static void receiver__gives_credits_back_when_half_of_them_are_used(void **state)
{
	struct vb_rs_receiver receiver;
	bool has_half;
	uint32_t at;

	vb_rs_receiver_init(&receiver, 2000, 16);
	for (int i = 0; i < 7; i++) {
		assert_true(vb_rs_receiver_arrive(&receiver, 1));
		assert_false(vb_rs_receiver_credits_due(&receiver));
	}
	assert_true(vb_rs_receiver_arrive(&receiver, 1));
	assert_true(vb_rs_receiver_credits_due(&receiver));
	assert_int_equal(vb_rs_receiver_take_credits(&receiver, &has_half, &at), 8 + 16);
	assert_false(has_half);
}

/* One side's sender and the other's receiver, as the messages between them move. */
struct wire {
	struct vb_rs_sender sender;
	struct vb_rs_receiver receiver;
	uint8_t ring[600];
	uint32_t written, read;
};

static uint8_t byte_at(uint32_t position)
{
	return (uint8_t)(position * 2654435761u >> 24);
}

static void tell(struct wire *wire)
{
	bool has_half;
	uint32_t at;
	if (!vb_rs_receiver_credits_due(&wire->receiver))
		return;
	wire->sender.limit = vb_rs_receiver_take_credits(&wire->receiver, &has_half, &at);
	struct vb_rs_region half = { at, 1, wire->receiver.size / 2 };
	if (has_half)
		assert_true(vb_rs_sender_grant(&wire->sender, &half));
}

static void move_some(struct wire *wire, uint32_t wanted)
{
	uint32_t room = vb_rs_sender_room(&wire->sender), length = wanted < room ? wanted : room;
	if (!length)
		return;
	struct vb_rs_region place = vb_rs_sender_take(&wire->sender, length, false);
	for (uint32_t i = 0; i < length; i++)
		wire->ring[place.addr + i] = byte_at(wire->written++);
	assert_true(vb_rs_receiver_arrive(&wire->receiver, length));
	vb_rs_sender_free(&wire->sender, length);
}

static void read_some(struct wire *wire, uint32_t wanted)
{
	uint32_t together = vb_rs_receiver_together(&wire->receiver), length = wanted < together ? wanted : together;
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(wire->ring[wire->receiver.read_at + i], byte_at(wire->read++));
	vb_rs_receiver_consume(&wire->receiver, length);
}

static void rings__carry_every_byte_in_order_and_never_stop(void **state)
{
	struct wire wire = { 0 };
	struct vb_rs_hello peer = { .credits = 16, .data = { 0, 1, sizeof(wire.ring) } };
	uint32_t random = 1;

	vb_rs_sender_init(&wire.sender, 130, &peer);
	vb_rs_receiver_init(&wire.receiver, sizeof(wire.ring), 16);
	for (int i = 0; i < 200000; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 31)
			move_some(&wire, (random >> 8) % 97 + 1);
		else
			read_some(&wire, (random >> 8) % 211 + 1);
		tell(&wire);
	}
	assert_true(wire.read > 1000000);
	assert_true(wire.written - wire.read <= sizeof(wire.ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__lies_on_the_wire_as_librdmacm_has_it),
		cmocka_unit_test(hello__comes_back_with_room_behind_it),
		cmocka_unit_test(hello__of_another_program_is_refused),
		cmocka_unit_test(hello__that_leads_nowhere_is_refused),
		cmocka_unit_test(mappings__are_rounded_up_to_what_eight_bits_say),
		cmocka_unit_test(region__is_written_in_the_peers_byte_order),
		cmocka_unit_test(message__is_three_bits_and_twenty_nine),
		cmocka_unit_test(sender__stops_where_its_ring_its_target_or_its_credits_end),
		cmocka_unit_test(sender__waits_for_room_that_is_worth_it),
		cmocka_unit_test(sender__goes_through_its_targets_in_order),
		cmocka_unit_test(sender__that_used_all_goes_on_with_the_next_grant),
		cmocka_unit_test(receiver__refuses_more_than_it_granted),
		cmocka_unit_test(receiver__grants_a_half_only_when_it_was_read),
		cmocka_unit_test(receiver__gives_credits_back_when_half_of_them_are_used),
		cmocka_unit_test(rings__carry_every_byte_in_order_and_never_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
