/* The UDP port over loopback: two ports in one process, on two loopback addresses, in a network namespace of the test's
 * own where the machine allows one (so that nobody else's port 4791 is in the way). */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "../namespace.h"
#include "port/faults.h"
#include "port/udp.h"

#define SLOT_A 3
#define SLOT_B 7

struct end {
	struct vb_gid gid;
	int fd;
	struct vb_port *port;
};

static struct vb_batch batch;
static struct vb_train train;
static struct vb_av av;
static uint8_t memory[256 * 1024];

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void loopback_mtu(int mtu)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ioctl(fd, SIOCSIFMTU, &request);
	close(fd);
}

static int bound_socket(const struct vb_gid *gid)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), off = 0, size = 4 << 20;

	memcpy(&name.sin6_addr, gid->raw, 16);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void end_open(struct end *end, struct vb_gid gid, uint8_t slot)
{
	end->gid = gid;
	end->fd = bound_socket(&gid);
	if (end->fd < 0)
		skip(); /* the port is somebody else's and there is no namespace of our own */
	struct vb_udp_config config = { .receive_fd = end->fd, .slot = slot };
	assert_int_equal(vb_udp_open(&config, &end->port), 0);
}

static void end_close(struct end *end)
{
	vb_port_close(end->port);
	close(end->fd);
}

static struct vb_gid loopback(uint8_t last)
{
	return vb_gid_from_ipv4(127, 0, 0, last);
}

static struct vb_gid loopback6(void)
{
	return (struct vb_gid){ { [15] = 1 } };
}

/* Both ends of one path; IPv6 has a single loopback address, so there one end sends to itself. */
static void pair_open(struct end *a, struct end *b)
{
	end_open(a, loopback(2), SLOT_A);
	end_open(b, loopback(3), SLOT_B);
	av = (struct vb_av){ .sgid = a->gid, .dgid = b->gid };
}

/* ---- Packets ----------------------------------------------------------------------------------------------------- */

static void batch_clear(void)
{
	batch.count = batch.iov_count = 0;
}

static struct vb_outgoing *put(uint8_t opcode, uint32_t qpn, uint32_t psn, uint32_t length)
{
	struct vb_outgoing *out = &batch.out[batch.count++];

	*out = (struct vb_outgoing){ .packet = { .opcode = opcode,
					     .pkey = VB_PKEY_DEFAULT,
					     .dest_qpn = qpn,
					     .psn = psn,
					     .payload_length = length },
		.av = &av,
		.iov_first = (uint16_t)batch.iov_count,
		.iov_count = length ? 1 : 0,
		.flow = 0xC123,
		.to_trains = true };
	if (length)
		batch.iov[batch.iov_count++] = (struct vb_iov){ memory + psn * 4096u % (sizeof(memory) / 2), length };
	return out;
}

static uint32_t qpn_of(uint8_t slot)
{
	return (uint32_t)slot << 16 | 0x42;
}

static uint64_t counter(const struct end *end, enum vb_port_counter which)
{
	uint64_t values[VB_PORT_COUNTER_COUNT];

	vb_port_counters(end->port, values);
	return values[which];
}

static unsigned receive(struct end *end)
{
	struct pollfd fd = { .fd = end->fd, .events = POLLIN };

	poll(&fd, 1, 1000);
	return vb_port_receive(end->port, 0);
}

/* The next train that holds something, waiting for it. */
static bool next_train(struct end *end)
{
	for (int tries = 0; tries < 4; tries++) {
		while (vb_port_next_train(end->port, &train))
			if (train.count)
				return true;
		if (!receive(end))
			return false;
	}
	return false;
}

static void assert_payload(const struct vb_packet *packet, uint32_t psn)
{
	assert_memory_equal(packet->payload, memory + psn * 4096u % (sizeof(memory) / 2), packet->payload_length);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void send__single_arrives_whole(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 8, 509, 512, 513, 1023, 4093, 4096 };
	struct end a, b;

	pair_open(&a, &b);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		batch_clear();
		put(VB_SEND_ONLY, qpn_of(SLOT_B), i, lengths[i]);
		vb_port_send(a.port, &batch, 0);
		assert_int_equal(batch.completions[0].error, 0);
		assert_true(next_train(&b));
		assert_int_equal(train.count, 1);
		assert_int_equal(train.packets[0].psn, i);
		assert_int_equal(train.packets[0].payload_length, lengths[i]);
		assert_payload(&train.packets[0], i);
	}
	end_close(&a);
	end_close(&b);
}

