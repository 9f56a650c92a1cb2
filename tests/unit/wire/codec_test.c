#include "base/bytes.h"
#include "base/random.h"
#include "wire/packet.h"
#include "../unit.h"

/* Fields that the row's headers carry, all random; the others zero, so that two packets compare as memory would. */
static struct vb_packet random_packet(struct vb_random *random, uint8_t opcode)
{
	struct vb_packet packet = { .opcode = opcode };
	packet.solicited = vb_random_below(random, 2);
	packet.migreq = vb_random_below(random, 2);
	packet.ackreq = vb_random_below(random, 2);
	packet.fecn = vb_random_below(random, 2);
	packet.becn = vb_random_below(random, 2);
	packet.pkey = (uint16_t)vb_random_u64(random);
	packet.dest_qpn = vb_random_u64(random) & VB_QPN_MASK;
	packet.psn = vb_random_u64(random) & VB_PSN_MASK;
	for (const uint8_t *header = vb_packet_row(&packet)->headers; *header != VB_END; header++) {
		switch (*header) {
		case VB_RETH:
			packet.va = vb_random_u64(random);
			packet.rkey = (uint32_t)vb_random_u64(random);
			packet.dma_length = (uint32_t)vb_random_u64(random);
			break;
		case VB_AETH:
			packet.syndrome = (uint8_t)vb_random_u64(random);
			packet.msn = vb_random_u64(random) & 0xFFFFFF;
			break;
		case VB_ATOMICETH:
			packet.va = vb_random_u64(random);
			packet.rkey = (uint32_t)vb_random_u64(random);
			packet.swap_add = vb_random_u64(random);
			packet.compare = vb_random_u64(random);
			break;
		case VB_ATOMICACKETH:
			packet.atomic_result = vb_random_u64(random);
			break;
		case VB_IMMDT:
			packet.imm = (uint32_t)vb_random_u64(random);
			break;
		case VB_IETH:
			packet.inv_rkey = (uint32_t)vb_random_u64(random);
			break;
		case VB_DETH:
			packet.qkey = (uint32_t)vb_random_u64(random);
			packet.src_qpn = vb_random_u64(random) & VB_QPN_MASK;
			break;
		case VB_XRCETH:
			packet.xrc_srqn = vb_random_u64(random) & 0xFFFFFF;
			break;
		case VB_FETH:
			packet.flush = (uint32_t)vb_random_u64(random);
			break;
		case VB_HELLOETH:
			packet.hold_bytes = (uint32_t)vb_random_u64(random);
			packet.hello = (uint8_t)vb_random_u64(random);
			packet.large_mtu = (uint16_t)vb_random_u64(random);
			break;
		case VB_BITMAPETH:
			packet.expected_psn = vb_random_u64(random) & VB_PSN_MASK;
			packet.named = (uint32_t)vb_random_u64(random);
			packet.executed_ahead = (uint16_t)vb_random_u64(random);
			packet.bits[0] = vb_random_u64(random);
			packet.bits[1] = vb_random_u64(random);
			break;
		case VB_PATHETH:
			packet.secret = vb_random_u64(random);
			packet.path_flags = (uint8_t)vb_random_u64(random);
			packet.path_number = vb_random_u64(random) & 0xFFFFFF;
			break;
		case VB_ADDRESSETH:
			for (unsigned i = 0; i < sizeof(packet.address.raw); i++)
				packet.address.raw[i] = (uint8_t)vb_random_u64(random);
			break;
		}
	}
	uint8_t kind = vb_packet_row(&packet)->payload;
	packet.payload_length = kind == VB_PAYLOAD_NONE    ? 0
				: kind == VB_PAYLOAD_EIGHT ? 8
							   : vb_random_below(random, VB_MAX_MTU + 1);
	return packet;
}

/* Whole UDP payload of packet with random payload; the ICRC is whatever lies there. Returns its length. */
static size_t encode_whole(struct vb_random *random, const struct vb_packet *packet, uint8_t *out)
{
	size_t n = vb_packet_encode_headers(packet, out);
	for (uint32_t i = 0; i < packet->payload_length; i++)
		out[n++] = (uint8_t)vb_random_u64(random);
	memset(out + n, 0, vb_pad(packet->payload_length) + VB_ICRC_LENGTH);
	return n + vb_pad(packet->payload_length) + VB_ICRC_LENGTH;
}

