/* The table against facts of the specification that it was not written from: counts, families, header orders. */
#include "wire/opcode.h"
#include "wire/packet.h"
#include "../unit.h"

static unsigned count_in(unsigned first, unsigned last)
{
	unsigned count = 0;
	for (unsigned opcode = first; opcode <= last; opcode++)
		count += vb_opcode_exists((uint8_t)opcode);
	return count;
}

static void opcode__each_transport_has_its_number_of_them(void **state)
{
	assert_int_equal(count_in(0x00, 0x1F), 25); /* 0x00-0x14, 0x16, 0x17, 0x1C, 0x1D */
	assert_int_equal(count_in(0x20, 0x3F), 12);
	assert_int_equal(count_in(0x40, 0x5F), 0); /* RD */
	assert_int_equal(count_in(0x60, 0x7F), 2);
	assert_int_equal(count_in(0x80, 0x9F), 1);
	assert_int_equal(count_in(0xA0, 0xBF), 23);
	assert_int_equal(count_in(0xC0, 0xDF), 0); /* other manufacturers' */
	assert_int_equal(count_in(0xE0, 0xFF), 8); /* Verbena's own */
}

static void opcode__names_exist_exactly_where_opcodes_do(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++)
		assert_int_equal(vb_opcodes[opcode].name != NULL, vb_opcode_exists((uint8_t)opcode));
}

static void opcode__names_are_unique(void **state)
{
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = a + 1; b < 256; b++) {
			if (vb_opcodes[a].name && vb_opcodes[b].name)
				assert_string_not_equal(vb_opcodes[a].name, vb_opcodes[b].name);
		}
	}
}

static void opcode__headers_length_is_the_sum_of_its_headers(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_opcode *row = &vb_opcodes[opcode];
		if (!row->name)
			continue;
		unsigned sum = VB_BTH_LENGTH, i = 0;
		for (; row->headers[i] != VB_END; i++)
			sum += vb_header_length[row->headers[i]];
		assert_in_range(i, 0, VB_MAX_HEADERS - 1);
		assert_int_equal(row->headers_length, sum);
		assert_in_range(sum, VB_BTH_LENGTH, VB_MAX_HEADER_BYTES);
		assert_int_equal(sum % 4, 0);
	}
}

/* rocev2 wire format: bytes of BTH and extension headers, from captures and worked vectors. */
static void opcode__headers_lengths_are_those_on_the_wire(void **state)
{
	static const struct {
		uint8_t opcode, length;
	} facts[] = { { 0x00, 12 }, { 0x05, 16 }, { 0x06, 28 }, { 0x0B, 32 }, { 0x0C, 28 }, { 0x0D, 16 }, { 0x0E, 12 },
		{ 0x11, 16 }, { 0x12, 24 }, { 0x13, 40 }, { 0x14, 40 }, { 0x17, 16 }, { 0x1C, 32 }, { 0x1D, 28 },
		{ 0x24, 12 }, { 0x64, 20 }, { 0x65, 24 }, { 0x81, 28 }, { 0xA0, 16 }, { 0xAB, 36 }, { 0xAE, 12 },
		{ 0xB1, 16 }, { 0xB3, 44 } };
	for (size_t i = 0; i < COUNT_OF(facts); i++)
		assert_int_equal(vb_opcodes[facts[i].opcode].headers_length, facts[i].length);
}

static void opcode__uc_and_xrc_share_what_rc_says(void **state)
{
	for (unsigned operation = 0; operation < 0x20; operation++) {
		const struct vb_opcode *rc = &vb_opcodes[operation];
		for (unsigned base = VB_UC; base <= VB_XRC; base += VB_XRC - VB_UC) {
			const struct vb_opcode *other = &vb_opcodes[base | operation];
			if (!other->name)
				continue;
			assert_int_equal(other->message, rc->message);
			assert_int_equal(other->place, rc->place);
			assert_int_equal(other->payload, rc->payload);
			assert_int_equal(other->is_response, rc->is_response);
			assert_int_equal(other->consumes_recv, rc->consumes_recv);
		}
	}
}

static void opcode__xrc_requests_carry_an_xrceth_first_and_responses_none(void **state)
{
	for (unsigned opcode = VB_XRC; opcode < VB_XRC + 0x20; opcode++) {
		const struct vb_opcode *row = &vb_opcodes[opcode];
		if (row->name)
			assert_int_equal(row->headers[0] == VB_XRCETH, !row->is_response);
	}
}

static void opcode__flags_agree_with_headers(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_opcode *row = &vb_opcodes[opcode];
		bool has_imm = false, has_inv = false;
		for (unsigned i = 0; i < VB_MAX_HEADERS; i++) {
			has_imm |= row->headers[i] == VB_IMMDT;
			has_inv |= row->headers[i] == VB_IETH;
		}
		assert_int_equal(row->has_imm, has_imm);
		assert_int_equal(row->has_inv, has_inv);
	}
}

static void opcode__receives_are_consumed_by_ends_of_sends_and_by_immediates(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_opcode *row = &vb_opcodes[opcode];
		bool ends = row->place == VB_ONLY || row->place == VB_LAST;
		assert_int_equal(row->consumes_recv, ends && (row->message == VB_MESSAGE_SEND || row->has_imm));
	}
}

static void opcode__first_and_middle_packets_are_full(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_opcode *row = &vb_opcodes[opcode];
		if (row->name)
			assert_int_equal(
				row->place == VB_FIRST || row->place == VB_MIDDLE, row->payload == VB_PAYLOAD_FULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcode__each_transport_has_its_number_of_them),
		cmocka_unit_test(opcode__names_exist_exactly_where_opcodes_do),
		cmocka_unit_test(opcode__names_are_unique),
		cmocka_unit_test(opcode__headers_length_is_the_sum_of_its_headers),
		cmocka_unit_test(opcode__headers_lengths_are_those_on_the_wire),
		cmocka_unit_test(opcode__uc_and_xrc_share_what_rc_says),
		cmocka_unit_test(opcode__xrc_requests_carry_an_xrceth_first_and_responses_none),
		cmocka_unit_test(opcode__flags_agree_with_headers),
		cmocka_unit_test(opcode__receives_are_consumed_by_ends_of_sends_and_by_immediates),
		cmocka_unit_test(opcode__first_and_middle_packets_are_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