static void receive__path_says_where_from(void **state)
{
	struct end a, b;

	pair_open(&a, &b);
	av.traffic_class = 0x6a;
	av.hop_limit = 17;
	batch_clear();
	put(VB_SEND_ONLY, qpn_of(SLOT_B), 1, 8);
	vb_port_send(a.port, &batch, 0);
	assert_true(next_train(&b));
	assert_memory_equal(&train.path.src, &a.gid, 16);
	assert_memory_equal(&train.path.dst, &b.gid, 16);
	assert_int_equal(train.path.traffic_class, 0x6a);
	assert_int_equal(train.path.hop_limit, 17);
	assert_int_equal(train.path.ifindex, if_nametoindex("lo"));
	assert_int_equal(train.path.src_port, 0xC123); /* the flow's, when it is free */
	end_close(&a);
	end_close(&b);
}

/* What an address vector says of ECN counts. */
static void send__takes_marks_where_it_is_asked_to(void **state)
{
	static const uint8_t said[] = { 0, 0x68, 1, 0x6b }, seen[] = { 2, 0x6a, 1, 0x6b };
	struct end a, b;

	pair_open(&a, &b);
	vb_port_close(a.port);
	struct vb_udp_config config = { .receive_fd = a.fd, .slot = SLOT_A, .takes_marks = true };
	assert_int_equal(vb_udp_open(&config, &a.port), 0);
	for (unsigned i = 0; i < sizeof(said); i++) {
		av.traffic_class = said[i];
		batch_clear();
		put(VB_SEND_ONLY, qpn_of(SLOT_B), i, 8);
		vb_port_send(a.port, &batch, 0);
		assert_true(next_train(&b));
		assert_int_equal(train.path.traffic_class, seen[i]);
	}
	end_close(&a);
	end_close(&b);
}

static void send__ipv6_arrives_in_trains(void **state)
{
	struct end a;

	end_open(&a, loopback6(), SLOT_A);
	av = (struct vb_av){ .sgid = a.gid, .dgid = a.gid, .traffic_class = 2, .hop_limit = 9 };
	batch_clear();
	for (uint32_t i = 0; i < 12; i++)
		put(VB_WRITE_MIDDLE, qpn_of(SLOT_A), i, 4096);
	vb_port_send(a.port, &batch, 0);
	assert_true(next_train(&a));
	assert_int_equal(train.count, 12);
	assert_int_equal(train.path.traffic_class, 2);
	assert_int_equal(train.path.hop_limit, 9);
	for (uint32_t i = 0; i < 12; i++)
		assert_payload(&train.packets[i], i);
	assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS), 1);
	end_close(&a);
}

static void send__write_message_is_single_and_train(void **state)
{
	struct end a, b;

	pair_open(&a, &b);
	batch_clear();
	put(VB_WRITE_FIRST, qpn_of(SLOT_B), 0, 4096);
	for (uint32_t i = 1; i < 15; i++)
		put(VB_WRITE_MIDDLE, qpn_of(SLOT_B), i, 4096);
	put(VB_WRITE_LAST, qpn_of(SLOT_B), 15, 1001);
	vb_port_send(a.port, &batch, 0);
	for (unsigned seen = 0; seen < 16; seen += train.count) {
		assert_true(next_train(&b));
		for (unsigned i = 0; i < train.count; i++) {
			assert_int_equal(train.packets[i].psn, seen + i);
			assert_payload(&train.packets[i], seen + i);
		}
	}
	assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS), 2);
	assert_int_equal(counter(&a, VB_PORT_TX_SEGMENTS), 16);
	assert_int_equal(counter(&b, VB_PORT_RX_SEGMENTS), 16);
	assert_int_equal(counter(&b, VB_PORT_RX_DROP_ICRC), 0);
	end_close(&a);
	end_close(&b);
}

