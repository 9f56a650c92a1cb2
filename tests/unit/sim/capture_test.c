/* Captures of simulated links, read back by libpcap. */
#include <pcap/pcap.h>
#include <unistd.h>
#include "sim/capture.h"
#include "two_switches.h"
#include "wire/icrc.h"

static struct vb_path path = { .src_port = 0xC123, .traffic_class = 0x62, .hop_limit = 64 };

static struct vb_gid ipv4(uint8_t last)
{
	return (struct vb_gid){ { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = last } };
}

/* The file of a capture of these packets, opened again. */
static pcap_t *capture_of(const struct fabric_capture *seen, unsigned count, const struct network *network)
{
	static const uint32_t links[] = { 0, 6 };
	char file[] = "/tmp/verbena-capture-XXXXXX", why[PCAP_ERRBUF_SIZE];
	struct capture *capture;

	int fd = mkstemp(file);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(capture_open(file, network, links, COUNT_OF(links), &capture), 0);
	for (unsigned i = 0; i < count; i++)
		capture_packet(capture, &seen[i]);
	assert_int_equal(capture_close(capture), 0);
	pcap_t *pcap = pcap_open_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why);
	unlink(file);
	if (!pcap)
		fail_msg("%s", why);
	return pcap;
}

static void capture__packets_are_whole_and_their_payload_zeros(void **state)
{
	struct network network;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	make_two_switches(&network);
	path.src = ipv4(1);
	path.dst = ipv4(2);
	struct vb_packet packet = { .opcode = VB_RC | VB_WRITE_FIRST,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = 17,
		.psn = 100,
		.payload_length = 4096,
		.va = 0x1000,
		.rkey = 5,
		.dma_length = 8192 };
	const struct fabric_capture seen = { .link = 6, .at = 3 * VB_S + 123456789, .path = path, .packet = &packet };
	pcap_t *pcap = capture_of(&seen, 1, &network);
	assert_int_equal(pcap_datalink(pcap), DLT_EN10MB);
	assert_int_equal(pcap_next_ex(pcap, &header, &bytes), 1);
	assert_int_equal(header->ts.tv_sec, 3);
	assert_int_equal(header->ts.tv_usec, 123456); /* nanoseconds, of 123456.789 */
	assert_int_equal(header->len, 14 + 20 + 8 + 12 + 16 + 4096 + 4);
	assert_int_equal(header->caplen, header->len);
	assert_memory_equal(bytes, "\6\0\0\0\0\1\6\0\0\0\0\0\x08\x00", 14); /* from switch 0 to switch 1 */
	assert_int_equal(bytes[14 + 1], 0x62);
	assert_memory_equal(bytes + 14 + 12, "\x0a\0\0\1\x0a\0\0\2\xc1\x23\x12\xb7", 12);
	struct vb_packet decoded;
	struct vb_flow flow = { path.src, path.dst, path.src_port, VB_UDP_PORT };
	uint16_t id = 0;
	assert_int_equal(vb_packet_decode(&decoded, bytes + 42, header->len - 42), VB_DECODE_OK);
	assert_true(vb_icrc_verify(&flow, bytes + 42, header->len - 42, false, &id));
	assert_int_equal(decoded.psn, 100);
	assert_int_equal(decoded.payload_length, 4096);
	assert_int_equal(decoded.dma_length, 8192);
	assert_int_equal(decoded.payload[0] | decoded.payload[4095], 0);
	pcap_close(pcap);
	network_free(&network);
}

static void capture__of_a_packet_that_was_cut_has_the_headers(void **state)
{
	struct network network;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	make_two_switches(&network);
	struct vb_packet packet = { .opcode = VB_RC | VB_WRITE_MIDDLE, .payload_length = 4096 };
	const struct fabric_capture seen = { .link = 6, .path = path, .packet = &packet, .is_cut = true };
	pcap_t *pcap = capture_of(&seen, 1, &network);
	assert_int_equal(pcap_next_ex(pcap, &header, &bytes), 1);
	assert_int_equal(header->caplen, 14 + 20 + 8 + 12);
	assert_int_equal(header->len, 14 + 20 + 8 + 12 + 4096 + 4);
	pcap_close(pcap);
	network_free(&network);
}

static void capture__an_acknowledgement_is_whole(void **state)
{
	struct network network;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	uint16_t id = 0;
	make_two_switches(&network);
	path.src = ipv4(2);
	path.dst = ipv4(1);
	struct vb_packet packet = {
		.opcode = VB_RC | VB_ACKNOWLEDGE, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 17, .psn = 100, .syndrome = 0x1F
	};
	const struct fabric_capture seen = { .link = 0, .at = VB_US, .path = path, .packet = &packet };
	pcap_t *pcap = capture_of(&seen, 1, &network);
	assert_int_equal(pcap_next_ex(pcap, &header, &bytes), 1);
	assert_int_equal(header->caplen, header->len);
	struct vb_flow flow = { path.src, path.dst, path.src_port, VB_UDP_PORT };
	assert_true(vb_icrc_verify(&flow, bytes + 42, header->len - 42, false, &id));
	pcap_close(pcap);
	network_free(&network);
}

static void capture__pauses_are_pfc_frames(void **state)
{
	struct network network;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	make_two_switches(&network);
	const struct fabric_capture seen[] = { { .link = 6, .at = 1, .paused_classes = 1 << 3 },
		{ .link = 6, .at = 2, .resumed_classes = 1 << 3 } };
	pcap_t *pcap = capture_of(seen, 2, &network);
	assert_int_equal(pcap_next_ex(pcap, &header, &bytes), 1);
	assert_int_equal(header->len, 60);
	assert_memory_equal(bytes, "\x01\x80\xc2\0\0\x01", 6);
	assert_memory_equal(bytes + 12, "\x88\x08\x01\x01\0\x08\0\0\0\0\0\0\xff\xff\0\0", 16);
	assert_int_equal(pcap_next_ex(pcap, &header, &bytes), 1);
	assert_memory_equal(bytes + 12, "\x88\x08\x01\x01\0\x08\0\0\0\0\0\0\0\0\0\0", 16); /* it may go on */
	assert_int_equal(pcap_next_ex(pcap, &header, &bytes), PCAP_ERROR_BREAK);
	pcap_close(pcap);
	network_free(&network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture__packets_are_whole_and_their_payload_zeros),
		cmocka_unit_test(capture__of_a_packet_that_was_cut_has_the_headers),
		cmocka_unit_test(capture__an_acknowledgement_is_whole),
		cmocka_unit_test(capture__pauses_are_pfc_frames),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
