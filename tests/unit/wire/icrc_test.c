/* The ICRC against vectors that others computed or sent (the file named in the first argument), then its properties:
 * every identification is recovered at every length, no single-bit error passes. */
#include "base/random.h"
#include "frame.h"
#include "../unit.h"

#define VECTORS 48

static const char *vector_file;

struct vector {
	char name[64];
	uint8_t bytes[VB_MAX_PACKET_BYTES + 64];
	size_t length;
	struct frame frame;
	uint32_t icrc;
};

static size_t from_hex(uint8_t *out, const char *hex)
{
	size_t n = 0;
	for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		out[n] = (uint8_t)byte;
	return n;
}

static bool next_vector(FILE *file, struct vector *vector)
{
	static char line[16384], packet[12288], icrc[16];
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#' || sscanf(line, "%63s %12287s %15s", vector->name, packet, icrc) != 3)
			continue;
		uint8_t wire[8];
		vector->length = from_hex(vector->bytes, packet);
		assert_int_equal(from_hex(wire, icrc), 4);
		vector->icrc = wire[0] | (uint32_t)wire[1] << 8 | (uint32_t)wire[2] << 16 | (uint32_t)wire[3] << 24;
		assert_true(frame_parse(&vector->frame, vector->bytes, vector->length));
		return true;
	}
	return false;
}

static void for_each_vector(void (*check)(struct vector *vector))
{
	FILE *file = fopen(vector_file, "r");
	assert_non_null(file);
	static struct vector vector;
	unsigned count = 0;
	for (; next_vector(file, &vector); count++)
		check(&vector);
	fclose(file);
	assert_int_equal(count, VECTORS);
}

static void check_made(struct vector *vector)
{
	struct vb_packet packet;
	assert_int_equal(vb_packet_decode(&packet, vector->frame.payload, vector->frame.length), VB_DECODE_OK);
	if (vector->frame.df_clear)
		return;
	if (frame_icrc(&vector->frame, vb_packet_row(&packet)->headers_length) != vector->icrc)
		fail_msg("%s: made %08x", vector->name, frame_icrc(&vector->frame, VB_BTH_LENGTH));
	/* However the pieces are cut. */
	assert_int_equal(frame_icrc(&vector->frame, VB_BTH_LENGTH), vector->icrc);
	assert_int_equal(frame_icrc(&vector->frame, vector->frame.length - VB_ICRC_LENGTH), vector->icrc);
}

static void icrc__of_every_vector_is_made(void **state)
{
	for_each_vector(check_made);
}

static bool verify(const struct frame *frame, bool df_clear, uint16_t *id)
{
	return vb_icrc_verify(&frame->flow, frame->payload, frame->length, df_clear, id);
}

static void check_verified(struct vector *vector)
{
	uint16_t id = 0xFFFF;
	if (!verify(&vector->frame, vector->frame.df_clear, &id))
		fail_msg("%s: refused", vector->name);
	assert_int_equal(id, vector->frame.ipv4_id);
	if (vector->frame.is_ipv4)
		assert_false(verify(&vector->frame, !vector->frame.df_clear, &id));
}

static void icrc__of_every_vector_is_verified(void **state)
{
	for_each_vector(check_verified);
}

/* ---- Packets of our own ------------------------------------------------------------------------------------------ */

struct own {
	uint8_t bytes[VB_MAX_PACKET_BYTES];
	struct frame frame;
};