static void send__trains_end_where_they_must(void **state)
{
	struct end a, b;

	pair_open(&a, &b);
	batch_clear();
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B), 0, 256);
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B), 1, 256);
	put(VB_SEND_LAST, qpn_of(SLOT_B), 2, 100); /* shorter: the last of its train */
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B), 3, 256);
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B), 4, 512); /* longer */
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B), 5, 512)->to_trains = false;
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B + 1), 6, 512); /* another slot */
	put(VB_SEND_MIDDLE, qpn_of(SLOT_B), 7, 512);
	vb_port_send(a.port, &batch, 0);
	assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS), 6);
	uint32_t seen = 0;
	while (seen != 0xBF && next_train(&b))
		for (unsigned i = 0; i < train.count; i++)
			seen |= 1u << train.packets[i].psn;
	assert_int_equal(seen, 0xBF);
	while (counter(&b, VB_PORT_RX_SEGMENTS) < 8 && (vb_port_next_train(b.port, &train) || receive(&b)))
		continue;
	assert_int_equal(counter(&b, VB_PORT_RX_MIS_STEERED), 1);
	assert_int_equal(counter(&b, VB_PORT_RX_DROP_ICRC), 0);
	end_close(&a);
	end_close(&b);
}

/* The opcodes and numbers of what arrives for a batch. */
static unsigned exchange(struct end *a, struct end *b, struct vb_packet *packets, unsigned expected)
{
	unsigned count = 0;

	vb_port_send(a->port, &batch, 0);
	while (count < expected && next_train(b))
		for (unsigned i = 0; i < train.count; i++)
			packets[count++] = train.packets[i];
	return count;
}

static void assert_opcodes(const struct vb_packet *packets, const uint8_t *opcodes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(packets[i].opcode, opcodes[i]);
}

/* Each completion stays that of its packet. */
static void send__ack_is_the_last_of_the_requests_behind_it(void **state)
{
	static const uint8_t expected[] = { VB_SEND_MIDDLE, VB_SEND_MIDDLE, VB_SEND_MIDDLE, VB_ACKNOWLEDGE };
	struct vb_packet packets[8];
	struct end a, b;

	pair_open(&a, &b);
	batch_clear();
	put(VB_ACKNOWLEDGE, qpn_of(SLOT_B), 9, 0);
	for (unsigned i = 0; i < 3; i++)
		put(VB_SEND_MIDDLE, qpn_of(SLOT_B), i, 256);
	for (unsigned i = 0; i < batch.count; i++)
		batch.completions[i].cookie = batch.out[i].packet.psn;
	assert_int_equal(exchange(&a, &b, packets, 4), 4);
	assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS), 1);
	assert_opcodes(packets, expected, 4);
	for (unsigned i = 0; i < 3; i++)
		assert_payload(&packets[i], i);
	for (unsigned i = 0; i < batch.count; i++)
		assert_int_equal(batch.completions[i].cookie, batch.out[i].packet.psn);
	assert_int_equal(counter(&b, VB_PORT_RX_DROP_ICRC), 0);
	end_close(&a);
	end_close(&b);
}

/* Longer than the ack, of equal length, and none a response: else it leaves first, as it was told to. */
static void send__ack_that_has_no_place_behind_leaves_first(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t length, last;
		unsigned datagrams;
	} cases[] = { { VB_SEND_ONLY, 0, 0, 2 }, { VB_SEND_ONLY, 256, 100, 2 },
		{ VB_READ_RESPONSE_MIDDLE, 256, 256, 2 } };
	struct vb_packet packets[8];
	struct end a, b;

	pair_open(&a, &b);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = counter(&a, VB_PORT_TX_DATAGRAMS);
		batch_clear();
		put(VB_ACKNOWLEDGE, qpn_of(SLOT_B), 9, 0);
		put(cases[i].opcode, qpn_of(SLOT_B), 0, cases[i].length);
		put(cases[i].opcode, qpn_of(SLOT_B), 1, cases[i].last);
		assert_int_equal(exchange(&a, &b, packets, 3), 3);
		assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS) - before, cases[i].datagrams);
		assert_opcodes(packets, (uint8_t[]){ VB_ACKNOWLEDGE, cases[i].opcode, cases[i].opcode }, 3);
	}
	end_close(&a);
	end_close(&b);
}

