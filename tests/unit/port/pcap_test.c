/* Captures as others read them: libpcap, and tshark where it is installed. */
#include <errno.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../wire/frame.h"
#include "port/port.h"
#include "../unit.h"

static char file_name[] = "/tmp/verbena-pcap-XXXXXX";
static const struct vb_gid ipv6_a = { { 0xFD, 0x78, [15] = 1 } }, ipv6_b = { { 0xFD, 0x78, [15] = 2 } };

/* A UDP payload whose ICRC is right; returns its length. */
static uint32_t make_packet(uint8_t *out, const struct vb_packet *packet, const struct vb_flow *flow, uint16_t id)
{
	uint32_t length = vb_packet_wire_length(packet);
	size_t n = vb_packet_encode_headers(packet, out);
	memset(out + n, 0x5A, packet->payload_length);
	memset(out + n + packet->payload_length, 0, length - n - packet->payload_length);
	uint32_t crc = vb_icrc_headers(vb_icrc_begin(flow, length, id), out, n);
	crc = vb_icrc_end(vb_icrc_add(crc, out + n, length - n - VB_ICRC_LENGTH));
	memcpy(out + length - VB_ICRC_LENGTH, &crc, sizeof(crc));
	return length;
}

static struct vb_flow flow_of(bool is_ipv6)
{
	struct vb_flow flow = { vb_gid_from_ipv4(192, 0, 2, 1), vb_gid_from_ipv4(192, 0, 2, 2), 0xC123, VB_UDP_PORT };
	if (is_ipv6) {
		flow.src = ipv6_a;
		flow.dst = ipv6_b;
	}
	return flow;
}

static void write_packet(struct vb_pcap *pcap, const struct vb_packet *packet, bool is_ipv6, uint16_t id)
{
	uint8_t bytes[VB_MAX_PACKET_BYTES];
	char note[VB_PCAP_NOTE];
	struct vb_flow flow = flow_of(is_ipv6);
	uint32_t length = make_packet(bytes, packet, &flow, id);
	vb_pcap_note(packet, VB_SENT_FIRST, note, sizeof(note));
	vb_pcap_write(pcap, &flow.src, flow.src_port, &flow.dst, 0x62, 61, id, bytes, length, note);
}

static const struct vb_packet samples[] = {
	{ .opcode = VB_SEND_ONLY, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 0x11, .psn = 5, .payload_length = 61 },
	{ .opcode = VB_WRITE_ONLY,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = 0x11,
		.psn = 6,
		.ackreq = true,
		.dma_length = 4096,
		.payload_length = 4096 },
	{ .opcode = VB_READ_REQUEST, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 0x11, .psn = 7, .dma_length = 100 },
	{ .opcode = VB_ACKNOWLEDGE, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 0x12, .psn = 7, .syndrome = 0x1F, .msn = 3 },
	{ .opcode = VB_CMP_SWAP, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 0x11, .psn = 8, .compare = 1, .swap_add = 2 },
	{ .opcode = VB_ATOMIC_ACKNOWLEDGE, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 0x12, .psn = 8 },
	{ .opcode = VB_UD_SEND_ONLY,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = 0x13,
		.qkey = 1,
		.src_qpn = 2,
		.payload_length = 256 },
	{ .opcode = VB_CNP, .pkey = VB_PKEY_DEFAULT, .dest_qpn = 0x11, .becn = true },
};

static void write_samples(struct vb_pcap *pcap)
{
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		for (size_t i = 0; i < COUNT_OF(samples); i++)
			write_packet(pcap, &samples[i], is_ipv6, (uint16_t)i);
	}
}

static int make_file(void **state)
{
	strcpy(file_name + strlen(file_name) - 6, "XXXXXX");
	int fd = mkstemp(file_name);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(file_name);
}

static pcap_t *open_file(void)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline_with_tstamp_precision(file_name, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!pcap)
		fail_msg("%s", why);
	return pcap;
}