static void make(struct own *own, struct vb_random *random, size_t payload_length, uint16_t id, bool is_ipv6)
{
	size_t length = VB_BTH_LENGTH + payload_length + VB_ICRC_LENGTH;
	for (size_t i = 0; i < length; i++)
		own->bytes[i] = (uint8_t)vb_random_u64(random);
	own->frame = (struct frame){
		.flow = { vb_gid_from_ipv4(192, 0, 2, 1), vb_gid_from_ipv4(192, 0, 2, 2), 0xC123, VB_UDP_PORT },
		.is_ipv4 = !is_ipv6,
		.ipv4_id = id,
		.payload = own->bytes,
		.length = length,
	};
	if (is_ipv6)
		own->frame.flow.src.raw[0] = own->frame.flow.dst.raw[0] = 0x20;
	uint32_t crc = frame_icrc(&own->frame, VB_BTH_LENGTH);
	for (int i = 0; i < 4; i++)
		own->bytes[length - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

static void icrc__identification_is_recovered_at_every_length(void **state)
{
	static struct own own;
	struct vb_random random;
	vb_random_seed(&random, 9);
	for (size_t payload = 0; payload <= VB_LARGE_MTU + 28; payload += 4) {
		uint16_t ids[] = { 0, 1, 62, 63, 0xFFFF, (uint16_t)vb_random_u64(&random) };
		for (size_t i = 0; i < COUNT_OF(ids); i++) {
			uint16_t seen = 0xAAAA;
			make(&own, &random, payload, ids[i], false);
			assert_true(verify(&own.frame, false, &seen));
			assert_int_equal(seen, ids[i]);
		}
	}
}

static void icrc__every_identification_is_recovered(void **state)
{
	static struct own own;
	struct vb_random random;
	vb_random_seed(&random, 9);
	for (uint32_t id = 0; id <= 0xFFFF; id++) {
		uint16_t seen = (uint16_t)(id % 3 == 0 ? id : id - 1); /* what is expected */
		make(&own, &random, 8, (uint16_t)id, false);
		assert_true(verify(&own.frame, false, &seen));
		assert_int_equal(seen, id);
	}
}

static void icrc__image_turns_one_identification_into_another(void **state)
{
	struct vb_flow flow = { vb_gid_from_ipv4(10, 0, 0, 1), vb_gid_from_ipv4(10, 0, 0, 2), 0xC000, VB_UDP_PORT };
	static const uint8_t zeros[VB_MAX_PACKET_BYTES];
	for (size_t length = 16; length <= VB_MAX_PACKET_BYTES; length += 4) {
		uint16_t id = (uint16_t)(length * 40503);
		uint32_t plain = vb_icrc_add(vb_icrc_begin(&flow, length, 0), zeros, length - VB_ICRC_LENGTH);
		uint32_t numbered = vb_icrc_add(vb_icrc_begin(&flow, length, id), zeros, length - VB_ICRC_LENGTH);
		assert_int_equal(plain ^ vb_icrc_id_image(length, id), numbered);
	}
	assert_int_equal(vb_icrc_id_image(16, 0), 0);
}

static void icrc__ipv6_ignores_the_identification(void **state)
{
	static struct own own;
	struct vb_random random;
	uint16_t seen = 0xAAAA;
	vb_random_seed(&random, 1);
	make(&own, &random, 64, 0x1234, true);
	assert_true(verify(&own.frame, false, &seen));
	assert_int_equal(seen, 0);
	assert_int_equal(vb_icrc_begin(&own.frame.flow, 80, 0), vb_icrc_begin(&own.frame.flow, 80, 7));
}

static void icrc__masked_bits_change_nothing(void **state)
{
	static struct own own;
	struct vb_random random;
	uint16_t seen = 0;
	vb_random_seed(&random, 1);
	make(&own, &random, 64, 5, false);
	own.bytes[4] ^= 0xFF;
	assert_true(verify(&own.frame, false, &seen));
}

/* Every single-bit error is caught, though any identification is accepted; only BTH byte 4 is masked. */
static void refuse_each_flipped_bit(size_t payload_length, uint16_t id, bool is_ipv6)
{
	static struct own own;
	struct vb_random random;
	vb_random_seed(&random, payload_length + id);
	make(&own, &random, payload_length, id, is_ipv6);
	for (size_t bit = 0; bit < own.frame.length * 8; bit++) {
		uint16_t seen = 0;
		if (bit / 8 == 4)
			continue;
		own.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (verify(&own.frame, false, &seen))
			fail_msg("bit %zu of a payload of %zu passes as id %u", bit, payload_length, seen);
		own.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void icrc__single_bit_errors_are_refused(void **state)
{
	static const size_t lengths[] = { 0, 4, 8, 64, 256, 1024, 4096 };
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		refuse_each_flipped_bit(lengths[i], 0, false);
		refuse_each_flipped_bit(lengths[i], 17, false);
		refuse_each_flipped_bit(lengths[i], 0, true);
	}
}

static unsigned count_passing(bool is_ipv6, unsigned tries)
{
	static struct own own;
	struct vb_random random;
	unsigned passing = 0;
	vb_random_seed(&random, 77);
	for (unsigned i = 0; i < tries; i++) {
		uint16_t seen = 0;
		make(&own, &random, 32, 0, is_ipv6);
		for (int j = 0; j < 8; j++)
			own.bytes[8 + vb_random_below(&random, 40)] ^= (uint8_t)(1 + vb_random_below(&random, 255));
		passing += verify(&own.frame, false, &seen);
	}
	return passing;
}

/* IPv4 lets 2^-16 through: about 4 of 2^18. */
static void icrc__random_damage_is_refused(void **state)
{
	assert_int_equal(count_passing(true, 1u << 16), 0);
	assert_in_range(count_passing(false, 1u << 18), 0, 16);
}

static void icrc__a_packet_for_another_address_or_port_is_refused(void **state)
{
	static struct own own;
	struct vb_random random;
	uint16_t seen = 0;
	vb_random_seed(&random, 1);
	make(&own, &random, 64, 5, false);
	struct frame other = own.frame;
	other.flow.dst.raw[15] ^= 1;
	assert_false(verify(&other, false, &seen));
	other = own.frame;
	other.flow.src_port ^= 1;
	assert_false(verify(&other, false, &seen));
	other = own.frame;
	other.length -= 4;
	assert_false(verify(&other, false, &seen));
}

static void icrc__lengths_that_no_packet_has_are_refused(void **state)
{
	static const uint8_t zeros[VB_MAX_PACKET_BYTES + 8];
	struct vb_flow flow = { vb_gid_from_ipv4(10, 0, 0, 1), vb_gid_from_ipv4(10, 0, 0, 2), 0xC000, VB_UDP_PORT };
	static const size_t lengths[] = { 0, 1, 4, 12, 15, 17, 18, 19, VB_MAX_PACKET_BYTES + 1,
		VB_MAX_PACKET_BYTES + 5 };
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		uint16_t seen = 0;
		assert_false(vb_icrc_verify(&flow, zeros, lengths[i], false, &seen));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc__of_every_vector_is_made),
		cmocka_unit_test(icrc__of_every_vector_is_verified),
		cmocka_unit_test(icrc__identification_is_recovered_at_every_length),
		cmocka_unit_test(icrc__every_identification_is_recovered),
		cmocka_unit_test(icrc__image_turns_one_identification_into_another),
		cmocka_unit_test(icrc__ipv6_ignores_the_identification),
		cmocka_unit_test(icrc__masked_bits_change_nothing),
		cmocka_unit_test(icrc__single_bit_errors_are_refused),
		cmocka_unit_test(icrc__random_damage_is_refused),
		cmocka_unit_test(icrc__a_packet_for_another_address_or_port_is_refused),
		cmocka_unit_test(icrc__lengths_that_no_packet_has_are_refused),
	};
	if (argc != 2) {
		fprintf(stderr, "usage: icrc_test icrc-vectors.tsv\n");
		return 2;
	}
	vector_file = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
