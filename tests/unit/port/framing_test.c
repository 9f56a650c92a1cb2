/* Framing over a carrier of the test's own, without a socket: packets as bytes, refused trains, faults, captures. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "array_carrier.h"
#include "base/bytes.h"
#include "port/framing.h"
#include "../unit.h"

enum { SLOT = 5, OTHER_SLOT = 9, FLOW = 0xC120 };

static struct array_carrier array;
static struct vb_port *port;
static struct vb_batch batch;
static struct vb_train train;
static struct vb_av av, other_av;
static uint8_t memory[256 * 1024];

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void open_with(const struct vb_framing_config *config)
{
	struct vb_framing_config mine = *config;

	mine.slot = SLOT;
	array_carrier_init(&array);
	assert_int_equal(vb_framing_open(&mine, &array.carrier, &port), 0);
	av = (struct vb_av){ .sgid = vb_gid_from_ipv4(10, 0, 0, 1), .dgid = vb_gid_from_ipv4(10, 0, 0, 2) };
	other_av = (struct vb_av){ .sgid = vb_gid_from_ipv4(10, 0, 0, 7), .dgid = vb_gid_from_ipv4(10, 0, 0, 2) };
	batch.count = batch.iov_count = 0;
}

static void open_plain(void)
{
	open_with(&(struct vb_framing_config){ .slot = SLOT });
}

static void close_all(void)
{
	vb_port_close(port);
	assert_true(array.is_closed);
	array_carrier_deinit(&array);
}

static const uint8_t *payload_of(uint32_t psn)
{
	return memory + psn * 4096u % (sizeof(memory) / 2);
}

static struct vb_outgoing *put(uint8_t opcode, uint8_t slot, uint32_t psn, uint32_t length)
{
	struct vb_outgoing *out = &batch.out[batch.count];

	batch.completions[batch.count++] = (struct vb_tx_completion){ .cookie = psn, .error = -1 };
	*out = (struct vb_outgoing){ .packet = { .opcode = opcode,
					     .pkey = VB_PKEY_DEFAULT,
					     .dest_qpn = (uint32_t)slot << 16 | 0x42,
					     .psn = psn,
					     .payload_length = length },
		.av = &av,
		.iov_first = (uint16_t)batch.iov_count,
		.iov_count = length ? 1 : 0,
		.flow = FLOW,
		.to_trains = true };
	if (length)
		batch.iov[batch.iov_count++] = (struct vb_iov){ (void *)payload_of(psn), length };
	return out;
}

static void put_middles(unsigned first, unsigned count, uint32_t length)
{
	for (unsigned i = 0; i < count; i++)
		put(VB_WRITE_MIDDLE, SLOT, first + i, length);
}

static void send_batch(void)
{
	vb_port_send(port, &batch, 0);
}

static uint64_t counter(enum vb_port_counter which)
{
	uint64_t values[VB_PORT_COUNTER_COUNT];

	vb_port_counters(port, values);
	return values[which];
}

static void assert_completions(int error)
{
	unsigned count;
	const struct vb_tx_completion *completions = vb_port_finished(port, &count);

	assert_int_equal(count, batch.count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(completions[i].error, error);
		assert_int_equal(completions[i].cookie, batch.out[i].packet.psn);
	}
}

/* The numbers of all packets that are received, in order. Returns how many. */
static unsigned receive_all(uint32_t *psns, unsigned most, vb_time now)
{
	unsigned count = 0;

	while (vb_port_receive(port, now))
		while (vb_port_next_train(port, &train))
			for (unsigned i = 0; i < train.count; i++) {
				assert_true(count < most);
				assert_memory_equal(train.packets[i].payload, payload_of(train.packets[i].psn),
					train.packets[i].payload_length);
				psns[count++] = train.packets[i].psn;
			}
	return count;
}