static void send__slots_of_a_peer_have_their_own_source_port(void **state)
{
	uint16_t ports[40];
	struct end a, b;

	pair_open(&a, &b);
	for (unsigned slot = 1; slot <= 40; slot++) {
		b.port = (vb_port_close(b.port), NULL);
		struct vb_udp_config config = { .receive_fd = b.fd, .slot = (uint8_t)slot };
		assert_int_equal(vb_udp_open(&config, &b.port), 0);
		batch_clear();
		put(VB_SEND_ONLY, qpn_of((uint8_t)slot), slot, 8);
		vb_port_send(a.port, &batch, 0);
		assert_true(next_train(&b));
		ports[slot - 1] = train.path.src_port;
		assert_true(train.path.src_port >= 0xC000);
	}
	/* Beyond 32 sockets one changes its slot, never a recent one. */
	for (unsigned i = 0; i < 40; i++)
		for (unsigned j = i + 1; j < 40 && j < i + 32; j++)
			assert_int_not_equal(ports[i], ports[j]);
	end_close(&a);
	end_close(&b);
}

/* Two flows of one QP: a train of each, each from a source port of its own. */
static void send__flows_of_a_qp_have_their_own_source_port(void **state)
{
	uint16_t port_of[12];
	unsigned seen = 0;
	struct end a, b;

	pair_open(&a, &b);
	vb_port_close(a.port);
	struct vb_udp_config config = { .receive_fd = a.fd, .slot = SLOT_A, .flow_mask = 1 };
	assert_int_equal(vb_udp_open(&config, &a.port), 0);
	for (unsigned round = 0; round < 2; round++) { /* the second finds the sockets made */
		batch_clear();
		for (uint32_t i = 0; i < 6; i++)
			put(VB_WRITE_MIDDLE, qpn_of(SLOT_B), round * 6 + i, 1024)->flow = i < 3 ? 0xC122 : 0xC123;
		vb_port_send(a.port, &batch, 0);
	}
	while (seen < 12 && next_train(&b))
		for (unsigned i = 0; i < train.count; i++, seen++) {
			assert_payload(&train.packets[i], train.packets[i].psn);
			port_of[train.packets[i].psn] = train.path.src_port;
		}
	assert_int_equal(seen, 12);
	assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS), 4);
	assert_int_equal(counter(&b, VB_PORT_RX_DROP_ICRC), 0);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(port_of[i], i % 6 < 3 ? 0xC122 : 0xC123);
	end_close(&a);
	end_close(&b);
}

