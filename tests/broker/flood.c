/* A flood of management datagrams, for tests: flood --kind req|discovery --rate N --seconds S [--spoof-random]
 * [--port N] TARGET
 *
 * Right in every bit, so that only what is made of them can tell them from honest ones. With --spoof-random each comes
 * from another IPv4 address (which takes CAP_NET_RAW), else all from our own. Prints how many were sent. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
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
#include "wire/packet.h"

#define BATCH 32

struct flood {
	bool is_discovery, is_spoofed;
	uint16_t port; /* of RDMA_PS_TCP, that the requests are for */
	struct in_addr from, to;
	uint16_t source_port;
	struct vb_random random;
	uint32_t number;
};

struct datagram {
	struct ip ip;
	struct udphdr udp;
	uint8_t payload[VB_MAD_PACKET_BYTES];
};

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct vb_gid gid_of(struct in_addr address)
{
	const uint8_t *b = (const uint8_t *)&address;
	return vb_gid_from_ipv4(b[0], b[1], b[2], b[3]);
}

static void build_mad(struct flood *flood, uint8_t mad[VB_MAD_LENGTH])
{
	const uint64_t transaction_id = vb_random_u64(&flood->random);
	const struct vb_discovery question = { .transaction_id = transaction_id, .version = VB_DISCOVERY_VERSION };
	struct vb_cm_message req = { .kind = VB_CM_REQ, .transaction_id = transaction_id,
		.local_id = (uint32_t)transaction_id | 1 };
	if (flood->is_discovery) {
		vb_discovery_encode(&question, mad);
		return;
	}
	req.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, flood->port);
	req.req.qpn = 0x000011;
	req.req.pkey = 0xFFFF;
	req.req.path_mtu = 3;
	req.req.retry_count = req.req.rnr_retry = 7;
	req.req.max_cm_retries = 15;
	req.req.remote_timeout = req.req.local_timeout = 20;
	req.req.responder_resources = req.req.initiator_depth = 1;
	req.req.primary = (struct vb_cm_way){ .local = gid_of(flood->from), .remote = gid_of(flood->to),
		.local_lid = 0xFFFF, .remote_lid = 0xFFFF, .hop_limit = 64, .ack_timeout = 17 };
	const struct vb_cm_ip_header header = { .src_port = 40000, .src = req.req.primary.local, .dst = req.req.primary.remote };
	vb_cm_ip_header_encode(&header, req.req.private_data);
	vb_cm_encode(&req, mad);
}

/* Public unicast addresses, more or less. */
static struct in_addr random_address(struct vb_random *random)
{
	return (struct in_addr){ htonl((11 + vb_random_below(random, 100)) << 24 | vb_random_below(random, 1 << 24)) };
}

static void build(struct flood *flood, struct datagram *datagram)
{
	uint8_t mad[VB_MAD_LENGTH];
	if (flood->is_spoofed) {
		flood->from = random_address(&flood->random);
		flood->source_port = (uint16_t)(0xC000 | vb_random_below(&flood->random, 0x4000));
	}
	const struct vb_flow flow = { .src = gid_of(flood->from), .dst = gid_of(flood->to),
		.src_port = flood->source_port, .dst_port = VB_UDP_PORT };
	build_mad(flood, mad);
	vb_mad_packet(&flow, flood->number++, mad, sizeof(mad), datagram->payload);
	datagram->ip = (struct ip){ .ip_v = 4, .ip_hl = 5, .ip_len = htons(sizeof(*datagram)), .ip_off = htons(IP_DF),
		.ip_ttl = 64, .ip_p = IPPROTO_UDP, .ip_src = flood->from, .ip_dst = flood->to };
	datagram->udp = (struct udphdr){ .source = htons(flood->source_port), .dest = htons(VB_UDP_PORT),
		.len = htons(sizeof(datagram->udp) + sizeof(datagram->payload)) };
}

static int open_socket(struct flood *flood)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = flood->to, .sin_port = htons(VB_UDP_PORT) }, us;
	socklen_t length = sizeof(us);
	int probe = IP_PMTUDISC_PROBE;
	int fd = flood->is_spoofed ? socket(AF_INET, SOCK_RAW, IPPROTO_RAW) : socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return -1;
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	if (getsockname(fd, (struct sockaddr *)&us, &length))
		return -1;
	flood->from = us.sin_addr;
	flood->source_port = ntohs(us.sin_port);
	return fd;
}

/* How many of a batch have left. */
static unsigned send_batch(struct flood *flood, int fd, unsigned count)
{
	static struct datagram datagrams[BATCH];
	struct mmsghdr headers[BATCH] = { 0 };
	struct iovec pieces[BATCH];
	for (unsigned i = 0; i < count; i++) {
		build(flood, &datagrams[i]);
		pieces[i] = flood->is_spoofed ? (struct iovec){ &datagrams[i], sizeof(datagrams[i]) }
					      : (struct iovec){ datagrams[i].payload, sizeof(datagrams[i].payload) };
		headers[i].msg_hdr.msg_iov = &pieces[i];
		headers[i].msg_hdr.msg_iovlen = 1;
	}
	int sent = sendmmsg(fd, headers, count, 0);
	return sent > 0 ? (unsigned)sent : 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: flood --kind req|discovery --rate N --seconds S [--spoof-random] [--port N] TARGET\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "kind", required_argument, NULL, 'k' },
		{ "rate", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' },
		{ "spoof-random", no_argument, NULL, 'x' }, { "port", required_argument, NULL, 'p' }, { 0 } };
	struct flood flood = { .port = 7471 };
	double rate = 1000, duration = 1, sent = 0;
	uint64_t seed = 1;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		if (option == 'k')
			flood.is_discovery = strcmp(optarg, "discovery") == 0;
		else if (option == 'r')
			rate = atof(optarg);
		else if (option == 's')
			duration = atof(optarg);
		else if (option == 'p')
			flood.port = (uint16_t)atoi(optarg);
		else if (option == 'x')
			flood.is_spoofed = true;
		else
			return usage();
	}
	if (optind + 1 != argc || inet_pton(AF_INET, argv[optind], &flood.to) != 1)
		return usage();
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)time(NULL);
	vb_random_seed(&flood.random, seed);
	int fd = open_socket(&flood);
	if (fd < 0) {
		perror("flood");
		return 1;
	}
	const double begin = now();
	for (double past = 0; past < duration; past = now() - begin) {
		double due = past * rate - sent;
		if (due < 1)
			usleep(500);
		else
			sent += send_batch(&flood, fd, due < BATCH ? (unsigned)due : BATCH);
	}
	printf("%.0f sent, %.0f a second\n", sent, sent / (now() - begin));
	return 0;
}