/* Each datagram of a message is a packet whose ICRC is that of its number. */
static void assert_numbered(const struct array_message *m, unsigned packets)
{
	uint32_t segment = m->segment ? m->segment : m->length, at = 0;
	struct vb_flow flow = { m->path.src, m->path.dst, m->path.src_port, VB_UDP_PORT };

	for (unsigned i = 0; i < packets; i++, at += segment) {
		uint32_t length = m->length - at < segment ? m->length - at : segment;
		uint16_t id = 0xABCD;
		struct vb_packet packet;
		assert_true(vb_icrc_verify(&flow, m->bytes + at, length, false, &id));
		assert_int_equal(id, i);
		assert_int_equal(vb_packet_decode(&packet, m->bytes + at, length), VB_DECODE_OK);
		assert_memory_equal(packet.payload, payload_of(packet.psn), packet.payload_length);
	}
	assert_true(at >= m->length && at - m->length < segment);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

static void batch__takes_one_call_of_each_operation(void **state)
{
	open_plain();
	for (uint32_t i = 0; i < 40; i++)
		put(VB_SEND_ONLY, i % 2 ? SLOT : OTHER_SLOT, i, 64)->to_trains = false;
	send_batch();
	assert_int_equal(array.routes, 1);
	assert_int_equal(array.sends, 1);
	assert_int_equal(array.count, 40);
	assert_completions(0);
	close_all();
}

static void packets__come_back_as_they_were(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 511, 512, 513, 1021, 4096 };
	uint32_t psns[COUNT_OF(lengths)];

	open_plain();
	av.traffic_class = 0x6A;
	av.hop_limit = 9;
	for (uint32_t i = 0; i < COUNT_OF(lengths); i++)
		put(VB_SEND_ONLY, SLOT, i, lengths[i])->to_trains = false;
	send_batch();
	for (unsigned i = 0; i < array.count; i++)
		assert_numbered(&array.messages[i], 1);
	assert_int_equal(receive_all(psns, COUNT_OF(lengths), 0), COUNT_OF(lengths));
	for (uint32_t i = 0; i < COUNT_OF(lengths); i++)
		assert_int_equal(psns[i], i);
	assert_int_equal(train.path.traffic_class, 0x6A);
	assert_int_equal(train.path.hop_limit, 9);
	assert_int_equal(train.path.src_port, array_carrier_port(&array.carrier, SLOT, FLOW));
	close_all();
}