static void send__beyond_the_mtu_is_said_and_trains_stay(void **state)
{
	struct end a, b;

	if (!getenv("VB_TEST_OWN_NAMESPACE"))
		skip();
	pair_open(&a, &b);
	loopback_mtu(1500);
	batch_clear();
	for (uint32_t i = 0; i < 4; i++)
		put(VB_SEND_MIDDLE, qpn_of(SLOT_B), i, 4096);
	vb_port_send(a.port, &batch, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(batch.completions[i].error, EMSGSIZE);
	assert_int_equal(counter(&a, VB_PORT_TX_ERRORS), 4);
	batch_clear();
	for (uint32_t i = 0; i < 4; i++)
		put(VB_SEND_MIDDLE, qpn_of(SLOT_B), i, 1024);
	vb_port_send(a.port, &batch, 0);
	loopback_mtu(65536);
	assert_int_equal(batch.completions[3].error, 0);
	assert_int_equal(counter(&a, VB_PORT_TX_DATAGRAMS), 1);
	end_close(&a);
	end_close(&b);
}

static void send__scatter_list_is_one_payload(void **state)
{
	struct end a, b;

	pair_open(&a, &b);
	batch_clear();
	for (unsigned k = 0; k < 2; k++) { /* small enough to be copied, and not */
		struct vb_outgoing *out = put(VB_SEND_ONLY, qpn_of(SLOT_B), k, 0);
		out->packet.payload_length = k ? 1201 : 201;
		out->iov_count = 3;
		batch.iov[batch.iov_count++] = (struct vb_iov){ memory, 1 };
		batch.iov[batch.iov_count++] = (struct vb_iov){ memory + 1, out->packet.payload_length - 101 };
		batch.iov[batch.iov_count++] = (struct vb_iov){ memory + out->packet.payload_length - 100, 100 };
	}
	vb_port_send(a.port, &batch, 0);
	for (unsigned k = 0; k < 2; k++) {
		assert_true(next_train(&b));
		assert_int_equal(train.packets[0].payload_length, k ? 1201 : 201);
		assert_memory_equal(train.packets[0].payload, memory, train.packets[0].payload_length);
	}
	end_close(&a);
	end_close(&b);
}

static void receive__bad_packets_are_counted(void **state)
{
	struct end a, b;
	uint8_t junk[64] = { 0x04, 0, 0xff, 0xff, 0, SLOT_B };

	pair_open(&a, &b);
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT) };
	memcpy(&to.sin6_addr, b.gid.raw, 16);
	sendto(a.fd, junk, sizeof(junk), 0, (struct sockaddr *)&to, sizeof(to)); /* wrong ICRC */
	sendto(a.fd, junk, 7, 0, (struct sockaddr *)&to, sizeof(to));
	sendto(a.fd, junk, 0, 0, (struct sockaddr *)&to, sizeof(to));
	for (int tries = 0; tries < 6; tries++) {
		receive(&b);
		while (vb_port_next_train(b.port, &train))
			assert_int_equal(train.count, 0);
		if (counter(&b, VB_PORT_RX_DATAGRAMS) == 3)
			break;
	}
	assert_int_equal(counter(&b, VB_PORT_RX_DROP_ICRC), 1);
	assert_int_equal(counter(&b, VB_PORT_RX_DROP_DECODE), 2);
	end_close(&a);
	end_close(&b);
}

static void receive__overflow_is_counted(void **state)
{
	struct end a, b;
	int small = 4096;

	pair_open(&a, &b);
	setsockopt(b.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < 16; i++) {
		batch_clear();
		put(VB_SEND_ONLY, qpn_of(SLOT_B), (uint32_t)i, 4096);
		vb_port_send(a.port, &batch, 0);
	}
	unsigned received = 0;
	assert_true(counter(&b, VB_PORT_RX_OVERFLOW) > 0);
	while (vb_port_receive(b.port, 0))
		while (vb_port_next_train(b.port, &train))
			received += train.count;
	assert_int_equal(received + counter(&b, VB_PORT_RX_OVERFLOW), 16);
	/* What comes next says so. */
	batch_clear();
	put(VB_SEND_ONLY, qpn_of(SLOT_B), 16, 64);
	vb_port_send(a.port, &batch, 0);
	assert_int_equal(vb_port_receive(b.port, 0), 1);
	assert_true(vb_port_next_train(b.port, &train));
	assert_int_equal(train.overflow, 16 - received);
	/* A port that opens the same socket later does not count them again. */
	vb_port_close(b.port);
	struct vb_udp_config config = { .receive_fd = b.fd, .slot = SLOT_B };
	assert_int_equal(vb_udp_open(&config, &b.port), 0);
	assert_int_equal(counter(&b, VB_PORT_RX_OVERFLOW), 0);
	end_close(&a);
	end_close(&b);
}

