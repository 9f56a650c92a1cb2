/* A flood of datagrams to UDP port 4791 at a fixed rate, with a right ICRC and from whatever address one likes.
 *
 *   flood --kind req|discovery|junk --rate N --seconds S [--port PORT] [--spoof-random] TARGET
 *     req        requests for a connection to RDMA-CM's TCP port PORT, each with a communication ID of its own
 *     discovery  Verbena's "who are you"
 *     junk       random bytes of random lengths, half of them with a header that a receiver takes for a packet
 *
 * IPv4 only; a raw socket, so CAP_NET_RAW. Without --spoof-random the source is this host's own address. Prints one
 * line "flooded ..." with what was sent, which is less than asked where the machine is not fast enough. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/random.h"
#include "wire/cm.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/packet.h"

enum { BATCH = 64, MAX_BYTES = 1472, HEADERS = sizeof(struct iphdr) + sizeof(struct udphdr) };

static struct {
	const char *kind;
	double rate, seconds;
	uint16_t port;
	bool is_spoofed;
	struct in_addr target, own;
} options = { .kind = "req", .rate = 20000, .seconds = 6, .port = 7471 };

static struct vb_random dice;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "flood: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static struct vb_gid gid_of(struct in_addr address)
{
	const uint8_t *b = (const uint8_t *)&address;

	return vb_gid_from_ipv4(b[0], b[1], b[2], b[3]);
}

static void build_req(uint8_t mad[VB_MAD_LENGTH], const struct vb_flow *flow)
{
	const uint32_t id = (uint32_t)vb_random_u64(&dice);
	struct vb_cm_message message = { .kind = VB_CM_REQ, .transaction_id = vb_random_u64(&dice), .local_id = id };
	const struct vb_cm_ip_header header = { .src_port = (uint16_t)id, .src = flow->src, .dst = flow->dst };

	message.req = (struct vb_cm_req){ .service_id = vb_cm_service_id(VB_CM_PS_TCP, options.port),
		.ca_guid = id,
		.qpn = id & 0xFFFFFF,
		.psn = id >> 8,
		.pkey = 0xFFFF,
		.responder_resources = 1,
		.initiator_depth = 1,
		.remote_timeout = 20,
		.local_timeout = 20,
		.retry_count = 7,
		.rnr_retry = 7,
		.max_cm_retries = 15,
		.path_mtu = 3,
		.primary = { .local = flow->src, .remote = flow->dst, .hop_limit = 64, .ack_timeout = 18 } };
	vb_cm_ip_header_encode(&header, message.req.private_data);
	vb_cm_encode(&message, mad);
}

static size_t build_mad(uint8_t *payload, const struct vb_flow *flow)
{
	uint8_t mad[VB_MAD_LENGTH];

	if (strcmp(options.kind, "req") == 0)
		build_req(mad, flow);
	else
		vb_discovery_encode(&(struct vb_discovery){ .transaction_id = vb_random_u64(&dice),
					    .version = VB_DISCOVERY_VERSION,
					    .receive_buffer = 4194304,
					    .features = VB_FEATURE_TRAINS },
			mad);
	return vb_mad_packet(flow, (uint32_t)vb_random_u64(&dice), mad, VB_MAD_LENGTH, payload);
}

static size_t build_junk(uint8_t *payload, const struct vb_flow *flow)
{
	size_t length = 4 * (vb_random_u64(&dice) % 340);

	for (size_t i = 0; i < length; i++)
		payload[i] = (uint8_t)vb_random_u64(&dice);
	if (length < 20 || vb_random_u64(&dice) & 1)
		return length;
	payload[1] &= 0x30; /* header version 0 */
	memcpy(payload + 2, "\xff\xff", 2);
	uint32_t crc = vb_icrc_begin(flow, length, 0);
	crc = vb_icrc_end(vb_icrc_add(vb_icrc_headers(crc, payload, 12), payload + 12, length - 16));
	memcpy(payload + length - 4, &crc, 4);
	return length;
}