static void train__is_one_message_of_numbered_packets(void **state)
{
	uint32_t psns[6];

	open_plain();
	put_middles(0, 5, 1024);
	put(VB_WRITE_LAST, SLOT, 5, 77);
	send_batch();
	assert_int_equal(array.count, 1);
	assert_int_equal(array.messages[0].segment, VB_BTH_LENGTH + 1024 + VB_ICRC_LENGTH);
	assert_numbered(&array.messages[0], 6);
	assert_int_equal(receive_all(psns, 6, 0), 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(psns[i], i);
	assert_int_equal(counter(VB_PORT_TX_DATAGRAMS), 1);
	assert_int_equal(counter(VB_PORT_TX_SEGMENTS), 6);
	assert_int_equal(counter(VB_PORT_RX_DATAGRAMS), 1);
	assert_int_equal(counter(VB_PORT_RX_SEGMENTS), 6);
	close_all();
}

static void train__ends_where_a_packet_says_so(void **state)
{
	open_plain();
	put_middles(0, 5, 1024);
	batch.out[0].ends_train = batch.out[2].ends_train = true;
	send_batch();
	assert_int_equal(array.count, 3);
	for (unsigned i = 0; i < array.count; i++)
		assert_numbered(&array.messages[i], i ? 2 : 1);
	close_all();
}

/* It leaves in front of them, and travels behind the first ones. */
static void train__that_a_packet_ends_takes_an_ack_along(void **state)
{
	open_plain();
	put(VB_RC | VB_ACKNOWLEDGE, SLOT, 0, 0);
	put_middles(1, 4, 1024);
	batch.out[2].ends_train = true;
	send_batch();
	assert_int_equal(array.count, 2);
	assert_numbered(&array.messages[0], 3);
	assert_numbered(&array.messages[1], 2);
	close_all();
}

static void carrier__without_trains_is_given_single_datagrams(void **state)
{
	struct vb_port *single = NULL;
	struct array_carrier other;

	open_plain();
	array_carrier_init(&other);
	other.carrier.largest_train = 0;
	assert_int_equal(vb_framing_open(&(struct vb_framing_config){ .slot = SLOT }, &other.carrier, &single), 0);
	put_middles(0, 4, 1024);
	vb_port_send(single, &batch, 0);
	assert_int_equal(other.sends, 1);
	assert_int_equal(other.count, 4);
	assert_numbered(&other.messages[3], 1);
	vb_port_close(single);
	array_carrier_deinit(&other);
	close_all();
}

static void train__ends_where_the_source_port_changes(void **state)
{
	static const struct {
		uint16_t mask;
		unsigned messages;
	} cases[] = { { 0, 1 }, { 1, 4 }, { 3, 4 } };

	for (unsigned k = 0; k < COUNT_OF(cases); k++) {
		open_plain();
		array.carrier.flow_mask = cases[k].mask;
		for (uint32_t i = 0; i < 8; i++) /* of one QP: two, two, two, two */
			put(VB_WRITE_MIDDLE, SLOT, i, 1024)->flow = (uint16_t)(FLOW + (i / 2 & 1));
		send_batch();
		assert_int_equal(array.count, cases[k].messages);
		for (unsigned i = 0; i < array.count; i++) {
			assert_numbered(&array.messages[i], 8 / cases[k].messages);
			assert_int_equal(array.messages[i].path.src_port,
				array_carrier_port(&array.carrier, SLOT, (uint16_t)(FLOW + (i & 1))));
		}
		close_all();
	}
}

static void merged_train__that_is_longer_than_a_ports_is_given_in_parts(void **state)
{
	uint32_t psns[300];
	enum { PACKETS = 300, BYTES = VB_BTH_LENGTH + 8 + VB_ICRC_LENGTH };

	open_plain();
	put(VB_SEND_ONLY, SLOT, 3, 8);
	send_batch();
	struct array_message *m = &array.messages[0];
	assert_int_equal(m->length, BYTES);
	for (unsigned i = 1; i < PACKETS; i++) /* as a network that merges without numbering */
		memcpy(m->bytes + i * BYTES, m->bytes, BYTES);
	m->length = PACKETS * BYTES;
	m->segment = BYTES;
	assert_int_equal(receive_all(psns, PACKETS, 0), PACKETS);
	assert_int_equal(counter(VB_PORT_RX_SEGMENTS), PACKETS);
	assert_int_equal(counter(VB_PORT_RX_DROP_ICRC), 0);
	close_all();
}

static void receive__refuses_what_is_not_for_us(void **state)
{
	uint32_t psns[8];

	open_plain();
	put(VB_SEND_ONLY, OTHER_SLOT, 0, 8)->to_trains = false; /* another slot's */
	put(VB_SEND_ONLY, SLOT, 1, 8)->to_trains = false;       /* will be cut short */
	put(VB_SEND_ONLY, SLOT, 2, 8)->to_trains = false;       /* will have a wrong bit */
	put(VB_SEND_ONLY, SLOT, 3, 8)->to_trains = false;       /* has no sender's address */
	put(VB_SEND_ONLY, SLOT, 4, 8)->to_trains = false;
	send_batch();
	array.messages[1].length = VB_BTH_LENGTH;
	array.messages[2].bytes[14] ^= 1;
	array.messages[3].length = 0;
	assert_int_equal(receive_all(psns, 8, 0), 1);
	assert_int_equal(psns[0], 4);
	assert_int_equal(counter(VB_PORT_RX_MIS_STEERED), 1);
	assert_int_equal(counter(VB_PORT_RX_DROP_ICRC), 1);
	assert_int_equal(counter(VB_PORT_RX_DROP_DECODE), 2);
	close_all();
}

/* ---- What a carrier refuses -------------------------------------------------------------------------------------- */

static void refused_train__goes_singly_and_so_do_later_ones(void **state)
{
	uint32_t psns[4];

	open_plain();
	array.refuses_trains = EIO;
	put_middles(0, 4, 1024);
	send_batch();
	assert_completions(0);
	assert_int_equal(array.sends, 2);
	assert_int_equal(array.count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_numbered(&array.messages[i], 1);
	assert_int_equal(port->trains_refused, EIO);
	assert_int_equal(counter(VB_PORT_TX_ERRORS), 0);
	assert_int_equal(counter(VB_PORT_TX_DATAGRAMS), 4);
	assert_int_equal(receive_all(psns, 4, 0), 4);
	array_carrier_clear(&array);
	send_batch(); /* the same again: not tried as a train */
	assert_int_equal(array.sends, 1);
	assert_int_equal(array.count, 4);
	array.refuses_trains = 0;
	array_carrier_clear(&array);
	for (unsigned i = 0; i < batch.count; i++)
		batch.out[i].av = &other_av;
	send_batch(); /* from another address */
	assert_int_equal(array.count, 1);
	close_all();
}

static void refused_train__of_packets_that_are_too_big_says_so(void **state)
{
	open_plain();
	array.refuses_trains = EINVAL;
	array.mtu = 1000;
	put_middles(0, 4, 1024);
	send_batch();
	assert_completions(EMSGSIZE);
	assert_int_equal(counter(VB_PORT_TX_ERRORS), 4);
	assert_int_equal(array.count, 0);
	array.refuses_trains = 0; /* it was not the trains */
	batch.count = batch.iov_count = 0;
	put_middles(0, 4, 256);
	send_batch();
	assert_completions(0);
	assert_int_equal(array.count, 1);
	close_all();
}

static void failed_message__does_not_hold_up_others(void **state)
{
	open_plain();
	array.fails_route_to = OTHER_SLOT;
	array.mtu = 1024;
	put(VB_SEND_ONLY, SLOT, 0, 64)->to_trains = false;
	put(VB_SEND_ONLY, OTHER_SLOT, 1, 64)->to_trains = false;
	put(VB_SEND_ONLY, SLOT, 2, 2048)->to_trains = false;
	put(VB_SEND_ONLY, SLOT, 3, 64)->to_trains = false;
	send_batch();
	assert_int_equal(batch.completions[0].error, 0);
	assert_int_equal(batch.completions[1].error, ENETDOWN);
	assert_int_equal(batch.completions[2].error, EMSGSIZE);
	assert_int_equal(batch.completions[3].error, 0);
	assert_int_equal(array.count, 2);
	assert_int_equal(counter(VB_PORT_TX_ERRORS), 2);
	assert_int_equal(counter(VB_PORT_TX_SEGMENTS), 2);
	close_all();
}

static void carrier__that_lost_its_descriptor_shows_in_the_port(void **state)
{
	int fds[VB_PORT_FDS];

	open_plain();
	unsigned version = port->fds_version;
	assert_int_equal(vb_port_fds(port, fds), 1);
	assert_int_equal(fds[0], ARRAY_CARRIER_FD);
	array.carrier.is_lost = true;
	array.carrier.fds_version++;
	array.overflow = 12;
	assert_int_equal(vb_port_receive(port, 0), 0);
	assert_true(port->is_lost);
	assert_int_equal(port->fds_version, version + 1);
	assert_int_equal(counter(VB_PORT_RX_OVERFLOW), 12);
	vb_port_abandon(port, false);
	assert_true(array.is_abandoned);
	assert_int_equal(port->room, 0);
	close_all();
}

/* ---- Faults and captures ----------------------------------------------------------------------------------------- */

static struct vb_faults *faults_of(const char *text)
{
	struct vb_faults *faults = NULL;
	char why[300];

	assert_int_equal(vb_faults_parse(text, &faults, why, sizeof(why)), 0);
	return faults;
}

static void faults__act_on_packets_of_a_train(void **state)
{
	static const struct {
		const char *text;
		unsigned received;
		enum vb_port_counter counter;
	} cases[] = { { "dup=100%", 12, VB_PORT_FAULT_DOUBLED }, { "drop=100%", 0, VB_PORT_FAULT_DROPPED },
		{ "corrupt=100%", 0, VB_PORT_RX_DROP_ICRC }, { "drop=100%,burst=2", 0, VB_PORT_FAULT_DROPPED },
		{ "late=100%,late-by=1ms", 0, VB_PORT_FAULT_LATE } };
	uint32_t psns[12];

	for (unsigned k = 0; k < COUNT_OF(cases); k++) {
		struct vb_faults *faults = faults_of(cases[k].text);
		open_with(&(struct vb_framing_config){ .faults = faults });
		put_middles(0, 6, 1024);
		send_batch();
		assert_int_equal(receive_all(psns, 12, 0), cases[k].received);
		assert_int_equal(counter(cases[k].counter), 6);
		close_all();
		vb_faults_free(faults);
	}
}

static void faults__that_delay_set_the_ports_deadline(void **state)
{
	struct vb_faults *faults = faults_of("delay=2ms");
	uint32_t psns[6];

	open_with(&(struct vb_framing_config){ .faults = faults });
	put_middles(0, 6, 1024);
	send_batch();
	assert_false(vb_port_next_deadline(port).is_set);
	assert_int_equal(receive_all(psns, 6, 0), 0);
	assert_true(vb_port_next_deadline(port).is_set);
	assert_int_equal(vb_port_next_deadline(port).at, 2 * VB_MS);
	assert_int_equal(receive_all(psns, 6, VB_MS), 0);
	assert_int_equal(receive_all(psns, 6, 2 * VB_MS), 6);
	assert_int_equal(counter(VB_PORT_FAULT_DELAYED), 6);
	close_all();
	vb_faults_free(faults);
}

/* Packets of a capture file: each has IPv4 and UDP headers before it. Two blocks come first. */
static unsigned read_capture(const char *file, uint16_t *ids, uint16_t *src_ports, uint32_t *psns, unsigned most)
{
	static uint8_t bytes[65536];
	enum { FIRST = 28 + 32, BLOCK = 28, PACKET = 6, IP = 20, UDP = 8 };
	int fd = open(file, O_RDONLY);
	size_t length = (size_t)read(fd, bytes, sizeof(bytes)), at = FIRST;
	unsigned count = 0;

	close(fd);
	for (; at + BLOCK < length; count++) {
		uint32_t head[2]; /* type, length */
		memcpy(head, bytes + at, sizeof(head));
		assert_int_equal(head[0], PACKET);
		const uint8_t *ip = bytes + at + BLOCK;
		assert_true(count < most);
		ids[count] = vb_load_be16(ip + 4);
		src_ports[count] = vb_load_be16(ip + IP);
		psns[count] = ip[IP + UDP + 11];
		at += head[1];
	}
	assert_int_equal(at, length);
	return count;
}

static void capture__has_each_packet_that_leaves_and_comes(void **state)
{
	char file[] = "/tmp/verbena-framing-XXXXXX";
	uint16_t ids[8], src_ports[8];
	uint32_t psns[8], received[3];
	struct vb_pcap *pcap = NULL;

	close(mkstemp(file));
	assert_int_equal(vb_pcap_open(file, &pcap), 0);
	open_with(&(struct vb_framing_config){ .pcap = pcap });
	put_middles(0, 3, 1024); /* of two pieces each, the end of one with the head of the next */
	send_batch();
	assert_int_equal(receive_all(received, 3, 0), 3);
	close_all();
	vb_pcap_close(pcap);
	assert_int_equal(read_capture(file, ids, src_ports, psns, 8), 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(psns[i], i % 3);
		assert_int_equal(ids[i], i % 3);
		assert_int_equal(src_ports[i], 0xC000 + SLOT * 8);
	}
	unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch__takes_one_call_of_each_operation),
		cmocka_unit_test(packets__come_back_as_they_were),
		cmocka_unit_test(train__is_one_message_of_numbered_packets),
		cmocka_unit_test(train__ends_where_a_packet_says_so),
		cmocka_unit_test(train__that_a_packet_ends_takes_an_ack_along),
		cmocka_unit_test(carrier__without_trains_is_given_single_datagrams),
		cmocka_unit_test(train__ends_where_the_source_port_changes),
		cmocka_unit_test(merged_train__that_is_longer_than_a_ports_is_given_in_parts),
		cmocka_unit_test(receive__refuses_what_is_not_for_us),
		cmocka_unit_test(refused_train__goes_singly_and_so_do_later_ones),
		cmocka_unit_test(refused_train__of_packets_that_are_too_big_says_so),
		cmocka_unit_test(failed_message__does_not_hold_up_others),
		cmocka_unit_test(carrier__that_lost_its_descriptor_shows_in_the_port),
		cmocka_unit_test(faults__act_on_packets_of_a_train),
		cmocka_unit_test(faults__that_delay_set_the_ports_deadline),
		cmocka_unit_test(capture__has_each_packet_that_leaves_and_comes),
	};

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 31 ^ i >> 8);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