static void assert_same_packet(const struct vb_packet *a, const struct vb_packet *b)
{
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->solicited, b->solicited);
	assert_int_equal(a->migreq, b->migreq);
	assert_int_equal(a->ackreq, b->ackreq);
	assert_int_equal(a->fecn, b->fecn);
	assert_int_equal(a->becn, b->becn);
	assert_int_equal(a->pkey, b->pkey);
	assert_int_equal(a->dest_qpn, b->dest_qpn);
	assert_int_equal(a->psn, b->psn);
	assert_true(a->va == b->va);
	assert_int_equal(a->rkey, b->rkey);
	assert_int_equal(a->dma_length, b->dma_length);
	assert_true(a->swap_add == b->swap_add);
	assert_true(a->compare == b->compare);
	assert_true(a->atomic_result == b->atomic_result);
	assert_int_equal(a->imm, b->imm);
	assert_int_equal(a->inv_rkey, b->inv_rkey);
	assert_int_equal(a->qkey, b->qkey);
	assert_int_equal(a->src_qpn, b->src_qpn);
	assert_int_equal(a->xrc_srqn, b->xrc_srqn);
	assert_int_equal(a->flush, b->flush);
	assert_int_equal(a->syndrome, b->syndrome);
	assert_int_equal(a->msn, b->msn);
	assert_int_equal(a->hold_bytes, b->hold_bytes);
	assert_int_equal(a->hello, b->hello);
	assert_int_equal(a->large_mtu, b->large_mtu);
	assert_int_equal(a->expected_psn, b->expected_psn);
	assert_int_equal(a->named, b->named);
	assert_memory_equal(a->bits, b->bits, sizeof(a->bits));
	assert_true(a->secret == b->secret);
	assert_int_equal(a->path_number, b->path_number);
	assert_int_equal(a->path_flags, b->path_flags);
	assert_memory_equal(&a->address, &b->address, sizeof(a->address));
	assert_int_equal(a->payload_length, b->payload_length);
}

static void codec__every_opcode_comes_back_as_it_was(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 20);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (!vb_opcode_exists((uint8_t)opcode))
			continue;
		for (int i = 0; i < 50; i++) {
			uint8_t bytes[VB_MAX_PACKET_BYTES];
			struct vb_packet sent = random_packet(&random, (uint8_t)opcode), seen = { 0 };
			size_t length = encode_whole(&random, &sent, bytes);
			assert_int_equal(length, vb_packet_wire_length(&sent));
			assert_int_equal(vb_packet_decode(&seen, bytes, length), VB_DECODE_OK);
			assert_same_packet(&sent, &seen);
			assert_ptr_equal(seen.payload, bytes + vb_packet_row(&sent)->headers_length);
			assert_int_equal(vb_peek_dest_qpn(bytes), sent.dest_qpn);
		}
	}
}

static void codec__headers_lie_where_the_specification_puts_them(void **state)
{
	static const uint8_t wire[] = { 0x13, 0xE0, 0x80, 0x01, 0xC0, 0x12, 0x34, 0x56, 0x80, 0xAB, 0xCD,
		0xEF,                                             /* BTH */
		1, 2, 3, 4, 5, 6, 7, 8,                           /* VA */
		0x11, 0x12, 0x13, 0x14,                           /* R_Key */
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,   /* swap */
		0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38 }; /* compare */
	uint8_t bytes[sizeof(wire) + VB_ICRC_LENGTH] = { 0 };
	struct vb_packet packet = { 0 };
	memcpy(bytes, wire, sizeof(wire));
	bytes[1] = 0xC0; /* an atomic has no pad */
	assert_int_equal(vb_packet_decode(&packet, bytes, sizeof(bytes)), VB_DECODE_OK);
	assert_true(packet.solicited && packet.migreq && packet.fecn && packet.becn && packet.ackreq);
	assert_int_equal(packet.pkey, 0x8001);
	assert_int_equal(packet.dest_qpn, 0x123456);
	assert_int_equal(packet.psn, 0xABCDEF);
	assert_true(packet.va == 0x0102030405060708);
	assert_int_equal(packet.rkey, 0x11121314);
	assert_true(packet.swap_add == 0x2122232425262728);
	assert_true(packet.compare == 0x3132333435363738);
}

static unsigned flags_of(const struct vb_packet *packet)
{
	return packet->solicited | (unsigned)packet->migreq << 1 | (unsigned)packet->fecn << 2 |
	       (unsigned)packet->becn << 3 | (unsigned)packet->ackreq << 4;
}