static void pcap__headers_are_rebuilt_as_they_were_sent(void **state)
{
	struct vb_pcap *out;
	struct timespec before;
	clock_gettime(CLOCK_REALTIME, &before);
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	write_samples(out);
	vb_pcap_close(out);

	pcap_t *in = open_file();
	struct pcap_pkthdr *header;
	const uint8_t *ip;
	assert_int_equal(pcap_datalink(in), DLT_RAW);
	for (size_t i = 0; i < 2 * COUNT_OF(samples); i++) {
		struct frame frame;
		struct vb_flow flow = flow_of(i >= COUNT_OF(samples));
		uint16_t id = 0, number = (uint16_t)(i % COUNT_OF(samples));
		assert_int_equal(pcap_next_ex(in, &header, &ip), 1);
		assert_int_equal(header->caplen, header->len);
		assert_true(header->ts.tv_sec >= before.tv_sec && header->ts.tv_sec <= before.tv_sec + 60);
		assert_true(frame_parse(&frame, ip, header->caplen));
		assert_memory_equal(&frame.flow, &flow, sizeof(flow));
		assert_int_equal(frame.is_ipv4, i < COUNT_OF(samples));
		assert_int_equal(frame.df_clear, false);
		assert_ptr_equal(frame.payload + frame.length, ip + header->caplen);
		assert_int_equal(frame.payload[0], samples[number].opcode);
		assert_true(vb_icrc_verify(&frame.flow, frame.payload, frame.length, false, &id));
		assert_int_equal(id, frame.is_ipv4 ? number : 0);
		if (frame.is_ipv4) {
			assert_int_equal(frame.ipv4_id, number);
			assert_int_equal(ip[1], 0x62);
			assert_int_equal(ip[8], 61);
		} else {
			assert_int_equal(vb_load_be16(ip) >> 4 & 0xFF, 0x62);
			assert_int_equal(ip[7], 61);
		}
	}
	assert_int_equal(pcap_next_ex(in, &header, &ip), PCAP_ERROR_BREAK);
	pcap_close(in);
}

static void pcap__killed_process_leaves_what_it_had_written(void **state)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct vb_pcap *out;
		if (vb_pcap_open(file_name, &out))
			_exit(1);
		for (unsigned i = 0; i < 1000000; i++) {
			write_packet(out, &samples[1], false, 0);
			if (i == 100 && write(ready[1], "", 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	kill(child, SIGKILL);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));

	pcap_t *in = open_file();
	struct pcap_pkthdr *header;
	const uint8_t *ip;
	unsigned count = 0;
	int result;
	while ((result = pcap_next_ex(in, &header, &ip)) == 1)
		count++;
	/* The kernel may have cut the last write; everything before it can be read. */
	if (result != PCAP_ERROR_BREAK)
		assert_non_null(strstr(pcap_geterr(in), "truncated"));
	assert_true(count > 100);
	pcap_close(in);
}

static void pcap__opening_again_begins_anew(void **state)
{
	struct vb_pcap *out;
	struct stat first, second;
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	assert_int_equal(stat(file_name, &first), 0);
	write_samples(out);
	vb_pcap_close(out);
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	assert_int_equal(stat(file_name, &second), 0);
	assert_int_equal(first.st_size, second.st_size);
	vb_pcap_close(out);
}