static void receive__faults_drop_and_double(void **state)
{
	struct end a, b;
	char why[200];
	struct vb_faults *faults = NULL;
	unsigned received = 0;

	pair_open(&a, &b);
	assert_int_equal(vb_faults_parse("drop=20%,dup=20%,reorder=20%,seed=7", &faults, why, sizeof(why)), 0);
	vb_port_close(b.port);
	struct vb_udp_config config = { .receive_fd = b.fd, .slot = SLOT_B, .faults = faults };
	assert_int_equal(vb_udp_open(&config, &b.port), 0);
	for (uint32_t i = 0; i < 200; i++) {
		batch_clear();
		put(VB_SEND_ONLY, qpn_of(SLOT_B), i, 8);
		vb_port_send(a.port, &batch, 0);
	}
	vb_time now = 0;
	while (vb_port_receive(b.port, now) || vb_port_next_deadline(b.port).is_set) {
		while (vb_port_next_train(b.port, &train))
			received += train.count;
		now = vb_time_add(now, VB_MS);
	}
	assert_in_range(received, 150, 250);
	assert_int_equal(received, 200 - counter(&b, VB_PORT_FAULT_DROPPED) + counter(&b, VB_PORT_FAULT_DOUBLED));
	assert_true(counter(&b, VB_PORT_FAULT_DROPPED) > 20);
	assert_true(counter(&b, VB_PORT_FAULT_REORDERED) > 20);
	assert_int_equal(counter(&b, VB_PORT_FAULT_CORRUPTED), 0);
	end_close(&a);
	end_close(&b);
	vb_faults_free(faults);
}

/* Received packets of 4, where faults of this path drop all. */
static unsigned receive_beside_faults_of(unsigned path, struct end *a, struct end *b)
{
	char text[64], why[300];
	struct vb_faults *faults = NULL;
	unsigned received = 0;

	snprintf(text, sizeof(text), "drop=100%%,path=%u", path);
	assert_int_equal(vb_faults_parse(text, &faults, why, sizeof(why)), 0);
	vb_port_close(b->port);
	struct vb_udp_config config = { .receive_fd = b->fd, .slot = SLOT_B, .faults = faults };
	assert_int_equal(vb_udp_open(&config, &b->port), 0);
	batch_clear();
	for (uint32_t i = 0; i < 4; i++)
		put(VB_SEND_ONLY, qpn_of(SLOT_B), i, 8);
	vb_port_send(a->port, &batch, 0);
	while (vb_port_receive(b->port, 0))
		while (vb_port_next_train(b->port, &train))
			received += train.count;
	assert_int_equal(received + counter(b, VB_PORT_FAULT_DROPPED), 4);
	vb_port_close(b->port);
	vb_faults_free(faults);
	config.faults = NULL;
	assert_int_equal(vb_udp_open(&config, &b->port), 0);
	return received;
}

static void receive__faults_of_a_path_are_those_of_its_source_port(void **state)
{
	struct end a, b;
	unsigned own_path = VB_FAULTS_PATHS;

	pair_open(&a, &b);
	batch_clear();
	put(VB_SEND_ONLY, qpn_of(SLOT_B), 0, 8);
	vb_port_send(a.port, &batch, 0);
	while (vb_port_receive(b.port, 0))
		while (vb_port_next_train(b.port, &train))
			own_path = train.path.src_port % VB_FAULTS_PATHS;
	for (unsigned path = 0; path < VB_FAULTS_PATHS; path++)
		assert_int_equal(receive_beside_faults_of(path, &a, &b), path == own_path ? 0 : 4);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__single_arrives_whole),
		cmocka_unit_test(receive__path_says_where_from),
		cmocka_unit_test(send__takes_marks_where_it_is_asked_to),
		cmocka_unit_test(send__ipv6_arrives_in_trains),
		cmocka_unit_test(send__write_message_is_single_and_train),
		cmocka_unit_test(send__trains_end_where_they_must),
		cmocka_unit_test(send__ack_is_the_last_of_the_requests_behind_it),
		cmocka_unit_test(send__ack_that_has_no_place_behind_leaves_first),
		cmocka_unit_test(send__slots_of_a_peer_have_their_own_source_port),
		cmocka_unit_test(send__flows_of_a_qp_have_their_own_source_port),
		cmocka_unit_test(send__beyond_the_mtu_is_said_and_trains_stay),
		cmocka_unit_test(send__scatter_list_is_one_payload),
		cmocka_unit_test(receive__bad_packets_are_counted),
		cmocka_unit_test(receive__overflow_is_counted),
		cmocka_unit_test(receive__faults_drop_and_double),
		cmocka_unit_test(receive__faults_of_a_path_are_those_of_its_source_port),
	};

	if (own_namespace())
		setenv("VB_TEST_OWN_NAMESPACE", "1", 1);
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 31 ^ i >> 8);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