static void codec__flags_are_read_one_by_one(void **state)
{
	static const struct {
		uint8_t at, bit;
	} flags[] = { { 1, 0x80 }, { 1, 0x40 }, { 4, 0x80 }, { 4, 0x40 }, { 8, 0x80 } };
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		uint8_t bytes[16] = { VB_SEND_ONLY }, again[VB_MAX_HEADER_BYTES];
		bytes[flags[i].at] |= flags[i].bit;
		struct vb_packet packet = { 0 };
		assert_int_equal(vb_packet_decode(&packet, bytes, sizeof(bytes)), VB_DECODE_OK);
		assert_int_equal(flags_of(&packet), 1u << i);
		assert_int_equal(vb_packet_encode_headers(&packet, again), VB_BTH_LENGTH);
		assert_memory_equal(again, bytes, VB_BTH_LENGTH);
	}
}

static void codec__leaves_what_is_the_holders(void **state)
{
	uint8_t bytes[16] = { VB_SEND_ONLY }, again[VB_MAX_HEADER_BYTES];
	struct vb_packet packet = { .holder = 0x0102030405060708 };
	assert_int_equal(vb_packet_decode(&packet, bytes, sizeof(bytes)), VB_DECODE_OK);
	assert_true(packet.holder == 0x0102030405060708);
	assert_int_equal(vb_packet_encode_headers(&packet, again), VB_BTH_LENGTH);
	assert_memory_equal(again, bytes, VB_BTH_LENGTH);
}

static void codec__immediate_keeps_its_byte_order(void **state)
{
	struct vb_packet packet = { .opcode = VB_SEND_ONLY_IMM };
	uint8_t bytes[VB_MAX_HEADER_BYTES];
	memcpy(&packet.imm, "\x01\x02\x03\x04", 4);
	assert_int_equal(vb_packet_encode_headers(&packet, bytes), 16);
	assert_memory_equal(bytes + VB_BTH_LENGTH, "\x01\x02\x03\x04", 4);
}

static void codec__pad_count_follows_from_the_length(void **state)
{
	for (uint32_t length = 0; length < 9; length++) {
		struct vb_packet packet = { .opcode = VB_SEND_ONLY, .payload_length = length };
		uint8_t bytes[VB_MAX_HEADER_BYTES];
		vb_packet_encode_headers(&packet, bytes);
		assert_int_equal(bytes[1] >> 4 & 3, (4 - length % 4) % 4);
		assert_int_equal(vb_packet_wire_length(&packet) % 4, 0);
	}
}

static void codec__reserved_bits_are_ignored_and_written_zero(void **state)
{
	uint8_t bytes[24] = { VB_UD_SEND_ONLY }, clean[24], again[VB_MAX_HEADER_BYTES];
	memcpy(clean, bytes, sizeof(clean));
	bytes[4] |= 0x3F;
	bytes[8] |= 0x7F;
	bytes[16] = 0xFF; /* DETH */
	struct vb_packet packet = { 0 };
	assert_int_equal(vb_packet_decode(&packet, bytes, sizeof(bytes)), VB_DECODE_OK);
	assert_int_equal(vb_packet_encode_headers(&packet, again), 20);
	assert_memory_equal(again, clean, 20);
}

/* An exact allocation, so that ASan sees a read beyond the end. */
static enum vb_decode_error decode_exactly(const uint8_t *bytes, size_t length)
{
	uint8_t *exact = malloc(length ? length : 1);
	struct vb_packet packet;
	memcpy(exact, bytes, length);
	enum vb_decode_error error = vb_packet_decode(&packet, exact, length);
	free(exact);
	return error;
}

static void codec__every_truncation_of_every_opcode_is_refused(void **state)
{
	uint8_t bytes[VB_MAX_PACKET_BYTES] = { 0 };
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (!vb_opcode_exists((uint8_t)opcode))
			continue;
		bytes[0] = (uint8_t)opcode;
		size_t least = vb_opcodes[opcode].headers_length + VB_ICRC_LENGTH;
		for (size_t length = 0; length < least; length++) {
			bool is_cut_inside = length >= VB_BTH_LENGTH + VB_ICRC_LENGTH && length % 4 != 0;
			assert_int_equal(
				decode_exactly(bytes, length), is_cut_inside ? VB_DECODE_UNALIGNED : VB_DECODE_SHORT);
		}
		bool is_enough = vb_opcodes[opcode].payload != VB_PAYLOAD_EIGHT;
		assert_int_equal(decode_exactly(bytes, least), is_enough ? VB_DECODE_OK : VB_DECODE_PAYLOAD);
	}
}