static void pcap__is_written_by_one_process(void **state)
{
	struct vb_pcap *out;
	struct stat before, after;
	int status;
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	write_samples(out);
	assert_int_equal(stat(file_name, &before), 0);
	pid_t child = fork();
	if (child == 0) {
		struct vb_pcap *other;
		int while_open = vb_pcap_open(file_name, &other);
		_exit(while_open == -EBUSY ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(stat(file_name, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	vb_pcap_close(out);
	assert_int_equal(vb_pcap_open(file_name, &out), 0); /* its writer has gone */
	vb_pcap_close(out);
}

static void pcap__open_says_why_it_cannot(void **state)
{
	struct vb_pcap *out = NULL;
	assert_int_equal(vb_pcap_open("/nonexistent/file.pcap", &out), -ENOENT);
	assert_null(out);
	assert_int_equal(vb_pcap_open("/dev/full", &out), -ENOSPC);
	assert_null(out);
}

/* What a shell command prints, or NULL when it fails. */
static char *output_of(const char *command)
{
	static char text[65536];
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	size_t n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	return pclose(pipe) == 0 ? text : NULL;
}

static void pcap__tshark_dissects_it_without_complaint(void **state)
{
	if (!output_of("command -v tshark"))
		skip();
	struct vb_pcap *out;
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	write_samples(out);
	vb_pcap_close(out);

	char command[512];
	snprintf(command, sizeof(command),
		"tshark -r %s -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -T fields -E separator=/s "
		"-e infiniband.bth.opcode -e ip.checksum.status -e udp.checksum.status 2>/dev/null",
		file_name);
	char *line = strtok(output_of(command), "\n");
	for (size_t i = 0; i < 2 * COUNT_OF(samples); i++, line = strtok(NULL, "\n")) {
		bool is_ipv4 = i < COUNT_OF(samples);
		char expected[64]; /* 1: good; 3: the checksum is absent, as IPv4 allows */
		snprintf(expected, sizeof(expected), is_ipv4 ? "%d 1 3" : "%d  1",
			samples[i % COUNT_OF(samples)].opcode);
		assert_string_equal(line, expected);
	}
	assert_null(line);
	snprintf(command, sizeof(command),
		"tshark -r %s -Y '_ws.malformed || _ws.expert.severity >= \"Warning\" || icmp' 2>/dev/null", file_name);
	assert_string_equal(output_of(command), "");
}

/* ---- Comments ---------------------------------------------------------------------------------------------------- */

static void note__says_what_our_own_packets_say(void **state)
{
	const struct {
		struct vb_packet packet;
		const char *note;
	} cases[] = {
		{ { .opcode = VB_HELLO, .hold_bytes = 1 << 20, .hello = VB_HELLO_TAKES_PATHS },
			"hello: recovers selectively, holds 1048576 bytes, goes on over further addresses" },
		{ { .opcode = VB_HELLO, .hold_bytes = 7, .hello = VB_HELLO_ANSWERS },
			"answers a hello: recovers selectively, holds 7 bytes" },
		{ { .opcode = VB_HELLO, .hold_bytes = 7, .large_mtu = 8448, .payload_length = 8448 },
			"hello: recovers selectively, holds 7 bytes, takes packets of 8448 bytes; shows that such a "
			"packet comes through" },
		{ { .opcode = VB_HELLO, .hold_bytes = 7, .hello = VB_HELLO_ANSWERS | VB_HELLO_HEARD_LARGE },
			"answers a hello: recovers selectively, holds 7 bytes; such a packet has come" },
		{ { .opcode = VB_BITMAP, .psn = 0xFFFFFE, .expected_psn = 0xFFFFF0, .bits = { 0x35, 0 } },
			"bitmap: has all before PSN 16777200; holds 16777214, 0, 2-3" },
		{ { .opcode = VB_BITMAP,
			  .psn = 5,
			  .expected_psn = 5,
			  .told = VB_TOLD_OVERFLOW,
			  .bits = { 0, 1ull << 63 } },
			"bitmap: has all before PSN 5; holds 132; its receive buffer was full" },
		{ { .opcode = VB_PATH_ADDRESS, .path_number = 1, .address = vb_gid_from_ipv4(10, 0, 0, 9) },
			"has 1 further addresses, one is 10.0.0.9" },
		{ { .opcode = VB_PATH_ADDRESS, .path_flags = VB_PATH_ANSWERS }, "answers: has 0 further addresses" },
		{ { .opcode = VB_PATH_PROBE, .secret = 12345678, .path_number = 4, .path_flags = VB_PATH_IS_USED },
			"asks whether this path works, question 4; it is the one in use" },
		{ { .opcode = VB_PATH_ANSWER, .secret = 12345678, .path_number = 4, .path_flags = VB_PATH_IS_PROVED },
			"answers question 4; takes what comes by this path" },
		{ { .opcode = VB_READ_LARGE, .dma_length = 65536 },
			"READ request of 65536 bytes, to be answered in large packets" },
		{ { .opcode = VB_SEND_ONLY }, "" },
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char text[VB_PCAP_NOTE];
		assert_int_equal(
			vb_pcap_note(&cases[i].packet, VB_SENT_FIRST, text, sizeof(text)), strlen(cases[i].note));
		assert_string_equal(text, cases[i].note);
	}
}

static void note__says_why_a_packet_is_sent_again(void **state)
{
	static const char *const notes[] = { [VB_SENT_FIRST] = "",
		[VB_SENT_LOST] = "sent again: it is missing",
		[VB_SENT_PROBE] = "sent again, to hear of the peer",
		[VB_SENT_BACK] = "sent again, with all that is behind it",
		[VB_SENT_ASKED] = "sent again: the peer has asked for it" };
	for (unsigned i = VB_SENT_FIRST; i < COUNT_OF(notes); i++) {
		char text[VB_PCAP_NOTE];
		vb_pcap_note(&samples[0], i, text, sizeof(text));
		assert_string_equal(text, notes[i]);
	}
	char text[VB_PCAP_NOTE];
	vb_pcap_note(&(struct vb_packet){ .opcode = VB_READ_LARGE, .dma_length = 9 }, VB_SENT_LOST, text, sizeof(text));
	assert_string_equal(
		text, "READ request of 9 bytes, to be answered in large packets; sent again: it is missing");
}

/* The longest: every other packet of a bitmap is held. */
static void note__is_never_longer_than_its_room(void **state)
{
	const uint64_t half = 0x5555555555555555;
	const struct vb_packet bitmap = { .opcode = VB_BITMAP,
		.psn = 10000000,
		.expected_psn = 9999999,
		.told = VB_TOLD_OVERFLOW,
		.bits = { half, half } };
	char text[VB_PCAP_NOTE];
	assert_int_equal(vb_pcap_note(&bitmap, VB_SENT_FIRST, text, sizeof(text)), sizeof(text) - 1);
	assert_int_equal(vb_pcap_note(&bitmap, VB_SENT_FIRST, text, 9), 8);
	assert_string_equal(text, "bitmap: ");
}

static void pcap__has_comments_that_tools_show(void **state)
{
	if (!output_of("command -v tshark") || !output_of("command -v capinfos"))
		skip();
	struct vb_pcap *out;
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	write_packet(
		out, &(struct vb_packet){ .opcode = VB_HELLO, .pkey = VB_PKEY_DEFAULT, .hold_bytes = 9 }, false, 0);
	write_packet(out, &samples[0], true, 0);
	vb_pcap_add_line(out, "lane: nothing lost");
	vb_pcap_add_line(out, "qp 0x17");
	vb_pcap_end(out);
	write_packet(out, &samples[1], false, 1); /* comes too late */
	vb_pcap_close(out);

	char command[512];
	snprintf(command, sizeof(command), "tshark -r %s -T fields -e frame.comment 2>/dev/null", file_name);
	const char *said = output_of(command);
	assert_non_null(said);
	assert_string_equal(said, "hello: recovers selectively, holds 9 bytes\n\n");
	snprintf(command, sizeof(command), "capinfos -k %s", file_name);
	said = output_of(command);
	assert_non_null(said);
	assert_non_null(strstr(said, "lane: nothing lost"));
	assert_non_null(strstr(said, "qp 0x17"));
}

/* More than there is room for. */
static void pcap__comment_of_the_whole_is_bounded(void **state)
{
	struct vb_pcap *out;
	struct stat before, end;
	char line[1000];
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(vb_pcap_open(file_name, &out), 0);
	for (unsigned i = 0; i < 100; i++)
		vb_pcap_add_line(out, line);
	write_samples(out);
	assert_int_equal(stat(file_name, &before), 0);
	vb_pcap_end(out);
	assert_int_equal(stat(file_name, &end), 0);
	vb_pcap_close(out);
	pcap_t *in = open_file();
	struct pcap_pkthdr *header;
	const uint8_t *ip;
	for (size_t i = 0; i < 2 * COUNT_OF(samples); i++)
		assert_int_equal(pcap_next_ex(in, &header, &ip), 1);
	assert_int_equal(pcap_next_ex(in, &header, &ip), PCAP_ERROR_BREAK);
	pcap_close(in);
	assert_in_range(end.st_size - before.st_size, 15 * sizeof(line), 17 * sizeof(line)); /* of the hundred */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pcap__headers_are_rebuilt_as_they_were_sent, make_file, remove_file),
		cmocka_unit_test_setup_teardown(
			pcap__killed_process_leaves_what_it_had_written, make_file, remove_file),
		cmocka_unit_test_setup_teardown(pcap__opening_again_begins_anew, make_file, remove_file),
		cmocka_unit_test(pcap__is_written_by_one_process),
		cmocka_unit_test(pcap__open_says_why_it_cannot),
		cmocka_unit_test_setup_teardown(pcap__tshark_dissects_it_without_complaint, make_file, remove_file),
		cmocka_unit_test(note__says_what_our_own_packets_say),
		cmocka_unit_test(note__says_why_a_packet_is_sent_again),
		cmocka_unit_test(note__is_never_longer_than_its_room),
		cmocka_unit_test_setup_teardown(pcap__has_comments_that_tools_show, make_file, remove_file),
		cmocka_unit_test_setup_teardown(pcap__comment_of_the_whole_is_bounded, make_file, remove_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