/* One IPv4 packet, UDP checksum left out; its length. */
static size_t build(uint8_t *bytes)
{
	struct in_addr source = options.own;
	if (options.is_spoofed)
		source.s_addr = htonl(0x0A800000 | ((uint32_t)vb_random_u64(&dice) & 0x7FFFFF)); /* 10.128.0.0/9 */
	const uint16_t source_port = 0xC000 | (uint16_t)vb_random_u64(&dice);
	const struct vb_flow flow = {
		.src = gid_of(source), .dst = gid_of(options.target), .src_port = source_port, .dst_port = VB_UDP_PORT
	};
	uint8_t *payload = bytes + HEADERS;
	const size_t length =
		strcmp(options.kind, "junk") == 0 ? build_junk(payload, &flow) : build_mad(payload, &flow);
	const struct iphdr ip = { .version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.frag_off = htons(0x4000),
		.tot_len = htons((uint16_t)(HEADERS + length)),
		.saddr = source.s_addr,
		.daddr = options.target.s_addr };
	const struct udphdr udp = {
		.source = htons(source_port), .dest = htons(VB_UDP_PORT), .len = htons((uint16_t)(sizeof(udp) + length))
	};

	memcpy(bytes, &ip, sizeof(ip));
	memcpy(bytes + sizeof(ip), &udp, sizeof(udp));
	return HEADERS + length;
}

static struct in_addr own_address(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = options.target }, from;
	socklen_t length = sizeof(from);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
		getsockname(fd, (struct sockaddr *)&from, &length))
		die("no way to the target");
	close(fd);
	return from.sin_addr;
}

static void read_options(int argc, char **argv)
{
	static const struct option names[] = { { "kind", required_argument, NULL, 'k' },
		{ "rate", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' },
		{ "port", required_argument, NULL, 'p' }, { "spoof-random", no_argument, NULL, 'x' }, { 0 } };

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;)
		switch (c) {
		case 'k':
			options.kind = optarg;
			break;
		case 'r':
			options.rate = atof(optarg);
			break;
		case 's':
			options.seconds = atof(optarg);
			break;
		case 'p':
			options.port = (uint16_t)atoi(optarg);
			break;
		case 'x':
			options.is_spoofed = true;
			break;
		default:
			exit(2);
		}
	bool is_known = strcmp(options.kind, "req") == 0 || strcmp(options.kind, "discovery") == 0 ||
			strcmp(options.kind, "junk") == 0;
	if (argc - optind != 1 || !is_known || inet_pton(AF_INET, argv[optind], &options.target) != 1) {
		fprintf(stderr, "usage: flood --kind req|discovery|junk --rate N --seconds S [--port PORT] "
				"[--spoof-random] TARGET\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static uint8_t bytes[BATCH][HEADERS + MAX_BYTES];
	struct iovec io[BATCH];
	struct mmsghdr messages[BATCH];
	struct sockaddr_in to = { .sin_family = AF_INET };
	uint64_t seed;

	read_options(argc, argv);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		die("getrandom");
	vb_random_seed(&dice, seed);
	to.sin_addr = options.target;
	options.own = own_address();
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (fd < 0)
		die("cannot make a raw socket");
	double sent = 0, refused = 0;
	const double began = now();
	for (double at; (at = now() - began) < options.seconds;) {
		double due = options.rate * at - sent - refused;
		if (due < 1) {
			usleep(500);
			continue;
		}
		unsigned count = due < BATCH ? (unsigned)due : BATCH;
		for (unsigned i = 0; i < count; i++) {
			io[i] = (struct iovec){ bytes[i], build(bytes[i]) };
			messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &to,
								.msg_namelen = sizeof(to),
								.msg_iov = &io[i],
								.msg_iovlen = 1 } };
		}
		int done = sendmmsg(fd, messages, count, 0);
		sent += done > 0 ? done : 0;
		refused += done < 0;
	}
	printf("flooded kind=%s sent=%.0f refused=%.0f rate=%.0f\n", options.kind, sent, refused,
		sent / (now() - began));
	return 0;
}