static void codec__pad_that_is_not_there_is_refused(void **state)
{
	uint8_t bytes[20] = { VB_SEND_ONLY, 0x30 };
	assert_int_equal(decode_exactly(bytes, 16), VB_DECODE_SHORT);
	assert_int_equal(decode_exactly(bytes, 20), VB_DECODE_OK);
}

static void codec__each_error_is_named(void **state)
{
	uint8_t bytes[VB_MAX_PACKET_BYTES + 8] = { VB_SEND_ONLY };
	assert_int_equal(decode_exactly(bytes, 12), VB_DECODE_SHORT);
	assert_int_equal(decode_exactly(bytes, 18), VB_DECODE_UNALIGNED);
	assert_int_equal(decode_exactly(bytes, VB_MAX_PACKET_BYTES + 1), VB_DECODE_LONG);
	assert_int_equal(decode_exactly(bytes, VB_BTH_LENGTH + VB_LARGE_MTU + 4), VB_DECODE_OK);
	assert_int_equal(decode_exactly(bytes, VB_BTH_LENGTH + VB_LARGE_MTU + 8), VB_DECODE_LONG);
	for (unsigned service = VB_UC; service <= VB_UD; service += VB_UC) { /* ours alone agree on more */
		bytes[0] = (uint8_t)(service | (VB_SEND_ONLY & VB_OPERATION_MASK));
		size_t headers = vb_opcodes[bytes[0]].headers_length;
		bool is_there = vb_opcode_exists(bytes[0]);
		assert_int_equal(
			decode_exactly(bytes, headers + VB_MAX_MTU + 4), is_there ? VB_DECODE_OK : VB_DECODE_OPCODE);
		assert_int_equal(
			decode_exactly(bytes, headers + VB_MAX_MTU + 8), is_there ? VB_DECODE_LONG : VB_DECODE_OPCODE);
	}
	bytes[0] = VB_SEND_ONLY;
	bytes[1] = 0x01;
	assert_int_equal(decode_exactly(bytes, 16), VB_DECODE_VERSION);
	bytes[1] = 0;
	bytes[0] = 0x15;
	assert_int_equal(decode_exactly(bytes, 16), VB_DECODE_OPCODE);
	bytes[0] = VB_ACKNOWLEDGE;
	assert_int_equal(decode_exactly(bytes, 24), VB_DECODE_PAYLOAD);
	bytes[0] = VB_ATOMIC_WRITE;
	assert_int_equal(decode_exactly(bytes, 28 + 12 + 4), VB_DECODE_PAYLOAD);
	assert_int_equal(decode_exactly(bytes, 28 + 8 + 4), VB_DECODE_OK);
}

static void codec__random_bytes_never_read_outside(void **state)
{
	struct vb_random random;
	uint8_t bytes[128];
	vb_random_seed(&random, 5);
	unsigned accepted = 0;
	for (int i = 0; i < 100000; i++) {
		for (size_t j = 0; j < sizeof(bytes); j += 8)
			vb_store_be64(bytes + j, vb_random_u64(&random));
		bytes[1] &= 0xF0;
		accepted += decode_exactly(bytes, vb_random_below(&random, sizeof(bytes) + 1)) == VB_DECODE_OK;
	}
	assert_in_range(accepted, 1000, 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codec__every_opcode_comes_back_as_it_was),
		cmocka_unit_test(codec__headers_lie_where_the_specification_puts_them),
		cmocka_unit_test(codec__flags_are_read_one_by_one),
		cmocka_unit_test(codec__leaves_what_is_the_holders),
		cmocka_unit_test(codec__immediate_keeps_its_byte_order),
		cmocka_unit_test(codec__pad_count_follows_from_the_length),
		cmocka_unit_test(codec__reserved_bits_are_ignored_and_written_zero),
		cmocka_unit_test(codec__every_truncation_of_every_opcode_is_refused),
		cmocka_unit_test(codec__pad_that_is_not_there_is_refused),
		cmocka_unit_test(codec__each_error_is_named),
		cmocka_unit_test(codec__random_bytes_never_read_outside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
