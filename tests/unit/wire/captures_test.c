/* What Linux's soft-RoCE sent (the captures named in the arguments): every packet is parsed, written again to the same
 * bytes, and its ICRC is right both made and verified. */
#include <pcap/pcap.h>
#include "frame.h"
#include "wire/cm.h"
#include "../unit.h"

#define PACKETS 657 /* UDP to port 4791, in all captures together */
#define CM_MADS 28  /* of which to QP1 */

static char **files;
static int file_count;

/* From the IP header on, or NULL. */
static const uint8_t *ip_of(const uint8_t *ethernet, size_t *length)
{
	if (*length < 14)
		return NULL;
	uint16_t type = vb_load_be16(ethernet + 12);
	*length -= 14;
	return type == 0x0800 || type == 0x86DD ? ethernet + 14 : NULL;
}

/* Calls check for each RoCEv2 packet of all files; returns how many there were. */
static unsigned for_each_packet(void (*check)(const struct frame *frame))
{
	unsigned count = 0;
	for (int i = 0; i < file_count; i++) {
		char why[PCAP_ERRBUF_SIZE];
		pcap_t *pcap = pcap_open_offline(files[i], why);
		if (!pcap)
			fail_msg("%s", why);
		assert_int_equal(pcap_datalink(pcap), DLT_EN10MB);
		struct pcap_pkthdr *header;
		const uint8_t *ethernet;
		while (pcap_next_ex(pcap, &header, &ethernet) == 1) {
			size_t length = header->caplen;
			const uint8_t *ip = ip_of(ethernet, &length);
			struct frame frame;
			if (!ip || !frame_parse(&frame, ip, length) || frame.flow.dst_port != VB_UDP_PORT)
				continue;
			check(&frame);
			count++;
		}
		pcap_close(pcap);
	}
	return count;
}

/* Whole: headers, payload, pad and ICRC, as a sender makes them. */
static void check_written_again(const struct frame *frame)
{
	struct vb_packet packet;
	uint8_t again[VB_MAX_PACKET_BYTES] = { 0 };
	assert_int_equal(vb_packet_decode(&packet, frame->payload, frame->length), VB_DECODE_OK);
	assert_int_equal(vb_packet_wire_length(&packet), frame->length);
	size_t n = vb_packet_encode_headers(&packet, again);
	assert_int_equal(n, vb_packet_row(&packet)->headers_length);
	memcpy(again + n, packet.payload, packet.payload_length);
	struct frame made = *frame;
	made.payload = again;
	uint32_t crc = frame_icrc(&made, n);
	memcpy(again + frame->length - VB_ICRC_LENGTH, &crc, sizeof(crc));
	assert_memory_equal(again, frame->payload, frame->length);
}

static void captures__every_packet_is_written_again_to_the_same_bytes(void **state)
{
	assert_int_equal(for_each_packet(check_written_again), PACKETS);
}

static void check_verified(const struct frame *frame)
{
	uint16_t id = 0xAAAA;
	assert_true(vb_icrc_verify(&frame->flow, frame->payload, frame->length, false, &id));
	assert_int_equal(id, frame->is_ipv4 ? frame->ipv4_id : 0);
}

static void captures__every_icrc_is_verified_and_its_identification_recovered(void **state)
{
	assert_int_equal(for_each_packet(check_verified), PACKETS);
}

static void check_refused_when_damaged(const struct frame *frame)
{
	uint8_t damaged[VB_MAX_PACKET_BYTES];
	uint16_t id = 0;
	for (size_t at = 0; at < frame->length; at += frame->length / 16) {
		if (at == 4)
			continue;
		memcpy(damaged, frame->payload, frame->length);
		damaged[at] ^= 0x10;
		assert_false(vb_icrc_verify(&frame->flow, damaged, frame->length, false, &id));
	}
}

static void captures__every_packet_is_refused_when_damaged(void **state)
{
	assert_int_equal(for_each_packet(check_refused_when_damaged), PACKETS);
}

static bool is_opcode_seen[256];

static void note_opcode(const struct frame *frame)
{
	is_opcode_seen[frame->payload[0]] = true;
}

/* The captures are worth what they hold: all of RC that soft-RoCE sends, UC and UD. */
static void captures__hold_the_opcodes_that_they_should(void **state)
{
	static const uint8_t expected[] = { VB_SEND_FIRST, VB_SEND_MIDDLE, VB_SEND_LAST, VB_SEND_ONLY, VB_SEND_ONLY_IMM,
		VB_SEND_ONLY_INV, VB_WRITE_FIRST, VB_WRITE_MIDDLE, VB_WRITE_LAST, VB_WRITE_LAST_IMM, VB_WRITE_ONLY,
		VB_READ_REQUEST, VB_READ_RESPONSE_FIRST, VB_READ_RESPONSE_MIDDLE, VB_READ_RESPONSE_LAST,
		VB_READ_RESPONSE_ONLY, VB_ACKNOWLEDGE, VB_ATOMIC_ACKNOWLEDGE, VB_CMP_SWAP, VB_FETCH_ADD,
		VB_UC | VB_SEND_FIRST, VB_UC | VB_WRITE_FIRST, VB_UD_SEND_ONLY, VB_UD_SEND_ONLY_IMM };
	for_each_packet(note_opcode);
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		if (!is_opcode_seen[expected[i]])
			fail_msg("no %s", vb_opcodes[expected[i]].name);
	}
}

static unsigned cm_mads[VB_CM_APR + 1];

/* All 256 bytes: what we do not know of, Linux left zero too. */
static void check_mad_written_again(const struct frame *frame)
{
	struct vb_packet packet;
	struct vb_cm_message message;
	uint8_t again[VB_MAD_LENGTH];
	assert_int_equal(vb_packet_decode(&packet, frame->payload, frame->length), VB_DECODE_OK);
	if (packet.dest_qpn != 1)
		return;
	assert_int_equal(packet.payload_length, VB_MAD_LENGTH);
	assert_true(vb_cm_decode(&message, packet.payload));
	vb_cm_encode(&message, again);
	assert_memory_equal(again, packet.payload, VB_MAD_LENGTH);
	cm_mads[0]++;
	cm_mads[message.kind]++;
}

static void captures__every_message_of_the_connection_manager_is_written_again_to_the_same_bytes(void **state)
{
	static const enum vb_cm_kind expected[] = { VB_CM_REQ, VB_CM_REP, VB_CM_RTU, VB_CM_REJ, VB_CM_DREQ, VB_CM_DREP,
		VB_CM_SIDR_REQ, VB_CM_SIDR_REP };
	for_each_packet(check_mad_written_again);
	assert_int_equal(cm_mads[0], CM_MADS);
	for (size_t i = 0; i < COUNT_OF(expected); i++)
		assert_true(cm_mads[expected[i]] > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures__every_packet_is_written_again_to_the_same_bytes),
		cmocka_unit_test(captures__every_icrc_is_verified_and_its_identification_recovered),
		cmocka_unit_test(captures__every_packet_is_refused_when_damaged),
		cmocka_unit_test(captures__hold_the_opcodes_that_they_should),
		cmocka_unit_test(captures__every_message_of_the_connection_manager_is_written_again_to_the_same_bytes),
	};
	files = argv + 1;
	file_count = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
